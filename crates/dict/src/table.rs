//! The table: segments in the order of hashes, a directory that finds them, and when they grow, split and join.
//!
//! The table grows by one segment at a time, and each operation splits one at most, so the work of one operation is
//! bounded by the entries of one segment, `CELLS_MAX`, and some slots of the directory.

use crate::raw::block::{Begun, Block, CELLS_MAX, Filling, Spot, bytes, cells_in};
use crate::raw::directory::{Directory, at_order, behind, order, parting_bit};
use crate::raw::secret::{self, Drawn};

/// Numbers of groups that a segment may have, with the entries that it holds at most: three quarters of its lanes, so
/// that nearly all are in their homes. A segment of the largest shape is split when it is full.
const SHAPES: [(usize, usize); 4] = [(2, 22), (4, 45), (8, 90), (16, CELLS_MAX)];

/// Halves that hold together no more than this become one.
const MERGE_MAX: usize = 90;

/// Segments with no more cells do not shrink.
const CELLS_FEW: usize = 32;

/// Places of the directory a segment at most, where hashes will not part.
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
    /// Entries, with their hashes, whose segments are full and cannot be split: until the directory has doubled, or for
    /// good if too many hashes are equal.
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

/// The least size that allocators hand out without waste from `bytes` on: four of them to a doubling.
const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

/// Bytes below such a size that are left to allocators, which need them to align groups.
const SHORT: usize = 32;

/// The shape of a segment for this many entries.
fn shape_for(entries: usize) -> (usize, usize) {
    let [.., largest] = SHAPES;
    SHAPES.into_iter().find(|(_, most)| entries <= *most).unwrap_or(largest)
}

/// The most entries of a segment with these groups.
fn most_of(groups: usize) -> usize {
    SHAPES.into_iter().find(|(of, _)| groups <= *of).map_or(CELLS_MAX, |(_, most)| most)
}

/// Cells for this many entries, and more as far as the allocator's size class has room.
fn cells_for<T>(groups: usize, entries: usize) -> usize {
    let least = bytes::<T>(groups, entries.max(1));
    let fitting = cells_in::<T>(groups, good_size(least + SHORT) - SHORT);
    fitting.max(entries).min(most_of(groups))
}

/// Cells for some more entries than there are, so that not every one of the next takes another size.
fn cells_with_spare<T>(groups: usize, entries: usize) -> usize {
    cells_for::<T>(groups, (entries + entries / 16 + 1).min(most_of(groups)).max(entries))
}

/// An empty segment for this many entries and some more. Those of tables with several segments soon have many.
fn block_for<T>(depth: u8, entries: usize) -> Filling<T> {
    let entries = entries.min(CELLS_MAX);
    let (groups, _) = shape_for(if depth == 0 { entries } else { CELLS_MAX });
    Filling::new(Block::new(depth, groups, cells_with_spare::<T>(groups, entries)))
}

/// Adds an entry to a segment that is being filled, or to those that find no room.
#[inline]
fn add<T>(block: &mut Filling<T>, hash: u64, entry: T, left: &mut Vec<(u64, T)>) {
    if let Err(entry) = block.push(hash, entry) {
        left.push((hash, entry));
    }
}

/// The hashes of the entries of a segment, in order.
struct Hashes {
    hashes: [u64; CELLS_MAX],
    len: usize,
}

impl Hashes {
    fn of<T>(block: &Block<T>, hasher: impl Fn(&T) -> u64) -> Self {
        let mut hashes = Hashes { hashes: [0; CELLS_MAX], len: 0 };
        for (to, entry) in hashes.hashes.iter_mut().zip(block.iter()) {
            *to = hasher(entry);
            hashes.len += 1;
        }
        hashes
    }

    fn all(&self) -> &[u64] {
        &self.hashes[..self.len]
    }
}

impl<T> Table<T> {
    /// A table of these entries, of which there are few.
    pub(crate) fn new(entries: impl Iterator<Item = T>, hash_of: impl Fn(&T) -> u64) -> Self {
        let entries: Vec<_> = entries.map(|e| (hash_of(&e), e)).collect();
        let len = entries.len();
        let (mut apart, mut block) = (Vec::new(), block_for(0, len));
        entries.into_iter().for_each(|(hash, entry)| add(&mut block, hash, entry, &mut apart));
        let reshaped = Reshaped::default();
        let block = block.done(!apart.is_empty());
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

    /// The entry of this hash that `eq` accepts. It may count what it was asked for.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let block = self.directory.block(hash);
        match block.find(hash, eq) {
            Ok((entry, _)) => Some(entry),
            Err(eq) if block.has_apart => self.find_apart(hash, eq).map(|(_, entry)| entry),
            Err(_) => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn find_apart(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<(usize, &T)> {
        let apart = self.directory.counts().apart.iter().enumerate();
        apart
            .map(|(at, (of, entry))| (at, *of, entry))
            .find_map(|(at, of, entry)| (of == hash && eq(entry)).then_some((at, entry)))
    }

    /// The position of an entry.
    #[inline]
    pub(crate) fn place(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<Place> {
        let block = self.directory.block(hash);
        let at = match block.find(hash, eq) {
            Ok((_, spot)) => At::Cell(spot),
            Err(eq) if block.has_apart => At::Apart(self.find_apart(hash, eq)?.0),
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
    pub(crate) fn insert(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) {
        self.directory.counts_mut().len += 1;
        if let Err(entry) = self.directory.entries_mut(hash).insert(hash, entry) {
            self.insert_in_full(hash, entry, hasher);
        }
    }

    /// Adds an entry whose segment is full.
    #[cold]
    #[inline(never)]
    fn insert_in_full(&mut self, hash: u64, mut entry: T, hasher: impl Fn(&T) -> u64) {
        let mut may_split = true;
        while self.grow(hash, may_split, &hasher) {
            may_split = false;
            match self.directory.entries_mut(hash).insert(hash, entry) {
                Ok(()) => return,
                Err(back) => entry = back,
            }
        }
        self.put_apart(hash, entry);
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

    /// Takes an entry out; segments left sparse shrink or join.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place) -> Option<T> {
        let Place { hash, at } = place;
        let entry = match at {
            At::Cell(spot) => self.directory.entries_mut(hash).take(hash, spot)?,
            At::Apart(at) => self.directory.counts_mut().apart.swap_remove(at).1,
        };
        self.directory.counts_mut().len -= 1;
        let block = self.directory.block(hash);
        if block.has_apart {
            self.bring_back(hash);
        } else if block.is_thin() && block.cells() > CELLS_FEW {
            // Well below what growth and splitting leave, so that no sequence alternates between the two.
            self.shrink(hash);
        }
        Some(entry)
    }

    /// Moves entries of the separate list to their segment while that has room.
    #[cold]
    #[inline(never)]
    fn bring_back(&mut self, hash: u64) {
        loop {
            let block = self.directory.block(hash);
            if block.is_full() {
                return;
            }
            let bits = parting_bit(block.depth) - parting_bit(0);
            let apart = &self.directory.counts().apart;
            let Some(at) = apart.iter().position(|(of, _)| (of ^ hash) & bits == 0) else {
                self.directory.set_apart(hash, false);
                return;
            };
            let (of, entry) = self.directory.counts_mut().apart.swap_remove(at);
            if let Err(entry) = self.directory.entries_mut(of).insert(of, entry) {
                self.put_apart(of, entry);
                return;
            }
        }
    }

    /// More room where `hash` belongs: more cells, more groups, or two segments; whether there is more.
    fn grow(&mut self, hash: u64, may_split: bool, hasher: impl Fn(&T) -> u64) -> bool {
        self.directory.step();
        let block = self.directory.block(hash);
        let (groups, cells, most) = (block.groups(), block.cells(), most_of(block.groups()));
        if cells < most {
            let at_least = if cells < CELLS_MAX / 4 { cells + cells / 4 } else { cells };
            let more = cells_for::<T>(groups, (at_least + 1).min(most));
            if more == CELLS_MAX {
                // It may be split when it is full, which takes as long as the directory to double, or longer.
                self.make_splittable(hash);
            }
            let block = self.directory.entries_mut(hash).with_more_cells(more);
            drop(self.directory.replace(hash, block));
        } else if most < CELLS_MAX {
            self.refill(hash, cells + 1, hasher);
        } else {
            return may_split && self.make_splittable(hash) && self.split(hash, hasher);
        }
        self.directory.counts_mut().reshaped.grown += 1;
        true
    }

    /// Moves the entries of the segment of `hash` to one with room for this many. All are hashed before the first one
    /// moves: whatever the user's code does, entries stay whole.
    fn refill(&mut self, hash: u64, entries: usize, hasher: impl Fn(&T) -> u64) {
        let block = self.directory.block(hash);
        let (hashes, mut filled) = (Hashes::of(block, hasher), block_for(block.depth, entries));
        let (has_apart, mut left) = (block.has_apart, Vec::new());
        self.directory.entries_mut(hash).drain(hashes.all(), |hash, entry| {
            add(&mut filled, hash, entry, &mut left);
        });
        let filled = filled.done(has_apart || !left.is_empty());
        self.directory.counts_mut().apart.append(&mut left);
        drop(self.directory.replace(hash, filled));
    }

    /// Replaces the segment of `hash` by two; true.
    fn split(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) -> bool {
        let block = self.directory.block(hash);
        let (depth, hashes) = (block.depth, Hashes::of(block, hasher));
        let mut apart = self.take_apart(hash);
        let half = |hash: u64| usize::from(hash & parting_bit(depth) != 0);
        let mut lens = [0; 2];
        let all = hashes.all().iter().copied().chain(apart.iter().map(|(hash, _)| *hash));
        all.for_each(|hash| lens[half(hash)] += 1);
        let mut halves = lens.map(|len| block_for(depth + 1, len));
        let mut left = Vec::new();
        self.directory.entries_mut(hash).drain(hashes.all(), |hash, entry| {
            // Chosen by number: no processor foresees the branch.
            add(&mut halves[half(hash)], hash, entry, &mut left);
        });
        for (hash, entry) in apart.drain(..) {
            add(&mut halves[half(hash)], hash, entry, &mut left);
        }
        let has_apart = [0, 1].map(|of| left.iter().any(|(hash, _)| half(*hash) == of));
        let [low, high] = halves;
        let (low, high) = (low.done(has_apart[0]), high.done(has_apart[1]));
        drop(self.directory.split(hash, low, high));
        let counts = self.directory.counts_mut();
        counts.apart.append(&mut left);
        counts.reshaped.split += 1;
        counts.blocks += 1;
        counts.halve_below = usize::MAX;
        true
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
    fn shrink(&mut self, hash: u64) {
        self.directory.step();
        if self.merge(hash) {
            return;
        }
        let block = self.directory.block(hash);
        let (cells, mut fewer) = (block.cells(), block_for(block.depth, block.len()));
        if fewer.cells() < cells {
            self.directory.entries_mut(hash).empty_into(&mut fewer);
            drop(self.directory.replace(hash, fewer.done(false)));
            self.directory.counts_mut().reshaped.shrunk += 1;
        }
    }

    /// Joins a segment with the other half of its parent, if both are small.
    fn merge(&mut self, hash: u64) -> bool {
        let block = self.directory.block(hash);
        let Some(depth) = block.depth.checked_sub(1) else { return false };
        let bit = parting_bit(depth);
        let halves = [hash & !bit, hash | bit].map(|half| (half, self.directory.block(half)));
        if halves.iter().any(|(_, block)| block.depth != depth + 1 || block.has_apart) {
            return false;
        }
        let len = halves.iter().map(|(_, block)| block.len()).sum();
        if len > MERGE_MAX {
            return false;
        }
        let mut both = block_for(depth, len);
        for half in halves.map(|(half, _)| half) {
            self.directory.entries_mut(half).empty_into(&mut both);
        }
        drop(self.directory.join(hash, both.done(false)));
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
            spots.into_iter().filter_map(move |spot| block.vacate(spot))
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
        for entries in 1..=CELLS_MAX {
            let (groups, most) = shape_for(entries);
            let cells = cells_for::<u64>(groups, entries);
            assert!(cells >= entries && cells <= most && most == most_of(groups));
            let bytes = bytes::<u64>(groups, cells);
            assert!(cells == most || good_size(bytes) - bytes < 2 * SHORT + 8);
            assert!(cells == most || cells_for::<u64>(groups, cells + 1) > cells);
        }
    }
}
