//! The clustered table: blocks in the order of hashes, a directory that finds them, and when they grow, part and
//! join.
//!
//! The table grows by one block at a time, and large blocks once an operation, so the work of one
//! operation is bounded by the entries of one block, `CELLS_MAX`, and some slots of the directory.

use crate::raw::block::{Begun, Block, Spot, cells_bytes, homes_in};
use crate::raw::directory::{Directory, at_order, behind, order, parting_bit};
use crate::raw::secret::{self, Drawn};

/// A block that would need more cells than these is split in two instead of growing.
const CELLS_MAX: usize = 512;

/// Entries of a block at most, where hashes part and the directory is not just being doubled: until
/// that has come to a block, it may grow by some more.
#[cfg(test)]
pub(crate) const ENTRIES_MAX: usize = CELLS_MAX * FULL.0 / FULL.1;

/// Share of cells filled at which a block grows.
const FULL: (usize, usize) = (22, 25);

/// The same just after growth or splitting, at most.
const FRESH: (usize, usize) = (39, 50);

/// Entries that may stand apart in a table of one block before it is as full as it may be: one entry in bad luck would
/// else cost such a table a quarter of its memory. As many as the array of the first one has room for.
const APART_EARLY: usize = 4;

/// Blocks of at least this many homes are rebuilt at most once an operation: that is most of the
/// longest operations' time. Entries without room are then in the separate list until the next
/// entry comes to the block.
const LARGE: usize = 128;

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

struct Counts<T> {
    len: usize,
    /// Entries, with their hashes, without room in their blocks although those are far from full:
    /// too many of them have similar hashes. Empty for hashes that spread.
    apart: Vec<(u64, T)>,
    blocks: usize,
    /// Block count at which the directory last reached its minimum size.
    halve_below: usize,
    reshaped: Reshaped,
}

/// The table; `T` is an entry with its key.
pub(crate) struct Table<T> {
    directory: Directory<T, Counts<T>>,
    drawn: Drawn,
}

/// The position of an entry, until the next change.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    hash: u64,
    at: At,
}

#[derive(Clone, Copy)]
pub(crate) enum At {
    Cell(Spot),
    Apart(usize),
}

/// The result of a search after the first entry with the tag.
pub(crate) enum First<'t, T> {
    Is(&'t T),
    /// The search must continue, for this hash.
    IsNot(u64),
    /// There is none.
    None,
}

/// The least size that allocators hand out without waste from `bytes` on: four of them to a doubling.
const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

/// Bytes below such a size that are left to allocators that need them for alignment.
const SHORT: usize = 8;

/// The number of homes that the allocator's size class for `homes` can hold.
const fn filled_up<T>(homes: usize) -> usize {
    homes_in::<T>(good_size(cells_bytes::<T>(homes) + SHORT) - SHORT)
}

/// Homes for this many entries, and more as far as the allocation has room.
fn homes_for<T>(entries: usize) -> usize {
    filled_up::<T>((entries * FRESH.1).div_ceil(FRESH.0).max(1))
}

/// The next larger block.
fn homes_beyond<T>(homes: usize) -> usize {
    filled_up::<T>(homes + 1)
}

/// A new block while it is filled.
struct Filling<T> {
    block: Block<T>,
    /// The cell behind the last entry.
    next: usize,
    /// What found no room.
    left: Vec<(u64, T)>,
}

impl<T> Filling<T> {
    /// An empty block with room for this many entries.
    fn of(depth: u8, entries: usize) -> Self {
        Self::with_homes(depth, homes_for::<T>(entries))
    }

    fn with_homes(depth: u8, homes: usize) -> Self {
        Filling { block: Block::new(depth, homes), next: 0, left: Vec::new() }
    }

    #[inline]
    fn add(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) {
        if let Err(entry) = self.block.append(&mut self.next, hash, entry, hasher) {
            self.left.push((hash, entry));
        }
    }

    /// The block. Entries without room cause larger ones, until the block would be so empty that
    /// size cannot be the reason, or so large that this is left to the next operation, or few enough
    /// entries remain that a table of one block may hold them. The rest goes to the separate list.
    fn settle(mut self, apart: &mut Vec<(u64, T)>, hasher: impl Fn(&T) -> u64) -> Block<T> {
        let may_be_left = if self.block.depth == 0 { APART_EARLY } else { 0 };
        while self.left.len() > may_be_left && !is_large(&self.block) && !is_thin(&self.block) {
            let Filling { mut block, left, .. } = self;
            self = Self::with_homes(block.depth, homes_beyond::<T>(block.homes()));
            let hashes: Vec<u64> = block.iter().map(&hasher).collect();
            block.drain(&hashes, |hash, entry| self.add(hash, entry, &hasher));
            left.into_iter().for_each(|(hash, entry)| self.add(hash, entry, &hasher));
        }
        self.block.part_all(hasher);
        self.block.has_apart = !self.left.is_empty();
        apart.append(&mut self.left);
        self.block
    }
}

fn is_full<T>(block: &Block<T>) -> bool {
    block.len() * FULL.1 >= block.cells() * FULL.0
}

/// Whether a block is so empty that a larger one would hardly have room where it has not.
fn is_thin<T>(block: &Block<T>) -> bool {
    block.len() * 2 < block.cells()
}

fn is_large<T>(block: &Block<T>) -> bool {
    block.homes() >= LARGE
}

/// Whether the separate list has entries of a block that may have room after a rebuild.
fn is_owed_room<T>(block: &Block<T>) -> bool {
    block.has_apart && is_large(block) && !is_thin(block)
}

impl<T> Table<T> {
    /// A table of these entries.
    pub(crate) fn new(entries: impl Iterator<Item = T>, hash_of: impl Fn(&T) -> u64) -> Self {
        let entries: Vec<_> = entries.map(|e| (hash_of(&e), e)).collect();
        let len = entries.len();
        let mut apart = Vec::new();
        let mut block = Filling::of(0, len);
        entries.into_iter().for_each(|(hash, entry)| block.add(hash, entry, &hash_of));
        let block = block.settle(&mut apart, hash_of);
        let reshaped = Reshaped::default();
        let counts = Counts { len, apart, blocks: 1, halve_below: 0, reshaped };
        Table { directory: Directory::new(block, counts), drawn: secret::draw() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.directory.counts().len
    }

    /// That there is a key to hash with, as there is a table.
    #[inline(always)]
    pub(crate) fn drawn(&self) -> Drawn {
        self.drawn
    }

    /// [`Block::begin`].
    #[inline(always)]
    pub(crate) fn begin(&self, hash: u64) -> Begun<'_, T> {
        self.directory.block(hash).begin(hash)
    }

    /// Whether keys for which there is no first entry may yet be there.
    pub(crate) fn has_apart(&self) -> bool {
        !self.directory.counts().apart.is_empty()
    }

    /// The entry of this hash that `eq` accepts, if it is the first one with the tag, as it nearly always is.
    #[inline(always)]
    pub(crate) fn find_first(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> First<'_, T> {
        let block = self.directory.block(hash);
        match block.find_first(hash, &mut eq) {
            Ok((entry, _)) => First::Is(entry),
            Err(has_others) if has_others || block.has_apart => First::IsNot(hash),
            Err(_) => First::None,
        }
    }

    /// The entry of this hash that `eq` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, mut eq: impl FnMut(&T) -> bool + Copy) -> Option<&T> {
        match self.find_first(hash, eq) {
            First::Is(entry) => Some(entry),
            First::IsNot(hash) => self.find_again(hash, true, &mut eq).map(|(entry, _)| entry),
            First::None => None,
        }
    }

    /// Continues behind the first entry with the tag. Starts over with `eq` as it was: so a search
    /// that ends at the first entry stores nothing for this, not even `eq` in memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_again(
        &self,
        hash: u64,
        has_others: bool,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Option<(&T, At)> {
        let block = self.directory.block(hash);
        if has_others && let Some((entry, spot)) = block.find(hash, eq) {
            return Some((entry, At::Cell(spot)));
        }
        let (at, entry) = if block.has_apart { self.find_apart(hash, eq)? } else { return None };
        Some((entry, At::Apart(at)))
    }

    #[cold]
    #[inline(never)]
    fn find_apart(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(usize, &T)> {
        let apart = self.directory.counts().apart.iter().enumerate();
        apart
            .map(|(at, (of, entry))| (at, *of, entry))
            .find_map(|(at, of, entry)| (of == hash && eq(entry)).then_some((at, entry)))
    }

    /// The position of an entry.
    #[inline]
    pub(crate) fn place(&self, hash: u64, eq: impl FnMut(&T) -> bool + Copy) -> Option<Place> {
        let mut first = eq;
        let block = self.directory.block(hash);
        let at = match block.find_first(hash, &mut first) {
            Ok((_, spot)) => At::Cell(spot),
            Err(has_others) if has_others || block.has_apart => {
                let mut again = eq;
                self.find_again(hash, has_others, &mut again)?.1
            }
            Err(_) => return None,
        };
        Some(Place { hash, at })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        match place.at {
            At::Cell(spot) => self.directory.entries_mut(place.hash).get_mut(spot),
            At::Apart(at) => self.directory.counts_mut().apart.get_mut(at).map(|(_, entry)| entry),
        }
    }

    /// Adds an entry that is not there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, mut entry: T, hasher: impl Fn(&T) -> u64) {
        self.directory.counts_mut().len += 1;
        let block = self.directory.block(hash);
        // Counting starts only when some entry finds no room near its home, which soon happens in a
        // full block.
        let mut has_grown = block.is_crowded(hash) && is_full(block) || is_owed_room(block);
        if has_grown {
            self.grow(hash, &hasher);
        }
        while let Err(back) = self.directory.entries_mut(hash).insert(hash, entry, &hasher) {
            if self.may_stand_apart(hash, has_grown) {
                self.put_apart(hash, back);
                return;
            }
            entry = back;
            self.grow(hash, &hasher);
            has_grown = true;
        }
    }

    /// Whether to put an entry apart that found no room in its block, rather than to make the block larger, which this
    /// operation may have done before.
    #[cold]
    fn may_stand_apart(&self, hash: u64, has_grown: bool) -> bool {
        let block = self.directory.block(hash);
        let is_early = self.directory.len() == 1
            && self.directory.counts().apart.len() < APART_EARLY
            && !is_full(block);
        is_early || has_grown && is_large(block) || is_thin(block)
    }

    #[cold]
    #[inline(never)]
    fn put_apart(&mut self, hash: u64, entry: T) {
        self.directory.counts_mut().apart.push((hash, entry));
        self.directory.set_apart(hash, true);
    }

    /// Removes the entries of the separate list that belong in the block of `hash`.
    fn take_apart(&mut self, hash: u64) -> Vec<(u64, T)> {
        let block = self.directory.block(hash);
        if !block.has_apart {
            return Vec::new();
        }
        let bits = parting_bit(block.depth) - parting_bit(0);
        let is_of = |entry: &mut (u64, T)| (entry.0 ^ hash) & bits == 0;
        let apart = &mut self.directory.counts_mut().apart;
        let taken = apart.extract_if(.., is_of).collect();
        if apart.is_empty() {
            *apart = Vec::new();
        }
        taken
    }

    /// Takes an entry out; blocks left sparse shrink or join.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place, hasher: impl Fn(&T) -> u64) -> Option<T> {
        let Place { hash, at } = place;
        let entry = match at {
            At::Cell(spot) => self.directory.entries_mut(hash).take(spot)?,
            At::Apart(at) => self.directory.counts_mut().apart.swap_remove(at).1,
        };
        self.directory.counts_mut().len -= 1;
        let block = self.directory.block(hash);
        if block.has_apart {
            self.bring_back(hash, hasher);
        } else if block.is_sparse(hash) && is_thin(block) {
            // Well below what growth and splitting leave, so that no sequence alternates between the two.
            self.shrink(hash, &hasher);
        }
        Some(entry)
    }

    /// Moves entries of the separate list to their blocks, where there is room now.
    #[cold]
    #[inline(never)]
    fn bring_back(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        loop {
            let block = self.directory.block(hash);
            let bits = parting_bit(block.depth) - parting_bit(0);
            let is_of = |of: u64| (of ^ hash) & bits == 0;
            let apart = &self.directory.counts().apart;
            let Some(first) = apart.iter().position(|(of, _)| is_of(*of)) else {
                self.directory.set_apart(hash, false);
                return;
            };
            let mut all = first..apart.len();
            let Some(at) = all.find(|at| is_of(apart[*at].0) && block.has_room(apart[*at].0))
            else {
                return;
            };
            let (of, entry) = self.directory.counts_mut().apart.swap_remove(at);
            if let Err(entry) = self.directory.entries_mut(of).insert(of, entry, &hasher) {
                self.put_apart(of, entry);
                return;
            }
        }
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
    fn rebuild(&mut self, hash: u64, homes: usize, hasher: impl Fn(&T) -> u64) {
        let hashes = self.hashes(hash, &hasher);
        let mut block = Filling::with_homes(self.directory.block(hash).depth, homes);
        self.directory
            .entries_mut(hash)
            .drain(&hashes, |hash, entry| block.add(hash, entry, &hasher));
        for (hash, entry) in self.take_apart(hash) {
            block.add(hash, entry, &hasher);
        }
        let block = block.settle(&mut self.directory.counts_mut().apart, &hasher);
        self.directory.replace(hash, block);
    }

    /// More room where `hash` belongs: a larger block, or two.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        self.directory.step();
        let homes = homes_beyond::<T>(self.directory.block(hash).homes());
        if homes <= CELLS_MAX || !self.make_splittable(hash) {
            self.rebuild(hash, homes, hasher);
            self.directory.counts_mut().reshaped.grown += 1;
            return;
        }
        let hashes = self.hashes(hash, &hasher);
        let depth = self.directory.block(hash).depth;
        let half = |hash: u64| usize::from(hash & parting_bit(depth) != 0);
        let high_len: usize = hashes.iter().map(|hash| half(*hash)).sum();
        let mut halves = [hashes.len() - high_len, high_len].map(|len| Filling::of(depth + 1, len));
        self.directory.entries_mut(hash).drain(&hashes, |hash, entry| {
            // Chosen by number: no processor foresees the branch.
            halves[half(hash)].add(hash, entry, &hasher);
        });
        for (hash, entry) in self.take_apart(hash) {
            halves[half(hash)].add(hash, entry, &hasher);
        }
        let apart = &mut self.directory.counts_mut().apart;
        let [low, high] = halves.map(|half| half.settle(apart, &hasher));
        self.directory.split(hash, low, high);
        let counts = self.directory.counts_mut();
        counts.reshaped.split += 1;
        counts.blocks += 1;
        counts.halve_below = usize::MAX;
    }

    /// Whether the block of `hash` can be split; starts to double the directory where necessary.
    fn make_splittable(&mut self, hash: u64) -> bool {
        let directory = &mut self.directory;
        if directory.block(hash).depth >= directory.bits()
            && directory.len() < DIRECTORY_RATIO * directory.counts().blocks
        {
            directory.double();
        }
        // The block grows until the directory has doubled.
        directory.may_split(hash)
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        self.directory.step();
        let block = self.directory.block(hash);
        let (now, homes) = (block.homes(), homes_for::<T>(block.len()));
        if !self.merge(hash, &hasher) && homes < now {
            self.rebuild(hash, homes, hasher);
            self.directory.counts_mut().reshaped.shrunk += 1;
        }
    }

    /// Joins a block with the other half of its parent, if both are small.
    fn merge(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) -> bool {
        let block = self.directory.block(hash);
        let Some(depth) = block.depth.checked_sub(1) else { return false };
        let half = parting_bit(depth);
        let (low, high) = (hash & !half, hash | half);
        let [low_len, high_len] = [low, high].map(|half| {
            let block = self.directory.block(half);
            if block.depth == depth + 1 { block.len() } else { MERGE_MAX }
        });
        if low_len + high_len >= MERGE_MAX {
            return false;
        }
        let hashes = [low, high].map(|half| (half, self.hashes(half, &hasher)));
        let mut both = Filling::of(depth, low_len + high_len);
        for (half, hashes) in hashes {
            both.next = 0;
            let mut entries = self.directory.entries_mut(half);
            entries.drain(&hashes, |hash, entry| both.add(hash, entry, &hasher));
            for (hash, entry) in self.take_apart(half) {
                both.add(hash, entry, &hasher);
            }
        }
        let both = both.settle(&mut self.directory.counts_mut().apart, &hasher);
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

    /// The positions ([`order`]) of the entries, from `from` on, of the block that holds it, and
    /// the first position behind that block.
    pub(crate) fn orders_from(
        &self,
        from: u64,
        hasher: impl Fn(&T) -> u64,
        orders: &mut Vec<u64>,
    ) -> Option<u64> {
        let first = at_order(from);
        let block = self.directory.block(first);
        let bits = parting_bit(block.depth) - parting_bit(0);
        let apart = self.apart().filter(|(hash, _)| (hash ^ first) & bits == 0);
        let hashes = block.iter().map(hasher).chain(apart.map(|(hash, _)| *hash));
        orders.extend(hashes.map(order).filter(|at| *at >= from));
        behind(first, block.depth).map(order)
    }

    fn apart(&self) -> impl Iterator<Item = &(u64, T)> {
        self.directory.counts().apart.iter()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.directory.blocks().flat_map(Block::iter).chain(self.apart().map(|(_, entry)| entry))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (entries, counts) = self.directory.iter_mut();
        entries.chain(counts.apart.iter_mut().map(|(_, entry)| entry))
    }

    /// All entries, in no order.
    pub(crate) fn into_entries(mut self) -> impl Iterator<Item = T> {
        let apart = core::mem::take(&mut self.directory.counts_mut().apart);
        let entries = self.directory.into_blocks().into_iter().flat_map(|mut block| {
            let spots: Vec<Spot> = block.spots().collect();
            spots.into_iter().filter_map(move |spot| block.take(spot))
        });
        entries.chain(apart.into_iter().map(|(_, entry)| entry))
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.directory.heap_bytes()
            + self.blocks().map(Block::heap_bytes).sum::<usize>()
            + self.directory.counts().apart.capacity() * size_of::<(u64, T)>()
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
            let homes = homes_for::<u64>(entries);
            assert!(homes * FRESH.0 >= entries * FRESH.1);
            assert!(homes_beyond::<u64>(homes) > homes);
            let bytes = cells_bytes::<u64>(homes);
            assert!(bytes <= good_size(bytes) && good_size(bytes) - bytes < 9);
        }
    }
}
