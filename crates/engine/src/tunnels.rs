//! Tunnels: what carries what.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_protocols::tunnel::Tunnel;

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

/// A pair of hosts without IP tunnel traffic gets a new uid after this.
const IP_TUNNEL_TIMEOUT: Interval = Interval::from_secs(24 * 3600);
/// Pairs of hosts with IP tunnels that are remembered.
const MAX_IP_TUNNELS: usize = 100_000;

/// IP-in-IP and GRE tunnels by their two hosts.
#[derive(Default)]
pub(crate) struct IpTunnels {
    known: HashMap<(Addr, Addr), (Tunnel, Time), FixedState>,
}

impl IpTunnels {
    /// The tunnel between two hosts without a connection of its own; `uid` names it if it is new.
    pub(crate) fn between(
        &mut self,
        now: Time,
        src: Addr,
        dst: Addr,
        kind: &'static str,
        uid: impl FnOnce() -> Uid,
    ) -> Tunnel {
        if self.known.len() >= MAX_IP_TUNNELS {
            self.known.retain(|_, (_, used)| *used + IP_TUNNEL_TIMEOUT > now);
            if self.known.len() >= MAX_IP_TUNNELS {
                self.known.clear();
            }
        }
        let id = ConnId { orig_h: src, orig_p: 0, resp_h: dst, resp_p: 0 };
        let fresh = |uid| (Tunnel { uid: Some(uid), id, kind }, now);
        let entry = self.known.entry((src.min(dst), src.max(dst)));
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
