//! Lines on their way to a file.

use crate::json::JsonEncoder;
use crate::json::JsonTimes;
use crate::logs::Format;
use crate::packed::PackedEncoder;
use crate::row::Cut;
use crate::row::Field;
use crate::row::Limits;
use crate::row::Row;
use crate::tsv::TsvEncoder;

/// Lines one behind the other, and room for the next.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// What lies behind the lines is of no meaning.
    bytes: Vec<u8>,
    len: usize,
}

/// A buffer goes to its file when it holds this much, and in pieces of just this size, so that they
/// lie in a file as they lie in memory. Kernels keep what was written in pieces like those it came
/// in: from 128 KiB on they have to look for memory that nobody used for long, which on virtual
/// machines costs more than all copying, and pieces that cross the borders of pages cost twice.
pub(crate) const PIECE: usize = 64 << 10;

/// Bytes of a buffer with anything in it.
const MIN_BYTES: usize = 1 << 10;

/// Room behind lines that are about to be written, for one more: a buffer of twice the size would be
/// of a class of which the allocator takes megabytes at a time.
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

    /// Forgets so many of the first bytes, keeps the memory.
    pub(crate) fn drop_first(&mut self, n: usize) {
        self.bytes.copy_within(n..self.len, 0);
        self.len -= n;
    }

    /// Forgets all lines, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The memory of all lines, of which what lies behind them is of no meaning. Lines to come get
    /// the `other` memory.
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

    /// Appends a row as a line of tab-separated text, if there is room for it; returns what had to be
    /// cut to its limit.
    #[inline(always)]
    pub(crate) fn tsv<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let mut e = TsvEncoder::new(&mut self.bytes[self.len..], R::LIMITS);
        row.encode(&mut e);
        let (n, cut) = e.finish()?;
        self.len += n;
        Some(cut)
    }

    /// Twice the room, or a little more than is written at a time.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.bytes.len();
        let more = if len == PIECE { REST } else { len.max(MIN_BYTES) };
        self.bytes.reserve_exact(more);
        self.bytes.resize(len + more, 0);
    }
}

/// Appends a row, returning what had to be cut to its limit.
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

/// Appends a packed row, given without its length and of these columns.
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
                let mut e = PackedEncoder::new(room, Limits::NONE);
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
    let mut e = PackedEncoder::new(&mut out.bytes[out.len..], R::LIMITS);
    row.encode(&mut e);
    let (n, cut) = e.finish()?;
    out.len += n;
    Some(cut)
}

#[inline(never)]
fn json<R: Row>(out: &mut Buffer, row: &R, times: JsonTimes) -> Option<Cut> {
    let mut e = JsonEncoder::new(&mut out.bytes[out.len..], R::LIMITS, times);
    row.encode(&mut e);
    let (n, cut) = e.finish()?;
    out.len += n;
    Some(cut)
}

/// Not part of the loop that calls it: the compiler would work out ahead of the loop whatever may
/// be needed in it.
#[inline(never)]
fn tsv<R: Row>(out: &mut Buffer, row: &R) -> Option<Cut> {
    out.tsv(row)
}
