//! Hash index into the slab: the part of the connection table that each packet reads at random.
//!
//! Cells of eight bytes in one array with linear probing: the hash in the upper half, the slab
//! index in the lower half. Nearly all probes end in their first cache line and cost one cache
//! miss, which [`prefetch`](Index::prefetch) anticipates. A removal shifts the following cells
//! back, so no tombstones remain after a flood.

use gannet_base::prefetch;

/// Initial number of cells.
const MIN_CELLS: usize = 64;

/// An empty cell. Slab indices are stored plus one.
const EMPTY: u64 = 0;

/// An open-addressed map from hashes to slab indices; hashes may repeat, indices do not.
#[derive(Debug, Default)]
pub(crate) struct Index {
    cells: Vec<u64>,
    len: usize,
}

fn cell(hash: u32, index: u32) -> u64 {
    u64::from(hash) << 32 | (u64::from(index) + 1)
}

fn slab_index(cell: u64) -> u32 {
    (cell as u32).wrapping_sub(1)
}

impl Index {
    /// Bytes of the array.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u64>()
    }

    /// The cell at which probing for a hash begins: its upper bits, scaled to the array.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.cells.len() as u64) >> 32) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.cells.len() { 0 } else { at + 1 }
    }

    /// The first result of `at` among the indices with this hash.
    #[inline(always)]
    pub(crate) fn find_map<T>(&self, hash: u32, mut at: impl FnMut(u32) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.position(hash, |c| {
            found = at(slab_index(c));
            found.is_some()
        });
        found
    }

    #[inline(always)]
    fn position(&self, hash: u32, mut same: impl FnMut(u64) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            // An array without an empty cell has no cells at all.
            let Some(c) = self.cells.get(at).copied() else {
                if at == 0 {
                    return None;
                }
                at = 0;
                continue;
            };
            if c == EMPTY {
                return None;
            }
            if (c >> 32) as u32 == hash && same(c) {
                return Some(at);
            }
            at += 1;
        }
    }

    /// Prefetches the cell at which probing for a hash begins.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u32) {
        prefetch(self.cells.as_ptr().wrapping_add(self.home(hash)));
    }

    /// Adds an index below `u32::MAX` that the map does not contain.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        // At a load of three quarters an unsuccessful probe takes only eight steps.
        if (self.len + 1) * 4 > self.cells.len() * 3 {
            self.grow();
        }
        self.len += 1;
        self.insert_cell(cell(hash, index));
    }

    #[inline]
    fn insert_cell(&mut self, cell: u64) {
        let mut at = self.home((cell >> 32) as u32);
        while self.cells[at] != EMPTY {
            at = self.next(at);
        }
        self.cells[at] = cell;
    }

    #[cold]
    fn grow(&mut self) {
        let cells = vec![EMPTY; (self.cells.len() * 2).max(MIN_CELLS)];
        // Cells move in the order of their home cells: the new array is filled from front to back.
        for cell in std::mem::replace(&mut self.cells, cells) {
            if cell != EMPTY {
                self.insert_cell(cell);
            }
        }
    }

    /// Removes an index.
    pub(crate) fn remove(&mut self, hash: u32, index: u32) {
        let Some(mut hole) = self.position(hash, |c| c == cell(hash, index)) else { return };
        self.len -= 1;
        let mut at = hole;
        loop {
            at = self.next(at);
            let c = self.cells[at];
            if c == EMPTY {
                break;
            }
            // A cell moves to the hole if its probe sequence passes over it.
            let home = self.home((c >> 32) as u32);
            let (probe, gap) = (self.distance(home, at), self.distance(hole, at));
            if probe >= gap {
                self.cells[hole] = c;
                hole = at;
            }
        }
        self.cells[hole] = EMPTY;
    }

    /// Number of steps from one cell to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.cells.len() - from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Hashes from both ends of the range, so that probes wrap around the end of the array.
        #[test]
        fn as_a_set(steps in proptest::collection::vec((any::<bool>(), 0_u32..12, 0_u32..300), 0..600)) {
            let (mut index, mut set) = (Index::default(), BTreeSet::new());
            for (add, hash, slot) in steps {
                let hash = if hash % 2 == 0 { u32::MAX - hash } else { hash << 8 };
                let known = set.contains(&(hash, slot));
                prop_assert_eq!(index.find_map(hash, |p| (p == slot).then_some(p)), known.then_some(slot));
                if add && !known {
                    index.insert(hash, slot);
                    set.insert((hash, slot));
                } else if !add {
                    index.remove(hash, slot);
                    set.remove(&(hash, slot));
                }
                index.prefetch(hash);
                prop_assert_eq!(index.len, set.len());
            }
            for (hash, slot) in &set {
                prop_assert_eq!(index.find_map(*hash, |p| (p == *slot).then_some(p)), Some(*slot));
            }
            prop_assert_eq!(index.cells.iter().filter(|c| **c != EMPTY).count(), set.len());
        }
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        let mut index = Index::default();
        assert_eq!(index.find_map(7, Some), None);
        index.prefetch(7);
        index.remove(7, 7);
        index.insert(7, u32::MAX - 1);
        assert_eq!(index.find_map(7, Some), Some(u32::MAX - 1));
    }
}
