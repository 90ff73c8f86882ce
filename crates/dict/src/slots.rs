//! The array under a segment: cells that may be empty, and a tag each.
//!
//! The only unsafe code of the crate. It pays: `Option<(u64, u64)>` takes 24 bytes, a bare cell 16, and
//! the tags that searching needs anyway say which cells are filled.
//!
//! Invariant: **a cell is initialised exactly when its tag is not [`EMPTY`]**. Everything that writes
//! tags or cells stands in this file.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

/// The tag of an empty cell; greater than every tag of a filled one.
pub(crate) const EMPTY: i16 = i16::MAX;

/// Tags looked at in one step of a search.
pub(crate) const WINDOW: usize = 8;

/// Cells with tags, the tags followed by [`WINDOW`] empty ones, so that a window may begin at any cell.
pub(crate) struct Slots<T> {
    tags: Box<[i16]>,
    cells: Box<[MaybeUninit<T>]>,
}

impl<T> Slots<T> {
    /// `count` empty cells.
    pub(crate) fn new(count: usize) -> Self {
        Slots {
            tags: vec![EMPTY; count + WINDOW].into_boxed_slice(),
            cells: Box::new_uninit_slice(count),
        }
    }

    /// Cells, filled or not.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.cells.len()
    }

    /// The tags, with the empty window behind them.
    #[inline]
    pub(crate) fn tags(&self) -> &[i16] {
        &self.tags
    }

    /// The entry of a cell.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let cell = self.cells.get(at)?;
        if self.tags[at] == EMPTY {
            return None;
        }
        // SAFETY: the tag is not EMPTY, so the cell is initialised (the invariant above).
        Some(unsafe { cell.assume_init_ref() })
    }

    /// The entry of a cell, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let cell = self.cells.get_mut(at)?;
        if self.tags[at] == EMPTY {
            return None;
        }
        // SAFETY: the tag is not EMPTY, so the cell is initialised (the invariant above).
        Some(unsafe { cell.assume_init_mut() })
    }

    /// Fills the empty cell `at`.
    ///
    /// # Panics
    /// If there is no such cell, if it is filled, or if `tag` is [`EMPTY`]: errors of this crate.
    #[inline]
    pub(crate) fn put(&mut self, at: usize, tag: i16, entry: T) {
        assert!(tag != EMPTY && self.tags[at] == EMPTY);
        self.cells[at].write(entry);
        self.tags[at] = tag;
    }

    /// Empties a cell.
    #[inline]
    pub(crate) fn take(&mut self, at: usize) -> Option<(i16, T)> {
        let cell = self.cells.get(at)?;
        let tag = self.tags[at];
        if tag == EMPTY {
            return None;
        }
        self.tags[at] = EMPTY;
        // SAFETY: the tag was not EMPTY, so the cell was initialised; it is EMPTY now, so the cell counts
        // as uninitialised from here on and the entry has one owner.
        Some((tag, unsafe { cell.assume_init_read() }))
    }

    /// Moves the cells `at..gap` up by one, into the empty cell `gap`; `at` is empty then.
    ///
    /// # Panics
    /// If `gap` is not an empty cell, or lies below `at`: errors of this crate.
    #[inline]
    pub(crate) fn shift_up(&mut self, at: usize, gap: usize) {
        assert!(at <= gap && gap < self.cells.len() && self.tags[gap] == EMPTY);
        self.tags.copy_within(at..gap, at + 1);
        self.tags[at] = EMPTY;
        let cells = self.cells.as_mut_ptr();
        // SAFETY: `at + (gap - at)` and `at + 1 + (gap - at)` are at most `cells.len()` by the assertion. What
        // `gap` held was uninitialised; each entry moves with its tag, and `at`, whose bits stay behind, counts
        // as uninitialised by its tag.
        unsafe { core::ptr::copy(cells.add(at), cells.add(at + 1), gap - at) };
    }

    /// Moves the cells `at + 1..end` down by one, into the empty cell `at`; `end - 1` is empty then.
    ///
    /// # Panics
    /// If `at` is not an empty cell, or `end` not behind it: errors of this crate.
    #[inline]
    pub(crate) fn shift_down(&mut self, at: usize, end: usize) {
        assert!(at < end && end <= self.cells.len() && self.tags[at] == EMPTY);
        self.tags.copy_within(at + 1..end, at);
        self.tags[end - 1] = EMPTY;
        let cells = self.cells.as_mut_ptr();
        // SAFETY: `at + 1 + (end - 1 - at)` is at most `cells.len()` by the assertion. What `at` held was
        // uninitialised; each entry moves with its tag, and `end - 1` counts as uninitialised by its tag.
        unsafe { core::ptr::copy(cells.add(at + 1), cells.add(at), end - 1 - at) };
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.tags.iter().zip(&self.cells).filter(|(tag, _)| **tag != EMPTY).map(|(_, cell)| {
            // SAFETY: the tag is not EMPTY, so the cell is initialised (the invariant above).
            unsafe { cell.assume_init_ref() }
        })
    }

    /// The entries in order, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.tags.iter().zip(&mut self.cells).filter(|(tag, _)| **tag != EMPTY).map(|(_, cell)| {
            // SAFETY: the tag is not EMPTY, so the cell is initialised (the invariant above).
            unsafe { cell.assume_init_mut() }
        })
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.tags) + size_of_val(&*self.cells)
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for at in 0..self.cells.len() {
                drop(self.take(at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifting_keeps_tags_with_their_cells_and_drops_once() {
        let mut slots: Slots<Box<u32>> = Slots::new(4);
        slots.put(0, 5, Box::new(50));
        slots.put(1, 6, Box::new(60));
        slots.shift_up(0, 2);
        assert_eq!(slots.get(0), None);
        assert_eq!(slots.get(1).map(|b| **b), Some(50));
        assert_eq!(slots.tags()[..4], [EMPTY, 5, 6, EMPTY]);
        slots.shift_down(0, 3);
        assert_eq!(slots.tags()[..4], [5, 6, EMPTY, EMPTY]);
        assert_eq!(slots.take(0), Some((5, Box::new(50))));
        assert_eq!(slots.take(0), None);
        assert_eq!(slots.take(9), None);
        assert_eq!(slots.iter().map(|b| **b).collect::<Vec<_>>(), [60]);
    }
}
