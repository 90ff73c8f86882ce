//! Storage for connections: stable indices, memory allocated and freed by the chunk.

use gannet_base::prefetch;

/// Indices of a chunk, as a power of two: just below 48 kilobytes of connections. Beyond 64
/// kilobytes the allocator maps each chunk separately and wastes the end of the last page. A larger
/// chunk would also be freed less often; with smaller ones, there are more chunks than the cache
/// holds.
const BITS: u32 = 8;
const CHUNK: usize = 1 << BITS;

/// Entries of a chunk. The last index is unused: allocators serve a chunk just below a round size
/// without waste or extra alignment.
const PLACES: usize = CHUNK - 1;

/// Empty chunks that are kept for reuse.
const SPARE: usize = 2;

/// A slab: values at stable indices. The index of a removed value is reused.
///
/// Chunks never move. An empty chunk is freed, and free entries of other chunks are filled first,
/// so that chunks drain after a flood.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// A freed chunk has no capacity; entries beyond the length were never used.
    chunks: Vec<Vec<Option<T>>>,
    used: Vec<UsedEntries>,
    /// Chunks with a free entry, each once; the last one is filled first.
    roomy: Vec<u32>,
    len: usize,
    /// Number of allocated chunks.
    held: usize,
    /// Number of allocated chunks without values.
    empty: usize,
}

/// The used entries of a chunk.
#[derive(Debug)]
struct UsedEntries {
    bits: [u64; CHUNK / 64],
    count: u32,
    /// Words of `bits` before this one have no free entry.
    full: u32,
    /// Whether it is among [`Slab::roomy`].
    listed: bool,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        let (chunks, used, roomy) = (Vec::new(), Vec::new(), Vec::new());
        Self { chunks, used, roomy, len: 0, held: 0, empty: 0 }
    }
}

impl Default for UsedEntries {
    fn default() -> Self {
        let mut bits = [0; CHUNK / 64];
        // The index without an entry.
        bits[CHUNK / 64 - 1] = u64::MAX << (64 - (CHUNK - PLACES));
        Self { bits, count: 0, full: 0, listed: true }
    }
}

impl UsedEntries {
    /// The first free entry.
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

    fn take(&mut self, at: usize) {
        self.bits[at / 64] |= 1 << (at % 64);
        self.count += 1;
    }

    fn give(&mut self, at: usize) {
        self.bits[at / 64] &= !(1 << (at % 64));
        self.full = self.full.min(at as u32 / 64);
        self.count -= 1;
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Allocated entries without a value.
    pub(crate) fn free(&self) -> usize {
        self.held * PLACES - self.len
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

    /// Inserts a value at a free entry; fewer than 2³² fit.
    #[inline]
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        let (chunk, within) = self.place();
        let (slots, used) = (&mut self.chunks[chunk], &mut self.used[chunk]);
        if within < slots.len() {
            slots[within] = Some(thing);
        } else {
            slots.push(Some(thing));
        }
        self.empty -= usize::from(used.count == 0);
        used.take(within);
        self.len += 1;
        // Prefetches the next entry, which often has not been accessed for long.
        match used.first_free() {
            Some(next) => prefetch(slots.as_ptr().wrapping_add(next)),
            None => {
                used.listed = false;
                self.roomy.pop();
            }
        }
        (chunk * CHUNK + within) as u32
    }

    /// The chunk and the entry that are filled next.
    fn place(&mut self) -> (usize, usize) {
        if let Some(chunk) = self.roomy.last().map(|c| *c as usize)
            && let Some(within) = self.used[chunk].first_free()
        {
            if self.chunks[chunk].capacity() == 0 {
                self.chunks[chunk] = Vec::with_capacity(PLACES);
                self.held += 1;
                self.empty += 1;
            }
            return (chunk, within);
        }
        self.roomy.push(self.chunks.len() as u32);
        self.chunks.push(Vec::with_capacity(PLACES));
        self.used.push(UsedEntries::default());
        self.held += 1;
        self.empty += 1;
        (self.chunks.len() - 1, 0)
    }

    /// Drops the value at an index; returns whether there was one.
    pub(crate) fn remove(&mut self, at: u32) -> bool {
        let (chunk, within) = (at as usize / CHUNK, at as usize % CHUNK);
        let Some(place) = self.chunks.get_mut(chunk).and_then(|c| c.get_mut(within)) else {
            return false;
        };
        if place.is_none() {
            return false;
        }
        // Dropped in place: values are too large to be moved first.
        *place = None;
        let used = &mut self.used[chunk];
        used.give(within);
        self.len -= 1;
        if !used.listed {
            used.listed = true;
            self.roomy.push(chunk as u32);
        }
        if used.count == 0 {
            self.vacate(chunk);
        }
        true
    }

    /// A chunk is empty: it is freed, and filled last.
    #[cold]
    fn vacate(&mut self, chunk: usize) {
        if self.empty < SPARE {
            self.empty += 1;
            return;
        }
        self.chunks[chunk] = Vec::new();
        self.held -= 1;
        self.roomy.retain(|c| *c as usize != chunk);
        self.roomy.insert(0, chunk as u32);
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
        /// Runs of insertions and removals, long enough to fill and empty chunks.
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
                let all: Vec<_> = slab.iter().map(|(at, thing)| (at, *thing)).collect();
                prop_assert_eq!(all, map.iter().map(|(at, thing)| (*at, *thing)).collect::<Vec<_>>());
                let held = slab.chunks.iter().filter(|c| c.capacity() > 0).count();
                let filled = slab.used.iter().filter(|u| u.count > 0).count();
                prop_assert!(held <= filled + SPARE && slab.empty == held - filled && slab.held == held);
                prop_assert_eq!(slab.free(), held * PLACES - map.len());
            }
        }
    }

    #[test]
    fn what_stays_is_joined_before_memory_is_asked_for() {
        let mut slab = Slab::default();
        let places: Vec<u32> = (0..10 * PLACES).map(|i| slab.insert(i)).collect();
        for at in &places {
            if *at as usize != 3 * CHUNK + 7 {
                slab.remove(*at);
            }
        }
        assert_eq!(slab.free(), (1 + SPARE) * PLACES - 1);
        for i in 0..(1 + SPARE) * PLACES - 1 {
            slab.insert(i);
        }
        assert_eq!(slab.free(), 0);
        assert_eq!(slab.get(3 * CHUNK as u32 + 7), Some(&(3 * PLACES + 7)));
        assert_eq!(slab.get(9 * CHUNK as u32), None);
    }
}
