//! Hash tables with the slot order of Zeek's dictionary.

/// The number of buckets doubles at this load, in percent of the slots.
const MAX_LOAD: usize = 75;
/// With at most this many bits, all slots may be used.
const SMALL_BITS: u32 = 3;
/// Maximum number of entries that one insertion moves to their new buckets.
const REMAP_BATCH: usize = 16;
/// The number of buckets doubles early if insertions probe this far on average,
const MAX_DISTANCE: u64 = 32;
/// over more insertions than this,
const MIN_SAMPLES: u64 = 128;
/// and the load is at least this, in percent of the slots.
const MIN_LOAD: usize = 25;

#[derive(Clone, Debug)]
struct Entry<K, V> {
    /// Distance from the first slot of its bucket to its slot.
    distance: usize,
    hash: u32,
    key: K,
    value: V,
}

/// A hash table with Zeek's order: its iteration visits slots that are assigned exactly as in Zeek's
/// dictionary.
///
/// Entries of one bucket are adjacent in insertion order, and buckets are in ascending order. The number of
/// buckets doubles as the table grows; entries are then moved incrementally, by insertions and by lookups that
/// find an entry in its old position. During a loop over the table ([`begin_loop`](Self::begin_loop)), entries
/// are not moved.
///
/// Keys are passed with their hash ([`Hashes::key`](super::Hashes::key) of their [bytes](super::key)).
#[derive(Clone, Debug)]
pub struct SlotDict<K, V> {
    slots: Vec<Option<Entry<K, V>>>,
    bits: u32,
    len: usize,
    /// Number of doublings whose entries are not all moved.
    remaps: u32,
    /// The highest slot that may contain an unmoved entry.
    remap_end: Option<usize>,
    distance_sum: u64,
    distance_samples: u64,
    loops: usize,
    robust: Vec<Robust<K>>,
    /// The id of the next robust iteration.
    next_robust: u64,
}

/// State of an iteration that visits each entry once despite insertions and removals.
#[derive(Clone, Debug)]
struct Robust<K> {
    id: u64,
    next: Option<usize>,
    /// Unvisited entries in slots that the iteration has passed, newest last.
    inserted: Vec<(u32, K)>,
    /// Visited entries in slots that the iteration has not reached.
    visited: Vec<(u32, K)>,
}

/// Identifies an iteration that tolerates changes, see [`SlotDict::begin_robust`].
#[derive(Debug)]
pub struct RobustWalk(u64);

impl<K, V> Default for SlotDict<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SlotDict<K, V> {
    /// An empty table; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        SlotDict {
            slots: Vec::new(),
            bits: 0,
            len: 0,
            remaps: 0,
            remap_end: None,
            distance_sum: 0,
            distance_samples: 0,
            loops: 0,
            robust: Vec::new(),
            next_robust: 0,
        }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries in Zeek's order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.slots.iter().flatten().map(|entry| (&entry.key, &entry.value))
    }

    /// The entries in Zeek's order, with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.slots.iter_mut().flatten().map(|entry| (&entry.key, &mut entry.value))
    }

    /// Begins a loop over the slots with [`slot`](Self::slot). Until [`end_loop`](Self::end_loop), lookups do
    /// not move entries, and insertions move only those that they must.
    pub fn begin_loop(&mut self) {
        self.loops += 1;
    }

    /// Ends a loop.
    pub fn end_loop(&mut self) {
        self.loops = self.loops.saturating_sub(1);
    }

    /// The first entry at slot `from` or after it, and its slot.
    #[must_use]
    pub fn slot(&self, from: usize) -> Option<(usize, &K, &V)> {
        let behind = self.slots.iter().enumerate().skip(from);
        behind.filter_map(|(at, entry)| entry.as_ref().map(|e| (at, &e.key, &e.value))).next()
    }

    /// Removes all entries; loops and iterations end.
    pub fn clear(&mut self) {
        let next_robust = self.next_robust;
        *self = Self { next_robust, ..Self::new() };
    }

    fn bucket_of(hash: u32, bits: u32) -> usize {
        let spread = u64::from(hash).wrapping_mul(11_400_714_819_323_198_485);
        (spread & ((1_u64 << bits) - 1)) as usize
    }

    fn entry(&self, at: usize) -> Option<&Entry<K, V>> {
        self.slots.get(at).and_then(Option::as_ref)
    }

    /// The bucket of the entry in a slot.
    fn bucket_at(&self, at: usize) -> Option<usize> {
        self.entry(at).map(|entry| at - entry.distance)
    }

    /// The first slot after the entries of the bucket that the entry at `at` belongs to.
    fn end_of_cluster_at(&self, at: usize) -> usize {
        let bucket = self.bucket_at(at);
        let mut end = at;
        while bucket.is_some() && self.bucket_at(end) == bucket {
            end += 1;
        }
        end
    }

    /// The first slot after the entries of `bucket` and of preceding buckets.
    fn end_of_cluster(&self, bucket: usize) -> usize {
        let mut end = bucket;
        while self.bucket_at(end).is_some_and(|of| of <= bucket) {
            end += 1;
        }
        end
    }

    /// The first slot of the bucket that the entry at `at` belongs to.
    fn head_of_cluster_at(&self, at: usize) -> usize {
        let bucket = self.bucket_at(at);
        let mut head = at;
        while head > 0 && bucket.is_some() && self.bucket_at(head - 1) == bucket {
            head -= 1;
        }
        head
    }

    fn next_taken(&self, from: usize) -> usize {
        (from..self.slots.len()).find(|at| self.entry(*at).is_some()).unwrap_or(self.slots.len())
    }

    fn size_up(&mut self) {
        let before = self.slots.len();
        self.bits += 1;
        let capacity = (1_usize << self.bits) + self.bits as usize;
        self.slots.resize_with(capacity, || None);
        for walk in &mut self.robust {
            if walk.next.is_some_and(|next| next >= before) {
                walk.next = Some(capacity);
            }
        }
        self.remap_end = Some(before);
        self.remaps += 1;
        (self.distance_sum, self.distance_samples) = (0, 0);
    }

    /// Inserts an entry at a slot; the first entry of the bucket there moves to the bucket's end,
    /// and so on. Returns the last slot that changed.
    fn insert_and_relocate(&mut self, mut entry: Entry<K, V>, mut at: usize) -> usize {
        loop {
            if at >= self.slots.len() {
                self.size_up();
            }
            let end = self.end_of_cluster_at(at);
            let Some(slot) = self.slots.get_mut(at) else { return at };
            match slot.replace(entry) {
                None => return at,
                Some(mut displaced) => {
                    displaced.distance += end - at;
                    entry = displaced;
                    at = end;
                }
            }
        }
    }

    /// Removes the entry of a slot; the last entry of the following bucket replaces it, and so on.
    /// Returns the last slot that changed.
    fn remove_and_relocate(&mut self, mut at: usize) -> (Option<Entry<K, V>>, usize) {
        let removed = self.slots.get_mut(at).and_then(Option::take);
        loop {
            match self.entry(at + 1) {
                Some(next) if next.distance > 0 => {}
                _ => return (removed, at),
            }
            let last = self.end_of_cluster_at(at + 1) - 1;
            let moved = self.slots.get_mut(last).and_then(Option::take).map(|mut entry| {
                entry.distance -= last - at;
                entry
            });
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = moved;
            }
            at = last;
        }
    }

    /// Moves some of the entries that are in the positions for fewer buckets.
    fn remap(&mut self) {
        if self.is_walked() {
            return;
        }
        let mut left = REMAP_BATCH;
        while left > 0
            && let Some(at) = self.remap_end
        {
            if self.remap_at(at).is_some() {
                left -= 1;
            } else {
                self.remap_end = at.checked_sub(1);
            }
        }
        if self.remap_end.is_none() {
            self.remaps = 0;
        }
    }

    /// Moves the entry of a slot to its proper position, if it is elsewhere.
    fn remap_at(&mut self, at: usize) -> Option<usize> {
        let entry = self.entry(at)?;
        let expected = Self::bucket_of(entry.hash, self.bits);
        if at - entry.distance == expected {
            return None;
        }
        let mut entry = self.remove_and_relocate(at).0?;
        let to = self.end_of_cluster(expected);
        entry.distance = to - expected;
        self.insert_and_relocate(entry, to);
        Some(to)
    }

    fn is_walked(&self) -> bool {
        self.loops > 0 || !self.robust.is_empty()
    }
}

impl<K: Clone + PartialEq, V> SlotDict<K, V> {
    /// The value of a key. An unmoved entry is moved, as in Zeek.
    pub fn get(&mut self, hash: u64, key: &K) -> Option<&mut V> {
        self.get_with(hash, |k| k == key)
    }

    /// The value of the key that matches `is`.
    pub fn get_with(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&mut V> {
        let at = self.find(hash as u32, &is).ok()?;
        self.slots.get_mut(at)?.as_mut().map(|entry| &mut entry.value)
    }

    /// Inserts or replaces the value of a key; returns the previous value.
    pub fn insert(&mut self, hash: u64, key: K, value: V) -> Option<V> {
        if self.slots.is_empty() {
            self.slots.push(None);
        }
        let hash = hash as u32;
        let before = match self.find(hash, &|k| *k == key) {
            Ok(at) => {
                let entry = self.slots.get_mut(at).and_then(Option::as_mut);
                entry.map(|entry| core::mem::replace(&mut entry.value, value))
            }
            Err(at) => {
                self.insert_new(hash, key, value, at);
                None
            }
        };
        if self.remap_end.is_some() {
            self.remap();
        }
        before
    }

    fn insert_new(&mut self, hash: u32, key: K, value: V, at: usize) {
        let bucket = Self::bucket_of(hash, self.bits);
        let walked = (!self.robust.is_empty()).then(|| key.clone());
        let last = self.insert_and_relocate(Entry { distance: at - bucket, hash, key, value }, at);
        self.distance_sum += (last - at) as u64;
        self.distance_samples += 1;
        if self.remap_end.is_some_and(|end| at <= end && end < last) {
            self.remap_end = Some(last);
        }
        if let Some(key) = walked {
            self.adjust_on_insert(hash, &key, at, last);
        }
        self.len += 1;
        let capacity = self.slots.len();
        let most = if self.bits <= SMALL_BITS { capacity } else { capacity * MAX_LOAD / 100 };
        let far = self.distance_samples > MIN_SAMPLES
            && self.distance_sum > self.distance_samples * MAX_DISTANCE;
        if self.len > most || (far && self.len > MIN_LOAD * capacity / 100) {
            self.size_up();
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, hash: u64, key: &K) -> Option<(K, V)> {
        self.remove_with(hash, |k| k == key)
    }

    /// Removes the entry whose key matches `is`.
    pub fn remove_with(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<(K, V)> {
        let at = self.find(hash as u32, &is).ok()?;
        let (entry, last) = self.remove_and_relocate(at);
        let entry = entry?;
        self.adjust_on_remove(&entry, at, last);
        self.len -= 1;
        Some((entry.key, entry.value))
    }

    /// The slot of an entry, or `Err` with the slot where it would be inserted.
    fn find(&mut self, hash: u32, is: &dyn Fn(&K) -> bool) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let insert_at =
            match self.find_in(hash, is, Self::bucket_of(hash, self.bits), self.slots.len()) {
                Ok(at) => return Ok(at),
                Err(at) => at,
            };
        for back in 1..=self.remaps {
            let Some(end) = self.remap_end else { break };
            let bucket = Self::bucket_of(hash, self.bits.saturating_sub(back));
            if bucket <= end
                && let Ok(at) = self.find_in(hash, is, bucket, end + 1)
            {
                let moved = if self.is_walked() { None } else { self.remap_at(at) };
                return Ok(moved.unwrap_or(at));
            }
        }
        Err(insert_at)
    }

    fn find_in(
        &self,
        hash: u32,
        is: &dyn Fn(&K) -> bool,
        bucket: usize,
        end: usize,
    ) -> Result<usize, usize> {
        let mut at = bucket;
        while at < end
            && let Some(entry) = self.entry(at)
            && at - entry.distance <= bucket
        {
            if at - entry.distance == bucket && entry.hash == hash && is(&entry.key) {
                return Ok(at);
            }
            at += 1;
        }
        Err(at)
    }

    /// Begins an iteration that tolerates any change, such as the expiration of entries. Until it ends, entries
    /// are not moved.
    #[must_use]
    pub fn begin_robust(&mut self) -> RobustWalk {
        let id = self.next_robust;
        self.next_robust += 1;
        self.robust.push(Robust { id, next: None, inserted: Vec::new(), visited: Vec::new() });
        RobustWalk(id)
    }

    /// The next key of an iteration with its hash; `None` at its end. The entry may have been removed
    /// meanwhile.
    pub fn next_robust(&mut self, walk: &RobustWalk) -> Option<(u32, K)> {
        let index = self.robust.iter().position(|w| w.id == walk.0)?;
        let mut state = self.robust.swap_remove(index);
        let found = self.step(&mut state);
        if found.is_some() {
            self.robust.push(state);
        }
        found
    }

    /// Ends an iteration early.
    #[expect(clippy::needless_pass_by_value, reason = "the walk is over")]
    pub fn end_robust(&mut self, walk: RobustWalk) {
        self.robust.retain(|w| w.id != walk.0);
    }

    fn step(&self, state: &mut Robust<K>) -> Option<(u32, K)> {
        if let Some(inserted) = state.inserted.pop() {
            return Some(inserted);
        }
        let mut next = self.next_taken(state.next.unwrap_or(0));
        while let Some(entry) = self.entry(next) {
            let visited = state
                .visited
                .iter()
                .position(|(hash, key)| *hash == entry.hash && *key == entry.key);
            match visited {
                None => {
                    state.next = Some(self.next_taken(next + 1));
                    return Some((entry.hash, entry.key.clone()));
                }
                Some(index) => {
                    state.visited.remove(index);
                    next = self.next_taken(next + 1);
                }
            }
        }
        None
    }

    fn adjust_on_insert(&mut self, hash: u32, key: &K, at: usize, last: usize) {
        let mut walks = core::mem::take(&mut self.robust);
        for walk in &mut walks {
            walk.forget(hash, key);
            let Some(next) = walk.next else { continue };
            if at < next {
                walk.inserted.push((hash, key.clone()));
            }
            if at < next && next <= last && self.entry(next).is_some() {
                // A visited entry was pushed to the next slot of the iteration.
                let pushed = self.entry(self.end_of_cluster_at(next) - 1);
                walk.visited.extend(pushed.map(|entry| (entry.hash, entry.key.clone())));
            }
        }
        self.robust = walks;
    }

    fn adjust_on_remove(&mut self, removed: &Entry<K, V>, at: usize, last: usize) {
        let mut walks = core::mem::take(&mut self.robust);
        for walk in &mut walks {
            walk.forget(removed.hash, &removed.key);
            let Some(next) = walk.next else { continue };
            if at < next && next <= last && next > 0 {
                // An unvisited entry moved to a slot that the iteration has passed.
                let moved = self.entry(self.head_of_cluster_at(next - 1).max(at));
                walk.inserted.extend(moved.map(|entry| (entry.hash, entry.key.clone())));
            }
            if self.entry(next).is_none() {
                walk.next = Some(self.next_taken(next));
            }
        }
        self.robust = walks;
    }
}

impl<K: PartialEq> Robust<K> {
    fn forget(&mut self, hash: u32, key: &K) {
        let is = |(h, k): &(u32, K)| *h == hash && k == key;
        self.inserted.retain(|entry| !is(entry));
        self.visited.retain(|entry| !is(entry));
    }
}
