//! ASN.1 in Basic Encoding Rules (ITU-T X.690): tag, length, content.

use super::Bytes;
use super::OutOfBound;
use super::RecordBounds;
use super::RecordFault;

/// Tag of an integer.
pub const INTEGER: u8 = 0x02;
/// Tag of an octet string.
pub const OCTET_STRING: u8 = 0x04;
/// Tag of an object identifier.
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// Tag of a sequence.
pub const SEQUENCE: u8 = 0x30;

/// Tag and length of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The first byte: class, form and tag number.
    pub tag: u8,
    /// Length of the content according to the header; not checked against the data.
    pub length: u64,
}

impl Head {
    /// Number of a context-specific constructed tag (`[n]`), as used for the fields of a
    /// sequence; wraps for other tags.
    pub fn index(self) -> u8 {
        self.tag.wrapping_sub(0xa0)
    }

    /// The tag's number within its class.
    pub fn number(self) -> u8 {
        self.tag & 0x1f
    }
}

/// A parsed value, or its fault.
pub type Result<T> = std::result::Result<T, RecordFault>;

/// Parses tag and length. A length of more than eight bytes counts as 0.
pub fn head(b: &mut Bytes<'_>) -> Result<Head> {
    const RECORD: &str = "ASN1EncodingMeta";
    let &[tag, first, ref rest @ ..] = b.0 else {
        return Err(OutOfBound::new(RECORD, "len", 2, b.0.len()).into());
    };
    let more = if first & 0x80 == 0 { 0 } else { usize::from(first & 0x7f) };
    let Some((more, rest)) = rest.split_at_checked(more) else {
        return Err(OutOfBound::new(RECORD, "more_len", 2 + more as i64, b.0.len()).into());
    };
    b.0 = rest;
    let length = if first & 0x80 == 0 { u64::from(first) } else { unsigned(more) };
    Ok(Head { tag, length })
}

/// Number of bytes of the length after the first tag, if there are more than eight and all are
/// available: such a length cannot be represented.
pub fn long_length(data: &[u8]) -> Option<usize> {
    let mut b = Bytes(data);
    b.u8()?;
    let n = usize::from(b.u8().filter(|n| *n > 0x88)? & 0x7f);
    b.take(n).map(<[u8]>::len)
}

/// Parses a value: its tag and content.
pub fn value<'a>(b: &mut Bytes<'a>) -> Result<(u8, &'a [u8])> {
    let within = RecordBounds::new("ASN1Encoding", b);
    let head = head(b)?;
    let content = within.part(b, "content", head.length)?;
    Ok((head.tag, content))
}

/// Parses the content of a value that must have this tag.
pub fn tagged<'a>(b: &mut Bytes<'a>, tag: u8) -> Result<&'a [u8]> {
    match value(b)? {
        (t, content) if t == tag => Ok(content),
        (got, _) => Err(RecordFault::Tag { got, expect: tag }),
    }
}

/// Maximum length of an integer, in bytes: an unsigned 64-bit integer whose first bit is set.
const MAX_INTEGER: usize = 9;

/// Parses the bytes of an integer, at most nine.
pub fn number<'a>(b: &mut Bytes<'a>) -> Result<&'a [u8]> {
    let content = tagged(b, INTEGER)?;
    if content.len() > MAX_INTEGER {
        return Err(RecordFault::Wide(content.len()));
    }
    Ok(content)
}

/// Parses an integer of at most nine bytes as unsigned; nine bytes count as 0.
pub fn integer(b: &mut Bytes<'_>) -> Result<u64> {
    number(b).map(unsigned)
}

/// Enters a sequence: parses its tag and length, and leaves its content.
pub fn sequence(b: &mut Bytes<'_>) -> Result<Head> {
    match head(b)? {
        head if head.tag == SEQUENCE => Ok(head),
        head => Err(RecordFault::Tag { got: head.tag, expect: SEQUENCE }),
    }
}

/// Decodes an unsigned big-endian integer of up to eight bytes; longer ones count as 0.
pub fn unsigned(content: &[u8]) -> u64 {
    if content.len() > 8 {
        return 0;
    }
    content.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an error, without Zeek's common prefix.
    fn error_text<T>(r: Result<T>) -> String {
        super::super::error_text(r.err().unwrap())
    }

    #[test]
    fn heads() {
        let h = |d| head(&mut Bytes(d)).map(|h| (h.tag, h.length));
        assert_eq!(h(b"\x02\x01"), Ok((2, 1)));
        assert_eq!(h(b"\x30\x82\x01\x00"), Ok((0x30, 256)));
        assert_eq!(
            error_text(h(b"\x30\x82\x01")),
            "out_of_bound: ASN1EncodingMeta:more_len: 4 > 3"
        );
        assert_eq!(error_text(h(b"\x30")), "out_of_bound: ASN1EncodingMeta:len: 2 > 1");
        assert_eq!(h(b"\x30\x89\x01\0\0\0\0\0\0\0\0"), Ok((0x30, 0)));
        assert_eq!(head(&mut Bytes(b"\xa3\x01")).map(Head::index), Ok(3));
    }

    #[test]
    fn lengths_of_lengths() {
        assert_eq!(long_length(b"\x30\x89123456789"), Some(9));
        assert_eq!(long_length(b"\x30\x8912345678"), None);
        assert_eq!(long_length(b"\x30\x8812345678"), None);
        assert_eq!(long_length(b"\x30\x7f"), None);
    }

    #[test]
    fn values() {
        assert_eq!(integer(&mut Bytes(b"\x02\x02\x01\x00")), Ok(256));
        let wide = integer(&mut Bytes(b"\x02\x0a0123456789"));
        assert_eq!(error_text(wide), "ASN.1 integer width overflow: 10");
        let other = integer(&mut Bytes(b"\x04\x01\x00"));
        assert_eq!(error_text(other), "Got ASN.1 tag 4, expect 2");
        let short = |d| error_text(value(&mut Bytes(d)));
        assert_eq!(short(b"\x04\x03ab"), "out_of_bound: ASN1Encoding:content: 5 > 4");
        assert_eq!(short(b"\x04\x84\xff\xff\xff\xff"), "out_of_bound: ASN1Encoding:content: 5 > 6");
        assert_eq!(tagged(&mut Bytes(b"\x04\x02ab"), OCTET_STRING), Ok(&b"ab"[..]));
        assert_eq!(error_text(sequence(&mut Bytes(b"\x31\0"))), "Got ASN.1 tag 49, expect 48");
    }
}
