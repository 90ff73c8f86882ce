//! Rows that are collected in memory with their keys, for the merge to order.

use std::ops::Range;

use gannet_base::Time;

use crate::row::Field;
use crate::row::Row;

/// A row's position among the rows of all shards of an analysis.
///
/// Each shard writes its rows in the order of their keys; one shard alone would write all rows in
/// the order of all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Number of the current packet.
    pub packet: u64,
    /// Due time of the timer that made the row; [`Time::MAX`] for the packet itself, which comes
    /// after all timers due before it.
    pub due: Time,
    /// Order among rows due at the same time.
    pub tie: u64,
}

impl Key {
    /// The earliest key.
    pub const EARLIEST: Self = Self { packet: 0, due: Time::from_nanos(i64::MIN), tie: 0 };
}

/// The description of a stream that writing its lines needs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name.
    pub path: &'static str,
    /// Whether it is written only on request.
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

/// Rows are passed on in chunks of about this many bytes: large enough that the cost of a chunk is
/// negligible, small enough that the chunks in use stay in a cache.
pub(crate) const CHUNK: usize = 64 << 10;
/// A chunk with this much room or less is full: most rows fit in that, so it need not grow.
pub(crate) const CHUNK_REST: usize = 4 << 10;
/// Chunks with fewer bytes than this are copied to memory of their exact size, since chunks may
/// wait for long.
pub(crate) const COPIED: usize = CHUNK / 4;

/// Formatted rows of one stream, with the key of each.
#[derive(Debug)]
pub struct Rows {
    /// The stream.
    pub shape: Shape,
    /// Packet time at the first of these rows.
    pub opened: Time,
    /// All lines; the bytes behind the last one are unspecified.
    pub bytes: Vec<u8>,
    /// The key of each row, and where its line ends.
    pub marks: Vec<(Key, u32)>,
}

impl Rows {
    /// Whether this memory can be [reused](crate::Logs::reuse).
    pub fn is_chunk(&self) -> bool {
        (CHUNK..=2 * CHUNK).contains(&self.bytes.capacity())
    }

    /// Some of the lines.
    #[inline]
    pub(crate) fn lines(&self, which: Range<usize>) -> &[u8] {
        self.bytes.get(self.end(which.start)..self.end(which.end)).unwrap_or_default()
    }

    /// The end of the first `rows` lines.
    #[inline]
    fn end(&self, rows: usize) -> usize {
        let last = rows.checked_sub(1).and_then(|last| self.marks.get(last));
        last.map_or(0, |mark| mark.1 as usize)
    }
}

/// Rows of two shards that are merged; both ranges precede all rows of other shards.
pub(crate) struct MergedRows<'a>([ShardRows<'a>; 2]);

/// The rows of one shard.
struct ShardRows<'a> {
    bytes: &'a [u8],
    marks: &'a [(Key, u32)],
    next: usize,
    /// Where the line of the next one begins.
    start: usize,
}

impl<'a> MergedRows<'a> {
    /// From these start positions, the rows with a key before `limit`.
    pub(crate) fn new(rows: [(&'a Rows, usize); 2], limit: Key) -> Self {
        Self(rows.map(|(rows, next)| {
            let rest = rows.marks.get(next..).unwrap_or_default();
            let end = next + rest.partition_point(|mark| mark.0 < limit);
            let marks = rows.marks.get(..end).unwrap_or_default();
            ShardRows { bytes: &rows.bytes, marks, next, start: rows.end(next) }
        }))
    }

    /// The line of the next row, while both shards have one. For equal keys the first shard's row comes
    /// first.
    // Which key is smaller is unpredictable, so the choice is computed without a branch. Not inlined: the
    // compiler would otherwise keep both shards in registers and branch.
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

    /// Positions of the first remaining row of each shard.
    pub(crate) fn places(&self) -> [usize; 2] {
        [self.0[0].next, self.0[1].next]
    }
}
