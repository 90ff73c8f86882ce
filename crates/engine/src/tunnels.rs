//! Tunnels and encapsulations.

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_event::TunnelState;
use gannet_protocols::tunnel::Tunnel;

/// The encapsulation of a packet: its tunnels, outermost first.
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

    /// Whether the depth is `max`, or the maximum that can be stored.
    pub(crate) fn is_full(&self, max: u64) -> bool {
        self.depth >= MAX || self.depth as u64 >= max
    }

    /// Adds an innermost tunnel, up to the maximum depth.
    pub(crate) fn with(mut self, tunnel: Tunnel) -> Self {
        if let Some(slot) = self.tunnels.get_mut(self.depth) {
            *slot = Some(tunnel);
            self.depth += 1;
        }
        self
    }

    pub(crate) fn last(&self) -> Option<&Tunnel> {
        self.tunnels[..self.depth].last()?.as_ref()
    }

    /// The tunnels in the form of events.
    pub(crate) fn states(&self) -> Vec<TunnelState> {
        let state = |tunnel: &Tunnel| {
            let &Tunnel { uid, id, ip_proto, kind } = tunnel;
            TunnelState { uid, id, proto: tunnel.proto(), ip_proto, kind }
        };
        self.iter().map(state).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tunnel> {
        self.tunnels.iter().flatten()
    }
}

/// A host pair without IP tunnel traffic for this long gets a new uid.
const IP_TUNNEL_TIMEOUT: Interval = Interval::from_secs(24 * 3600);
/// Maximum number of remembered host pairs with IP tunnels.
const MAX_IP_TUNNELS: usize = 100_000;

/// IP-in-IP and GRE tunnels by host pair.
pub(crate) struct IpTunnels {
    known: HashMap<(Addr, Addr), (Tunnel, Time), KeyedHash>,
    timeout: Interval,
    /// Whether tunnels were dropped before their timeout, and this is not reported yet.
    has_overflowed: bool,
}

impl Default for IpTunnels {
    fn default() -> Self {
        Self { known: HashMap::default(), timeout: IP_TUNNEL_TIMEOUT, has_overflowed: false }
    }
}

impl IpTunnels {
    /// Sets the timeout after which a host pair without IP tunnel traffic gets a new uid.
    pub(crate) fn set_timeout(&mut self, timeout: Interval) {
        self.timeout = timeout;
    }

    /// The tunnel between two hosts without a connection of its own, by IP protocol and kind; a new
    /// one gets the uid `uid`.
    pub(crate) fn between(
        &mut self,
        now: Time,
        src: Addr,
        dst: Addr,
        (ip_proto, kind): (u8, &'static str),
        uid: impl FnOnce() -> Uid,
    ) -> Tunnel {
        if self.known.len() >= MAX_IP_TUNNELS {
            let timeout = self.timeout;
            self.known.retain(|_, (_, used)| now - *used < timeout);
            // If few tunnels expired, the next scan of all tunnels would follow soon.
            if self.known.len() > MAX_IP_TUNNELS / 8 * 7 {
                self.known.clear();
                self.has_overflowed = true;
            }
        }
        let id = ConnId { orig_h: src, orig_p: 0, resp_h: dst, resp_p: 0 };
        let fresh = |uid| (Tunnel { uid: Some(uid), id, ip_proto, kind }, now);
        let entry = self.known.entry((src.min(dst), src.max(dst)));
        let (tunnel, used) = match entry {
            std::collections::hash_map::Entry::Occupied(e) => {
                let e = e.into_mut();
                if now - e.1 >= self.timeout {
                    *e = fresh(uid());
                }
                e
            }
            std::collections::hash_map::Entry::Vacant(e) => e.insert(fresh(uid())),
        };
        *used = now;
        *tunnel
    }

    /// Returns whether tunnels were dropped since the last call because of the limit of host pairs.
    /// They get new uids with their next packet.
    pub(crate) fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.has_overflowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::UidSource;

    fn addr(n: u32) -> Addr {
        Addr::v4(n.to_be_bytes())
    }

    #[test]
    fn a_pair_of_hosts_keeps_its_uid_for_a_day_of_silence() {
        let mut tunnels = IpTunnels::default();
        let mut at = |now: i64, src, dst| {
            let uid = || UidSource::new(0).connection(now as u64, 0);
            tunnels.between(Time::from_secs(now), addr(src), addr(dst), (41, "Tunnel::IP"), uid)
        };
        let first = at(0, 1, 2);
        assert_eq!(at(80_000, 2, 1), first, "either way");
        assert_eq!(at(160_000, 1, 2), first, "a day since it was last used");
        assert_ne!(at(160_000, 1, 3), first);
        let next = at(160_000 + 86_400, 2, 1);
        assert_ne!(next.uid, first.uid);
        assert_eq!((next.id.orig_h, next.id.resp_h), (addr(2), addr(1)));
    }

    #[test]
    fn pairs_of_hosts_are_bounded() {
        let mut tunnels = IpTunnels::default();
        let uids = UidSource::new(0);
        for n in 0..MAX_IP_TUNNELS as u32 + 10 {
            let uid = || uids.connection(u64::from(n), 0);
            tunnels.between(Time::from_secs(1), addr(n), addr(0), (41, "Tunnel::IP"), uid);
            assert!(tunnels.known.len() <= MAX_IP_TUNNELS);
        }
        assert_eq!(tunnels.known.len(), 10);
        assert_eq!((tunnels.take_overflow(), tunnels.take_overflow()), (true, false));
    }

    #[test]
    fn the_timeout_of_host_pairs_can_be_set() {
        let uids = UidSource::new(0);
        for (timeout, is_same) in [(Interval::from_secs(5), false), (Interval::from_secs(6), true)]
        {
            let mut tunnels = IpTunnels::default();
            tunnels.set_timeout(timeout);
            let mut at = |now| {
                let uid = || uids.connection(now as u64, 0);
                tunnels.between(Time::from_secs(now), addr(1), addr(0), (41, "Tunnel::IP"), uid).uid
            };
            assert_eq!(at(1) == at(6), is_same);
        }
    }

    /// Checks that one expiring pair at a time does not make every new pair scan all others.
    #[test]
    fn expired_host_pairs_are_removed_in_bulk() {
        let mut tunnels = IpTunnels::default();
        let uids = UidSource::new(0);
        let max = MAX_IP_TUNNELS as u32;
        let mut at = |n: u32, nanos: i64| {
            let uid = || uids.connection(u64::from(n), 0);
            tunnels.between(Time::from_nanos(nanos), addr(n), addr(0), (41, "Tunnel::IP"), uid);
            tunnels.known.len()
        };
        let step = IP_TUNNEL_TIMEOUT.as_nanos() / i64::from(max);
        let full = (0..max).map(|n| at(n, i64::from(n) * step)).last();
        assert_eq!(full, Some(MAX_IP_TUNNELS));
        assert_eq!(at(max, i64::from(max) * step), 1);
        // Many pairs expire, and the others are kept.
        let half = i64::from(max) + i64::from(max) / 2;
        for n in 1..max {
            at(max + n, i64::from(max + n) * step);
        }
        assert_eq!(at(2 * max, half * step + IP_TUNNEL_TIMEOUT.as_nanos()), MAX_IP_TUNNELS / 2);
    }

    #[test]
    fn tunnels_beyond_the_maximum_are_left_out() {
        let id = ConnId { orig_h: addr(1), orig_p: 0, resp_h: addr(2), resp_p: 0 };
        let tunnel = |kind| Tunnel { uid: None, id, ip_proto: 4, kind };
        let mut encapsulation = Encapsulation::default();
        assert!(encapsulation.last().is_none());
        for kind in ["1", "2", "3", "4", "5"] {
            assert_eq!(encapsulation.is_full(9), kind == "5");
            assert_eq!(encapsulation.is_full(2), !matches!(kind, "1" | "2"));
            encapsulation = encapsulation.with(tunnel(kind));
        }
        let kinds: Vec<_> = encapsulation.iter().map(|t| t.kind).collect();
        assert_eq!(kinds, ["1", "2", "3", "4"]);
        assert_eq!((encapsulation.depth(), encapsulation.last().map(|t| t.kind)), (4, Some("4")));
    }
}
