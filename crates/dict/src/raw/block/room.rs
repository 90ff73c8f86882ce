//! Insertion: an entry goes into the window of its home, where others make room for it, and in
//! front of entries with the same tag where possible.
//!
//! All of it uses the block's own moves, each of which leaves every cell either free or
//! initialised.
#![forbid(unsafe_code)]

use core::cmp::Ordering;

use super::{Block, FREE, RAISE, Spot, WINDOW, nth};
use crate::raw::simd;

impl<T> Block<T> {
    /// Adds an entry; returns it if no room can be made for it.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        let at = self.fill(hash, entry, &hasher)?;
        // Others with the tag in front of it and behind it, where one search may come upon both.
        let front = at.saturating_sub(WINDOW - 1);
        let in_front = self.lanes_like(at, front) & ((1 << (at - front)) - 1);
        let behind = self.lanes_like(at, at) & !1;
        if in_front | behind != 0 {
            self.part_from(at, front, in_front, &hasher);
            self.part_from(at, at, behind, &hasher);
        }
        Ok(())
    }

    /// Adds an entry in the first free cell of its window; its cell.
    #[inline]
    fn fill(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) -> Result<usize, T> {
        let (home, free) = (self.home(hash), self.free_lanes(hash));
        let at = if free != 0 {
            nth(home, free)
        } else {
            let Some(at) = self.make_room(home, hasher) else { return Err(entry) };
            at
        };
        self.put(at, hash, entry);
        Ok(at)
    }

    /// [`insert`](Self::insert) where entries come about in the order of their homes, without parting: in the cell `next` or
    /// behind it if that will do. `next` is then the one after.
    #[inline]
    pub(crate) fn append(
        &mut self,
        next: &mut usize,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        // Only single bytes are read after they were written: reading sixteen would stall on the
        // writes.
        let home = self.home(hash);
        let at = home.max(*next);
        if at - home < WINDOW - 3 && self.tags().get(at) == Some(&FREE) {
            *next = at + 1;
            self.put(at, hash, entry);
            return Ok(());
        }
        self.fill(hash, entry, hasher).map(|_| ())
    }

    /// Frees a cell in the window of a home, which has none.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, home: usize, hasher: impl Fn(&T) -> u64) -> Option<usize> {
        let home_of =
            |block: &Self, at: usize| Some(block.home(hasher(block.get(Spot(at as u32))?)));
        let tags = self.tags();
        // From behind: each move brings the free cell nearer, since the moved entry was in front of
        // it.
        if let Some(far) = tags.iter().skip(home).position(|tag| *tag == FREE) {
            let mut free = home + far;
            while free - home >= WINDOW {
                let mut movable = free + 1 - WINDOW..free;
                let Some(from) =
                    movable.find(|at| home_of(self, *at).is_some_and(|h| h + WINDOW > free))
                else {
                    break;
                };
                self.shift(from, free);
                free = from;
            }
            if free - home < WINDOW {
                return Some(free);
            }
        }
        // From the front: the moved entry was behind the free cell, and not behind the window.
        let mut free = self.tags()[..home].iter().rposition(|tag| *tag == FREE)?;
        while free < home {
            let behind = free + 1..(free + WINDOW).min(self.cells());
            let from = behind.rev().find(|at| home_of(self, *at).is_some_and(|h| h <= free))?;
            self.shift(from, free);
            free = from;
        }
        Some(free)
    }

    /// The cells from `from` on with the tag of the cell `at`, a bit each; none where no whole window follows, and none
    /// for a free cell.
    #[inline]
    fn lanes_like(&self, at: usize, from: usize) -> u32 {
        if from >= self.homes() {
            return 0;
        }
        let tag = self.tags()[at];
        // Not branched to: which cells are free is hard to foresee.
        simd::bytes_of(self.window(from), tag) * u32::from(tag >= RAISE)
    }

    /// Parts the entries that a search for one of them may find the other first, as far as that can be done: nearly always
    /// then the first entry with the tag is the one. For blocks that were filled in order.
    pub(crate) fn part_all(&mut self, hasher: impl Fn(&T) -> u64) {
        for at in 0..self.homes() {
            let behind = self.lanes_like(at, at) & !1;
            if behind != 0 {
                self.part_from(at, at, behind, &hasher);
            }
        }
    }

    /// Parts the entry of a cell from those of these lanes, from the cell `from` on.
    #[cold]
    #[inline(never)]
    fn part_from(&mut self, at: usize, from: usize, mut lanes: u32, hasher: impl Fn(&T) -> u64) {
        while lanes != 0 {
            self.part(at, nth(from, lanes), &hasher);
            lanes &= lanes - 1;
        }
    }

    /// If two entries have the same tag, moves the one with the earlier home in front of the
    /// other's home, so that a search from there does not reach it.
    fn part(&mut self, one: usize, other: usize, hasher: impl Fn(&T) -> u64) {
        let home_of =
            |block: &Self, at: usize| Some(block.home(hasher(block.get(Spot(at as u32))?)));
        let (Some(home), Some(other_home)) = (home_of(self, one), home_of(self, other)) else {
            return;
        };
        let (from, first, end) = match home.cmp(&other_home) {
            Ordering::Less => (one, home, other_home),
            Ordering::Greater => (other, other_home, home),
            // One of the two comes second in any case.
            Ordering::Equal => return,
        };
        if from < end {
            return;
        }
        for to in (first..end).rev() {
            if self.tags()[to] == FREE {
                return self.shift(from, to);
            }
            let may_change = self.tags()[to] != self.tags()[from];
            if may_change && home_of(self, to).is_some_and(|home| home + WINDOW > from) {
                return self.exchange(from, to);
            }
        }
    }
}
