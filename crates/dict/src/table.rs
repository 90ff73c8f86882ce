//! The clustered table: blocks in the order of hashes, a directory that finds them, and the policy
//! of growth, splits and merges.
//!
//! The table grows by one block at a time, so the work of one operation is bounded by the entries of one block and some
//! slots of the directory.

use crate::raw::block::{LaneIndex, PrefetchedSearch};
use crate::raw::directory::{Block, Directory, at_order, first_after, order, split_bit};
use crate::raw::secret::{self, Drawn};

/// Number of entries at which a block is split, if its hashes differ and the directory has enough
/// bits. While the directory is being doubled, a block may have more entries.
pub(crate) const SPLIT_AT: usize = Block::<()>::FULL;

/// Maximum number of entries of a block.
const ENTRIES_MAX: usize = Block::<()>::ENTRIES_MAX;

/// Two halves that together hold at most this many entries are merged.
const MERGE_MAX: usize = SPLIT_AT * 2 / 3;

/// Maximum number of directory slots per block, for hashes that splits do not separate.
const DIRECTORY_RATIO: usize = 8;

/// Numbers of the table's growth and shrink steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reshaped {
    /// Segments given more cells.
    pub grown: u32,
    /// Segments given fewer cells.
    pub shrunk: u32,
    /// Segments split in two.
    pub split: u32,
    /// Segments merged with their other half.
    pub merged: u32,
}

struct Counts<T> {
    len: usize,
    /// The overflow list: entries, with their hashes, that found no lane in their blocks although
    /// those are far from full, because too many have similar hashes. Empty for well distributed
    /// hashes.
    overflow: Vec<(u64, T)>,
    blocks: usize,
    /// Block count at which the directory last reached its minimum size.
    halve_below: usize,
    reshaped: Reshaped,
}

/// The table; `T` is an entry with its key.
pub(crate) struct Table<T> {
    directory: Directory<T, Counts<T>>,
    /// Proof that the key of the hash has been drawn.
    pub(crate) drawn: Drawn,
}

/// The position of an entry, until the next change.
#[derive(Clone, Copy)]
pub(crate) struct EntryPosition {
    hash: u64,
    at: At,
}

#[derive(Clone, Copy)]
pub(crate) enum At {
    Cell(LaneIndex),
    Overflow(usize),
}

/// The result of a search that compares only the first entry with the tag.
pub(crate) enum FirstSearch<'t, T> {
    Is(&'t T),
    /// The first entry is not equal; the search must continue, for this hash.
    IsNot(u64),
    /// No entry is equal.
    None,
}

impl<T> Table<T> {
    /// A table of these entries.
    pub(crate) fn new(entries: impl Iterator<Item = T>, hash_of: impl Fn(&T) -> u64) -> Self {
        let entries: Vec<_> = entries.map(|e| (hash_of(&e), e)).collect();
        let mut block = Block::filling(0, entries.len().min(SPLIT_AT));
        let mut left = Vec::new();
        let mut len = 0;
        for (hash, entry) in entries {
            match block.add(hash, entry) {
                Ok(()) => len += 1,
                Err(entry) => left.push((hash, entry)),
            }
        }
        let (reshaped, overflow) = (Reshaped::default(), Vec::new());
        let counts = Counts { len, overflow, blocks: 1, halve_below: 0, reshaped };
        let directory = Directory::new(block.finish(), counts);
        let mut table = Table { directory, drawn: secret::draw() };
        left.into_iter().for_each(|(hash, entry)| table.insert(hash, entry, &hash_of));
        table
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.directory.counts().len
    }

    /// [`Block::begin`].
    #[inline(always)]
    pub(crate) fn begin(&self, hash: u64) -> PrefetchedSearch<'_, T> {
        self.directory.block(hash).begin(hash)
    }

    /// Whether keys without a matching tag may still be present, in the overflow list.
    pub(crate) fn has_overflow(&self) -> bool {
        self.directory.has_overflow
    }

    /// The entry of this hash that `eq` accepts, if it is the first one with the tag, as it nearly always is.
    #[inline(always)]
    pub(crate) fn find_first(
        &self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
    ) -> FirstSearch<'_, T> {
        let block = self.directory.block(hash);
        match block.find_first(hash, &mut eq) {
            Ok((entry, _)) => FirstSearch::Is(entry),
            Err(has_tag) if has_tag || self.directory.has_overflow => FirstSearch::IsNot(hash),
            Err(_) => FirstSearch::None,
        }
    }

    /// The entry of this hash that `eq` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, mut eq: impl FnMut(&T) -> bool + Copy) -> Option<&T> {
        match self.find_first(hash, eq) {
            FirstSearch::Is(entry) => Some(entry),
            FirstSearch::IsNot(hash) => self.find_any(hash, &mut eq).map(|(entry, _)| entry),
            FirstSearch::None => None,
        }
    }

    /// Searches all entries with the tag. Starts over with the original `eq`, so a search that ends
    /// at the first entry keeps no state for this function in memory or registers.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_any(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(&T, At)> {
        let block = self.directory.block(hash);
        if let Some((entry, lane)) = block.find(hash, eq) {
            return Some((entry, At::Cell(lane)));
        }
        let (at, entry) =
            if block.has_overflow() { self.find_in_overflow(hash, eq)? } else { return None };
        Some((entry, At::Overflow(at)))
    }

    #[cold]
    #[inline(never)]
    fn find_in_overflow(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(usize, &T)> {
        let overflow = self.directory.counts().overflow.iter().enumerate();
        overflow
            .map(|(at, (of, entry))| (at, *of, entry))
            .find_map(|(at, of, entry)| (of == hash && eq(entry)).then_some((at, entry)))
    }

    /// The position of an entry.
    #[inline]
    pub(crate) fn position(
        &self,
        hash: u64,
        eq: impl FnMut(&T) -> bool + Copy,
    ) -> Option<EntryPosition> {
        let mut first = eq;
        let block = self.directory.block(hash);
        let at = match block.find_first(hash, &mut first) {
            Ok((_, lane)) => At::Cell(lane),
            Err(has_tag) if has_tag || self.directory.has_overflow => {
                let mut again = eq;
                self.find_any(hash, &mut again)?.1
            }
            Err(_) => return None,
        };
        Some(EntryPosition { hash, at })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, position: EntryPosition) -> Option<&mut T> {
        match position.at {
            At::Cell(lane) => self.directory.entries_mut(position.hash).get_mut(lane),
            At::Overflow(at) => {
                self.directory.counts_mut().overflow.get_mut(at).map(|(_, entry)| entry)
            }
        }
    }

    /// Adds an entry whose key is not present.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) {
        self.directory.counts_mut().len += 1;
        if let Err(entry) = self.directory.entries_mut(hash).insert(hash, entry, &hasher) {
            self.insert_grown(hash, entry, hasher);
        }
    }

    /// Adds an entry whose block has no free cell.
    #[cold]
    #[inline(never)]
    fn insert_grown(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) {
        self.grow(hash, &hasher);
        if let Err(entry) = self.directory.entries_mut(hash).insert(hash, entry, &hasher) {
            self.push_overflow(hash, entry);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_overflow(&mut self, hash: u64, entry: T) {
        self.directory.counts_mut().overflow.push((hash, entry));
        self.directory.has_overflow = true;
        self.directory.set_overflow(hash, true);
    }

    /// Removes the entry of this hash that `eq` accepts; sparse blocks shrink or merge.
    #[inline(always)]
    pub(crate) fn remove(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool + Copy,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<T> {
        let mut first = eq;
        match self.directory.entries_mut(hash).take_first(hash, &mut first) {
            Ok((entry, left, is_sparse)) => {
                self.directory.counts_mut().len -= 1;
                if is_sparse || self.directory.has_overflow {
                    self.after_removal(hash, left, is_sparse, hasher);
                }
                Some(entry)
            }
            Err(has_tag) if has_tag || self.directory.has_overflow => {
                self.remove_again(hash, eq, hasher)
            }
            Err(_) => None,
        }
    }

    /// [`remove`](Self::remove) for an entry that is not the first one with the tag.
    #[cold]
    #[inline(never)]
    fn remove_again(
        &mut self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<T> {
        let (entry, left, is_sparse) = match self.find_any(hash, &mut eq)?.1 {
            At::Cell(lane) => self.directory.entries_mut(hash).take(lane)?,
            At::Overflow(at) => (self.swap_remove_overflow(at).1, ENTRIES_MAX, false),
        };
        self.directory.counts_mut().len -= 1;
        self.after_removal(hash, left, is_sparse, hasher);
        Some(entry)
    }

    /// Moves entries of the overflow list back to their block, as far as it has free lanes and
    /// cells.
    #[cold]
    #[inline(never)]
    fn reinsert_overflow(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        while self.directory.block(hash).has_overflow() {
            let block = self.directory.block(hash);
            let bits = split_bit(block.depth()) - split_bit(0);
            let overflow = &self.directory.counts().overflow;
            let Some(at) = overflow.iter().position(|(of, _)| (of ^ hash) & bits == 0) else {
                self.directory.set_overflow(hash, false);
                return;
            };
            let (of, entry) = self.swap_remove_overflow(at);
            if let Err(entry) = self.directory.entries_mut(of).insert(of, entry, &hasher) {
                self.push_overflow(of, entry);
                return;
            }
        }
    }

    /// Removes an entry from the overflow list.
    fn swap_remove_overflow(&mut self, at: usize) -> (u64, T) {
        let overflow = &mut self.directory.counts_mut().overflow;
        let entry = overflow.swap_remove(at);
        self.directory.has_overflow = !overflow.is_empty();
        entry
    }

    /// The hashes of the entries in the block of `hash`, in order. All are computed before the
    /// first entry moves: whatever the user's code does, no entry is lost.
    fn hashes(&self, hash: u64, hasher: impl Fn(&T) -> u64) -> Vec<u64> {
        let block = self.directory.block(hash);
        let mut hashes = Vec::with_capacity(block.len());
        hashes.extend(block.iter().map(hasher));
        hashes
    }

    /// Grows the block of `hash`, or splits it in two.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        self.directory.step();
        let block = self.directory.block(hash);
        let (len, capacity) = (block.len(), block.capacity());
        let is_full = len == capacity;
        if (capacity >= SPLIT_AT || !is_full && len >= SPLIT_AT / 2) && self.make_splittable(hash) {
            self.split(hash, hasher);
        } else if is_full && capacity < ENTRIES_MAX {
            let most = if capacity < SPLIT_AT { SPLIT_AT } else { ENTRIES_MAX };
            self.directory.set_capacity(hash, Block::<T>::next_capacity(capacity, most));
            self.directory.counts_mut().reshaped.grown += 1;
        }
    }

    /// Splits the block of `hash` by the next bit.
    fn split(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        let hashes = self.hashes(hash, &hasher);
        let depth = self.directory.block(hash).depth();
        let bit = split_bit(depth);
        let half = |hash: u64| usize::from(hash & bit != 0);
        let high_len: usize = hashes.iter().map(|hash| half(*hash)).sum();
        let mut halves =
            [hashes.len() - high_len, high_len].map(|len| Block::filling(depth + 1, len));
        let mut hashes = hashes.into_iter();
        let mut left = Vec::new();
        self.directory.entries_mut(hash).drain(|entry| {
            let hash = hashes.next().unwrap_or(hash);
            // Selected by index, as a branch would be unpredictable.
            if let Err(entry) = halves[half(hash)].add(hash, entry) {
                left.push((hash, entry));
            }
        });
        // Entries that found no lane go to the overflow list, which may have entries of this block
        // already, until they are tried again.
        let has_overflow = self.directory.block(hash).has_overflow() || !left.is_empty();
        self.directory.counts_mut().overflow.append(&mut left);
        self.directory.has_overflow = !self.directory.counts().overflow.is_empty();
        let halves = halves.map(|half| {
            let mut half = half.finish();
            half.set_overflow(has_overflow);
            half
        });
        drop(self.directory.split(hash, halves));
        let counts = self.directory.counts_mut();
        counts.reshaped.split += 1;
        counts.blocks += 1;
        counts.halve_below = usize::MAX;
        if has_overflow {
            [hash & !bit, hash | bit]
                .into_iter()
                .for_each(|hash| self.reinsert_overflow(hash, &hasher));
        }
    }

    /// Whether the block of `hash` can be split; starts to double the directory where necessary.
    fn make_splittable(&mut self, hash: u64) -> bool {
        let directory = &mut self.directory;
        if directory.block(hash).depth() >= directory.bits()
            && directory.len() < DIRECTORY_RATIO * directory.counts().blocks
        {
            directory.double();
        }
        // The block grows until the directory has doubled.
        directory.may_split(hash)
    }

    /// Maintains a block from which an entry was removed: brings entries back from the overflow
    /// list, or frees unused memory.
    #[cold]
    #[inline(never)]
    fn after_removal(
        &mut self,
        hash: u64,
        len: usize,
        is_sparse: bool,
        hasher: impl Fn(&T) -> u64,
    ) {
        if self.directory.block(hash).has_overflow() {
            self.reinsert_overflow(hash, hasher);
            return;
        }
        if !is_sparse {
            return;
        }
        self.directory.step();
        let capacity = self.directory.block(hash).capacity();
        if !self.merge(hash, &hasher) && Block::<T>::capacity_for(len) < capacity {
            self.directory.set_capacity(hash, Block::<T>::capacity_for(len));
            self.directory.counts_mut().reshaped.shrunk += 1;
        }
    }

    /// Merges a block with its other half, if both are small.
    fn merge(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) -> bool {
        let block = self.directory.block(hash);
        let Some(depth) = block.depth().checked_sub(1) else { return false };
        let other = hash ^ split_bit(depth);
        let other_block = self.directory.block(other);
        let len = block.len() + other_block.len();
        if other_block.depth() != block.depth() || len >= MERGE_MAX {
            return false;
        }
        // The other block, which usually has more entries, remains. All hashes are computed before
        // the first entry moves, as in `hashes`.
        let hashes: Vec<u64> = block.colliding(other_block).map(&hasher).collect();
        let has_overflow = block.has_overflow() || other_block.has_overflow();
        let mut block = self.directory.join(other, Block::<T>::capacity_for(len));
        let mut whole = self.directory.entries_mut(hash);
        whole.absorb(&mut block);
        let mut left = Vec::new();
        let mut hashes = hashes.into_iter();
        block.drain(|entry| {
            let hash = hashes.next().unwrap_or(hash);
            left.extend(whole.insert(hash, entry, &hasher).err().map(|entry| (hash, entry)));
        });
        left.into_iter().for_each(|(hash, entry)| self.push_overflow(hash, entry));
        if has_overflow {
            self.directory.set_overflow(hash, true);
        }
        if self.directory.block(hash).has_overflow() {
            self.reinsert_overflow(hash, hasher);
        }
        let places = self.directory.len();
        let counts = self.directory.counts_mut();
        counts.reshaped.merged += 1;
        counts.blocks -= 1;
        if places > DIRECTORY_RATIO / 2 * counts.blocks && counts.blocks < counts.halve_below {
            // If a block needs all bits, halving fails and is retried only after the number of
            // blocks has fallen further.
            counts.halve_below = counts.blocks * 3 / 4;
            self.directory.halve();
        }
        true
    }

    /// The positions ([`order`]) of the entries, from `from` on, of the block that holds it, and
    /// the first position after that block.
    pub(crate) fn orders_from(
        &self,
        from: u64,
        hasher: impl Fn(&T) -> u64,
        orders: &mut Vec<u64>,
    ) -> Option<u64> {
        let first = at_order(from);
        let block = self.directory.block(first);
        let bits = split_bit(block.depth()) - split_bit(0);
        let overflow = self.overflow().filter(|(hash, _)| (hash ^ first) & bits == 0);
        let hashes = block.iter().map(hasher).chain(overflow.map(|(hash, _)| *hash));
        orders.extend(hashes.map(order).filter(|at| *at >= from));
        first_after(first, block.depth()).map(order)
    }

    fn overflow(&self) -> impl Iterator<Item = &(u64, T)> {
        self.directory.counts().overflow.iter()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.directory.blocks().flat_map(Block::iter).chain(self.overflow().map(|(_, entry)| entry))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (entries, counts) = self.directory.iter_mut();
        entries.chain(counts.overflow.iter_mut().map(|(_, entry)| entry))
    }

    /// All blocks, and the entries of the overflow list.
    pub(crate) fn into_parts(mut self) -> (Vec<Block<T>>, Vec<T>) {
        let overflow = core::mem::take(&mut self.directory.counts_mut().overflow);
        (self.directory.into_blocks(), overflow.into_iter().map(|(_, entry)| entry).collect())
    }

    /// All entries, in unspecified order.
    pub(crate) fn into_entries(self) -> Vec<T> {
        let (mut blocks, mut entries) = self.into_parts();
        blocks.iter_mut().for_each(|block| block.drain(|entry| entries.push(entry)));
        entries
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.directory.heap_bytes()
            + self.blocks().map(Block::heap_bytes).sum::<usize>()
            + self.directory.counts().overflow.capacity() * size_of::<(u64, T)>()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block<T>> {
        self.directory.blocks()
    }

    pub(crate) fn directory_len(&self) -> usize {
        self.directory.len()
    }

    pub(crate) fn reshaped(&self) -> Reshaped {
        self.directory.counts().reshaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_made_of_many_entries_is_like_one_that_grew() {
        // Multiplied so that the uppermost and the lowest bits differ.
        let hash = |n: &u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20);
        for count in [10, 1_000, 100_000] {
            let count = if cfg!(miri) { count / 50 } else { count };
            let mut table = Table::new(0..count, hash);
            assert_eq!((table.len() as u64, table.has_overflow()), (count, false));
            assert!(table.blocks().all(|block| block.len() < ENTRIES_MAX));
            for n in 0..count {
                assert_eq!(table.find(hash(&n), |other| *other == n), Some(&n));
            }
            for n in (0..count).filter(|n| n % 3 != 0) {
                assert_eq!(table.remove(hash(&n), |other| *other == n, hash), Some(n));
            }
            let mut left = table.into_entries();
            left.sort_unstable();
            assert!(left.into_iter().eq((0..count).step_by(3)));
        }
    }
}
