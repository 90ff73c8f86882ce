use std::borrow::Cow;

use crate::text::append_plain;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `lead`, which is a backslash or its escape, and `xNN`.
fn hex(out: &mut Vec<u8>, lead: &[u8], b: u8) {
    out.extend_from_slice(lead);
    out.extend_from_slice(&[b'x', HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
}

/// Length of the UTF-8 sequence at the start of `s`; `None` if it is invalid or logs escape it: control characters, the
/// private use area, specials.
fn utf8_len(s: &[u8]) -> Option<usize> {
    let len = match s[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(s.get(..len)?).ok()?.chars().next()? as u32;
    let hidden = matches!(c, 0x80..=0x9f | 0xe000..=0xf8ff | 0xfff0..=0xffff);
    (!hidden).then_some(len)
}

/// Appends a string, escaped as in TSV logs: tab, backslash and (in lists) comma are escaped. A segment between such
/// escapes is unchanged if it is valid printable UTF-8; otherwise all of its bytes beyond printable ASCII are escaped.
#[inline]
pub fn escape_tsv(out: &mut Vec<u8>, s: &[u8], in_list: bool) {
    let comma = if in_list { b',' } else { b'\\' };
    if append_plain(out, s, b'\\', comma) {
        return;
    }
    escape_special(out, s, comma);
}

/// Appends a string that needs escapes or is not ASCII.
#[cold]
fn escape_special(out: &mut Vec<u8>, s: &[u8], comma: u8) {
    let is_escaped = |c: &u8| *c == b'\\' || *c == b'\t' || *c == comma;
    let mut rest = s;
    loop {
        let n = rest.iter().position(is_escaped).unwrap_or(rest.len());
        segment(out, &rest[..n], b"\\");
        match rest.get(n) {
            Some(b'\\') => out.extend_from_slice(b"\\\\"),
            Some(&c) => hex(out, b"\\", c),
            None => return,
        }
        rest = &rest[n + 1..];
    }
}

fn segment(out: &mut Vec<u8>, s: &[u8], lead: &[u8]) {
    let start = out.len();
    let mut i = 0;
    while i < s.len() {
        let plain = s[i..].iter().take_while(|c| (0x20..0x7f).contains(*c)).count();
        if plain > 0 {
            out.extend_from_slice(&s[i..i + plain]);
            i += plain;
        } else if let Some(n) = utf8_len(&s[i..]) {
            out.extend_from_slice(&s[i..i + n]);
            i += n;
        } else {
            // One invalid byte makes Zeek escape all bytes beyond ASCII.
            out.truncate(start);
            for &c in s {
                if (0x20..0x7f).contains(&c) { out.push(c) } else { hex(out, lead, c) }
            }
            return;
        }
    }
}

/// Appends the content of a JSON string, without the quotes. Bytes that are not printable UTF-8 are written as the text
/// `\xNN`, with its backslash escaped.
pub fn escape_json(out: &mut Vec<u8>, s: &[u8]) {
    if append_plain(out, s, b'"', b'\\') {
        return;
    }
    let has_short_escape = |c: u8| matches!(c, 8 | 9 | 10 | 12 | 13);
    let mut clean = true;
    let mut i = 0;
    while i < s.len() {
        if (0x20..0x7f).contains(&s[i]) || has_short_escape(s[i]) {
            i += 1;
        } else if let Some(n) = utf8_len(&s[i..]) {
            i += n;
        } else {
            clean = false;
            break;
        }
    }
    for &c in s {
        match c {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0x20..=0x7e => out.push(c),
            0x80.. if clean => out.push(c),
            _ => hex(out, b"\\\\", c),
        }
    }
}

/// Appends a string as UTF-8, as columnar files store it: the text of JSON logs before JSON's escapes.
///
/// Bytes that are not printable UTF-8 become `\xNN`. A backslash before `xNN` becomes `\x5c`, so
/// that [`column_bytes`] restores the bytes.
#[inline]
pub fn column_text(s: &[u8], out: &mut Vec<u8>) {
    // Printable ASCII without a backslash.
    if !append_plain(out, s, b'\\', b'\\') {
        column_special(s, out);
    }
}

#[cold]
fn column_special(s: &[u8], out: &mut Vec<u8>) {
    let has_short_escape = |c: u8| matches!(c, 8 | 9 | 10 | 12 | 13);
    let mut clean = true;
    let mut i = 0;
    while i < s.len() && clean {
        if (0x20..0x7f).contains(&s[i]) || has_short_escape(s[i]) {
            i += 1;
        } else {
            match utf8_len(&s[i..]) {
                Some(n) => i += n,
                None => clean = false,
            }
        }
    }
    for (i, &c) in s.iter().enumerate() {
        match c {
            b'\\' if is_escape(&s[i..]) => hex(out, b"\\", c),
            0x20..=0x7e => out.push(c),
            0x80.. if clean => out.push(c),
            _ if has_short_escape(c) => out.push(c),
            _ => hex(out, b"\\", c),
        }
    }
}

/// Whether `s` starts with an escape `\xNN` of [`column_text`].
fn is_escape(s: &[u8]) -> bool {
    let digit = |c: u8| HEX.contains(&c);
    matches!(s, [b'\\', b'x', a, b, ..] if digit(*a) && digit(*b))
}

/// Restores the bytes of a string that [`column_text`] wrote.
pub fn column_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.windows(4).any(is_escape) {
        return Cow::Borrowed(text);
    }
    let value = |c: u8| if c.is_ascii_digit() { c - b'0' } else { c - b'a' + 10 };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after_first)) = rest.split_first() {
        if let [_, _, a, b, after @ ..] = rest
            && is_escape(rest)
        {
            out.push(value(*a) << 4 | value(*b));
            rest = after;
        } else {
            out.push(first);
            rest = after_first;
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tsv(s: &[u8], in_list: bool) -> String {
        let mut out = Vec::new();
        escape_tsv(&mut out, s, in_list);
        String::from_utf8(out).unwrap()
    }

    fn json(s: &[u8]) -> String {
        let mut out = Vec::new();
        escape_json(&mut out, s);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tsv_cases_as_zeek_prints_them() {
        assert_eq!(tsv("é".as_bytes(), false), "é");
        assert_eq!(tsv(b"\xc3\xa9\x01", false), "\\xc3\\xa9\\x01");
        assert_eq!(tsv(b"\xc3\xa9\xff", false), "\\xc3\\xa9\\xff");
        assert_eq!(tsv(b"\xc3\xa9\\\x01\xc3\xa9", false), "é\\\\\\x01\\xc3\\xa9");
        assert_eq!(tsv(b"a,b\tc\\", true), "a\\x2cb\\x09c\\\\");
        assert_eq!(tsv(b"a,b", false), "a,b");
        assert_eq!(tsv(b"\n", false), "\\x0a");
        assert_eq!(tsv("\u{e000}".as_bytes(), false), "\\xee\\x80\\x80");
    }

    #[test]
    fn json_cases_as_zeek_prints_them() {
        assert_eq!(json(b"a\"b\\c\n"), "a\\\"b\\\\c\\n");
        assert_eq!(json(b"\xc3\xa9\x01"), "\\\\xc3\\\\xa9\\\\x01");
        assert_eq!(json("é\n".as_bytes()), "é\\n");
    }

    #[test]
    fn column_text_is_the_text_of_json() {
        let text = |s: &[u8]| {
            let mut out = Vec::new();
            column_text(s, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(b"C:\\xyz\n"), "C:\\xyz\n");
        assert_eq!(text(b"\xc3\xa9\x01"), "\\xc3\\xa9\\x01");
        assert_eq!(text("é\n".as_bytes()), "é\n");
        assert_eq!(text(b"\\x41"), "\\x5cx41");
        assert_eq!(text(b"\\x4\x01"), "\\x4\\x01");
    }

    proptest! {
        #[test]
        fn column_text_is_utf8_and_round_trips(
            s in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(b'4')], 0..40)
        ) {
            let mut out = Vec::new();
            column_text(&s, &mut out);
            prop_assert!(std::str::from_utf8(&out).is_ok());
            prop_assert_eq!(&column_bytes(&out)[..], &s[..]);
        }

        #[test]
        fn output_is_one_clean_field(s: Vec<u8>) {
            let t = tsv(&s, true);
            prop_assert!(!t.bytes().any(|c| c < 0x20 || c == b',' || c == 0x7f));
            let j = json(&s);
            prop_assert!(!j.bytes().any(|c| c < 0x20 || c == 0x7f));
        }
    }
}
