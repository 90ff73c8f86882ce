//! A packet as a single value: link layer, IP datagram, transport.

use crate::Error;
use crate::Frame;
use crate::Icmp;
use crate::Ip;
use crate::Network;
use crate::Tcp;
use crate::Udp;
use crate::UpperLayer;
use crate::icmp;
use crate::ip_with;
use crate::link_with;
use crate::protocol;
use crate::tcp;
use crate::udp;

/// A packet whose link layer is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The link layer.
    pub frame: Frame<'a>,
    /// The contents of the frame.
    pub contents: Contents<'a>,
}

/// The contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents<'a> {
    /// A datagram, or a fragment of one.
    Datagram(Datagram<'a>),
    /// A datagram with an invalid IP header.
    Invalid(Error),
    /// Not IP: [`Frame::network`] contains the bytes.
    Other,
}

/// An IP packet and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The IP headers.
    pub ip: Ip<'a>,
    /// The transport.
    pub transport: Transport<'a>,
}

/// The transport of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport<'a> {
    /// TCP.
    Tcp(Tcp<'a>),
    /// UDP.
    Udp(Udp<'a>),
    /// ICMP or ICMPv6.
    Icmp(Icmp<'a>),
    /// TCP, UDP or ICMP with an invalid header.
    Invalid(Error),
    /// A fragment other than the first one, which has no transport header.
    Fragment,
    /// Another protocol: [`Ip::payload`] contains its bytes.
    Other,
}

impl<'a> Decoded<'a> {
    /// The datagram, if it is valid.
    #[inline]
    pub fn datagram(&self) -> Option<&Datagram<'a>> {
        match &self.contents {
            Contents::Datagram(datagram) => Some(datagram),
            Contents::Invalid(_) | Contents::Other => None,
        }
    }
}

impl<'a> Contents<'a> {
    /// Decodes an IP packet like [`datagram`], without verifying checksums.
    #[inline]
    pub fn of(data: &'a [u8], wire_len: u32) -> Self {
        Self::with(data, wire_len, &mut |_| {})
    }

    #[inline]
    fn with(data: &'a [u8], wire_len: u32, on_fault: &mut impl FnMut(Error)) -> Self {
        datagram_with(data, wire_len, false, on_fault).map_or_else(Self::Invalid, Self::Datagram)
    }
}

impl<'a> Transport<'a> {
    #[inline]
    fn of(ip: &Ip<'a>) -> Self {
        if ip.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return Self::Fragment;
        }
        if ip.upper != UpperLayer::Payload {
            return Self::Other;
        }
        let read = match ip.protocol {
            protocol::TCP => tcp(ip).map(Self::Tcp),
            protocol::UDP => udp(ip).map(Self::Udp),
            protocol::ICMP | protocol::ICMP6 => icmp(ip).map(Self::Icmp),
            _ => return Self::Other,
        };
        read.unwrap_or_else(Self::Invalid)
    }

    /// Source and destination port of TCP and UDP.
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        match self {
            Self::Tcp(tcp) => Some((tcp.src_port, tcp.dst_port)),
            Self::Udp(udp) => Some((udp.src_port, udp.dst_port)),
            _ => None,
        }
    }

    /// The captured payload of TCP and UDP.
    #[inline]
    pub fn payload(&self) -> Option<&'a [u8]> {
        match self {
            Self::Tcp(tcp) => Some(tcp.payload),
            Self::Udp(udp) => Some(udp.payload),
            _ => None,
        }
    }
}

/// Decodes a captured packet of a link type. `wire_len` is its length on the wire, in bytes.
/// Checksums are not verified.
///
/// # Errors
/// A fault of the link layer. Faults above it are in the value; those that do not stop the dissection are dropped:
/// see [`decode_with`].
#[inline]
pub fn decode(link_type: u16, data: &[u8], wire_len: u32) -> Result<Decoded<'_>, Error> {
    decode_with(link_type, data, wire_len, &mut |_| {})
}

/// Like [`decode`], and reports the faults that do not stop the dissection to `on_fault`, in packet
/// order.
///
/// # Errors
/// As [`decode`].
#[inline]
pub fn decode_with<'a>(
    link_type: u16,
    data: &'a [u8],
    wire_len: u32,
    on_fault: &mut impl FnMut(Error),
) -> Result<Decoded<'a>, Error> {
    let frame = link_with(link_type, data, wire_len, 0, on_fault)?;
    let contents = match frame.network {
        Network::Ip(bytes) => Contents::with(bytes, frame.wire_len, on_fault),
        _ => Contents::Other,
    };
    Ok(Decoded { frame, contents })
}

/// Decodes an IP packet like [`ip`](crate::ip()), and its transport.
///
/// # Errors
/// A fault of the IP headers. Faults of the transport are in the value.
#[inline]
pub fn datagram(data: &[u8], wire_len: u32, verify_checksum: bool) -> Result<Datagram<'_>, Error> {
    datagram_with(data, wire_len, verify_checksum, &mut |_| {})
}

/// Like [`datagram`], and reports the faults that do not stop the dissection to `on_fault`, in packet
/// order.
///
/// # Errors
/// As [`datagram`].
#[inline]
pub fn datagram_with<'a>(
    data: &'a [u8],
    wire_len: u32,
    verify_checksum: bool,
    on_fault: &mut impl FnMut(Error),
) -> Result<Datagram<'a>, Error> {
    let ip = ip_with(data, wire_len, verify_checksum, on_fault)?;
    Ok(Datagram { transport: Transport::of(&ip), ip })
}

#[cfg(test)]
mod tests {
    use gannet_base::Addr;
    use proptest::collection::vec;
    use proptest::sample::select;

    use crate::Layer;
    use crate::PLAIN_LAYERS;
    use crate::link_type;
    use crate::plain_ipv4;
    use crate::plain_ipv6;

    use super::*;

    /// An Ethernet frame with a UDP datagram over IPv4: 192.0.2.1:53 → 192.0.2.2:1234, "hi!".
    const UDP_4: [u8; 45] = [
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
        0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4
        0, 53, 4, 210, 0, 11, 0, 0, b'h', b'i', b'!', // UDP
    ];

    /// A TCP segment over IPv6 in a VLAN: port 80 → port 4000, one byte.
    const TCP_6: [u8; 79] = [
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 7, 0x86, 0xdd, // Ethernet, VLAN
        0x60, 0, 0, 0, 0, 21, 6, 64, // IPv6
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // source
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, // destination
        0, 80, 0x0f, 0xa0, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0, // TCP
        b'x',
    ];

    fn of(data: &[u8]) -> Result<Decoded<'_>, Error> {
        decode(link_type::ETHERNET, data, data.len() as u32)
    }

    fn with(data: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut data = data.to_vec();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        data
    }

    #[test]
    fn every_layer_of_a_packet() {
        let decoded = of(&UDP_4).unwrap();
        let datagram = decoded.datagram().unwrap();
        assert_eq!((datagram.ip.src, datagram.ip.dst), (v4(1), v4(2)));
        assert_eq!(datagram.transport.ports(), Some((53, 1234)));
        assert_eq!(datagram.transport.payload(), Some(&b"hi!"[..]));
        let decoded = of(&TCP_6).unwrap();
        assert_eq!((decoded.frame.vlan, decoded.frame.depth), (Some(7), 3));
        let datagram = decoded.datagram().unwrap();
        assert_eq!((datagram.ip.version, datagram.transport.ports()), (6, Some((80, 4000))));
        assert_eq!(datagram.transport.payload(), Some(&b"x"[..]));
    }

    fn v4(host: u8) -> Addr {
        Addr::v4([192, 0, 2, host])
    }

    #[test]
    fn a_fault_ends_the_decode_at_its_layer() {
        assert_eq!(of(&UDP_4[..16]), Err(Error::Truncated(Layer::Ethernet)));
        let arp = with(&UDP_4, 12, &[8, 6]);
        assert_eq!(of(&arp).unwrap().contents, Contents::Other);
        let long = with(&UDP_4, 17, &[32]);
        assert_eq!(of(&long).unwrap().contents, Contents::Invalid(Error::IpTooLong));
        let short = with(&UDP_4, 17, &[27]);
        let transport = of(&short).unwrap().datagram().unwrap().transport;
        assert_eq!(transport, Transport::Invalid(Error::DatagramTooShort(Layer::Udp)));
        assert_eq!((transport.ports(), transport.payload()), (None, None));
        let other = with(&UDP_4, 23, &[89]);
        assert_eq!(of(&other).unwrap().datagram().unwrap().transport, Transport::Other);
    }

    #[test]
    fn the_first_fragment_has_a_transport() {
        let first = with(&UDP_4, 20, &[0x20, 0]);
        assert_eq!(of(&first).unwrap().datagram().unwrap().transport.ports(), Some((53, 1234)));
        let later = with(&UDP_4, 20, &[0x20, 1]);
        let later = of(&later).unwrap();
        let later = later.datagram().unwrap();
        assert_eq!(later.transport, Transport::Fragment);
    }

    #[test]
    fn nothing_is_dissected_after_a_mobility_header() {
        let mut data = vec![0x60, 0, 0, 0, 0, 16, protocol::MOBILITY, 64];
        data.extend([[0x20; 16], [0x21; 16]].concat());
        data.extend([17, 0, 5, 0, 0, 0, 0, 0, 0, 53, 4, 210, 0, 8, 0, 0]);
        let mut faults = Vec::new();
        let datagram = datagram_with(&data, 56, false, &mut |error| faults.push(error)).unwrap();
        assert_eq!((datagram.transport, faults.len()), (Transport::Other, 1));
    }

    #[test]
    fn plain_packets() {
        let (ip, bytes) = plain_ipv4(&UDP_4, 45, false).unwrap();
        assert_eq!((ip.payload.len(), bytes.len()), (11, 31));
        assert!(plain_ipv4(&UDP_4, 45, true).is_none(), "a wrong checksum");
        assert!(plain_ipv4(&UDP_4, 44, false).is_none(), "shorter than it says");
        assert!(plain_ipv6(&TCP_6, 79).is_none(), "a VLAN tag");
        let untagged = [&TCP_6[..12], &TCP_6[16..]].concat();
        let (ip, bytes) = plain_ipv6(&untagged, 75).unwrap();
        assert_eq!((ip.payload.len(), bytes.len()), (21, 61));
        for next in [protocol::IPV6_FRAGMENT, protocol::IPV6_HOP_BY_HOP, protocol::ESP] {
            assert!(plain_ipv6(&with(&untagged, 20, &[next]), 75).is_none(), "{next}");
        }
    }

    proptest::proptest! {
        /// A plain packet decodes as in layer-by-layer dissection, without a fault.
        #[test]
        fn plain_as_layer_by_layer(
            version in select(vec![0x45_u8, 0x46, 0x55, 0x60, 0x6f]),
            len in select(vec![0_u16, 1, 19, 20, 21, 28, 40, 60]),
            word in select(vec![0_u16, 0x4000, 0x2000, 7]),
            ethertype in select(vec![[8_u8, 0], [0x86, 0xdd], [8, 6]]),
            protocol in select(vec![0_u8, 1, 4, 6, 17, 44, 58, 59]),
            rest in vec(0_u8.., 0..80),
            wire_len in 0_u32..110,
            verify: bool,
        ) {
            let mut data = vec![0; 12];
            data.extend(ethertype);
            if version >> 4 == 4 {
                data.extend([version, 0]);
                data.extend(len.to_be_bytes());
                data.extend([0, 1]);
                data.extend(word.to_be_bytes());
                data.extend([64, protocol]);
            } else {
                data.extend([version, 0, 0, 0]);
                data.extend(len.to_be_bytes());
                data.extend([protocol, 64]);
            }
            data.extend(rest);
            let plain = plain_ipv4(&data, wire_len, verify).or(plain_ipv6(&data, wire_len));
            if let Some((ip, bytes)) = plain {
                let mut faults = 0;
                let frame = link_with(1, &data, wire_len, 0, &mut |_| faults += 1).unwrap();
                let same = ip_with(bytes, frame.wire_len, verify, &mut |_| faults += 1).unwrap();
                proptest::prop_assert_eq!(frame.network, Network::Ip(bytes));
                proptest::prop_assert_eq!(frame.depth, PLAIN_LAYERS);
                proptest::prop_assert_eq!((ip, faults), (same, 0));
            }
        }
    }
}
