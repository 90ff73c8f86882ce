//! Statistics of a dictionary.

use crate::raw::block::Block;
use crate::single::Single;
use crate::table::{Reshaped, Table};

/// Sizes, distances and growth of a dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Number of entries.
    pub len: usize,
    /// Number of cells for entries, filled or not.
    pub capacity: usize,
    /// Number of segments; 0 up to 15 entries.
    pub segments: usize,
    /// Number of slots of the directory; 0 up to 106 entries.
    pub directory: usize,
    /// Entries of the fullest segment: the maximum that one split moves.
    pub largest_segment: usize,
    /// Lanes of the index between an entry and its home, on average.
    pub mean_distance: f64,
    /// Maximum number of lanes between an entry and its home.
    pub longest_distance: usize,
    /// Numbers of growth and shrink steps.
    pub reshaped: Reshaped,
}

impl Stats {
    pub(crate) fn of<T>(table: &Table<T>, hasher: impl Fn(&T) -> u64) -> Self {
        let (directory, reshaped) = (table.directory_len(), table.reshaped());
        Stats { directory, reshaped, ..Self::of_blocks(|| table.blocks(), table.len(), hasher) }
    }

    pub(crate) fn of_single<T>(single: &Single<T>, hasher: impl Fn(&T) -> u64) -> Self {
        Self::of_blocks(|| core::iter::once(single.segment()), single.len(), hasher)
    }

    fn of_blocks<'b, T: 'b, const HOMES: usize, I: Iterator<Item = &'b Block<T, HOMES>>>(
        blocks: impl Fn() -> I,
        len: usize,
        hasher: impl Fn(&T) -> u64,
    ) -> Self {
        let hasher = &hasher;
        let distances = || blocks().flat_map(move |block| block.distances(hasher));
        Stats {
            len,
            capacity: blocks().map(Block::capacity).sum(),
            segments: blocks().count(),
            largest_segment: blocks().map(Block::len).max().unwrap_or(0),
            mean_distance: distances().sum::<usize>() as f64 / len.max(1) as f64,
            longest_distance: distances().max().unwrap_or(0),
            ..Stats::default()
        }
    }
}
