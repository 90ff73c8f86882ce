//! ASN.1 in its basic encoding (ITU-T X.690): tag, length, content.

use super::Bytes;

/// Tag of an integer.
pub const INTEGER: u8 = 0x02;
/// Tag of a string of bytes.
pub const OCTET_STRING: u8 = 0x04;
/// Tag of an object identifier.
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// Tag of a sequence.
pub const SEQUENCE: u8 = 0x30;

/// Tag and length of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The first byte: class, form and number.
    pub tag: u8,
    /// Bytes of content as announced; not checked against anything.
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

/// Reads tag and length. A length of more than eight bytes counts as none.
pub fn head(b: &mut Bytes<'_>) -> Option<Head> {
    let tag = b.u8()?;
    let first = b.u8()?;
    let length = if first & 0x80 == 0 {
        u64::from(first)
    } else {
        unsigned(b.take(usize::from(first & 0x7f))?)
    };
    Some(Head { tag, length })
}

/// Bytes of the length that follows the first tag, where it has more than eight and they are all
/// there: no number can be so long.
pub fn long_length(data: &[u8]) -> Option<usize> {
    let mut b = Bytes(data);
    b.u8()?;
    let n = usize::from(b.u8().filter(|n| *n > 0x88)? & 0x7f);
    b.take(n).map(<[u8]>::len)
}

/// Reads a value: its tag and content.
pub fn value<'a>(b: &mut Bytes<'a>) -> Option<(u8, &'a [u8])> {
    let head = head(b)?;
    let content = b.take(usize::try_from(head.length).ok()?)?;
    Some((head.tag, content))
}

/// Reads the content of a value that must have this tag.
pub fn tagged<'a>(b: &mut Bytes<'a>, tag: u8) -> Option<&'a [u8]> {
    value(b).filter(|(t, _)| *t == tag).map(|(_, content)| content)
}

/// Reads an integer of at most nine bytes, taken as unsigned; nine bytes count as 0.
pub fn integer(b: &mut Bytes<'_>) -> Option<u64> {
    tagged(b, INTEGER).filter(|c| c.len() <= 9).map(unsigned)
}

/// Steps into a sequence: reads its tag and length, leaves its content.
pub fn sequence(b: &mut Bytes<'_>) -> Option<Head> {
    head(b).filter(|h| h.tag == SEQUENCE)
}

/// An unsigned number of up to eight bytes, big-endian; longer ones count as 0.
pub fn unsigned(content: &[u8]) -> u64 {
    if content.len() > 8 {
        return 0;
    }
    content.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let h = |d| head(&mut Bytes(d)).map(|h| (h.tag, h.length));
        assert_eq!(h(b"\x02\x01"), Some((2, 1)));
        assert_eq!(h(b"\x30\x82\x01\x00"), Some((0x30, 256)));
        assert_eq!(h(b"\x30\x82\x01"), None);
        assert_eq!(h(b"\x30\x89\x01\0\0\0\0\0\0\0\0"), Some((0x30, 0)));
        assert_eq!(head(&mut Bytes(b"\xa3\x01")).map(Head::index), Some(3));
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
        assert_eq!(integer(&mut Bytes(b"\x02\x02\x01\x00")), Some(256));
        assert_eq!(integer(&mut Bytes(b"\x02\x0a0123456789")), None);
        assert_eq!(integer(&mut Bytes(b"\x04\x01\x00")), None);
        assert_eq!(value(&mut Bytes(b"\x04\x03ab")), None);
        assert_eq!(value(&mut Bytes(b"\x04\xff")), None);
        assert_eq!(tagged(&mut Bytes(b"\x04\x02ab"), OCTET_STRING), Some(&b"ab"[..]));
    }
}
