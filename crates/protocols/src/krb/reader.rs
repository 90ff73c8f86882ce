//! A reader of a message's bytes, and weirds of its numbers.

use std::cell::Cell;
use std::ops::Deref;
use std::ops::DerefMut;

use crate::support::Bytes;
use crate::support::RecordBounds;
use crate::support::ber;
use crate::support::ber::Head;
use crate::support::ber::Result;

/// Bytes of a message that are still to be read.
pub(super) struct Reader<'a, 'l> {
    pub(super) bytes: Bytes<'a>,
    /// Bytes of the first number that has more than eight.
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
    /// Notes the length of a number.
    pub(super) fn note(&self, bytes: usize) {
        if bytes > 8 && self.long.get().is_none() {
            self.long.set(Some(bytes));
        }
    }

    /// The next bytes, as a part of a record.
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

/// Tag and length of a value.
pub(super) fn head(b: &mut Reader<'_, '_>) -> Result<Head> {
    b.note(ber::long_length(b.0).unwrap_or(0));
    ber::head(b)
}

/// Skips tags and lengths.
pub(super) fn heads<const N: usize>(b: &mut Reader<'_, '_>) -> Result<()> {
    for _ in 0..N {
        head(b)?;
    }
    Ok(())
}

/// A field of a sequence: the content of the value inside its tag.
pub(super) fn element<'a>(b: &mut Reader<'a, '_>) -> Result<&'a [u8]> {
    head(b)?;
    content(b)
}

/// The content of a value.
pub(super) fn content<'a>(b: &mut Reader<'a, '_>) -> Result<&'a [u8]> {
    b.note(ber::long_length(b.0).unwrap_or(0));
    ber::value(b).map(|(_, content)| content)
}

/// A field that is a number.
pub(super) fn number(b: &mut Reader<'_, '_>) -> Result<u64> {
    let content = element(b)?;
    b.note(content.len());
    Ok(ber::unsigned(content))
}
