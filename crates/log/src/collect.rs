//! Rows that are collected in memory with their places, for somebody else to put in order.

use std::ops::Range;

use gannet_base::Time;

use crate::row::Field;
use crate::row::Row;

/// A row's place among the rows of all parts of an analysis.
///
/// Parts that work at the same time write their rows in the order of their keys, and what one
/// part would have written alone is the order of all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Number of the packet that was at hand.
    pub packet: u64,
    /// When what made it was due: [`Time::MAX`] for the packet itself, which comes after
    /// everything that was due before it.
    pub due: Time,
    /// Order of what was due at the same time.
    pub tie: u64,
}

impl Key {
    /// No row has an earlier one.
    pub const EARLIEST: Self = Self { packet: 0, due: Time::from_nanos(i64::MIN), tie: 0 };
}

/// What is to be known of a stream to write its lines.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name.
    pub path: &'static str,
    /// Whether it is written only where it is asked for.
    pub opt_in: bool,
    /// Its columns.
    pub fields: Fields,
}

/// The columns of a stream, optional ones among them.
#[derive(Clone, Copy, Debug)]
pub enum Fields {
    /// Of a row type.
    Declared(fn() -> Vec<Field>),
    /// Of a stream that is declared at run time.
    Listed(&'static [Field]),
}

impl Fields {
    /// All of them in order.
    pub fn all(self) -> Vec<Field> {
        match self {
            Self::Declared(fields) => fields(),
            Self::Listed(fields) => fields.to_vec(),
        }
    }
}

impl Shape {
    /// The shape of a row type's stream.
    pub const fn of<R: Row>() -> Self {
        Self { path: R::PATH, opt_in: R::OPT_IN, fields: Fields::Declared(R::fields) }
    }
}

/// Rows are handed on in pieces of about this many bytes: so large that what a piece costs is not
/// felt, and so small that the few at work stay in a cache.
pub(crate) const CHUNK: usize = 64 << 10;
/// A chunk is full when so much is left: most rows fit in that, and it need not grow.
pub(crate) const CHUNK_REST: usize = 4 << 10;
/// Rows that are fewer bytes are copied: what is handed on waits, and is no larger than it must be.
pub(crate) const COPIED: usize = CHUNK / 4;

/// Rows of one stream, formatted, with the place of each.
#[derive(Debug)]
pub struct Rows {
    /// The stream.
    pub shape: Shape,
    /// Packet time at the first of these rows.
    pub opened: Time,
    /// All lines; what follows the last one is of no meaning.
    pub bytes: Vec<u8>,
    /// The key of each row, and where its line ends.
    pub marks: Vec<(Key, u32)>,
}

impl Rows {
    /// Whether their memory may serve for [others](crate::Logs::reuse).
    pub fn is_chunk(&self) -> bool {
        (CHUNK..=2 * CHUNK).contains(&self.bytes.capacity())
    }

    /// Some of the lines.
    #[inline]
    pub(crate) fn lines(&self, which: Range<usize>) -> &[u8] {
        self.bytes.get(self.end(which.start)..self.end(which.end)).unwrap_or_default()
    }

    /// Where so many of the first lines end.
    #[inline]
    fn end(&self, rows: usize) -> usize {
        let last = rows.checked_sub(1).and_then(|last| self.marks.get(last));
        last.map_or(0, |mark| mark.1 as usize)
    }
}

/// Rows of two parts that are written in turns, each of which lies before all rows of others.
pub(crate) struct Turns<'a>([Turn<'a>; 2]);

/// Those of one part.
struct Turn<'a> {
    bytes: &'a [u8],
    marks: &'a [(Key, u32)],
    next: usize,
    /// Where the line of the next one begins.
    start: usize,
}

impl<'a> Turns<'a> {
    /// Of rows that begin at these places, those with a key before `limit`.
    pub(crate) fn new(rows: [(&'a Rows, usize); 2], limit: Key) -> Self {
        Self(rows.map(|(rows, next)| {
            let rest = rows.marks.get(next..).unwrap_or_default();
            let end = next + rest.partition_point(|mark| mark.0 < limit);
            let marks = rows.marks.get(..end).unwrap_or_default();
            Turn { bytes: &rows.bytes, marks, next, start: rows.end(next) }
        }))
    }

    /// The line of the next row, as long as both parts have one. Should the keys be the same, the first
    /// part's row comes first.
    // Which has the earlier key cannot be foreseen, so that it is counted with and not branched on: apart from
    // its caller, or the compiler keeps both parts in registers, and branches.
    #[inline(never)]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let [first, second] = &self.0;
        let (a, b) = (&first.marks.get(first.next)?.0, &second.marks.get(second.next)?.0);
        let second_is_next = if a.packet == b.packet { b < a } else { b.packet < a.packet };
        let turn = &mut self.0[usize::from(second_is_next)];
        let end = turn.marks.get(turn.next)?.1 as usize;
        let line = turn.bytes.get(turn.start..end).unwrap_or_default();
        (turn.next, turn.start) = (turn.next + 1, end);
        Some(line)
    }

    /// Where the rows that are left begin.
    pub(crate) fn places(&self) -> [usize; 2] {
        [self.0[0].next, self.0[1].next]
    }
}
