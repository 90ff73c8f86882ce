//! Hosts and ports at fixed offsets, used before a packet is decoded.

use gannet_base::Addr;

use crate::bytes;
use crate::link::IPV6;
use crate::link_type;
use crate::protocol;

/// Offsets of the ports, and lengths of Ethernet and IP headers with the ports.
const PORTS_4: usize = 14 + 20;
const PORTS_6: usize = 14 + 40;
const LEN_4: usize = PORTS_4 + 4;
const LEN_6: usize = PORTS_6 + 4;

const UDP_LEN: usize = 8;

/// Protocol, hosts and ports of a TCP or UDP packet in an Ethernet frame: over IPv4 without
/// options, and not fragmented. It checks neither lengths nor checksums, so it costs a few
/// instructions: enough to assign a packet to a shard or to prefetch its connection. For
/// [plain](crate::plain_ipv4) packets it has the same values as [`decode`](crate::decode()).
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a>(&'a [u8; LEN_4]);

impl<'a> Outline<'a> {
    /// The outline of a packet; `None` for other kinds of packets.
    #[inline(always)]
    pub fn of(link_type: u16, data: &'a [u8]) -> Option<Self> {
        const TCP: u32 = protocol::TCP as u32;
        const UDP: u32 = protocol::UDP as u32;
        let head: &[u8; LEN_4] = data.first_chunk()?;
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        // IPv4 with a header of 20 bytes, and no fragment; the time to live is masked.
        let is_outlined = link_type == link_type::ETHERNET
            && word(12) & 0xffff_ff00 == 0x0800_4500
            && matches!(word(20) & 0x3fff_00ff, TCP | UDP);
        is_outlined.then_some(Self(head))
    }

    /// The protocol above IP: TCP or UDP.
    #[inline]
    pub fn protocol(self) -> u8 {
        self.0[23]
    }

    /// The source and the destination address.
    #[inline]
    pub fn hosts(self) -> ([u8; 4], [u8; 4]) {
        let at = |at: usize| [self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]];
        (at(26), at(30))
    }

    /// The source and the destination port.
    #[inline]
    pub fn ports(self) -> (u16, u16) {
        let at = |at: usize| u16::from_be_bytes([self.0[at], self.0[at + 1]]);
        (at(PORTS_4), at(PORTS_4 + 2))
    }

    /// The captured UDP payload of the packet `data`.
    #[inline]
    pub fn udp_payload(data: &[u8]) -> &[u8] {
        bytes::from(data, PORTS_4 + UDP_LEN)
    }
}

/// Like [`Outline`], over IPv6 without extension headers.
#[derive(Clone, Copy, Debug)]
pub struct Outline6<'a>(&'a [u8; LEN_6]);

impl<'a> Outline6<'a> {
    /// The outline of a packet; `None` for other kinds of packets.
    #[inline]
    pub fn of(link_type: u16, data: &'a [u8]) -> Option<Self> {
        let head: &[u8; LEN_6] = data.first_chunk()?;
        let is_outlined = link_type == link_type::ETHERNET
            && bytes::u16_at(head, 12) == IPV6
            && head[14] >> 4 == 6
            && matches!(head[20], protocol::TCP | protocol::UDP);
        is_outlined.then_some(Self(head))
    }

    /// The protocol above IP: TCP or UDP.
    #[inline]
    pub fn protocol(self) -> u8 {
        self.0[20]
    }

    /// The source and the destination address.
    #[inline]
    pub fn hosts(self) -> (Addr, Addr) {
        let at = |at| Addr::v6(bytes::array_at(self.0, at).unwrap_or_default());
        (at(22), at(38))
    }

    /// The source and the destination port.
    #[inline]
    pub fn ports(self) -> (u16, u16) {
        (bytes::u16_at(self.0, PORTS_6), bytes::u16_at(self.0, PORTS_6 + 2))
    }

    /// The captured UDP payload of the packet `data`.
    #[inline]
    pub fn udp_payload(data: &[u8]) -> &[u8] {
        bytes::from(data, PORTS_6 + UDP_LEN)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::sample::select;

    use crate::Transport;
    use crate::decode;
    use crate::plain_ipv4;
    use crate::plain_ipv6;

    use super::*;

    #[test]
    fn hosts_and_ports() {
        let mut data = vec![0; 12];
        data.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        data.extend([192, 0, 2, 1, 192, 0, 2, 2, 0x04, 0xd2, 0, 53, 0, 9, 0, 0, b'x']);
        let outline = Outline::of(1, &data).unwrap();
        assert_eq!((outline.protocol(), outline.ports()), (protocol::UDP, (1234, 53)));
        assert_eq!(outline.hosts(), ([192, 0, 2, 1], [192, 0, 2, 2]));
        assert_eq!(Outline::udp_payload(&data), b"x");
        assert!(Outline::of(1, &data[..LEN_4]).is_some());
        assert!(Outline::of(1, &data[..LEN_4 - 1]).is_none());
        assert!(Outline::of(link_type::RAW, &data).is_none());
        // A VLAN, options, a fragment, ICMP.
        for (at, byte) in [(12, 0x81), (14, 0x46), (20, 0x20), (23, 1)] {
            let mut other = data.clone();
            other[at] = byte;
            assert!(Outline::of(1, &other).is_none(), "{at}");
        }
    }

    proptest::proptest! {
        /// Every plain TCP or UDP packet has an outline that equals the decoded packet.
        #[test]
        fn as_decoded(
            ethertype in select(vec![[8_u8, 0], [0x86, 0xdd]]),
            version in select(vec![0x45_u8, 0x46, 0x60]),
            len in select(vec![8_u16, 20, 28, 40, 60]),
            protocol in select(vec![6_u8, 17, 1, 58, 44]),
            rest in vec(0_u8.., 0..90),
        ) {
            let mut data = vec![0; 12];
            data.extend(ethertype);
            if version >> 4 == 4 {
                data.extend([version, 0, 0, len as u8, 0, 1, 0x40, 0, 64, protocol]);
            } else {
                data.extend([version, 0, 0, 0, 0, len as u8, protocol, 64]);
            }
            data.extend(rest);
            let plain = plain_ipv4(&data, 1_000, false).or(plain_ipv6(&data, 1_000));
            let Some((ip, _)) = plain else { return Ok(()) };
            let transport = decode(1, &data, 1_000).unwrap().datagram().unwrap().transport;
            let Some(ports) = transport.ports() else { return Ok(()) };
            let (hosts, protocol, seen, payload) = if ip.version == 4 {
                let outline = Outline::of(1, &data).unwrap();
                let (src, dst) = outline.hosts();
                let hosts = (Addr::v4(src), Addr::v4(dst));
                (hosts, outline.protocol(), outline.ports(), Outline::udp_payload(&data))
            } else {
                let outline = Outline6::of(1, &data).unwrap();
                let payload = Outline6::udp_payload(&data);
                (outline.hosts(), outline.protocol(), outline.ports(), payload)
            };
            proptest::prop_assert_eq!((hosts, protocol), ((ip.src, ip.dst), ip.protocol));
            proptest::prop_assert_eq!(seen, ports);
            if let Transport::Udp(udp) = transport {
                proptest::prop_assert!(payload.starts_with(udp.payload));
            }
        }
    }
}
