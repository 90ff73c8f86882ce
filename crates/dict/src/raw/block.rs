//! One segment: entries in cells, and groups of tags that say in which cell an entry is.
//!
//! ```text
//! block   │ free cells … │ cell 253 │ cell 254 │ cell 255 │ head │ group 0 │ group 1 │ … │
//!                                                                ▲ the pointer
//! group   │ 15 tags │ closed │ 15 cell numbers │ passed │
//! ```
//!
//! Bits of the upper half of a hash select the *home*, the group where searching begins; the uppermost byte is the tag. A
//! search compares the sixteen tags of a group at once, then reads the cell's number and the entry. An entry whose home is full is in the next group with a free lane, and each group between counts it as
//! *passed*: a search continues behind a group only if that count is not 0. Removal clears the tag and counts down,
//! so there are no tombstones.
//!
//! Cells are assigned from the last one down, and freed ones are reused first. So entries do not move when others come
//! and go, nor are they hashed again if the block gets more cells: cells, head and groups are copied as they are. Only
//! a block with another number of groups, and one that is split or joined, is filled again.
//!
//! For memory one rule counts: **a cell is initialised exactly if one of the lanes with a tag other than [`FREE`] has its
//! number**. Each lane has its own cell. Homes and counts are what makes searches right; no unsafe code relies on
//! them.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

mod shape;

pub(crate) use shape::Filling;

/// Entries of a group.
const LANES: usize = 15;

/// A bit for each of them.
const ALL_LANES: u32 = (1 << LANES) - 1;

/// Cells that a number of one byte can name.
const NUMBERS: usize = 256;

/// Cells of the largest block: three quarters of its lanes, so that nearly all entries are in their homes.
pub(crate) const CELLS_MAX: usize = 184;

/// The tag of a lane without an entry.
const FREE: u8 = 0;

/// The tag behind the lanes, which no hash has.
const CLOSED: u8 = 1;

/// What hashes' bytes are raised by to be tags.
const RAISE: u8 = 2;

/// No cell has been freed.
const NO_CELL: u16 = u16::MAX;

/// The tag of an entry.
#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    simd::byte_of_digest(hash).saturating_add(RAISE)
}

/// In one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Group {
    /// Of the lanes, and [`CLOSED`].
    tags: [u8; 16],
    /// The cells of the lanes, and the number of entries that passed this group.
    cells: [u8; 16],
}

const GROUP: usize = size_of::<Group>();

const _: () = assert!(GROUP == 32 && LANES == 15, "the last lane counts");

impl Group {
    const EMPTY: Self = {
        let mut tags = [FREE; 16];
        tags[LANES] = CLOSED;
        Group { tags, cells: [0; 16] }
    };

    /// The lanes with the tag of this hash, a bit each.
    #[inline(always)]
    fn lanes(&self, hash: u64) -> u32 {
        simd::bytes_of_digest::<RAISE>(&self.tags, hash)
    }

    #[inline(always)]
    fn free_lanes(&self) -> u32 {
        simd::bytes_of(&self.tags, FREE)
    }

    #[inline(always)]
    fn filled_lanes(&self) -> u32 {
        !simd::bytes_of(&self.tags, FREE) & ALL_LANES
    }

    /// Entries that passed this group. There are fewer than [`CELLS_MAX`], as the group is full.
    #[inline(always)]
    fn passed(&self) -> u8 {
        self.cells[LANES]
    }

    fn set_passed(&mut self, passed: u8) {
        self.cells[LANES] = passed;
    }
}

/// In front of the groups.
#[repr(C)]
struct Head {
    /// Cells with an entry.
    len: u16,
    /// Cells.
    cells: u16,
    /// The last cell that was ever filled; [`NUMBERS`] if none was.
    fresh: u16,
    /// The cell freed last, whose first byte is the number of the one freed before, or its own if there is none.
    free: u16,
}

impl Head {
    const fn of(cells: usize) -> Self {
        Head { len: 0, cells: cells as u16, fresh: NUMBERS as u16, free: NO_CELL }
    }
}

/// From one cell to the next. Cells of entries without a size have one, for the numbers of freed cells.
const fn stride<T>() -> usize {
    if size_of::<T>() == 0 { align_of::<T>() } else { size_of::<T>() }
}

/// Of the allocation, and of the groups in it.
const fn align<T>() -> usize {
    if align_of::<T>() > GROUP { align_of::<T>() } else { GROUP }
}

/// Bytes between the cells and the groups.
const fn head_bytes<T>() -> usize {
    if align_of::<T>() > size_of::<Head>() { align_of::<T>() } else { size_of::<Head>() }
}

/// Bytes in front of the groups.
const fn front_bytes<T>(cells: usize) -> usize {
    (cells * stride::<T>() + head_bytes::<T>()).next_multiple_of(align::<T>())
}

/// Bytes of a block.
pub(crate) const fn bytes<T>(groups: usize, cells: usize) -> usize {
    front_bytes::<T>(cells) + groups * GROUP
}

/// Cells of the largest block with these groups that takes at most `bytes` bytes.
pub(crate) const fn cells_in<T>(groups: usize, bytes: usize) -> usize {
    let front = bytes.saturating_sub(groups * GROUP) / align::<T>() * align::<T>();
    front.saturating_sub(head_bytes::<T>()) / stride::<T>()
}

/// One segment, and its range of hashes.
pub(crate) struct Block<T> {
    /// The first group, in the middle of the allocation.
    groups: NonNull<Group>,
    /// Masks the upper half of a hash to the offset of its home: the number of groups is a power of two.
    mask: u32,
    /// Hash bits that all entries share.
    pub(crate) depth: u8,
    /// Whether entries that belong here found no room and stand apart. Kept for the caller.
    pub(crate) has_apart: bool,
    owned: PhantomData<T>,
}

// SAFETY: a block owns its entries as a `Vec` does; it shares nothing.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above; through `&Block` only `&T` can be had.
unsafe impl<T: Sync> Sync for Block<T> {}

/// The lane of an entry in its block, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot(u32);

impl Spot {
    #[inline(always)]
    fn new(group: usize, lane: usize) -> Self {
        Spot((group as u32) << 4 | lane as u32)
    }

    #[inline(always)]
    fn group(self) -> usize {
        (self.0 >> 4) as usize
    }

    #[inline(always)]
    fn lane(self) -> usize {
        (self.0 & 15) as usize
    }
}

/// The first of these lanes.
#[inline(always)]
fn first(lanes: u32) -> usize {
    lanes.trailing_zeros() as usize
}

/// A search begun.
pub(crate) struct Begun<'b, T> {
    home: &'b Group,
    block: &'b Block<T>,
}

impl<T> Clone for Begun<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Begun<'_, T> {}

impl<'b, T> Begun<'b, T> {
    /// The first entry with the tag of this hash, whose memory is asked for.
    #[inline(always)]
    pub(crate) fn first(self, hash: u64) -> Option<&'b T> {
        let lanes = self.home.lanes(hash);
        // Without one any address will do: a prefetch harms nothing.
        let cell = self.block.cell(self.home.cells[first(lanes) & 15]);
        simd::prefetch(cell);
        // SAFETY: the number is that of a lane with a tag of a hash, so the cell is initialised. The block is borrowed
        // for as long, so nothing changes.
        (lanes != 0).then(|| unsafe { &*cell })
    }

    /// Whether no entry of this home is in another group.
    #[inline(always)]
    pub(crate) fn is_all(self) -> bool {
        self.home.passed() == 0
    }
}

impl<T> Block<T> {
    /// An empty block with this many groups and cells; no more cells than lanes.
    ///
    /// # Panics
    /// Where the numbers are out of bounds (errors of this crate), or beyond the address space.
    pub(crate) fn new(depth: u8, groups: usize, cells: usize) -> Self {
        assert!(cells > 0 && cells <= NUMBERS && cells <= groups * LANES && depth < 64);
        assert!(groups.is_power_of_two() && groups <= NUMBERS);
        let layout = Self::layout(groups, cells);
        assert!(layout.size() > front_bytes::<T>(cells));
        // SAFETY: the size is not 0.
        let Some(base) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout)
        };
        // SAFETY: the groups begin behind the front and are in the allocation, whose alignment is theirs or more, as is the
        // front a multiple of it; the head is the end of the front.
        let first = unsafe { base.add(front_bytes::<T>(cells)).cast::<Group>() };
        for at in 0..groups {
            // SAFETY: as above.
            unsafe { first.add(at).write(Group::EMPTY) };
        }
        // SAFETY: as above.
        unsafe { first.cast::<Head>().sub(1).write(Head::of(cells)) };
        let mask = ((groups - 1) * GROUP) as u32;
        Block { groups: first, mask, depth, has_apart: false, owned: PhantomData }
    }

    fn layout(groups: usize, cells: usize) -> Layout {
        match Layout::from_size_align(bytes::<T>(groups, cells), align::<T>()) {
            Ok(layout) => layout,
            Err(_) => panic!("block of {cells} cells"),
        }
    }

    #[inline(always)]
    fn head(&self) -> &Head {
        // SAFETY: written by `new`; changed through `&mut self` only.
        unsafe { self.groups.cast::<Head>().sub(1).as_ref() }
    }

    #[inline(always)]
    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: written by `new`; `&mut self` is exclusive.
        unsafe { self.groups.cast::<Head>().sub(1).as_mut() }
    }

    /// Groups.
    #[inline(always)]
    pub(crate) fn groups(&self) -> usize {
        self.mask as usize / GROUP + 1
    }

    /// Cells, filled or not.
    #[inline]
    pub(crate) fn cells(&self) -> usize {
        usize::from(self.head().cells)
    }

    /// Entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.head().len)
    }

    /// Whether every cell is filled.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        let head = self.head();
        head.len >= head.cells
    }

    /// Whether less than a third of the cells is filled.
    #[inline]
    pub(crate) fn is_thin(&self) -> bool {
        let head = self.head();
        head.len * 3 < head.cells
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        bytes::<T>(self.groups(), self.cells())
    }

    /// The group where searching for a hash begins; less than `groups`.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((hash >> 32) as u32 & self.mask) as usize / GROUP
    }

    /// A group.
    #[inline(always)]
    fn group(&self, at: usize) -> &Group {
        debug_assert!(at < self.groups());
        // SAFETY: callers give what `home` gives, which is less than `groups`, or check. All groups were written by `new`.
        unsafe { self.groups.add(at).as_ref() }
    }

    #[inline(always)]
    fn group_mut(&mut self, at: usize) -> &mut Group {
        debug_assert!(at < self.groups());
        // SAFETY: as in `group`; `&mut self` is exclusive.
        unsafe { self.groups.add(at).as_mut() }
    }

    /// The cell of a number: one of this block if that is [`NUMBERS`] less its cells or more, otherwise an address that
    /// must not be used.
    #[inline(always)]
    fn cell(&self, number: u8) -> *mut T {
        let end = self.groups.as_ptr().cast::<u8>().wrapping_sub(head_bytes::<T>());
        let all = end.wrapping_sub(NUMBERS * stride::<T>());
        all.wrapping_add(usize::from(number) * stride::<T>()).cast()
    }

    /// The following group; the first one behind the last.
    #[inline]
    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.groups() { 0 } else { at + 1 }
    }

    /// Begins a search for this hash, in steps: asks for the group that the next one will compare.
    #[inline(always)]
    pub(crate) fn begin(&self, hash: u64) -> Begun<'_, T> {
        let home = self.group(self.home(hash));
        simd::prefetch(home);
        Begun { home, block: self }
    }

    /// The entry of this hash that `eq` accepts; returns `eq` if there is none. Nearly always it is the first one with the
    /// tag in its home.
    #[inline(always)]
    pub(crate) fn find<F: FnMut(&T) -> bool>(&self, hash: u64, mut eq: F) -> Result<(&T, Spot), F> {
        let home = (hash >> 32) as u32 & self.mask;
        let mut at = home;
        loop {
            // SAFETY: the mask leaves the offset of a group.
            let group = unsafe { self.groups.byte_add(at as usize).as_ref() };
            let mut lanes = group.lanes(hash);
            while lanes != 0 {
                let lane = first(lanes);
                // SAFETY: the lane has the tag of a hash, so it is one of the first 15, and its cell is initialised.
                let entry = unsafe { &*self.cell(*group.cells.get_unchecked(lane)) };
                if eq(entry) {
                    return Ok((entry, Spot(at >> 1 | lane as u32)));
                }
                lanes &= lanes - 1;
            }
            if group.passed() == 0 {
                return Err(eq);
            }
            at = (at + GROUP as u32) & self.mask;
            if at == home {
                return Err(eq);
            }
        }
    }

    /// The cell of a lane that has an entry.
    #[inline]
    fn filled_cell(&self, spot: Spot) -> Option<NonNull<T>> {
        if spot.group() >= self.groups() {
            return None;
        }
        let group = self.group(spot.group());
        if group.tags[spot.lane()] < RAISE {
            return None;
        }
        // SAFETY: the lane has a tag, so the cell is one of this block: within an allocation, no address is 0.
        Some(unsafe { NonNull::new_unchecked(self.cell(group.cells[spot.lane()])) })
    }

    /// The entry of a lane.
    #[inline]
    pub(crate) fn get(&self, spot: Spot) -> Option<&T> {
        // SAFETY: the cell of a lane with a tag is initialised.
        self.filled_cell(spot).map(|cell| unsafe { cell.as_ref() })
    }

    /// The entry of a lane, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        // SAFETY: the cell of a lane with a tag is initialised; `&mut self` makes the access exclusive.
        self.filled_cell(spot).map(|mut cell| unsafe { cell.as_mut() })
    }

    /// Adds an entry; returns it if all cells are filled.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, entry: T) -> Result<(), T> {
        if self.is_full() {
            return Err(entry);
        }
        let home = self.home(hash);
        let free = self.group(home).free_lanes();
        let spot = if free != 0 { Spot::new(home, first(free)) } else { self.pass(home) };
        self.fill(spot, hash, entry)
    }

    /// The first free lane behind a group that has none; the groups on the way count the entry. There is one, as there
    /// are as many lanes as cells and one of those is free.
    #[cold]
    #[inline(never)]
    fn pass(&mut self, home: usize) -> Spot {
        let mut at = home;
        for _ in 0..self.groups() {
            let free = self.group(at).free_lanes();
            if free != 0 {
                return Spot::new(at, first(free));
            }
            let group = self.group_mut(at);
            group.set_passed(group.passed().saturating_add(1));
            at = self.behind(at);
        }
        unreachable!("a free cell, but no free lane")
    }

    /// Undoes [`pass`](Self::pass) for an entry that leaves the group `until`.
    #[cold]
    #[inline(never)]
    fn unpass(&mut self, home: usize, until: usize) {
        let mut at = home;
        for _ in 0..self.groups() {
            if at == until {
                return;
            }
            let group = self.group_mut(at);
            // A hash that is not the same as before must not make it wrap.
            group.set_passed(group.passed().saturating_sub(1));
            at = self.behind(at);
        }
    }

    /// Fills a free lane and a free cell, if there are such.
    #[inline]
    fn fill(&mut self, spot: Spot, hash: u64, entry: T) -> Result<(), T> {
        debug_assert!(self.group(spot.group()).tags[spot.lane()] == FREE && spot.lane() < LANES);
        let Some(number) = self.vacant() else { return Err(entry) };
        // SAFETY: a free cell of this block, which is now in use.
        unsafe { self.cell(number).write(entry) };
        let group = self.group_mut(spot.group());
        // Callers give free lanes: the entry of another would never be dropped.
        group.cells[spot.lane()] = number;
        simd::set_byte(&mut group.tags, spot.lane(), tag_of(hash));
        Ok(())
    }

    /// Takes a cell that is not initialised and that no other caller has.
    #[inline]
    fn vacant(&mut self) -> Option<u8> {
        let Head { len, cells, fresh, free } = *self.head();
        let number = if free != NO_CELL {
            // SAFETY: a cell of this block that was freed: its first byte was written then.
            let before = unsafe { self.cell(free as u8).cast::<u8>().read() };
            let is_last = u16::from(before) == free;
            self.head_mut().free = if is_last { NO_CELL } else { u16::from(before) };
            free
        } else if usize::from(fresh) > NUMBERS - usize::from(cells) {
            self.head_mut().fresh = fresh - 1;
            fresh - 1
        } else {
            return None;
        };
        self.head_mut().len = len + 1;
        Some(number as u8)
    }

    /// Takes an entry out. `hash` is that with which it was inserted.
    #[inline]
    pub(crate) fn take(&mut self, hash: u64, spot: Spot) -> Option<T> {
        let entry = self.vacate(spot)?;
        let home = self.home(hash);
        if home != spot.group() {
            self.unpass(home, spot.group());
        }
        Some(entry)
    }

    /// Takes an entry out, still counted by the groups that it passed.
    #[inline]
    pub(crate) fn vacate(&mut self, spot: Spot) -> Option<T> {
        let cell = self.filled_cell(spot)?;
        let group = self.group_mut(spot.group());
        let number = group.cells[spot.lane()];
        // A comparison of all tags that comes at once waits for this; but the next one is hardly of the same group.
        group.tags[spot.lane()] = FREE;
        // SAFETY: the lane had a tag, so the cell is initialised; now no lane has it, and it is not read again.
        let entry = unsafe { cell.read() };
        let free = self.head().free;
        let before = if free == NO_CELL { number } else { free as u8 };
        // SAFETY: a cell of this block without an entry, of a byte or more.
        unsafe { cell.cast::<u8>().write(before) };
        let head = self.head_mut();
        head.free = u16::from(number);
        head.len -= 1;
        if head.len == 0 {
            // No cell is filled: all may be taken in order again.
            *head = Head::of(usize::from(head.cells));
        }
        Some(entry)
    }

    /// The lanes with entries, in order.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        let (mut at, mut filled) = (0, self.group(0).filled_lanes());
        core::iter::from_fn(move || {
            while filled == 0 {
                at += 1;
                if at >= self.groups() {
                    return None;
                }
                filled = self.group(at).filled_lanes();
            }
            let spot = Spot::new(at, first(filled));
            filled &= filled - 1;
            Some(spot)
        })
    }

    /// Groups between each entry and its home.
    pub(crate) fn distances(&self, hasher: impl Fn(&T) -> u64) -> impl Iterator<Item = usize> {
        self.spots().filter_map(move |spot| {
            let home = self.home(hasher(self.get(spot)?));
            Some((spot.group() + self.groups() - home) % self.groups())
        })
    }

    /// The entries in the order of their lanes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.spots().filter_map(|spot| self.get(spot))
    }

    /// Pointers to the entries in the same order. The exclusive owner of the block may turn each into a
    /// `&mut T` once. No reference to a cell is created on the way, so none is invalidated.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = NonNull<T>> {
        self.spots().filter_map(|spot| self.filled_cell(spot))
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() && self.len() != 0 {
            for at in 0..self.groups() {
                while let lanes @ 1.. = self.group(at).filled_lanes() {
                    drop(self.vacate(Spot::new(at, first(lanes))));
                }
            }
        }
        let (layout, front) =
            (Self::layout(self.groups(), self.cells()), front_bytes::<T>(self.cells()));
        // SAFETY: allocated in `new` with this layout, as groups and cells are the same, and freed once: code that copies a
        // block bitwise (`directory`) drops only one of the copies.
        unsafe { alloc::dealloc(self.groups.cast::<u8>().sub(front).as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests;
