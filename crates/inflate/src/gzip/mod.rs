//! gzip (RFC 1952) with DEFLATE (RFC 1951), decompressed directly into the buffer that packets are
//! read from.
//!
//! Most stored captures are gzip files, and decompression dominates reading them, so this crate has
//! its own decoder. [`Gunzip`] reads members one after the other and verifies their checksums;
//! [`Inflate`] decompresses the streams.
//!
//! # How data moves
//!
//! ```text
//! mapped file ─▶ 64 bits ─▶ table ─▶ second table ─▶ literal, or length
//!                   │                                      │
//!                   └────▶ table ─▶ second table ─▶ distance
//!                                                          ▼
//!          buffer of the record reader: … last 32 KiB │ being written │ free space …
//! ```
//!
//! The output buffer is the window: matches are copied from earlier output, which the owner of the
//! buffer keeps before the write position. Each byte is written once and read in place.
//!
//! [`fast`] has the loop for nearly all symbols, [`inflate`] the resumable decoder for the ends of
//! input and output; [`table`] has the decoding tables. For long files this runs in a decoder
//! thread, and [`checks`] in the thread of the record reader.

mod checks;
mod fast;
mod inflate;
mod member;
mod table;
#[cfg(test)]
mod tests;

pub use checks::Checker;
pub use checks::Trailer;
pub use inflate::Inflate;
pub use inflate::Step;
pub use inflate::Stop;
pub use member::Gunzip;

/// The longest distance of a match: the output that must precede the write position.
pub const HISTORY: usize = 32 << 10;

/// Why compressed data is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A block type other than stored, fixed codes or dynamic codes.
    #[error("invalid block type")]
    Block,
    /// The length of a stored block does not match its complement.
    #[error("the length of a stored block does not match its complement")]
    Stored,
    /// A set of codes that is over-subscribed, incomplete, or lacks the end of the block.
    #[error("invalid Huffman code lengths")]
    Codes,
    /// Bits that are not a code, or a code without a meaning.
    #[error("invalid Huffman code")]
    Code,
    /// A match that begins before the stream.
    #[error("a match distance beyond the start of the data")]
    Distance,
}
