//! Buffer of the lines of a log file.

use crate::json::JsonEncoder;
use crate::json::JsonTimes;
use crate::logs::Format;
use crate::packed::PackedEncoder;
use crate::row::Cut;
use crate::row::Field;
use crate::row::Limits;
use crate::row::Row;
use crate::tsv::TsvEncoder;

/// Buffered lines, followed by space for the next ones.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The bytes after `len` are unspecified.
    bytes: Vec<u8>,
    len: usize,
}

/// Size of a write, in bytes: a buffer is written when it has this length, in pieces of exactly this size, with the
/// same alignment in file and memory. For larger writes (from 128 KiB) Linux allocates larger page-cache folios, whose
/// memory is not in the CPU cache and costs more than the copy on virtual machines; pieces that cross page boundaries
/// cost twice.
pub(crate) const PIECE: usize = 64 << 10;

/// Initial size of a buffer, in bytes.
const MIN_BYTES: usize = 1 << 10;

/// Space for one more row after [`PIECE`] bytes of lines. Doubling the buffer would reach a size class for which the
/// allocator takes megabytes at a time.
const ROW_CAPACITY: usize = PIECE / 4;

impl Buffer {
    /// Size of all lines, in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All lines.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Removes the first `n` bytes; keeps the allocated memory.
    pub(crate) fn drop_first(&mut self, n: usize) {
        self.bytes.copy_within(n..self.len, 0);
        self.len -= n;
    }

    /// Removes all lines; keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the memory of all lines, whose bytes after the lines are unspecified, and replaces it by `other`.
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

    /// Appends a row as a line of tab-separated text; returns which parts were truncated to their limits, or `None` if
    /// the buffer is too small.
    #[inline(always)]
    pub(crate) fn tsv<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let mut e = TsvEncoder::new(&mut self.bytes[self.len..], R::LIMITS);
        row.encode(&mut e);
        let (n, cut) = e.finish()?;
        self.len += n;
        Some(cut)
    }

    /// Appends a packed row; returns like [`tsv`](Self::tsv).
    #[inline(always)]
    pub(crate) fn packed<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let mut e = PackedEncoder::new(&mut self.bytes[self.len..], R::LIMITS, R::COLUMNS);
        row.encode(&mut e);
        let (n, cut) = e.finish()?;
        self.len += n;
        Some(cut)
    }

    /// Doubles the buffer, or adds [`ROW_CAPACITY`] to one of [`PIECE`] bytes.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.bytes.len();
        let more = if len == PIECE { ROW_CAPACITY } else { len.max(MIN_BYTES) };
        self.bytes.reserve_exact(more);
        self.bytes.resize(len + more, 0);
    }
}

/// Appends a row; returns which parts were truncated to their limits.
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

/// Returns a packed row in another format, with its line end. The row is given without its length prefix.
pub fn packed_text(format: Format, fields: &[Field], row: &[u8]) -> Vec<u8> {
    let mut out = Buffer::default();
    replay(format, fields, row, &mut out);
    out.bytes.truncate(out.len);
    out.bytes
}

/// Appends a packed row with these columns, given without its length prefix.
pub(crate) fn replay(format: Format, fields: &[Field], row: &[u8], out: &mut Buffer) {
    loop {
        let buffer = &mut out.bytes[out.len..];
        let written = match format {
            Format::Tsv => {
                let mut e = TsvEncoder::new(buffer, Limits::NONE);
                crate::packed::replay(fields, row, &mut e);
                e.finish()
            }
            Format::Json(times) => {
                let mut e = JsonEncoder::new(buffer, Limits::NONE, times);
                crate::packed::replay(fields, row, &mut e);
                e.finish()
            }
            Format::Packed => {
                let mut e = PackedEncoder::new(buffer, Limits::NONE, fields.len());
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
