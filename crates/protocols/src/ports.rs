//! The ports of all protocols.

use gannet_base::Proto;

use crate::Tag;
use crate::descriptor::Ports;
use crate::descriptor::entries;

/// GRE in UDP (RFC 8086): the only one of Zeek's `likely_server_ports` that no protocol of the
/// list has.
const OTHER: Ports = Ports::udp(&[4754]);

/// Whether a port is likely to be that of a server of a known protocol: it determines the
/// responder if the first packet does not.
#[inline]
pub(crate) fn is_likely_server_port(proto: Proto, port: u16) -> bool {
    let map = match proto {
        Proto::Tcp => &TCP_LIKELY,
        Proto::Udp => &UDP_LIKELY,
        _ => return false,
    };
    has(map, port)
}

/// Protocols that are started immediately on a responder's port, in the order of their names, as
/// in Zeek.
#[inline]
pub(crate) fn by_port(proto: Proto, port: u16) -> &'static [Tag] {
    if !is_known_port(proto, port) {
        return &[];
    }
    match proto {
        Proto::Tcp => TCP_TAGS.of(port),
        _ => UDP_TAGS.of(port),
    }
}

/// The protocols of each port.
struct PortTags<const N: usize> {
    /// Ports in order, repeated for each of their protocols.
    ports: [u16; N],
    /// The protocol of each element of `ports`.
    tags: [Tag; N],
    /// Index of the first port of each word of a [`PortMap`].
    starts: [u8; 1024],
}

static TCP_TAGS: PortTags<{ count(Proto::Tcp) }> = PortTags::new(Proto::Tcp);
static UDP_TAGS: PortTags<{ count(Proto::Udp) }> = PortTags::new(Proto::Udp);

/// Number of pairs of a port and a protocol.
const fn count(proto: Proto) -> usize {
    let all = entries();
    let (mut i, mut count) = (0, 0);
    while i < all.len() {
        count += of_transport(&all[i].ports, proto).len();
        i += 1;
    }
    count
}

impl<const N: usize> PortTags<N> {
    const fn new(proto: Proto) -> Self {
        let all = entries();
        let (mut ports, mut tags) = ([0; N], [all[0].tag; N]);
        let (mut i, mut len) = (0, 0);
        while i < all.len() {
            let its = of_transport(&all[i].ports, proto);
            let mut j = 0;
            while j < its.len() {
                // Moves the following elements up.
                let mut at = len;
                while at > 0 {
                    let other = (ports[at - 1], all[tags[at - 1] as usize].name);
                    if !is_before((its[j], all[i].name), other) {
                        break;
                    }
                    (ports[at], tags[at]) = (ports[at - 1], tags[at - 1]);
                    at -= 1;
                }
                (ports[at], tags[at]) = (its[j], all[i].tag);
                (j, len) = (j + 1, len + 1);
            }
            i += 1;
        }
        assert!(N <= u8::MAX as usize);
        let mut starts = [0; 1024];
        let (mut word, mut at) = (0, 0);
        while word < starts.len() {
            while at < N && (ports[at] >> 6) as usize + 1 == word {
                at += 1;
            }
            starts[word] = at as u8;
            word += 1;
        }
        Self { ports, tags, starts }
    }

    #[inline]
    fn of(&'static self, port: u16) -> &'static [Tag] {
        let start = usize::from(self.starts[usize::from(port >> 6)]);
        let ports = self.ports.get(start..).unwrap_or_default();
        let before = ports.iter().take_while(|p| **p < port).count();
        let len = ports.iter().skip(before).take_while(|p| **p == port).count();
        self.tags.get(start + before..).and_then(|tags| tags.get(..len)).unwrap_or_default()
    }
}

/// Whether the pair of a port and a protocol name `a` sorts before `b`.
const fn is_before(a: (u16, &str), b: (u16, &str)) -> bool {
    if a.0 != b.0 {
        return a.0 < b.0;
    }
    let (a, b) = (a.1.as_bytes(), b.1.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i < b.len() && (i == a.len() || a[i] < b[i])
}

/// Whether a protocol is started immediately on a port. Not all of these ports identify the
/// server.
#[inline]
fn is_known_port(proto: Proto, port: u16) -> bool {
    let map = match proto {
        Proto::Tcp => &TCP_KNOWN,
        Proto::Udp => &UDP_KNOWN,
        _ => return false,
    };
    has(map, port)
}

/// A bit for each port.
type PortMap = [u64; 1024];

static TCP_LIKELY: PortMap = bitmap(true, Proto::Tcp);
static UDP_LIKELY: PortMap = bitmap(true, Proto::Udp);
static TCP_KNOWN: PortMap = bitmap(false, Proto::Tcp);
static UDP_KNOWN: PortMap = bitmap(false, Proto::Udp);

#[inline]
fn has(map: &PortMap, port: u16) -> bool {
    map[usize::from(port >> 6)] >> (port & 63) & 1 != 0
}

/// Bitmap of the ports of all entries: those of servers, or those on which analyzers are started
/// immediately.
const fn bitmap(servers: bool, proto: Proto) -> PortMap {
    let mut map = [0; 1024];
    if servers {
        add(&mut map, of_transport(&OTHER, proto));
    }
    let all = entries();
    let mut i = 0;
    while i < all.len() {
        let ports = if servers { all[i].likely() } else { &all[i].ports };
        add(&mut map, of_transport(ports, proto));
        i += 1;
    }
    map
}

const fn of_transport(ports: &Ports, proto: Proto) -> &'static [u16] {
    match proto {
        Proto::Tcp => ports.tcp,
        _ => ports.udp,
    }
}

const fn add(map: &mut PortMap, ports: &[u16]) {
    let mut i = 0;
    while i < ports.len() {
        map[(ports[i] >> 6) as usize] |= 1 << (ports[i] & 63);
        i += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_its_protocols_by_name() {
        let mut all = Tag::ALL.to_vec();
        all.sort_by_key(|tag| tag.name());
        for port in 0..=u16::MAX {
            let tcp = all.iter().filter(|tag| tag.tcp_ports().contains(&port));
            assert!(tcp.eq(by_port(Proto::Tcp, port)), "{port}");
            let udp = all.iter().filter(|tag| tag.udp_ports().contains(&port));
            assert!(udp.eq(by_port(Proto::Udp, port)), "{port}");
        }
    }

    #[test]
    fn every_registered_port_is_found() {
        for tag in Tag::ALL {
            for p in tag.tcp_ports() {
                assert!(by_port(Proto::Tcp, *p).contains(tag), "{tag:?} {p}");
            }
            for p in tag.udp_ports() {
                assert!(by_port(Proto::Udp, *p).contains(tag), "{tag:?} {p}");
            }
        }
        assert_eq!(by_port(Proto::Tcp, 12_345).len(), 0);
    }

    #[test]
    fn servers_have_the_likely_ports_of_zeek() {
        let tcp = [
            21, 22, 25, 53, 79, 80, 81, 88, 135, 139, 143, 443, 445, 465, 502, 514, 563, 585, 587,
            614, 631, 636, 989, 990, 992, 993, 995, 1080, 1434, 1883, 2811, 3128, 3306, 3389, 5222,
            5223, 5269, 6666, 6667, 6668, 6669, 8000, 8080, 8888, 20000,
        ];
        let udp = [
            53, 67, 88, 123, 137, 161, 162, 443, 514, 1812, 2123, 2152, 3389, 3544, 4011, 4754,
            4789, 5060, 5072, 5353, 5355, 6081, 20000,
        ];
        let likely = |proto| (0..=u16::MAX).filter(move |p| is_likely_server_port(proto, *p));
        assert!(likely(Proto::Tcp).eq(tcp));
        assert!(likely(Proto::Udp).eq(udp));
    }

    #[test]
    fn protocols_of_one_port_start_in_the_order_of_names() {
        assert_eq!(by_port(Proto::Udp, 443), [Tag::Dtls, Tag::Quic]);
        assert_eq!(by_port(Proto::Tcp, 1080), [Tag::Http, Tag::Socks]);
    }
}
