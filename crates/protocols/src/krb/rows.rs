use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use super::message::Error;
use super::message::Message;
use super::message::Reply;
use super::message::Request;
use super::message::Ticket;
use super::names;
use crate::Context;

gannet_log::row! {
    /// One row a connection: its first exchange.
    pub struct KerberosRow<'a> = "kerberos" {
        /// When it was begun.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// `AS`, `TGS` or `AP`.
        request_type: Option<&'static str> = "request_type",
        /// Who asks, with the realm.
        client: Option<&'a [u8]> = "client",
        /// For which service.
        service: Option<&'a [u8]> = "service",
        /// Whether it was granted.
        success: Option<bool> = "success",
        /// Why not.
        error_msg: Option<&'a [u8]> = "error_msg",
        /// From when the ticket should hold.
        from: Option<Time> = "from",
        /// Until when.
        till: Option<Time> = "till",
        /// Encryption of the ticket.
        cipher: Option<Cipher> = "cipher",
        /// Whether it may be handed on.
        forwardable: Option<bool> = "forwardable",
        /// Whether it may be renewed.
        renewable: Option<bool> = "renewable",
        /// Subject of the client's certificate.
        client_cert_subject: Option<&'a [u8]> = "client_cert_subject",
        /// The client's certificate.
        client_cert_fuid: Option<Uid> = "client_cert_fuid",
        /// Subject of the server's certificate.
        server_cert_subject: Option<&'a [u8]> = "server_cert_subject",
        /// The server's certificate.
        server_cert_fuid: Option<Uid> = "server_cert_fuid",
    }
}

/// An encryption, written as its name.
#[derive(Clone, Copy, Debug)]
pub struct Cipher(pub u64);

impl Value for Cipher {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match names::cipher(self.0) {
            Some(name) => e.plain(name.as_bytes()),
            None => e.plain(format!("unknown-{}", self.0).as_bytes()),
        }
    }
}

/// Errors that only ask for pre-authentication: what follows them is the exchange.
const IGNORED: [&[u8]; 2] = [b"NEEDED_PREAUTH", b"Need to use PA-ENC-TIMESTAMP/PA-PK-AS-REQ"];

/// What the row of a connection is made of.
#[derive(Debug, Default)]
pub(super) struct Session {
    info: Option<Info>,
    logged: bool,
}

#[derive(Debug, Default)]
struct Info {
    ts: Time,
    kind: Option<&'static str>,
    client: Option<Vec<u8>>,
    service: Option<Vec<u8>>,
    success: Option<bool>,
    error: Option<Vec<u8>>,
    from: Option<Time>,
    till: Option<Time>,
    cipher: Option<Cipher>,
    forwardable: Option<bool>,
    renewable: Option<bool>,
}

impl Session {
    pub(super) fn message(&mut self, cx: &mut Context<'_>, message: &Message<'_>) {
        if self.logged || *message == Message::Other {
            return;
        }
        let now = cx.now;
        let info = self.info.get_or_insert_with(|| Info { ts: now, ..Info::default() });
        let over = match message {
            Message::Request(r) => {
                info.request(r);
                false
            }
            Message::Reply(r) => info.reply(r),
            Message::ApRequest(ticket) => {
                info.ap_request(ticket);
                false
            }
            Message::ApReply => {
                info.success = Some(true);
                true
            }
            Message::Error(e) if e.text.is_some_and(|t| IGNORED.contains(&t)) => {
                self.info = None;
                false
            }
            Message::Error(e) => {
                info.error(e);
                true
            }
            Message::Other => false,
        };
        if over {
            self.write(cx);
        }
    }

    /// Writes the row unless it was, or there is nothing to write.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        let Some(info) = self.info.take() else { return };
        self.logged = true;
        cx.log(&KerberosRow {
            ts: info.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            request_type: info.kind,
            client: info.client.as_deref(),
            service: info.service.as_deref(),
            success: info.success,
            error_msg: info.error.as_deref(),
            from: info.from,
            till: info.till,
            cipher: info.cipher,
            forwardable: info.forwardable,
            renewable: info.renewable,
            client_cert_subject: None,
            client_cert_fuid: None,
            server_cert_subject: None,
            server_cert_fuid: None,
        });
    }
}

fn joined(a: &[u8], b: &[u8]) -> Vec<u8> {
    [a, b"/", b].concat()
}

impl Info {
    fn request(&mut self, r: &Request<'_>) {
        match r.kind {
            10 => {
                self.kind = Some("AS");
                let client = r.client.as_deref().unwrap_or_default();
                self.client = Some(joined(client, r.realm.unwrap_or_default()));
            }
            12 => self.kind = Some("TGS"),
            _ => return,
        }
        self.service = r.service.clone().or(self.service.take());
        self.from = r.from.or(self.from);
        self.till = r.till.or(self.till);
        self.forwardable = r.forwardable().or(self.forwardable);
        self.renewable = r.renewable().or(self.renewable);
    }

    fn reply(&mut self, r: &Reply<'_>) -> bool {
        if !matches!(r.kind, 11 | 13) {
            return false;
        }
        self.client.get_or_insert_with(|| joined(&r.client, r.realm));
        self.service = Some(r.ticket.service.clone());
        self.cipher = Some(Cipher(r.ticket.cipher));
        self.success = Some(true);
        true
    }

    fn ap_request(&mut self, ticket: &Ticket<'_>) {
        self.kind = Some("AP");
        self.service = Some(ticket.service.clone());
        self.cipher = Some(Cipher(ticket.cipher));
        self.client = Some(joined(b"", ticket.realm));
    }

    fn error(&mut self, e: &Error<'_>) {
        if self.client.is_none() && (e.client.is_some() || e.client_realm.is_some()) {
            let realm = e.client_realm.unwrap_or_default();
            self.client = Some(match &e.client {
                Some(client) => joined(client, realm),
                None => realm.to_vec(),
            });
        }
        self.service = e.service.clone().or(self.service.take());
        self.success = Some(false);
        let known = || names::error(e.code).map(|n| n.as_bytes().to_vec());
        self.error = e.text.map(<[u8]>::to_vec).or_else(known).or(self.error.take());
    }
}
