//! A block in flight: its compressed form, its decoded form, and the memory for both.

use std::io;
use std::ops::Range;

use super::Damage;
use super::fse::Counts;
use super::huffman;

/// Number of bytes before the content of a block in [`Job::input`] that backward readers may read.
pub(super) const FRONT: usize = 32;

/// The frame that begins with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Longest distance of a match.
    pub(super) window: usize,
    /// Decompressed size of the frame, if stated.
    pub(super) size: Option<u64>,
    /// Whether a checksum follows the blocks.
    pub(super) checksum: bool,
}

/// The encoding of the content of a block.
#[derive(Clone, Debug, Default)]
pub(super) enum Content {
    /// No content: the block is an error.
    #[default]
    Nothing,
    /// Uncompressed.
    Raw,
    /// A byte, repeated.
    Repeated(u8, usize),
    Packed(Box<Packed>),
}

/// The headers within a compressed block; ranges are of [`Job::input`].
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) literals: Literals,
    /// Number of literals.
    pub(super) literal_count: usize,
    /// Codes of literals, if they are encoded.
    pub(super) codes: Codes,
    /// Tables of literal lengths, offsets and match lengths.
    pub(super) tables: [TableDescription; 3],
    pub(super) sequences: usize,
    pub(super) stream: Range<usize>,
}

/// The encoding of literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literals {
    Raw(Range<usize>),
    Repeated(u8),
    One(Range<usize>),
    Four([Range<usize>; 4]),
}

/// The description of a Huffman table. Descriptions with the same `id` are equal.
#[derive(Clone, Debug)]
pub(super) struct Codes {
    pub(super) id: u64,
    pub(super) bytes: [u8; 1 + huffman::MAX_BYTES],
    pub(super) length: usize,
}

/// The description of a table of sequences. Descriptions with the same `id` are equal.
#[derive(Clone, Debug)]
pub(super) struct TableDescription {
    pub(super) id: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// One symbol, which takes no bits.
    Symbol(u8),
    Counts(Counts),
}

/// Sequences: a run of literals to copy, then a match.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Sequences {
    pub(super) literals: [u32; GROUP],
    pub(super) lengths: [u32; GROUP],
    /// An offset plus [`REPEATS`], or a repeated offset: 0, 1 and 2 are the last, second last and
    /// third last offset, 3 is the last offset minus one.
    pub(super) offsets: [u32; GROUP],
}

impl Sequences {
    pub(super) const NONE: Self =
        Self { literals: [0; GROUP], lengths: [0; GROUP], offsets: [0; GROUP] };
}

/// Sequences in a group.
pub(super) const GROUP: usize = 256;

/// Added to offsets in [`Sequences::offsets`].
pub(super) const REPEATS: u32 = 3;

/// The result of the entropy stage for a block.
#[derive(Debug, Default)]
pub(super) struct DecodedEntropy {
    /// Literals, followed by slack.
    pub(super) literals: Vec<u8>,
    pub(super) literal_count: usize,
    /// The first `sequence_count` of these are valid.
    pub(super) sequences: Vec<Sequences>,
    pub(super) sequence_count: usize,
    /// Decompressed size.
    pub(super) size: usize,
}

/// The error in place of a block.
#[derive(Debug)]
pub(super) enum Failure {
    Damage(Damage),
    Input(io::Error),
}

/// A block and its state.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// Index of the block in the input.
    pub(super) number: u64,
    /// Set if the block begins a frame.
    pub(super) frame: Option<Frame>,
    /// Offset in the input of the frame that the block begins.
    pub(super) frame_offset: u64,
    /// Set if the block ends a frame; holds the checksum, if the frame has one.
    pub(super) end: Option<Option<u32>>,
    /// Maximum decompressed size, in bytes.
    pub(super) max_size: usize,
    /// [`FRONT`] bytes, followed by the content.
    pub(super) input: Vec<u8>,
    pub(super) content: Content,
    pub(super) decoded: DecodedEntropy,
    /// Error to return after the content.
    pub(super) failure: Option<Failure>,
    /// Bytes of input consumed up to the end of the block.
    pub(super) used: u64,
}

impl Job {
    /// The compressed content.
    pub(super) fn content_bytes(&self) -> &[u8] {
        self.input.get(FRONT..).unwrap_or_default()
    }

    /// Resets the job for another block.
    pub(super) fn reset(&mut self, number: u64) {
        self.number = number;
        (self.frame, self.end, self.failure) = (None, None, None);
        self.content = Content::Nothing;
        self.input.resize(FRONT, 0);
    }
}
