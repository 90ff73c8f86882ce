//! Buffers for lines, and for the NUL-terminated names at the start of an rlogin or rsh stream.

use super::MAX_LINE;
use super::before_nul;

/// A text of limited length that is collected byte by byte.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// Appends a byte. Returns false, and discards the text, if it is at the limit.
    #[must_use]
    pub(super) fn push(&mut self, byte: u8) -> bool {
        if self.0.len() >= MAX_LINE {
            self.0.clear();
            return false;
        }
        self.0.push(byte);
        true
    }

    /// Takes the text.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Takes the text up to its NUL.
    pub(super) fn take_name(&mut self) -> Vec<u8> {
        before_nul(&self.take()).to_vec()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_beyond_the_limit_is_discarded() {
        let mut text = Text::default();
        assert_eq!((0..=MAX_LINE).filter(|_| text.push(b'x')).count(), MAX_LINE);
        assert!(text.take().is_empty());
        assert!(text.push(b'y'));
        assert_eq!(text.take_name(), b"y");
    }
}
