//! One clustered array: groups of fifteen cells, each with a tag of 8 bits.
//!
//! ```text
//! block   │ group 0 │ group 1 │ …
//! group   │ 15 tags │ state │ 15 cells │        256 bytes for entries of 16
//! cells   │ from groups before │ at home │ free │
//! ```
//!
//! The low half of a hash names an entry's home, the group where searching begins (`low half × groups / 2^32`);
//! its last byte is its tag, compared fifteen at a time. An entry stands in its home or, if that is full of
//! entries that belong there or before it, in the next group with room. Entries are in the order of their homes, group by
//! group, so those from before come first in a group. The state says of which tags some spilled into the next group. A
//! search ends at the first group that nothing of its tag spilled from; nearly always it looks at one. Removal
//! brings a spilled entry back: there are no tombstones.
//!
//! Tags stand beside their cells, so a search stays within one page of memory, and the address of both comes from
//! one multiplication.
//!
//! For memory one rule counts: **a cell is initialised exactly when its tag is not [`FREE`]**. Order and state are
//! what makes searches right; no unsafe code leans on them.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc;

use super::group::{
    FREE, Found, Group, Home, LANES, LAST, STATE, Tag, filled, group_bytes, len, spill_bit, tag_of,
};
use super::simd::{self, Tags};

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Bytes that blocks may begin later than their allocations.
const SHIFTS: usize = 3 * LINE;

/// Groups from which on a block is shifted.
const SHIFTED: usize = 17;

/// Whether blocks begin some lines into their allocations: where groups stand at powers of two, their tags would
/// share few sets of the cache and drive each other out.
const fn has_shift<T>(count: usize) -> bool {
    count >= SHIFTED
        && size_of::<Group<T>>().is_multiple_of(4 * LINE)
        && align_of::<Group<T>>() <= LINE
}

/// Bytes of so many groups, with what stands before them.
pub(crate) const fn block_bytes<T>(count: usize) -> usize {
    count * group_bytes::<T>() + if has_shift::<T>(count) { SHIFTS } else { 0 }
}

/// A clustered array and the place of its share in the space of hashes.
pub(crate) struct Block<T> {
    groups: NonNull<Group<T>>,
    count: u32,
    /// Bytes of the allocation before the first group.
    shift: u8,
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
        let Some(layout) = Self::layout(count) else { panic!("block of {count} groups") };
        // SAFETY: the layout is not of size 0, as there are groups and they have tags.
        let Some(base) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout)
        };
        let shift = if has_shift::<T>(count) {
            // Any bits of the address that differ between blocks.
            let spread = (base.addr().get() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (spread >> 62) as u8 * LINE as u8
        } else {
            0
        };
        // SAFETY: within the allocation, which is larger by SHIFTS where there is a shift; that is a multiple
        // of the alignment of all types for which there is one.
        let groups = unsafe { base.add(usize::from(shift)) }.cast::<Group<T>>();
        for at in 0..count {
            // SAFETY: within the allocation of `count` groups. Cells may stay as they are by their type.
            unsafe { (&raw mut (*groups.add(at).as_ptr()).tags).write(Tags([FREE; LANES + 1])) };
        }
        Block { groups, count: count as u32, shift, depth, owned: PhantomData }
    }

    /// The allocation of so many groups.
    fn layout(count: usize) -> Option<Layout> {
        let layout = Layout::array::<Group<T>>(count).ok()?;
        let shifts = if has_shift::<T>(count) { SHIFTS } else { 0 };
        Layout::from_size_align(layout.size().checked_add(shifts)?, layout.align()).ok()
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
        Self::layout(self.count()).map_or(0, |layout| layout.size())
    }

    /// The group where searching for a hash begins; less than `count`.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u64::from(hash as u32) * u64::from(self.count)) >> 32) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.count() { 0 } else { at + 1 }
    }

    /// The home of a hash.
    #[inline(always)]
    fn home_group(&self, hash: u64) -> &Group<T> {
        // SAFETY: `home` is less than `count`, so the group is within the allocation; its tags were written by `new`,
        // cells may be uninitialised by their type; writers need `&mut self`.
        unsafe { self.groups.add(self.home(hash)).as_ref() }
    }

    #[inline]
    fn group(&self, at: usize) -> &Group<T> {
        assert!(at < self.count());
        // SAFETY: within the allocation as asserted, and as above.
        unsafe { self.groups.add(at).as_ref() }
    }

    #[inline]
    fn group_mut(&mut self, at: usize) -> &mut Group<T> {
        assert!(at < self.count());
        // SAFETY: within the allocation as asserted, and as above; `&mut self` makes the access exclusive.
        unsafe { self.groups.add(at).as_mut() }
    }

    /// Asks for the line that a search for this hash touches first, and begins the search.
    #[inline(always)]
    pub(crate) fn seek(&self, hash: u64) -> Home<'_, T> {
        let group = self.home_group(hash);
        simd::prefetch(group);
        Home(group)
    }

    /// The filled cell with the tag of this hash that `eq` accepts.
    #[inline(always)]
    fn search(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(&T, Spot)> {
        match self.home_group(hash).search(hash, eq) {
            Found::At(entry, lane) => {
                Some((entry, Spot { group: self.home(hash) as u32, lane: lane as u8 }))
            }
            Found::Nowhere => None,
            Found::Further => self.search_on(hash, eq),
        }
    }

    /// The same behind its home.
    fn search_on(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(&T, Spot)> {
        let mut at = self.home(hash);
        loop {
            at = self.next(at);
            match self.group(at).search(hash, eq) {
                Found::At(entry, lane) => {
                    return Some((entry, Spot { group: at as u32, lane: lane as u8 }));
                }
                Found::Nowhere => return None,
                // Nothing spills from the last group with room, and one has.
                Found::Further => {}
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn find_on(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<&T> {
        self.search_on(hash, eq).map(|(entry, _)| entry)
    }

    /// The entry of this hash that `eq` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        self.find_at(Home(self.home_group(hash)), hash, eq)
    }

    /// The same where the search has begun already.
    #[inline(always)]
    pub(crate) fn find_at<'b>(
        &'b self,
        home: Home<'b, T>,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
    ) -> Option<&'b T> {
        match home.0.search(hash, &mut eq) {
            Found::At(entry, _) => Some(entry),
            Found::Nowhere => None,
            Found::Further => self.find_on(hash, &mut eq),
        }
    }

    /// Where that entry stands.
    #[inline]
    pub(crate) fn spot(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<Spot> {
        self.search(hash, &mut eq).map(|(_, spot)| spot)
    }

    /// The entry of a cell.
    #[inline]
    pub(crate) fn get(&self, spot: Spot) -> Option<&T> {
        let (group, lane) = (self.group(spot.group as usize), usize::from(spot.lane));
        if lane >= LANES || group.tags.0[lane] == FREE {
            return None;
        }
        // SAFETY: the tag is not FREE, so the cell is initialised.
        Some(unsafe { group.cells[lane].assume_init_ref() })
    }

    /// The entry of a cell, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        let (group, lane) = (self.group_mut(spot.group as usize), usize::from(spot.lane));
        if lane >= LANES || group.tags.0[lane] == FREE {
            return None;
        }
        // SAFETY: the tag is not FREE, so the cell is initialised.
        Some(unsafe { group.cells[lane].assume_init_mut() })
    }

    /// Entries. Counted, group by group.
    pub(crate) fn len(&self) -> usize {
        (0..self.count()).map(|at| len(&self.group(at).tags)).sum()
    }

    /// Whether an entry of this hash would have to stand behind its home.
    #[inline]
    pub(crate) fn is_crowded(&self, hash: u64) -> bool {
        self.group(self.home(hash)).tags.0[LAST] != FREE
    }

    /// Whether few cells are filled where entries of this hash stand.
    #[inline]
    pub(crate) fn is_sparse(&self, hash: u64) -> bool {
        // A third of the cells: among groups half full, the exception.
        self.group(self.home(hash)).tags.0[LANES / 3] == FREE
    }

    /// Adds an entry; gives it back where no cell is free.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        let (tag, home) = (tag_of(hash), self.home(hash));
        let group = self.group_mut(home);
        if group.tags.0[LAST] == FREE {
            group.push_own(tag, entry);
            return Ok(());
        }
        self.spill(home, tag, entry, hasher)
    }

    /// Adds an entry whose home is full.
    #[cold]
    #[inline(never)]
    fn spill(
        &mut self,
        home: usize,
        tag: Tag,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        if (0..self.count()).all(|at| self.group(at).tags.0[LAST] != FREE) {
            return Err(entry);
        }
        let (mut at, mut carried) = (home, Some((tag, entry)));
        // Each full group takes one in and hands one on, to the group with room.
        while let Some((tag, entry)) = carried {
            let next = self.next(at);
            let foreign = self.foreign(next, &hasher);
            self.group_mut(at).tags.0[STATE] |= spill_bit(tag);
            at = next;
            carried = self.group_mut(at).push_foreign(foreign, tag, entry);
        }
        Ok(())
    }

    fn before(&self, at: usize) -> usize {
        at.checked_sub(1).unwrap_or(self.count() - 1)
    }

    /// How many entries of a group are from groups before.
    #[inline]
    fn foreign(&self, at: usize, hasher: impl Fn(&T) -> u64) -> usize {
        if self.group(self.before(at)).tags.0[STATE] == 0 {
            return 0;
        }
        let lanes = (0..LANES as u8).map(|lane| self.get(Spot { group: at as u32, lane }));
        lanes.take_while(|e| e.is_some_and(|e| self.home(hasher(e)) != at)).count()
    }

    /// Takes an entry out, and brings one back that had spilled for it.
    #[inline]
    pub(crate) fn remove(&mut self, spot: Spot, hasher: impl Fn(&T) -> u64) -> Option<T> {
        let at = spot.group as usize;
        let foreign = self.foreign(at, &hasher);
        let (_, entry) = self.pull(at, foreign, usize::from(spot.lane))?;
        if self.group(at).tags.0[STATE] != 0 {
            self.unspill(at, hasher);
        }
        Some(entry)
    }

    /// Takes an entry out of a group with so many foreign ones, and lets the group before know if it was the last of
    /// those.
    #[inline]
    fn pull(&mut self, at: usize, foreign: usize, lane: usize) -> Option<(Tag, T)> {
        let pulled = self.group_mut(at).pull(foreign, lane)?;
        if lane < foreign && foreign == 1 {
            let before = self.before(at);
            self.group_mut(before).tags.0[STATE] = 0;
        }
        Some(pulled)
    }

    #[cold]
    #[inline(never)]
    fn unspill(&mut self, mut at: usize, hasher: impl Fn(&T) -> u64) {
        // The group `at` has room. Each turn moves the room to the group behind; after a round all were seen.
        for _ in 0..self.count() {
            let next = self.next(at);
            if self.group(at).tags.0[STATE] == 0 {
                return;
            }
            let count = self.foreign(next, &hasher);
            // The order of homes: first comes who has the furthest to go.
            let behind = |entry: &T| {
                let home = self.home(hasher(entry));
                if home <= next { next - home } else { next + self.count() - home }
            };
            let foreign = (0..count as u8).filter_map(|lane| {
                let entry = self.get(Spot { group: next as u32, lane })?;
                Some((behind(entry), lane))
            });
            let Some((distance, lane)) = foreign.max() else { return };
            let Some((tag, entry)) = self.pull(next, count, usize::from(lane)) else { return };
            if distance <= 1 {
                self.group_mut(at).push_own(tag, entry);
            } else {
                let before = self.foreign(at, &hasher);
                let _nobody_had_to_leave = self.group_mut(at).push_foreign(before, tag, entry);
            }
            at = next;
        }
    }

    /// Takes an entry out and leaves the gap: the block can but be emptied further.
    #[inline]
    pub(crate) fn take(&mut self, spot: Spot) -> Option<T> {
        let (group, lane) = (self.group_mut(spot.group as usize), usize::from(spot.lane));
        if lane >= LANES || group.tags.0[lane] == FREE {
            return None;
        }
        group.tags.0[lane] = FREE;
        // SAFETY: the tag was not FREE, so the cell was initialised; now it is FREE, and nobody reads it again.
        Some(unsafe { group.cells[lane].assume_init_read() })
    }

    /// Takes all entries out, each with the next of `hashes`, in order; as many as there are hashes.
    pub(crate) fn drain(&mut self, hashes: &[u64], mut each: impl FnMut(u64, T)) {
        let mut hashes = hashes.iter();
        for at in 0..self.count() {
            let group = self.group_mut(at);
            let mut lanes = filled(&group.tags);
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                let Some(hash) = hashes.next() else { return };
                group.tags.0[lane] = FREE;
                // SAFETY: the tag was not FREE, so the cell was initialised; now it is FREE, and nobody reads it again.
                let entry = unsafe { group.cells[lane].assume_init_read() };
                each(*hash, entry);
            }
        }
    }

    /// The filled cells in order.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        (0..self.count()).flat_map(move |at| {
            let mut lanes = filled(&self.group(at).tags);
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
            // SAFETY: a spot of this block is within its groups and lanes; no reference to a cell is made on the way,
            // so none is disturbed.
            unsafe {
                let group = self.groups.add(spot.group as usize).as_ptr();
                let cells = (&raw mut (*group).cells).cast::<T>();
                NonNull::new_unchecked(cells.add(usize::from(spot.lane)))
            }
        })
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
        if let Some(layout) = Self::layout(self.count()) {
            // SAFETY: allocated in `new` with the layout of the same count, `shift` bytes before the groups, and freed
            // once: whoever copies a block bit by bit (`directory`) drops one of the copies.
            unsafe {
                let base = self.groups.cast::<u8>().sub(usize::from(self.shift));
                alloc::dealloc(base.as_ptr(), layout);
            }
        }
    }
}

#[cfg(test)]
mod tests;
