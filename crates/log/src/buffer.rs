//! Buffered lines of a log file.

use crate::json::JsonEncoder;
use crate::json::JsonTimes;
use crate::logs::Format;
use crate::packed::PackedEncoder;
use crate::row::Cut;
use crate::row::Field;
use crate::row::Limits;
use crate::row::Row;
use crate::tsv::TsvEncoder;

/// Buffered lines, and room for the next.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The bytes behind the lines are unspecified.
    bytes: Vec<u8>,
    len: usize,
}

/// A buffer is written to its file when it holds this much, and in pieces of exactly this size,
/// aligned alike in file and memory. Larger writes (from 128 KiB) make kernels allocate larger
/// page-cache folios, whose memory is not recently used and on virtual machines costs more than the
/// copy; pieces that cross page boundaries cost twice.
pub(crate) const PIECE: usize = 64 << 10;

/// Initial bytes of a buffer that holds lines.
const MIN_BYTES: usize = 1 << 10;

/// Room for one more row behind lines that are about to be written. Doubling the buffer would reach
/// a size class for which the allocator takes megabytes at a time.
const REST: usize = PIECE / 4;

impl Buffer {
    /// Bytes of all lines.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All lines.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Drops the first `n` bytes and keeps the memory.
    pub(crate) fn drop_first(&mut self, n: usize) {
        self.bytes.copy_within(n..self.len, 0);
        self.len -= n;
    }

    /// Drops all lines and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the memory of all lines (the bytes behind the lines are unspecified). Later lines go
    /// to the `other` memory.
    pub(crate) fn exchange(&mut self, other: Vec<u8>) -> Vec<u8> {
        self.len = 0;
        std::mem::replace(&mut self.bytes, other)
    }

    /// Appends lines.
    pub(crate) fn extend(&mut self, lines: &[u8]) {
        let end = self.len + lines.len();
        while self.bytes.len() < end {
            self.grow();
        }
        self.bytes[self.len..end].copy_from_slice(lines);
        self.len = end;
    }

    /// Appends a row as a line of tab-separated text if there is room for it; returns what was cut
    /// to its limit.
    #[inline(always)]
    pub(crate) fn tsv<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let mut e = TsvEncoder::new(&mut self.bytes[self.len..], R::LIMITS);
        row.encode(&mut e);
        let (n, cut) = e.finish()?;
        self.len += n;
        Some(cut)
    }

    /// Appends a packed row if there is room for it; returns what was cut to its limit.
    #[inline(always)]
    pub(crate) fn packed<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let mut e = PackedEncoder::new(&mut self.bytes[self.len..], R::LIMITS, R::COLUMNS);
        row.encode(&mut e);
        let (n, cut) = e.finish()?;
        self.len += n;
        Some(cut)
    }

    /// Doubles the room, or adds a little more than one write.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.bytes.len();
        let more = if len == PIECE { REST } else { len.max(MIN_BYTES) };
        self.bytes.reserve_exact(more);
        self.bytes.resize(len + more, 0);
    }
}

/// Appends a row; returns what was cut to its limit.
#[inline]
pub(crate) fn format<R: Row>(format: Format, row: &R, out: &mut Buffer) -> Cut {
    match format {
        Format::Tsv => loop {
            if let Some(cut) = tsv(out, row) {
                return cut;
            }
            out.grow();
        },
        Format::Json(times) => loop {
            if let Some(cut) = json(out, row, times) {
                return cut;
            }
            out.grow();
        },
        Format::Packed => loop {
            if let Some(cut) = packed(out, row) {
                return cut;
            }
            out.grow();
        },
    }
}

/// Returns a packed row in another format, with its line end. The row is given without its length.
pub fn packed_text(format: Format, fields: &[Field], row: &[u8]) -> Vec<u8> {
    let mut out = Buffer::default();
    replay(format, fields, row, &mut out);
    out.bytes.truncate(out.len);
    out.bytes
}

/// Appends a packed row with these columns, given without its length.
pub(crate) fn replay(format: Format, fields: &[Field], row: &[u8], out: &mut Buffer) {
    loop {
        let room = &mut out.bytes[out.len..];
        let written = match format {
            Format::Tsv => {
                let mut e = TsvEncoder::new(room, Limits::NONE);
                crate::packed::replay(fields, row, &mut e);
                e.finish()
            }
            Format::Json(times) => {
                let mut e = JsonEncoder::new(room, Limits::NONE, times);
                crate::packed::replay(fields, row, &mut e);
                e.finish()
            }
            Format::Packed => {
                let mut e = PackedEncoder::new(room, Limits::NONE, fields.len());
                crate::packed::replay(fields, row, &mut e);
                e.finish()
            }
        };
        if let Some((n, _)) = written {
            out.len += n;
            return;
        }
        out.grow();
    }
}

#[inline(never)]
fn packed<R: Row>(out: &mut Buffer, row: &R) -> Option<Cut> {
    out.packed(row)
}

#[inline(never)]
fn json<R: Row>(out: &mut Buffer, row: &R, times: JsonTimes) -> Option<Cut> {
    let mut e = JsonEncoder::new(&mut out.bytes[out.len..], R::LIMITS, times);
    row.encode(&mut e);
    let (n, cut) = e.finish()?;
    out.len += n;
    Some(cut)
}

/// Not inlined into the calling loop: the compiler would hoist computations of this function out of
/// the loop.
#[inline(never)]
fn tsv<R: Row>(out: &mut Buffer, row: &R) -> Option<Cut> {
    out.tsv(row)
}
