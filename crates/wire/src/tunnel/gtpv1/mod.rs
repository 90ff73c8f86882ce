//! GTP version 1 (3GPP TS 29.060, TS 29.281): user packets and control messages.

mod elements;

pub use elements::Element;
pub use elements::elements;

use super::Inner;
use super::Refusal;
use super::ip_in_ip::NotIp;
use super::ip_in_ip::fit;
use crate::bytes;
use crate::error::Error;
use crate::protocol;

/// Length of the fixed header, and of the optional fields, which are present if any of three flags
/// is set.
const LEN: usize = 8;
const OPTIONAL_LEN: usize = 4;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const MESSAGE: usize = 1;
    pub(super) const LENGTH: usize = 2;
    pub(super) const TEID: usize = 4;
    pub(super) const SEQUENCE: usize = 8;
    pub(super) const N_PDU: usize = 10;
    pub(super) const NEXT: usize = 11;
}

mod flag {
    pub(super) const PROTOCOL_TYPE: u8 = 0x10;
    pub(super) const EXTENSION: u8 = 0x04;
    pub(super) const SEQUENCE: u8 = 0x02;
    pub(super) const N_PDU: u8 = 0x01;
    pub(super) const OPTIONAL: u8 = EXTENSION | SEQUENCE | N_PDU;
}

/// Message types that are dissected: requests and responses that create, update or delete PDP
/// contexts, and user packets.
const CONTROL: std::ops::RangeInclusive<u8> = 16..=21;
const G_PDU: u8 = 255;

/// A GTPv1 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gtpv1<'a> {
    /// The first byte: version (three bits), protocol type, a reserved bit, and the flags for
    /// extension headers, sequence number and N-PDU number.
    pub flags: u8,
    /// The optional fields, present if any of the last three flags is set.
    pub optional: Option<Optional>,
    /// Message type; 255 is a G-PDU, which carries a packet.
    pub message: u8,
    /// The length field: number of bytes after the first eight.
    pub length: u16,
    /// Tunnel endpoint identifier.
    pub teid: u32,
    /// Sequence number, if its flag is set.
    pub sequence: Option<u16>,
    /// N-PDU number, if its flag is set.
    pub n_pdu: Option<u8>,
    /// Type of the first extension header, if the flag is set.
    pub extension: Option<u8>,
    /// Length of all headers.
    pub header_len: usize,
    /// The bytes after the headers.
    pub body: Body<'a>,
}

/// Header fields that are present together, even if only one of them is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optional {
    /// Sequence number.
    pub sequence: u16,
    /// N-PDU number.
    pub n_pdu: u8,
    /// Type of the first extension header.
    pub next: u8,
}

/// The contents of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A user packet: always IP, of the length that its header states.
    Packet(Inner<'a>),
    /// The information elements of a dissected control message: input of [`elements`].
    Control(&'a [u8]),
    /// Any other message.
    Other(&'a [u8]),
}

/// Parses a UDP payload as GTPv1. The caller must reject a G-PDU inside of a GTP tunnel: GTP is
/// never tunneled in GTP.
///
/// # Errors
/// A violation if the payload is not GTPv1 or carries no valid packet, and [`Refusal::Ignored`] for
/// GTP' (charging), which shares the header.
pub fn gtpv1(data: &[u8]) -> Result<Gtpv1<'_>, Refusal<'_>> {
    gtpv1_with(data, &mut |_| {})
}

/// Like [`gtpv1`], and reports the faults of the inner packet's IPv6 extension headers to `on_fault`.
///
/// # Errors
/// As [`gtpv1`].
pub fn gtpv1_with<'a>(
    data: &'a [u8],
    on_fault: &mut impl FnMut(Error),
) -> Result<Gtpv1<'a>, Refusal<'a>> {
    let message = gtpv1_message(data)?;
    if let Body::Packet(inner) = message.body {
        packet(inner.data(), on_fault)?;
    }
    Ok(message)
}

/// Like [`gtpv1`], without checking the inner packet.
///
/// # Errors
/// Those of [`gtpv1`], except those of the inner packet.
pub fn gtpv1_message(data: &[u8]) -> Result<Gtpv1<'_>, Refusal<'_>> {
    if data.len() < LEN {
        return Err(Refusal::out_of_bound("GTPv1_Header:teid", LEN as i64, data.len()));
    }
    let flags = bytes::u8_at(data, field::FLAGS);
    let message = bytes::u8_at(data, field::MESSAGE);
    let mut header_len = LEN;
    if flags & flag::OPTIONAL != 0 {
        header_len += OPTIONAL_LEN;
        if data.len() < header_len {
            let have = data.len() - LEN;
            return Err(Refusal::out_of_bound("GTPv1_Opt_Header", OPTIONAL_LEN as i64, have));
        }
    }
    let mut rest = bytes::from(data, header_len);
    if flags & flag::EXTENSION != 0 {
        let after = extensions(rest)?;
        header_len += rest.len() - after.len();
        rest = after;
    }
    if CONTROL.contains(&message) {
        elements::check(rest)?;
    }
    if flags >> 5 != 1 {
        return Err(Refusal::violation("GTPv1 bad Version", &[]));
    }
    if flags & flag::PROTOCOL_TYPE == 0 {
        return Err(Refusal::Ignored);
    }
    let body = match message {
        G_PDU => Body::Packet(Inner::Ip(rest)),
        _ if CONTROL.contains(&message) => Body::Control(rest),
        _ => Body::Other(rest),
    };
    let given = |f: u8| flags & f != 0;
    let optional = flags & flag::OPTIONAL != 0;
    Ok(Gtpv1 {
        flags,
        optional: optional.then(|| Optional {
            sequence: bytes::u16_at(data, field::SEQUENCE),
            n_pdu: bytes::u8_at(data, field::N_PDU),
            next: bytes::u8_at(data, field::NEXT),
        }),
        message,
        length: bytes::u16_at(data, field::LENGTH),
        teid: bytes::u32_at(data, field::TEID),
        sequence: given(flag::SEQUENCE).then(|| bytes::u16_at(data, field::SEQUENCE)),
        n_pdu: given(flag::N_PDU).then(|| bytes::u8_at(data, field::N_PDU)),
        extension: given(flag::EXTENSION).then(|| bytes::u8_at(data, field::NEXT)),
        header_len,
        body,
    })
}

/// Skips extension headers: a length in words, contents, and the type of the next header. Stops at
/// the last extension header, or at the end of the data.
fn extensions(mut rest: &[u8]) -> Result<&[u8], Refusal<'_>> {
    while let Some(words) = rest.first() {
        // Without the bytes for length and type.
        let len = i64::from(*words) * 4 - 2;
        let have = rest.len();
        let contents = || Refusal::out_of_bound("GTPv1_Ext_Header:contents", len + 1, have);
        let end = 1 + usize::try_from(len).map_err(|_| contents())?;
        if end > have {
            return Err(contents());
        }
        let Some(next) = rest.get(end) else {
            return Err(Refusal::out_of_bound("GTPv1_Ext_Header:next_type", len + 2, have));
        };
        rest = &rest[end + 1..];
        if *next == 0 {
            break;
        }
    }
    Ok(rest)
}

fn packet<'a>(data: &'a [u8], on_fault: &mut impl FnMut(Error)) -> Result<Inner<'a>, Refusal<'a>> {
    if data.len() < 20 {
        return Err(Refusal::violation("Truncated GTPv1", &[]));
    }
    let version = match bytes::u8_at(data, 0) >> 4 {
        4 => protocol::IPV4,
        6 => protocol::IPV6,
        _ => return Err(Refusal::violation("non-IP packet in GTPv1", &[])),
    };
    let reason = match fit(data, version, on_fault) {
        Ok(()) => return Ok(Inner::Ip(data)),
        Err(NotIp::Version) => "Invalid IP version in wrapped packet",
        Err(NotIp::Short) => "Truncated GTPv1",
        Err(NotIp::Long) => "GTPv1 payload length",
    };
    Err(Refusal::violation(reason, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::Reason;

    fn v4(len: u8) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, len];
        p.resize(usize::from(len), 0);
        p
    }

    fn message(flags: u8, kind: u8, rest: &[u8]) -> Vec<u8> {
        let mut p = vec![flags, kind, 0, rest.len() as u8, 0, 0, 0, 9];
        p.extend_from_slice(rest);
        p
    }

    fn reason(data: &[u8]) -> String {
        match gtpv1(data) {
            Err(Refusal::Violation { reason: Reason::Text(t), .. }) => t.into(),
            Err(Refusal::Violation { reason, .. }) => {
                reason.to_string().rsplit("out_of_bound: ").next().unwrap().into()
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn user_packets() {
        let p = message(0x30, 255, &v4(24));
        let g = gtpv1(&p).unwrap();
        assert_eq!((g.message, g.teid, g.length, g.header_len), (255, 9, 24, 8));
        assert_eq!(g.body, Body::Packet(Inner::Ip(&v4(24))));
        assert_eq!((g.sequence, g.n_pdu, g.extension), (None, None, None));
        assert_eq!((g.flags, g.optional), (0x30, None));
    }

    #[test]
    fn optional_fields_and_extension_headers() {
        let mut rest = vec![0, 7, 0, 0x85];
        rest.extend_from_slice(&[1, 1, 2, 0xc0, 2, 0, 0, 0, 0, 0, 0, 0]);
        rest.extend_from_slice(&v4(20));
        let p = message(0x36, 255, &rest);
        let g = gtpv1(&p).unwrap();
        assert_eq!((g.sequence, g.n_pdu, g.extension), (Some(7), None, Some(0x85)));
        assert_eq!(g.optional, Some(Optional { sequence: 7, n_pdu: 0, next: 0x85 }));
        assert_eq!((g.header_len, g.body), (24, Body::Packet(Inner::Ip(&v4(20)))));
    }

    #[test]
    fn rejected_messages() {
        assert_eq!(reason(&[0x30; 6]), "GTPv1_Header:teid: 8 > 6");
        assert_eq!(reason(&message(0x32, 255, &[0; 3])), "GTPv1_Opt_Header: 4 > 3");
        let cut = message(0x34, 255, &[0, 0, 0, 1, 2, 0]);
        assert_eq!(reason(&cut), "GTPv1_Ext_Header:contents: 7 > 2");
        let zero = message(0x34, 255, &[0, 0, 0, 1, 0, 0]);
        assert_eq!(reason(&zero), "GTPv1_Ext_Header:contents: -1 > 2");
        let cut = message(0x34, 255, &[0, 0, 0, 1, 1, 7, 7]);
        assert_eq!(reason(&cut), "GTPv1_Ext_Header:next_type: 4 > 3");
        // Extension headers that are missing end the chain like the last one.
        assert_eq!(reason(&message(0x34, 255, &[0, 0, 0, 1])), "Truncated GTPv1");
        assert_eq!(reason(&message(0x48, 32, &[])), "GTPv1 bad Version");
        assert_eq!(reason(&message(0x30, 255, &v4(20)[..19])), "Truncated GTPv1");
        assert_eq!(reason(&message(0x30, 255, &[0; 20])), "non-IP packet in GTPv1");
        let mut long = message(0x30, 255, &v4(24));
        assert_eq!(reason(&long[..31]), "Truncated GTPv1");
        long.push(0);
        assert_eq!(reason(&long), "GTPv1 payload length");
        assert_eq!(gtpv1(&message(0x20, 255, &v4(20))), Err(Refusal::Ignored));
    }

    #[test]
    fn control_messages() {
        let p = message(0x30, 16, &[14, 3, 131, 0, 2, 8, 9]);
        let Body::Control(body) = gtpv1(&p).unwrap().body else { panic!("no control") };
        let got: Vec<_> = elements(body).collect();
        assert_eq!(got[0], Element { kind: 14, value: &[3] });
        assert_eq!(got[1], Element { kind: 131, value: &[8, 9] });
        assert_eq!(reason(&message(0x30, 16, &[131, 0, 2, 8])), "AP_Name:value: 2 > 1");
        let echo = message(0x30, 1, &[1, 2]);
        assert_eq!(gtpv1(&echo).unwrap().body, Body::Other(&[1, 2]));
    }
}
