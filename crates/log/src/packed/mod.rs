//! Rows as packed values, for columnar files, several formats at once and streams that are declared
//! at run time.
//!
//! A packed row is its length followed by the values of its columns in binary, in order. The
//! [`PackedEncoder`] makes one from a [`Row`](crate::Row), a [`RowPacker`] from values that are
//! known only at run time. [`PackedRows`] splits a buffer into rows, [`Cells`] reads the values of
//! one, a [`RowBlock`] those of many rows column by column, and [`replay`] writes a row with any other
//! [`Encoder`](crate::Encoder): the text equals that of the row itself. A [`PackedWriter`] receives the
//! packed rows of a run, in the order of the logs.
//!
//! Every column has its place: a reader finds the same column of many rows without what is before it, and
//! sees at once whether all of them have a value. The layout of a row, all numbers little-endian:
//!
//! ```text
//! row     length of what follows (u32), where the rest begins, counted from here (u32), groups, rest
//! group   marks of up to 32 columns (u64, two bits each, the first ones lowest), a slot for each column (u64)
//! mark    0                                  unset
//!         1                                  a value
//!         2                                  a string that needs no escaping; a time in seconds (f64)
//!         3                                  a time or an interval in seconds (f64), written with six decimals
//! slot    bool, number, time, interval       the value
//!         address                            of IPv4: 4 bytes, the highest bit set; other: its place in the rest
//!         string of up to 7 bytes            those, and as the last byte their number with the highest bit set
//!         other string                       length (u32), place in the rest (u32)
//!         list                               number of elements (u32), place in the rest (u32)
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
/// A value follows.
const VALUE: u8 = 1;
/// A value in its other form follows: a string that needs no escaping, a time in seconds.
const OTHER: u8 = 2;

/// Seconds follow, written unchanged: times and intervals of protocols, of any size.
const SECONDS: u8 = 3;

/// Bytes of the length before a row.
const PREFIX: usize = 4;
/// Columns whose marks are in one word.
const GROUP: usize = 32;
/// Bytes of marks, and of a slot.
const WORD: usize = 8;
/// Bytes of a string that has room in its slot.
const SHORT: usize = 7;
/// The bit of a slot that contains the value itself.
const HERE: u64 = 1 << 63;

/// Where the marks of a column's group are, counted from behind the length.
#[inline(always)]
const fn marks_at(column: usize) -> usize {
    PREFIX + column / GROUP * (WORD + GROUP * WORD)
}

/// Where a column's slot is, counted from behind the length.
#[inline(always)]
const fn slot_at(column: usize) -> usize {
    marks_at(column) + WORD + column % GROUP * WORD
}

/// Where the rest begins behind that many columns.
#[inline(always)]
const fn rest_at(columns: usize) -> usize {
    if columns == 0 { PREFIX + WORD } else { slot_at(columns - 1) + WORD }
}

/// The slot of a length or number and a place in the rest.
#[inline(always)]
fn placed(len: usize, place: usize) -> u64 {
    len as u64 & u64::from(u32::MAX) | (place as u64) << 32
}

/// The length or number and the place of a slot.
#[inline(always)]
fn place_of(slot: u64) -> (usize, usize) {
    (slot as u32 as usize, (slot >> 32) as usize)
}

/// The slot of an IPv4 address.
#[inline(always)]
fn v4_slot(octets: [u8; 4]) -> u64 {
    HERE | u64::from(u32::from_le_bytes(octets))
}

/// The address of such a slot.
#[inline(always)]
fn v4_of(slot: u64) -> Option<Addr> {
    (slot & HERE != 0).then(|| Addr::v4((slot as u32).to_le_bytes()))
}

/// The same as a number whose highest byte is the first one of the sixteen.
#[inline(always)]
fn v4_number(slot: u64) -> Option<u128> {
    (slot & HERE != 0).then(|| u128::from(0xffff_0000_0000 | u64::from((slot as u32).swap_bytes())))
}

/// The slot of a string that has room in it.
#[inline(always)]
fn short_slot(v: &[u8]) -> Option<u64> {
    let bytes = match (ends::<4>(v), v) {
        _ if v.len() > SHORT => return None,
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

/// The length of the string in such a slot.
#[inline(always)]
fn short_of(slot: u64) -> Option<usize> {
    (slot & HERE != 0).then_some((slot >> 56) as usize & SHORT)
}

#[cfg(test)]
mod tests;
