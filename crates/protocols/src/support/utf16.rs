//! Little-endian UTF-16 text, as in Windows protocols.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::Context;

/// A UTF-16 text, which events carry in UTF-8; an invalid text is carried unchanged, and reported
/// if a row contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utf16Text<'a>(pub &'a [u8]);

impl Arg for Utf16Text<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        match to_utf8(self.0) {
            Some(text) => text.as_slice().pack(to),
            None => self.0.pack(to),
        }
    }
}

/// Converts the text up to its first NUL to UTF-8. An invalid text is returned unchanged, with a
/// weird.
pub fn text(cx: &mut Context<'_>, text: &[u8]) -> Vec<u8> {
    to_utf8(text).unwrap_or_else(|| {
        let details = "utf16 conversion failed in utf16_to_utf8_val";
        cx.weird("utf16_conversion_failed", details, None);
        text.to_vec()
    })
}

/// Converts the text up to its first NUL to UTF-8. `None` if it ends within a surrogate pair.
///
/// Unpaired surrogates are encoded like characters, and an odd last byte is extended with a zero
/// byte.
pub fn to_utf8(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let unit = |u: &[u8]| u16::from_le_bytes([u[0], u.get(1).copied().unwrap_or(0)]);
    let mut units = text.chunks(2).map(unit).peekable();
    let mut ended = false;
    while let Some(unit) = units.next() {
        let mut code = u32::from(unit);
        if let 0xd800..=0xdbff = code {
            let low = u32::from(*units.peek()?);
            if let 0xdc00..=0xdfff = low {
                units.next();
                code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        ended |= code == 0;
        if !ended {
            push(&mut out, code);
        }
    }
    Some(out)
}

fn push(out: &mut Vec<u8>, code: u32) {
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend_from_slice(&[0xc0 | (code >> 6) as u8, tail(0)]),
        0x800..0x1_0000 => {
            out.extend_from_slice(&[0xe0 | (code >> 12) as u8, tail(6), tail(0)]);
        }
        _ => out.extend_from_slice(&[0xf0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    #[test]
    fn odd_text() {
        assert_eq!(to_utf8(b"a\0b\0\0\0c\0"), Some(b"ab".to_vec()));
        assert_eq!(to_utf8(b"a\0b"), Some(b"ab".to_vec()));
        assert_eq!(to_utf8(b"\x00\xd8x"), Some(b"\xed\xa0\x80x".to_vec()));
        assert_eq!(to_utf8(b"\x00\xdcx\0"), Some(b"\xed\xb0\x80x".to_vec()));
        assert_eq!(to_utf8(b"x\0\x00\xd8"), None);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_came() {
        let mut h = Harness::new(Proto::Tcp, 445);
        assert_eq!(text(&mut h.cx(), b"x\0\x00\xd8"), b"x\0\x00\xd8");
        let weird = &h.rows("weird")[0];
        assert_eq!(weird["name"], "utf16_conversion_failed");
        assert_eq!(weird["addl"], "utf16 conversion failed in utf16_to_utf8_val");
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(text in "[^\\x00]*") {
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            prop_assert_eq!(to_utf8(&wide), Some(text.into_bytes()));
        }
    }
}
