//! Parsing of the lines of HTTP requests and responses.

/// Returns the first line of a buffer, and the offset of the line after it. A NUL before the line end makes the rest
/// of the buffer unreadable: the result is `None`.
pub(super) fn next(data: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr2(b'\n', 0, data).filter(|end| data[*end] == b'\n')?;
    let line = &data[..end];
    // As in Zeek, the line ends at its last CR.
    let text = memchr::memrchr(b'\r', line).map_or(line, |cr| &line[..cr]);
    Some((text, end + 1))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Number of leading bytes that `is` accepts.
fn prefix_len(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|b| !is(*b)).unwrap_or(text.len())
}

/// A request line with the method GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Get<'a> {
    pub(super) uri: &'a [u8],
    /// Whether the connection is persistent by default, if the line has a version.
    pub(super) keep_alive: Option<bool>,
}

impl<'a> Get<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let (method, rest) = line.split_at_checked(3)?;
        let gap = prefix_len(rest, is_blank);
        let rest = &rest[gap..];
        if !method.eq_ignore_ascii_case(b"GET") || gap == 0 || rest.is_empty() {
            return None;
        }
        let (uri, rest_after_uri) = rest.split_at(prefix_len(rest, |b| !is_blank(b)));
        let version = &rest_after_uri[prefix_len(rest_after_uri, is_blank)..];
        let version = version.split_at_checked(5).filter(|(name, number)| {
            let is_number = !number.is_empty() && number.iter().all(|b| is_version(*b));
            name.eq_ignore_ascii_case(b"HTTP/") && is_number
        });
        Some(match version {
            Some((_, number)) => Self { uri, keep_alive: Some(number.ends_with(b"1")) },
            None => Self { uri: rest, keep_alive: None },
        })
    }
}

fn is_version(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// Parses a status line. Returns the status code, or 0 if it has no digits.
pub(super) fn status(line: &[u8]) -> Option<u64> {
    let (name, rest) = line.split_at_checked(5)?;
    let rest = &rest[prefix_len(rest, is_version)..];
    let number = rest.strip_prefix(b" ").filter(|_| name.eq_ignore_ascii_case(b"HTTP/"))?;
    let number = &number[prefix_len(number, |b| b.is_ascii_whitespace())..];
    let digits = &number[..prefix_len(number, |b| b.is_ascii_digit())];
    let digit = |sum: u64, b: &u8| sum.saturating_mul(10).saturating_add(u64::from(b - b'0'));
    Some(digits.iter().fold(0, digit))
}

/// Splits a header line into name and value.
pub(super) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = prefix_len(line, |b| b != b':' && !is_blank(b));
    let (name, rest) = line.split_at(end);
    let value = rest.strip_prefix(b":").filter(|_| !name.is_empty())?;
    Some((name, &value[prefix_len(value, |b| b == b' ')..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_lf() {
        assert_eq!(next(b"ab\r\ncd"), Some((&b"ab"[..], 4)));
        assert_eq!(next(b"a\rb\rc\n"), Some((&b"a\rb"[..], 6)));
        assert_eq!(next(b"ab"), None);
        assert_eq!(next(b"a\0b\n"), None);
    }

    #[test]
    fn requests_have_a_uri() {
        let get =
            |line, uri, keep_alive| assert_eq!(Get::parse(line), Some(Get { uri, keep_alive }));
        get(b"GET /a HTTP/1.1", b"/a", Some(true));
        get(b"get \t/a  http/1.0", b"/a", Some(false));
        get(b"GET /a HTTP/1.1 x", b"/a HTTP/1.1 x", None);
        get(b"GET /a", b"/a", None);
        assert_eq!(Get::parse(b"GET "), None);
        assert_eq!(Get::parse(b"GETT /a"), None);
        assert_eq!(Get::parse(b"POST /a HTTP/1.1"), None);
    }

    #[test]
    fn responses_have_a_status_and_fields() {
        assert_eq!(status(b"HTTP/1.0 200 OK"), Some(200));
        assert_eq!(status(b"http/ x"), Some(0));
        assert_eq!(status(b"HTTP/1.0"), None);
        assert_eq!(status(b"HTTP/1.0 99999999999999999999"), Some(u64::MAX));
        assert_eq!(field(b"Connection:  close"), Some((&b"Connection"[..], &b"close"[..])));
        assert_eq!(field(b"a:"), Some((&b"a"[..], &b""[..])));
        assert_eq!(field(b":a"), None);
        assert_eq!(field(b"a b: c"), None);
    }
}
