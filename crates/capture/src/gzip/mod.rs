//! gzip (RFC 1952) around DEFLATE (RFC 1951), unpacked straight into the buffer that packets are read from.
//!
//! Most captures that are kept are kept as gzip, and of reading one nearly all is unpacking: hence a decoder of
//! our own. [`Gunzip`] reads members one after the other and holds them against their checksums;
//! [`Inflate`] unpacks the stream within.
//!
//! # How data moves
//!
//! ```text
//! mapped file ─▶ 64 bits ─▶ table ─▶ second table ─▶ literal, or length
//!                   │                                      │
//!                   └────▶ table ─▶ second table ─▶ distance
//!                                                          ▼
//!          buffer of the record reader: … last 32 KiB │ being written │ room …
//! ```
//!
//! There is no window beside the output: matches are copied from what was written before, which the
//! owner of the buffer keeps in front of it. So a byte is written once, and read where it lies.
//!
//! [`fast`] has the loop for nearly all symbols, [`inflate`] what happens at the ends of input and output, in
//! which it can be stopped anywhere; [`table`] says what codes mean. Where a file is long, all this is done in
//! a thread of its own, and [`checks`] in that of the record reader.

mod checks;
mod fast;
mod inflate;
mod member;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use checks::Checker;
pub(crate) use checks::Due;
pub use inflate::Inflate;
pub use inflate::Step;
pub use inflate::Stop;
pub use member::Gunzip;

/// How far a match can reach back: what must stay in front of the output.
pub const HISTORY: usize = 32 << 10;

/// Why packed data mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Blocks are stored, of fixed codes or of codes they describe.
    #[error("a block of no known kind")]
    Block,
    /// The length of a stored block does not match its complement.
    #[error("a stored block whose length is wrong")]
    Stored,
    /// Codes that cannot be told apart, that leave some unused, or that lack the end of the block.
    #[error("a block whose codes are none")]
    Codes,
    /// Bits that are no code, or one that means nothing.
    #[error("a code that means nothing")]
    Code,
    /// A match that begins before the stream does.
    #[error("a distance that reaches back too far")]
    Distance,
}
