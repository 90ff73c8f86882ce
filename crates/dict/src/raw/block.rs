//! One segment: entries in an array without order, and a clustered index of them.
//!
//! ```text
//! block ──▶ │ tag 0 │ tag 1 │ … │ tag n-1 │ closed │               one per lane
//!           │ number 0 │ number 1 │ … │ number n-1 │ state │       cell number of each lane
//!           │ cell 0 │ cell 1 │ … │ cell c-1 │                    c: capacity
//! ```
//!
//! The uppermost bits of a hash select an entry's home, the lane of the index where searching
//! begins (a byte for 256 homes); the fifth byte from the lowest is its tag, compared sixteen at a
//! time. An entry is in its home or in one of the [`WINDOW`] - 1 lanes after it: this is an
//! invariant (as in hopscotch hashing), so every search, successful or not, is one comparison of
//! sixteen tags. A lane has a tag and the number of a cell, a byte each. If the window of a new
//! entry is full, other entries move: one that may be in the next free lane moves there, another
//! one moves to its former lane, until a lane of the window is free. Removal only frees the lane
//! and the cell: there are no tombstones. If no lane can be freed, insertion returns the entry to
//! the caller.
//!
//! There are more lanes than entries, so that an entry is nearly always in or just after its home:
//! then the first tag that matches nearly always belongs to the key searched for. Each further
//! comparison is a mispredicted branch, which costs as much as several searches. There are hardly
//! more cells, which are larger, than entries: they are filled in order of insertion, and their
//! array grows without accessing any entry.
//!
//! The last homes have [`TAIL`] lanes after them, not a whole window: the missing tags are marked
//! as closed.
//!
//! Memory safety depends on one invariant: **a cell is initialised exactly when a lane whose tag is
//! neither [`FREE`] nor [`CLOSED`] has its number, and no two such lanes have the same number**.
//! The first byte of a freed cell holds the number of the next freed cell. Windows make searches
//! correct; no unsafe code depends on them.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

mod fill;
mod insert;

pub(crate) use self::fill::Filling;

/// Lanes that an entry may occupy, from its home on: the number of tags compared at once.
const WINDOW: usize = 16;

/// Lanes after the last home.
const TAIL: usize = 8;

/// Tags that belong to no lane: the rest of the last home's window.
const PAD: usize = WINDOW - 1 - TAIL;

/// The tag of a free lane.
const FREE: u8 = 0;

/// The tag of positions in a window that are not lanes.
const CLOSED: u8 = 1;

/// Added to the tag byte of a hash, so that no tag is [`FREE`] or [`CLOSED`].
const TAG_OFFSET: u8 = 2;

/// The end of the chain of free cells: no cell has this number.
const NO_CELL: u8 = u8::MAX;

/// Words of a bit set with one bit for each lane, for the greatest number of homes.
const LANE_WORDS: usize = (256_usize + TAIL).div_ceil(64);

/// State of the cells of a block, stored after the cell numbers.
#[derive(Clone, Copy)]
#[repr(C, align(4))]
struct BlockState {
    /// Number of entries.
    len: u8,
    /// Number of cells that were ever filled.
    used: u8,
    /// The first freed cell; [`NO_CELL`] if there is none.
    free: u8,
    /// Number of cells.
    capacity: u8,
}

impl BlockState {
    /// The state of a block with `capacity` cells, the first `len` of which are filled.
    const fn of(len: u8, capacity: u8) -> Self {
        BlockState { len, used: len, free: NO_CELL, capacity }
    }
}

/// State of a block that the directory uses, stored after the [`BlockState`].
#[derive(Clone, Copy)]
#[repr(C, align(4))]
struct DirectoryState {
    /// Hash bits that all entries share.
    depth: u8,
    /// 1 if entries of this block are in the table's overflow list, else 0. Only the table uses it.
    has_overflow: u8,
}

/// Size of both, in bytes.
const STATE_BYTES: usize = size_of::<BlockState>() + size_of::<DirectoryState>();

const _: () = assert!(STATE_BYTES == 8, "the cells after the state are aligned");

/// The tag of an entry.
#[inline]
fn tag_of(hash: u64) -> u8 {
    simd::byte_of_hash(hash).saturating_add(TAG_OFFSET)
}

/// The first lane of the set `lanes`, whose bit 0 is `home`.
#[inline(always)]
fn nth(home: usize, lanes: u32) -> usize {
    // In 32 bits (homes are less than 2^32), so that compilers add before extending to an address.
    (home as u32).wrapping_add(lanes.trailing_zeros()) as usize
}

/// Memory of this layout, whose size is not 0.
fn allocate(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() != 0);
    // SAFETY: checked above.
    match NonNull::new(unsafe { alloc::alloc(layout) }) {
        Some(base) => base,
        None => alloc::handle_alloc_error(layout),
    }
}

/// A segment with this many homes, a power of two up to 256. A pointer, so that the directory's
/// slots are small.
pub(crate) struct Block<T, const HOMES: usize> {
    /// The first tag, where the allocation begins.
    base: NonNull<u8>,
    owned: PhantomData<T>,
}

// SAFETY: a block owns its entries as a `Vec` does; it shares nothing.
unsafe impl<T: Send, const HOMES: usize> Send for Block<T, HOMES> {}
// SAFETY: as for `Send`; `&Block` gives access only to `&T`.
unsafe impl<T: Sync, const HOMES: usize> Sync for Block<T, HOMES> {}

/// The lane of an entry in its block, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneIndex(u32);

/// A search whose tags have been prefetched.
pub(crate) struct PrefetchedSearch<'b, T> {
    window: &'b [u8; WINDOW],
    /// The cell number that belongs to the first of these tags.
    number: NonNull<u8>,
    /// The first cell.
    cells: NonNull<T>,
}

impl<T> Clone for PrefetchedSearch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PrefetchedSearch<'_, T> {}

impl<'b, T> PrefetchedSearch<'b, T> {
    /// The first entry with the tag of this hash; prefetches it.
    #[inline(always)]
    pub(crate) fn first(self, hash: u64) -> Option<&'b T> {
        let lanes = simd::bytes_of_hash::<TAG_OFFSET>(self.window, hash);
        if lanes == 0 {
            return None;
        }
        // SAFETY: numbers are in the order of tags, so the number at the tag's offset from the home
        // belongs to the lane with that tag. The block is borrowed meanwhile, so nothing changes.
        let cell = unsafe {
            let number = self.number.add(nth(0, lanes)).read();
            self.cells.add(usize::from(number))
        };
        simd::prefetch(cell.as_ptr());
        // SAFETY: a lane with the tag of a hash has the number of this cell, so it is initialised.
        Some(unsafe { cell.as_ref() })
    }
}

/// A bit set of lanes. As few words as possible: the end of each word costs a mispredicted branch.
struct Lanes {
    words: [u64; LANE_WORDS],
    /// Index of the word that `next` reads.
    from: usize,
}

impl Lanes {
    /// Combines the words of this set and `other` with `combine`.
    fn and(mut self, other: &Lanes, combine: impl Fn(u64, u64) -> u64) -> Self {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(own, others)| *own = combine(*own, *others));
        self
    }
}

impl Iterator for Lanes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        loop {
            let word = self.words.get_mut(self.from)?;
            if *word != 0 {
                let at = self.from * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(at);
            }
            self.from += 1;
        }
    }
}

impl<T, const HOMES: usize> Block<T, HOMES> {
    /// Lanes of the index.
    const LANES: usize = {
        assert!(HOMES.is_power_of_two() && HOMES >= WINDOW && HOMES <= 256);
        HOMES + TAIL
    };

    /// Offset of the cell numbers.
    const NUMBERS: usize = Self::LANES + PAD;

    /// Offset of the state.
    const STATE: usize = (Self::NUMBERS + Self::LANES).next_multiple_of(STATE_BYTES);

    /// Size of the index in bytes; the cells begin after it.
    pub(crate) const INDEX: usize = Self::STATE + STATE_BYTES;

    /// Maximum number of entries of a block, as cell numbers are one byte.
    pub(crate) const ENTRIES_MAX: usize =
        if Self::LANES < NO_CELL as usize { Self::LANES } else { NO_CELL as usize };

    /// An empty block with this many cells.
    ///
    /// # Panics
    /// If the number of cells is 0 or more than [`ENTRIES_MAX`](Self::ENTRIES_MAX) (errors of this
    /// crate), or if the size exceeds the address space.
    pub(crate) fn new(depth: u8, capacity: usize) -> Self {
        assert!(capacity > 0 && capacity <= Self::ENTRIES_MAX && depth < 64);
        let base = allocate(Self::layout(capacity));
        // SAFETY: within the allocation, which begins with the tags: one for each lane and PAD
        // more. Then come the numbers, one for each lane, and the state.
        unsafe {
            base.write_bytes(FREE, Self::NUMBERS + Self::LANES);
            base.add(Self::LANES).write_bytes(CLOSED, PAD);
        }
        let mut block = Block { base, owned: PhantomData };
        block.set_state(BlockState::of(0, capacity as u8));
        block.set_directory_state(DirectoryState { depth, has_overflow: 0 });
        block
    }

    /// Offset of the cells.
    const CELLS: usize = Self::INDEX.next_multiple_of(align_of::<T>());

    /// The layout of the index followed by this many cells.
    fn layout(capacity: usize) -> Layout {
        let align = align_of::<T>().max(align_of::<BlockState>());
        let size =
            size_of::<T>().checked_mul(capacity).and_then(|cells| cells.checked_add(Self::CELLS));
        match size.map(|size| Layout::from_size_align(size, align)) {
            Some(Ok(layout)) => layout,
            _ => panic!("block of {capacity} cells"),
        }
    }

    /// Number of cells, filled or not.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        usize::from(self.state().capacity)
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.state().len)
    }

    /// Hash bits that all entries share.
    #[inline]
    pub(crate) fn depth(&self) -> u8 {
        self.directory_state().depth
    }

    /// Sets [`depth`](Self::depth).
    pub(crate) fn set_depth(&mut self, depth: u8) {
        self.set_directory_state(DirectoryState { depth, ..self.directory_state() });
    }

    /// Whether entries of this block are in the table's overflow list.
    #[inline]
    pub(crate) fn has_overflow(&self) -> bool {
        self.directory_state().has_overflow != 0
    }

    /// Sets [`has_overflow`](Self::has_overflow).
    pub(crate) fn set_overflow(&mut self, has_overflow: bool) {
        self.set_directory_state(DirectoryState {
            has_overflow: u8::from(has_overflow),
            ..self.directory_state()
        });
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        Self::layout(self.capacity()).size()
    }

    #[inline(always)]
    fn state(&self) -> BlockState {
        // SAFETY: within the index, written by `new`, and aligned for the state, as the allocation
        // is.
        unsafe { self.base.add(Self::STATE).cast().read() }
    }

    #[inline(always)]
    fn set_state(&mut self, state: BlockState) {
        // SAFETY: as in `state`; `&mut self` makes the access exclusive.
        unsafe { self.base.add(Self::STATE).cast().write(state) };
    }

    #[inline(always)]
    fn directory_state(&self) -> DirectoryState {
        // SAFETY: within the index, after the state of cells, written by `new`, and aligned as that
        // is.
        unsafe { self.base.add(Self::STATE + size_of::<BlockState>()).cast().read() }
    }

    fn set_directory_state(&mut self, directory_state: DirectoryState) {
        // SAFETY: as in `directory_state`; `&mut self` makes the access exclusive.
        unsafe {
            self.base.add(Self::STATE + size_of::<BlockState>()).cast().write(directory_state);
        };
    }

    /// The lane where searching for a hash begins; less than `HOMES`.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - HOMES.ilog2())) as usize
    }

    /// The tags of the lanes, without the closed ones after them.
    #[inline]
    fn tags(&self) -> &[u8] {
        // SAFETY: written by `new`, one for each lane; writers need `&mut self`.
        unsafe { core::slice::from_raw_parts(self.base.as_ptr(), Self::LANES) }
    }

    #[inline]
    fn set_tag(&mut self, at: usize, tag: u8) {
        assert!(at < Self::LANES);
        // SAFETY: within the tags of the lanes; `&mut self` makes the access exclusive.
        unsafe { self.base.add(at).write(tag) };
    }

    /// The number of a lane's cell.
    #[inline(always)]
    fn number(&self, at: usize) -> u8 {
        debug_assert!(at < Self::LANES);
        // SAFETY: callers pass lanes; each has a number, written by `new`.
        unsafe { self.base.add(Self::NUMBERS + at).read() }
    }

    #[inline]
    fn set_number(&mut self, at: usize, number: u8) {
        assert!(at < Self::LANES);
        // SAFETY: within the numbers of the lanes; `&mut self` makes the access exclusive.
        unsafe { self.base.add(Self::NUMBERS + at).write(number) };
    }

    /// The tags of the window of a home.
    #[inline(always)]
    fn window(&self, home: usize) -> &[u8; WINDOW] {
        debug_assert!(home < HOMES);
        // SAFETY: callers pass results of `home`, which are less than `HOMES`: there are TAIL + PAD
        // more tags.
        unsafe { self.base.add(home).cast().as_ref() }
    }

    /// The first cell.
    #[inline(always)]
    fn first_cell(&self) -> NonNull<T> {
        // SAFETY: the cells follow the index, in the same allocation.
        unsafe { self.base.add(Self::CELLS).cast() }
    }

    /// The cell with this number.
    #[inline(always)]
    fn cell(&self, number: u8) -> NonNull<T> {
        debug_assert!(usize::from(number) < self.capacity());
        // SAFETY: callers pass numbers of cells, which are within the allocation.
        unsafe { self.first_cell().add(usize::from(number)) }
    }

    /// Begins a search for this hash in two steps: prefetches the tags that [`PrefetchedSearch::first`]
    /// compares.
    #[inline(always)]
    pub(crate) fn begin(&self, hash: u64) -> PrefetchedSearch<'_, T> {
        let home = self.home(hash);
        let window = self.window(home);
        // SAFETY: a lane, as `home` is less than `HOMES`.
        let number = unsafe { self.base.add(Self::NUMBERS + home) };
        // Every fourth window continues in the next cache line.
        simd::prefetch(window);
        simd::prefetch(&raw const window[WINDOW - 1]);
        simd::prefetch(number.as_ptr());
        PrefetchedSearch { window, number, cells: self.first_cell() }
    }

    /// The entry of this hash that `eq` accepts, if it is the first one with the tag. Otherwise an
    /// error: whether any entry has the tag, which is rarely the case.
    #[inline(always)]
    pub(crate) fn find_first(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(&T, LaneIndex), bool> {
        let home = self.home(hash);
        // SAFETY: a lane, as `home` is less than `HOMES`.
        simd::prefetch(unsafe { self.base.add(Self::NUMBERS + home) }.as_ptr());
        let lanes = simd::bytes_of_hash::<TAG_OFFSET>(self.window(home), hash);
        if lanes == 0 {
            return Err(false);
        }
        let at = nth(home, lanes);
        // SAFETY: the tag of `at` is that of a hash, neither FREE nor CLOSED. So `at` is a lane,
        // and the cell with its number is initialised.
        let entry = unsafe { self.cell(self.number(at)).as_ref() };
        if eq(entry) { Ok((entry, LaneIndex(at as u32))) } else { Err(true) }
    }

    /// The entry of this hash that `eq` accepts.
    pub(crate) fn find(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Option<(&T, LaneIndex)> {
        let home = self.home(hash);
        let mut lanes = simd::bytes_of_hash::<TAG_OFFSET>(self.window(home), hash);
        while lanes != 0 {
            let lane = LaneIndex(nth(home, lanes) as u32);
            let entry = self.get(lane)?;
            if eq(entry) {
                return Some((entry, lane));
            }
            lanes &= lanes - 1;
        }
        None
    }

    /// The cell of a lane's entry; `None` if the lane has no entry or `at` is no lane.
    #[inline]
    fn filled(&self, at: usize) -> Option<NonNull<T>> {
        let is_filled = self.tags().get(at).is_some_and(|tag| *tag >= TAG_OFFSET);
        is_filled.then(|| self.cell(self.number(at)))
    }

    /// The entry of a lane.
    #[inline]
    pub(crate) fn get(&self, lane: LaneIndex) -> Option<&T> {
        // SAFETY: a lane with a tag has the number of this cell, so it is initialised.
        self.filled(lane.0 as usize).map(|cell| unsafe { cell.as_ref() })
    }

    /// The mutable entry of a lane.
    #[inline]
    pub(crate) fn get_mut(&mut self, lane: LaneIndex) -> Option<&mut T> {
        // SAFETY: as in `get`; `&mut self` makes the access exclusive.
        self.filled(lane.0 as usize).map(|mut cell| unsafe { cell.as_mut() })
    }

    /// Free lanes of a hash's window as a bit set, whose bit 0 is its home.
    #[inline]
    fn free_lanes(&self, hash: u64) -> u32 {
        simd::bytes_of(self.window(self.home(hash)), FREE)
    }

    /// Removes an entry; returns it with the number of remaining entries.
    #[inline]
    pub(crate) fn take(&mut self, lane: LaneIndex) -> Option<(T, usize)> {
        let at = lane.0 as usize;
        // SAFETY: the lane has a tag.
        self.filled(at).map(|_| unsafe { self.take_filled(at) })
    }

    /// Removes the entry of this hash that `eq` accepts, if it is the first one with the tag;
    /// returns it with the number of remaining entries. Otherwise an error: whether any entry has
    /// the tag.
    #[inline(always)]
    pub(crate) fn take_first(
        &mut self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(T, usize), bool> {
        let (_, lane) = self.find_first(hash, eq)?;
        // SAFETY: `find_first` returned a lane with an entry, and nothing has changed since.
        Ok(unsafe { self.take_filled(lane.0 as usize) })
    }

    /// Removes the entry of a lane; returns it with the number of remaining entries.
    ///
    /// # Safety
    ///
    /// The lane must have an entry.
    #[inline(always)]
    unsafe fn take_filled(&mut self, at: usize) -> (T, usize) {
        let number = self.number(at);
        self.set_tag(at, FREE);
        let mut state = self.state();
        state.len = state.len.saturating_sub(1);
        // SAFETY: the lane had an entry, so its cell is initialised; no lane has its number any
        // more, so it is not read again.
        let entry = unsafe { self.cell(number).read() };
        self.free_cell(number, &mut state);
        self.set_state(state);
        (entry, usize::from(state.len))
    }

    /// Removes all entries, in the order of [`iter`](Self::iter).
    pub(crate) fn drain(&mut self, mut each: impl FnMut(T)) {
        for at in self.filled_lanes() {
            let cell = self.cell(self.number(at));
            self.set_tag(at, FREE);
            // SAFETY: the cell was initialised; no lane has its number any more, so it is not read
            // again.
            each(unsafe { cell.read() });
        }
        self.set_state(BlockState::of(0, self.state().capacity));
    }

    /// The filled lanes as a bit set.
    #[inline]
    fn filled_lanes(&self) -> Lanes {
        let mut words = [0; LANE_WORDS];
        for (word, first) in words.iter_mut().zip((0..Self::LANES).step_by(64)) {
            for from in (first..Self::LANES.min(first + 64)).step_by(WINDOW) {
                // SAFETY: `from` is less than LANES, so at least `WINDOW` initialised bytes follow
                // it: tags and the first numbers.
                let tags = unsafe { self.base.add(from).cast::<[u8; WINDOW]>().as_ref() };
                *word |= u64::from(!simd::bytes_of(tags, FREE) & 0xffff) << (from - first);
            }
        }
        // The bits after the last lane come from tags that belong to no lane, and from numbers.
        words[Self::LANES / 64] &= (1 << (Self::LANES % 64)) - 1;
        Lanes { words, from: 0 }
    }

    /// The filled lanes in order.
    pub(crate) fn filled_lane_indexes(&self) -> impl Iterator<Item = LaneIndex> {
        self.filled_lanes().map(|at| LaneIndex(at as u32))
    }

    /// The entries, in order, whose lanes are filled in `other` as well: [`absorb`](Self::absorb)
    /// does not move these.
    pub(crate) fn colliding(&self, other: &Self) -> impl Iterator<Item = &T> {
        let both = self.filled_lanes().and(&other.filled_lanes(), |own, others| own & others);
        both.filter_map(|at| self.get(LaneIndex(at as u32)))
    }

    /// Lanes between each entry and its home.
    pub(crate) fn distances(&self, hasher: impl Fn(&T) -> u64) -> impl Iterator<Item = usize> {
        self.filled_lane_indexes().filter_map(move |lane| {
            Some((lane.0 as usize).abs_diff(self.home(hasher(self.get(lane)?))))
        })
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.filled_lane_indexes().filter_map(|lane| self.get(lane))
    }

    /// The mutable entries in order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: the iterator holds the exclusive borrow of the block, and `pointers` has each filled cell once.
        self.pointers().map(|mut cell| unsafe { cell.as_mut() })
    }

    /// Pointers to the entries in order. The exclusive owner of the block may turn each into a
    /// `&mut T` once. This function creates no reference to a cell, so it invalidates none.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = NonNull<T>> {
        self.filled_lane_indexes().filter_map(|lane| self.filled(lane.0 as usize))
    }
}

impl<T, const HOMES: usize> Drop for Block<T, HOMES> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            self.drain(drop);
        }
        // SAFETY: allocated in `new` or `set_capacity` with the layout of the same capacity, and freed
        // once: code that copies a block bitwise (`directory`) drops only one of the copies.
        unsafe { alloc::dealloc(self.base.as_ptr(), Self::layout(self.capacity())) };
    }
}

#[cfg(test)]
mod tests;
