//! One group: fifteen cells with a tag each, and a byte of state.
//!
//! The rule of memory: **a cell is initialised exactly when its tag is not [`FREE`]**.

use core::mem::MaybeUninit;
use core::num::NonZeroU8;

use super::simd::{self, Tags};

/// Cells of a group.
pub(crate) const LANES: usize = 15;

/// The tag of a free cell.
pub(super) const FREE: u8 = 0;

/// The last cell of a group.
pub(super) const LAST: usize = LANES - 1;

/// One group. The tags' last byte is its state.
#[repr(C)]
pub(super) struct Group<T> {
    pub(super) tags: Tags,
    pub(super) cells: [MaybeUninit<T>; LANES],
}

/// Bytes of a group with entries of type `T`.
pub(crate) const fn group_bytes<T>() -> usize {
    size_of::<Group<T>>()
}

/// The tag of an entry: never [`FREE`].
pub(super) type Tag = NonZeroU8;

#[inline(always)]
pub(super) fn tag_of(hash: u64) -> Tag {
    Tag::new(hash as u8).unwrap_or(Tag::MIN)
}

/// The cells of a group with the tag of this hash, a bit each.
#[inline(always)]
pub(super) fn lanes_of(tags: &Tags, hash: u64) -> u32 {
    simd::bytes_of_or_one(tags, hash as u8) & ((1 << LANES) - 1)
}

/// The bit of the state for a tag: one for an eighth of the tags each. It may stand longer than its entries do; none does
/// when nothing spills.
#[inline]
pub(super) fn spill_bit(tag: Tag) -> u8 {
    1 << (tag.get() >> 5)
}

/// Whether a state says that entries with the tag of this hash spilled.
#[inline(always)]
pub(super) fn has_spilled(state: u8, hash: u64) -> bool {
    // The tag has the same upper bits.
    u32::from(state) >> (hash as u8 >> 5) & 1 != 0
}

/// The lanes filled, a bit each.
#[inline]
pub(super) fn filled(tags: &Tags) -> u32 {
    !simd::bytes_of(&tags.0, FREE) & ((1 << LANES) - 1)
}

#[inline]
pub(super) fn len(tags: &Tags) -> usize {
    filled(tags).count_ones() as usize
}

/// Where the state stands among the tags.
pub(super) const STATE: usize = LANES;

/// What a search in one group found.
pub(super) enum Found<'a, T> {
    At(&'a T, usize),
    Nowhere,
    /// Nothing here, but entries of such tags spilled.
    Further,
}

/// The home of a hash, where its search begins.
pub(crate) struct Home<'a, T>(pub(super) &'a Group<T>);

impl<T> Clone for Home<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Home<'_, T> {}

impl<T> Home<'_, T> {
    /// Asks for the first entry that the search for this hash compares, if its line of tags has come.
    #[inline(always)]
    pub(crate) fn prefetch_entry(self, hash: u64) {
        let lanes = lanes_of(&self.0.tags, hash);
        // Without one any address will do: a prefetch of the last cell harms nothing.
        simd::prefetch(
            &raw const self.0.cells[(lanes | 1 << LAST).trailing_zeros() as usize % LANES],
        );
    }
}

impl<T> Group<T> {
    /// The filled cell with this tag that `eq` accepts.
    #[inline(always)]
    pub(super) fn search(&self, hash: u64, eq: &mut impl FnMut(&T) -> bool) -> Found<'_, T> {
        let mut lanes = lanes_of(&self.tags, hash);
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            // SAFETY: `lane` is one of the fifteen, and its tag is one of a hash, which is not FREE, so the cell is
            // initialised.
            let entry = unsafe { self.cells.get_unchecked(lane).assume_init_ref() };
            if eq(entry) {
                return Found::At(entry, lane);
            }
            lanes &= lanes - 1;
        }
        // SAFETY: a byte of `tags`. Volatile, lest the compiler keep a copy of all tags on the stack for it.
        let state = unsafe { (&raw const self.tags.0[STATE]).read_volatile() };
        if has_spilled(state, hash) { Found::Further } else { Found::Nowhere }
    }

    /// Moves an entry from a filled lane to a free one.
    #[inline]
    fn shift(&mut self, from: usize, to: usize) {
        assert!(from < LANES && to < LANES);
        let tags = &mut self.tags.0;
        if from == to || tags[from] == FREE || tags[to] != FREE {
            return;
        }
        tags[to] = tags[from];
        tags[from] = FREE;
        // SAFETY: `from` was filled, so its cell is initialised, and is FREE now; `to` was FREE, so nothing is
        // overwritten, and is filled now.
        self.cells[to].write(unsafe { self.cells[from].assume_init_read() });
    }

    /// Fills a free lane.
    #[inline]
    fn fill(&mut self, lane: usize, tag: Tag, entry: T) {
        assert!(self.tags.0[lane] == FREE && lane < LANES);
        self.cells[lane].write(entry);
        self.tags.0[lane] = tag.get();
    }

    /// Adds an entry at home; there must be room.
    #[inline]
    pub(super) fn push_own(&mut self, tag: Tag, entry: T) {
        self.fill((!filled(&self.tags)).trailing_zeros() as usize, tag, entry);
    }

    /// Adds an entry from before, behind `foreign` others; where there is no room, the entry that has to leave for it.
    pub(super) fn push_foreign(&mut self, foreign: usize, tag: Tag, entry: T) -> Option<(Tag, T)> {
        let len = len(&self.tags);
        if foreign >= LANES {
            return Some((tag, entry));
        }
        let mut leaves = None;
        if len >= LANES {
            leaves = self.pull(foreign, LAST);
            self.shift(foreign, LAST);
        } else {
            self.shift(foreign, len);
        }
        self.fill(foreign, tag, entry);
        leaves
    }

    /// Takes the entry of a lane; others close the gap, of the first `foreign` ones one of those.
    #[inline]
    pub(super) fn pull(&mut self, foreign: usize, lane: usize) -> Option<(Tag, T)> {
        if lane >= LANES {
            return None;
        }
        let tag = Tag::new(self.tags.0[lane])?;
        let mut gap = lane;
        self.tags.0[lane] = FREE;
        // SAFETY: the tag was not FREE, so the cell was initialised; now it is FREE, and nobody reads it again.
        let entry = unsafe { self.cells[lane].assume_init_read() };
        if gap < foreign {
            self.shift(foreign - 1, gap);
            gap = foreign - 1;
        }
        let filled = filled(&self.tags);
        if filled >> gap != 0 {
            self.shift(filled.ilog2() as usize, gap);
        }
        Some((tag, entry))
    }
}
