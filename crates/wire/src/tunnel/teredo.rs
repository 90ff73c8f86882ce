//! Teredo (RFC 4380): IPv6 in UDP, with optional authentication and origin headers before it.

use gannet_base::Addr;

use super::Inner;
use super::Reason;
use super::Refusal;
use super::ip_in_ip::NotIp;
use super::ip_in_ip::fit;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::ipv6;
use crate::protocol;

/// Length of an origin indication, and of the fixed parts of an authentication header before and
/// after client identifier and authentication value.
const ORIGIN_LEN: usize = 8;
const AUTH_HEAD_LEN: usize = 4;
const AUTH_TAIL_LEN: usize = 9;
const IPV6_LEN: usize = 40;
/// The prefix of Teredo addresses.
const PREFIX: [u8; 4] = [0x20, 0x01, 0, 0];

/// A Teredo packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teredo<'a> {
    /// The IPv6 packet.
    pub inner: Inner<'a>,
    /// The authentication header, if present.
    pub authentication: Option<Authentication<'a>>,
    /// The origin indication, if present.
    pub origin: Option<Origin>,
    /// Whether the packet is a bubble: an IPv6 header without a payload.
    pub bubble: bool,
    /// Whether bytes follow a bubble nevertheless.
    pub bubble_with_payload: bool,
}

impl Teredo<'_> {
    /// The fault of an otherwise valid packet: a bubble with a payload.
    pub fn fault(&self) -> Option<Error> {
        self.bubble_with_payload.then_some(Error::TeredoBubblePayload)
    }
}

/// An authentication header (RFC 4380 §5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication<'a> {
    /// Client identifier.
    pub id: &'a [u8],
    /// Authentication value.
    pub value: &'a [u8],
    /// Nonce.
    pub nonce: u64,
    /// Confirmation byte: nonzero if the client must get a new key.
    pub confirmation: u8,
}

/// Address and port of the client as seen by its server (RFC 4380 §5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Address, deobfuscated.
    pub addr: Addr,
    /// UDP port, deobfuscated.
    pub port: u16,
}

/// Parses a UDP payload as Teredo. Faults of invalid headers count only after the protocol was
/// confirmed, by a packet in each direction.
///
/// # Errors
/// A violation: the payload is not Teredo.
pub fn teredo(data: &[u8]) -> Result<Teredo<'_>, Refusal<'_>> {
    teredo_with(data, &mut |_| {})
}

/// Like [`teredo`], and reports the faults of the packet's extension headers to `on_fault`.
///
/// # Errors
/// As [`teredo`].
pub fn teredo_with<'a>(
    data: &'a [u8],
    on_fault: &mut impl FnMut(Error),
) -> Result<Teredo<'a>, Refusal<'a>> {
    let mut rest = data;
    let mut origin = None;
    let mut authentication = None;
    // At most one header of each kind, so at most three iterations.
    let packet = loop {
        let shown = bytes::cut(data, rest.len());
        let bad = |fault: Option<Error>| Refusal::Violation {
            reason: Reason::Text("Bad Teredo encapsulation"),
            data: shown,
            if_confirmed: fault,
        };
        if rest.len() < 2 {
            return Err(bad(Some(Error::Truncated(Layer::Teredo))));
        }
        match bytes::u16_at(rest, 0) {
            0 if origin.is_none() => {
                let Some((head, after)) = rest.split_first_chunk::<ORIGIN_LEN>() else {
                    return Err(bad(Some(Error::TruncatedTeredoOrigin)));
                };
                origin = Some(read_origin(head));
                rest = after;
            }
            1 if origin.is_none() && authentication.is_none() => {
                let Some((header, after)) = read_authentication(rest) else {
                    return Err(bad(Some(Error::TruncatedTeredoAuthentication)));
                };
                authentication = Some(header);
                rest = after;
            }
            0x6000..0x7000 if rest.len() < IPV6_LEN => {
                return Err(bad(Some(Error::TruncatedTeredoIpv6)));
            }
            0x6000..0x7000 => break rest,
            _ => return Err(bad(None)),
        }
    };
    let shown = bytes::cut(data, packet.len());
    let (next, payload_len) = ipv6::outline(packet);
    let bubble = next == protocol::NONE;
    let mut bubble_with_payload = false;
    match fit(packet, protocol::IPV6, on_fault) {
        Ok(()) => {}
        Err(NotIp::Long) if bubble && payload_len == 0 => {
            bubble_with_payload = true;
        }
        Err(NotIp::Long) => return Err(Refusal::violation("Teredo payload length", shown)),
        Err(_) => {
            let reason = "Truncated Teredo or invalid inner IP version";
            return Err(Refusal::violation(reason, shown));
        }
    }
    Ok(Teredo { inner: Inner::Ip(packet), authentication, origin, bubble, bubble_with_payload })
}

fn read_origin(head: &[u8; ORIGIN_LEN]) -> Origin {
    let addr = !bytes::u32_at(head, 4);
    Origin { addr: Addr::v4(addr.to_be_bytes()), port: !bytes::u16_at(head, 2) }
}

fn read_authentication(data: &[u8]) -> Option<(Authentication<'_>, &[u8])> {
    let (head, rest) = data.split_first_chunk::<AUTH_HEAD_LEN>()?;
    let (id, rest) = rest.split_at_checked(usize::from(head[2]))?;
    let (value, rest) = rest.split_at_checked(usize::from(head[3]))?;
    let (tail, rest) = rest.split_first_chunk::<AUTH_TAIL_LEN>()?;
    let nonce = u64::from_be_bytes(bytes::array_at(tail, 0)?);
    Some((Authentication { id, value, nonce, confirmation: tail[8] }, rest))
}

/// Whether a UDP payload may be valid for [`teredo`], on any port: it is IPv6 between Teredo addresses, or begins with a
/// Teredo header. A quick check. IPv6 without Teredo addresses is excluded, because short DNS messages look like it.
#[inline]
pub fn may_be_teredo(data: &[u8]) -> bool {
    if data.len() < IPV6_LEN {
        return false;
    }
    match data {
        [0x60..0x70, ..] => [8, 24].iter().any(|at| bytes::array_at(data, *at) == Some(PREFIX)),
        [0, 0 | 1, ..] => true,
        _ => false,
    }
}

/// Whether a UDP payload on any port looks like Teredo: IPv6 between Teredo addresses, or Teredo
/// headers followed by IPv6.
pub fn looks_like_teredo(data: &[u8]) -> bool {
    if !may_be_teredo(data) {
        return false;
    }
    let mut tag = match (bytes::u8_at(data, 0), bytes::u8_at(data, 1)) {
        (0, second) => u16::from(second),
        _ => return true,
    };
    let mut rest = data;
    if tag == 1 {
        let ids = usize::from(bytes::u8_at(data, 2)) + usize::from(bytes::u8_at(data, 3));
        rest = bytes::from(data, AUTH_HEAD_LEN + AUTH_TAIL_LEN + ids);
        if rest.len() < IPV6_LEN {
            return false;
        }
        tag = bytes::u16_at(rest, 0);
    }
    let inner = bytes::from(rest, ORIGIN_LEN);
    tag == 0 && inner.len() >= IPV6_LEN && bytes::u8_at(inner, 0) >> 4 == 6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        p.extend_from_slice(&[0x20, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        p.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        p.extend_from_slice(payload);
        p
    }

    const ORIGIN: [u8; 8] = [0, 0, 0xff, 0xca, 0x3f, 0xff, 0xfd, 0xfe];
    const AUTH: [u8; 16] = [0, 1, 1, 2, 7, 8, 8, 0, 0, 0, 0, 0, 0, 0, 5, 1];

    fn reason(data: &[u8]) -> (String, usize, Option<Error>) {
        match teredo(data) {
            Err(Refusal::Violation { reason, data, if_confirmed }) => {
                (reason.to_string(), data.len(), if_confirmed)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn headers_before_the_packet() {
        let inner = v6(17, &[1; 8]);
        let data = [&AUTH[..], &ORIGIN, &inner].concat();
        let t = teredo(&data).unwrap();
        assert_eq!(t.inner, Inner::Ip(&inner));
        assert_eq!(t.origin, Some(Origin { addr: Addr::v4([192, 0, 2, 1]), port: 53 }));
        let a = t.authentication.unwrap();
        assert_eq!((a.id, a.value, a.nonce, a.confirmation), (&[7][..], &[8, 8][..], 5, 1));
        assert!(!t.bubble);
    }

    #[test]
    fn bubbles() {
        let mut data = v6(59, &[]);
        assert!(teredo(&data).unwrap().bubble);
        data.push(0);
        assert_eq!(teredo(&data).unwrap().fault().unwrap(), Error::TeredoBubblePayload);
    }

    #[test]
    fn payloads_that_are_not_teredo() {
        let bad = |n, w| ("Bad Teredo encapsulation".to_string(), n, w);
        assert_eq!(reason(&[0]), bad(1, Some(Error::Truncated(Layer::Teredo))));
        assert_eq!(reason(&ORIGIN[..7]), bad(7, Some(Error::TruncatedTeredoOrigin)));
        assert_eq!(reason(&AUTH[..15]), bad(15, Some(Error::TruncatedTeredoAuthentication)));
        assert_eq!(reason(&v6(17, &[])[..39]), bad(39, Some(Error::TruncatedTeredoIpv6)));
        assert_eq!(reason(&[0x45; 40]), bad(40, None));
        assert_eq!(reason(&[ORIGIN, ORIGIN].concat()), bad(8, None));
        let mut long = v6(17, &[1; 8]);
        long.push(0);
        assert_eq!(reason(&long).0, "Teredo payload length");
        let cut = v6(17, &[1; 8]);
        assert_eq!(reason(&cut[..45]).0, "Truncated Teredo or invalid inner IP version");
    }

    #[test]
    fn is_recognised_on_any_port() {
        assert!(looks_like_teredo(&v6(17, &[])));
        assert!(looks_like_teredo(&[&ORIGIN[..], &v6(17, &[])].concat()));
        assert!(looks_like_teredo(&[&AUTH[..], &ORIGIN, &v6(17, &[])].concat()));
        assert!(!looks_like_teredo(&[&AUTH[..], &v6(17, &[])].concat()));
        let mut elsewhere = v6(17, &[]);
        elsewhere[9] = 2;
        assert!(!looks_like_teredo(&elsewhere));
        assert!(!looks_like_teredo(&[0; 60]));
        assert!(!looks_like_teredo(&[]));
    }
}
