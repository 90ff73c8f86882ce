//! Zstandard (RFC 8878), decompressed in two stages, the first of which is parallel.
//!
//! Entropy decoding takes most of the time and depends on other blocks only through repeated table
//! descriptions. So the input is first split into blocks by their headers; then literals and
//! sequences of several blocks are decoded in parallel, in helper threads if allowed; finally the
//! sequences are executed in order.
//!
//! # How data moves
//!
//! ```text
//! input ─scanner─▶ blocks ─┬─entropy─▶ literals, sequences ─┬─in order─▶ window ─▶ buffer of the record reader
//!                          ├─entropy─▶ literals, sequences ─┤   │
//!                          └─entropy─▶ literals, sequences ─┘   └─▶ checksum
//! ```
//!
//! [`frame`] reads blocks from the input, [`block`] parses the headers within them; [`fse`],
//! [`huffman`] and [`tables`] build tables from descriptions; [`literals`] and [`sequences`]
//! decode, and [`execute`] writes the output. A [`job`] is a block in flight, whose memory is
//! reused.

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

/// Maximum decompressed size of a block, in bytes.
const BLOCK: usize = 128 << 10;

/// The largest supported window, in bytes: frames with larger ones need more memory than the limit.
pub const MAX_WINDOW: usize = 128 << 20;

/// Why compressed data is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// No magic number at the position where a frame must begin.
    #[error("no zstd magic number at the start of a frame")]
    Magic,
    /// Reserved bits of a frame's header are set.
    #[error("reserved bits are set in a frame header")]
    Descriptor,
    /// A frame that needs a dictionary.
    #[error("a frame needs dictionary {0}; dictionaries are not supported")]
    Dictionary(u32),
    /// A frame that needs a larger window than [`MAX_WINDOW`].
    #[error("a frame needs a window of {0} bytes; the maximum is {MAX_WINDOW}")]
    Window(u64),
    /// A block of a reserved type, or larger than its frame allows.
    #[error("invalid block type or block size")]
    Block,
    /// A field within a block exceeds its end.
    #[error("a block is truncated")]
    Truncated,
    /// Bytes after the last section of a block.
    #[error("extra bytes at the end of a block")]
    TrailingBytes,
    /// A block that decompresses to more than allowed.
    #[error("a block decompresses to more than the maximum block size")]
    Long,
    /// Four streams of fewer literals than four streams can have.
    #[error("too few literals for four streams")]
    Streams,
    /// Code lengths that are incomplete, or of too few symbols.
    #[error("invalid Huffman code lengths of literals")]
    Codes,
    /// Counts that do not add up, or of too many symbols.
    #[error("invalid FSE table")]
    Counts,
    /// A table mode that is reserved.
    #[error("reserved FSE table mode")]
    Modes,
    /// A repeated table without an earlier one.
    #[error("a repeated table without a previous one")]
    NoTable,
    /// A stream whose last byte lacks the mark that ends it.
    #[error("a bitstream without its end mark")]
    Mark,
    /// Codes that do not use exactly the bits of their stream.
    #[error("a bitstream that was not consumed exactly")]
    Bits,
    /// Sequences that take more literals than the block has.
    #[error("sequences use more literals than the block has")]
    Literals,
    /// A match that begins before the frame, or beyond its window.
    #[error("a match offset beyond the window")]
    Offset,
}
