//! Single frames, from the payload outwards: each function wraps the result of the previous one.
//!
//! Both addresses of a frame are of one family; if they differ, IPv4 is mapped into IPv6.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;

/// IP protocol number of ICMP.
pub const ICMP: u8 = 1;
/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// IP protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// TCP flag: no more data from the sender.
pub const FIN: u8 = 1;
/// TCP flag: synchronise sequence numbers.
pub const SYN: u8 = 2;
/// TCP flag: reset the connection.
pub const RST: u8 = 4;
/// TCP flag: push the data to the receiver.
pub const PSH: u8 = 8;
/// TCP flag: the acknowledgement number is valid.
pub const ACK: u8 = 16;

/// The Internet checksum (RFC 1071) over `parts`, each but the last of even length.
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The Ethernet address of a host: locally administered, from its IP address.
pub fn mac(host: IpAddr) -> [u8; 6] {
    let tail = match host {
        IpAddr::V4(a) => a.octets(),
        IpAddr::V6(a) => {
            let o = a.octets();
            [o[12], o[13], o[14], o[15]]
        }
    };
    [0x02, 0, tail[0], tail[1], tail[2], tail[3]]
}

/// An Ethernet II frame without checksum; short ones are padded to 60 bytes as on the wire.
pub fn ethernet(src: [u8; 6], dst: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut b = Vec::with_capacity(14 + payload.len());
    b.extend_from_slice(&dst);
    b.extend_from_slice(&src);
    b.extend_from_slice(&kind.to_be_bytes());
    b.extend_from_slice(payload);
    b.resize(b.len().max(60), 0);
    b
}

/// An IPv4 datagram (RFC 791) with time to live 64 and Don't Fragment. Longer payloads are
/// truncated.
pub fn ipv4(src: Ipv4Addr, dst: Ipv4Addr, proto: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    let payload = payload.get(..65_515).unwrap_or(payload);
    let mut b = Vec::with_capacity(20 + payload.len());
    b.extend_from_slice(&[0x45, 0]);
    b.extend_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    b.extend_from_slice(&id.to_be_bytes());
    b.extend_from_slice(&[0x40, 0, 64, proto, 0, 0]);
    b.extend_from_slice(&src.octets());
    b.extend_from_slice(&dst.octets());
    let sum = checksum(&[&b]);
    b[10..12].copy_from_slice(&sum.to_be_bytes());
    b.extend_from_slice(payload);
    b
}

/// An IPv6 packet (RFC 8200) with hop limit 64. Longer payloads are truncated.
pub fn ipv6(src: Ipv6Addr, dst: Ipv6Addr, proto: u8, payload: &[u8]) -> Vec<u8> {
    let payload = payload.get(..65_535).unwrap_or(payload);
    let mut b = Vec::with_capacity(40 + payload.len());
    b.extend_from_slice(&[0x60, 0, 0, 0]);
    b.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    b.extend_from_slice(&[proto, 64]);
    b.extend_from_slice(&src.octets());
    b.extend_from_slice(&dst.octets());
    b.extend_from_slice(payload);
    b
}

/// A whole frame around a transport payload: Ethernet and IP of the addresses' family.
pub fn ip(src: IpAddr, dst: IpAddr, proto: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    let (kind, packet) = match (src, dst) {
        (IpAddr::V4(s), IpAddr::V4(d)) => (0x0800, ipv4(s, d, proto, id, payload)),
        (s, d) => (0x86dd, ipv6(wide(s), wide(d), proto, payload)),
    };
    ethernet(mac(src), mac(dst), kind, &packet)
}

fn wide(a: IpAddr) -> Ipv6Addr {
    match a {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

/// The checksum of a transport header and payload with its pseudo-header (RFC 9293, 8200).
fn transport_checksum(src: IpAddr, dst: IpAddr, proto: u8, segment: &[u8]) -> u16 {
    let len = (segment.len() as u32).to_be_bytes();
    let tail = [0, 0, 0, proto];
    match (src, dst) {
        (IpAddr::V4(s), IpAddr::V4(d)) => {
            checksum(&[&s.octets(), &d.octets(), &len, &tail, segment])
        }
        (s, d) => checksum(&[&wide(s).octets(), &wide(d).octets(), &len, &tail, segment]),
    }
}

/// The fields of a TCP header except the ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpHeader<'a> {
    /// Sequence number of the first byte, or of SYN or FIN.
    pub seq: u32,
    /// Next sequence number expected from the peer.
    pub ack: u32,
    /// Any combination of [`FIN`], [`SYN`], [`RST`], [`PSH`] and [`ACK`].
    pub flags: u8,
    /// Receive window.
    pub window: u16,
    /// Encoded options, at most 40 bytes; the writer pads them.
    pub options: &'a [u8],
}

/// A TCP segment (RFC 9293) in its frame.
pub fn tcp(
    src: SocketAddr,
    dst: SocketAddr,
    id: u16,
    header: TcpHeader<'_>,
    payload: &[u8],
) -> Vec<u8> {
    let options = header.options.get(..40).unwrap_or(header.options);
    let len = 20 + options.len().next_multiple_of(4);
    let mut b = Vec::with_capacity(len + payload.len());
    b.extend_from_slice(&src.port().to_be_bytes());
    b.extend_from_slice(&dst.port().to_be_bytes());
    b.extend_from_slice(&header.seq.to_be_bytes());
    b.extend_from_slice(&header.ack.to_be_bytes());
    b.extend_from_slice(&[(len as u8 / 4) << 4, header.flags]);
    b.extend_from_slice(&header.window.to_be_bytes());
    b.extend_from_slice(&[0; 4]);
    b.extend_from_slice(options);
    b.resize(len, 0);
    b.extend_from_slice(payload);
    let sum = transport_checksum(src.ip(), dst.ip(), TCP, &b);
    b[16..18].copy_from_slice(&sum.to_be_bytes());
    ip(src.ip(), dst.ip(), TCP, id, &b)
}

/// A UDP datagram (RFC 768) in its frame. Longer payloads are truncated.
pub fn udp(src: SocketAddr, dst: SocketAddr, id: u16, payload: &[u8]) -> Vec<u8> {
    let payload = payload.get(..65_507).unwrap_or(payload);
    let mut b = Vec::with_capacity(8 + payload.len());
    b.extend_from_slice(&src.port().to_be_bytes());
    b.extend_from_slice(&dst.port().to_be_bytes());
    b.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    b.extend_from_slice(&[0; 2]);
    b.extend_from_slice(payload);
    let sum = match transport_checksum(src.ip(), dst.ip(), UDP, &b) {
        // 0 would mean "no checksum".
        0 => 0xffff,
        sum => sum,
    };
    b[6..8].copy_from_slice(&sum.to_be_bytes());
    ip(src.ip(), dst.ip(), UDP, id, &b)
}

/// An echo request or reply (RFC 792, 4443) in its frame.
pub fn echo(
    src: IpAddr,
    dst: IpAddr,
    reply: bool,
    (ident, seq): (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let v4 = src.is_ipv4() && dst.is_ipv4();
    let kind = match (v4, reply) {
        (true, false) => 8,
        (true, true) => 0,
        (false, false) => 128,
        (false, true) => 129,
    };
    let mut b = vec![kind, 0, 0, 0];
    b.extend_from_slice(&ident.to_be_bytes());
    b.extend_from_slice(&seq.to_be_bytes());
    b.extend_from_slice(payload);
    let (proto, sum) = if v4 {
        (ICMP, checksum(&[&b]))
    } else {
        (ICMPV6, transport_checksum(src, dst, ICMPV6, &b))
    };
    b[2..4].copy_from_slice(&sum.to_be_bytes());
    ip(src, dst, proto, seq, &b)
}

/// A frame with the first fragment of a UDP datagram (RFC 791 §3.2); the length of the payload must
/// be a multiple of eight.
pub fn first_fragment(src: Ipv4Addr, dst: Ipv4Addr, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = ipv4(src, dst, UDP, id, payload);
    packet[6] = 0x20;
    packet[10..12].fill(0);
    let sum = checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    ethernet(mac(src.into()), mac(dst.into()), 0x0800, &packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_add_up_to_zero() {
        // The example of RFC 1071, section 3: the sum is ddf2.
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        let frame = udp("192.0.2.1:53".parse().unwrap(), "192.0.2.2:9".parse().unwrap(), 1, b"odd");
        assert_eq!(checksum(&[&frame[14..34]]), 0);
        let pseudo = [192, 0, 2, 1, 192, 0, 2, 2, 0, 17, 0, 11];
        assert_eq!(checksum(&[&pseudo, &frame[34..45]]), 0);
    }

    #[test]
    fn a_segment_byte_by_byte() {
        let header =
            TcpHeader { seq: 1, ack: 2, flags: SYN | ACK, window: 3, options: &[2, 4, 5, 0xb4] };
        let frame = tcp(
            "192.0.2.1:80".parse().unwrap(),
            "198.51.100.7:1025".parse().unwrap(),
            9,
            header,
            b"hi",
        );
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[..14], [2, 0, 198, 51, 100, 7, 2, 0, 192, 0, 2, 1, 8, 0]);
        assert_eq!(frame[14..24], [0x45, 0, 0, 46, 0, 9, 0x40, 0, 64, 6]);
        assert_eq!(frame[34..50], [0, 80, 4, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, SYN | ACK, 0, 3]);
        assert_eq!(frame[54..60], [2, 4, 5, 0xb4, b'h', b'i']);
    }

    #[test]
    fn mixed_families_become_ipv6() {
        let frame = echo("192.0.2.1".parse().unwrap(), "::1".parse().unwrap(), false, (1, 2), b"");
        assert_eq!(frame[12..15], [0x86, 0xdd, 0x60]);
        assert_eq!((frame[20], frame[54]), (ICMPV6, 128));
    }
}
