//! Which connections belong to the global shard, because they refer to others.
//!
//! Most connections concern only their two hosts, so an analysis can be split by host pairs. Some
//! refer to other pairs: tunnels, connections that announce others, and DHCP, whose clients have no
//! address yet. Together they are owned by the *global shard*.
//!
//! The global shard owns a packet by its ports, because one of its FTP or IRC connections announced
//! the packet's connection, or by the contents of a datagram. Once it owns one packet of a
//! connection, it owns all later ones. Ownership depends on the packet, never on the state of a
//! connection outside of the global shard: that state is in another shard, which may be behind.

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_wire::tunnel;
use gannet_wire::tunnel::Inner;
use gannet_wire::tunnel::port;

/// FTP and IRC.
const TCP_PORTS: [u16; 6] = [21, 2811, 6666, 6667, 6668, 6669];

/// DHCP and tunnels.
const UDP_PORTS: [u16; 10] = [
    67,
    68,
    4011,
    port::GTPV1_C,
    port::GTPV1_U,
    port::TEREDO,
    port::GRE,
    port::VXLAN,
    port::AYIYA,
    port::GENEVE,
];

type Ports = [u64; 1024];

static TCP: Ports = bitmap(&TCP_PORTS);
static UDP: Ports = bitmap(&UDP_PORTS);

const fn bitmap(ports: &[u16]) -> Ports {
    let mut map = [0; 1024];
    let mut i = 0;
    while i < ports.len() {
        map[(ports[i] >> 6) as usize] |= 1 << (ports[i] & 63);
        i += 1;
    }
    map
}

#[inline]
fn has(ports: &Ports, port: u16) -> bool {
    ports[usize::from(port >> 6)] >> (port & 63) & 1 != 0
}

/// Whether one of a connection's ports places it in the global shard.
#[inline]
pub fn is_by_port(proto: Proto, a: u16, b: u16) -> bool {
    match proto {
        Proto::Tcp => has(&TCP, a) || has(&TCP, b),
        Proto::Udp => has(&UDP, a) || has(&UDP, b),
        _ => false,
    }
}

/// Whether the payload of a datagram on any port places it in the global shard: DHCP, or a tunnel
/// that carries a packet.
pub fn is_by_content(payload: &[u8]) -> bool {
    let ip = |inner: &Inner<'_>| matches!(inner, Inner::Ip(data) if data.first().is_some_and(|b| matches!(b >> 4, 4 | 6)));
    is_dhcp(payload)
        // Also without an origin indication: other packets of the connection may have Teredo addresses.
        || tunnel::may_be_teredo(payload) && tunnel::teredo(payload).is_ok()
        || tunnel::looks_like_ayiya(payload) && tunnel::ayiya(payload).is_ok_and(|i| ip(&i))
}

/// Whether [`is_by_content`] may hold for a payload that begins with these bytes. A quick check.
#[inline]
pub fn may_be_by_content(bytes: &[u8]) -> bool {
    tunnel::looks_like_ayiya(bytes) || tunnel::may_be_teredo(bytes) || is_dhcp(bytes)
}

/// Whether a BOOTP message has the DHCP cookie after its fixed part.
fn is_dhcp(payload: &[u8]) -> bool {
    payload.get(236..240) == Some(b"\x63\x82\x53\x63")
}

/// A set of ports, as a bitmap.
#[derive(Clone, Debug)]
pub(crate) struct PortSet(Box<Ports>);

impl Default for PortSet {
    fn default() -> Self {
        Self(Box::new([0; 1024]))
    }
}

impl PortSet {
    #[inline]
    pub(crate) fn has(&self, port: u16) -> bool {
        has(&self.0, port)
    }

    pub(crate) fn add(&mut self, port: u16) {
        self.0[usize::from(port >> 6)] |= 1 << (port & 63);
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// Ports of connections of the global shard: the well-known ones, and those of connections that
/// belong to it for another reason.
#[derive(Clone, Debug)]
pub struct GlobalPorts {
    tcp: PortSet,
    udp: PortSet,
    ends: Ends,
}

impl Default for GlobalPorts {
    fn default() -> Self {
        Self { tcp: PortSet(Box::new(TCP)), udp: PortSet(Box::new(UDP)), ends: Ends::default() }
    }
}

/// A set of hosts with ports, as a bitmap indexed by hash: several may share a bit. Allocates
/// nothing while empty.
#[derive(Clone, Debug, Default)]
struct Ends(Vec<u64>);

/// Size of the bitmap of [`Ends`], as a power of two.
const ENDS_BITS: u32 = 18;

impl Ends {
    /// Word index and mask of the bit of a host's port.
    fn bit(proto: Proto, host: Addr, port: u16) -> (usize, u64) {
        let host = u128::from_be_bytes(host.octets());
        let end = (host >> 64) as u64 ^ host as u64 ^ u64::from(port) << 40;
        let end = end ^ u64::from(proto == Proto::Udp) << 63;
        let bit = end.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENDS_BITS);
        ((bit >> 6) as usize, 1 << (bit & 63))
    }

    fn has(&self, proto: Proto, (host, port): (Addr, u16)) -> bool {
        let (word, bit) = Self::bit(proto, host, port);
        self.0.get(word).is_some_and(|w| w & bit != 0)
    }

    fn add(&mut self, proto: Proto, host: Addr, port: u16) {
        self.0.resize(1 << (ENDS_BITS - 6), 0);
        let (word, bit) = Self::bit(proto, host, port);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }
}

impl GlobalPorts {
    /// Whether a connection between these ends may belong to the global shard, apart from the
    /// contents of datagrams.
    #[inline]
    pub fn may_have(&self, proto: Proto, a: (Addr, u16), b: (Addr, u16)) -> bool {
        self.may_have_ports(proto, a.1, b.1) && self.may_have_ends(proto, a, b)
    }

    /// Like [`may_have`](Self::may_have), by the ports alone, which nearly always decide.
    #[inline]
    pub fn may_have_ports(&self, proto: Proto, a: u16, b: u16) -> bool {
        match proto {
            Proto::Tcp => self.tcp.has(a) || self.tcp.has(b),
            Proto::Udp => self.udp.has(a) || self.udp.has(b),
            _ => false,
        }
    }

    /// Like [`may_have`](Self::may_have), if the ports do not decide. Other hosts than the
    /// announced ones may match, too.
    #[cold]
    fn may_have_ends(&self, proto: Proto, a: (Addr, u16), b: (Addr, u16)) -> bool {
        is_by_port(proto, a.1, b.1) || self.ends.has(proto, a) || self.ends.has(proto, b)
    }

    /// Notes that later connections with this port of this host may belong to the global shard.
    pub fn add(&mut self, proto: Proto, host: Addr, port: u16) {
        let ports = if proto == Proto::Udp { &mut self.udp } else { &mut self.tcp };
        ports.add(port);
        self.ends.add(proto, host, port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ports_may_be_the_global_shards() {
        let mut ports = GlobalPorts::default();
        for port in TCP_PORTS {
            assert!(
                is_by_port(Proto::Tcp, 1024, port) && ports.may_have_ports(Proto::Tcp, port, 1024)
            );
        }
        for port in UDP_PORTS {
            assert!(
                is_by_port(Proto::Udp, port, 1024) && ports.may_have_ports(Proto::Udp, 1024, port)
            );
        }
        assert!(!is_by_port(Proto::Udp, 21, 53) && !ports.may_have_ports(Proto::Udp, 21, 53));
        assert!(!is_by_port(Proto::Icmp, 67, 67));
        let host = |n| Addr::v4([192, 0, 2, n]);
        assert!(ports.may_have(Proto::Tcp, (host(1), 21), (host(2), 1024)));
        assert!(!ports.may_have(Proto::Tcp, (host(1), 50_000), (host(2), 1)));
        ports.add(Proto::Tcp, host(1), 50_000);
        assert!(ports.may_have_ports(Proto::Tcp, 50_000, 1));
        assert!(!ports.may_have_ports(Proto::Udp, 50_000, 1));
        let [server, client, other] = [(host(1), 50_000), (host(2), 1), (host(3), 50_000)];
        for (a, b) in [(server, client), (client, server), (server, other)] {
            assert!(ports.may_have(Proto::Tcp, a, b));
        }
        assert!(!ports.may_have(Proto::Tcp, client, other), "the same port of another host");
        assert!(!ports.may_have(Proto::Udp, server, client));
    }

    #[test]
    fn content_counts_where_a_packet_is_inside() {
        let mut dhcp = vec![0; 240];
        assert!(!is_by_content(&dhcp));
        dhcp[236..].copy_from_slice(b"\x63\x82\x53\x63");
        assert!(is_by_content(&dhcp) && may_be_by_content(&dhcp));
        // A router solicitation without Teredo addresses, after an authentication header (RFC 4380 §5.1.1), on any port.
        let mut ipv6 = vec![0x60, 0, 0, 0, 0, 8, 58, 255, 0xfe, 0x80, 0, 0, 0, 0, 0, 0];
        ipv6.extend([1; 24]);
        ipv6.extend([133, 0, 0, 0, 0, 0, 0, 0]);
        let teredo = [&[0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0], &ipv6[..]].concat();
        assert!(is_by_content(&teredo) && may_be_by_content(&teredo));
        assert!(!is_by_content(&teredo[..teredo.len() - 1]), "shorter than its length says");
        assert!(!may_be_by_content(&ipv6), "a DNS message may look like this");
        let mut ayiya = vec![0x41, 0x52, 0x11, 41, 0, 0, 0, 0];
        ayiya.extend([0; 16 + 20]);
        assert!(!is_by_content(&ayiya), "empty");
        ayiya.push(0x60);
        assert!(is_by_content(&ayiya) && may_be_by_content(&ayiya));
        ayiya[3] = 59;
        assert!(!is_by_content(&ayiya), "no packet");
    }
}
