//! A block on its way: what it was packed as, what it says, and the memory for both.

use std::io;
use std::ops::Range;

use super::Damage;
use super::fse::Counts;
use super::huffman;

/// Bytes before the content of a block in [`Job::input`]: those who read backwards may look at them.
pub(super) const FRONT: usize = 32;

/// What begins with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// How far matches may reach back.
    pub(super) window: usize,
    /// What all blocks unpack to, if it says so.
    pub(super) size: Option<u64>,
    /// Whether a checksum comes behind them.
    pub(super) checksum: bool,
}

/// How the content of a block is packed.
#[derive(Clone, Debug, Default)]
pub(super) enum Content {
    /// There is none: an error stands in its place.
    #[default]
    Nothing,
    /// As it is.
    Raw,
    /// A byte, so often.
    Repeated(u8, usize),
    Packed(Box<Packed>),
}

/// What the headers within a packed block say; ranges are of [`Job::input`].
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) literals: Literals,
    /// How many there are.
    pub(super) literal_count: usize,
    /// Codes of literals, if any are coded.
    pub(super) codes: Codes,
    /// Of literal lengths, offsets, match lengths.
    pub(super) tables: [Described; 3],
    pub(super) sequences: usize,
    pub(super) stream: Range<usize>,
}

/// How literals are packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literals {
    Raw(Range<usize>),
    Repeated(u8),
    One(Range<usize>),
    Four([Range<usize>; 4]),
}

/// The description of a Huffman table. Those of one `id` are the same.
#[derive(Clone, Debug)]
pub(super) struct Codes {
    pub(super) id: u64,
    pub(super) bytes: [u8; 1 + huffman::MOST_BYTES],
    pub(super) length: usize,
}

/// The description of a table of sequences. Those of one `id` are the same.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) id: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// One symbol, which takes no bits.
    Symbol(u8),
    Counts(Counts),
}

/// Sequences: literals to be copied, then a match.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Sequences {
    pub(super) literals: [u32; TOGETHER],
    pub(super) lengths: [u32; TOGETHER],
    /// An offset and [`REPEATS`], or which of the last offsets: 0, 1 and 2 count back, 3 is the last
    /// less one.
    pub(super) offsets: [u32; TOGETHER],
}

impl Sequences {
    pub(super) const NONE: Self =
        Self { literals: [0; TOGETHER], lengths: [0; TOGETHER], offsets: [0; TOGETHER] };
}

/// Sequences that stand together.
pub(super) const TOGETHER: usize = 256;

/// Offsets in [`Sequences::offsets`] are more by so many.
pub(super) const REPEATS: u32 = 3;

/// What the entropy stage made of a block.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Literals, and room behind them.
    pub(super) literals: Vec<u8>,
    pub(super) literal_count: usize,
    /// The first of these are `sequence_count` sequences.
    pub(super) sequences: Vec<Sequences>,
    pub(super) sequence_count: usize,
    /// What it unpacks to.
    pub(super) size: usize,
}

/// What is wrong with a block, and comes in its place.
#[derive(Debug)]
pub(super) enum Failure {
    Damage(Damage),
    Input(io::Error),
}

/// A block, and what comes with it.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// Its place among all of them.
    pub(super) number: u64,
    /// Whether it begins a frame.
    pub(super) frame: Option<Frame>,
    /// Whether it ends one, and with which checksum.
    pub(super) end: Option<Option<u32>>,
    /// The most that it may unpack to.
    pub(super) most: usize,
    /// [`FRONT`] bytes, and the content.
    pub(super) input: Vec<u8>,
    pub(super) content: Content,
    pub(super) made: Made,
    /// Comes after the content.
    pub(super) failure: Option<Failure>,
    /// Bytes of all input up to its end.
    pub(super) used: u64,
}

impl Job {
    /// What was packed.
    pub(super) fn content_bytes(&self) -> &[u8] {
        self.input.get(FRONT..).unwrap_or_default()
    }

    /// Makes it ready for another block.
    pub(super) fn reset(&mut self, number: u64) {
        self.number = number;
        (self.frame, self.end, self.failure) = (None, None, None);
        self.content = Content::Nothing;
        self.input.resize(FRONT, 0);
    }
}
