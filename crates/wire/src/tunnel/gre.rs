//! GRE (RFC 2784, RFC 2890), with Ethernet, ERSPAN and Aruba payloads, and the enhanced GRE of
//! PPTP (RFC 2637).

use super::Inner;
use super::ip_in_ip_with;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::protocol;

/// Length of flags, version and protocol.
const MIN_LEN: usize = 4;
const ETHERNET_LEN: usize = 14;
/// Length of the ERSPAN header of type II, and of type III with and without its platform-specific
/// subheader.
const ERSPAN_2_LEN: usize = 8;
const ERSPAN_3_LEN: usize = 12;
const ERSPAN_3_SUB_LEN: usize = 8;
/// Length of the PPP header in enhanced GRE.
const PPP_LEN: usize = 4;

mod flag {
    pub(super) const CHECKSUM: u16 = 0x8000;
    pub(super) const ROUTING: u16 = 0x4000;
    pub(super) const KEY: u16 = 0x2000;
    pub(super) const SEQUENCE: u16 = 0x1000;
    pub(super) const ACK: u16 = 0x0080;
    pub(super) const RESERVED: u16 = 0x0078;
    pub(super) const VERSION: u16 = 0x0007;
}

/// A GRE packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gre<'a> {
    /// 0, or 1 for the enhanced GRE of PPTP.
    pub version: u8,
    /// The protocol type: an EtherType or one of its extensions.
    pub protocol: u16,
    /// The key, if present; in version 1, payload length and call id.
    pub key: Option<u32>,
    /// The payload. In version 0, a payload announced as IP is not checked.
    pub inner: Inner<'a>,
}

/// Parses a GRE packet: an IP payload of protocol 47, or a UDP payload to port 4754. Addresses in
/// an error are those of the enclosing IP header.
///
/// # Errors
/// The fault that stops the dissection; for version 1 also those of [`ip_in_ip`](super::ip_in_ip()).
pub fn gre(data: &[u8]) -> Result<Gre<'_>, Error> {
    gre_with(data, &mut |_| {})
}

/// Like [`gre`], and reports the faults of IPv6 extension headers in version 1 to `on_fault`.
///
/// # Errors
/// As [`gre`].
pub fn gre_with<'a>(data: &'a [u8], on_fault: &mut impl FnMut(Error)) -> Result<Gre<'a>, Error> {
    let truncated = Error::Truncated(Layer::Gre);
    if data.len() < MIN_LEN {
        return Err(truncated);
    }
    let flags = bytes::u16_at(data, 0);
    let kind = bytes::u16_at(data, 2);
    let version = flags & flag::VERSION;
    let len = header_len(flags);
    let carried = match version {
        0 => carried(data, flags, kind, len).ok_or(truncated)?,
        1 if kind == 0x880b => Carried { skip: PPP_LEN, need: 0, payload: Payload::Ppp },
        1 => return Err(Error::EnhancedGreType(kind)),
        other => return Err(Error::UnknownVersion(Layer::Gre, other as u8)),
    };
    if flags & flag::ROUTING != 0 {
        return Err(Error::GreRouting);
    }
    if flags & flag::RESERVED != 0 {
        return Err(Error::GreFlags);
    }
    let start = len + carried.skip;
    if data.len() < start + carried.need {
        return Err(truncated);
    }
    let payload = bytes::from(data, start);
    let inner = match carried.payload {
        Payload::Ip => Inner::Ip(payload),
        Payload::Ethernet => Inner::Ethernet(payload),
        Payload::Ieee80211 => Inner::Ieee80211(payload),
        Payload::Ppp => {
            let protocol = match bytes::u16_at(data, len + 2) {
                0x0021 => protocol::IPV4,
                0x0057 => protocol::IPV6,
                _ => return Err(Error::GreWithoutIp),
            };
            Inner::Ip(ip_in_ip_with(payload, protocol, on_fault)?)
        }
    };
    let key_at = if flags & flag::CHECKSUM != 0 { MIN_LEN + 4 } else { MIN_LEN };
    let key = (flags & flag::KEY != 0).then(|| bytes::u32_at(data, key_at));
    Ok(Gre { version: version as u8, protocol: kind, key, inner })
}

/// Length of the header with the optional fields that the flags announce. Routing is deprecated and
/// rejected, so its length does not matter.
fn header_len(flags: u16) -> usize {
    let optional = [flag::CHECKSUM, flag::KEY, flag::SEQUENCE, flag::ACK];
    MIN_LEN + 4 * optional.iter().filter(|f| flags & **f != 0).count()
}

enum Payload {
    Ip,
    Ethernet,
    Ieee80211,
    Ppp,
}

/// The payload type of a GRE header, the number of bytes to skip, and the minimum number of bytes
/// after them.
struct Carried {
    skip: usize,
    need: usize,
    payload: Payload,
}

/// The payload of version 0; `None` if it is truncated.
fn carried(data: &[u8], flags: u16, kind: u16, len: usize) -> Option<Carried> {
    let ethernet = |skip, more_than: usize| {
        let fits = data.len() > len + more_than;
        fits.then_some(Carried { skip, need: ETHERNET_LEN, payload: Payload::Ethernet })
    };
    match kind {
        0x6558 => ethernet(0, ETHERNET_LEN),
        // Type II has a sequence number and a header, type I has neither.
        0x88be if flags & flag::SEQUENCE != 0 => {
            ethernet(ERSPAN_2_LEN, ERSPAN_2_LEN + ETHERNET_LEN - 1)
        }
        0x88be => ethernet(0, ETHERNET_LEN),
        0x22eb => {
            let last = data.get(len + ERSPAN_3_LEN - 1)?;
            let sub = if last & 1 == 1 { ERSPAN_3_SUB_LEN } else { 0 };
            ethernet(ERSPAN_3_LEN + sub, ERSPAN_3_LEN + sub + ETHERNET_LEN)
        }
        _ if is_aruba(kind) => {
            (data.len() > len).then_some(Carried { skip: 0, need: 0, payload: Payload::Ieee80211 })
        }
        _ => Some(Carried { skip: 0, need: 0, payload: Payload::Ip }),
    }
}

/// Protocol types that Aruba access points use for mirrored frames.
fn is_aruba(kind: u16) -> bool {
    kind == 0x9000 || (kind & 0x8200 == 0x8200 && kind & 0x000f == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flags: u16, kind: u16, rest: &[u8]) -> Vec<u8> {
        let mut p = flags.to_be_bytes().to_vec();
        p.extend_from_slice(&kind.to_be_bytes());
        p.extend_from_slice(rest);
        p
    }

    fn error(p: &[u8]) -> Error {
        gre(p).unwrap_err()
    }

    fn v4() -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 20];
        p.resize(20, 0);
        p
    }

    #[test]
    fn ip_with_optional_fields() {
        let p = packet(0xb000, 0x0800, &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0x45, 9]);
        let g = gre(&p).unwrap();
        assert_eq!((g.version, g.protocol, g.key), (0, 0x0800, Some(7)));
        assert_eq!(g.inner, Inner::Ip(&[0x45, 9]));
        assert_eq!(error(&p[..15]), Error::Truncated(Layer::Gre));
        assert_eq!(error(&p[..3]), Error::Truncated(Layer::Gre));
    }

    #[test]
    fn ethernet_and_erspan() {
        let inner = |p: &[u8]| gre(p).unwrap().inner.data().len();
        assert_eq!(inner(&packet(0, 0x6558, &[1; 15])), 15);
        assert_eq!(error(&packet(0, 0x6558, &[1; 14])), Error::Truncated(Layer::Gre));
        assert_eq!(inner(&packet(0, 0x88be, &[1; 15])), 15);
        assert_eq!(inner(&packet(0x1000, 0x88be, &[1; 4 + 8 + 14])), 14);
        assert_eq!(error(&packet(0x1000, 0x88be, &[1; 4 + 8 + 13])), Error::Truncated(Layer::Gre));
        assert_eq!(inner(&packet(0, 0x22eb, &[0; 12 + 15])), 15);
        assert_eq!(inner(&packet(0, 0x22eb, &[1; 12 + 8 + 15])), 15);
        assert_eq!(error(&packet(0, 0x22eb, &[1; 12 + 8 + 14])), Error::Truncated(Layer::Gre));
        assert!(matches!(gre(&packet(0, 0x6558, &[1; 15])).unwrap().inner, Inner::Ethernet(_)));
    }

    #[test]
    fn aruba_is_ieee80211() {
        for kind in [0x8200, 0x8210, 0x82f0, 0x8300, 0x8370, 0x9000] {
            assert_eq!(gre(&packet(0, kind, &[1])).unwrap().inner, Inner::Ieee80211(&[1]));
        }
        assert_eq!(gre(&packet(0, 0x8201, &[1])).unwrap().inner, Inner::Ip(&[1]));
        assert_eq!(error(&packet(0, 0x8200, &[])), Error::Truncated(Layer::Gre));
    }

    #[test]
    fn pptp() {
        let mut rest = vec![0, 24, 0, 1, 0xff, 3, 0, 0x21];
        rest.extend_from_slice(&v4());
        let p = packet(0x2001, 0x880b, &rest);
        assert_eq!(gre(&p).unwrap().inner, Inner::Ip(&v4()));
        assert_eq!(error(&p[..31]), Error::InnerVersion);
        let mut longer = p.clone();
        longer[15] = 21;
        assert_eq!(error(&longer), Error::InnerTooShort);
        assert_eq!(error(&packet(0x2001, 0x0800, &rest)), Error::EnhancedGreType(0x0800));
        rest[6] = 0xc0;
        assert_eq!(error(&packet(0x2001, 0x880b, &rest)), Error::GreWithoutIp);
    }

    #[test]
    fn rejected_headers() {
        assert_eq!(error(&packet(0x0002, 0x0800, &v4())), Error::UnknownVersion(Layer::Gre, 2));
        assert_eq!(error(&packet(0x4000, 0x0800, &v4())), Error::GreRouting);
        assert_eq!(error(&packet(0x0008, 0x0800, &v4())), Error::GreFlags);
    }
}
