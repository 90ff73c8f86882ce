//! Complete packet lists, encoded as in an index file.

use crate::list::List;
use crate::list::PADDING;
use crate::varint;

/// Concatenated records: number of packets, size of the distances in bytes, and the distances of a list.
#[derive(Debug, Default)]
pub(crate) struct Records {
    chunks: Vec<Vec<u8>>,
}

/// Position of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordPosition {
    chunk: u32,
    offset: u16,
    /// Length in bytes; 0 if there is no record, `u16::MAX` if the record extends to the end of its chunk.
    len: u16,
}

/// Size of a chunk in bytes, unless a single record is longer.
const CHUNK_BYTES: usize = 1 << 16;
/// Maximum size of the two numbers before the distances, in bytes.
const MAX_HEAD: usize = 20;

impl Records {
    /// Appends the record of a list with packets.
    pub(crate) fn add(&mut self, list: &List) -> RecordPosition {
        let len = list.len();
        if len == 0 {
            return RecordPosition::default();
        }
        let max_len = MAX_HEAD + len + PADDING;
        if self.chunks.last().is_none_or(|chunk| chunk.len() + max_len > CHUNK_BYTES) {
            self.chunks.push(Vec::with_capacity(max_len.max(CHUNK_BYTES)));
        }
        let number = self.chunks.len() - 1;
        let Some(chunk) = self.chunks.last_mut() else { return RecordPosition::default() };
        let start = chunk.len();
        let packets = list.packets();
        if packets < 0x80 && len < 0x80 {
            chunk.extend_from_slice(&[packets as u8, len as u8]);
        } else {
            varint::append(chunk, packets);
            varint::append(chunk, len as u64);
        }
        list.append_to(chunk);
        // A longer record is alone in its chunk.
        let len = (chunk.len() - start).min(usize::from(u16::MAX)) as u16;
        RecordPosition { chunk: number as u32, offset: start as u16, len }
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// The record at a position; empty if there is none.
    pub(crate) fn at(&self, position: RecordPosition) -> &[u8] {
        let chunk = self.chunks.get(position.chunk as usize).map(Vec::as_slice);
        position.of(chunk.unwrap_or_default())
    }
}

impl RecordPosition {
    /// Whether there is no record.
    pub(crate) fn is_none(self) -> bool {
        self.len == 0
    }

    /// The position of the record after `chunks` more chunks are inserted before its own.
    pub(crate) fn after(self, chunks: usize) -> Self {
        Self { chunk: self.chunk + chunks as u32, ..self }
    }

    pub(crate) fn chunk(self) -> usize {
        self.chunk as usize
    }

    pub(crate) fn offset(self) -> usize {
        usize::from(self.offset)
    }

    /// The bytes of the record in its chunk.
    #[inline]
    pub(crate) fn of(self, chunk: &[u8]) -> &[u8] {
        let rest = chunk.get(self.offset()..).unwrap_or_default();
        match self.len {
            u16::MAX => rest,
            len => rest.get(..len.into()).unwrap_or_default(),
        }
    }

    /// Appends the record in this chunk.
    #[inline]
    pub(crate) fn append_to(self, all: &mut Vec<u8>, chunk: &[u8]) {
        /// Maximum length of a record that is copied without a loop, in bytes.
        const SHORT_RECORD: usize = 32;
        let len = usize::from(self.len);
        let rest = chunk.get(self.offset()..).unwrap_or_default();
        match rest.first_chunk::<SHORT_RECORD>() {
            Some(more) if len <= SHORT_RECORD => {
                let end = all.len() + len;
                all.extend_from_slice(more);
                all.truncate(end);
            }
            _ => all.extend_from_slice(self.of(chunk)),
        }
    }
}

/// The distances of a record.
fn distances(record: &[u8]) -> &[u8] {
    let mut rest = record;
    let _ = (varint::take(&mut rest), varint::take(&mut rest));
    rest
}

/// The first packet of a record; 0 if there is none.
pub(crate) fn first(record: &[u8]) -> u64 {
    varint::take(&mut distances(record)).unwrap_or_default()
}

/// The packets of a record.
pub(crate) fn numbers(record: &[u8]) -> impl Iterator<Item = u64> {
    let (mut rest, mut last) = (distances(record), 0);
    std::iter::from_fn(move || {
        last += varint::take(&mut rest)?;
        Some(last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_length_are_found() {
        let mut records = Records::default();
        // Include records that just fit into a chunk with another one, and records whose length just fits into a
        // position.
        let lens = [1, 2, 30, 65_400, 5, 65_490, 65_491, 65_492, 65_493, 1, 65_510, 65_515];
        let lens = lens.into_iter().chain(65_520..65_550).chain([200_000, 0, 7]);
        let positions: Vec<_> = lens
            .map(|len| {
                let mut list = List::new(0);
                (1..=len).for_each(|number| list.add(number));
                (len, records.add(&list))
            })
            .collect();
        for (len, position) in positions {
            assert_eq!(position.is_none(), len == 0);
            assert!(numbers(records.at(position)).eq(1..=len), "{len}");
            assert_eq!(first(records.at(position)), len.min(1));
        }
    }
}
