//! A query name between query and reply.

/// Bytes that need no allocation: four of five query names are shorter.
const INLINE: usize = 38;

/// A name kept for a while; short ones lie inside.
#[derive(Clone, Debug)]
pub(super) enum Name {
    /// Length and bytes.
    Inline(u8, [u8; INLINE]),
    /// A longer one.
    Heap(Box<[u8]>),
}

impl Name {
    /// A copy of `text`.
    pub(super) fn new(text: &[u8]) -> Self {
        if text.len() > INLINE {
            return Self::Heap(text.into());
        }
        let mut bytes = [0; INLINE];
        bytes[..text.len()].copy_from_slice(text);
        Self::Inline(text.len() as u8, bytes)
    }

    /// The bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline(len, bytes) => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_short_and_long() {
        for len in [0, 1, INLINE, INLINE + 1, 255] {
            let text = vec![b'x'; len];
            assert_eq!(Name::new(&text).as_bytes(), text);
        }
    }
}
