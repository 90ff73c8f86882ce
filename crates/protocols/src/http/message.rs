//! Parsing of request lines, status lines and the header values that the analyzer uses.

use std::borrow::Cow;

use super::syntax::is_blank;
use super::syntax::is_token;
use super::syntax::is_uri;
use super::syntax::skip_blanks;

/// Names of weirds.
pub type WeirdNames = Vec<&'static str>;

/// `HTTP/major.minor`; 0.0 if it is invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Digit before the dot.
    pub major: u8,
    /// Digit after the dot.
    pub minor: u8,
}

impl Version {
    /// No version, or an invalid one.
    pub const NONE: Self = Self { major: 0, minor: 0 };
    /// The version of a request line without a version.
    pub const V0_9: Self = Self { major: 0, minor: 9 };
    /// The first version with chunked bodies.
    pub const V1_1: Self = Self { major: 1, minor: 1 };

    /// The version as logs have it.
    pub fn text(self) -> [u8; 3] {
        [b'0' + self.major, b'.', b'0' + self.minor]
    }

    /// The version as events have it, a decimal number such as 1.1.
    pub fn number(self) -> f64 {
        f64::from(self.major) + f64::from(self.minor) / 10.0
    }

    /// Whether connections are persistent by default.
    pub fn persistent(self) -> bool {
        self.major > 1 || (self.major == 1 && self.minor > 0)
    }

    /// Parses the text after `HTTP/`.
    fn parse(data: &[u8]) -> Self {
        match data {
            [major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9', ..] => {
                Self { major: major - b'0', minor: minor - b'0' }
            }
            _ => Self::NONE,
        }
    }
}

/// A request line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method as sent.
    pub method: &'a [u8],
    /// The target as sent.
    pub target: &'a [u8],
    /// The target with its `%` escapes decoded.
    pub uri: Cow<'a, [u8]>,
    /// Weirds of the escapes.
    pub weirds: WeirdNames,
}

/// A line in the position of a request line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// The request, if it is one.
    pub request: Option<Request<'a>>,
    /// The version; `None` if the line has none, so that the previous version stays valid.
    pub version: Option<Version>,
    /// Errors of the version, in order: the type of the event, and its detail.
    pub faults: Vec<(&'static str, &'a [u8])>,
}

/// A status line (RFC 9112 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusLine<'a> {
    /// The version.
    pub version: Version,
    /// The code; 0 if it is not a number of three digits.
    pub code: u16,
    /// The reason phrase, if anything follows the code.
    pub reason: Option<&'a [u8]>,
}

/// Type of the event of an invalid version.
pub const BAD_VERSION: &str = "bad_HTTP_version";

/// Prefix of a version.
pub const KEYWORD: &[u8] = b"HTTP/";

/// Whether a character may be in a method: those of a token (RFC 9110 section 5.6.2) without braces.
fn is_method_char(c: u8) -> bool {
    is_token(c) && !matches!(c, b'{' | b'}')
}

fn keyword_any_case(data: &[u8]) -> bool {
    data.get(..KEYWORD.len()).is_some_and(|k| k.eq_ignore_ascii_case(KEYWORD))
}

/// Parses a request line (RFC 9112 section 3), as leniently as servers do.
pub fn request_line<'a>(line: &'a [u8], weirds: &mut WeirdNames) -> RequestLine<'a> {
    let bad = RequestLine { request: None, version: None, faults: Vec::new() };
    let method_len = line.iter().position(|c| !is_method_char(*c)).unwrap_or(line.len());
    if method_len == 0 {
        // A line that ends with " HTTP/1.1" counts as an invalid request with a version.
        let tail = line.len().checked_sub(9).map(|at| &line[at..]);
        let has_version = tail.is_some_and(|t| t[..6].eq_ignore_ascii_case(b" HTTP/"));
        weirds.push(if has_version { "bad_HTTP_request_with_version" } else { "bad_HTTP_request" });
        return bad;
    }
    let (method, rest) = line.split_at(method_len);
    let target = skip_blanks(rest);
    if target.len() == rest.len() {
        weirds.push("bad_HTTP_request");
        return bad;
    }

    let mut uri_end = target.iter().position(|c| !is_uri(*c)).unwrap_or(target.len());
    let starts_with_keyword = keyword_any_case(target);
    if starts_with_keyword && !target.starts_with(KEYWORD) {
        weirds.push("lowercase_HTTP_keyword");
    }
    if uri_end == target.len() && starts_with_keyword {
        weirds.push("missing_HTTP_uri");
        uri_end = 0;
    }

    // The version starts at the keyword; blanks before it belong to the target.
    let mut at = uri_end;
    let mut found = false;
    while at < target.len() {
        uri_end = at;
        at = target.len() - skip_blanks(&target[at..]).len();
        if keyword_any_case(&target[at..]) {
            if !target[at..].starts_with(KEYWORD) {
                weirds.push("lowercase_HTTP_keyword");
            }
            found = true;
            break;
        }
        at += 1;
    }
    let mut faults = Vec::new();
    let version = if !found {
        Some(Version::V0_9)
    } else if at + 8 <= target.len() {
        let text = &target[at + KEYWORD.len()..];
        let version = Version::parse(text);
        if version == Version::NONE {
            faults.push((BAD_VERSION, text));
        }
        if !skip_blanks(&text[3..]).is_empty() {
            faults.push(("crud after HTTP version is ignored", target));
        }
        Some(version)
    } else {
        faults.push((BAD_VERSION, target));
        None
    };
    let target = &target[..uri_end];
    let mut weirds = Vec::new();
    let uri = match memchr::memchr(b'%', target) {
        Some(_) => unescape(target, Some(&mut weirds)).into(),
        None => target.into(),
    };
    RequestLine { request: Some(Request { method, target, uri, weirds }), version, faults }
}

/// Whether a line without a version can be a request of HTTP/0.9, whose only method is `GET`.
pub fn plausible_0_9(request: &Request<'_>) -> bool {
    request.method.len() >= 3 && !request.uri.is_empty()
}

/// Parses a status line. If the code is missing, `Err` contains the version, if present.
pub fn status_line<'a>(
    line: &'a [u8],
    weirds: &mut WeirdNames,
) -> Result<StatusLine<'a>, Option<Version>> {
    if !keyword_any_case(line) {
        return Err(None);
    }
    if !line.starts_with(KEYWORD) {
        weirds.push("lowercase_HTTP_keyword");
    }
    let rest = &line[KEYWORD.len()..];
    let version = Version::parse(rest);
    let Some(n) = rest.iter().position(|c| is_blank(*c)) else { return Err(Some(version)) };
    let rest = skip_blanks(&rest[n..]);
    let Some((digits, rest)) = rest.split_at_checked(3) else { return Err(Some(version)) };
    let code = if digits.iter().all(u8::is_ascii_digit) {
        digits.iter().fold(0, |n, d| n * 10 + u16::from(d - b'0'))
    } else {
        0
    };
    let reason = rest.iter().position(|c| is_blank(*c)).map(|n| skip_blanks(&rest[n..]));
    Ok(StatusLine { version, code, reason })
}

fn hex(c: u8) -> Option<u8> {
    (c as char).to_digit(16).map(|d| d as u8)
}

fn hex_pair(data: &[u8]) -> Option<u8> {
    match data {
        [a, b, ..] => Some(hex(*a)? << 4 | hex(*b)?),
        _ => None,
    }
}

/// Decodes `%xx`, and `%uxxxx`, which some software sends. Invalid escapes are kept and
/// reported in `weirds`.
pub fn unescape(text: &[u8], mut weirds: Option<&mut WeirdNames>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut report = |name| {
        if let Some(weirds) = &mut weirds {
            weirds.push(name);
        }
    };
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest {
            [] => {
                out.push(b'%');
                report("illegal_%_at_end_of_URI");
            }
            [c] => {
                out.extend([b'%', *c]);
                rest = &[];
                report("partial_escape_at_end_of_URI");
            }
            // The first of two `%` is dropped; the second starts another escape.
            [b'%', ..] => report("double_%_in_URI"),
            [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|c| c.is_ascii_hexdigit()) => {
                if (*a, *b) != (b'0', b'0') {
                    out.extend(hex_pair(&rest[1..]));
                }
                out.extend(hex_pair(&rest[3..]));
                rest = &rest[5..];
            }
            [first, ..] => match hex_pair(rest) {
                Some(byte) => {
                    out.push(byte);
                    rest = &rest[2..];
                }
                None => {
                    report("unescaped_%_in_URI");
                    out.extend([b'%', *first]);
                    rest = &rest[1..];
                }
            },
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Parses the number at the start of `text`: an optional minus and digits. `None`
/// without digits, or if it does not fit.
pub fn number(text: &[u8], radix: u32) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut value: Option<i64> = None;
    for &c in digits {
        let Some(d) = (c as char).to_digit(radix) else { break };
        let d = i64::from(d);
        let v = value.unwrap_or(0).checked_mul(i64::from(radix))?;
        value = Some(if negative { v.checked_sub(d)? } else { v.checked_add(d)? });
    }
    value
}

/// A parsed `Content-Range` of bytes (RFC 9110 section 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// Offset of the first byte.
    pub first: i64,
    /// Number of bytes, at least 1.
    pub len: i64,
    /// Total size in bytes; `None` if unknown (`*`), `Err` if invalid.
    pub total: Result<Option<i64>, ()>,
}

/// Error of an invalid `Content-Range`: the name of a weird, and whether its detail is the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRange(pub &'static str, pub bool);

/// Parses the text after `bytes` in a `Content-Range`, from which blanks are already removed.
pub fn content_range(text: &[u8]) -> Result<ContentRange, BadRange> {
    let invalid = BadRange("HTTP_content_range_cannot_parse", false);
    let slash = memchr::memchr(b'/', text).ok_or(invalid)?;
    let (range, total) = (&text[..slash], &text[slash + 1..]);
    let dash = memchr::memchr(b'-', range).ok_or(invalid)?;
    let (Some(first), Some(last)) = (number(&range[..dash], 10), number(&range[dash + 1..], 10))
    else {
        return Err(BadRange(invalid.0, true));
    };
    if first < 0 || last < 0 {
        return Err(BadRange("HTTP_content_range_invalid", true));
    }
    if last < first {
        return Err(BadRange("HTTP_non_positive_content_range", true));
    }
    let len = (last - first).checked_add(1).ok_or(BadRange("HTTP_content_range_overflow", true))?;
    let total = match total {
        b"*" => Ok(None),
        text => number(text, 10).map(Some).ok_or(()),
    };
    Ok(ContentRange { first, len, total })
}

/// Returns the offset after the last assignment in `text`: `keyword` (in lower case), blanks, an optional `*` if `star`,
/// and `=`.
fn after_assignment(text: &[u8], keyword: &[u8], star: bool) -> Option<usize> {
    let assigns = |at: &usize| {
        let mut before = &text[..*at];
        if star && let [rest @ .., b'*'] = before {
            before = rest;
        }
        while let [rest @ .., b' ' | b'\t'] = before {
            before = rest;
        }
        let start = before.len().checked_sub(keyword.len());
        start.is_some_and(|start| before[start..].eq_ignore_ascii_case(keyword))
    };
    memchr::memrchr_iter(b'=', text).find(assigns).map(|at| at + 1)
}

/// Returns the file name in a `Content-Disposition`.
pub fn disposition_filename(value: &[u8]) -> Option<Vec<u8>> {
    after_assignment(value, b"filename", true)?;
    Some(filename(value))
}

/// Returns the file name in a `Content-Type`.
pub fn content_type_name(value: &[u8]) -> Option<Vec<u8>> {
    after_assignment(value, b"name", false)?;
    Some(filename(value))
}

/// Returns the value of the last `name` or `filename` without quotes, and without the character set and
/// language of RFC 8187; escapes are decoded.
fn filename(value: &[u8]) -> Vec<u8> {
    let at = after_assignment(value, b"name", true).unwrap_or(0);
    let mut name = skip_blanks(&value[at..]);
    if let Some(rest) = name.strip_prefix(b"\"") {
        name = rest.split(|c| *c == b'"').next().unwrap_or_default();
    }
    if let Some(n) = charset_and_language(name) {
        name = &name[n..];
    }
    unescape(name, None)
}

/// Length of the prefix `charset'language'` of a name, up to and including the last quote.
fn charset_and_language(name: &[u8]) -> Option<usize> {
    let ok = |c: &&u8| {
        c.is_ascii_alphanumeric()
            || matches!(**c, b'!' | b'#'..=b'&' | b'+'..=b'`' | b'{' | b'}' | b'~')
    };
    let charset = name.iter().take_while(ok).count();
    let rest = name[charset..].strip_prefix(b"'")?;
    let language = rest.iter().take_while(ok).count();
    rest[language..].strip_prefix(b"'")?;
    if charset == 0 {
        return None;
    }
    memchr::memrchr(b'\'', name).map(|last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Read<'a> = (Option<(&'a [u8], Vec<u8>)>, Option<Version>, WeirdNames);

    fn request(line: &[u8]) -> Read<'_> {
        let mut weirds = Vec::new();
        let r = request_line(line, &mut weirds);
        (r.request.map(|r| (r.method, r.uri.into_owned())), r.version, weirds)
    }

    #[test]
    fn request_lines() {
        let (r, v, weirds) = request(b"GET /a%20b?c HTTP/1.1");
        assert_eq!(r, Some((&b"GET"[..], b"/a b?c".to_vec())));
        assert_eq!(v, Some(Version::V1_1));
        assert!(weirds.is_empty());

        let (r, v, _) = request(b"GET  /a b  HTTP/1.0 ");
        assert_eq!(r, Some((&b"GET"[..], b"/a b".to_vec())));
        assert_eq!(v, Some(Version { major: 1, minor: 0 }));
    }

    #[test]
    fn without_a_version_it_is_0_9() {
        let (r, v, _) = request(b"GET /");
        assert_eq!((r.map(|r| r.1), v), (Some(b"/".to_vec()), Some(Version::V0_9)));
        // After a blank, all but the last byte belongs to the target.
        assert_eq!(request(b"GET /foo bar").0.map(|r| r.1), Some(b"/foo ba".to_vec()));
    }

    #[test]
    fn weirds_are_reported() {
        assert_eq!(request(b"GET HTTP/1.1").2, ["missing_HTTP_uri"]);
        assert_eq!(request(b"GET / http/1.1").2, ["lowercase_HTTP_keyword"]);
        assert_eq!(request(b"/ HTTP/1.1").2, ["bad_HTTP_request_with_version"]);
        assert_eq!(request(b"GET\xff/").2, ["bad_HTTP_request"]);
        assert_eq!(request(b"").2, ["bad_HTTP_request"]);
        assert_eq!(request(b"GET / HTTP/").1, None);
    }

    #[test]
    fn status_lines() {
        let mut weirds = Vec::new();
        let s = status_line(b"HTTP/1.1 200 OK then", &mut weirds).unwrap();
        assert_eq!((s.version, s.code, s.reason), (Version::V1_1, 200, Some(&b"OK then"[..])));
        assert_eq!(status_line(b"HTTP/1.1 204", &mut weirds).unwrap().reason, None);
        assert_eq!(status_line(b"HTTP/1.1 204 ", &mut weirds).unwrap().reason, Some(&b""[..]));
        assert_eq!(status_line(b"HTTP/1.0 2x4 ", &mut weirds).unwrap().code, 0);
        assert_eq!(status_line(b"HTTP/1.1 20", &mut weirds), Err(Some(Version::V1_1)));
        assert_eq!(status_line(b"<html>", &mut weirds), Err(None));
        assert!(weirds.is_empty());
        assert!(status_line(b"http/1.1 200 OK", &mut weirds).is_ok());
        assert_eq!(weirds, ["lowercase_HTTP_keyword"]);
    }

    #[test]
    fn escapes() {
        let mut weirds = Vec::new();
        assert_eq!(unescape(b"%41%u0042%u4344%zz%", Some(&mut weirds)), b"ABCD%zz%");
        assert_eq!(weirds, ["unescaped_%_in_URI", "illegal_%_at_end_of_URI"]);
        weirds.clear();
        assert_eq!(unescape(b"%%41%4", Some(&mut weirds)), b"A%4");
        assert_eq!(weirds, ["double_%_in_URI", "partial_escape_at_end_of_URI"]);
    }

    #[test]
    fn numbers_stop_where_digits_do() {
        assert_eq!(number(b"1f;ext", 16), Some(31));
        assert_eq!(number(b"-5", 10), Some(-5));
        assert_eq!(number(b" 5", 10), None);
        assert_eq!(number(b"-", 10), None);
        assert_eq!(number(b"9223372036854775807", 10), Some(i64::MAX));
        assert_eq!(number(b"9223372036854775808", 10), None);
    }

    #[test]
    fn ranges() {
        let r = content_range(b"10-19/200").unwrap();
        assert_eq!(r, ContentRange { first: 10, len: 10, total: Ok(Some(200)) });
        assert_eq!(content_range(b"0-0/*").unwrap().total, Ok(None));
        assert_eq!(content_range(b"0-0/x").unwrap().total, Err(()));
        assert_eq!(content_range(b"0-0").unwrap_err().0, "HTTP_content_range_cannot_parse");
        assert_eq!(content_range(b"5-4/9").unwrap_err().0, "HTTP_non_positive_content_range");
        assert_eq!(
            content_range(b"0-9223372036854775807/*").unwrap_err().0,
            "HTTP_content_range_overflow"
        );
    }

    #[test]
    fn filenames() {
        let d = |v: &[u8]| disposition_filename(v);
        assert_eq!(d(b"attachment; filename=a%20b.txt"), Some(b"a b.txt".to_vec()));
        assert_eq!(d(b"attachment; filename=\"a;b.txt\"; size=1"), Some(b"a;b.txt".to_vec()));
        assert_eq!(d(b"attachment; filename*=UTF-8'en'b.txt"), Some(b"b.txt".to_vec()));
        assert_eq!(d(b"attachment; FileName \t= x"), Some(b"x".to_vec()));
        assert_eq!(d(b"form-data; name=\"f\""), None);
        assert_eq!(content_type_name(b"text/html; name=x"), Some(b"x".to_vec()));
        assert_eq!(content_type_name(b"text/html; charset=x"), None);
    }

    /// Reference implementation of [`after_assignment`], which tests each offset.
    fn plainly_after(text: &[u8], keyword: &[u8], star: bool) -> Option<usize> {
        (0..text.len()).rev().find_map(|start| {
            let name = text[start..].get(..keyword.len())?;
            let rest = skip_blanks(&text[start + keyword.len()..]);
            let rest = rest.strip_prefix(b"*").filter(|_| star).unwrap_or(rest);
            let value = rest.strip_prefix(b"=").filter(|_| name.eq_ignore_ascii_case(keyword))?;
            Some(text.len() - value.len())
        })
    }

    proptest! {
        #[test]
        fn assignments(text in "(name|NaMe|[nme \t*=;x]){0,16}", star: bool) {
            let text = text.as_bytes();
            prop_assert_eq!(after_assignment(text, b"name", star), plainly_after(text, b"name", star));
        }

        #[test]
        fn any_line_is_parsed(line: Vec<u8>) {
            let mut weirds = Vec::new();
            let _ = request_line(&line, &mut weirds);
            let _ = status_line(&line, &mut weirds);
            let _ = disposition_filename(&line);
            let _ = content_range(&line);
        }

        #[test]
        fn escaped_bytes_round_trip(bytes: Vec<u8>) {
            let text: String = bytes.iter().map(|b| format!("%{b:02X}")).collect();
            prop_assert_eq!(unescape(text.as_bytes(), None), bytes);
        }
    }
}
