//! The Internet checksum (RFC 1071) of headers and payloads that were captured completely.

use gannet_base::Addr;

use crate::Ip;
use crate::protocol;
use crate::tunnel::port;

/// The result of verifying a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum is correct, or absent, which UDP over IPv4 allows.
    Valid,
    /// The checksum is wrong.
    Invalid,
    /// The capture contains too little of the packet to verify it.
    Unverifiable,
}

impl Checksum {
    fn of(fits: bool) -> Self {
        if fits { Self::Valid } else { Self::Invalid }
    }
}

/// A running one's complement sum. Words are added in native byte order: the sum of byte-swapped
/// words is the byte-swapped sum, and verification only tests whether all bits are set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    #[inline]
    fn add_word(&mut self, w: u64) {
        let (s, carry) = self.0.overflowing_add(w);
        self.0 = s + u64::from(carry);
    }

    /// Adds bytes that start at an even offset; an odd last byte is padded with zero.
    #[inline]
    pub fn add(&mut self, data: &[u8]) {
        let (words, rest) = data.as_chunks::<8>();
        for w in words {
            self.add_word(u64::from_ne_bytes(*w));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.add_word(u64::from_ne_bytes(last));
    }

    /// Adds the pseudo header of RFC 9293 §3.1 (IPv4) or RFC 8200 §8.1 (IPv6). `len` is the length
    /// of the transport header and its payload, in bytes.
    pub fn add_pseudo(&mut self, src: Addr, dst: Addr, protocol: u8, len: u32) {
        match (src.as_v4(), dst.as_v4()) {
            (Some(s), Some(d)) => {
                self.add(&s);
                self.add(&d);
            }
            _ => {
                self.add(&src.octets());
                self.add(&dst.octets());
            }
        }
        let mut tail = [0; 8];
        tail[..4].copy_from_slice(&len.to_be_bytes());
        tail[7] = protocol;
        self.add(&tail);
    }

    /// The sum in sixteen bits, in the byte order of the bytes added.
    #[inline]
    pub fn fold(self) -> [u8; 2] {
        let s = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let s = (s >> 32) + (s & 0xffff_ffff);
        let s = (s >> 16) + (s & 0xffff);
        // At most 0x1_fffe remains, so a second fold leaves sixteen bits.
        let s = (s >> 16) + (s & 0xffff);
        (s as u16).to_ne_bytes()
    }

    /// The checksum field that makes the sum valid: the complement of [`Sum::fold`].
    pub fn checksum(self) -> [u8; 2] {
        let [a, b] = self.fold();
        [!a, !b]
    }

    /// Whether the sum of bytes that include their checksum field is valid.
    #[inline]
    pub fn fits(self) -> bool {
        self.fold() == [0xff, 0xff]
    }
}

/// Whether the sum of an IPv4 header, or of other bytes that include their checksum field, is
/// valid.
#[inline]
pub fn fits(data: &[u8]) -> bool {
    let mut sum = Sum::default();
    sum.add(data);
    sum.fits()
}

fn with_pseudo(ip: &Ip<'_>, protocol: u8) -> Checksum {
    let len = ip.transport_len();
    let Some(data) = ip.payload.get(..len as usize) else { return Checksum::Unverifiable };
    let mut sum = Sum::default();
    sum.add_pseudo(ip.src, ip.dst, protocol, len);
    sum.add(data);
    Checksum::of(sum.fits())
}

/// Verifies the TCP checksum of an IP payload (RFC 9293 §3.1).
pub fn tcp(ip: &Ip<'_>) -> Checksum {
    with_pseudo(ip, protocol::TCP)
}

/// Verifies the UDP checksum of an IP payload (RFC 768; RFC 8200 §8.1). Over IPv4 a zero field
/// means that the sender computed none; the same holds for VXLAN over IPv6 (RFC 6935 §5).
pub fn udp(ip: &Ip<'_>) -> Checksum {
    if ip.payload.len() < ip.transport_len() as usize {
        return Checksum::Unverifiable;
    }
    let is_zero = ip.payload.get(6..8) == Some(&[0, 0]);
    let is_vxlan = || ip.payload.get(2..4) == Some(&port::VXLAN.to_be_bytes()) && may_be_vxlan(ip);
    if is_zero && (ip.version == 4 || is_vxlan()) {
        return Checksum::Valid;
    }
    with_pseudo(ip, protocol::UDP)
}

/// Whether a datagram has the flag of a VXLAN header, and more than an Ethernet header after it.
pub fn may_be_vxlan(ip: &Ip<'_>) -> bool {
    const MIN_LEN: u32 = 8 + 8 + 14;
    let flags = ip.payload.get(8).copied().unwrap_or_default();
    ip.transport_len() > MIN_LEN && flags & 0x08 != 0
}

/// Verifies the checksum of ICMP (RFC 792), or that of ICMPv6 with its pseudo header (RFC 4443
/// §2.3).
pub fn icmp(ip: &Ip<'_>) -> Checksum {
    if ip.protocol == protocol::ICMP6 {
        return with_pseudo(ip, protocol::ICMP6);
    }
    match ip.payload.get(..ip.transport_len() as usize) {
        Some(data) => Checksum::of(fits(data)),
        None => Checksum::Unverifiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum computed as RFC 1071 describes it: sixteen bits at a time.
    fn plain(data: &[u8]) -> [u8; 2] {
        let mut s = 0u32;
        for p in data.chunks(2) {
            s += u32::from(p[0]) << 8 | p.get(1).map_or(0, |b| u32::from(*b));
            s = (s & 0xffff) + (s >> 16);
        }
        (s as u16).to_be_bytes()
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let mut s = Sum::default();
        s.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(s.fold(), [0xdd, 0xf2]);
        assert_eq!(s.checksum(), [0x22, 0x0d]);
    }

    #[test]
    fn an_ipv4_header_fits() {
        let h = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8,
            0, 0xc7,
        ];
        assert!(fits(&h));
        let mut bad = h;
        bad[8] ^= 1;
        assert!(!fits(&bad));
    }

    #[test]
    fn vxlan_over_ipv6_needs_no_checksum() {
        let udp_of = |port: u16, flags: u8, frame: usize| {
            let len = (8 + 8 + frame) as u8;
            let mut p = vec![0x60, 0, 0, 0, 0, len, 17, 64];
            p.extend([[0x20; 16], [0x21; 16]].concat());
            p.extend([0x30, 0x39]);
            p.extend(port.to_be_bytes());
            p.extend([0, len, 0, 0, flags, 0, 0, 0, 0, 0, 1, 0]);
            p.resize(p.len() + frame, 0);
            udp(&crate::ip(&p, p.len() as u32, true).unwrap())
        };
        assert_eq!(udp_of(4789, 8, 15), Checksum::Valid);
        for (port, flags, frame) in [(4788, 8, 15), (4789, 4, 15), (4789, 8, 14)] {
            assert_eq!(udp_of(port, flags, frame), Checksum::Invalid, "{port} {flags} {frame}");
        }
    }

    proptest::proptest! {
        #[test]
        fn wide_words_sum_like_narrow_ones(data in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            let mut s = Sum::default();
            s.add(&data);
            let (a, b) = (u16::from_be_bytes(s.fold()), u16::from_be_bytes(plain(&data)));
            // Zero has two representations in one's complement; modulo 0xffff both are equal.
            proptest::prop_assert_eq!(a % 0xffff, b % 0xffff);
        }

        #[test]
        fn the_checksum_fits(data in proptest::collection::vec(proptest::num::u8::ANY, 2..2000)) {
            let mut data = data;
            data[0] = 0;
            data[1] = 0;
            let mut s = Sum::default();
            s.add(&data);
            data[..2].copy_from_slice(&s.checksum());
            proptest::prop_assert!(fits(&data));
        }
    }
}
