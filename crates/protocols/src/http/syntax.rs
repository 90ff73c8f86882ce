//! Lexical grammar of MIME header fields: comments and tokens (RFC 2045 section 5.1, RFC 5322 section 3.2).

/// Whether a character is a space or tab.
pub(super) fn is_blank(c: u8) -> bool {
    c == b' ' || c == b'\t'
}

/// Returns the data without leading blanks.
pub(super) fn skip_blanks(data: &[u8]) -> &[u8] {
    let n = data.iter().take_while(|c| is_blank(**c)).count();
    &data[n..]
}

/// Length of a comment at the start of `data`, including nested comments; 0 without a comment. An
/// unterminated comment extends to the end.
fn comment_len(data: &[u8]) -> usize {
    if data.first() != Some(&b'(') {
        return 0;
    }
    let mut depth = 0u32;
    let mut i = 0;
    while i < data.len() {
        match data[i] {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            b'\\' => i += 1,
            _ => {}
        }
        i += 1;
    }
    data.len()
}

/// Length of the blanks and comments at the start of `data` (CFWS in RFC 5322).
pub(super) fn cfws_len(data: &[u8]) -> usize {
    let mut i = 0;
    while let Some(&c) = data.get(i) {
        if is_blank(c) {
            i += 1;
        } else if c == b'(' {
            i += comment_len(&data[i..]);
        } else {
            break;
        }
    }
    i
}

/// Bit set of the classes of each character.
static CLASSES: [u8; 256] = classes();

const TOKEN: u8 = 1;
const FIELD_NAME: u8 = 2;
const URI: u8 = 4;

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut c = 33;
    while c <= 126 {
        classes[c] |= TOKEN | FIELD_NAME;
        c += 1;
    }
    remove_class(&mut classes, TOKEN, b"()<>@,;:\\\"/[]?=");
    remove_class(&mut classes, FIELD_NAME, b":");
    // The characters of a URI (RFC 3986 section 2), its escapes, and NUL.
    let others = b"\0:/?#[]@!$&'()*+,;=-_.~%";
    let mut i = 0;
    while i < others.len() {
        classes[others[i] as usize] |= URI;
        i += 1;
    }
    let mut c = b'0';
    while c <= b'z' {
        if c.is_ascii_alphanumeric() {
            classes[c as usize] |= URI;
        }
        c += 1;
    }
    classes
}

const fn remove_class(classes: &mut [u8; 256], class: u8, characters: &[u8]) {
    let mut i = 0;
    while i < characters.len() {
        classes[characters[i] as usize] &= !class;
        i += 1;
    }
}

fn is(c: u8, class: u8) -> bool {
    CLASSES[usize::from(c)] & class != 0
}

/// Whether a character may be in a token (RFC 2045).
pub(super) fn is_token(c: u8) -> bool {
    is(c, TOKEN)
}

/// Whether a character may be in a URI, including escapes and NUL.
pub(super) fn is_uri(c: u8) -> bool {
    is(c, URI)
}

fn is_field_name(c: u8) -> bool {
    is(c, FIELD_NAME)
}

/// Skips to the first run of characters that `accepts` accepts. Returns the run and the text after it.
#[inline]
fn find_run(data: &[u8], start: usize, accepts: impl Fn(u8) -> bool) -> Option<(&[u8], &[u8])> {
    let mut i = start;
    while let Some(&c) = data.get(i) {
        if accepts(c) {
            let rest = &data[i..];
            let n = rest.iter().position(|c| !accepts(*c)).unwrap_or(rest.len());
            return Some(rest.split_at(n));
        }
        i += cfws_len(&data[i..]).max(1);
    }
    None
}

/// Returns the first token and the text after it.
pub(super) fn token(data: &[u8]) -> Option<(&[u8], &[u8])> {
    find_run(data, cfws_len(data), is_token)
}

/// Splits a header line into name and value. Leading white space of the value is removed; trailing white space is
/// kept.
pub(super) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = find_run(line, cfws_len(line), is_field_name)?;
    let rest = &rest[cfws_len(rest)..];
    let (&colon, rest) = rest.split_first()?;
    if colon != b':' {
        return None;
    }
    let n = rest.iter().take_while(|c| matches!(c, b' ' | 9..=13)).count();
    Some((name, &rest[n..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(field(b"Host: a.example "), Some((&b"Host"[..], &b"a.example "[..])));
        assert_eq!(field(b"Host (why) :\t x"), Some((&b"Host"[..], &b"x"[..])));
        assert_eq!(field(b"Host"), None);
        assert_eq!(field(b"two words: x"), None);
        assert_eq!(field(b""), None);
    }

    #[test]
    fn classes_are_those_of_the_grammar() {
        for c in 0..=255 {
            let printed = (33..=126).contains(&c);
            assert_eq!(is_token(c), printed && !b"()<>@,;:\\\"/[]?=".contains(&c));
            assert_eq!(is_field_name(c), printed && c != b':');
            let mark = b"\0:/?#[]@!$&'()*+,;=-_.~%".contains(&c);
            assert_eq!(is_uri(c), c.is_ascii_alphanumeric() || mark);
        }
    }

    #[test]
    fn tokens_skip_other_characters() {
        assert_eq!(token(b" (c(c)\\)) ;=gzip, br"), Some((&b"gzip"[..], &b", br"[..])));
        assert_eq!(token(b"((("), None);
        assert_eq!(token(b"\"q\""), Some((&b"q"[..], &b"\""[..])));
    }
}
