//! tunnel.log, and the known tunnels.
//!
//! The packet decoder [registers](Tunnels::register) a tunnel when a connection begins within it,
//! and an analyzer does when its protocol requests a proxy to relay a stream.

pub mod events;
pub mod gtpv1;
pub mod teredo;

use std::collections::HashMap;

use self::events::TunnelType;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_event::Id4;
use gannet_event::Sinks;
use gannet_flow::Conn;
use gannet_log::Enum;
use gannet_log::Key;

use self::events::EncapsulatingConn;
use self::events::TunnelChanged;
use crate::Tag;
use crate::conn_state::mention;
use crate::conn_state::raise;
use crate::deferred::Queue;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Kind;
use crate::descriptor::Log;
use crate::descriptor::Ports;
use crate::packet::events::WatchedConnection;
use crate::stack::events::AnalyzerConfirmationInfo;
use crate::stack::events::AnalyzerViolationInfo;
use crate::stack::events::ConfirmationInfo;
use crate::stack::events::ViolationInfo;

/// Declares the tunnel analyzers.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            servers: Some(Ports::udp(&[5072])),
            kind: Kind::Tunnel,
            ..Entry::new(Tag::Ayiya, "AYIYA", "ayiya")
        },
        Entry {
            servers: Some(Ports::udp(&[6081])),
            kind: Kind::Tunnel,
            ..Entry::new(Tag::Geneve, "GENEVE", "geneve")
        },
        Entry {
            servers: Some(Ports::udp(&[2123, 2152])),
            kind: Kind::Tunnel,
            ..Entry::new(Tag::Gtpv1, "GTPV1", "gtpv1")
        },
        Entry {
            servers: Some(Ports::udp(&[3544])),
            kind: Kind::Tunnel,
            ..Entry::new(Tag::Teredo, "TEREDO", "teredo")
        },
        Entry {
            servers: Some(Ports::udp(&[4789])),
            kind: Kind::Tunnel,
            ..Entry::new(Tag::Vxlan, "VXLAN", "vxlan")
        },
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<TunnelRow>().stream("Tunnel::LOG")],
};

gannet_log::row! {
    /// One row for each tunnel found, and one when it ends.
    pub struct TunnelRow = "tunnel" {
        /// Time of the row.
        ts: Time = "ts",
        /// The connection that is the tunnel; unset if it consists of several (proxies).
        uid: Option<Uid> = "uid",
        /// Originator and responder of the tunnel.
        id: ConnId = "id",
        /// Kind of tunnel.
        tunnel_type: Enum = "tunnel_type",
        /// Whether it was discovered, closed or expired.
        action: Enum = "action",
    }
}

/// A tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The connection that is the tunnel; `None` if it is not a single connection.
    pub uid: Option<Uid>,
    /// Originator and responder of the tunnel.
    pub id: ConnId,
    /// IP protocol of the packets that carry it.
    pub ip_proto: u8,
    /// Its kind as the log spells it: `Tunnel::SOCKS`.
    pub kind: &'static str,
}

/// A tunnel without new inner connections expires after this time.
const EXPIRE: Interval = Interval::from_secs(3600);
/// Interval, by the times of packets, at which the table is checked for expired tunnels.
const SWEEP: Interval = Interval::from_secs(10);
/// Maximum number of tunnels in the table; further ones are logged whenever they are seen.
const MAX: usize = 100_000;

/// The tunnels of a shard.
#[derive(Default)]
pub struct Tunnels {
    active: HashMap<ConnId, Active, KeyedHash>,
    registered: u64,
    next_sweep: Time,
    /// Time of the first check for expired tunnels.
    first: Option<Time>,
    deferred: Queue<Item>,
}

/// A tunnel that a shard saw, for [`Tunnels::decide`].
#[derive(Clone, Debug)]
pub struct Item {
    now: Time,
    action: Seen,
}

#[derive(Clone, Debug)]
enum Seen {
    Used(Tunnel),
    Closed(ConnId, Uid),
    Check,
}

struct Active {
    tunnel: Tunnel,
    /// Time of last use, in whole seconds since the first check: the resolution of the age.
    used: Time,
    number: u64,
}

impl Tunnels {
    /// Registers that a new connection goes through a tunnel: the tunnel is logged if it is not
    /// known yet. Returns whether it is certainly unknown.
    pub fn register(&mut self, logs: &mut Sinks, now: Time, tunnel: Tunnel) -> bool {
        if logs.key().is_some() {
            logs.events.record_end();
            self.deferred.push(logs, Item { now, action: Seen::Used(tunnel) });
            return false;
        }
        let first = self.first.unwrap_or(now);
        let used = first + Interval::from_secs((now - first).as_nanos() / 1_000_000_000);
        if let Some(active) = self.active.get_mut(&tunnel.id) {
            active.used = used;
            return false;
        }
        if self.active.len() < MAX {
            let number = self.registered;
            self.registered += 1;
            self.active.insert(tunnel.id, Active { tunnel, used, number });
        }
        log(logs, now, &tunnel, "Tunnel::DISCOVER");
        // A handler of the inner connection's event looks up the outer connection. The handlers of
        // scripts do it themselves.
        if !logs.events.wants::<WatchedConnection>()
            && let Some(outer) = tunnel.uid.and_then(|uid| logs.events.known_connection(uid))
        {
            logs.events.show_end_after(outer);
        }
        true
    }

    /// Logs the end of a tunnel, if the connection that ended was one. `now` is the time of the
    /// packet that ended it, or of the next packet if the connection timed out.
    pub fn close(&mut self, logs: &mut Sinks, now: Time, id: &ConnId, uid: Uid) {
        if logs.key().is_some() {
            return self.deferred.push(logs, Item { now, action: Seen::Closed(*id, uid) });
        }
        if self.active.get(id).is_some_and(|a| a.tunnel.uid == Some(uid))
            && let Some(active) = self.active.remove(id)
        {
            log(logs, now, &active.tunnel, "Tunnel::CLOSE");
        }
    }

    /// Removes tunnels without new inner connections.
    ///
    /// A check is due by the timers' time `now` and compares with the time of the next `packet`:
    /// after a long silence a tunnel expires before its own connection times out. Returns whether
    /// a check was made.
    #[inline]
    pub fn expire(&mut self, logs: &mut Sinks, now: Time, packet: Time) -> bool {
        let due = now >= self.next_sweep;
        if due {
            self.sweep(logs, packet);
        }
        due
    }

    /// Time at which [`expire`](Self::expire) next has work.
    pub(crate) fn next_due(&self) -> Time {
        self.next_sweep
    }

    /// Disables the check: another shard decides when tunnels expire.
    pub(crate) fn never_expire(&mut self) {
        self.next_sweep = Time::MAX;
    }

    /// The items that a shard deferred, in order.
    pub(crate) fn deferred(&mut self) -> &mut Queue<Item> {
        &mut self.deferred
    }

    /// Applies an item that a shard deferred. Returns the time if the item is a check for expired
    /// tunnels.
    pub fn decide(&mut self, logs: &mut Sinks, item: &Item) -> Option<Time> {
        match &item.action {
            Seen::Used(tunnel) => {
                self.register(logs, item.now, *tunnel);
            }
            Seen::Closed(id, uid) => self.close(logs, item.now, id, *uid),
            Seen::Check => {
                self.sweep(logs, item.now);
                return Some(item.now);
            }
        }
        None
    }

    #[cold]
    fn sweep(&mut self, logs: &mut Sinks, packet: Time) {
        self.first.get_or_insert(packet);
        let due = std::mem::replace(&mut self.next_sweep, packet + SWEEP);
        if let Some(key) = logs.key() {
            logs.set_key(Key { due, tie: 0, ..key });
            return self.deferred.push(logs, Item { now: packet, action: Seen::Check });
        }
        let old = self.active.iter().filter(|(_, a)| a.used + EXPIRE < packet);
        let mut old: Vec<_> = old.map(|(id, a)| (a.number, *id)).collect();
        old.sort_unstable();
        for (_, id) in old {
            if let Some(active) = self.active.remove(&id) {
                log(logs, packet, &active.tunnel, "Tunnel::EXPIRE");
            }
        }
    }
}

impl Tunnel {
    /// Transport of the connection that is the tunnel; unknown for tunnels between hosts.
    #[must_use]
    pub fn proto(&self) -> Proto {
        match self.ip_proto {
            6 => Proto::Tcp,
            17 => Proto::Udp,
            _ => Proto::Unknown,
        }
    }

    /// The record that events carry.
    fn record(&self) -> EncapsulatingConn {
        let cid = Id4(self.id, self.proto(), self.ip_proto);
        EncapsulatingConn { cid, tunnel_type: TunnelType(self.kind), uid: self.uid }
    }
}

/// Raises the event of a connection whose enclosing tunnels changed; the outermost is first.
pub fn raise_changed<'a>(
    sinks: &mut Sinks,
    conn: &Conn,
    tunnels: impl Iterator<Item = &'a Tunnel>,
) {
    if sinks.events.wants::<TunnelChanged>() {
        let e = tunnels.map(Tunnel::record).collect();
        raise(sinks, conn, |c| TunnelChanged { c, e });
    }
}

/// Raises the event of a connection that is confirmed as a tunnel.
pub fn raise_confirmation(sinks: &mut Sinks, conn: &Conn, tag: Tag) {
    if sinks.events.wants::<AnalyzerConfirmationInfo>() {
        let c = mention(sinks, conn);
        let info = ConfirmationInfo { c: Some(c), f: None, aid: None };
        sinks.events.raise(&AnalyzerConfirmationInfo { atype: tag, info });
        sinks.events.then_service(c, tag.script_service(), true);
    }
}

/// Raises the event of a connection that violates its tunnel protocol.
pub fn raise_violation(sinks: &mut Sinks, conn: &Conn, tag: Tag, reason: &str, data: &[u8]) {
    if sinks.events.wants::<AnalyzerViolationInfo<'_>>() {
        let c = mention(sinks, conn);
        let (reason, data) = (reason.as_bytes(), (!data.is_empty()).then_some(data));
        let info = ViolationInfo { reason, c: Some(c), f: None, aid: None, data };
        sinks.events.raise(&AnalyzerViolationInfo { atype: tag, info });
    }
}

fn log(logs: &mut Sinks, now: Time, tunnel: &Tunnel, action: &'static str) {
    logs.write(&TunnelRow {
        ts: now,
        uid: tunnel.uid,
        id: tunnel.id,
        tunnel_type: Enum(tunnel.kind),
        action: Enum(action),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn found_once_and_forgotten_when_idle() {
        let mut h = Harness::new(Proto::Tcp, 1080);
        h.cx().register_tunnel("Tunnel::SOCKS");
        h.conn.id.orig_p += 1;
        h.cx().register_tunnel("Tunnel::SOCKS");
        let rows = h.rows("tunnel");
        assert_eq!(rows.len(), 1);
        assert_eq!((&*rows[0]["uid"], &*rows[0]["id.orig_p"]), ("-", "0"));
        assert_eq!(rows[0]["tunnel_type"], "Tunnel::SOCKS");
        let at = Time::from_secs;
        h.env.expire(at(3590), at(3601));
        assert_eq!(h.rows("tunnel").len(), 1);
        // The next check is due ten seconds after that packet, and compares with the time of the
        // next packet.
        h.env.expire(at(3610), at(9000));
        assert_eq!(h.rows("tunnel").len(), 1);
        h.env.expire(at(3611), at(9000));
        let row = &h.rows("tunnel")[1];
        assert_eq!((&*row["ts"], &*row["action"]), ("9000.000000", "Tunnel::EXPIRE"));
    }

    #[test]
    fn age_is_taken_in_whole_seconds() {
        let mut h = Harness::new(Proto::Tcp, 1080);
        let at = Time::from_secs_f64;
        h.env.expire(at(1.0), at(1.0));
        h.now = at(11.9);
        h.cx().register_tunnel("Tunnel::SOCKS");
        // Used in the eleventh second, which is more than an hour ago.
        h.env.expire(at(3611.5), at(3611.5));
        assert_eq!(h.rows("tunnel").len(), 2);
    }

    #[test]
    fn closed_with_its_connection() {
        let mut h = Harness::new(Proto::Udp, 3544);
        let tunnel =
            Tunnel { uid: Some(h.conn.uid), id: h.conn.id, ip_proto: 17, kind: "Tunnel::TEREDO" };
        let env = &mut h.env;
        env.tunnels.register(&mut env.logs, h.now, tunnel);
        let other = gannet_base::UidSource::new(7).connection(9, 9);
        env.tunnels.close(&mut env.logs, h.now, &h.conn.id, other);
        env.tunnels.close(&mut env.logs, h.now, &h.conn.id, h.conn.uid);
        let actions: Vec<_> = h.rows("tunnel").iter().map(|r| r["action"].clone()).collect();
        assert_eq!(actions, ["Tunnel::DISCOVER", "Tunnel::CLOSE"]);
    }
}
