use std::borrow::Cow;
use std::sync::Arc;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_files::x509::Certificate;
use gannet_log::Date;

use super::events::*;
use super::message::Principal;
use super::message::UnixSeconds;
use super::names;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each connection: its first request with a response.
    pub struct KerberosRow<'a> = "kerberos" {
        /// Time of the first message.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// `AS`, `TGS` or `AP`.
        request_type: Option<&'static str> = "request_type",
        /// Client and realm.
        client: Option<&'a [u8]> = "client",
        /// Service.
        service: Option<&'a [u8]> = "service",
        /// Whether the request was granted.
        success: Option<bool> = "success",
        /// Error message.
        error_msg: Option<&'a [u8]> = "error_msg",
        /// Requested start time.
        from: Option<Date> = "from",
        /// Requested expiration time.
        till: Option<Date> = "till",
        /// Encryption type of the ticket.
        cipher: Option<&'a str> = "cipher",
        /// Whether a forwardable ticket was requested.
        forwardable: Option<bool> = "forwardable",
        /// Whether a renewable ticket was requested.
        renewable: Option<bool> = "renewable",
        /// Subject of the client's certificate.
        client_cert_subject: Option<&'a str> = "client_cert_subject",
        /// The client's certificate as a file.
        client_cert_fuid: Option<Uid> = "client_cert_fuid",
        /// Subject of the server's certificate.
        server_cert_subject: Option<&'a str> = "server_cert_subject",
        /// The server's certificate as a file.
        server_cert_fuid: Option<Uid> = "server_cert_fuid",
    }
}

/// Errors that are part of an ordinary login and are not logged: the client retries with
/// pre-authentication data.
const IGNORED: [&[u8]; 2] = [b"NEEDED_PREAUTH", b"Need to use PA-ENC-TIMESTAMP/PA-PK-AS-REQ"];

/// A certificate in the row.
#[derive(Debug)]
struct LoggedCertificate {
    fuid: Uid,
    certificate: Option<Arc<Certificate>>,
}

impl LoggedCertificate {
    /// Subject of the certificate, if it can be parsed.
    fn subject(&self) -> Option<&str> {
        self.certificate.as_ref().map(|c| &*c.subject)
    }
}

/// The fields of the row.
#[derive(Debug, Default)]
struct Info {
    ts: Time,
    request_type: Option<&'static str>,
    client: Option<Vec<u8>>,
    service: Option<Vec<u8>>,
    success: Option<bool>,
    error: Option<Cow<'static, [u8]>>,
    from: Option<Date>,
    till: Option<Date>,
    cipher: Option<Cow<'static, str>>,
    forwardable: Option<bool>,
    renewable: Option<bool>,
    client_certificate: Option<LoggedCertificate>,
    server_certificate: Option<LoggedCertificate>,
}

/// The row of one connection until it is written.
#[derive(Debug, Default)]
pub struct Session {
    info: Option<Box<Info>>,
    logged: bool,
}

impl Session {
    /// The current exchange; `None` once its row is written.
    fn info(&mut self, now: Time) -> Option<&mut Info> {
        if self.logged {
            return None;
        }
        Some(self.info.get_or_insert_with(|| Box::new(Info { ts: now, ..Info::default() })))
    }

    fn reply(&mut self, cx: &mut Context<'_>, r: &KdcResponse<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        if info.client.is_none() {
            info.client = Some(joined(Some(r.client_name), r.client_realm));
        }
        info.service = Some(r.ticket.service_name.text());
        info.cipher = Some(names::cipher(r.ticket.cipher));
        info.success = Some(true);
        self.finish(cx);
    }

    /// Writes the row, unless it was written before.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        let Some(info) = self.info.take() else { return };
        self.logged = true;
        let (client, server) = (&info.client_certificate, &info.server_certificate);
        cx.log(&KerberosRow {
            ts: info.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            request_type: info.request_type,
            client: info.client.as_deref(),
            service: info.service.as_deref(),
            success: info.success,
            error_msg: info.error.as_deref(),
            from: info.from,
            till: info.till,
            cipher: info.cipher.as_deref(),
            forwardable: info.forwardable,
            renewable: info.renewable,
            client_cert_subject: client.as_ref().and_then(LoggedCertificate::subject),
            client_cert_fuid: client.as_ref().map(|c| c.fuid),
            server_cert_subject: server.as_ref().and_then(LoggedCertificate::subject),
            server_cert_fuid: server.as_ref().map(|c| c.fuid),
        });
    }
}

impl OnEvent<KrbCertificate<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbCertificate<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        let certificate = event.subject.map(|subject| Arc::clone(subject.0));
        let certificate = Some(LoggedCertificate { fuid: event.fuid, certificate });
        if event.is_client {
            info.client_certificate = certificate;
        } else {
            info.server_certificate = certificate;
        }
    }
}

impl OnEvent<KrbAsRequest<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbAsRequest<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        info.request_type = Some("AS");
        info.client = Some(joined(event.msg.client_name, event.msg.service_realm));
        info.request(&event.msg);
    }
}

impl OnEvent<KrbTgsRequest<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbTgsRequest<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        info.request_type = Some("TGS");
        info.request(&event.msg);
    }
}

impl OnEvent<KrbApRequest<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbApRequest<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        if !event.in_kdc_padata {
            info.request_type = Some("AP");
            info.service = Some(event.ticket.service_name.text());
            info.cipher = Some(names::cipher(event.ticket.cipher));
            info.client = Some(joined(None, Some(event.ticket.realm)));
        }
    }
}

impl OnEvent<KrbAsResponse<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbAsResponse<'_>) {
        self.reply(cx, &event.msg);
    }
}

impl OnEvent<KrbTgsResponse<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbTgsResponse<'_>) {
        self.reply(cx, &event.msg);
    }
}

impl OnEvent<KrbApResponse> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &KrbApResponse) {
        let Some(info) = self.info(cx.now) else { return };
        info.success = Some(true);
        self.finish(cx);
    }
}

impl OnEvent<KrbError<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &KrbError<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        if event.msg.error_text.is_some_and(|text| IGNORED.contains(&text)) {
            self.info = None;
        } else {
            info.error(&event.msg);
            self.finish(cx);
        }
    }
}

impl Info {
    fn request(&mut self, r: &KdcRequest<'_>) {
        if let Some(service) = r.service_name {
            self.service = Some(service.text());
        }
        let date = |moment: Option<UnixSeconds>| moment.map(|moment| Date(moment.0));
        self.from = date(r.from).or(self.from);
        self.till = date(r.till).or(self.till);
        self.forwardable = r.kdc_options.map(|o| o.forwardable).or(self.forwardable);
        self.renewable = r.kdc_options.map(|o| o.renewable).or(self.renewable);
    }

    fn error(&mut self, e: &ErrorMsg<'_>) {
        if self.client.is_none() && (e.client_name.is_some() || e.client_realm.is_some()) {
            self.client = Some(match e.client_name {
                Some(client) => joined(Some(client), e.client_realm),
                None => e.client_realm.unwrap_or_default().to_vec(),
            });
        }
        if let Some(service) = e.service_name {
            self.service = Some(service.text());
        }
        self.success = Some(false);
        if let Some(text) = e.error_text {
            self.error = Some(text.to_vec().into());
        } else if let Some(name) = names::error(e.error_code) {
            self.error = Some(name.as_bytes().into());
        }
    }
}

fn joined(name: Option<&Principal<'_>>, realm: Option<&[u8]>) -> Vec<u8> {
    let mut out = name.map(Principal::text).unwrap_or_default();
    out.push(b'/');
    out.extend_from_slice(realm.unwrap_or_default());
    out
}
