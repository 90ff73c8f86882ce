//! The clustered table: blocks in the order of hashes, a directory that finds them, and when they grow, part and
//! join.
//!
//! Growth goes a block at a time, so the work of one operation is bounded by the entries of one block,
//! [`ENTRIES_MAX`], and some places of the directory.

use crate::raw::block::{Block, Spot, block_bytes};
use crate::raw::directory::Directory;
use crate::raw::group::{Home, LANES, group_bytes};

/// A block that would need more cells than these is split in two instead of growing.
const CELLS_MAX: usize = 512;

/// Entries of a block at most, where hashes part and the directory is not just being doubled: until
/// that has come to a block, it may grow by some more.
#[cfg(test)]
pub(crate) const ENTRIES_MAX: usize = CELLS_MAX * FULL.0 / FULL.1;

/// Share of cells filled at which a block grows.
const FULL: (usize, usize) = (21, 25);

/// The same for blocks of less than 16 groups: what is around a small table weighs as much as its free cells.
const FULL_SMALL: (usize, usize) = (19, 20);

/// The same just after growth or splitting, at most.
const FRESH: (usize, usize) = (39, 50);

/// Halves that hold together no more than this become one.
const MERGE_MAX: usize = 240;

/// Places of the directory a block at most, where hashes will not part.
const DIRECTORY_RATIO: usize = 8;

/// How often the table changed its shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reshaped {
    /// Segments rebuilt with more cells.
    pub grown: u32,
    /// Segments rebuilt with fewer cells.
    pub shrunk: u32,
    /// Segments split in two.
    pub split: u32,
    /// Segments joined with their other half.
    pub merged: u32,
}

#[derive(Default)]
struct Counts {
    len: usize,
    blocks: usize,
    /// The directory was as small as can be when there were so many blocks.
    halve_below: usize,
    reshaped: Reshaped,
}

/// The table; `T` is an entry with its key.
pub(crate) struct Table<T> {
    directory: Directory<T, Counts>,
}

/// Where an entry stands, until the next change.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    hash: u64,
    spot: Spot,
}

/// The beginning of a search.
pub(crate) struct Seek<'t, T> {
    block: &'t Block<T>,
    home: Home<'t, T>,
    hash: u64,
}

impl<T> Clone for Seek<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Seek<'_, T> {}

impl<'t, T> Seek<'t, T> {
    /// Asks for the entry that the search will compare.
    #[inline(always)]
    pub(crate) fn prefetch_entry(&self) {
        self.home.prefetch_entry(self.hash);
    }

    /// The rest of the search.
    #[inline(always)]
    pub(crate) fn find(&self, eq: impl FnMut(&T) -> bool) -> Option<&'t T> {
        self.block.find_at(self.home, self.hash, eq)
    }
}

/// The least size that allocators hand out without waste from `bytes` on: four of them to a doubling.
const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

/// Bytes of a size of an allocator's that are left where it aligns the rest by itself: all of a small power of two.
const fn aligned_size(size: usize) -> usize {
    if size.is_power_of_two() && size <= 4096 { size } else { size - 15 }
}

/// As many groups as are handed out for `groups` of them anyway.
const fn filled_up<T>(groups: usize) -> usize {
    let bytes = block_bytes::<T>(groups);
    let size = good_size(bytes);
    let size = aligned_size(if bytes <= aligned_size(size) { size } else { good_size(size + 1) });
    // As if without a shift, less what that takes.
    let most = size / group_bytes::<T>();
    if block_bytes::<T>(most) <= size { most } else { most - 1 }
}

/// Groups for so many entries, and more as far as the allocation has room.
fn groups_for<T>(entries: usize) -> usize {
    filled_up::<T>((entries * FRESH.1).div_ceil(FRESH.0 * LANES).max(1))
}

/// The next larger block.
fn groups_beyond<T>(groups: usize) -> usize {
    filled_up::<T>(groups + 1)
}

/// Adds an entry to a block made for it.
#[inline]
fn fill<T>(block: &mut Block<T>, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) {
    let Ok(()) = block.insert(hash, entry, hasher) else { unreachable!("a new block has room") };
}

fn is_full<T>(block: &Block<T>) -> bool {
    let full = if block.count() < 16 { FULL_SMALL } else { FULL };
    block.len() * full.1 >= block.cells() * full.0
}

impl<T> Table<T> {
    /// A table of these entries.
    pub(crate) fn new(entries: impl Iterator<Item = T>, hash_of: impl Fn(&T) -> u64) -> Self {
        let entries: Vec<_> = entries.map(|e| (hash_of(&e), e)).collect();
        let len = entries.len();
        let mut block = Block::new(0, groups_for::<T>(len));
        for (hash, entry) in entries {
            fill(&mut block, hash, entry, &hash_of);
        }
        let counts = Counts { len, blocks: 1, ..Counts::default() };
        Table { directory: Directory::new(block, counts) }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.directory.counts().len
    }

    /// Asks for the memory that a search for this hash will touch.
    #[inline(always)]
    pub(crate) fn seek(&self, hash: u64) -> Seek<'_, T> {
        let block = self.directory.block(hash);
        Seek { block, home: block.seek(hash), hash }
    }

    /// The entry of this hash that `eq` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let block = self.directory.block(hash);
        block.find(hash, eq)
    }

    /// Where it stands.
    #[inline]
    pub(crate) fn place(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<Place> {
        let block = self.directory.block(hash);
        let spot = block.spot(hash, eq)?;
        Some(Place { hash, spot })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.directory.entries_mut(place.hash).get_mut(place.spot)
    }

    /// Adds an entry that is not there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, mut entry: T, hasher: impl Fn(&T) -> u64) {
        self.directory.counts_mut().len += 1;
        let block = self.directory.block(hash);
        // Counting is left until some entry finds no room at home, which it soon does in a full block.
        if block.is_crowded(hash) && is_full(block) {
            self.grow(hash, &hasher);
        }
        while let Err(back) = self.directory.entries_mut(hash).insert(hash, entry, &hasher) {
            entry = back;
            self.grow(hash, &hasher);
        }
    }

    /// Takes an entry out; blocks left sparse shrink or join.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place, hasher: impl Fn(&T) -> u64) -> Option<T> {
        let entry = self.directory.entries_mut(place.hash).remove(place.spot, &hasher)?;
        self.directory.counts_mut().len -= 1;
        let block = self.directory.block(place.hash);
        // Well below what growth and splitting leave, so that no sequence alternates between the two.
        if block.is_sparse(place.hash) && block.len() * 2 < block.cells() {
            self.shrink(place.hash, &hasher);
        }
        Some(entry)
    }

    /// The hashes of the entries in the block of `hash`, in order. All are asked for before the first entry moves:
    /// whatever the user's code does, entries stay whole.
    fn hashes(&self, hash: u64, hasher: impl Fn(&T) -> u64) -> Vec<u64> {
        let block = self.directory.block(hash);
        let mut hashes = Vec::with_capacity(block.cells());
        hashes.extend(block.iter().map(hasher));
        hashes
    }

    /// Puts the entries of the block of `hash` into one of another size.
    fn rebuild(&mut self, hash: u64, groups: usize, hasher: impl Fn(&T) -> u64) {
        let hashes = self.hashes(hash, &hasher);
        let mut block = Block::new(self.directory.block(hash).depth, groups);
        let mut entries = self.directory.entries_mut(hash);
        entries.drain(&hashes, |hash, entry| fill(&mut block, hash, entry, &hasher));
        self.directory.replace(hash, block);
    }

    /// More room where `hash` belongs: a larger block, or two.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        self.directory.step();
        let groups = groups_beyond::<T>(self.directory.block(hash).count());
        if groups * LANES <= CELLS_MAX || !self.make_splittable(hash) {
            self.rebuild(hash, groups, hasher);
            self.directory.counts_mut().reshaped.grown += 1;
            return;
        }
        let hashes = self.hashes(hash, &hasher);
        let depth = self.directory.block(hash).depth;
        let is_high = |hash: u64| (hash << depth) >> 63 != 0;
        let high_len = hashes.iter().filter(|hash| is_high(**hash)).count();
        let [mut low, mut high] = [hashes.len() - high_len, high_len]
            .map(|len| Block::new(depth + 1, groups_for::<T>(len)));
        self.directory.entries_mut(hash).drain(&hashes, |hash, entry| {
            fill(if is_high(hash) { &mut high } else { &mut low }, hash, entry, &hasher);
        });
        self.directory.split(hash, low, high);
        let counts = self.directory.counts_mut();
        counts.reshaped.split += 1;
        counts.blocks += 1;
        counts.halve_below = usize::MAX;
    }

    /// Whether the block of `hash` may part; begins to double the directory where that is what it takes.
    fn make_splittable(&mut self, hash: u64) -> bool {
        let directory = &mut self.directory;
        if directory.block(hash).depth >= directory.bits()
            && directory.len() < DIRECTORY_RATIO * directory.counts().blocks
        {
            directory.double();
        }
        // Until the directory has come so far, the block grows.
        directory.may_split(hash)
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        self.directory.step();
        let block = self.directory.block(hash);
        let (count, groups) = (block.count(), groups_for::<T>(block.len()));
        if !self.merge(hash, &hasher) && groups < count {
            self.rebuild(hash, groups, hasher);
            self.directory.counts_mut().reshaped.shrunk += 1;
        }
    }

    /// Joins a block with the other half of its parent, if both are small.
    fn merge(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) -> bool {
        let block = self.directory.block(hash);
        let Some(depth) = block.depth.checked_sub(1) else { return false };
        let half = 1_u64 << (63 - depth);
        let (low, high) = (hash & !half, hash | half);
        let [low_len, high_len] = [low, high].map(|half| {
            let block = self.directory.block(half);
            if block.depth == depth + 1 { block.len() } else { MERGE_MAX }
        });
        if low_len + high_len >= MERGE_MAX {
            return false;
        }
        let hashes = [low, high].map(|half| (half, self.hashes(half, &hasher)));
        let mut both = Block::new(depth, groups_for::<T>(low_len + high_len));
        for (half, hashes) in hashes {
            let mut entries = self.directory.entries_mut(half);
            entries.drain(&hashes, |hash, entry| fill(&mut both, hash, entry, &hasher));
        }
        drop(self.directory.join(hash, both));
        let places = self.directory.len();
        let counts = self.directory.counts_mut();
        counts.reshaped.merged += 1;
        counts.blocks -= 1;
        if places > DIRECTORY_RATIO / 2 * counts.blocks && counts.blocks < counts.halve_below {
            // If that fails, for a block that needs all bits, then not again until much has changed.
            counts.halve_below = counts.blocks * 3 / 4;
            self.directory.halve();
        }
        true
    }

    /// The hashes of the entries in the block of `from`, from there on, and the first hash behind the block.
    pub(crate) fn hashes_from(
        &self,
        from: u64,
        hasher: impl Fn(&T) -> u64,
        hashes: &mut Vec<u64>,
    ) -> Option<u64> {
        let block = self.directory.block(from);
        hashes.extend(block.iter().map(hasher).filter(|hash| *hash >= from));
        let span = u64::MAX.checked_shr(u32::from(block.depth)).unwrap_or(0);
        (from | span).checked_add(1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.directory.blocks().flat_map(Block::iter)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.directory.iter_mut()
    }

    /// All entries, in no order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = T> {
        self.directory.into_blocks().into_iter().flat_map(|mut block| {
            let spots: Vec<Spot> = block.spots().collect();
            spots.into_iter().filter_map(move |spot| block.take(spot))
        })
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.directory.heap_bytes() + self.blocks().map(Block::heap_bytes).sum::<usize>()
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
    fn sizes_are_those_of_allocators() {
        assert_eq!(
            [1, 64, 65, 128, 129, 1025, 2048, 2049, 9000].map(good_size),
            [16, 64, 80, 128, 160, 1280, 2048, 2560, 10240]
        );
        for entries in 1..2000 {
            let groups = groups_for::<u64>(entries);
            assert!(groups * LANES * FRESH.0 >= entries * FRESH.1);
            assert!(groups_beyond::<u64>(groups) > groups);
        }
    }
}
