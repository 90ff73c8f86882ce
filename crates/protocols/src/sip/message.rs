//! Lines of a message.

/// A request line: `METHOD URI SIP/version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Bytes before the method that cannot be part of a method.
    pub junk: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// The request URI.
    pub uri: &'a [u8],
    /// The version: `2.0`.
    pub version: &'a [u8],
}

/// A status line: `SIP/version code reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// The version: `2.0`.
    pub version: &'a [u8],
    /// Status code of three digits.
    pub code: u16,
    /// Reason phrase.
    pub reason: &'a [u8],
}

/// Whether a byte is a token character (RFC 3261 section 25.1).
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_.!%*+`'~-".contains(&b)
}

fn split(d: &[u8], inside: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let n = d.iter().position(|b| !inside(*b)).unwrap_or(d.len());
    d.split_at(n)
}

fn blanks(d: &[u8]) -> &[u8] {
    split(d, |b| matches!(b, b' ' | b'\t')).1
}

/// The version, like `2.0`, after `SIP/`, and the rest.
fn version(d: &[u8]) -> Option<(&[u8], &[u8])> {
    let number = d.strip_prefix(b"SIP/")?;
    let (major, rest) = split(number, |b| b.is_ascii_digit());
    let (minor, rest) = split(rest.strip_prefix(b".")?, |b| b.is_ascii_digit());
    let is_number = !major.is_empty() && !minor.is_empty();
    is_number.then(|| number.split_at(number.len() - rest.len()))
}

impl<'a> Request<'a> {
    /// Parses a request line.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (junk, rest) = split(line, |b| !is_token(b));
        let (method, rest) = split(rest, is_token);
        let (uri, rest) = split(blanks(rest), |b| b.is_ascii_graphic());
        let (version, _) = version(blanks(rest))?;
        (!method.is_empty() && !uri.is_empty()).then_some(Self { junk, method, uri, version })
    }
}

impl<'a> Status<'a> {
    /// Parses a status line.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (version, rest) = version(line)?;
        let (digits, rest) = blanks(rest).split_at_checked(3)?;
        let mut code = 0;
        for d in digits {
            code = code * 10 + u16::from(d.is_ascii_digit().then(|| d - b'0')?);
        }
        Some(Self { version, code, reason: blanks(rest) })
    }
}

/// Splits a header line into name and value.
pub fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = split(line, |b| !matches!(b, b':' | b' ' | b'\t'));
    let value = blanks(blanks(rest).strip_prefix(b":")?);
    (!name.is_empty()).then_some((name, value))
}

/// Parses a number like C's `strtoll`: spaces, a sign, digits. Returns whether it is negative, its
/// magnitude, and the rest. Without digits the number is 0, and the rest is the whole value.
fn number(value: &[u8]) -> (bool, u128, &[u8]) {
    let signed = split(value, is_space).1;
    let negative = signed.first() == Some(&b'-');
    let unsigned = signed.strip_prefix(b"+").or(signed.strip_prefix(b"-")).unwrap_or(signed);
    let (digits, rest) = split(unsigned, |b| b.is_ascii_digit());
    let add = |n: u128, d: &u8| n.saturating_mul(10).saturating_add(u128::from(d - b'0'));
    let rest = if digits.is_empty() { value } else { rest };
    (negative, digits.iter().fold(0, add), rest)
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

/// The body length in the digits of the value, truncated to the low 32 bits.
pub fn body_length(value: &[u8]) -> i32 {
    let (negative, n, _) = number(value);
    let n = i64::try_from(n).unwrap_or(if negative { i64::MIN } else { i64::MAX });
    (if negative { n.wrapping_neg() } else { n }) as i32
}

/// Parses a number that is surrounded only by spaces. As in Zeek a negative number is accepted and
/// taken modulo 2^64, and a value of only spaces is 0.
pub fn count(value: &[u8]) -> Option<u64> {
    let (negative, n, rest) = number(value);
    if value.is_empty() || !rest.iter().copied().all(is_space) {
        return None;
    }
    let n = u64::try_from(n).ok();
    Some(n.map_or(u64::MAX, |n| if negative { n.wrapping_neg() } else { n }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let r = Request::parse(b"INVITE sip:bob@example.com SIP/2.0").unwrap();
        assert_eq!(
            (r.junk, r.method, r.uri),
            (&b""[..], &b"INVITE"[..], &b"sip:bob@example.com"[..])
        );
        let r = Request::parse(b"\0\0 ACK  sip:b\tSIP/2.0 x").unwrap();
        assert_eq!((r.junk, r.method), (&b"\0\0 "[..], &b"ACK"[..]));
        assert_eq!(Request::parse(b"INVITE sip:bob@example.com"), None);
        assert_eq!(Request::parse(b"INVITE sip:b SIP/2"), None);
        assert_eq!(Request::parse(b""), None);
    }

    #[test]
    fn statuses() {
        let s = Status::parse(b"SIP/2.0 486 Busy Here");
        assert_eq!(s, Some(Status { version: b"2.0", code: 486, reason: b"Busy Here" }));
        assert_eq!(Status::parse(b"SIP/2.0 48"), None);
        assert_eq!(Status::parse(b"SIP/2.0 48x"), None);
    }

    #[test]
    fn headers() {
        assert_eq!(header(b"Via : x"), Some((&b"Via"[..], &b"x"[..])));
        assert_eq!(header(b"Via"), None);
        assert_eq!(header(b" folded"), None);
    }

    #[test]
    fn lengths() {
        let lengths = [
            (&b" 12 x"[..], 12, None),
            (b"12 \t", 12, Some(12)),
            (b"+7", 7, Some(7)),
            (b"x", 0, None),
            (b"", 0, None),
            (b"-1", -1, Some(u64::MAX)),
            (b"4294967298", 2, Some(4_294_967_298)),
            (b"99999999999999999999999", -1, Some(u64::MAX)),
            (b"5\0", 5, None),
        ];
        for (value, body, n) in lengths {
            assert_eq!((body_length(value), count(value)), (body, n), "{value:?}");
        }
    }
}
