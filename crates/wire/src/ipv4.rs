//! IPv4 (RFC 791).

use std::ops::Range;

use gannet_base::Addr;

use crate::bytes;
use crate::checksum;
use crate::error::Error;
use crate::error::Layer;
use crate::ip::Fragment;
use crate::ip::Ip;
use crate::ip::UpperLayer;

/// Length of a header without options.
pub(crate) const MIN_LEN: usize = 20;

mod field {
    pub(super) const VERSION_IHL: usize = 0;
    pub(super) const TOTAL_LEN: usize = 2;
    pub(super) const ID: usize = 4;
    pub(super) const FLAGS_OFFSET: usize = 6;
    pub(super) const TTL: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const SRC: usize = 12;
    pub(super) const DST: usize = 16;
}

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

#[inline]
pub(crate) fn parse<'a>(
    data: &'a [u8],
    wire_len: u32,
    verify_checksum: bool,
    on_fault: &mut impl FnMut(Error),
) -> Result<Ip<'a>, Error> {
    let Some(head) = data.first_chunk::<MIN_LEN>() else {
        return Err(Error::Truncated(Layer::Ip));
    };
    let stated_len = u32::from(bytes::u16_at(head, field::TOTAL_LEN));
    let mut total_len = stated_len;
    if total_len == 0 {
        let fault = Error::ZeroIpLen;
        if verify_checksum {
            // With segmentation offload, an empty length also makes the checksum wrong.
            return Err(fault);
        }
        on_fault(fault);
        total_len = data.len() as u32;
    }
    if wire_len < total_len {
        return Err(Error::IpTooLong);
    }
    let header_len = usize::from(head[field::VERSION_IHL] & 0x0f) * 4;
    if header_len as u32 > total_len {
        return Err(Error::IpHeadersTooLong);
    }
    if header_len > data.len() {
        return Err(Error::TruncatedIpOptions);
    }
    if header_len < MIN_LEN {
        return Err(Error::IpHeaderTooShort);
    }
    let (header, rest) = data.split_at(header_len);
    let src = addr(head, field::SRC);
    let dst = addr(head, field::DST);
    if verify_checksum && !checksum::fits(header) {
        return Err(Error::IpChecksum((src, dst)));
    }
    let payload_len =
        if stated_len == 0 { rest.len() as u32 } else { total_len - header_len as u32 };
    let payload = if payload_len == 0 { rest } else { bytes::cut(rest, payload_len as usize) };
    let flags = bytes::u16_at(head, field::FLAGS_OFFSET);
    let fragment = (flags & (MORE_FRAGMENTS | OFFSET_MASK) != 0).then(|| Fragment {
        id: u32::from(bytes::u16_at(head, field::ID)),
        offset: u32::from(flags & OFFSET_MASK) * 8,
        more: flags & MORE_FRAGMENTS != 0,
        dont_fragment: flags & DONT_FRAGMENT != 0,
    });
    Ok(Ip {
        src,
        dst,
        header,
        payload,
        payload_len,
        total_len: stated_len,
        header_len: header_len as u16,
        protocol: head[field::PROTOCOL],
        ttl: head[field::TTL],
        version: 4,
        upper: UpperLayer::Payload,
        fragment,
    })
}

/// Parses the header of a plain datagram: complete on the wire, not fragmented, without options,
/// and with a captured header, as nearly all datagrams are. [`ip`](crate::ip()) reports no fault of
/// it. `None` for all others.
#[inline]
pub fn plain(data: &[u8], wire_len: u32, verify_checksum: bool) -> Option<Ip<'_>> {
    let (header, rest) = data.split_at_checked(MIN_LEN)?;
    let head: &[u8; MIN_LEN] = header.first_chunk()?;
    let total_len = u32::from(bytes::u16_at(head, field::TOTAL_LEN));
    let flags = bytes::u16_at(head, field::FLAGS_OFFSET);
    let payload_len = total_len.wrapping_sub(MIN_LEN as u32);
    let is_plain = head[field::VERSION_IHL] == 0x45
        && flags & (MORE_FRAGMENTS | OFFSET_MASK) == 0
        && total_len > MIN_LEN as u32
        && total_len <= wire_len
        && (!verify_checksum || checksum::fits(header));
    is_plain.then(|| Ip {
        src: addr(head, field::SRC),
        dst: addr(head, field::DST),
        header,
        payload: bytes::cut(rest, payload_len as usize),
        payload_len,
        total_len,
        header_len: MIN_LEN as u16,
        protocol: head[field::PROTOCOL],
        ttl: head[field::TTL],
        version: 4,
        upper: UpperLayer::Payload,
        fragment: None,
    })
}

#[inline]
fn addr(head: &[u8; MIN_LEN], at: usize) -> Addr {
    Addr::v4(bytes::array_at(head, at).unwrap_or_default())
}

pub(crate) fn write_reassembled_header(header: &[u8], payload_len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(header);
    // The field has sixteen bits: the length of a longer datagram is truncated.
    let total = (header.len() + payload_len) as u16;
    write_field(out, start, field::TOTAL_LEN..field::TOTAL_LEN + 2, &total.to_be_bytes());
    write_field(out, start, field::FLAGS_OFFSET..field::FLAGS_OFFSET + 2, &[0, 0]);
}

pub(crate) fn write_field(out: &mut [u8], start: usize, field: Range<usize>, value: &[u8]) {
    if let Some(to) = out.get_mut(start + field.start..start + field.end) {
        to.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use crate::ip;
    use crate::ip_with;

    use super::*;

    /// 192.0.2.1 → 192.0.2.2, UDP, identification 1, eight bytes of payload.
    fn datagram() -> Vec<u8> {
        let mut d =
            vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0xf6, 0xcc, 192, 0, 2, 1, 192, 0, 2, 2];
        d.extend_from_slice(&[0, 53, 4, 210, 0, 8, 0, 0]);
        d
    }

    fn error(data: &[u8], wire_len: u32, verify: bool) -> Error {
        ip(data, wire_len, verify).unwrap_err()
    }

    #[test]
    fn reads_every_field() {
        let d = datagram();
        let v = ip(&d, 28, true).unwrap();
        assert_eq!(v.src, Addr::v4([192, 0, 2, 1]));
        assert_eq!(v.dst, Addr::v4([192, 0, 2, 2]));
        assert_eq!((v.version, v.protocol, v.ttl), (4, 17, 64));
        assert_eq!((v.header_len, v.total_len, v.payload_len), (20, 28, 8));
        assert_eq!(v.payload, &d[20..]);
        assert_eq!(v.fragment, None);
    }

    #[test]
    fn trailing_padding_is_no_payload() {
        let mut d = datagram();
        d.extend_from_slice(&[0; 18]);
        assert_eq!(ip(&d, 46, true).unwrap().payload.len(), 8);
        // A header whose lengths are all zero is rejected.
        d[3] = 20;
        let v = ip(&d, 46, false).unwrap();
        assert_eq!((v.payload.len(), v.payload_len, v.transport_len()), (26, 0, 26));
    }

    #[test]
    fn checks_come_in_order() {
        let d = datagram();
        assert_eq!(error(&d[..19], 28, false), Error::Truncated(Layer::Ip));
        assert_eq!(error(&[0x35; 40], 40, false), Error::UnknownVersion(Layer::Ip, 3));
        assert_eq!(error(&d, 27, false), Error::IpTooLong);
        let with = |at: usize, b: u8| {
            let mut d = datagram();
            d[at] = b;
            d
        };
        assert_eq!(error(&with(0, 0x4f), 28, false), Error::IpHeadersTooLong);
        let mut long = with(0, 0x4f);
        long[3] = 80;
        assert_eq!(error(&long, 80, false), Error::TruncatedIpOptions);
        assert_eq!(error(&with(0, 0x44), 28, false), Error::IpHeaderTooShort);
        assert_eq!(
            error(&with(8, 63), 28, true),
            Error::IpChecksum((Addr::v4([192, 0, 2, 1]), Addr::v4([192, 0, 2, 2])))
        );
        assert!(ip(&with(8, 63), 28, false).is_ok());
    }

    #[test]
    fn a_zeroed_length_is_taken_for_the_captured_one() {
        let mut d = datagram();
        d[3] = 0;
        assert_eq!(error(&d, 28, true), Error::ZeroIpLen);
        let mut names = Vec::new();
        let v = ip_with(&d, 28, false, &mut |w| names.push(w)).unwrap();
        assert_eq!(names, [Error::ZeroIpLen]);
        assert_eq!((v.total_len, v.payload_len, v.payload.len()), (0, 8, 8));
    }

    #[test]
    fn fragments_and_their_reassembled_header() {
        let mut d = datagram();
        d[6..8].copy_from_slice(&[0x60, 0x02]);
        let v = ip(&d, 28, false).unwrap();
        let f = Fragment { id: 1, offset: 16, more: true, dont_fragment: true };
        assert_eq!(v.fragment, Some(f));
        let mut whole = Vec::new();
        v.write_reassembled_header(100, &mut whole);
        whole.extend_from_slice(&[7; 100]);
        let w = ip(&whole, 120, false).unwrap();
        assert_eq!((w.fragment, w.total_len, w.payload.len()), (None, 120, 100));
        whole.clear();
        v.write_reassembled_header(65_536 + 80, &mut whole);
        assert_eq!(whole[2..4], [0, 100], "sixteen bits");
        // The Don't Fragment bit alone does not make a fragment.
        d[6..8].copy_from_slice(&[0x40, 0]);
        assert_eq!(ip(&d, 28, false).unwrap().fragment, None);
    }

    #[test]
    fn a_cut_capture_keeps_the_length_on_the_wire() {
        let d = datagram();
        let v = ip(&d[..22], 28, true).unwrap();
        assert_eq!((v.payload.len(), v.payload_len), (2, 8));
        assert!(!v.is_complete());
    }
}
