//! Tunnels: what carries what, and tunnel.log.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;
use gannet_log::Logs;

gannet_log::row! {
    /// One row a tunnel found, and one when it ends.
    pub(crate) struct TunnelRow = "tunnel" {
        /// When.
        ts: Time = "ts",
        /// The connection that is the tunnel.
        uid: Option<Uid> = "uid",
        /// Its ends.
        id: ConnId = "id",
        /// Kind of tunnel.
        tunnel_type: Enum = "tunnel_type",
        /// Found, closed or forgotten.
        action: Enum = "action",
    }
}

/// One tunnel around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tunnel {
    pub(crate) uid: Uid,
    pub(crate) id: ConnId,
    pub(crate) kind: &'static str,
}

/// The tunnels around a packet, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encapsulation {
    depth: usize,
    tunnels: [Option<Tunnel>; MAX],
}

const MAX: usize = gannet_wire::MAX_TUNNEL_DEPTH as usize;

impl Encapsulation {
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn is_full(&self) -> bool {
        self.depth >= MAX
    }

    /// One more tunnel around what follows; not more than fit.
    pub(crate) fn with(mut self, tunnel: Tunnel) -> Self {
        if let Some(place) = self.tunnels.get_mut(self.depth) {
            *place = Some(tunnel);
            self.depth += 1;
        }
        self
    }

    pub(crate) fn last(&self) -> Option<&Tunnel> {
        self.tunnels[..self.depth].last()?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tunnel> {
        self.tunnels.iter().flatten()
    }
}

/// A tunnel without new connections inside is forgotten after this.
const EXPIRE: Interval = Interval::from_secs(3600);
/// A pair of hosts without IP tunnel traffic gets a new uid after this.
const IP_TUNNEL_TIMEOUT: Interval = Interval::from_secs(24 * 3600);
/// How often tables are looked through for what expired.
const SWEEP: Interval = Interval::from_secs(10);
/// Pairs of hosts with IP tunnels that are remembered.
const MAX_IP_TUNNELS: usize = 100_000;

/// All tunnels of a shard.
#[derive(Default)]
pub(crate) struct Tunnels {
    active: HashMap<ConnId, Active, FixedState>,
    /// IP-in-IP and GRE tunnels by their two hosts.
    ip: HashMap<(Addr, Addr), (Tunnel, Time), FixedState>,
    next_sweep: Option<Time>,
}

struct Active {
    tunnel: Tunnel,
    used: Time,
    number: u64,
}

impl Tunnels {
    /// A connection was seen inside of tunnels: those not known yet are logged.
    pub(crate) fn register(&mut self, logs: &mut Logs, now: Time, around: &Encapsulation) {
        let n = self.active.len() as u64;
        for tunnel in around.iter() {
            let known = self.active.get_mut(&tunnel.id);
            if let Some(active) = known {
                active.used = now;
                continue;
            }
            self.active.insert(tunnel.id, Active { tunnel: *tunnel, used: now, number: n });
            self.next_sweep.get_or_insert(now + SWEEP);
            log(logs, now, tunnel, "Tunnel::DISCOVER");
        }
    }

    /// A connection ended: if it was a tunnel, that is logged.
    pub(crate) fn close(&mut self, logs: &mut Logs, now: Time, id: &ConnId, uid: Uid) {
        if self.active.is_empty() {
            return;
        }
        if self.active.get(id).is_some_and(|a| a.tunnel.uid == uid)
            && let Some(active) = self.active.remove(id)
        {
            log(logs, now, &active.tunnel, "Tunnel::CLOSE");
        }
    }

    /// Forgets tunnels that nothing new came through.
    pub(crate) fn expire(&mut self, logs: &mut Logs, now: Time) {
        let Some(due) = self.next_sweep else { return };
        if now < due {
            return;
        }
        let old = self.active.iter().filter(|(_, a)| a.used + EXPIRE <= now);
        let mut old: Vec<_> = old.map(|(id, a)| (a.number, *id)).collect();
        old.sort_unstable();
        for (_, id) in old {
            if let Some(active) = self.active.remove(&id) {
                log(logs, now, &active.tunnel, "Tunnel::EXPIRE");
            }
        }
        self.next_sweep = (!self.active.is_empty()).then_some(now + SWEEP);
    }

    /// The tunnel between two hosts without a connection of its own; `uid` names it if it is new.
    pub(crate) fn between(
        &mut self,
        now: Time,
        src: Addr,
        dst: Addr,
        kind: &'static str,
        uid: impl FnOnce() -> Uid,
    ) -> Tunnel {
        if self.ip.len() >= MAX_IP_TUNNELS {
            self.ip.retain(|_, (_, used)| *used + IP_TUNNEL_TIMEOUT > now);
            if self.ip.len() >= MAX_IP_TUNNELS {
                self.ip.clear();
            }
        }
        let id = ConnId { orig_h: src, orig_p: 0, resp_h: dst, resp_p: 0 };
        let fresh = |uid| (Tunnel { uid, id, kind }, now);
        let entry = self.ip.entry((src.min(dst), src.max(dst)));
        let (tunnel, used) = match entry {
            std::collections::hash_map::Entry::Occupied(e) => {
                let e = e.into_mut();
                if e.1 + IP_TUNNEL_TIMEOUT <= now {
                    *e = fresh(uid());
                }
                e
            }
            std::collections::hash_map::Entry::Vacant(e) => e.insert(fresh(uid())),
        };
        *used = now;
        *tunnel
    }
}

/// Writes a row.
pub(crate) fn log(logs: &mut Logs, now: Time, tunnel: &Tunnel, action: &'static str) {
    logs.write(&TunnelRow {
        ts: now,
        uid: Some(tunnel.uid),
        id: tunnel.id,
        tunnel_type: Enum(tunnel.kind),
        action: Enum(action),
    });
}
