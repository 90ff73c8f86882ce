//! Statistics of a dictionary.

use crate::raw::block::Block;
use crate::table::{Reshaped, Table};

/// Lengths, distances and growth of a dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Entries.
    pub len: usize,
    /// Cells for entries, filled or not.
    pub capacity: usize,
    /// Segments; 0 up to 15 entries.
    pub segments: usize,
    /// Places of the directory.
    pub directory: usize,
    /// Entries of the fullest segment: the most that one split moves.
    pub largest_segment: usize,
    /// Lanes of the index between an entry and its home, on average.
    pub mean_distance: f64,
    /// The same at worst.
    pub longest_distance: usize,
    /// Number of growth and shrink steps.
    pub reshaped: Reshaped,
}

impl Stats {
    pub(crate) fn of<T>(table: &Table<T>, hasher: impl Fn(&T) -> u64) -> Self {
        let hasher = &hasher;
        let distances = || table.blocks().flat_map(move |b| b.distances(hasher));
        Stats {
            len: table.len(),
            capacity: table.blocks().map(Block::room).sum(),
            segments: table.blocks().count(),
            directory: table.directory_len(),
            largest_segment: table.blocks().map(Block::len).max().unwrap_or(0),
            mean_distance: distances().sum::<usize>() as f64 / table.len().max(1) as f64,
            longest_distance: distances().max().unwrap_or(0),
            reshaped: table.reshaped(),
        }
    }
}
