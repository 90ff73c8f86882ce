use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Enum;
use gannet_log::Logs;
use gannet_log::Port;
use gannet_log::Type;
use gannet_log::Value;

gannet_log::row! {
    /// One row a connection through a SOCKS proxy.
    pub struct SocksRow<'a> = "socks" {
        /// When the first message that counts was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Version.
        version: u8 = "version",
        /// Who asks.
        user: Option<&'a [u8]> = "user",
        /// Not logged.
        password: Option<&'a [u8]> = "password",
        /// The proxy's answer.
        status: Option<Status> = "status",
        /// Where to: address.
        request_host: Option<Addr> = "request.host",
        /// Where to: name.
        request_name: Option<&'a [u8]> = "request.name",
        /// Where to: port.
        request_p: Option<Port> = "request_p",
        /// Where the proxy is bound: address.
        bound_host: Option<Addr> = "bound.host",
        /// Where the proxy is bound: name.
        bound_name: Option<&'a [u8]> = "bound.name",
        /// Where the proxy is bound: port.
        bound_p: Option<Port> = "bound_p",
    }
}

gannet_log::row! {
    /// One row a proxy found, or forgotten.
    pub struct ProxyRow = "tunnel" {
        /// When.
        ts: Time = "ts",
        /// Unset: a proxy's tunnel is not one connection.
        uid: Option<Uid> = "uid",
        /// Its ends; the client's port is 0.
        id: ConnId = "id",
        /// Kind of tunnel.
        tunnel_type: Enum = "tunnel_type",
        /// Found or forgotten.
        action: Enum = "action",
    }
}

/// A status by version and code, in words.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Version.
    pub version: u8,
    /// Code.
    pub code: u8,
}

impl Value for Status {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        let words = match (self.version, self.code) {
            (4, 0x5a) | (5, 0) => "succeeded",
            (4, 0x5b) | (5, 1) => "general SOCKS server failure",
            (4, 0x5c) => "request failed because client is not running identd",
            (4, 0x5d) => {
                "request failed because client's identd could not confirm the user ID string in \
                 the request"
            }
            (5, 2) => "connection not allowed by ruleset",
            (5, 3) => "Network unreachable",
            (5, 4) => "Host unreachable",
            (5, 5) => "Connection refused",
            (5, 6) => "TTL expired",
            (5, 7) => "Command not supported",
            (5, 8) => "Address type not supported",
            (_, n) => return e.plain(format!("unknown-{n}").as_bytes()),
        };
        e.plain(words.as_bytes());
    }
}

/// A proxy is forgotten after this time without a request.
const PATIENCE: Interval = Interval::from_secs(3600);
/// Proxies that are remembered; when there are more, all are forgotten.
const MAX_PROXIES: usize = 10_000;

/// Proxies that were logged, which span connections.
#[derive(Debug, Default)]
pub struct Shared {
    last: HashMap<ConnId, Time, foldhash::fast::FixedState>,
}

impl Shared {
    /// A request through a proxy; `kind` is `Tunnel::SOCKS` or `Tunnel::HTTP`.
    pub fn register(&mut self, logs: &mut Logs, now: Time, id: ConnId, kind: &'static str) {
        let id = ConnId { orig_p: 0, ..id };
        let mut write = |ts, action| {
            let (tunnel_type, action) = (Enum(kind), Enum(action));
            logs.write(&ProxyRow { ts, uid: None, id, tunnel_type, action });
        };
        if self.last.len() >= MAX_PROXIES && !self.last.contains_key(&id) {
            self.last.clear();
        }
        match self.last.insert(id, now) {
            Some(last) if last + PATIENCE >= now => {}
            Some(last) => {
                write(last + PATIENCE, "Tunnel::EXPIRE");
                write(now, "Tunnel::DISCOVER");
            }
            None => write(now, "Tunnel::DISCOVER"),
        }
    }
}
