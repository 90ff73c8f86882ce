//! Strings that are too long for a cell.

use std::fmt;
use std::ops::Deref;

/// Maximum length in bytes of a string that is stored without a separate buffer.
pub(super) const INLINE: usize = 30;

/// The bytes of a string. A string of up to [`INLINE`] bytes, as most names, addresses and paths are, takes one allocation with its
/// reference count.
#[derive(Clone)]
pub struct LongStr(Form);

#[derive(Clone)]
enum Form {
    Inline(u8, [u8; INLINE]),
    Buffer(Vec<u8>),
}

impl LongStr {
    /// A string with a copy of `text`.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut bytes = [0; INLINE];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(slot), Ok(len)) => {
                slot.copy_from_slice(text);
                Self(Form::Inline(len, bytes))
            }
            _ => Self(Form::Buffer(text.to_vec())),
        }
    }

    /// A string that reuses the buffer if it is long.
    #[must_use]
    pub fn owned(text: Vec<u8>) -> Self {
        if text.len() <= INLINE { Self::new(&text) } else { Self(Form::Buffer(text)) }
    }

    /// Appends bytes.
    pub fn push(&mut self, more: &[u8]) {
        match &mut self.0 {
            Form::Buffer(text) => text.extend_from_slice(more),
            Form::Inline(..) => {
                let mut text = Vec::with_capacity(2 * (self.len() + more.len()));
                text.extend_from_slice(self);
                text.extend_from_slice(more);
                *self = Self::owned(text);
            }
        }
    }
}

impl Deref for LongStr {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Inline(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or(&[]),
            Form::Buffer(text) => text,
        }
    }
}

impl PartialEq for LongStr {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for LongStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

const _: () = assert!(size_of::<LongStr>() == 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_grow_from_the_inline_form_into_a_buffer() {
        let mut text = LongStr::new(b"a string of");
        let mut expected = b"a string of".to_vec();
        for _ in 0..10 {
            text.push(b" words");
            expected.extend_from_slice(b" words");
            assert_eq!(*text, *expected);
            assert_eq!(LongStr::owned(expected.clone()), text);
            assert_eq!(LongStr::new(&expected), text);
        }
        assert!(matches!(text.0, Form::Buffer(_)));
        assert!(matches!(LongStr::new(&[b'x'; INLINE]).0, Form::Inline(..)));
        assert!(matches!(LongStr::new(&[b'x'; INLINE + 1]).0, Form::Buffer(_)));
    }
}
