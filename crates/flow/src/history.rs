/// The history of a connection, a letter per event: conn.log's `history`.
///
/// Upper-case letters are for the originator. Up to fourteen letters need no allocation, which is
/// enough for nearly every connection.
#[derive(Clone, Debug)]
pub struct History(Repr);

#[derive(Clone, Debug)]
#[expect(
    clippy::box_collection,
    reason = "long histories are rare: a pointer keeps the rest small"
)]
enum Repr {
    Inline { len: u8, text: [u8; INLINE] },
    Heap(Box<Vec<u8>>),
}

const INLINE: usize = 14;

/// Maximum number of letters. A log shows at most 4,096 bytes of a string, so further letters are
/// invisible. Without this limit a sender of ever more SYNs, FINs or RSTs would use a byte of
/// memory for each.
const MAX: usize = 4_200;

impl Default for History {
    fn default() -> Self {
        Self(Repr::Inline { len: 0, text: [0; INLINE] })
    }
}

impl History {
    /// The letters so far.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, text } => &text[..usize::from(*len)],
            Repr::Heap(text) => text,
        }
    }

    /// Appends a letter, up to the limit.
    #[inline]
    pub fn push(&mut self, letter: u8) {
        match &mut self.0 {
            Repr::Inline { len, text } if usize::from(*len) < INLINE => {
                text[usize::from(*len)] = letter;
                *len += 1;
            }
            Repr::Inline { text, .. } => {
                let mut long = text.to_vec();
                long.push(letter);
                self.0 = Repr::Heap(Box::new(long));
            }
            Repr::Heap(text) if text.len() < MAX => text.push(letter),
            Repr::Heap(_) => {}
        }
    }

    /// Replaces all letters.
    pub fn replace(&mut self, letters: &[u8]) {
        *self = Self::default();
        for &l in letters {
            self.push(l);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_past_the_inline_letters() {
        let mut h = History::default();
        let letters: Vec<u8> = (0..60).map(|i| b'a' + i % 26).collect();
        for &l in &letters {
            h.push(l);
        }
        assert_eq!(h.as_bytes(), letters);
        h.replace(b"^h");
        assert_eq!(h.as_bytes(), b"^h");
    }

    #[test]
    fn is_bounded() {
        let mut h = History::default();
        for _ in 0..100_000 {
            h.push(b'S');
        }
        assert_eq!(h.as_bytes().len(), MAX);
    }
}
