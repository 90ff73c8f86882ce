//! Packed rows: rows as binary values, for columnar files, for several output formats in one run, and for streams that
//! are declared at run time.
//!
//! A packed row is its length followed by the values of its columns in binary, in order. [`PackedEncoder`] encodes a
//! [`Row`](crate::Row), [`RowPacker`] values whose types are known only at run time. [`PackedRows`] splits a buffer
//! into rows, [`Cells`] reads the values of a row, [`RowBlock`] those of many rows column by column, and [`replay`]
//! writes a row with any other [`Encoder`](crate::Encoder), with the same result as the original row. A
//! [`PackedWriter`] receives the packed rows of a run, in the order of the logs.
//!
//! Every column has a slot at a fixed offset, so a reader reads a column of many rows without the columns before it,
//! and compares the marks of all rows to know whether they have a value. The layout of a row, with little-endian
//! integers:
//!
//! ```text
//! row     length of the following bytes (u32), offset of the rest, counted from here (u32), groups, rest
//! group   marks of up to 32 columns (u64, two bits each, lowest bits first), a slot for each column (u64)
//! mark    0                                  unset
//!         1                                  a value
//!         2                                  a string that needs no escaping; a time in seconds (f64)
//!         3                                  a time or an interval in seconds (f64), written with six decimals
//! slot    bool, number, time, interval       the value
//!         address                            IPv4: 4 bytes, with the highest bit set; other: offset in the rest
//!         string of up to 7 bytes            the bytes; the last byte is their number, with the highest bit set
//!         other string                       length (u32), offset in the rest (u32)
//!         list                               number of elements (u32), offset in the rest (u32)
//! rest    bytes of strings; 16 of addresses; elements of lists:
//! element 0                                  unset
//!         mark value                         bool: 1 byte; numbers, times and intervals: 8; address: 16;
//!                                            string: length (u32), bytes
//! ```

mod block;
mod encoder;
mod output;
mod packer;
mod reader;
mod replay;

pub use block::BlockColumn;
pub use block::RowBlock;
pub use encoder::PackedEncoder;
pub use output::Output;
pub use output::PackedStream;
pub use output::PackedWriter;
pub use output::TextOutput;
pub use packer::RowPacker;
pub use reader::Cell;
pub use reader::Cells;
pub use reader::Kind;
pub use reader::List;
pub use reader::PackedRows;
pub use replay::replay;

use gannet_base::Addr;

use crate::text::ends;

/// The column is unset.
const UNSET: u8 = 0;
/// The column has a value.
const VALUE: u8 = 1;
/// The column has a value in its second form: a string that needs no escaping, or a time in seconds.
const OTHER: u8 = 2;

/// The column has a time or interval in seconds, of any size, written with six decimals.
const SECONDS: u8 = 3;

/// Size of the length prefix of a row, in bytes.
const PREFIX: usize = 4;
/// Number of columns in a group: their marks are in one word.
const GROUP: usize = 32;
/// Size of the marks of a group, and of a slot, in bytes.
const WORD: usize = 8;
/// Maximum length of a string that is stored in its slot, in bytes.
const MAX_INLINE: usize = 7;
/// Bit that is set in a slot that contains a string or address itself.
const INLINE: u64 = 1 << 63;

/// Offset of the marks of a column's group, counted from the end of the length prefix.
#[inline(always)]
const fn marks_at(column: usize) -> usize {
    PREFIX + column / GROUP * (WORD + GROUP * WORD)
}

/// Offset of a column's slot, counted from the end of the length prefix.
#[inline(always)]
const fn slot_at(column: usize) -> usize {
    marks_at(column) + WORD + column % GROUP * WORD
}

/// Offset of the rest in a row of `columns` columns, counted from the end of the length prefix.
#[inline(always)]
const fn rest_at(columns: usize) -> usize {
    if columns == 0 { PREFIX + WORD } else { slot_at(columns - 1) + WORD }
}

/// The slot of a length (or number of elements) and an offset in the rest.
#[inline(always)]
fn offset_slot(len: usize, offset: usize) -> u64 {
    len as u64 & u64::from(u32::MAX) | (offset as u64) << 32
}

/// The length (or number of elements) and the offset of a slot.
#[inline(always)]
fn len_and_offset(slot: u64) -> (usize, usize) {
    (slot as u32 as usize, (slot >> 32) as usize)
}

/// The slot of an IPv4 address.
#[inline(always)]
fn v4_slot(octets: [u8; 4]) -> u64 {
    INLINE | u64::from(u32::from_le_bytes(octets))
}

/// The IPv4 address in a slot; `None` if the slot has an offset.
#[inline(always)]
fn inline_v4(slot: u64) -> Option<Addr> {
    (slot & INLINE != 0).then(|| Addr::v4((slot as u32).to_le_bytes()))
}

/// The IPv4 address in a slot as the big-endian number of its IPv4-mapped address.
#[inline(always)]
fn inline_v4_number(slot: u64) -> Option<u128> {
    (slot & INLINE != 0)
        .then(|| u128::from(0xffff_0000_0000 | u64::from((slot as u32).swap_bytes())))
}

/// The slot of a string that fits into it.
#[inline(always)]
fn inline_slot(v: &[u8]) -> Option<u64> {
    let bytes = match (ends::<4>(v), v) {
        _ if v.len() > MAX_INLINE => return None,
        // The two halves overlap.
        (Some((a, b)), _) => {
            let [a, b] = [a, b].map(|half| u64::from(u32::from_le_bytes(half)));
            a | b << (8 * (v.len() - 4))
        }
        (None, []) => 0,
        (None, [a]) => u64::from(*a),
        (None, [a, b, rest @ ..]) => {
            let c = rest.first().copied().unwrap_or_default();
            u64::from(u32::from_le_bytes([*a, *b, c, 0]))
        }
    };
    Some(bytes | (v.len() as u64 | 0x80) << 56)
}

/// The length of the string in a slot; `None` if the slot has an offset.
#[inline(always)]
fn inline_len(slot: u64) -> Option<usize> {
    (slot & INLINE != 0).then_some((slot >> 56) as usize & MAX_INLINE)
}

#[cfg(test)]
mod tests;
