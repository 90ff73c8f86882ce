//! The subset of ASN.1's basic encoding rules (X.690) that messages need.

use std::borrow::Cow;

use crate::support::Bytes;

/// Error of a malformed message, as a reason for analyzer.log.
pub(super) type Malformed = &'static str;

/// Text of a message. In octet strings, `?` replaces octets that are not printable ASCII.
pub(super) type Text<'a> = Cow<'a, [u8]>;

/// Maximum nesting depth of values.
pub(super) const MAX_DEPTH: u8 = 32;

pub(super) const SEQUENCE: u8 = 16;

pub(super) const TRUNCATED: Malformed = "truncated message";

/// The tag and the content of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    /// 0 universal, 1 application, 2 context, 3 private.
    pub(super) class: u8,
    pub(super) number: u8,
    pub(super) content: &'a [u8],
}

/// Returns the length of the message at the start of the data, or the number of bytes needed to determine it.
/// Invalid data has the length at which it is recognized.
pub(super) fn length(d: &[u8]) -> usize {
    if d.first().is_some_and(|tag| tag & 0xdf != SEQUENCE) {
        return 1;
    }
    let [_, first, rest @ ..] = d else { return 2 };
    let n = usize::from(first & 0x7f);
    if first & 0x80 == 0 {
        return 2 + n;
    }
    match rest.get(..n) {
        Some(l) if n <= 8 => {
            let len = l.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
            usize::try_from(len).unwrap_or(usize::MAX).saturating_add(2 + n)
        }
        // The length is invalid: parsing fails.
        _ if n > 8 => 2,
        _ => 2 + n,
    }
}

/// Reads the tag and the length of a value.
pub(super) fn head(b: &mut Bytes<'_>) -> Result<(u8, u64), Malformed> {
    let tag = b.u8().ok_or(TRUNCATED)?;
    let first = b.u8().ok_or(TRUNCATED)?;
    if first & 0x80 == 0 {
        return Ok((tag, u64::from(first)));
    }
    let bytes = b.take(usize::from(first & 0x7f)).ok_or(TRUNCATED)?;
    if !matches!(bytes.len(), 1..=8) {
        return Err("unsupported length encoding");
    }
    Ok((tag, bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))))
}

/// Reads a value.
pub(super) fn value<'a>(b: &mut Bytes<'a>) -> Result<Value<'a>, Malformed> {
    let (tag, len) = head(b)?;
    let content = b.take(usize::try_from(len).map_err(|_| TRUNCATED)?).ok_or(TRUNCATED)?;
    Ok(Value { class: tag >> 6, number: tag & 0x1f, content })
}

impl<'a> Value<'a> {
    pub(super) fn integer(self) -> Result<i64, Malformed> {
        if self.class != 0 || !matches!(self.number, 2 | 10) {
            return Err("expected an integer");
        }
        if !matches!(self.content.len(), 1..=8) {
            return Err("unsupported size of an integer");
        }
        let sign = match self.content.first() {
            Some(0x80..) => -1,
            _ => 0,
        };
        Ok(self.content.iter().fold(sign, |n, b| n << 8 | i64::from(*b)))
    }

    pub(super) fn small(self) -> Result<u8, Malformed> {
        u8::try_from(self.integer()?).map_err(|_| "number out of range")
    }

    /// Returns a string of any ASN.1 type as text.
    pub(super) fn text(self) -> Result<Text<'a>, Malformed> {
        match (self.class, self.number) {
            (0, 4) => Ok(ascii(self.content)),
            (0, 6) => Ok(Cow::Owned(oid(self.content))),
            (0, 12 | 18..=30) => Ok(Cow::Borrowed(self.content)),
            _ => Err("expected a string"),
        }
    }

    pub(super) fn universal(self, number: u8) -> Result<&'a [u8], Malformed> {
        if self.class == 0 && self.number == number {
            Ok(self.content)
        } else {
            Err("unexpected kind of value")
        }
    }

    /// Checks that all nested values are complete and have a length that their type allows.
    pub(super) fn check(self, depth: u8) -> Result<(), Malformed> {
        if self.class != 0 || !matches!(self.number, 16 | 17) {
            let is_invalid = match (self.class, self.number, self.content.len()) {
                (0, 1, n) => n != 1,
                (0, 2 | 10, n) => !matches!(n, 1..=8),
                (0, 3 | 6, n) => n == 0,
                (0, 5, n) => n != 0,
                _ => false,
            };
            return if is_invalid { Err("value of an odd length") } else { Ok(()) };
        }
        if depth >= MAX_DEPTH {
            return Err("values nested too deeply");
        }
        let mut b = Bytes(self.content);
        while !b.is_empty() {
            value(&mut b)?.check(depth + 1)?;
        }
        Ok(())
    }
}

/// Converts octets to printable ASCII.
pub(super) fn ascii(bytes: &[u8]) -> Text<'_> {
    let printable = |b: &u8| matches!(b, b' '..=b'~');
    if bytes.iter().all(printable) {
        Cow::Borrowed(bytes)
    } else {
        bytes.iter().map(|b| if printable(b) { *b } else { b'?' }).collect()
    }
}

/// Formats an object identifier in dotted notation.
pub(super) fn oid(content: &[u8]) -> Vec<u8> {
    let Some((first, rest)) = content.split_first() else { return Vec::new() };
    let mut out = format!("{}.{}", first / 40, first % 40);
    let mut n = 0_u64;
    for b in rest {
        n = n << 7 | u64::from(b & 0x7f);
        if b & 0x80 == 0 {
            out += &format!(".{n}");
            n = 0;
        }
    }
    out.into_bytes()
}
