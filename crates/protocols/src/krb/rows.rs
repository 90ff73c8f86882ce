use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Date;

use super::certificates::Named;
use super::message::Aside;
use super::message::Error;
use super::message::Message;
use super::message::Principal;
use super::message::Reply;
use super::message::Request;
use super::message::Ticket;
use super::names;
use crate::Context;
use crate::Tag;

gannet_log::row! {
    /// One row for each connection: the first request that is answered.
    pub struct KerberosRow<'a> = "kerberos" {
        /// When the first message was seen.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// `AS`, `TGS` or `AP`.
        request_type: Option<&'static str> = "request_type",
        /// Client and realm.
        client: Option<&'a [u8]> = "client",
        /// Service.
        service: Option<&'a [u8]> = "service",
        /// Whether it was granted.
        success: Option<bool> = "success",
        /// Error message.
        error_msg: Option<&'a [u8]> = "error_msg",
        /// Wanted start.
        from: Option<Date> = "from",
        /// Wanted end.
        till: Option<Date> = "till",
        /// Encryption type of the ticket.
        cipher: Option<&'a str> = "cipher",
        /// Whether a ticket that may be forwarded was wanted.
        forwardable: Option<bool> = "forwardable",
        /// Whether a ticket that may be renewed was wanted.
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

/// Answers that are part of an ordinary login and make no row: the client tries again with
/// pre-authentication data.
const IGNORED: [&[u8]; 2] = [b"NEEDED_PREAUTH", b"Need to use PA-ENC-TIMESTAMP/PA-PK-AS-REQ"];

/// The facts of the exchange that becomes the row.
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
    client_certificate: Option<Named>,
    server_certificate: Option<Named>,
}

/// The row of one connection, in the making.
#[derive(Debug, Default)]
pub struct Session {
    info: Option<Box<Info>>,
    logged: bool,
}

impl Session {
    /// Logs the facts that the analyzer `tag` found in a message, and the message if it was
    /// complete.
    pub(super) fn aside(
        &mut self,
        cx: &mut Context<'_>,
        tag: Tag,
        aside: &Aside<'_>,
        message: Option<&Message<'_>>,
    ) {
        if aside.ap_request {
            self.info(cx.now);
        }
        if !message.is_some_and(Message::counts) {
            return;
        }
        for _ in 0..aside.odd_addresses {
            cx.weird("invalid_kerberos_addr_len", "", Some(tag.name()));
        }
        // As in Zeek, an anonymous client (RFC 8062) has an empty certificate, which is a file
        // nevertheless.
        let certificate = |der: Option<&[u8]>, is_reply, cx: &mut Context<'_>| {
            der.map(|d| Named::new(cx, d, is_reply))
        };
        if let Some(c) = certificate(aside.client_certificate, false, cx)
            && let Some(info) = self.info(cx.now)
        {
            info.client_certificate = Some(c);
        }
        if let Some(c) = certificate(aside.server_certificate, true, cx)
            && let Some(info) = self.info(cx.now)
        {
            info.server_certificate = Some(c);
        }
    }

    pub(super) fn message(&mut self, cx: &mut Context<'_>, message: &Message<'_>) {
        if !message.counts() {
            return;
        }
        let Some(info) = self.info(cx.now) else { return };
        match message {
            Message::Request(r) => info.request(r),
            Message::ApRequest(t, _) => info.ap_request(t),
            Message::Reply(r) => {
                info.reply(r);
                self.finish(cx);
            }
            Message::ApReply => {
                info.success = Some(true);
                self.finish(cx);
            }
            Message::Error(e) if e.text.is_some_and(|t| IGNORED.contains(&t)) => self.info = None,
            Message::Error(e) => {
                info.error(e);
                self.finish(cx);
            }
            Message::Private | Message::Safe(_) | Message::Credentials(_) => {}
        }
    }

    /// The current exchange; `None` once its row is written.
    fn info(&mut self, now: Time) -> Option<&mut Info> {
        if self.logged {
            return None;
        }
        Some(self.info.get_or_insert_with(|| Box::new(Info { ts: now, ..Info::default() })))
    }

    /// Writes the row, unless there was one.
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
            client_cert_subject: client.as_ref().and_then(Named::subject),
            client_cert_fuid: client.as_ref().map(|c| c.fuid),
            server_cert_subject: server.as_ref().and_then(Named::subject),
            server_cert_fuid: server.as_ref().map(|c| c.fuid),
        });
    }
}

impl Info {
    fn request(&mut self, r: &Request<'_>) {
        if r.kind == 10 {
            self.request_type = Some("AS");
            self.client = Some(joined(r.client.as_ref(), r.realm));
        } else {
            self.request_type = Some("TGS");
        }
        if let Some(service) = &r.service {
            self.service = Some(service.text());
        }
        self.from = r.from.map(Date).or(self.from);
        self.till = r.till.map(Date).or(self.till);
        self.forwardable = r.forwardable().or(self.forwardable);
        self.renewable = r.renewable().or(self.renewable);
    }

    fn ap_request(&mut self, t: &Ticket<'_>) {
        self.request_type = Some("AP");
        self.service = Some(t.service.text());
        self.cipher = Some(names::cipher(t.cipher));
        self.client = Some(joined(None, Some(t.realm)));
    }

    fn reply(&mut self, r: &Reply<'_>) {
        if self.client.is_none() {
            self.client = Some(joined(Some(&r.client), Some(r.realm)));
        }
        self.service = Some(r.ticket.service.text());
        self.cipher = Some(names::cipher(r.ticket.cipher));
        self.success = Some(true);
    }

    fn error(&mut self, e: &Error<'_>) {
        if self.client.is_none() && (e.client.is_some() || e.client_realm.is_some()) {
            self.client = Some(match &e.client {
                Some(client) => joined(Some(client), e.client_realm),
                None => e.client_realm.unwrap_or_default().to_vec(),
            });
        }
        if let Some(service) = &e.service {
            self.service = Some(service.text());
        }
        self.success = Some(false);
        if let Some(text) = e.text {
            self.error = Some(text.to_vec().into());
        } else if let Some(name) = names::error(e.code) {
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
