//! socks.log: one row per connection.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event as event;
use gannet_log::Port;

use super::events::*;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each connection to a proxy.
    pub struct SocksRow<'a> = "socks" {
        /// Time of the first request, login or reply.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its originator and responder.
        id: ConnId = "id",
        /// Version of the protocol.
        version: u64 = "version",
        /// User name of the login at the proxy.
        user: Option<&'a [u8]> = "user",
        /// The password; not logged by default.
        password: Option<&'a [u8]> = "password",
        /// Reply of the proxy.
        status: Option<&'a str> = "status",
        /// The address that the client requested.
        request_host: Option<Addr> = "request.host",
        /// The name that the client requested.
        request_name: Option<&'a [u8]> = "request.name",
        /// The port that the client requested.
        request_p: Option<Port> = "request_p",
        /// The address that the proxy uses.
        bound_host: Option<Addr> = "bound.host",
        /// The name that the proxy uses.
        bound_name: Option<&'a [u8]> = "bound.name",
        /// The port that the proxy uses.
        bound_p: Option<Port> = "bound_p",
    }
}

/// Destination or source of a relayed connection.
#[derive(Debug)]
struct Peer {
    host: Option<Addr>,
    name: Option<Vec<u8>>,
    port: u16,
}

impl Peer {
    fn new(address: &Address<'_>, port: event::Port) -> Self {
        let name = address.name.map(<[u8]>::to_vec);
        Self { host: address.host, name, port: port.0 }
    }
}

/// The row of a connection.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl Rows {
    fn session(&mut self, cx: &Context<'_>, version: u64) -> &mut Session {
        self.0.get_or_insert(Session {
            ts: cx.now,
            version,
            user: None,
            status: None,
            request: None,
            bound: None,
        })
    }

    /// Writes the row.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = self.0.take() {
            session.write(cx);
        }
    }
}

impl OnEvent<SocksRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SocksRequest<'_>) {
        self.session(cx, event.version).request = Some(Peer::new(&event.sa, event.p));
    }
}

impl OnEvent<SocksReply<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SocksReply<'_>) {
        let session = self.session(cx, event.version);
        session.status = Some(status(event.version, event.reply));
        session.bound = Some(Peer::new(&event.sa, event.p));
    }
}

impl OnEvent<SocksLoginUserpassRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SocksLoginUserpassRequest<'_>) {
        self.session(cx, 5).user = Some(event.user.to_vec());
    }
}

impl OnEvent<SocksLoginUserpassReply> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SocksLoginUserpassReply) {
        self.session(cx, 5).status = Some(status(5, event.code));
    }
}

/// The fields of a row.
#[derive(Debug)]
struct Session {
    ts: Time,
    version: u64,
    user: Option<Vec<u8>>,
    status: Option<String>,
    request: Option<Peer>,
    bound: Option<Peer>,
}

impl Session {
    fn write(&self, cx: &mut Context<'_>) {
        let (request, bound) = (self.request.as_ref(), self.bound.as_ref());
        cx.log(&SocksRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            version: self.version,
            user: self.user.as_deref(),
            password: None,
            status: self.status.as_deref(),
            request_host: request.and_then(|p| p.host),
            request_name: request.and_then(|p| p.name.as_deref()),
            request_p: request.map(|p| Port(p.port)),
            bound_host: bound.and_then(|p| p.host),
            bound_name: bound.and_then(|p| p.name.as_deref()),
            bound_p: bound.map(|p| Port(p.port)),
        });
    }
}

/// Description of a status code, as in Zeek.
fn status(version: u64, code: u64) -> String {
    let description = match (version, code) {
        (4, 0x5a) | (5, 0) => "succeeded",
        (4, 0x5b) | (5, 1) => "general SOCKS server failure",
        (4, 0x5c) => "request failed because client is not running identd",
        (4, 0x5d) => {
            "request failed because client's identd could not confirm the user ID string in the request"
        }
        (5, 2) => "connection not allowed by ruleset",
        (5, 3) => "Network unreachable",
        (5, 4) => "Host unreachable",
        (5, 5) => "Connection refused",
        (5, 6) => "TTL expired",
        (5, 7) => "Command not supported",
        (5, 8) => "Address type not supported",
        _ => return format!("unknown-{code}"),
    };
    description.to_owned()
}
