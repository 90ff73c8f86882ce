//! The clustered table: blocks in the order of hashes, a directory that finds them, and when they grow, part and
//! join.
//!
//! Growth goes a block at a time, so the work of one operation is bounded by the entries of one block,
//! [`ENTRIES_MAX`], and some places of the directory.

use crate::raw::block::{BEFORE, Block, LANES, Spot, Tag, end_of, group_bytes};
use crate::raw::directory::Directory;

/// A block that would need more cells than these is split in two instead of growing.
const CELLS_MAX: usize = 512;

/// Entries of a block at most, where hashes part.
#[cfg(test)]
pub(crate) const ENTRIES_MAX: usize = CELLS_MAX * FULL.0 / FULL.1;

/// Share of cells filled at which a block grows.
const FULL: (usize, usize) = (12, 13);

/// The same just after growth or splitting, at most.
const FRESH: (usize, usize) = (21, 25);

/// Halves that hold together no more than this become one.
const MERGE_MAX: usize = 256;

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
    tag: Tag,
}

impl<T> Clone for Seek<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Seek<'_, T> {}

/// An entry on its way into a new block.
struct Move {
    tag: Tag,
    from: Spot,
}

/// The least size that allocators hand out without waste from `bytes` on: four of them to a doubling.
const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = (bytes - 1).ilog2() - 2;
    bytes.next_multiple_of(1 << step)
}

/// Groups for so many entries, and more as far as the allocation has room.
fn groups_for<T>(entries: usize) -> usize {
    let groups = (entries * FRESH.1).div_ceil(FRESH.0 * LANES).max(2);
    good_size(groups * group_bytes::<T>()) / group_bytes::<T>()
}

/// The next larger block.
fn groups_beyond<T>(groups: usize) -> usize {
    good_size((groups + 1) * group_bytes::<T>()) / group_bytes::<T>()
}

/// Groups of a block, and how many of them are its tail.
#[derive(Clone, Copy)]
struct Shape {
    groups: usize,
    tail: usize,
}

impl Shape {
    /// For so many entries, with room for some more.
    fn fresh<T>(entries: usize) -> Self {
        Shape { groups: groups_for::<T>(entries), tail: 1 }
    }

    /// A block of this shape for entries with these tags, ascending, with a longer tail if they need it.
    fn block<T>(self, depth: u8, tags: impl Iterator<Item = Tag>) -> Block<T> {
        let homes = self.groups.saturating_sub(self.tail).max(1);
        let end = end_of(tags, homes as u32).max(self.groups);
        Block::new(depth, homes as u32, end - homes)
    }
}

fn is_full<T>(block: &Block<T>) -> bool {
    block.len() * FULL.1 >= block.cells() * FULL.0
}

impl<T> Table<T> {
    /// A table of these entries.
    pub(crate) fn new(entries: impl Iterator<Item = T>, hash: impl Fn(&T) -> u64) -> Self {
        let mut tagged: Vec<_> = entries.map(|e| (Tag::of(hash(&e), 0), e)).collect();
        tagged.sort_by_key(|(tag, _)| *tag);
        let tags = tagged.iter().map(|(tag, _)| *tag);
        let mut block = Shape::fresh::<T>(tagged.len()).block(0, tags);
        let (mut at, len) = (BEFORE, tagged.len());
        for (tag, entry) in tagged {
            at = block.append(at, tag, entry);
        }
        block.recount();
        let counts = Counts { len, blocks: 1, ..Counts::default() };
        Table { directory: Directory::new(block, counts) }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.directory.counts().len
    }

    /// Asks for the memory that a search for this hash will touch.
    #[inline]
    pub(crate) fn seek(&self, hash: u64) -> Seek<'_, T> {
        let block = self.directory.block(hash);
        let tag = Tag::of(hash, block.depth);
        block.prefetch(tag);
        Seek { block, tag }
    }

    /// The rest of the search.
    #[inline]
    pub(crate) fn find_at<'t>(
        &'t self,
        seek: Seek<'t, T>,
        eq: impl FnMut(&T) -> bool,
    ) -> Option<&'t T> {
        seek.block.find(seek.tag, eq)
    }

    /// The entry of this hash that `eq` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let block = self.directory.block(hash);
        block.find(Tag::of(hash, block.depth), eq)
    }

    /// Where it stands.
    #[inline]
    pub(crate) fn place(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<Place> {
        let block = self.directory.block(hash);
        let spot = block.spot(Tag::of(hash, block.depth), eq)?;
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
        if is_full(self.directory.block(hash)) {
            self.grow(hash, &hasher);
        }
        // A block just built has a free tail, or will after some turns: it grows with each.
        while let Err(back) = self.directory.entries_mut(hash).insert(hash, entry) {
            entry = back;
            self.grow(hash, &hasher);
        }
    }

    /// Takes an entry out; blocks left sparse shrink or join.
    pub(crate) fn remove(&mut self, place: Place) -> Option<T> {
        let entry = self.directory.entries_mut(place.hash).remove(place.spot)?;
        self.directory.counts_mut().len -= 1;
        let block = self.directory.block(place.hash);
        // Well below what growth and splitting leave, so that no sequence alternates between the two.
        if block.len() * 2 < block.cells() && block.count() > 4 {
            self.shrink(place.hash);
        }
        Some(entry)
    }

    /// The entries of the block of `hash` with their tags in it.
    fn moves(&self, hash: u64) -> Vec<Move> {
        let block = self.directory.block(hash);
        let mut moves = Vec::with_capacity(block.len());
        moves.extend(block.spots().map(|(tag, from)| Move { tag, from }));
        moves
    }

    /// Moves entries out of the block of `hash` into a new one.
    fn pour(&mut self, hash: u64, depth: u8, shape: Shape, moves: &[Move]) -> Block<T> {
        let mut block = shape.block(depth, moves.iter().map(|m| m.tag));
        self.pour_into(hash, &mut block, moves, BEFORE);
        block
    }

    fn pour_into(&mut self, hash: u64, block: &mut Block<T>, moves: &[Move], mut at: Spot) -> Spot {
        let mut source = self.directory.entries_mut(hash);
        for m in moves {
            if let Some(entry) = source.take(m.from) {
                at = block.append(at, m.tag, entry);
            }
        }
        block.recount();
        at
    }

    /// More room where `hash` belongs: a larger block, or two.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        self.directory.step();
        let block = self.directory.block(hash);
        let (depth, groups, tail) = (block.depth, block.count(), block.tail());
        let shape = if !is_full(block) && tail <= groups / 16 {
            // Entries crowd at the end: fewer homes in the same memory.
            Shape { groups, tail: tail + 1 }
        } else {
            Shape { groups: groups_beyond::<T>(groups), tail: 1 }
        };
        if shape.groups * LANES <= CELLS_MAX || !self.make_splittable(hash) {
            let moves = self.moves(hash);
            let larger = self.pour(hash, depth, shape, &moves);
            self.directory.replace(hash, larger);
            self.directory.counts_mut().reshaped.grown += 1;
            return;
        }
        let block = self.directory.block(hash);
        // All hashes are asked for before the first entry moves: whatever the user's code does, entries stay whole.
        let mut halves = [Vec::new(), Vec::new()];
        for half in &mut halves {
            half.reserve(block.len() * 5 / 8);
        }
        for (_, from) in block.spots() {
            let hash = block.get(from).map_or(0, &hasher);
            let half = ((hash << depth) >> 63) as usize;
            halves[half].push(Move { tag: Tag::of(hash, depth + 1), from });
        }
        let [low, high] = halves.map(|mut half| {
            // Nearly in order already: only entries of one old tag may stand the wrong way round.
            half.sort_by_key(|m| m.tag);
            self.pour(hash, depth + 1, Shape::fresh::<T>(half.len()), &half)
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
    fn shrink(&mut self, hash: u64) {
        self.directory.step();
        if !self.merge(hash) {
            let moves = self.moves(hash);
            let block = self.directory.block(hash);
            let (depth, shape) = (block.depth, Shape::fresh::<T>(moves.len()));
            if shape.groups < block.count() {
                let smaller = self.pour(hash, depth, shape, &moves);
                self.directory.replace(hash, smaller);
                self.directory.counts_mut().reshaped.shrunk += 1;
            }
        }
    }

    /// Joins a block with the other half of its parent, if both are small.
    fn merge(&mut self, hash: u64) -> bool {
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
        let [low_moves, high_moves] = [(low, 0), (high, 0x8000)].map(|(half, bit)| {
            let mut moves = self.moves(half);
            moves.iter_mut().for_each(|m| m.tag = Tag::new(m.tag.bits() >> 1 | bit));
            moves
        });
        let tags = low_moves.iter().chain(&high_moves).map(|m| m.tag);
        let mut both = Shape::fresh::<T>(low_len + high_len).block(depth, tags);
        let at = self.pour_into(low, &mut both, &low_moves, BEFORE);
        self.pour_into(high, &mut both, &high_moves, at);
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

    /// The first entry in the order of hashes at or behind `from`, leaving out the first `skip` of exactly
    /// that hash; with its hash.
    pub(crate) fn next_from(
        &self,
        mut from: u64,
        mut skip: u32,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<(u64, &T)> {
        loop {
            let block = self.directory.block(from);
            let mut next = block.first_from(Tag::of(from, block.depth));
            while let Some(first) = next {
                let tag = block.tag(first);
                let mut best: Option<(u64, &T)> = None;
                let mut passed = 0;
                while let Some(spot) = next
                    && block.tag(spot) == tag
                    && let Some(entry) = block.get(spot)
                {
                    let hash = hasher(entry);
                    let fresh = hash > from || (hash == from && passed >= skip);
                    passed += u32::from(hash == from);
                    if fresh && best.is_none_or(|(least, _)| hash < least) {
                        best = Some((hash, entry));
                    }
                    next = block.after(spot);
                }
                if best.is_some() {
                    return best;
                }
            }
            let span = u64::MAX.checked_shr(u32::from(block.depth)).unwrap_or(0);
            (from, skip) = ((from | span).checked_add(1)?, 0);
        }
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
            let spots: Vec<Spot> = block.spots().map(|(_, spot)| spot).collect();
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
            assert!(groups * LANES * FRESH.0 >= entries * FRESH.1 || groups == 2);
            assert!(groups_beyond::<u64>(groups) > groups);
        }
    }
}
