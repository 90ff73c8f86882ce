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
    #[error("no zstd frame where one must be")]
    Magic,
    /// Reserved bits of a frame's header are set.
    #[error("a frame header with reserved flags")]
    Descriptor,
    /// A frame that needs a dictionary.
    #[error("a frame that needs the dictionary {0}, which is not there")]
    Dictionary(u32),
    /// A frame that needs a larger window than [`MAX_WINDOW`].
    #[error("a frame with a window of {0} bytes, where no more than {MAX_WINDOW} are offered")]
    Window(u64),
    /// A block of a reserved type, or larger than its frame allows.
    #[error("a block of no known kind or of more bytes than there may be")]
    Block,
    /// A field within a block exceeds its end.
    #[error("a block that ends too early")]
    Truncated,
    /// Bytes after the last section of a block.
    #[error("a block that does not end where it should")]
    TrailingBytes,
    /// A block that decompresses to more than allowed.
    #[error("a block that unpacks to more bytes than there may be")]
    Long,
    /// Four streams of fewer literals than four streams can have.
    #[error("literals that cannot be in four streams")]
    Streams,
    /// Code lengths that are incomplete, or of too few symbols.
    #[error("literals whose codes are none")]
    Codes,
    /// Counts that do not add up, or of too many symbols.
    #[error("a table whose counts are none")]
    Counts,
    /// A table mode that is reserved.
    #[error("tables of no known kind")]
    Modes,
    /// A repeated table without an earlier one.
    #[error("a table to be used again, where none was before")]
    NoTable,
    /// A stream whose last byte lacks the mark that ends it.
    #[error("a stream without its mark")]
    Mark,
    /// Codes that do not use exactly the bits of their stream.
    #[error("codes that do not end where their stream does")]
    Bits,
    /// Sequences that take more literals than the block has.
    #[error("sequences of more literals than there are")]
    Literals,
    /// A match that begins before the frame, or beyond its window.
    #[error("an offset that reaches back too far")]
    Offset,
}
