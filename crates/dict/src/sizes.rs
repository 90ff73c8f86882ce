//! Numbers of cells that blocks have: those for which the allocation is of one of the allocator's size classes.

use crate::raw::block::{Block, Filling};

/// A block that needs more cells gets one for every 8 that it has, and what the allocation has room for.
const GROW: usize = 8;

/// Free cells of a new block: one for every 12 entries, and what the allocation has room for.
const FRESH: usize = 12;

/// A block shrinks, or merges with its other half, where it has more than this many cells an entry: rarely, because removal
/// costs little otherwise, and far from what growth and splitting leave, so that no sequence alternates between the two.
const SPARSE: usize = 3;

/// Cells of a block at least.
const ROOM_MIN: usize = 8;

/// Bytes below a size class that are left to allocators that need them for alignment.
const SHORT: usize = 8;

/// The least size that allocators hand out without waste from `bytes` on: four of them to a doubling.
const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

impl<T, const HOMES: usize> Block<T, HOMES> {
    /// Entries at which a block is full, though it may have some more. With five entries to six homes nearly all are still in
    /// or just behind theirs.
    pub(crate) const FULL: usize = HOMES * 5 / 6;

    /// Cells for this many entries, and more as far as the allocation has room.
    pub(crate) fn room_for(entries: usize) -> usize {
        let bytes = good_size(Self::INDEX + entries * size_of::<T>() + SHORT) - SHORT - Self::INDEX;
        let room = bytes.checked_div(size_of::<T>()).unwrap_or(Self::ENTRIES_MAX);
        room.max(entries).clamp(ROOM_MIN, Self::ENTRIES_MAX)
    }

    /// The next larger number of cells, up to `most`.
    pub(crate) fn room_beyond(room: usize, most: usize) -> usize {
        Self::room_for(room + room / GROW + 1).min(most)
    }

    /// Whether a block with this many entries and cells is to shrink.
    #[inline]
    pub(crate) fn is_sparse(entries: usize, room: usize) -> bool {
        entries * SPARSE < room
    }

    /// Cells of a new block for this many entries, and some more.
    pub(crate) fn fresh_room(entries: usize) -> usize {
        let most = if entries < Self::FULL { Self::FULL } else { Self::ENTRIES_MAX };
        Self::room_for(entries + entries / FRESH + 1).min(most)
    }

    /// A new block for this many entries, and some more.
    pub(crate) fn filling(depth: u8, entries: usize) -> Filling<T, HOMES> {
        Filling::new(depth, Self::fresh_room(entries))
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
        rooms_fill_allocations::<128>();
        rooms_fill_allocations::<256>();
    }

    fn rooms_fill_allocations<const HOMES: usize>() {
        let most = Block::<u128, HOMES>::ENTRIES_MAX;
        for entries in 1..most {
            let room = Block::<u128, HOMES>::room_for(entries);
            assert!(room >= entries && room <= most);
            let bytes = Block::<u128, HOMES>::INDEX + room * size_of::<u128>();
            let is_limited = room == ROOM_MIN || room == most;
            assert!(is_limited || good_size(bytes) - bytes <= 16, "{room}");
            let next = Block::<u128, HOMES>::room_beyond(room, most);
            assert!(next > room || next == most);
        }
        assert_eq!(Block::<(), HOMES>::room_for(7), Block::<(), HOMES>::ENTRIES_MAX);
    }
}
