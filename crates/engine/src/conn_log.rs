//! conn.log: one row for each connection, written when it is removed.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_flow::Conn;
use gannet_flow::tcp::State;
use gannet_flow::tcp::Tcp;
use gannet_log::Encoder;
use gannet_log::Extra;
use gannet_log::Plain;
use gannet_log::Set;
use gannet_log::Type;
use gannet_log::Value;
use gannet_protocols::Tag;

gannet_log::row! {
    /// One row for each connection; TCP connections end by their state, others by inactivity.
    pub(crate) struct ConnRow<'a> = "conn" {
        /// Time of the first packet.
        ts: Time = "ts",
        /// The connection's uid in all logs.
        uid: &'a Uid = "uid",
        /// Originator and responder.
        id: &'a ConnId = "id",
        /// Transport.
        proto: Proto = "proto",
        /// Recognised protocols, in order of confirmation.
        service: Services<'a> = "service",
        /// From the first to the last packet; unset for a single packet.
        duration: Option<Interval> = "duration",
        /// Payload bytes of the originator; TCP: by sequence numbers.
        orig_bytes: Option<u64> = "orig_bytes",
        /// Payload bytes of the responder.
        resp_bytes: Option<u64> = "resp_bytes",
        /// State at the end: one of the [states](#conn_state).
        conn_state: Plain<'a> = "conn_state",
        /// Whether the originator is local.
        local_orig: Option<bool> = "local_orig",
        /// Whether the responder is local.
        local_resp: Option<bool> = "local_resp",
        /// Missing bytes (gaps).
        missed_bytes: u64 = "missed_bytes",
        /// History of the connection as [letters](#history), upper case for the originator.
        history: Option<Letters<'a>> = "history",
        /// Packets of the originator.
        orig_pkts: u32 = "orig_pkts",
        /// Bytes of its IP packets.
        orig_ip_bytes: u64 = "orig_ip_bytes",
        /// Packets of the responder.
        resp_pkts: u32 = "resp_pkts",
        /// Bytes of its IP packets.
        resp_ip_bytes: u64 = "resp_ip_bytes",
        /// Tunnels that carried it.
        tunnel_parents: Parents<'a> = "tunnel_parents",
        /// IP protocol number.
        ip_proto: u8 = "ip_proto",
        /// Its Community ID, by which other tools know it.
        community_id: Extra<&'a str> = "community_id",
    }
}

/// The `tunnel_parents` column. It borrows its values: an owned column, which must be dropped,
/// would force the row into memory.
pub(crate) struct Parents<'a>(pub(crate) &'a [Uid]);

impl Value for Parents<'_> {
    const TYPE: Type = <Set<Uid> as Value>::TYPE;

    #[inline(always)]
    fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        e.list(self.0.iter());
    }
}

/// The `service` column: names joined by commas, as one string.
pub(crate) struct Services<'a>(pub(crate) &'a [u8]);

impl Value for Services<'_> {
    const TYPE: Type = Type::Scalar("string");

    fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        for (i, service) in self.0.iter().enumerate() {
            if i > 0 {
                e.plain(b",");
            }
            if let Some(tag) = Tag::ALL.get(usize::from(*service)) {
                e.plain(tag.service().as_bytes());
            }
        }
    }
}

/// The `history` column.
pub(crate) struct Letters<'a>(pub(crate) &'a [u8]);

/// Maximum length of a history that is written without a check of the limit.
const UNCHECKED_LETTERS: usize = 64;

impl Value for Letters<'_> {
    const TYPE: Type = Type::Scalar("string");

    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        if self.0.len() <= UNCHECKED_LETTERS { e.plain(self.0) } else { e.string(self.0) }
    }
}

/// The row of a connection; `local` states, for each endpoint, whether it is local.
#[inline(always)]
pub(crate) fn row<'a>(
    conn: &'a Conn,
    tcp: Option<&Tcp>,
    local: (Option<bool>, Option<bool>),
    community_id: Option<&'a str>,
) -> ConnRow<'a> {
    let duration = conn.last.micros_since(conn.start);
    let lasted = duration > Interval::ZERO;
    let [orig, resp] = [Dir::Orig, Dir::Resp].map(|side| conn.sent(side));
    let history = conn.history.as_bytes();
    ConnRow {
        ts: conn.start,
        uid: &conn.uid,
        id: &conn.id,
        proto: conn.proto,
        service: Services(conn.services.as_slice()),
        duration: lasted.then_some(duration),
        orig_bytes: lasted.then_some(orig.payload),
        resp_bytes: lasted.then_some(resp.payload),
        conn_state: Plain(match (conn.proto, tcp) {
            (Proto::Tcp, Some(tcp)) => tcp_state(conn, tcp).as_bytes(),
            (Proto::Udp, _) => udp_state(conn).as_bytes(),
            _ => b"OTH",
        }),
        local_orig: local.0,
        local_resp: local.1,
        missed_bytes: tcp.map_or(0, Tcp::missed_bytes),
        history: (!history.is_empty()).then_some(Letters(history)),
        orig_pkts: orig.packets,
        orig_ip_bytes: orig.ip_bytes,
        resp_pkts: resp.packets,
        resp_ip_bytes: resp.ip_bytes,
        tunnel_parents: Parents(conn.tunnel_parents()),
        ip_proto: conn.ip_proto,
        community_id: Extra(community_id),
    }
}

fn udp_state(conn: &Conn) -> &'static str {
    match (conn.is_active(Dir::Orig), conn.is_active(Dir::Resp)) {
        (true, true) => "SF",
        (true, false) => "S0",
        (false, true) => "SHR",
        (false, false) => "OTH",
    }
}

fn tcp_state(conn: &Conn, tcp: &Tcp) -> &'static str {
    let (orig, resp) = (tcp.endpoint(Dir::Orig).state, tcp.endpoint(Dir::Resp).state);
    let idle = |s| matches!(s, State::Inactive | State::Partial);
    match (orig, resp) {
        (State::SynSent | State::SynAckSent, State::Reset) => "REJ",
        (State::Reset, State::Reset) if conn.payload() == 0 => "REJ",
        (o, State::Reset) if idle(o) => "RSTRH",
        (_, State::Reset) => "RSTR",
        (State::Reset, r) if idle(r) && was_syn_then_reset(conn.history.as_bytes()) => "RSTOS0",
        (State::Reset, r) if idle(r) => "OTH",
        (State::Reset, _) => "RSTO",
        (State::Closed, State::Closed) => "SF",
        (State::Closed, r) if idle(r) => "SH",
        (State::Closed, _) => "S2",
        (o, State::Closed) if idle(o) => "SHR",
        (_, State::Closed) => "S3",
        (State::SynSent, State::Inactive) => "S0",
        (State::Established, State::Established) => "S1",
        _ => "OTH",
    }
}

/// Whether the history is a SYN of the originator, then its RST, without data of the originator in
/// between.
fn was_syn_then_reset(history: &[u8]) -> bool {
    let h = history.strip_prefix(b"^").unwrap_or(history);
    let Some(rest) = h.strip_prefix(b"S") else { return false };
    let until = rest.iter().position(|c| b"HAFGIQ".contains(c)).unwrap_or(rest.len());
    rest[..until].contains(&b'R')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_after_syn() {
        assert!(was_syn_then_reset(b"SR"));
        assert!(was_syn_then_reset(b"^STR"));
        assert!(!was_syn_then_reset(b"SAR"));
        assert!(!was_syn_then_reset(b"R"));
        assert!(was_syn_then_reset(b"SRA"));
    }
}
