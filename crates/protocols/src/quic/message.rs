//! Packets and frames (RFC 9000 sections 17 and 19).

use crate::support::Bytes;

/// Version 2 (RFC 9369), whose packet types have other numbers.
pub const VERSION_2: u32 = 0x6b33_43cf;

/// Reason why a datagram is malformed.
pub type Malformed = &'static str;

/// Minimum length of an Initial packet after its token, in bytes: a packet number of four bytes and
/// a sample (RFC 9001 section 5.4.2).
const MIN_PROTECTED: u64 = 20;
/// Length of a Retry packet's integrity tag, in bytes (RFC 9001 section 5.8).
pub(super) const RETRY_TAG: usize = 16;

/// A packet, as far as it is not protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A packet with a short header, on an established connection.
    Short,
    /// A packet with a long header, during the handshake.
    Long(LongHeader<'a>),
    /// A long header of an unknown version; only its connection ids can be parsed.
    UnknownVersion(LongHeader<'a>),
    /// A packet without the fixed bit (RFC 9000 section 17.2), which is ignored.
    NotQuic,
}

/// A long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// Version.
    pub version: u32,
    /// Destination connection id.
    pub destination: &'a [u8],
    /// Source connection id.
    pub source: &'a [u8],
    /// Packet type.
    pub kind: Kind,
}

/// Types of packets with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Initial: the first packets of each side. Everything after `number_at` bytes is protected.
    Initial {
        /// Offset of the packet number in the packet, in bytes.
        number_at: usize,
    },
    /// 0-RTT: early data of the client.
    ZeroRtt,
    /// Handshake: the rest of the TLS handshake.
    Handshake,
    /// Retry: the server requests a new Initial packet with a token.
    Retry,
}

/// Parses the first packet of a datagram and returns it with its length in bytes. `short_id` is the
/// length of the destination id in short headers, which do not contain it.
///
/// # Errors
/// If it is truncated.
pub fn packet(data: &[u8], short_id: usize) -> Result<(Packet<'_>, usize), Malformed> {
    let mut b = Bytes(data);
    let first = b.u8().ok_or("empty packet")?;
    if first & 0x40 == 0 {
        return Ok((Packet::NotQuic, data.len()));
    }
    if first & 0x80 == 0 {
        b.take(short_id).ok_or("truncated short header")?;
        return Ok((Packet::Short, data.len()));
    }
    let cut = "truncated long header";
    let version = b.u32().ok_or(cut)?;
    let destination = id(&mut b).ok_or(cut)?;
    let source = id(&mut b).ok_or(cut)?;
    let mut long = LongHeader { version, destination, source, kind: Kind::Retry };
    if !is_known(version) {
        return Ok((Packet::UnknownVersion(long), data.len()));
    }
    let kind = first >> 4 & 3;
    match if version == VERSION_2 { kind.wrapping_sub(1) & 3 } else { kind } {
        0 => {
            let token = number(&mut b).ok_or(cut)?;
            take(&mut b, token).ok_or(cut)?;
            let len = number(&mut b).ok_or(cut)?;
            if len < MIN_PROTECTED {
                return Err("Initial packet is too short");
            }
            long.kind = Kind::Initial { number_at: data.len() - b.0.len() };
            take(&mut b, len).ok_or("truncated Initial packet")?;
        }
        1 | 2 => {
            long.kind = if kind == 1 + u8::from(version == VERSION_2) {
                Kind::ZeroRtt
            } else {
                Kind::Handshake
            };
            let len = number(&mut b).ok_or(cut)?;
            take(&mut b, len).ok_or("truncated packet")?;
        }
        _ => {
            b.take(RETRY_TAG).ok_or("Retry packet is too short")?;
            b.rest();
        }
    }
    Ok((Packet::Long(long), data.len() - b.0.len()))
}

/// Whether packets of a version can be parsed.
pub fn is_known(version: u32) -> bool {
    matches!(
        version,
        1 | VERSION_2
            | 0xff00_0016..=0xff00_0022
            | 0xface_b001 | 0xface_b002 | 0xface_b00e | 0xface_b011..=0xface_b013
    )
}

fn id<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let len = b.u8()?;
    b.take(usize::from(len))
}

/// Reads an integer of one, two, four or eight bytes, given by its two highest bits (RFC 9000
/// section 16).
pub fn number(b: &mut Bytes<'_>) -> Option<u64> {
    let first = b.u8()?;
    let rest = b.take((1 << (first >> 6)) - 1)?;
    Some(rest.iter().fold(u64::from(first & 0x3f), |n, b| n << 8 | u64::from(*b)))
}

fn take<'a>(b: &mut Bytes<'a>, len: u64) -> Option<&'a [u8]> {
    b.take(usize::try_from(len).ok()?)
}

/// A frame of an Initial packet, except padding, acknowledgements and pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// CRYPTO: a part of the TLS handshake.
    Crypto {
        /// Offset of the part in the handshake stream, in bytes.
        offset: u64,
        /// Data of the part.
        data: &'a [u8],
    },
    /// CONNECTION_CLOSE.
    Close {
        /// Error code.
        error: u64,
        /// Reason phrase.
        reason: &'a [u8],
    },
}

/// Parses the next frame that is not padding, ACK or PING from the payload of an Initial packet
/// (RFC 9000 section 12.4); `None` at the end.
///
/// # Errors
/// If it is truncated, or not allowed in Initial packets.
pub fn frame<'a>(b: &mut Bytes<'a>) -> Result<Option<Frame<'a>>, Malformed> {
    let cut = "truncated frame";
    while let Some(kind) = b.u8() {
        match kind {
            0x00 | 0x01 => {}
            0x02 | 0x03 => ack(b, kind == 0x03).ok_or(cut)?,
            0x06 => {
                let offset = number(b).ok_or(cut)?;
                let len = number(b).ok_or(cut)?;
                let data = take(b, len).ok_or(cut)?;
                return Ok(Some(Frame::Crypto { offset, data }));
            }
            0x1c => {
                let error = number(b).ok_or(cut)?;
                number(b).ok_or(cut)?; // frame type that caused the error
                let reason = number(b).ok_or(cut)?;
                let reason = take(b, reason).ok_or(cut)?;
                return Ok(Some(Frame::Close { error, reason }));
            }
            _ => return Err("frame that Initial packets cannot hold"),
        }
    }
    Ok(None)
}

/// Skips an ACK frame (RFC 9000 section 19.3), with ECN counts if `has_ecn` is true.
fn ack(b: &mut Bytes<'_>, has_ecn: bool) -> Option<()> {
    number(b)?; // largest acknowledged
    number(b)?; // delay
    let ranges = number(b)?;
    number(b)?; // first range
    for _ in 0..ranges {
        // Each range takes at least two bytes, so the loop ends with the packet.
        number(b)?;
        number(b)?;
    }
    for _ in 0..if has_ecn { 3 } else { 0 } {
        number(b)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers() {
        // RFC 9000 appendix A.1.
        let n = |d| number(&mut Bytes(d));
        assert_eq!(n(b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"), Some(151_288_809_941_952_652));
        assert_eq!(n(b"\x9d\x7f\x3e\x7d"), Some(494_878_333));
        assert_eq!(n(b"\x7b\xbd"), Some(15_293));
        assert_eq!(n(b"\x25"), Some(37));
        assert_eq!(n(b"\x40\x25"), Some(37));
        assert_eq!(n(b"\x40"), None);
    }

    fn long(first: u8, version: u32, rest: &[u8]) -> Vec<u8> {
        let mut p = vec![first];
        p.extend(version.to_be_bytes());
        p.extend(b"\x02ab\x01c");
        p.extend(rest);
        p
    }

    fn kind(first: u8, version: u32, rest: &[u8]) -> Result<Kind, Malformed> {
        match packet(&long(first, version, rest), 0)? {
            (Packet::Long(l), _) => {
                assert_eq!((l.version, l.destination, l.source), (version, &b"ab"[..], &b"c"[..]));
                Ok(l.kind)
            }
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn kinds_of_long_headers() {
        let initial = [&b"\x03tok\x14"[..], &[0; 20], b"more"].concat();
        assert_eq!(kind(0xc3, 1, &initial), Ok(Kind::Initial { number_at: 15 }));
        assert_eq!(kind(0xd3, VERSION_2, &initial), Ok(Kind::Initial { number_at: 15 }));
        let (_, used) = packet(&long(0xc3, 1, &initial), 0).unwrap();
        assert_eq!(used, 35, "another packet follows");
        assert_eq!(kind(0xd0, 1, b"\x02xy"), Ok(Kind::ZeroRtt));
        assert_eq!(kind(0xe0, 0xff00_001d, b"\x02xy"), Ok(Kind::Handshake));
        assert_eq!(kind(0xe0, VERSION_2, b"\x02xy"), Ok(Kind::ZeroRtt));
        assert_eq!(kind(0xf0, VERSION_2, b"\x02xy"), Ok(Kind::Handshake));
        assert_eq!(kind(0xf0, 1, &[9; 17]), Ok(Kind::Retry));
        assert_eq!(kind(0xc0, VERSION_2, &[9; 16]), Ok(Kind::Retry));
        assert!(kind(0xf0, 1, &[9; 15]).is_err());
        assert!(kind(0xc3, 1, b"\x00\x13").is_err(), "no room for a sample");
        assert!(kind(0xe0, 1, b"\x03xy").is_err());
    }

    #[test]
    fn other_packets() {
        let unknown = long(0xc3, 0x5130_3433, b"");
        assert!(matches!(packet(&unknown, 0), Ok((Packet::UnknownVersion(l), n))
            if l.destination == b"ab" && n == unknown.len()));
        assert_eq!(packet(b"\x40abcd", 3), Ok((Packet::Short, 5)));
        assert!(packet(b"\x40ab", 3).is_err());
        assert_eq!(packet(b"\x80abcd", 3), Ok((Packet::NotQuic, 5)));
        assert!(packet(b"\xc0\0\0\0\x01\x08short", 0).is_err());
    }

    #[test]
    fn frames() {
        let all = b"\0\0\x01\x02\x05\x00\x01\x02\x00\x01\x03\x05\0\0\0\x01\x02\x03\
            \x06\x04\x02hi\0\x1c\x0a\x00\x03bye\0";
        let mut b = Bytes(all);
        assert_eq!(frame(&mut b), Ok(Some(Frame::Crypto { offset: 4, data: b"hi" })));
        assert_eq!(frame(&mut b), Ok(Some(Frame::Close { error: 10, reason: b"bye" })));
        assert_eq!(frame(&mut b), Ok(None));
        assert!(frame(&mut Bytes(b"\x08\x00")).is_err(), "data of streams comes later");
        assert!(frame(&mut Bytes(b"\x06\x00\x05hi")).is_err());
        assert!(frame(&mut Bytes(b"\x02\0\0\xbf\xff\xff\xff\0\0")).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..80), v2: bool) {
            let _ = packet(&data, 8);
            let whole = long(0xc0 | data.first().copied().unwrap_or(0),
                if v2 { VERSION_2 } else { 1 }, &data);
            if let Ok((_, used)) = packet(&whole, 8) {
                prop_assert!(used > 0 && used <= whole.len());
            }
            let mut b = Bytes(&data);
            while let Ok(Some(_)) = frame(&mut b) {}
        }
    }
}
