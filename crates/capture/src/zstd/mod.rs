//! Zstandard (RFC 8878), unpacked in two stages of which one needs no order.
//!
//! What takes most of the time is to tell what a block's bits mean, and for this nothing of other blocks is
//! needed but the tables they described. So blocks are told apart first, by their headers; then their
//! literals and sequences are read, of several blocks at once, in other threads where there are any;
//! and at last, in order, they become bytes.
//!
//! # How data moves
//!
//! ```text
//! input ─scanner─▶ blocks ─┬─entropy─▶ literals, sequences ─┬─in order─▶ window ─▶ buffer of the record reader
//!                          ├─entropy─▶ literals, sequences ─┤   │
//!                          └─entropy─▶ literals, sequences ─┘   └─▶ checksum
//! ```
//!
//! [`frame`] takes blocks from the input, [`block`] reads the headers within them; [`fse`], [`huffman`] and
//! [`tables`] make tables of descriptions; [`literals`] and [`sequences`] read what is coded, and
//! [`execute`] does what it says. A [`job`] is a block on this way, whose memory goes round.

mod ahead;
mod bits;
mod block;
mod execute;
mod frame;
mod fse;
mod huffman;
mod job;
mod literals;
mod order;
mod reader;
mod sequences;
mod tables;
#[cfg(test)]
mod tests;
mod unpack;

pub use reader::Unzstd;

/// The most that a block unpacks to.
const BLOCK: usize = 128 << 10;

/// The largest window that is unpacked: frames with larger ones want memory that nobody offered.
pub const MOST_WINDOW: usize = 128 << 20;

/// Why packed data mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// No frame begins where one must.
    #[error("no zstd frame where one must be")]
    Magic,
    /// Bits of a frame's header that must not be set.
    #[error("a frame header with flags that mean nothing")]
    Descriptor,
    /// A frame that cannot be unpacked without a dictionary.
    #[error("a frame that needs the dictionary {0}, which is not there")]
    Dictionary(u32),
    /// A frame that wants more memory than it is given.
    #[error("a frame with a window of {0} bytes, where no more than {MOST_WINDOW} are offered")]
    Window(u64),
    /// Blocks are raw, repeated or packed, and not larger than their frame allows.
    #[error("a block of no known kind or of more bytes than there may be")]
    Block,
    /// Something within a block goes over its end.
    #[error("a block that ends too early")]
    Cut,
    /// Bytes behind all that a block has.
    #[error("a block that does not end where it should")]
    Behind,
    /// A block that makes more than it may.
    #[error("a block that unpacks to more bytes than there may be")]
    Long,
    /// Four streams of so few literals that they would not be four.
    #[error("literals that cannot be in four streams")]
    Streams,
    /// Lengths of codes that leave some unused, or of too few.
    #[error("literals whose codes are none")]
    Codes,
    /// Counts that do not add up, or of more symbols than there are.
    #[error("a table whose counts are none")]
    Counts,
    /// Tables are predefined, described or used again.
    #[error("tables of no known kind")]
    Modes,
    /// A table that was described before, where none was.
    #[error("a table to be used again, where none was before")]
    NoTable,
    /// A stream whose last byte lacks the mark that ends it.
    #[error("a stream without its mark")]
    Mark,
    /// Codes that do not take just the bits of their stream.
    #[error("codes that do not end where their stream does")]
    Bits,
    /// Sequences that take more literals than the block has.
    #[error("sequences of more literals than there are")]
    Literals,
    /// A match that begins before the frame does, or further back than its window reaches.
    #[error("an offset that reaches back too far")]
    Offset,
}
