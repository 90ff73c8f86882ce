//! One segment: entries in an array without order, and a clustered index of them.
//!
//! ```text
//! block ──▶ │ tag 0 │ tag 1 │ … │ tag n-1 │ closed │               one for each lane
//!           │ number 0 │ number 1 │ … │ number n-1 │ notes │       of the cell of each lane
//!           │ cell 0 │ cell 1 │ … │ cell room-1 │
//! ```
//!
//! The uppermost bits of a hash name an entry's home, the lane of the index where searching begins (a byte for 256 homes); the fifth byte from
//! below is its tag, compared sixteen at a time. An entry is in its home or in one of the [`WINDOW`] - 1 lanes behind: that
//! is a promise (as in hopscotch hashing), so every search is one comparison of sixteen tags, whether it finds or not. A
//! lane has a tag and the number of a cell, a byte each. Where an entry comes and its window is full, others make room: one
//! that may be in the next free lane moves there, and another to its place, until the room is in the window. Removal
//! frees the lane and the cell, and that is all: there are no tombstones. If no room can be made, the caller has to see to it.
//!
//! The lanes are more than the entries, so that an entry is nearly always in or just behind its home: then the first tag
//! that matches is nearly always the wanted one. Each further comparison is a mispredicted branch, which costs as much as
//! several searches. The cells, which are larger, are hardly more than the entries: they are filled as entries come, and
//! their array grows without a look at any of them.
//!
//! The last homes have [`TAIL`] lanes behind them, not a whole window: the missing tags are marked as closed.
//!
//! For memory one rule counts: **a cell is initialised exactly when a lane names it whose tag is neither [`FREE`] nor
//! [`CLOSED`], and no two such lanes name the same one**. The first byte of a cell that was filled and is not any more holds
//! the number of the next such cell. Windows are what makes searches right; no unsafe code leans on them.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

mod fill;
mod room;

pub(crate) use self::fill::Filling;

/// Lanes in which an entry may stand, from its home on: as many tags as are compared at once.
const WINDOW: usize = 16;

/// Lanes behind the last home.
const TAIL: usize = 8;

/// Tags that no lane has: the rest of the last home's window.
const PAD: usize = WINDOW - 1 - TAIL;

/// The tag of a free lane.
const FREE: u8 = 0;

/// The tag where there is no lane.
const CLOSED: u8 = 1;

/// What hashes' tag bytes are raised by to be tags.
const RAISE: u8 = 2;

/// The end of the chain of free cells: no cell has this number.
const NO_CELL: u8 = u8::MAX;

/// Words of a bit for each lane, for the greatest number of homes.
const LANE_WORDS: usize = (256_usize + TAIL).div_ceil(64);

/// What a block notes behind its numbers.
#[derive(Clone, Copy)]
#[repr(C, align(4))]
struct BlockState {
    /// Entries.
    len: u8,
    /// Cells that were ever filled.
    used: u8,
    /// The first of those that are free again.
    free: u8,
    /// Cells.
    room: u8,
}

impl BlockState {
    /// Of a block with this many cells, the first of which are filled.
    const fn of(len: u8, room: u8) -> Self {
        BlockState { len, used: len, free: NO_CELL, room }
    }
}

/// What a block notes for the directory, behind its notes of cells.
#[derive(Clone, Copy)]
#[repr(C, align(4))]
struct Shape {
    /// Hash bits that all entries share.
    depth: u8,
    /// Whether entries that belong here found no room and stand apart: 1 if so. Kept for the caller.
    has_apart: u8,
}

/// Bytes of both.
const NOTES_BYTES: usize = size_of::<BlockState>() + size_of::<Shape>();

const _: () = assert!(NOTES_BYTES == 8, "the cells behind are aligned");

/// The tag of an entry.
#[inline]
fn tag_of(hash: u64) -> u8 {
    simd::byte_of_hash(hash).saturating_add(RAISE)
}

/// The first of these lanes from `home` on.
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

/// A segment with this many homes, a power of two up to 256. A pointer, so that the directory's places are small.
pub(crate) struct Block<T, const HOMES: usize> {
    /// The first tag, where the allocation begins.
    base: NonNull<u8>,
    owned: PhantomData<T>,
}

// SAFETY: a block owns its entries as a `Vec` does; it shares nothing.
unsafe impl<T: Send, const HOMES: usize> Send for Block<T, HOMES> {}
// SAFETY: as above; through `&Block` only `&T` can be had.
unsafe impl<T: Sync, const HOMES: usize> Sync for Block<T, HOMES> {}

/// The lane of an entry in its block, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot(u32);

/// A search begun.
pub(crate) struct BegunSearch<'b, T> {
    window: &'b [u8; WINDOW],
    /// The number of the cell that the first of these tags is of.
    number: NonNull<u8>,
    /// The first cell.
    cells: NonNull<T>,
}

impl<T> Clone for BegunSearch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BegunSearch<'_, T> {}

impl<'b, T> BegunSearch<'b, T> {
    /// The first entry with the tag of this hash, whose memory is asked for.
    #[inline(always)]
    pub(crate) fn first(self, hash: u64) -> Option<&'b T> {
        let lanes = simd::bytes_of_hash::<RAISE>(self.window, hash);
        if lanes == 0 {
            return None;
        }
        // SAFETY: as far behind the home as the tag of a hash is behind that of the home: of the lane with that tag. The block
        // is borrowed for as long, so nothing changes.
        let cell = unsafe {
            let number = self.number.add(nth(0, lanes)).read();
            self.cells.add(usize::from(number))
        };
        simd::prefetch(cell.as_ptr());
        // SAFETY: a lane with the tag of a hash names the cell, so it is initialised.
        Some(unsafe { cell.as_ref() })
    }
}

/// Some lanes, a bit each. As few words as possible: where one ends, a processor guesses wrong.
struct Lanes {
    words: [u64; LANE_WORDS],
    /// The word that `next` looks at.
    from: usize,
}

impl Lanes {
    /// These lanes and those of `other`, combined.
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

    /// Where the numbers of cells begin.
    const NUMBERS: usize = Self::LANES + PAD;

    /// Where the notes are.
    const NOTES: usize = (Self::NUMBERS + Self::LANES).next_multiple_of(NOTES_BYTES);

    /// Bytes of the index, behind which the cells begin.
    pub(crate) const INDEX: usize = Self::NOTES + NOTES_BYTES;

    /// Entries of a block at most, whose cells have numbers of one byte.
    pub(crate) const ENTRIES_MAX: usize =
        if Self::LANES < NO_CELL as usize { Self::LANES } else { NO_CELL as usize };

    /// An empty block with this many cells.
    ///
    /// # Panics
    /// With no cell or more than [`ENTRIES_MAX`](Self::ENTRIES_MAX) (errors of this crate), or beyond the address space.
    pub(crate) fn new(depth: u8, room: usize) -> Self {
        assert!(room > 0 && room <= Self::ENTRIES_MAX && depth < 64);
        let base = allocate(Self::layout(room));
        // SAFETY: within the allocation, which begins with the tags: one for each lane and PAD more. Then come the numbers,
        // one for each lane, and the notes.
        unsafe {
            base.write_bytes(FREE, Self::NUMBERS + Self::LANES);
            base.add(Self::LANES).write_bytes(CLOSED, PAD);
        }
        let mut block = Block { base, owned: PhantomData };
        block.set_notes(BlockState::of(0, room as u8));
        block.set_shape(Shape { depth, has_apart: 0 });
        block
    }

    /// Where the cells begin.
    const CELLS: usize = Self::INDEX.next_multiple_of(align_of::<T>());

    /// The index, and this many cells behind it.
    fn layout(room: usize) -> Layout {
        let align = align_of::<T>().max(align_of::<BlockState>());
        let size =
            size_of::<T>().checked_mul(room).and_then(|cells| cells.checked_add(Self::CELLS));
        match size.map(|size| Layout::from_size_align(size, align)) {
            Some(Ok(layout)) => layout,
            _ => panic!("block of {room} cells"),
        }
    }

    /// Cells, filled or not.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        usize::from(self.notes().room)
    }

    /// Entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.notes().len)
    }

    /// Hash bits that all entries share.
    #[inline]
    pub(crate) fn depth(&self) -> u8 {
        self.shape().depth
    }

    /// Notes that entries share this many.
    pub(crate) fn set_depth(&mut self, depth: u8) {
        self.set_shape(Shape { depth, ..self.shape() });
    }

    /// Whether entries that belong here found no room and stand apart.
    #[inline]
    pub(crate) fn has_apart(&self) -> bool {
        self.shape().has_apart != 0
    }

    /// Notes whether there are such entries.
    pub(crate) fn set_apart(&mut self, has_apart: bool) {
        self.set_shape(Shape { has_apart: u8::from(has_apart), ..self.shape() });
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        Self::layout(self.room()).size()
    }

    #[inline(always)]
    fn notes(&self) -> BlockState {
        // SAFETY: within the index, written by `new`, and as aligned as notes are: the allocation is.
        unsafe { self.base.add(Self::NOTES).cast().read() }
    }

    #[inline(always)]
    fn set_notes(&mut self, notes: BlockState) {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { self.base.add(Self::NOTES).cast().write(notes) };
    }

    #[inline(always)]
    fn shape(&self) -> Shape {
        // SAFETY: within the index, behind the notes of cells, written by `new`, and as aligned as those.
        unsafe { self.base.add(Self::NOTES + size_of::<BlockState>()).cast().read() }
    }

    fn set_shape(&mut self, shape: Shape) {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { self.base.add(Self::NOTES + size_of::<BlockState>()).cast().write(shape) };
    }

    /// The lane where searching for a hash begins; less than `HOMES`.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - HOMES.ilog2())) as usize
    }

    /// The tags of the lanes, without those behind.
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
        // SAFETY: callers give lanes, which have a number each, written by `new`.
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
        // SAFETY: callers give what `home` gives, which is less than `HOMES`: there are TAIL + PAD more tags.
        unsafe { self.base.add(home).cast().as_ref() }
    }

    /// The first cell.
    #[inline(always)]
    fn first_cell(&self) -> NonNull<T> {
        // SAFETY: the cells are behind the index, in the same allocation.
        unsafe { self.base.add(Self::CELLS).cast() }
    }

    /// The cell of a number that a lane with a tag has.
    #[inline(always)]
    fn cell(&self, number: u8) -> NonNull<T> {
        debug_assert!(usize::from(number) < self.room());
        // SAFETY: callers give numbers of cells, which are within the allocation.
        unsafe { self.first_cell().add(usize::from(number)) }
    }

    /// Begins a search for this hash, in steps: asks for the tags that the next one will compare.
    #[inline(always)]
    pub(crate) fn begin(&self, hash: u64) -> BegunSearch<'_, T> {
        let home = self.home(hash);
        let window = self.window(home);
        // SAFETY: a lane, as `home` is less than `HOMES`.
        let number = unsafe { self.base.add(Self::NUMBERS + home) };
        // Every fourth window continues in the next line.
        simd::prefetch(window);
        simd::prefetch(&raw const window[WINDOW - 1]);
        simd::prefetch(number.as_ptr());
        BegunSearch { window, number, cells: self.first_cell() }
    }

    /// The entry of this hash that `eq` accepts, if it is the first one with the tag; else whether one has the tag. Nearly
    /// always it is, or none has.
    #[inline(always)]
    pub(crate) fn find_first(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(&T, Spot), bool> {
        let home = self.home(hash);
        // SAFETY: a lane, as `home` is less than `HOMES`.
        simd::prefetch(unsafe { self.base.add(Self::NUMBERS + home) }.as_ptr());
        let lanes = simd::bytes_of_hash::<RAISE>(self.window(home), hash);
        if lanes == 0 {
            return Err(false);
        }
        let at = nth(home, lanes);
        // SAFETY: the tag of `at` is one of a hash, neither FREE nor CLOSED. So it is that of a lane, and the cell that this
        // names is initialised.
        let entry = unsafe { self.cell(self.number(at)).as_ref() };
        if eq(entry) { Ok((entry, Spot(at as u32))) } else { Err(true) }
    }

    /// The entry of this hash that `eq` accepts.
    pub(crate) fn find(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(&T, Spot)> {
        let home = self.home(hash);
        let mut lanes = simd::bytes_of_hash::<RAISE>(self.window(home), hash);
        while lanes != 0 {
            let spot = Spot(nth(home, lanes) as u32);
            let entry = self.get(spot)?;
            if eq(entry) {
                return Some((entry, spot));
            }
            lanes &= lanes - 1;
        }
        None
    }

    /// The cell of a lane's entry; none if it has no entry, or is no lane.
    #[inline]
    fn filled(&self, at: usize) -> Option<NonNull<T>> {
        let is_filled = self.tags().get(at).is_some_and(|tag| *tag >= RAISE);
        is_filled.then(|| self.cell(self.number(at)))
    }

    /// The entry of a lane.
    #[inline]
    pub(crate) fn get(&self, spot: Spot) -> Option<&T> {
        // SAFETY: a lane with a tag names the cell, so it is initialised.
        self.filled(spot.0 as usize).map(|cell| unsafe { cell.as_ref() })
    }

    /// The entry of a lane, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        self.filled(spot.0 as usize).map(|mut cell| unsafe { cell.as_mut() })
    }

    /// Free lanes of a hash's window, a bit each from its home on.
    #[inline]
    fn free_lanes(&self, hash: u64) -> u32 {
        simd::bytes_of(self.window(self.home(hash)), FREE)
    }

    /// Takes an entry out, and says how many are left.
    #[inline]
    pub(crate) fn take(&mut self, spot: Spot) -> Option<(T, usize)> {
        let at = spot.0 as usize;
        // SAFETY: the lane has a tag.
        self.filled(at).map(|_| unsafe { self.take_filled(at) })
    }

    /// Takes the entry of this hash that `eq` accepts out, if it is the first one with the tag, and says how many are left;
    /// else whether an entry has the tag.
    #[inline(always)]
    pub(crate) fn take_first(
        &mut self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(T, usize), bool> {
        let (_, spot) = self.find_first(hash, eq)?;
        // SAFETY: `find_first` gives a lane with an entry, and nothing has changed since.
        Ok(unsafe { self.take_filled(spot.0 as usize) })
    }

    /// Takes the entry of a lane out, and says how many are left.
    ///
    /// # Safety
    ///
    /// The lane has an entry.
    #[inline(always)]
    unsafe fn take_filled(&mut self, at: usize) -> (T, usize) {
        let number = self.number(at);
        self.set_tag(at, FREE);
        let mut notes = self.notes();
        notes.len = notes.len.saturating_sub(1);
        // SAFETY: the lane had an entry, so its cell is initialised; no lane names it any more, so it is not read again.
        let entry = unsafe { self.cell(number).read() };
        self.free_cell(number, &mut notes);
        self.set_notes(notes);
        (entry, usize::from(notes.len))
    }

    /// Takes all entries out, in the order of [`iter`](Self::iter).
    pub(crate) fn drain(&mut self, mut each: impl FnMut(T)) {
        for at in self.filled_lanes() {
            let cell = self.cell(self.number(at));
            self.set_tag(at, FREE);
            // SAFETY: the cell was initialised; no lane names it any more, so it is not read again.
            each(unsafe { cell.read() });
        }
        self.set_notes(BlockState::of(0, self.notes().room));
    }

    /// The filled lanes, a bit each.
    #[inline]
    fn filled_lanes(&self) -> Lanes {
        let mut words = [0; LANE_WORDS];
        for (word, first) in words.iter_mut().zip((0..Self::LANES).step_by(64)) {
            for from in (first..Self::LANES.min(first + 64)).step_by(WINDOW) {
                // SAFETY: `from` is less than LANES, so there are at least as many bytes behind it, all initialised: tags and
                // the first numbers.
                let tags = unsafe { self.base.add(from).cast::<[u8; WINDOW]>().as_ref() };
                *word |= u64::from(!simd::bytes_of(tags, FREE) & 0xffff) << (from - first);
            }
        }
        // The bits behind the last lane are of tags that no lane has, and of numbers.
        words[Self::LANES / 64] &= (1 << (Self::LANES % 64)) - 1;
        Lanes { words, from: 0 }
    }

    /// The filled lanes in order.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        self.filled_lanes().map(|at| Spot(at as u32))
    }

    /// The entries in order in whose lanes `other` has entries, too: those that [`absorb`](Self::absorb) leaves to the caller.
    pub(crate) fn meeting(&self, other: &Self) -> impl Iterator<Item = &T> {
        let both = self.filled_lanes().and(&other.filled_lanes(), |own, others| own & others);
        both.filter_map(|at| self.get(Spot(at as u32)))
    }

    /// Lanes between each entry and its home.
    pub(crate) fn distances(&self, hasher: impl Fn(&T) -> u64) -> impl Iterator<Item = usize> {
        self.spots().filter_map(move |spot| {
            Some((spot.0 as usize).abs_diff(self.home(hasher(self.get(spot)?))))
        })
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.spots().filter_map(|spot| self.get(spot))
    }

    /// The entries in order, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: the iterator holds the exclusive borrow of the block, and `pointers` has each filled cell once.
        self.pointers().map(|mut cell| unsafe { cell.as_mut() })
    }

    /// Pointers to the entries in order. The exclusive owner of the block may turn each into a
    /// `&mut T` once. No reference to a cell is created on the way, so none is invalidated.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = NonNull<T>> {
        self.spots().filter_map(|spot| self.filled(spot.0 as usize))
    }
}

impl<T, const HOMES: usize> Drop for Block<T, HOMES> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            self.drain(drop);
        }
        // SAFETY: allocated in `new` or `set_room` with the layout of the same room, and freed once: code that copies
        // a block bitwise (`directory`) drops only one of the copies.
        unsafe { alloc::dealloc(self.base.as_ptr(), Self::layout(self.room())) };
    }
}

#[cfg(test)]
mod tests;
