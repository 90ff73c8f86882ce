//! Rows that are collected in memory with their keys, to be merged in order.

use std::ops::Range;

use gannet_base::Time;

use crate::row::Field;
use crate::row::Row;

/// A row's position among the rows of all shards of an analysis.
///
/// Each shard writes its rows in the order of their keys; a single shard would write all rows in the order of their
/// keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Number of the current packet.
    pub packet: u64,
    /// Due time of the timer that produced the row; [`Time::MAX`] for the packet itself, which is processed after all
    /// timers due before it.
    pub due: Time,
    /// Order among rows with the same due time.
    pub tie: u64,
}

impl Key {
    /// The earliest key.
    pub const EARLIEST: Self = Self { packet: 0, due: Time::from_nanos(i64::MIN), tie: 0 };
}

/// The description of a stream that is needed to write its lines.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name of the stream.
    pub path: &'static str,
    /// Whether it is written only on request.
    pub opt_in: bool,
    /// Columns of the stream.
    pub fields: Fields,
}

/// The columns of a stream, including optional ones.
#[derive(Clone, Copy, Debug)]
pub enum Fields {
    /// Columns of a row type.
    Declared(fn() -> Vec<Field>),
    /// Columns of a stream that is declared at run time.
    Listed(&'static [Field]),
}

impl Fields {
    /// All columns in order.
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

/// Approximate size of a chunk of rows, in bytes: large enough that the cost of a chunk is negligible, small enough
/// that the chunks in use stay in the CPU cache.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// A chunk with at most this many bytes left is full: most rows fit into them, so chunks rarely grow.
pub(crate) const FULL_CHUNK_REST: usize = 4 << 10;
/// Chunks of at most this many bytes are copied to memory of their exact size, since chunks may be queued for long.
pub(crate) const MAX_COPIED: usize = CHUNK_BYTES / 4;

/// Formatted rows of one stream, with the key of each.
#[derive(Debug)]
pub struct Rows {
    /// The stream.
    pub shape: Shape,
    /// Packet time at the first of these rows.
    pub opened: Time,
    /// All lines; the bytes after the last one are unspecified.
    pub bytes: Vec<u8>,
    /// The key of each row and the end offset of its line.
    pub marks: Vec<(Key, u32)>,
}

impl Rows {
    /// Whether the memory can be [reused](crate::Logs::reuse).
    pub fn is_chunk(&self) -> bool {
        (CHUNK_BYTES..=2 * CHUNK_BYTES).contains(&self.bytes.capacity())
    }

    /// The lines of a range of rows.
    #[inline]
    pub(crate) fn lines(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(self.end(range.start)..self.end(range.end)).unwrap_or_default()
    }

    /// End offset of the first `rows` lines.
    #[inline]
    fn end(&self, rows: usize) -> usize {
        let last = rows.checked_sub(1).and_then(|last| self.marks.get(last));
        last.map_or(0, |mark| mark.1 as usize)
    }
}

/// Iterator that merges rows of two shards; all of them precede the rows of other shards.
pub(crate) struct MergedRows<'a>([ShardRows<'a>; 2]);

/// The rows of one shard.
struct ShardRows<'a> {
    bytes: &'a [u8],
    marks: &'a [(Key, u32)],
    /// Index of the next row.
    next: usize,
    /// Offset of the line of the next row.
    start: usize,
}

impl<'a> MergedRows<'a> {
    /// Merges the rows from these positions on that have a key before `limit`.
    pub(crate) fn new(rows: [(&'a Rows, usize); 2], limit: Key) -> Self {
        Self(rows.map(|(rows, next)| {
            let rest = rows.marks.get(next..).unwrap_or_default();
            let end = next + rest.partition_point(|mark| mark.0 < limit);
            let marks = rows.marks.get(..end).unwrap_or_default();
            ShardRows { bytes: &rows.bytes, marks, next, start: rows.end(next) }
        }))
    }

    /// Returns the line of the next row, while both shards have one. For equal keys the row of the first shard
    /// precedes.
    // The smaller key is unpredictable, so it is chosen without a branch. Not inlined: otherwise the compiler keeps
    // both shards in registers and branches.
    #[inline(never)]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let [first, second] = &self.0;
        let (a, b) = (&first.marks.get(first.next)?.0, &second.marks.get(second.next)?.0);
        let second_is_next = if a.packet == b.packet { b < a } else { b.packet < a.packet };
        let shard = &mut self.0[usize::from(second_is_next)];
        let end = shard.marks.get(shard.next)?.1 as usize;
        let line = shard.bytes.get(shard.start..end).unwrap_or_default();
        (shard.next, shard.start) = (shard.next + 1, end);
        Some(line)
    }

    /// Positions of the first remaining row of each shard.
    pub(crate) fn positions(&self) -> [usize; 2] {
        [self.0[0].next, self.0[1].next]
    }
}
