//! Decodes base64 in a stream of lines (RFC 2045 §6.8), tolerating the errors of real mail.

/// Decoder of one entity's base64 body, which may be split anywhere.
///
/// Characters outside the alphabet are skipped; data after a padded group is ignored.
#[derive(Debug, Default)]
pub struct Base64 {
    /// Six-bit values of the current group.
    group: u32,
    filled: u8,
    padding: u8,
    after_padding: bool,
    errors: u64,
}

impl Base64 {
    /// Appends the bytes that `text` decodes to. Returns a description of the first error.
    pub fn decode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<String> {
        let mut rest = text;
        let mut complaint = None;
        while !rest.is_empty() {
            if self.filled == 0 && !self.after_padding {
                rest = decode_groups(rest, out);
            }
            // Up to the end of a group, or of irregular data.
            while let Some((&c, tail)) = rest.split_first() {
                rest = tail;
                let description = self.character(c, out);
                complaint = complaint.or(description);
                if self.filled == 0 {
                    break;
                }
            }
        }
        complaint
    }

    fn character(&mut self, c: u8, out: &mut Vec<u8>) -> Option<String> {
        let value = match VALUES[usize::from(c)] {
            PAD => {
                self.padding = self.padding.saturating_add(1);
                0
            }
            NONE => {
                self.errors += 1;
                let first = self.errors == 1;
                return first.then(|| format!("character {c} ignored by Base64 decoding"));
            }
            value => value,
        };
        self.group = self.group << 6 | u32::from(value);
        self.filled += 1;
        if self.filled < 4 {
            return None;
        }
        self.filled = 0;
        if !self.after_padding {
            self.flush(out);
            return None;
        }
        self.errors += 1;
        let first = self.errors == 1;
        first.then(|| "extra base64 groups after '=' padding are ignored".to_owned())
    }

    /// Ends the body: appends the bytes of an incomplete group. Returns descriptions of an
    /// incomplete group, or of data after a padded one.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Vec<String> {
        if self.filled == 0 {
            return Vec::new();
        }
        let missing = 4 - self.filled;
        let bits = u32::from(missing) * 6;
        let mut complaints =
            vec![format!("incomplete base64 group, padding with {bits} bits of 0")];
        complaints.extend(self.decode(&b"==="[..usize::from(missing)], out));
        complaints
    }

    /// Whether there was an error so far.
    pub fn failed(&self) -> bool {
        self.errors > 0
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let bytes = self.group.to_be_bytes();
        let count = 3usize.saturating_sub(usize::from(self.padding));
        out.extend_from_slice(&bytes[1..1 + count]);
        self.after_padding = self.padding > 0;
        self.padding = 0;
        self.group = 0;
    }
}

/// Marks a character outside the alphabet.
const NONE: u8 = 0xff;
/// Marks the padding character.
const PAD: u8 = 0xfe;

/// The six-bit value of every character.
static VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NONE; 256];
    let mut i = 0;
    while i < ALPHABET.len() {
        values[ALPHABET[i] as usize] = i as u8;
        i += 1;
    }
    values[b'=' as usize] = PAD;
    values
}

/// Decodes complete groups of four characters of the alphabet; returns the rest.
fn decode_groups<'a>(text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    out.reserve(text.len() / 4 * 3);
    let mut rest = text;
    while let Some((&[a, b, c, d], tail)) = rest.split_first_chunk::<4>() {
        let [a, b, c, d] = [a, b, c, d].map(|x| VALUES[usize::from(x)]);
        if (a | b | c | d) >= PAD {
            break;
        }
        out.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
        rest = tail;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> (Vec<u8>, Vec<String>) {
        let mut decoder = Base64::default();
        let (mut out, mut complaints) = (Vec::new(), Vec::new());
        for chunk in chunks {
            complaints.extend(decoder.decode(chunk, &mut out));
        }
        complaints.extend(decoder.finish(&mut out));
        (out, complaints)
    }

    #[test]
    fn groups_and_padding() {
        assert_eq!(decode(&[b"aGVsbG8="]).0, b"hello");
        assert_eq!(decode(&[b"aGVs", b"bG8gd29y", b"bGQ="]).0, b"hello world");
        assert_eq!(decode(&[b"QQ=="]).0, b"A");
        assert_eq!(decode(&[b"===="]).0, b"");
    }

    #[test]
    fn complaints_are_made_once() {
        let (out, complaints) = decode(&[b"aG Vs", b"-bG8="]);
        assert_eq!(out, b"hello");
        assert_eq!(complaints, ["character 32 ignored by Base64 decoding"]);
        let (out, complaints) = decode(&[b"QQ==QUJD"]);
        assert_eq!(out, b"A");
        assert_eq!(complaints, ["extra base64 groups after '=' padding are ignored"]);
        let (out, complaints) = decode(&[b"QUI"]);
        assert_eq!(out, b"AB");
        assert_eq!(complaints, ["incomplete base64 group, padding with 6 bits of 0"]);
        let (out, complaints) = decode(&[b"QQ==QU"]);
        assert_eq!(out, b"A");
        assert_eq!(
            complaints,
            [
                "incomplete base64 group, padding with 12 bits of 0",
                "extra base64 groups after '=' padding are ignored"
            ]
        );
    }

    fn encode(data: &[u8]) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = Vec::new();
        for group in data.chunks(3) {
            let mut bits = [0; 4];
            bits[1..1 + group.len()].copy_from_slice(group);
            let bits = u32::from_be_bytes(bits);
            for i in 0..4 {
                let six = (bits >> (18 - 6 * i)) & 63;
                out.push(if i <= group.len() { ALPHABET[six as usize] } else { b'=' });
            }
        }
        out
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(data: Vec<u8>, at in 0usize..100) {
            let text = encode(&data);
            let at = at.min(text.len());
            let (out, complaints) = decode(&[&text[..at], &text[at..]]);
            prop_assert_eq!(out, data);
            prop_assert!(complaints.is_empty());
        }
    }
}
