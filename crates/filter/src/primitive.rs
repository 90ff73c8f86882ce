//! The primitives of an expression, field by field as pcap-filter(7) has them.

use gannet_base::Addr;
use gannet_wire::protocol;

use crate::packet::Layer;
use crate::packet::Packet;

mod v4 {
    pub(super) const FRAGMENT: usize = 6;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const SRC: usize = 12;
    pub(super) const DST: usize = 16;
    pub(super) const OFFSET_MASK: u16 = 0x1fff;
}

mod v6 {
    pub(super) const NEXT: usize = 6;
    pub(super) const SRC: usize = 8;
    pub(super) const DST: usize = 24;
    /// Bytes of the fixed header.
    pub(super) const LEN: usize = 40;
}

/// ARP for IPv4 over six-byte hardware addresses.
mod arp {
    pub(super) const OPERATION: usize = 6;
    pub(super) const SENDER: usize = 14;
    pub(super) const TARGET: usize = 24;
    /// Operations of RARP, which shares the format.
    pub(super) const REVERSE: std::ops::RangeInclusive<u16> = 3..=4;
}

/// Stream control transmission, which has ports like the other two.
const SCTP: u8 = 132;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Src,
    Dst,
    Either,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Primitive {
    Transport(Transport),
    Icmp,
    Icmp6,
    Ip,
    Ip6,
    Arp,
    Net { direction: Direction, net: Network },
    Ports { transport: Option<Transport>, direction: Direction, from: u16, to: u16 },
}

/// An address prefix that knows its own kind, so that an IPv4 one holds no IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    addr: Addr,
    mask: u128,
}

impl Network {
    /// `len` is at most 32 for IPv4 and 128 for IPv6.
    pub(crate) fn new(addr: Addr, len: u8) -> Self {
        let len = u32::from(len) + if addr.is_v4() { 96 } else { 0 };
        Self { addr, mask: u128::MAX.checked_shl(128 - len).unwrap_or(0) }
    }

    pub(crate) fn has_host_bits(&self) -> bool {
        bits(self.addr) & !self.mask != 0
    }

    fn holds(&self, addr: Addr) -> bool {
        (bits(addr) ^ bits(self.addr)) & self.mask == 0
    }
}

fn bits(addr: Addr) -> u128 {
    u128::from_be_bytes(addr.octets())
}

impl Direction {
    /// Tests the first field, the second, or one after the other.
    fn any<T>(
        self,
        src: impl FnOnce() -> Option<T>,
        dst: impl FnOnce() -> Option<T>,
        holds: impl Fn(T) -> bool,
    ) -> Option<bool> {
        if self != Self::Dst {
            let found = holds(src()?);
            if found || self == Self::Src {
                return Some(found);
            }
        }
        dst().map(holds)
    }
}

impl Primitive {
    /// `None` if the answer needs bytes that were not captured.
    pub(crate) fn holds(&self, packet: &Packet<'_>) -> Option<bool> {
        let layer = packet.layer;
        match *self {
            Self::Ip => Some(layer == Layer::V4),
            Self::Ip6 => Some(layer == Layer::V6),
            Self::Arp if layer == Layer::Arp => {
                Some(!arp::REVERSE.contains(&packet.half(arp::OPERATION)?))
            }
            Self::Arp => Some(false),
            Self::Transport(Transport::Tcp) => is(packet, protocol::TCP),
            Self::Transport(Transport::Udp) => is(packet, protocol::UDP),
            Self::Icmp if layer == Layer::V4 => is(packet, protocol::ICMP),
            Self::Icmp6 if layer == Layer::V6 => is(packet, protocol::ICMP6),
            Self::Icmp | Self::Icmp6 => Some(false),
            Self::Net { direction, net } => in_net(packet, direction, net),
            Self::Ports { transport, direction, from, to } => {
                let Some(at) = ports_at(packet, transport)? else { return Some(false) };
                let hit = |port| (from..=to).contains(&port);
                direction.any(|| packet.half(at), || packet.half(at + 2), hit)
            }
        }
    }
}

/// Whether the packet is of an IP protocol, for IPv6 also behind a fragment header.
fn is(packet: &Packet<'_>, protocol: u8) -> Option<bool> {
    match packet.layer {
        Layer::V4 => Some(packet.byte(v4::PROTOCOL)? == protocol),
        Layer::V6 => {
            let next = packet.byte(v6::NEXT)?;
            if next != protocol::IPV6_FRAGMENT {
                return Some(next == protocol);
            }
            Some(packet.byte(v6::LEN)? == protocol)
        }
        Layer::Arp | Layer::Other => Some(false),
    }
}

fn in_net(packet: &Packet<'_>, direction: Direction, net: Network) -> Option<bool> {
    let (src, dst) = match packet.layer {
        Layer::V4 => (v4::SRC, v4::DST),
        Layer::Arp => (arp::SENDER, arp::TARGET),
        Layer::V6 if !net.addr.is_v4() => {
            let addr = |at| packet.bytes(at).map(Addr::v6);
            return direction.any(|| addr(v6::SRC), || addr(v6::DST), |a| net.holds(a));
        }
        Layer::V6 | Layer::Other => return Some(false),
    };
    if !net.addr.is_v4() {
        return Some(false);
    }
    let addr = |at| packet.bytes(at).map(Addr::v4);
    direction.any(|| addr(src), || addr(dst), |a| net.holds(a))
}

/// Where the ports are: nowhere in protocols without, and in all but the first fragment.
fn ports_at(packet: &Packet<'_>, transport: Option<Transport>) -> Option<Option<usize>> {
    let of = |protocol: u8| match transport {
        Some(Transport::Tcp) => protocol == protocol::TCP,
        Some(Transport::Udp) => protocol == protocol::UDP,
        None => matches!(protocol, protocol::TCP | protocol::UDP | SCTP),
    };
    match packet.layer {
        Layer::V4 => {
            if !of(packet.byte(v4::PROTOCOL)?) || packet.half(v4::FRAGMENT)? & v4::OFFSET_MASK != 0
            {
                return Some(None);
            }
            Some(Some(usize::from(packet.byte(0)? & 0x0f) * 4))
        }
        Layer::V6 => Some(of(packet.byte(v6::NEXT)?).then_some(v6::LEN)),
        Layer::Arp | Layer::Other => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_own_kind() {
        let net = |a: &str, len| Network::new(a.parse().unwrap(), len);
        assert!(net("10.0.0.0", 8).holds(Addr::v4([10, 1, 2, 3])));
        assert!(!net("10.0.0.0", 8).holds(Addr::v4([11, 1, 2, 3])));
        assert!(net("0.0.0.0", 0).holds(Addr::v4([11, 1, 2, 3])));
        assert!(!net("0.0.0.0", 0).holds(Addr::v6([1; 16])));
        assert!(net("::", 0).holds(Addr::v6([1; 16])));
        assert!(net("10.0.0.1", 8).has_host_bits());
        assert!(!net("10.0.0.1", 32).has_host_bits());
    }

    #[test]
    fn rarp_is_not_arp() {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(&[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
        frame.resize(42, 0);
        let packet = Packet::new(1, &frame);
        assert_eq!((packet.layer, Primitive::Arp.holds(&packet)), (Layer::Arp, Some(false)));
    }
}
