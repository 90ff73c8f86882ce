//! A reader of the bytes of a message, which records overlong numbers.

use std::cell::Cell;
use std::ops::Deref;
use std::ops::DerefMut;

use crate::support::Bytes;
use crate::support::RecordBounds;
use crate::support::ber;
use crate::support::ber::Head;
use crate::support::ber::Result;

/// The remaining bytes of a message.
pub(super) struct Reader<'a, 'l> {
    pub(super) bytes: Bytes<'a>,
    /// Length of the first number of more than eight bytes.
    pub(super) long: &'l Cell<Option<usize>>,
}

impl<'a> Deref for Reader<'a, '_> {
    type Target = Bytes<'a>;

    fn deref(&self) -> &Bytes<'a> {
        &self.bytes
    }
}

impl DerefMut for Reader<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.bytes
    }
}

impl<'a> Reader<'a, '_> {
    /// Records the length of a number, if it is the first of more than eight bytes.
    pub(super) fn record_len(&self, bytes: usize) {
        if bytes > 8 && self.long.get().is_none() {
            self.long.set(Some(bytes));
        }
    }

    /// Takes the next bytes as a part of a record.
    pub(super) fn part(
        &mut self,
        within: &RecordBounds,
        field: &'static str,
        length: u64,
    ) -> Result<Self> {
        let bytes = Bytes(within.part(&mut self.bytes, field, length)?);
        Ok(Self { bytes, long: self.long })
    }
}

/// Reads the tag and the length of a value.
pub(super) fn head(b: &mut Reader<'_, '_>) -> Result<Head> {
    b.record_len(ber::long_length(b.0).unwrap_or(0));
    ber::head(b)
}

/// Skips tags and lengths.
pub(super) fn heads<const N: usize>(b: &mut Reader<'_, '_>) -> Result<()> {
    for _ in 0..N {
        head(b)?;
    }
    Ok(())
}

/// Reads a field of a sequence. Returns the content of the value inside its tag.
pub(super) fn element<'a>(b: &mut Reader<'a, '_>) -> Result<&'a [u8]> {
    head(b)?;
    content(b)
}

/// Reads a value and returns its content.
pub(super) fn content<'a>(b: &mut Reader<'a, '_>) -> Result<&'a [u8]> {
    b.record_len(ber::long_length(b.0).unwrap_or(0));
    ber::value(b).map(|(_, content)| content)
}

/// Reads a field that is a number.
pub(super) fn number(b: &mut Reader<'_, '_>) -> Result<u64> {
    let content = element(b)?;
    b.record_len(content.len());
    Ok(ber::unsigned(content))
}
