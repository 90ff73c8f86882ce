//! IPv6 (RFC 8200) and its extension headers: hop-by-hop, routing, fragment, destination
//! options, authentication (RFC 4302); ESP (RFC 4303) and mobility (RFC 6275) end the chain.

use gannet_base::Addr;

use crate::bytes;
use crate::checksum::Sum;
use crate::error::Error;
use crate::error::Ipv6Fault;
use crate::error::Layer;
use crate::ip::Fragment;
use crate::ip::Ip;
use crate::ip::UpperLayer;
use crate::ipv4::write_field;
use crate::protocol;

/// Length of the fixed header.
const FIXED_LEN: usize = 40;
/// Length of a fragment header.
const FRAGMENT_LEN: usize = 8;

mod field {
    pub(super) const PAYLOAD_LEN: usize = 4;
    pub(super) const NEXT: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SRC: usize = 8;
    pub(super) const DST: usize = 24;
}

/// Offsets of fields in extension headers.
mod ext {
    pub(super) const NEXT: usize = 0;
    pub(super) const LEN: usize = 1;
    pub(super) const ROUTING_TYPE: usize = 2;
    pub(super) const SEGMENTS_LEFT: usize = 3;
    pub(super) const FRAGMENT_OFFSET: usize = 2;
    pub(super) const FRAGMENT_ID: usize = 4;
}

/// The home address option (RFC 6275 §6.3).
const HOME_ADDRESS: u8 = 201;

/// The chain of headers, as far as captured.
struct Chain {
    src: Addr,
    dst: Addr,
    len: usize,
    /// Type of the last header, and its offset.
    last: u8,
    last_at: usize,
    /// Type of the data after the last header.
    next: u8,
}

#[inline]
pub(crate) fn parse<'a>(
    data: &'a [u8],
    wire_len: u32,
    verify_checksum: bool,
    on_fault: &mut impl FnMut(Error),
) -> Result<Ip<'a>, Error> {
    let Some(head) = data.first_chunk::<FIXED_LEN>() else {
        return Err(Error::Truncated(Layer::Ip));
    };
    let chain = Chain::walk(head, data, on_fault);
    let total_len = u32::from(bytes::u16_at(head, field::PAYLOAD_LEN)) + FIXED_LEN as u32;
    if wire_len < total_len {
        return Err(Error::IpTooLong);
    }
    let Ok(header_len) = u16::try_from(chain.len) else {
        return Err(Error::IpHeadersTooLong);
    };
    if u32::from(header_len) > total_len {
        return Err(Error::IpHeadersTooLong);
    }
    let (header, rest) = data.split_at(chain.len);
    let payload_len = total_len - u32::from(header_len);
    let payload = if payload_len == 0 { rest } else { bytes::cut(rest, payload_len as usize) };
    let ip = Ip {
        src: chain.src,
        dst: chain.dst,
        header,
        payload,
        payload_len,
        total_len,
        header_len,
        protocol: chain.next,
        ttl: head[field::HOP_LIMIT],
        version: 6,
        upper: match chain.last {
            protocol::ESP => UpperLayer::Esp,
            protocol::MOBILITY => UpperLayer::Mobility,
            _ => UpperLayer::Payload,
        },
        fragment: (chain.last == protocol::IPV6_FRAGMENT)
            .then(|| fragment(bytes::from(header, chain.last_at))),
    };
    if ip.upper == UpperLayer::Mobility {
        mobility(&ip, bytes::from(header, chain.last_at), verify_checksum, on_fault)?;
    }
    Ok(ip)
}

/// Parses the header of a plain datagram: complete on the wire and without extension headers, as
/// nearly all datagrams are. [`ip`](crate::ip()) reports no fault of it. `None` for all others.
#[inline]
pub(crate) fn plain(data: &[u8], wire_len: u32) -> Option<Ip<'_>> {
    let (header, rest) = data.split_at_checked(FIXED_LEN)?;
    let head: &[u8; FIXED_LEN] = header.first_chunk()?;
    let payload_len = u32::from(bytes::u16_at(head, field::PAYLOAD_LEN));
    let total_len = payload_len + FIXED_LEN as u32;
    let next = head[field::NEXT];
    let is_plain =
        head[0] >> 4 == 6 && payload_len > 0 && total_len <= wire_len && !is_extension(next);
    is_plain.then(|| Ip {
        src: Addr::v6(bytes::array_at(head, field::SRC).unwrap_or_default()),
        dst: Addr::v6(bytes::array_at(head, field::DST).unwrap_or_default()),
        header,
        payload: bytes::cut(rest, payload_len as usize),
        payload_len,
        total_len,
        header_len: FIXED_LEN as u16,
        protocol: next,
        ttl: head[field::HOP_LIMIT],
        version: 6,
        upper: UpperLayer::Payload,
        fragment: None,
    })
}

impl Chain {
    #[inline]
    fn walk(head: &[u8; FIXED_LEN], data: &[u8], on_fault: &mut impl FnMut(Error)) -> Self {
        let mut chain = Self {
            src: Addr::v6(bytes::array_at(head, field::SRC).unwrap_or_default()),
            dst: Addr::v6(bytes::array_at(head, field::DST).unwrap_or_default()),
            len: FIXED_LEN,
            last: protocol::IPV6,
            last_at: 0,
            next: head[field::NEXT],
        };
        if is_extension(chain.next) {
            chain.extensions(data, on_fault);
        }
        chain
    }

    /// Follows the chain until a header is truncated, ends the chain, or is no extension header.
    /// Every header has at least eight bytes, so the length of `data` bounds the loop.
    fn extensions(&mut self, data: &[u8], on_fault: &mut impl FnMut(Error)) {
        let mut home = false;
        let mut routed = false;
        while is_extension(self.next) {
            let rest = bytes::from(data, self.len);
            if rest.len() < 2 {
                return;
            }
            let words = usize::from(rest[ext::LEN]);
            let len = match self.next {
                protocol::IPV6_FRAGMENT => FRAGMENT_LEN,
                // The payload starts after the sequence number; it is encrypted.
                protocol::ESP => 8,
                protocol::AH => 8 + 4 * words,
                _ => 8 + 8 * words,
            };
            let Some(header) = rest.get(..len) else { return };
            self.last = self.next;
            self.last_at = self.len;
            self.len += len;
            self.next = if self.last == protocol::ESP { protocol::NONE } else { header[ext::NEXT] };
            match self.last {
                protocol::IPV6_ROUTING => self.routing(header, &mut routed, on_fault),
                protocol::IPV6_DEST_OPTIONS => self.dest_options(&header[2..], &mut home, on_fault),
                protocol::IPV6_FRAGMENT | protocol::ESP | protocol::MOBILITY => return,
                _ => {}
            }
        }
    }

    /// If segments are left, the last address of a known routing type is the destination.
    fn routing(&mut self, header: &[u8], routed: &mut bool, on_fault: &mut impl FnMut(Error)) {
        if *routed {
            // RFC 8200 §4.1: at most one routing header.
            return on_fault(self.fault(Ipv6Fault::SecondRouting));
        }
        let len = header[ext::LEN];
        let left = header[ext::SEGMENTS_LEFT] > 0;
        let last = header.last_chunk::<16>().map(|a| Addr::v6(*a));
        match header[ext::ROUTING_TYPE] {
            0 => {
                if left && len >= 2 {
                    if len.is_multiple_of(2) {
                        self.route_to(last, routed);
                    } else {
                        on_fault(self.fault(Ipv6Fault::OddRouting0Len));
                    }
                }
                // Deprecated by RFC 5095.
                on_fault(self.fault(Ipv6Fault::Routing0));
            }
            2 if left && len == 2 => self.route_to(last, routed),
            2 if left => on_fault(self.fault(Ipv6Fault::Routing2Len)),
            2 => {}
            other => on_fault(self.fault(Ipv6Fault::UnknownRouting(other))),
        }
    }

    fn route_to(&mut self, last: Option<Addr>, routed: &mut bool) {
        if let Some(last) = last {
            self.dst = last;
            *routed = true;
        }
    }

    fn dest_options(
        &mut self,
        mut options: &[u8],
        home: &mut bool,
        on_fault: &mut impl FnMut(Error),
    ) {
        while let Some((&kind, rest)) = options.split_first() {
            // Pad1 has neither length nor data.
            if kind == 0 {
                options = rest;
                continue;
            }
            let split = rest.split_first().and_then(|(l, r)| r.split_at_checked(usize::from(*l)));
            let Some((value, rest)) = split else {
                return on_fault(self.fault(Ipv6Fault::DestOptionLen));
            };
            options = rest;
            if kind != HOME_ADDRESS {
                continue;
            }
            match <[u8; 16]>::try_from(value) {
                Err(_) => on_fault(self.fault(Ipv6Fault::HomeAddressLen)),
                Ok(_) if *home => on_fault(self.fault(Ipv6Fault::SecondHomeAddress)),
                Ok(addr) => {
                    self.src = Addr::v6(addr);
                    *home = true;
                }
            }
        }
    }

    fn fault(&self, fault: Ipv6Fault) -> Error {
        Error::Ipv6(fault, (self.src, self.dst))
    }
}

#[inline]
fn is_extension(next: u8) -> bool {
    matches!(
        next,
        protocol::IPV6_HOP_BY_HOP
            | protocol::IPV6_ROUTING
            | protocol::IPV6_DEST_OPTIONS
            | protocol::IPV6_FRAGMENT
            | protocol::AH
            | protocol::ESP
            | protocol::MOBILITY
    )
}

fn fragment(header: &[u8]) -> Fragment {
    let field = bytes::u16_at(header, ext::FRAGMENT_OFFSET);
    Fragment {
        id: bytes::u32_at(header, ext::FRAGMENT_ID),
        offset: u32::from(field & 0xfff8),
        more: field & 1 != 0,
        dont_fragment: false,
    }
}

/// RFC 6275 §6.1.1: verifies the checksum with its pseudo header, and that no header follows.
#[cold]
fn mobility(
    ip: &Ip<'_>,
    header: &[u8],
    verify_checksum: bool,
    on_fault: &mut impl FnMut(Error),
) -> Result<(), Error> {
    let hosts = (ip.src, ip.dst);
    if verify_checksum {
        let mut sum = Sum::default();
        sum.add_pseudo(ip.src, ip.dst, protocol::MOBILITY, header.len() as u32);
        sum.add(header);
        if !sum.fits() {
            return Err(Error::Ipv6(Ipv6Fault::MobilityChecksum, hosts));
        }
    }
    if ip.protocol != protocol::NONE {
        on_fault(Error::Ipv6(Ipv6Fault::MobilityPayload, hosts));
    }
    Ok(())
}

/// Reports the faults of the headers of an inner packet. The check of a tunnel's inner packet calls
/// this once, before the packet is [parsed](parse).
pub(crate) fn report_faults(data: &[u8], on_fault: &mut impl FnMut(Error)) {
    if let Some(head) = data.first_chunk::<FIXED_LEN>() {
        Chain::walk(head, data, on_fault);
    }
}

/// The protocol after the extension headers of a packet, and the packet's length by the fixed
/// header.
pub(crate) fn outline(data: &[u8]) -> (u8, usize) {
    let Some(head) = data.first_chunk::<FIXED_LEN>() else { return (protocol::NONE, 0) };
    let chain = Chain::walk(head, data, &mut |_| {});
    let total_len = usize::from(bytes::u16_at(head, field::PAYLOAD_LEN)) + FIXED_LEN;
    (chain.next, total_len.saturating_sub(chain.len))
}

pub(crate) fn write_reassembled_header(
    header: &[u8],
    next: u8,
    payload_len: usize,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let kept = header.len().saturating_sub(FRAGMENT_LEN);
    out.extend_from_slice(bytes::cut(header, kept));
    // The field has sixteen bits: the length of a longer datagram is truncated.
    let len = (kept + payload_len).saturating_sub(FIXED_LEN) as u16;
    write_field(out, start, field::PAYLOAD_LEN..field::PAYLOAD_LEN + 2, &len.to_be_bytes());
    // The header before the fragment header gets the Next Header value of the fragment header.
    let mut at = field::NEXT;
    let mut end = FIXED_LEN;
    while end < kept {
        let here = bytes::from(header, end);
        let words = usize::from(bytes::u8_at(here, ext::LEN));
        let kind = bytes::u8_at(header, at);
        at = end + ext::NEXT;
        end += if kind == protocol::AH { 8 + 4 * words } else { 8 + 8 * words };
    }
    write_field(out, start, at..at + 1, &[next]);
}

#[cfg(test)]
mod tests {
    use crate::ip;
    use crate::ip_with;

    use super::*;

    /// A packet from 2001:db8::1 to 2001:db8::2 with this Next Header value and these bytes after
    /// the fixed header.
    fn packet(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60, 0, 0, 0];
        p.extend_from_slice(&(rest.len() as u16).to_be_bytes());
        p.extend_from_slice(&[next, 64]);
        for last in [1, 2] {
            p.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        p.extend_from_slice(rest);
        p
    }

    fn faults(p: &[u8]) -> Vec<Ipv6Fault> {
        let mut faults = Vec::new();
        let mut push = |error| match error {
            Error::Ipv6(fault, _) => faults.push(fault),
            other => panic!("{other}"),
        };
        ip_with(p, p.len() as u32, false, &mut push).unwrap();
        faults
    }

    fn home(addr_len: u8) -> Vec<u8> {
        let mut o = vec![HOME_ADDRESS, addr_len];
        o.extend(std::iter::repeat_n(9, usize::from(addr_len)));
        o
    }

    #[test]
    fn plain() {
        let p = packet(17, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let v = ip(&p, 48, true).unwrap();
        assert_eq!((v.version, v.protocol, v.ttl, v.header_len), (6, 17, 64, 40));
        assert_eq!((v.total_len, v.payload_len, v.payload), (48, 8, &p[40..]));
        assert_eq!(ip(&p[..39], 48, true).unwrap_err(), Error::Truncated(Layer::Ip));
        assert_eq!(ip(&p, 47, true).unwrap_err(), Error::IpTooLong);
    }

    #[test]
    fn hop_by_hop_then_authentication_then_tcp() {
        let mut rest = vec![protocol::AH, 0, 1, 4, 0, 0, 0, 0];
        rest.extend_from_slice(&[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        rest.extend_from_slice(&[0xaa; 20]);
        let p = packet(protocol::IPV6_HOP_BY_HOP, &rest);
        let v = ip(&p, p.len() as u32, true).unwrap();
        assert_eq!((v.protocol, v.header_len, v.payload_len), (6, 60, 20));
        assert_eq!(v.payload, &[0xaa; 20]);
    }

    #[test]
    fn a_header_cut_off_ends_the_chain_before_it() {
        let p = packet(protocol::IPV6_HOP_BY_HOP, &[6, 3, 0, 0, 0, 0, 0, 0]);
        let v = ip(&p, p.len() as u32, true).unwrap();
        assert_eq!((v.protocol, v.header_len), (protocol::IPV6_HOP_BY_HOP, 40));
    }

    #[test]
    fn headers_beyond_the_payload_length_are_invalid() {
        let mut p = packet(protocol::IPV6_HOP_BY_HOP, &[6, 0, 1, 4, 0, 0, 0, 0]);
        p[5] = 0;
        assert_eq!(ip(&p, p.len() as u32, false).unwrap_err(), Error::IpHeadersTooLong);
    }

    #[test]
    fn routing_headers_change_the_destination() {
        let mut r0 = vec![17, 2, 0, 1, 0, 0, 0, 0];
        r0.extend_from_slice(&[5; 16]);
        r0.extend_from_slice(&[0; 8]);
        let p = packet(protocol::IPV6_ROUTING, &r0);
        assert_eq!(ip(&p, p.len() as u32, true).unwrap().dst, Addr::v6([5; 16]));
        assert_eq!(faults(&p), [Ipv6Fault::Routing0]);
        let mut arrived = p.clone();
        arrived[43] = 0;
        assert_eq!(ip(&arrived, p.len() as u32, true).unwrap().dst.octets()[15], 2);
        let mut odd = vec![17, 3, 0, 1];
        odd.extend_from_slice(&[0; 28]);
        assert_eq!(
            faults(&packet(protocol::IPV6_ROUTING, &odd)),
            [Ipv6Fault::OddRouting0Len, Ipv6Fault::Routing0]
        );
        assert_eq!(
            faults(&packet(protocol::IPV6_ROUTING, &[59, 0, 2, 1, 0, 0, 0, 0])),
            [Ipv6Fault::Routing2Len]
        );
        assert_eq!(
            faults(&packet(protocol::IPV6_ROUTING, &[59, 0, 4, 1, 0, 0, 0, 0])),
            [Ipv6Fault::UnknownRouting(4)]
        );
        r0[0] = protocol::IPV6_ROUTING;
        r0.truncate(24);
        r0.extend_from_slice(&[59, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            faults(&packet(protocol::IPV6_ROUTING, &r0)),
            [Ipv6Fault::Routing0, Ipv6Fault::SecondRouting]
        );
    }

    #[test]
    fn home_addresses() {
        let mut d = vec![59, 2, 1, 2, 0, 0];
        d.extend_from_slice(&home(16));
        let p = packet(protocol::IPV6_DEST_OPTIONS, &d);
        assert_eq!(ip(&p, p.len() as u32, true).unwrap().src, Addr::v6([9; 16]));
        let mut twice = vec![59, 4];
        twice.extend_from_slice(&home(16));
        twice.extend_from_slice(&home(16));
        twice.extend_from_slice(&[1, 0]);
        assert_eq!(
            faults(&packet(protocol::IPV6_DEST_OPTIONS, &twice)),
            [Ipv6Fault::SecondHomeAddress]
        );
        let mut short = vec![59, 0];
        short.extend_from_slice(&home(4));
        assert_eq!(
            faults(&packet(protocol::IPV6_DEST_OPTIONS, &short)),
            [Ipv6Fault::HomeAddressLen]
        );
        let over = [59, 0, 1, 9, 0, 0, 0, 0];
        assert_eq!(faults(&packet(protocol::IPV6_DEST_OPTIONS, &over)), [Ipv6Fault::DestOptionLen]);
    }

    #[test]
    fn fragments_and_their_reassembled_header() {
        let mut rest = vec![protocol::IPV6_FRAGMENT, 0, 1, 4, 0, 0, 0, 0];
        rest.extend_from_slice(&[17, 0, 0x01, 0x09, 0xde, 0xad, 0xbe, 0xef]);
        rest.extend_from_slice(&[3; 16]);
        let p = packet(protocol::IPV6_HOP_BY_HOP, &rest);
        let v = ip(&p, p.len() as u32, true).unwrap();
        let f = Fragment { id: 0xdead_beef, offset: 0x108, more: true, dont_fragment: false };
        assert_eq!((v.fragment, v.payload_len, v.protocol), (Some(f), 16, 17));
        let mut whole = Vec::new();
        v.write_reassembled_header(50, &mut whole);
        whole.extend_from_slice(&[4; 50]);
        let w = ip(&whole, whole.len() as u32, true).unwrap();
        assert_eq!((w.fragment, w.protocol, w.header_len, w.payload.len()), (None, 17, 48, 50));
        whole.clear();
        v.write_reassembled_header(65_528, &mut whole);
        assert_eq!(whole[4..6], [0, 0], "sixteen bits");
    }

    #[test]
    fn encryption_and_mobility_end_the_chain() {
        let p = packet(protocol::ESP, &[0, 0, 0, 1, 0, 0, 0, 2, 9, 9, 9, 9]);
        let v = ip(&p, p.len() as u32, true).unwrap();
        assert_eq!((v.upper, v.protocol, v.header_len), (UpperLayer::Esp, protocol::NONE, 48));
        let mut mh = [59, 0, 5, 0, 0, 0, 0, 0];
        let mut sum = Sum::default();
        sum.add(&packet(0, &[])[8..40]);
        sum.add(&[0, 0, 0, 8, 0, 0, 0, protocol::MOBILITY]);
        sum.add(&mh);
        mh[4..6].copy_from_slice(&sum.checksum());
        let p = packet(protocol::MOBILITY, &mh);
        assert_eq!(ip(&p, p.len() as u32, true).unwrap().upper, UpperLayer::Mobility);
        let mut bad = p.clone();
        bad[47] ^= 1;
        let error = ip(&bad, p.len() as u32, true).unwrap_err();
        assert_eq!(error, Error::Ipv6(Ipv6Fault::MobilityChecksum, (v.src, v.dst)));
        bad[40] = 6;
        assert_eq!(faults(&bad), [Ipv6Fault::MobilityPayload]);
    }
}
