//! One clustered array: entries in or just behind their homes, and a tag of 8 bits for each.
//!
//! ```text
//! block   cells ──▶ │ cell 0 │ cell 1 │ … │ cell n-1 │
//!         tags  ──▶ │ tag 0 │ tag 1 │ … │ tag n-1 │ closed │
//! ```
//!
//! There are two allocations, so that the tags of all blocks are close together: every search reads
//! them, and they are few enough to stay in near caches, and on few pages.
//!
//! The upper bits of a hash name an entry's home, the cell where searching begins (`hash × homes / 2^64`); the fifth byte
//! from below is its tag, compared sixteen at a time. An entry is in its home or in one of the [`WINDOW`] - 1 cells
//! behind: that is a promise (as in hopscotch hashing), so every search is one comparison of sixteen tags, whether
//! it finds or not. Where an entry comes and its window is full, others make room: one that may be in the next free
//! cell moves there, and another to its place, until the room is in the window. Removal frees the cell, and that is
//! all: there are no tombstones. If no room can be made, the caller has to see to it: a larger array, or a place apart.
//!
//! The last homes have [`TAIL`] cells behind them, not a whole window: the missing cells are marked
//! as closed.
//!
//! If two entries with the same tag are within one search window, the one with the earlier home is
//! moved in front of the other's home where possible ([`Block::part_all`]): then the first entry
//! with the tag is the wanted one, except for one search in some five hundred. Each further
//! comparison is a mispredicted branch, which costs as much as several searches.
//!
//! For memory one rule counts: **a cell is initialised exactly when its tag is neither [`FREE`] nor [`CLOSED`]**, and
//! the tags behind the last cell are closed for ever. Windows are what makes searches right; no unsafe code leans on them.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

mod room;

/// Cells in which an entry may stand, from its home on: as many tags as are compared at once.
const WINDOW: usize = 16;

/// Cells behind the last home.
const TAIL: usize = 8;

/// Tags that no cell has: the rest of the last home's window.
const PAD: usize = WINDOW - 1 - TAIL;

/// The tag of a free cell.
const FREE: u8 = 0;

/// The tag where there is no cell.
const CLOSED: u8 = 1;

/// What hashes' last bytes are raised by to be tags.
const RAISE: u8 = 2;

/// Bytes of the cells of a block with this many homes.
pub(crate) const fn cells_bytes<T>(homes: usize) -> usize {
    (homes + TAIL) * cell_bytes::<T>()
}

/// Homes of the largest block whose cells take at most `bytes` bytes; at least one.
pub(crate) const fn homes_in<T>(bytes: usize) -> usize {
    let homes = (bytes / cell_bytes::<T>()).saturating_sub(TAIL);
    if homes == 0 { 1 } else { homes }
}

/// Of a cell; of its tag where the cell itself takes no room.
const fn cell_bytes<T>() -> usize {
    if size_of::<T>() == 0 { 1 } else { size_of::<T>() }
}

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

/// A clustered array, and its range of hashes.
pub(crate) struct Block<T> {
    /// The first tag.
    tags: NonNull<u8>,
    /// The first cell, where the allocation begins.
    cells: NonNull<T>,
    homes: usize,
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

/// The cell of an entry in its block, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot(u32);

/// A search begun.
pub(crate) struct Begun<'b, T> {
    window: &'b [u8; WINDOW],
    /// The cell that the first of these tags is of.
    home: NonNull<T>,
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
        let lanes = simd::bytes_of_hash::<RAISE>(self.window, hash);
        let cell = self.home.as_ptr().wrapping_add(nth(0, lanes));
        // Without one any address will do: a prefetch harms nothing.
        simd::prefetch(cell);
        // SAFETY: as far behind the home as the tag of a hash is behind that of the home: of the cell with that tag, which
        // is initialised. The block is borrowed for as long, so nothing changes.
        (lanes != 0).then(|| unsafe { &*cell })
    }
}

impl<T> Block<T> {
    /// An empty block with this many homes.
    ///
    /// # Panics
    /// With no home or more than 2^31 (errors of this crate), or beyond the address space.
    pub(crate) fn new(depth: u8, homes: usize) -> Self {
        assert!(homes > 0 && homes <= 1 << 31 && depth < 64);
        let (cells, tags) = Self::layouts(homes);
        let cells = if cells.size() == 0 { NonNull::dangling() } else { allocate(cells).cast() };
        let tags = allocate(tags);
        // SAFETY: as many as the layout is of: one for each cell and PAD more.
        unsafe {
            tags.write_bytes(FREE, homes + TAIL);
            tags.add(homes + TAIL).write_bytes(CLOSED, PAD);
        }
        Block { tags, cells, homes, depth, has_apart: false, owned: PhantomData }
    }

    /// The layouts of both allocations for this many homes: the cells, and the tags.
    fn layouts(homes: usize) -> (Layout, Layout) {
        let cells = Layout::array::<T>(homes + TAIL);
        let tags = Layout::array::<u8>(homes + TAIL + PAD);
        match (cells, tags) {
            (Ok(cells), Ok(tags)) => (cells, tags),
            _ => panic!("block of {homes} homes"),
        }
    }

    /// Homes.
    #[inline]
    pub(crate) fn homes(&self) -> usize {
        self.homes
    }

    /// Cells, filled or not.
    #[inline]
    pub(crate) fn cells(&self) -> usize {
        self.homes() + TAIL
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let (cells, tags) = Self::layouts(self.homes());
        cells.size() + tags.size()
    }

    /// The cell where searching for a hash begins; less than `homes`.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        // The upper half of a product of 128 bits is one instruction.
        ((u128::from(hash) * self.homes as u128) >> 64) as usize
    }

    /// The tags of the cells, without those behind.
    #[inline]
    fn tags(&self) -> &[u8] {
        // SAFETY: written by `new`, one for each cell; writers need `&mut self`.
        unsafe { core::slice::from_raw_parts(self.tags.as_ptr(), self.cells()) }
    }

    #[inline]
    fn set_tag(&mut self, at: usize, tag: u8) {
        assert!(at < self.cells());
        // SAFETY: within the tags of the cells; `&mut self` makes the access exclusive.
        unsafe { self.tags.add(at).write(tag) };
    }

    /// The tags of the window of a home.
    #[inline(always)]
    fn window(&self, home: usize) -> &[u8; WINDOW] {
        debug_assert!(home < self.homes());
        // SAFETY: callers give what `home` gives, which is less than `homes`: there are TAIL + PAD more tags.
        unsafe { self.tags.add(home).cast().as_ref() }
    }

    /// The cell of a number.
    #[inline(always)]
    fn cell(&self, at: usize) -> NonNull<T> {
        debug_assert!(at < self.cells());
        // SAFETY: callers give numbers of cells, which are within the allocation.
        unsafe { self.cells.add(at) }
    }

    /// The cells of a window, from its home on, with the tag of this hash: a bit each.
    #[inline(always)]
    fn lanes(&self, home: usize, hash: u64) -> u32 {
        simd::bytes_of_hash::<RAISE>(self.window(home), hash)
    }

    /// Begins a search for this hash, in steps: asks for the tags that the next one will compare.
    #[inline(always)]
    pub(crate) fn begin(&self, hash: u64) -> Begun<'_, T> {
        let home = self.home(hash);
        let window = self.window(home);
        // Every fourth window continues in the next line.
        simd::prefetch(window);
        simd::prefetch(&raw const window[WINDOW - 1]);
        Begun { window, home: self.cell(home) }
    }

    /// The entry of this hash that `eq` accepts, if it is the first one with the tag; else whether there are others with
    /// the tag. Nearly always it is, or there is none.
    #[inline(always)]
    pub(crate) fn find_first(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(&T, Spot), bool> {
        let home = self.home(hash);
        let lanes = self.lanes(home, hash);
        if lanes == 0 {
            return Err(false);
        }
        let at = nth(home, lanes);
        // SAFETY: the tag of `at` is one of a hash, neither FREE nor CLOSED. So it is that of a cell, and the cell is
        // initialised.
        let entry = unsafe { self.cell(at).as_ref() };
        if eq(entry) {
            return Ok((entry, Spot(at as u32)));
        }
        Err(lanes & (lanes - 1) != 0)
    }

    /// The entry of this hash that `eq` accepts.
    pub(crate) fn find(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Option<(&T, Spot)> {
        let home = self.home(hash);
        let mut lanes = self.lanes(home, hash);
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

    /// Whether this is a cell with an entry.
    #[inline]
    fn is_filled(&self, at: usize) -> bool {
        self.tags().get(at).is_some_and(|tag| *tag >= RAISE)
    }

    /// The entry of a cell.
    #[inline]
    pub(crate) fn get(&self, spot: Spot) -> Option<&T> {
        let at = spot.0 as usize;
        // SAFETY: the cell is filled, so initialised.
        self.is_filled(at).then(|| unsafe { self.cell(at).as_ref() })
    }

    /// The entry of a cell, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        let at = spot.0 as usize;
        // SAFETY: the cell is filled, so initialised; `&mut self` makes the access exclusive.
        self.is_filled(at).then(|| unsafe { self.cell(at).as_mut() })
    }

    /// Entries. Counted.
    pub(crate) fn len(&self) -> usize {
        let tags = self.tags();
        let (vectors, rest) = tags.as_chunks::<WINDOW>();
        let free: u32 = vectors.iter().map(|tags| simd::bytes_of(tags, FREE).count_ones()).sum();
        tags.len() - free as usize - rest.iter().filter(|tag| **tag == FREE).count()
    }

    /// Free cells of a hash's window, a bit each from its home on.
    #[inline]
    fn free_lanes(&self, hash: u64) -> u32 {
        simd::bytes_of(self.window(self.home(hash)), FREE)
    }

    /// Whether an entry of this hash could be added without others moving.
    pub(crate) fn has_room(&self, hash: u64) -> bool {
        self.free_lanes(hash) != 0
    }

    /// Whether an entry of this hash would have to stand well behind its home.
    #[inline]
    pub(crate) fn is_crowded(&self, hash: u64) -> bool {
        self.free_lanes(hash).trailing_zeros() as usize >= WINDOW / 2
    }

    /// Whether few cells are filled where entries of this hash stand.
    #[inline]
    pub(crate) fn is_sparse(&self, hash: u64) -> bool {
        self.free_lanes(hash).count_ones() as usize >= WINDOW / 2
    }

    /// Exchanges the entries of two filled cells.
    fn exchange(&mut self, one: usize, other: usize) {
        if one == other || !self.is_filled(one) || !self.is_filled(other) {
            return;
        }
        let (tag, other_tag) = (self.tags()[one], self.tags()[other]);
        self.set_tag(one, other_tag);
        self.set_tag(other, tag);
        // SAFETY: two cells, not the same, and both initialised, before as after.
        unsafe {
            core::ptr::swap_nonoverlapping(self.cell(one).as_ptr(), self.cell(other).as_ptr(), 1);
        };
    }

    /// Fills a free cell.
    #[inline]
    fn put(&mut self, at: usize, hash: u64, entry: T) {
        self.set_tag(at, tag_of(hash));
        // SAFETY: `set_tag` checked that this is a cell. Callers pass free ones; the entry of
        // another would be overwritten without being dropped.
        unsafe { self.cell(at).write(entry) };
    }

    /// Moves an entry from a filled cell to a free one.
    fn shift(&mut self, from: usize, to: usize) {
        if !self.is_filled(from) || self.tags()[to] != FREE {
            return;
        }
        self.set_tag(to, self.tags()[from]);
        self.set_tag(from, FREE);
        // SAFETY: both are cells. `from` was filled, so it is initialised, and is free now; `to`
        // was free, so nothing is overwritten, and is filled now. They differ, as only one was
        // filled.
        unsafe { self.cell(from).copy_to_nonoverlapping(self.cell(to), 1) };
    }

    /// Takes an entry out.
    #[inline]
    pub(crate) fn take(&mut self, spot: Spot) -> Option<T> {
        let at = spot.0 as usize;
        if !self.is_filled(at) {
            return None;
        }
        self.set_tag(at, FREE);
        // SAFETY: the cell was filled, so it is initialised; now it is free and not read again.
        Some(unsafe { self.cell(at).read() })
    }

    /// Takes all entries out, each with the next of `hashes`, in order; as many as there are hashes.
    pub(crate) fn drain(&mut self, hashes: &[u64], mut each: impl FnMut(u64, T)) {
        let mut hashes = hashes.iter();
        for from in (0..self.cells()).step_by(WINDOW) {
            let mut filled = self.filled_lanes(from);
            while filled != 0 {
                let at = nth(from, filled);
                filled &= filled - 1;
                let Some(hash) = hashes.next() else { return };
                self.take(Spot(at as u32)).into_iter().for_each(|entry| each(*hash, entry));
            }
        }
    }

    /// The filled ones of sixteen cells, a bit each.
    #[inline]
    fn filled_lanes(&self, from: usize) -> u32 {
        let tags = self.tags().get(from..).unwrap_or_default();
        match tags.first_chunk::<WINDOW>() {
            Some(tags) => !simd::bytes_of(tags, FREE) & 0xffff,
            None => tags.iter().zip(0..).map(|(tag, lane)| u32::from(*tag != FREE) << lane).sum(),
        }
    }

    /// The filled cells in order.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        let (mut from, mut filled) = (0, self.filled_lanes(0));
        core::iter::from_fn(move || {
            while filled == 0 {
                from += WINDOW;
                if from >= self.cells() {
                    return None;
                }
                filled = self.filled_lanes(from);
            }
            let at = nth(from, filled);
            filled &= filled - 1;
            Some(Spot(at as u32))
        })
    }

    /// Cells between each entry and its home.
    pub(crate) fn distances(&self, hasher: impl Fn(&T) -> u64) -> impl Iterator<Item = usize> {
        self.spots().filter_map(move |spot| {
            Some((spot.0 as usize).abs_diff(self.home(hasher(self.get(spot)?))))
        })
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.spots().filter_map(|spot| self.get(spot))
    }

    /// Pointers to the entries in order. The exclusive owner of the block may turn each into a
    /// `&mut T` once. No reference to a cell is created on the way, so none is invalidated.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = NonNull<T>> {
        self.spots().map(|spot| self.cell(spot.0 as usize))
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for at in 0..self.cells() as u32 {
                drop(self.take(Spot(at)));
            }
        }
        let (cells, tags) = Self::layouts(self.homes());
        // SAFETY: allocated in `new` with the layouts of the same number of homes, and freed once:
        // code that copies a block bitwise (`directory`) drops only one of the copies. Zero-sized
        // cells were not allocated.
        unsafe {
            if cells.size() != 0 {
                alloc::dealloc(self.cells.as_ptr().cast(), cells);
            }
            alloc::dealloc(self.tags.as_ptr(), tags);
        }
    }
}

#[cfg(test)]
mod tests;
