//! Storage for connections: stable indices, memory allocated and freed in chunks.

use gannet_base::prefetch;

/// Binary logarithm of the number of indices of a chunk, for just below 48 KiB of connections.
/// Above 64 KiB the allocator maps each chunk separately and wastes the end of the last page, and a
/// chunk would be freed less often; with smaller chunks, their number exceeds what the cache holds.
const BITS: u32 = 8;
const CHUNK: usize = 1 << BITS;

/// Number of entries of a chunk. The last index is unused: allocators serve a size just below a
/// round one without waste or extra alignment.
const ENTRIES: usize = CHUNK - 1;

/// Number of empty chunks that are kept for reuse.
const MAX_SPARE: usize = 2;

/// A slab: values at stable indices. The index of a removed value is reused.
///
/// Chunks never move. An empty chunk is freed, and free entries of other chunks are filled first,
/// so that chunks drain after a flood.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// A freed chunk has no capacity; entries beyond the length were never used.
    chunks: Vec<Vec<Option<T>>>,
    used: Vec<UsedEntries>,
    /// Chunks with a free entry, each once; the last chunk in the list is filled first.
    with_free: Vec<u32>,
    len: usize,
    /// Number of allocated chunks.
    allocated: usize,
    /// Number of allocated chunks without values.
    empty: usize,
}

/// The used entries of a chunk.
#[derive(Debug)]
struct UsedEntries {
    bits: [u64; CHUNK / 64],
    count: u32,
    /// Words of `bits` before this index have no free entry.
    full: u32,
    /// Whether the chunk is in [`Slab::with_free`].
    listed: bool,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        let (chunks, used, with_free) = (Vec::new(), Vec::new(), Vec::new());
        Self { chunks, used, with_free, len: 0, allocated: 0, empty: 0 }
    }
}

impl Default for UsedEntries {
    fn default() -> Self {
        let mut bits = [0; CHUNK / 64];
        // The index without an entry counts as used.
        bits[CHUNK / 64 - 1] = u64::MAX << (64 - (CHUNK - ENTRIES));
        Self { bits, count: 0, full: 0, listed: true }
    }
}

impl UsedEntries {
    /// Index of the first free entry.
    #[inline]
    fn first_free(&mut self) -> Option<usize> {
        while let Some(bits) = self.bits.get(self.full as usize) {
            if *bits != u64::MAX {
                return Some(self.full as usize * 64 + bits.trailing_ones() as usize);
            }
            self.full += 1;
        }
        None
    }

    fn occupy(&mut self, at: usize) {
        self.bits[at / 64] |= 1 << (at % 64);
        self.count += 1;
    }

    fn release(&mut self, at: usize) {
        self.bits[at / 64] &= !(1 << (at % 64));
        self.full = self.full.min(at as u32 / 64);
        self.count -= 1;
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of allocated entries without a value.
    pub(crate) fn free(&self) -> usize {
        self.allocated * ENTRIES - self.len
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        self.chunks.get(at as usize / CHUNK)?.get(at as usize % CHUNK)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.chunks.get_mut(at as usize / CHUNK)?.get_mut(at as usize % CHUNK)?.as_mut()
    }

    /// Prefetches an entry.
    #[inline]
    pub(crate) fn prefetch(&self, at: u32) {
        if let Some(chunk) = self.chunks.get(at as usize / CHUNK) {
            prefetch(chunk.as_ptr().wrapping_add(at as usize % CHUNK));
        }
    }

    /// Inserts a value into a free entry and returns its index; at most 2³² values fit.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let (chunk, within) = self.next_free();
        let (slots, used) = (&mut self.chunks[chunk], &mut self.used[chunk]);
        if within < slots.len() {
            slots[within] = Some(value);
        } else {
            slots.push(Some(value));
        }
        self.empty -= usize::from(used.count == 0);
        used.occupy(within);
        self.len += 1;
        // Prefetches the next free entry, which often was not accessed for long.
        match used.first_free() {
            Some(next) => prefetch(slots.as_ptr().wrapping_add(next)),
            None => {
                used.listed = false;
                self.with_free.pop();
            }
        }
        (chunk * CHUNK + within) as u32
    }

    /// Chunk and entry for the next value.
    fn next_free(&mut self) -> (usize, usize) {
        if let Some(chunk) = self.with_free.last().map(|c| *c as usize)
            && let Some(within) = self.used[chunk].first_free()
        {
            if self.chunks[chunk].capacity() == 0 {
                self.chunks[chunk] = Vec::with_capacity(ENTRIES);
                self.allocated += 1;
                self.empty += 1;
            }
            return (chunk, within);
        }
        self.with_free.push(self.chunks.len() as u32);
        self.chunks.push(Vec::with_capacity(ENTRIES));
        self.used.push(UsedEntries::default());
        self.allocated += 1;
        self.empty += 1;
        (self.chunks.len() - 1, 0)
    }

    /// Drops the value at an index; returns whether a value was present.
    pub(crate) fn remove(&mut self, at: u32) -> bool {
        let (chunk, within) = (at as usize / CHUNK, at as usize % CHUNK);
        let Some(entry) = self.chunks.get_mut(chunk).and_then(|c| c.get_mut(within)) else {
            return false;
        };
        if entry.is_none() {
            return false;
        }
        // Dropped in place, because values are large.
        *entry = None;
        let used = &mut self.used[chunk];
        used.release(within);
        self.len -= 1;
        if !used.listed {
            used.listed = true;
            self.with_free.push(chunk as u32);
        }
        if used.count == 0 {
            self.vacate(chunk);
        }
        true
    }

    /// Frees an empty chunk, or keeps it as a spare one that is filled last.
    #[cold]
    fn vacate(&mut self, chunk: usize) {
        if self.empty < MAX_SPARE {
            self.empty += 1;
            return;
        }
        self.chunks[chunk] = Vec::new();
        self.allocated -= 1;
        self.with_free.retain(|c| *c as usize != chunk);
        self.with_free.insert(0, chunk as u32);
    }

    /// All values with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.chunks.iter().enumerate().flat_map(|(chunk, slots)| {
            let first = chunk * CHUNK;
            let things = slots.iter().enumerate();
            things.filter_map(move |(i, s)| s.as_ref().map(|s| ((first + i) as u32, s)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Sequences of insertions and removals, long enough to fill and empty chunks.
        #[test]
        fn as_a_map(steps in proptest::collection::vec((any::<bool>(), 0_usize..3 * CHUNK), 1..12)) {
            let (mut slab, mut map, mut next) = (Slab::default(), BTreeMap::new(), 0_u32);
            for (add, count) in steps {
                for _ in 0..count {
                    if add {
                        let at = slab.insert(next);
                        prop_assert_eq!(map.insert(at, next), None);
                        next += 1;
                    } else if let Some((at, _)) = map.pop_first() {
                        prop_assert!(slab.remove(at) && !slab.remove(at));
                    }
                }
                prop_assert_eq!(slab.len(), map.len());
                let all: Vec<_> = slab.iter().map(|(at, value)| (at, *value)).collect();
                prop_assert_eq!(all, map.iter().map(|(at, value)| (*at, *value)).collect::<Vec<_>>());
                let allocated = slab.chunks.iter().filter(|c| c.capacity() > 0).count();
                let filled = slab.used.iter().filter(|u| u.count > 0).count();
                prop_assert!(allocated <= filled + MAX_SPARE && slab.empty == allocated - filled && slab.allocated == allocated);
                prop_assert_eq!(slab.free(), allocated * ENTRIES - map.len());
            }
        }
    }

    #[test]
    fn free_entries_are_filled_before_memory_is_allocated() {
        let mut slab = Slab::default();
        let indices: Vec<u32> = (0..10 * ENTRIES).map(|i| slab.insert(i)).collect();
        for at in &indices {
            if *at as usize != 3 * CHUNK + 7 {
                slab.remove(*at);
            }
        }
        assert_eq!(slab.free(), (1 + MAX_SPARE) * ENTRIES - 1);
        for i in 0..(1 + MAX_SPARE) * ENTRIES - 1 {
            slab.insert(i);
        }
        assert_eq!(slab.free(), 0);
        assert_eq!(slab.get(3 * CHUNK as u32 + 7), Some(&(3 * ENTRIES + 7)));
        assert_eq!(slab.get(9 * CHUNK as u32), None);
    }
}
