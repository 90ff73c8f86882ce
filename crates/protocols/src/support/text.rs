//! Words, numbers and spaces of text protocols, by the rules of C for ASCII.

use std::borrow::Cow;

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

/// Whether a byte is white space in the C locale.
pub fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

/// Whether all bytes are ASCII and none is a control character. Checks eight bytes at a time.
pub fn is_printable(text: &[u8]) -> bool {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    // Borrows and carries affect only bytes above one that needs escaping anyway.
    let needs_escape = |bytes: &[u8; 8]| {
        let word = u64::from_le_bytes(*bytes);
        (word | word.wrapping_sub(LOW * 0x20) | word.wrapping_add(LOW)) & HIGH
    };
    match text.last_chunk() {
        Some(end) => {
            text.as_chunks().0.iter().fold(needs_escape(end), |all, word| all | needs_escape(word))
                == 0
        }
        None => text.iter().all(|b| matches!(b, b' '..=b'~')),
    }
}

/// The text without leading spaces and tabs.
pub fn skip_blanks(text: &[u8]) -> &[u8] {
    let n = text.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    &text[n..]
}

/// The text without white space at both ends.
pub fn trim(text: &[u8]) -> &[u8] {
    let from = text.iter().take_while(|&&b| is_space(b)).count();
    let text = &text[from..];
    let tail = text.iter().rev().take_while(|&&b| is_space(b)).count();
    &text[..text.len() - tail]
}

/// Splits off the first word, which ends at white space or NUL; the rest is unchanged.
pub fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let n = text.iter().take_while(|&&b| b != 0 && !is_space(b)).count();
    text.split_at(n)
}

/// The number in three leading digits, if there are three.
pub fn reply_code(line: &[u8]) -> Option<u16> {
    match line {
        [a, b, c, ..] if [a, b, c].iter().all(|d| d.is_ascii_digit()) => {
            Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        _ => None,
    }
}

/// Parses a decimal number like C's `strtol`: white space, a sign, digits. Returns the number
/// (saturated if it does not fit) and the rest; without digits, zero and the unchanged text.
pub fn integer(text: &[u8]) -> (i64, &[u8]) {
    let blank = text.iter().take_while(|&&b| is_space(b)).count();
    let mut rest = &text[blank..];
    let negative = rest.first() == Some(&b'-');
    if matches!(rest.first(), Some(b'-' | b'+')) {
        rest = &rest[1..];
    }
    if !rest.first().is_some_and(u8::is_ascii_digit) {
        return (0, text);
    }
    let mut n: i64 = 0;
    while let [d @ b'0'..=b'9', tail @ ..] = rest {
        n = n.saturating_mul(10).saturating_add(i64::from(d - b'0'));
        rest = tail;
    }
    (if negative { -n } else { n }, rest)
}

/// Decodes percent escapes, including the four-digit form `%uXXXX`. Invalid escapes stay unchanged.
pub fn unescape_uri(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            out.push(first);
            continue;
        }
        match *tail {
            [] => out.push(b'%'),
            [last] => {
                out.extend([b'%', last]);
                rest = &[];
            }
            // The first of two percent signs is dropped, and the second may begin an escape.
            [b'%', ..] => {}
            [a, b, ..] if let (Some(a), Some(b)) = (hex(a), hex(b)) => {
                out.push(a << 4 | b);
                rest = &tail[2..];
            }
            [b'u', a, b, c, d, ..]
                if let (Some(a), Some(b), Some(c), Some(d)) = (hex(a), hex(b), hex(c), hex(d)) =>
            {
                if (a, b) != (0, 0) {
                    out.push(a << 4 | b);
                }
                out.push(c << 4 | d);
                rest = &tail[5..];
            }
            [other, ..] => {
                out.extend([b'%', other]);
                rest = &tail[1..];
            }
        }
    }
    out
}

/// The value of a hexadecimal digit.
pub fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// A name, which events carry in upper case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperCase<'a>(pub &'a [u8]);

impl UpperCase<'_> {
    /// Whether it is this name, ignoring case.
    #[inline]
    pub fn is(self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name.as_bytes())
    }
}

impl Arg for UpperCase<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        upper_case(self.0).pack(to);
    }
}

/// Converts a name to upper case.
pub fn upper_case(name: &[u8]) -> Cow<'_, [u8]> {
    if name.iter().any(u8::is_ascii_lowercase) {
        name.to_ascii_uppercase().into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printable_bytes(mut text in "[ -~]{0,40}", at: prop::sample::Index, byte: u8) {
            prop_assert!(is_printable(text.as_bytes()));
            text.push(' ');
            let mut text = text.into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            prop_assert_eq!(is_printable(&text), matches!(byte, b' '..=b'~'));
        }
    }

    #[test]
    fn words_and_blanks() {
        assert_eq!(split_word(b"MAIL FROM:<a@b>"), (&b"MAIL"[..], &b" FROM:<a@b>"[..]));
        assert_eq!(split_word(b" x"), (&b""[..], &b" x"[..]));
        assert_eq!(skip_blanks(b" \t x "), b"x ");
        assert_eq!(trim(b" \tx y\r\n"), b"x y");
        assert_eq!(trim(b"  "), b"");
    }

    #[test]
    fn codes_and_numbers() {
        assert_eq!(reply_code(b"220-hi"), Some(220));
        assert_eq!(reply_code(b"22"), None);
        assert_eq!(reply_code(b"2x0 "), None);
        assert_eq!(integer(b" -12,3"), (-12, &b",3"[..]));
        assert_eq!(integer(b"|1"), (0, &b"|1"[..]));
        assert_eq!(integer(b"99999999999999999999").0, i64::MAX);
    }

    #[test]
    fn percent_escapes() {
        assert_eq!(unescape_uri(b"a%20b%u0041%u1f42%"), b"a bA\x1fB%");
        assert_eq!(unescape_uri(b"%%41%4%zz"), b"A%4%zz");
        assert_eq!(unescape_uri(b"%4"), b"%4");
    }
}
