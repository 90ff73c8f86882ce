//! One clustered array: groups of fourteen cells, each with a tag of 8 bits.
//!
//! ```text
//! block   │ … │ cells of group 1 │ cells of group 0 │ tags of 0 │ tags of 1 │ … │
//! tags    │ 14 tags │ state │                      16 bytes, never across two lines of the cache
//! cells   │ from groups before │ at home │ free │   14 entries
//! ```
//!
//! The low half of a hash names an entry's home, the group where searching begins (`low half × groups / 2^32`);
//! a byte of its high half is its tag, compared fourteen at a time. An entry stands in its home or, if that is full of
//! entries that belong there or before it, in the next group with room. Entries are in the order of their homes, group by
//! group, so those from before come first in a group: the state says how many they are, and of
//! which tags some spilled into the next one. A search ends at the first group that nothing of its tag spilled from;
//! nearly always it looks at one. Removal brings a spilled entry back: there are no tombstones.
//!
//! Searching walks the tags alone: those of 56 entries share a line, and a key that is absent seldom touches more.
//!
//! For memory one rule counts: **a cell is initialised exactly when its tag is not [`FREE`]**. Order and state are
//! what makes searches right; no unsafe code leans on them.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::num::NonZeroU8;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

/// Cells of a group.
pub(crate) const LANES: usize = 14;

/// The tag of a free cell.
const FREE: u8 = 0;

/// The last cell of a group.
const LAST: usize = LANES - 1;

/// In the state, how many cells hold entries from groups before.
const FOREIGN: u16 = 0x000f;

/// In it, of which tags entries spilled into the next group: one bit for a twelfth of the tags each. A bit may stand
/// longer than its entries do; none does when nothing spills.
const SPILLED: u16 = 0xfff0;

/// Tags and state of a group.
type Tags = [u8; LANES + 2];

/// Cells of a group.
type Cells<T> = [MaybeUninit<T>; LANES];

/// One group, to read.
#[derive(Clone, Copy)]
struct Group<'a, T> {
    tags: &'a Tags,
    cells: &'a Cells<T>,
}

/// One group, to change.
struct GroupMut<'a, T> {
    tags: &'a mut Tags,
    cells: &'a mut Cells<T>,
}

/// Bytes of a group with entries of type `T`, at most.
pub(crate) const fn group_bytes<T>() -> usize {
    size_of::<Tags>() + size_of::<Cells<T>>().next_multiple_of(size_of::<Tags>())
}

/// The tag of an entry: never [`FREE`].
type Tag = NonZeroU8;

#[inline]
fn tag_of(hash: u64) -> Tag {
    let tag = (hash >> 32) as u8;
    Tag::MIN.saturating_add(tag - u8::from(tag != 0))
}

/// The bit of [`SPILLED`] for a tag.
#[inline]
fn spill_bit(tag: Tag) -> u16 {
    0x10 << ((u16::from(tag.get()) * 12) >> 8)
}

/// The state of a group.
#[inline]
fn state(tags: &Tags) -> u16 {
    let [.., low, high] = *tags;
    u16::from_le_bytes([low, high])
}

fn set_state(tags: &mut Tags, state: u16) {
    let [.., low, high] = tags;
    [*low, *high] = state.to_le_bytes();
}

/// A clustered array and the place of its share in the space of hashes.
pub(crate) struct Block<T> {
    /// Those of the first group; the others follow, the cells stand before.
    tags: NonNull<Tags>,
    count: u32,
    /// Leading hash bits that all entries share.
    pub(crate) depth: u8,
    owned: PhantomData<T>,
}

// SAFETY: a block owns its entries as a `Vec` does; it shares nothing.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above; through `&Block` only `&T` can be had.
unsafe impl<T: Sync> Sync for Block<T> {}

/// Where an entry stands in its block, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    group: u32,
    lane: u8,
}

impl<T> Block<T> {
    /// So many free groups.
    ///
    /// # Panics
    /// With no group or more than 2^32 (errors of this crate), or beyond the address space.
    pub(crate) fn new(depth: u8, count: usize) -> Self {
        assert!(count > 0 && count <= u32::MAX as usize && depth < 64);
        let Some((layout, cells)) = Self::layout(count) else { panic!("block of {count} groups") };
        // SAFETY: the layout is not of size 0, as there are groups and they have tags.
        let Some(base) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout)
        };
        // SAFETY: the cells take the first `cells` bytes of the allocation, `count` tags the rest. Bytes of tags need no
        // alignment to be written.
        let tags = unsafe {
            let tags = base.add(cells).cast::<Tags>();
            tags.cast::<u8>().write_bytes(FREE, count * size_of::<Tags>());
            tags
        };
        Block { tags, count: count as u32, depth, owned: PhantomData }
    }

    /// The allocation of so many groups, and the bytes of it that are cells.
    fn layout(count: usize) -> Option<(Layout, usize)> {
        let align = align_of::<T>().max(size_of::<Tags>());
        // The cells end where the tags begin, so both are aligned.
        let cells = count.checked_mul(size_of::<Cells<T>>())?.checked_next_multiple_of(align)?;
        let bytes = cells.checked_add(count.checked_mul(size_of::<Tags>())?)?;
        Some((Layout::from_size_align(bytes, align).ok()?, cells))
    }

    /// Groups.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// Cells, filled or not.
    pub(crate) fn cells(&self) -> usize {
        self.count() * LANES
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        Self::layout(self.count()).map_or(0, |(layout, _)| layout.size())
    }

    /// The group where searching for a hash begins; less than `count`.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u64::from(hash as u32) * u64::from(self.count)) >> 32) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.count() { 0 } else { at + 1 }
    }

    /// # Safety
    /// `at` is less than [`count`](Self::count).
    #[inline]
    unsafe fn tags_unchecked(&self, at: usize) -> &Tags {
        debug_assert!(at < self.count());
        // SAFETY: within the allocation (the caller's promise); tags were written by `new`; writers need
        // `&mut self`.
        unsafe { self.tags.add(at).as_ref() }
    }

    /// Where the cells of a group begin: the last group's first, the first group's just before the tags.
    #[inline]
    fn cells_of(&self, at: usize) -> NonNull<Cells<T>> {
        debug_assert!(at < self.count());
        let before = self.tags.as_ptr().cast::<Cells<T>>().wrapping_sub(at + 1);
        // SAFETY: callers give `at` less than `count`, and so many groups of cells stand before the tags: the
        // pointer is within the allocation, which is not at 0.
        unsafe { NonNull::new_unchecked(before) }
    }

    #[inline]
    fn group(&self, at: usize) -> Group<'_, T> {
        assert!(at < self.count());
        // SAFETY: within the allocation as asserted; cells may be uninitialised by their type; writers need
        // `&mut self`.
        unsafe { Group { tags: self.tags_unchecked(at), cells: self.cells_of(at).as_ref() } }
    }

    #[inline]
    fn group_mut(&mut self, at: usize) -> GroupMut<'_, T> {
        assert!(at < self.count());
        // SAFETY: within the allocation as asserted; tags and cells do not overlap; `&mut self` makes the access
        // exclusive.
        unsafe { GroupMut { tags: self.tags.add(at).as_mut(), cells: self.cells_of(at).as_mut() } }
    }

    /// Asks for the line that a search for this hash touches first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        simd::prefetch(self.tags.as_ptr().wrapping_add(self.home(hash)));
    }

    /// Asks for the first entry that such a search compares, if its line of tags has come.
    #[inline]
    pub(crate) fn prefetch_entry(&self, hash: u64) {
        let home = self.home(hash);
        // SAFETY: `home` is less than `count`.
        let tags = unsafe { self.tags_unchecked(home) };
        let (lanes, _) = simd::probe(tags, tag_of(hash).get());
        // Without one any address will do: a prefetch of the cells' end harms nothing.
        let cells = self.cells_of(home).cast::<T>().as_ptr();
        simd::prefetch(cells.wrapping_add(lanes.trailing_zeros() as usize % LANES));
    }

    /// The filled cell with the tag of this hash that `eq` accepts.
    #[inline]
    fn search(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<(&T, Spot)> {
        let (tag, mut at) = (tag_of(hash), self.home(hash));
        loop {
            // SAFETY: `home` and `next` are less than `count`.
            let tags = unsafe { self.tags_unchecked(at) };
            let (mut lanes, state) = simd::probe(tags, tag.get());
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                // SAFETY: `lane` is one of the fourteen, and its tag is `tag`, which is not FREE by its type, so
                // the cell is initialised.
                let entry = unsafe { self.cells_of(at).cast::<T>().add(lane).as_ref() };
                if eq(entry) {
                    return Some((entry, Spot { group: at as u32, lane: lane as u8 }));
                }
                lanes &= lanes - 1;
            }
            // Nothing spills from the last group with room, and one has.
            if state & spill_bit(tag) == 0 {
                return None;
            }
            at = self.next(at);
        }
    }

    /// The entry of this hash that `eq` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        self.search(hash, eq).map(|(entry, _)| entry)
    }

    /// Where that entry stands.
    #[inline]
    pub(crate) fn spot(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<Spot> {
        self.search(hash, eq).map(|(_, spot)| spot)
    }

    /// The entry of a cell.
    #[inline]
    pub(crate) fn get(&self, spot: Spot) -> Option<&T> {
        let (group, lane) = (self.group(spot.group as usize), usize::from(spot.lane));
        if lane >= LANES || group.tags[lane] == FREE {
            return None;
        }
        // SAFETY: the tag is not FREE, so the cell is initialised.
        Some(unsafe { group.cells[lane].assume_init_ref() })
    }

    /// The entry of a cell, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        let (group, lane) = (self.group_mut(spot.group as usize), usize::from(spot.lane));
        if lane >= LANES || group.tags[lane] == FREE {
            return None;
        }
        // SAFETY: the tag is not FREE, so the cell is initialised.
        Some(unsafe { group.cells[lane].assume_init_mut() })
    }

    /// Entries. Counted, group by group.
    pub(crate) fn len(&self) -> usize {
        (0..self.count()).map(|at| len(self.group(at).tags)).sum()
    }

    /// Whether an entry of this hash would have to stand behind its home.
    #[inline]
    pub(crate) fn is_crowded(&self, hash: u64) -> bool {
        self.group(self.home(hash)).tags[LAST] != FREE
    }

    /// Whether few cells are filled where entries of this hash stand.
    #[inline]
    pub(crate) fn is_sparse(&self, hash: u64) -> bool {
        // A third of the cells: among groups half full, the exception.
        self.group(self.home(hash)).tags[LANES / 3] == FREE
    }

    /// Adds an entry; gives it back where no cell is free.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, entry: T) -> Result<(), T> {
        let (tag, home) = (tag_of(hash), self.home(hash));
        let mut group = self.group_mut(home);
        if group.tags[LAST] == FREE {
            group.push_own(tag, entry);
            return Ok(());
        }
        self.spill(home, tag, entry)
    }

    /// Adds an entry whose home is full.
    #[cold]
    #[inline(never)]
    fn spill(&mut self, home: usize, tag: Tag, entry: T) -> Result<(), T> {
        if (0..self.count()).all(|at| self.group(at).tags[LAST] != FREE) {
            return Err(entry);
        }
        let (mut at, mut carried) = (home, Some((tag, entry)));
        // Each full group takes one in and hands one on, to the group with room.
        while let Some((tag, entry)) = carried {
            let full = self.group_mut(at);
            set_state(full.tags, state(full.tags) | spill_bit(tag));
            at = self.next(at);
            carried = self.group_mut(at).push_foreign(tag, entry);
        }
        Ok(())
    }

    /// Takes an entry out, and brings one back that had spilled for it.
    #[inline]
    pub(crate) fn remove(&mut self, spot: Spot, hasher: impl Fn(&T) -> u64) -> Option<T> {
        let at = spot.group as usize;
        let (_, entry) = self.pull(at, usize::from(spot.lane))?;
        if state(self.group(at).tags) & SPILLED != 0 {
            self.unspill(at, hasher);
        }
        Some(entry)
    }

    /// Takes an entry out of a group, and lets the group before know if it was the last of those from there.
    #[inline]
    fn pull(&mut self, at: usize, lane: usize) -> Option<(Tag, T)> {
        let mut group = self.group_mut(at);
        let were = foreign(group.tags);
        let pulled = group.pull(lane)?;
        if were > 0 && foreign(group.tags) == 0 {
            let before = at.checked_sub(1).unwrap_or(self.count() - 1);
            let before = self.group_mut(before);
            set_state(before.tags, state(before.tags) & !SPILLED);
        }
        Some(pulled)
    }

    #[cold]
    #[inline(never)]
    fn unspill(&mut self, mut at: usize, hasher: impl Fn(&T) -> u64) {
        // The group `at` has room. Each turn moves the room to the group behind; after a round all were seen.
        for _ in 0..self.count() {
            let next = self.next(at);
            if state(self.group(at).tags) & SPILLED == 0 {
                return;
            }
            // The order of homes: first comes who has the furthest to go.
            let behind = |entry: &T| {
                let home = self.home(hasher(entry));
                if home <= next { next - home } else { next + self.count() - home }
            };
            let foreign = (0..foreign(self.group(next).tags) as u8).filter_map(|lane| {
                let entry = self.get(Spot { group: next as u32, lane })?;
                Some((behind(entry), lane))
            });
            let Some((distance, lane)) = foreign.max() else { return };
            let Some((tag, entry)) = self.pull(next, usize::from(lane)) else { return };
            if distance <= 1 {
                self.group_mut(at).push_own(tag, entry);
            } else {
                let _nobody_had_to_leave = self.group_mut(at).push_foreign(tag, entry);
            }
            at = next;
        }
    }

    /// Takes an entry out and leaves the gap: the block can but be emptied further.
    #[inline]
    pub(crate) fn take(&mut self, spot: Spot) -> Option<T> {
        let (group, lane) = (self.group_mut(spot.group as usize), usize::from(spot.lane));
        if lane >= LANES || group.tags[lane] == FREE {
            return None;
        }
        group.tags[lane] = FREE;
        // SAFETY: the tag was not FREE, so the cell was initialised; now it is FREE, and nobody reads it again.
        Some(unsafe { group.cells[lane].assume_init_read() })
    }

    /// The filled cells in order.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        (0..self.count()).flat_map(move |at| {
            let mut lanes = filled(self.group(at).tags);
            core::iter::from_fn(move || {
                let lane = (lanes != 0).then(|| lanes.trailing_zeros() as u8)?;
                lanes &= lanes - 1;
                Some(Spot { group: at as u32, lane })
            })
        })
    }

    /// Groups between each entry and its home.
    pub(crate) fn distances(&self, hasher: impl Fn(&T) -> u64) -> impl Iterator<Item = usize> {
        self.spots().filter_map(move |spot| {
            let (at, home) = (spot.group as usize, self.home(hasher(self.get(spot)?)));
            Some(if home <= at { at - home } else { at + self.count() - home })
        })
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.spots().filter_map(|spot| self.get(spot))
    }

    /// The cells of the entries in order. Who owns the block alone may make them `&mut T`, each once.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = NonNull<T>> {
        self.spots().map(|spot| {
            let cells = self.cells_of(spot.group as usize).cast::<T>();
            // SAFETY: a spot of this block is within its lanes; no reference to a cell is made on the way, so none is
            // disturbed.
            unsafe { cells.add(usize::from(spot.lane)) }
        })
    }
}

/// The lanes filled, a bit each.
#[inline]
fn filled(tags: &Tags) -> u32 {
    !simd::bytes_of(tags, FREE) & ((1 << LANES) - 1)
}

#[inline]
fn len(tags: &Tags) -> usize {
    filled(tags).count_ones() as usize
}

/// How many are from groups before.
#[inline]
fn foreign(tags: &Tags) -> usize {
    usize::from(state(tags) & FOREIGN)
}

impl<T> GroupMut<'_, T> {
    /// Moves an entry from a filled lane to a free one.
    #[inline]
    fn shift(&mut self, from: usize, to: usize) {
        assert!(from < LANES && to < LANES);
        if from == to || self.tags[from] == FREE || self.tags[to] != FREE {
            return;
        }
        self.tags[to] = self.tags[from];
        self.tags[from] = FREE;
        // SAFETY: `from` was filled, so its cell is initialised, and is FREE now; `to` was FREE, so nothing is
        // overwritten, and is filled now.
        self.cells[to].write(unsafe { self.cells[from].assume_init_read() });
    }

    /// Fills a free lane.
    #[inline]
    fn fill(&mut self, lane: usize, tag: Tag, entry: T) {
        assert!(self.tags[lane] == FREE && lane < LANES);
        self.cells[lane].write(entry);
        self.tags[lane] = tag.get();
    }

    /// Adds an entry at home; there must be room.
    #[inline]
    fn push_own(&mut self, tag: Tag, entry: T) {
        self.fill((!filled(self.tags)).trailing_zeros() as usize, tag, entry);
    }

    /// Adds an entry from before; where there is no room, the entry that has to leave for it.
    fn push_foreign(&mut self, tag: Tag, entry: T) -> Option<(Tag, T)> {
        let (foreign, len) = (foreign(self.tags), len(self.tags));
        if foreign >= LANES {
            return Some((tag, entry));
        }
        let mut leaves = None;
        if len >= LANES {
            leaves = self.pull(LAST);
            self.shift(foreign, LAST);
        } else {
            self.shift(foreign, len);
        }
        self.fill(foreign, tag, entry);
        set_state(self.tags, state(self.tags) + 1);
        leaves
    }

    /// Takes the entry of a lane; others close the gap.
    #[inline]
    fn pull(&mut self, lane: usize) -> Option<(Tag, T)> {
        if lane >= LANES {
            return None;
        }
        let tag = Tag::new(self.tags[lane])?;
        let (mut gap, foreign) = (lane, foreign(self.tags));
        self.tags[lane] = FREE;
        // SAFETY: the tag was not FREE, so the cell was initialised; now it is FREE, and nobody reads it again.
        let entry = unsafe { self.cells[lane].assume_init_read() };
        if gap < foreign {
            self.shift(foreign - 1, gap);
            gap = foreign - 1;
            set_state(self.tags, state(self.tags) - 1);
        }
        let filled = filled(self.tags);
        if filled >> gap != 0 {
            self.shift(filled.ilog2() as usize, gap);
        }
        Some((tag, entry))
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for group in 0..self.count {
                for lane in 0..LANES as u8 {
                    drop(self.take(Spot { group, lane }));
                }
            }
        }
        if let Some((layout, cells)) = Self::layout(self.count()) {
            // SAFETY: allocated in `new` with the layout of the same count, `cells` bytes before the tags, and freed
            // once: whoever copies a block bit by bit (`directory`) drops one of the copies.
            unsafe { alloc::dealloc(self.tags.cast::<u8>().sub(cells).as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The home among four groups in the upper bits of the low half, the tag in the high half; the value is the
    /// hash.
    fn hash(home: u64, tag: u64) -> u64 {
        tag << 32 | home << 30
    }

    fn homes(block: &Block<Box<u64>>) -> Vec<(u32, u64)> {
        block.spots().map(|s| (s.group, block.get(s).map_or(9, |v| **v >> 30 & 3))).collect()
    }

    fn filled(count: [u64; 4]) -> Block<Box<u64>> {
        let mut block = Block::new(0, 4);
        for (home, count) in (0..).zip(count) {
            for tag in 0..count {
                let hash = hash(home, tag);
                assert!(block.insert(hash, Box::new(hash)).is_ok());
            }
        }
        block
    }

    fn check(block: &Block<Box<u64>>, count: [u64; 4]) {
        assert_eq!(block.len() as u64, count.iter().sum::<u64>());
        for (home, count) in (0..).zip(count) {
            for tag in 0..count {
                assert!(block.find(hash(home, tag), |v| **v == hash(home, tag)).is_some());
            }
            assert!(block.find(hash(home, count), |v| **v == hash(home, count)).is_none());
        }
    }

    #[test]
    fn entries_spill_in_the_order_of_their_homes_and_come_back() {
        // Two of home 1 are inserted when home 2 is full: they go first there, two of home 2 leave for 3.
        let mut block = filled([0, 14, 14, 3]);
        for tag in 14..16 {
            assert!(block.insert(hash(1, tag), Box::new(hash(1, tag))).is_ok());
        }
        check(&block, [0, 16, 14, 3]);
        let order = homes(&block);
        assert_eq!(order[14..16], [(2, 1), (2, 1)]);
        assert_eq!(order[28..33], [(3, 2), (3, 2), (3, 3), (3, 3), (3, 3)]);
        assert_eq!(block.distances(|v| **v).sum::<usize>(), 4);
        for tag in 0..2 {
            let spot = block.spot(hash(1, tag), |v| **v == hash(1, tag));
            let gone = block.remove(spot.expect("there"), |v| **v);
            assert_eq!(gone.map(|v| *v), Some(hash(1, tag)));
            let order = homes(&block);
            assert!(order.is_sorted_by_key(|(_, home)| *home), "{order:?}");
        }
        assert_eq!(block.distances(|v| **v).sum::<usize>(), 0);
        assert!((0..4).all(|at| state(block.group(at).tags) == 0));
    }

    #[test]
    fn a_block_can_be_filled_to_its_last_cell_and_emptied() {
        let mut block = filled([2, 1, 0, 53]);
        check(&block, [2, 1, 0, 53]);
        assert!(block.insert(0, Box::new(0)).is_err());
        for home in [3, 0, 1] {
            for tag in 0..53 {
                if let Some(spot) = block.spot(hash(home, tag), |v| **v == hash(home, tag)) {
                    assert!(block.remove(spot, |v| **v).is_some());
                }
            }
        }
        assert_eq!(block.len(), 0);
        assert!((0..4).all(|at| block.group(at).tags == &[0; 16]));
        assert!(block.get(Spot { group: 0, lane: 14 }).is_none());
    }

    #[test]
    fn what_is_taken_is_not_dropped_again() {
        let mut block = filled([3, 0, 0, 0]);
        let spots: Vec<Spot> = block.spots().collect();
        assert_eq!(block.take(spots[1]).map(|v| *v), Some(hash(0, 1)));
        assert_eq!(block.take(spots[1]), None);
        assert_eq!(block.iter().count(), 2);
        block.get_mut(spots[0]).into_iter().for_each(|v| **v += 1);
    }
}
