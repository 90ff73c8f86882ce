//! Rows as packed values, for columnar files, several formats at once and streams that are declared
//! at run time.
//!
//! A packed row is its length followed by the values of its columns in binary, in order. The
//! [`PackedEncoder`] makes one from a [`Row`](crate::Row), a [`RowPacker`] from values that are
//! known only at run time. [`PackedRows`] splits a buffer into rows, [`Cells`] reads the values of
//! one, and [`replay`] writes it with any other [`Encoder`](crate::Encoder): the text equals that
//! of the row itself. A [`PackedWriter`] receives the packed rows of a run, in the order of the
//! logs.
//!
//! The layout of a row, all numbers little-endian:
//!
//! ```text
//! row     length of what follows (u32), then a cell for each column
//! cell    0                                  unset
//!         1 value                            bool: 1 byte; numbers, times and intervals: 8; address: 16;
//!                                            string: length (u32), bytes; list: count (u32), cells
//!         2 value                            a string that needs no escaping; a time in seconds (f64)
//!         3 value                            a time or an interval in seconds (f64), written with six decimals
//! ```

mod block;
mod encoder;
mod output;
mod reader;
mod replay;

pub use block::RowBlock;
pub use encoder::PackedEncoder;
pub use encoder::RowPacker;
pub use output::Output;
pub use output::PackedStream;
pub use output::PackedWriter;
pub use output::TextOutput;
pub use reader::Cell;
pub use reader::Cells;
pub use reader::Kind;
pub use reader::List;
pub use reader::PackedRows;
pub use replay::replay;

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

#[cfg(test)]
mod tests;
