//! Header fields and their structured values (RFC 2045 §5, RFC 5322 §3.2).

use super::Fault;
use crate::support::text::is_space;

/// A header field: name and value, without the white space before the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as sent.
    pub name: &'a [u8],
    /// The value; lines of a folded field are joined without their ends.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// Parses a field from its joined lines; `None` if there is no name or no colon after it.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let from = skip_until(line, is_name_char)?;
        let len = line[from..].iter().take_while(|&&b| is_name_char(b)).count();
        let name = &line[from..from + len];
        let rest = skip_blanks_and_comments(&line[from + len..]);
        let value = rest.strip_prefix(b":")?;
        let blank = value.iter().take_while(|&&b| is_space(b)).count();
        Some(Self { name, value: &value[blank..] })
    }

    /// Whether the field has this name, ignoring case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// A Content-Type: type, subtype and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// `text`, `multipart`, …
    pub ty: &'a [u8],
    /// `plain`, `mixed`, …
    pub subtype: &'a [u8],
    /// Parameters, from the first semicolon or from text before it.
    pub rest: &'a [u8],
}

impl<'a> MediaType<'a> {
    /// Parses the value of a Content-Type field; `None` unless it has two tokens separated by a
    /// slash.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (ty, rest) = token(value)?;
        let rest = skip_blanks_and_comments(rest).strip_prefix(b"/")?;
        let (subtype, rest) = token(rest)?;
        Some(Self { ty, subtype, rest })
    }

    /// Whether the entity has several parts.
    pub fn is_multipart(&self) -> bool {
        self.ty.eq_ignore_ascii_case(b"multipart")
    }

    /// Whether the entity contains a message.
    pub fn is_message(&self) -> bool {
        self.ty.eq_ignore_ascii_case(b"message")
    }

    /// The boundary of a multipart type: the last parameter with that name. Faults of parameters
    /// are passed to `fault`.
    pub fn boundary(&self, mut fault: impl FnMut(Fault)) -> Option<Vec<u8>> {
        let mut boundary = None;
        let mut rest = self.rest;
        while let Some(after) = skip_blanks_and_comments(rest).strip_prefix(b";") {
            let Some((name, after)) = token(after) else {
                fault(Fault::NoAttribute);
                break;
            };
            rest = after;
            let Some(after) = skip_blanks_and_comments(rest).strip_prefix(b"=") else {
                fault(Fault::NoEquals);
                continue;
            };
            rest = after;
            let is_boundary = self.is_multipart() && name.eq_ignore_ascii_case(b"boundary");
            // If a value is invalid, `rest` stays unchanged; the loop then ends or searches the
            // next semicolon.
            let Some((value, after)) = parameter_value(rest, is_boundary) else {
                fault(if is_boundary { Fault::BadBoundary } else { Fault::NoValue });
                continue;
            };
            rest = after;
            if is_boundary {
                boundary = Some(value);
            }
        }
        boundary
    }
}

/// Splits off the first token of a value. Characters that a token cannot contain are skipped.
pub fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = skip_blanks_and_comments(text);
    let from = skip_until(text, is_token_char)?;
    let len = text[from..].iter().take_while(|&&b| is_token_char(b)).count();
    Some((&text[from..from + len], &text[from + len..]))
}

/// Splits off a parameter's value, a token or a quoted string. A boundary may contain nearly any
/// character.
fn parameter_value(text: &[u8], is_boundary: bool) -> Option<(Vec<u8>, &[u8])> {
    let text = if is_boundary { text } else { skip_blanks_and_comments(text) };
    if text.first() == Some(&b'"') {
        let mut i = 1;
        while i < text.len() {
            match text[i] {
                b'"' => return Some((unquote(&text[1..i]), &text[i + 1..])),
                b'\\' => i += 2,
                _ => i += 1,
            }
        }
        return None;
    }
    if !is_boundary {
        return token(text).map(|(value, rest)| (value.to_vec(), rest));
    }
    let may_stand = |b: u8| (33..=126).contains(&b) && b != b'"';
    let from = skip_until(text, may_stand)?;
    let len = text[from..].iter().take_while(|&&b| may_stand(b)).count();
    Some((text[from..from + len].to_vec(), &text[from + len..]))
}

/// Decodes quoted pairs; a backslash at the end is dropped.
fn unquote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
        } else if let Some(&quoted) = bytes.next() {
            out.push(quoted);
        }
    }
    out
}

/// Offset of the first byte outside of comments for which `wanted` holds.
#[inline]
fn skip_until(text: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut rest = text;
    while let Some(&b) = rest.first() {
        if wanted(b) {
            return Some(text.len() - rest.len());
        }
        let next = skip_blanks_and_comments(rest);
        rest = if next.len() < rest.len() { next } else { &rest[1..] };
    }
    None
}

fn skip_blanks_and_comments(mut text: &[u8]) -> &[u8] {
    loop {
        match text.first() {
            Some(b' ' | b'\t') => text = &text[1..],
            Some(b'(') => text = skip_comment(text),
            _ => return text,
        }
    }
}

/// Skips a comment with its nested comments; an unterminated one extends to the end.
fn skip_comment(text: &[u8]) -> &[u8] {
    let mut depth = 0usize;
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            b'(' => depth += 1,
            b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return &text[i + 1..];
                }
            }
            b'\\' => i += 1,
            _ => {}
        }
        i += 1;
    }
    &[]
}

fn is_name_char(b: u8) -> bool {
    (33..=126).contains(&b) && b != b':'
}

/// Whether each character is a token character.
static TOKEN: [bool; 256] = token_chars();

const fn token_chars() -> [bool; 256] {
    let mut chars = [false; 256];
    let mut b = 33;
    while b <= 126 {
        chars[b] = true;
        b += 1;
    }
    let others = b"()<>@,;:\\\"/[]?=";
    let mut i = 0;
    while i < others.len() {
        chars[others[i] as usize] = false;
        i += 1;
    }
    chars
}

fn is_token_char(b: u8) -> bool {
    TOKEN[usize::from(b)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields() {
        let field = |line: &'static str| Field::parse(line.as_bytes());
        assert_eq!(
            field("Subject: hi there "),
            Some(Field { name: b"Subject", value: b"hi there " })
        );
        assert_eq!(field("To (me) :\t x"), Some(Field { name: b"To", value: b"x" }));
        assert_eq!(field("no colon"), None);
        assert_eq!(field(": x"), None);
        assert_eq!(field("Empty:"), Some(Field { name: b"Empty", value: b"" }));
    }

    fn boundary(value: &str) -> Option<Vec<u8>> {
        MediaType::parse(value.as_bytes()).and_then(|t| t.boundary(|_| ()))
    }

    #[test]
    fn media_types() {
        let t = MediaType::parse(b"Multipart/Mixed; boundary=abc");
        assert_eq!(t.map(|t| (t.ty, t.subtype)), Some((&b"Multipart"[..], &b"Mixed"[..])));
        assert_eq!(MediaType::parse(b"text"), None);
        assert_eq!(boundary("multipart/mixed; boundary=abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(
            boundary("multipart/x (c); charset=utf-8 ; boundary=\"a \\\"b\"").as_deref(),
            Some(&b"a \"b"[..])
        );
        assert_eq!(boundary("multipart/mixed; boundary==_a:b;c").as_deref(), Some(&b"=_a:b;c"[..]));
        assert_eq!(boundary("multipart/mixed; boundary=\"open"), None);
        assert_eq!(boundary("multipart/mixed; boundary=(a)b").as_deref(), Some(&b"(a)b"[..]));
        assert_eq!(boundary("multipart/mixed; boundary= (a)b").as_deref(), Some(&b"b"[..]));
        assert_eq!(boundary("multipart/mixed; x; boundary=b").as_deref(), Some(&b"b"[..]));
    }

    #[test]
    fn faults_of_parameters() {
        let faults = |value: &str| {
            let mut faults = Vec::new();
            let media = MediaType::parse(value.as_bytes());
            media.and_then(|media| media.boundary(|fault| faults.push(fault)));
            faults
        };
        assert_eq!(faults("multipart/x; boundary=b; charset=\"u\""), []);
        assert_eq!(faults("multipart/x; a; boundary=b"), [Fault::NoEquals]);
        assert_eq!(faults("multipart/x; a=b; ="), [Fault::NoAttribute]);
        assert_eq!(faults("multipart/x; boundary=\"open"), [Fault::BadBoundary]);
        assert_eq!(faults("multipart/x; name="), [Fault::NoValue]);
        // Other types have no boundary parameter.
        assert_eq!(faults("message/x; boundary=\"open"), [Fault::NoValue]);
    }

    proptest! {
        #[test]
        fn any_bytes_do(line: Vec<u8>) {
            if let Some(field) = Field::parse(&line) {
                prop_assert!(!field.name.is_empty());
                if let Some(media) = MediaType::parse(field.value) {
                    let _ = media.boundary(|_| ());
                }
            }
        }
    }
}
