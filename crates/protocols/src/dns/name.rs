//! Storage of a query name until the reply arrives.

/// Maximum length of a name that is stored without an allocation, in bytes: four of five query names are shorter.
const INLINE: usize = 38;

/// An owned name; short names are stored inline.
#[derive(Clone, Debug)]
pub(super) enum Name {
    /// Length and bytes.
    Inline(u8, [u8; INLINE]),
    /// A longer name.
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

    /// Makes it empty.
    #[inline]
    pub(super) fn clear(&mut self) {
        match self {
            Self::Inline(len, _) => *len = 0,
            Self::Heap(_) => *self = Self::new(b""),
        }
    }

    /// Makes it a copy of `text`.
    #[inline]
    pub(super) fn set(&mut self, text: &[u8]) {
        match self {
            Self::Inline(len, bytes) if text.len() <= INLINE => {
                bytes[..text.len()].copy_from_slice(text);
                *len = text.len() as u8;
            }
            _ => *self = Self::new(text),
        }
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
    fn stores_short_and_long_names() {
        for len in [0, 1, INLINE, INLINE + 1, 255] {
            let text = vec![b'x'; len];
            assert_eq!(Name::new(&text).as_bytes(), text);
            for before in [0, INLINE, INLINE + 1] {
                let mut name = Name::new(&vec![b'y'; before]);
                name.set(&text);
                assert_eq!(name.as_bytes(), text);
                name.clear();
                assert_eq!(name.as_bytes(), b"");
            }
        }
    }
}
