//! Capacities of blocks, chosen so that allocations fill the allocator's size classes.

use crate::raw::block::{Block, Filling};

/// A block that needs more cells gets one for every 8 that it has, and those that fit into the
/// allocation's size class.
const GROW: usize = 8;

/// Free cells of a new block: one for every 12 entries, and those that fit into the allocation's
/// size class.
const SPARE: usize = 12;

/// A block shrinks, or merges with its other half, when it has more than this many cells per entry.
/// That happens rarely, which keeps removal cheap, and far from the sizes after growth and splits,
/// so that no sequence of operations alternates between the two.
const SPARSE: usize = 3;

/// Minimum number of cells of a block.
const CAPACITY_MIN: usize = 8;

/// Bytes of a size class left to allocators that need them for alignment.
const RESERVED: usize = 8;

/// The smallest size class of at least `bytes`; there are four to a doubling.
const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

impl<T, const HOMES: usize> Block<T, HOMES> {
    /// Number of entries at which a block counts as full, though it may have some more. With five
    /// entries to six homes nearly all are still in or just after their homes.
    pub(crate) const FULL: usize = HOMES * 5 / 6;

    /// Number of cells for this many entries, rounded up to the allocation's size class.
    pub(crate) fn capacity_for(entries: usize) -> usize {
        let bytes =
            good_size(Self::INDEX + entries * size_of::<T>() + RESERVED) - RESERVED - Self::INDEX;
        let capacity = bytes.checked_div(size_of::<T>()).unwrap_or(Self::ENTRIES_MAX);
        capacity.max(entries).clamp(CAPACITY_MIN, Self::ENTRIES_MAX)
    }

    /// The next larger number of cells, up to `max`.
    pub(crate) fn next_capacity(capacity: usize, max: usize) -> usize {
        Self::capacity_for(capacity + capacity / GROW + 1).min(max)
    }

    /// Whether a block with this many entries and cells should shrink.
    #[inline]
    pub(crate) fn is_sparse(entries: usize, capacity: usize) -> bool {
        entries * SPARSE < capacity
    }

    /// Number of cells of a new block for this many entries, with some spare ones.
    pub(crate) fn spare_capacity(entries: usize) -> usize {
        let max = if entries < Self::FULL { Self::FULL } else { Self::ENTRIES_MAX };
        Self::capacity_for(entries + entries / SPARE + 1).min(max)
    }

    /// A new block for this many entries, with some spare cells.
    pub(crate) fn filling(depth: u8, entries: usize) -> Filling<T, HOMES> {
        Filling::new(depth, Self::spare_capacity(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_allocators() {
        assert_eq!(
            [1, 64, 65, 128, 129, 1025, 2048, 2049, 9000].map(good_size),
            [16, 64, 80, 128, 160, 1280, 2048, 2560, 10240]
        );
        capacities_fill_allocations::<128>();
        capacities_fill_allocations::<256>();
    }

    fn capacities_fill_allocations<const HOMES: usize>() {
        let max = Block::<u128, HOMES>::ENTRIES_MAX;
        for entries in 1..max {
            let capacity = Block::<u128, HOMES>::capacity_for(entries);
            assert!(capacity >= entries && capacity <= max);
            let bytes = Block::<u128, HOMES>::INDEX + capacity * size_of::<u128>();
            let is_limited = capacity == CAPACITY_MIN || capacity == max;
            assert!(is_limited || good_size(bytes) - bytes <= 16, "{capacity}");
            let next = Block::<u128, HOMES>::next_capacity(capacity, max);
            assert!(next > capacity || next == max);
        }
        assert_eq!(Block::<(), HOMES>::capacity_for(7), Block::<(), HOMES>::ENTRIES_MAX);
    }
}
