//! Escaping of unprintable characters in strings.

use std::io::Write;

pub use gannet_log::escape_tsv as log_text;

fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

fn hex(out: &mut Vec<u8>, byte: u8) {
    let _ = write!(out, "\\x{byte:02x}");
}

/// Escapes as `print` to files and `clean` do: `\xNN` for bytes that are not printable ASCII.
pub fn printed(out: &mut Vec<u8>, string: &[u8]) {
    for byte in string {
        if is_plain(*byte) { out.push(*byte) } else { hex(out, *byte) }
    }
}

/// Escapes as `escape_string` does: like [`printed`], and backslashes are doubled.
pub fn escaped(out: &mut Vec<u8>, string: &[u8]) {
    for byte in string {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte if is_plain(*byte) => out.push(*byte),
            byte => hex(out, *byte),
        }
    }
}

/// Escapes as in a string literal of the language (`to_string_literal`), without the quotes.
pub fn literal(out: &mut Vec<u8>, string: &[u8]) {
    for byte in string {
        match byte {
            b'\\' | b'"' | b'\'' => out.extend_from_slice(&[b'\\', *byte]),
            byte if is_plain(*byte) => out.push(*byte),
            byte => hex(out, *byte),
        }
    }
}

/// Converts to UTF-8 for JSON: bytes that are not valid UTF-8 and control characters, except `\b \f \n \r \t`,
/// become `\xNN`; if there are any, so do all bytes beyond ASCII.
#[must_use]
pub fn utf8(string: &[u8]) -> Vec<u8> {
    let kept = |c: u8| is_plain(c) || matches!(c, 8 | 9 | 10 | 12 | 13);
    let mut rest = string;
    let mut clean = true;
    while let [first, ..] = rest {
        let len = if kept(*first) { 1 } else { shown_len(rest) };
        if len == 0 {
            clean = false;
            break;
        }
        rest = &rest[len..];
    }
    if clean {
        return string.to_vec();
    }
    let mut out = Vec::with_capacity(string.len() + 16);
    for byte in string {
        if kept(*byte) { out.push(*byte) } else { hex(&mut out, *byte) }
    }
    out
}

/// The length of the first character if logs show it unescaped; 0 otherwise.
pub(crate) fn shown_len(string: &[u8]) -> usize {
    let len = match string.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return 0,
    };
    let char =
        string.get(..len).and_then(|s| std::str::from_utf8(s).ok()).and_then(|s| s.chars().next());
    match char.map(u32::from) {
        None | Some(0x80..=0x9f | 0xe000..=0xf8ff | 0xfff0..=0xffff) => 0,
        Some(_) => len,
    }
}
