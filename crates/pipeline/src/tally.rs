//! Sums by key, at millions of additions per second.
//!
//! A key consists of a few words; callers write them directly into the queue of pending keys, so that only new keys are
//! copied. Keys are looked up in batches, after the slots prefetched for them have arrived in the cache.
//!
//! Keys are identified by their [`Fingerprint`], which is stored with the sum in a hash table with open addressing: the
//! lookup of a known key reads one cache line. The keys themselves are in blocks of memory that never move, for the
//! final output.
//!
//! The table is sorted by fingerprint, except for entries displaced by collisions. So it grows and merges from start to
//! end without access to the keys. Tallies that are clones of each other merge like this; others merge by their keys.

use std::cmp::Reverse;

use gannet_base::prefetch;

use crate::fingerprint::Fingerprint;
use crate::fingerprint::Fingerprints;

/// Maximum number of distinct keys; further ones have a common sum.
pub const MAX_KEYS: usize = 16 << 20;

/// Maximum number of pending keys.
const MAX_PENDING: usize = 256;
/// Maximum number of words of all pending keys.
const MAX_PENDING_WORDS: usize = 1 << 14;

/// Sums by key.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    fingerprints: Fingerprints,
    table: Table,
    /// Words of the pending keys.
    words: Vec<u64>,
    /// Start of the key that is being written.
    start: usize,
    pending: Vec<PendingKey>,
}

#[derive(Clone, Copy, Debug)]
struct PendingKey {
    fingerprint: Fingerprint,
    amount: u64,
    start: u32,
    end: u32,
}

impl Tally {
    /// The buffer to which the words of the next key are appended.
    #[inline]
    pub fn key(&mut self) -> &mut Vec<u64> {
        &mut self.words
    }

    /// Adds an amount to the key whose words were written since the last call.
    #[inline(always)]
    pub fn add(&mut self, amount: u64) {
        let fingerprint = self.fingerprints.of(self.words.get(self.start..).unwrap_or_default());
        self.table.prefetch_slot(fingerprint);
        let (start, end) = (self.start as u32, self.words.len() as u32);
        self.pending.push(PendingKey { fingerprint, amount, start, end });
        self.start = self.words.len();
        if self.pending.len() >= MAX_PENDING || self.words.len() >= MAX_PENDING_WORDS {
            self.apply_pending();
        }
    }

    /// Looks up the pending keys and adds their amounts.
    #[inline(never)]
    fn apply_pending(&mut self) {
        self.table.grow_for(0);
        for pending in &self.pending {
            match self.table.find(pending.fingerprint) {
                Ok(at) => self.table.add_to(at, pending.amount),
                Err(free) => {
                    let range = pending.start as usize..pending.end as usize;
                    let key = self.words.get(range).unwrap_or_default();
                    self.table.insert(free, pending.fingerprint, key, pending.amount);
                }
            }
        }
        self.pending.clear();
        self.words.clear();
        self.start = 0;
    }

    /// Adds the sums of another tally, and empties it.
    pub fn merge(&mut self, other: &mut Self) {
        self.apply_pending();
        other.apply_pending();
        let other_table = std::mem::take(&mut other.table);
        if self.fingerprints == other.fingerprints {
            self.table.merge(other_table);
            return;
        }
        self.table.grow_for(0);
        for &[_, _, sum, position] in other_table.occupied() {
            let key = other_table.keys.at(position);
            let fingerprint = self.fingerprints.of(key);
            match self.table.find(fingerprint) {
                Ok(at) => self.table.add_to(at, sum),
                Err(free) => self.table.insert(free, fingerprint, key, sum),
            }
        }
        self.table.overflow_sum = self.table.overflow_sum.wrapping_add(other_table.overflow_sum);
    }

    /// Returns all keys and sums.
    pub fn finish(mut self) -> Rows {
        self.apply_pending();
        let Table { mut slots, keys, overflow_sum, .. } = self.table;
        slots.retain(is_occupied);
        if overflow_sum > 0 {
            slots.push([0, 0, overflow_sum, 0]);
        }
        Rows { slots, keys }
    }
}

/// Keys and their sums.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    slots: Vec<Slot>,
    keys: Keys,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The words of the key and the sum of a row. One row may have no key: the sum of all keys above the limit.
    pub fn get(&self, row: usize) -> Option<(Option<&[u64]>, u64)> {
        let &[_, _, sum, position] = self.slots.get(row)?;
        Some(((position != 0).then(|| self.keys.at(position)), sum))
    }

    /// The sums of all rows, in their current order.
    pub fn sums(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().map(|slot| slot[2])
    }

    /// Moves the `first` rows with the largest sums to the start, in arbitrary order, followed by all rows with the
    /// same sum as the smallest of them; returns the number of both.
    pub fn select_largest(&mut self, first: usize) -> usize {
        let first = first.min(self.slots.len());
        let Some(last) = first.checked_sub(1) else { return 0 };
        let (_, &mut [_, _, smallest, _], behind) =
            self.slots.select_nth_unstable_by_key(last, |slot| Reverse(slot[2]));
        let mut equal = 0;
        for at in 0..behind.len() {
            if behind[at][2] == smallest {
                behind.swap(equal, at);
                equal += 1;
            }
        }
        first + equal
    }
}

/// Fingerprint (two words), sum, and position of the key in [`Keys`]; all 0 in a free slot. It is half a cache line.
type Slot = [u64; 4];

/// Whether a slot is occupied: the second word of a fingerprint is never 0.
#[inline]
fn is_occupied(slot: &Slot) -> bool {
    slot[1] != 0
}

#[derive(Clone, Debug)]
struct Table {
    /// Empty, or a power of two of slots, of which at least a quarter is free. The upper bits of a fingerprint, rounded
    /// to a cache line, select the slot; the next free one is used if it is occupied.
    slots: Vec<Slot>,
    keys: Keys,
    /// Number of keys.
    count: usize,
    /// Sum of all keys above the limit.
    overflow_sum: u64,
    /// Maximum number of keys.
    limit: usize,
}

/// Initial number of slots: one or two pages.
const INITIAL_SLOTS: usize = 256;
/// Number of slots after the first growth: about a second-level cache. Sizes between would soon be outgrown, and their
/// memory must be cleared first.
const SECOND_SLOTS: usize = 1 << 15;

impl Default for Table {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            keys: Keys::default(),
            count: 0,
            overflow_sum: 0,
            limit: MAX_KEYS,
        }
    }
}

impl Table {
    /// The first slot for a fingerprint, at the start of a cache line.
    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        (fingerprint >> (u64::BITS - self.slots.len().trailing_zeros()).min(63)) as usize & !1
    }

    /// Prefetches the most likely slot of a key.
    #[inline]
    fn prefetch_slot(&self, fingerprint: Fingerprint) {
        if let Some(slot) = self.slots.get(self.home(fingerprint.first)) {
            prefetch(slot);
        }
    }

    /// The slot of a key, or `Err` with the free slot for it.
    #[inline]
    fn find(&self, fingerprint: Fingerprint) -> Result<usize, usize> {
        let home = self.home(fingerprint.first);
        let is = |slot: &Slot| (slot[0] ^ fingerprint.first) | (slot[1] ^ fingerprint.second) == 0;
        // Most keys are in their first cache line; which half of it has the key is computed without a branch.
        if let Some([one, two]) = self.slots.get(home..).and_then(<[Slot]>::first_chunk)
            && is(one) | is(two)
        {
            return Ok(home + usize::from(is(two)));
        }
        let mask = self.slots.len() - 1;
        let mut at = home;
        loop {
            let slot = &self.slots[at];
            if !is_occupied(slot) {
                return Err(at);
            }
            if is(slot) {
                return Ok(at);
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn add_to(&mut self, at: usize, amount: u64) {
        let sum = &mut self.slots[at][2];
        *sum = sum.wrapping_add(amount);
    }

    #[inline(never)]
    fn insert(&mut self, free: usize, fingerprint: Fingerprint, key: &[u64], amount: u64) {
        if self.count >= self.limit {
            self.overflow_sum = self.overflow_sum.wrapping_add(amount);
            return;
        }
        self.slots[free] = [fingerprint.first, fingerprint.second, amount, self.keys.push(key)];
        self.count += 1;
        self.grow_for(0);
    }

    /// Grows for `more` keys and at least one free slot.
    fn grow_for(&mut self, more: usize) {
        let required = (self.count + more) * 4 / 3 + 1;
        if required <= self.slots.len() {
            return;
        }
        let required = match required.next_power_of_two() {
            few if few <= INITIAL_SLOTS => INITIAL_SLOTS,
            many => many.max(SECOND_SLOTS),
        };
        let slots = std::mem::replace(&mut self.slots, vec![[0; 4]; required]);
        for slot in slots.into_iter().filter(is_occupied) {
            self.insert_slot(slot);
        }
    }

    /// Inserts a key that is not in the table, which must have a free slot.
    #[inline]
    fn insert_slot(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot[0]);
        while is_occupied(&self.slots[at]) {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Adds the sums of another table with the same [`Fingerprints`].
    fn merge(&mut self, mut other: Self) {
        if self.count < other.count {
            std::mem::swap(self, &mut other);
        }
        self.grow_for(0);
        let offset = self.keys.append(other.keys);
        self.overflow_sum = self.overflow_sum.wrapping_add(other.overflow_sum);
        let mut new = Vec::new();
        for [first, second, sum, position] in other.slots.into_iter().filter(is_occupied) {
            match self.find(Fingerprint { first, second }) {
                Ok(at) => self.add_to(at, sum),
                Err(_) if self.count + new.len() >= self.limit => {
                    self.overflow_sum = self.overflow_sum.wrapping_add(sum);
                }
                Err(_) => new.push([first, second, sum, position + offset]),
            }
        }
        // New keys are sorted: without growing first, they would collide at the start of the table.
        self.grow_for(new.len());
        self.count += new.len();
        for slot in new {
            self.insert_slot(slot);
        }
    }

    fn occupied(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| is_occupied(slot))
    }
}

/// Length-prefixed keys in blocks, so that growing copies nothing and allocates blocks of one size.
#[derive(Clone, Debug, Default)]
struct Keys(Vec<Vec<u64>>);

/// Number of words in a block.
const BLOCK: usize = 8192;

impl Keys {
    /// Adds a key; returns its position, which is never 0. Keys are truncated to the size of a
    /// block.
    fn push(&mut self, key: &[u64]) -> u64 {
        let key = key.get(..BLOCK - 1).unwrap_or(key);
        if self.0.last().is_none_or(|block| block.len() + 1 + key.len() > BLOCK) {
            self.0.push(Vec::with_capacity(BLOCK));
        }
        let number = self.0.len() - 1;
        let block = &mut self.0[number];
        let position = number * BLOCK + block.len() + 1;
        block.push(key.len() as u64);
        block.extend_from_slice(key);
        position as u64
    }

    /// Appends other keys; returns the offset to add to their positions.
    fn append(&mut self, mut other: Self) -> u64 {
        let offset = self.0.len() * BLOCK;
        self.0.append(&mut other.0);
        offset as u64
    }

    fn at(&self, position: u64) -> &[u64] {
        let find = || {
            let at = (position as usize).checked_sub(1)?;
            let (&len, words) = self.0.get(at / BLOCK)?.get(at % BLOCK..)?.split_first()?;
            words.get(..len as usize)
        };
        find().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn add(tally: &mut Tally, key: &[u64]) {
        tally.key().extend_from_slice(key);
        tally.add(1);
    }

    /// Keys and sums, sorted; the row without a key is first.
    fn rows(tally: &Tally) -> Vec<(Option<Vec<u64>>, u64)> {
        let rows = tally.clone().finish();
        let mut all: Vec<_> = (0..rows.len())
            .filter_map(|row| rows.get(row))
            .map(|(key, sum)| (key.map(<[u64]>::to_vec), sum))
            .collect();
        all.sort();
        all
    }

    /// Keys of 0 to 4 words, half of which repeat often.
    fn keys(seed: u64, count: u64) -> impl Iterator<Item = Vec<u64>> {
        (0..count).map(move |n| {
            let x = (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let x = x >> if n % 2 == 0 { 50 } else { 20 };
            (0..x % 5).map(|i| x / 3 + i).collect()
        })
    }

    fn merged(mut tallies: Vec<Tally>, counts: &[u64]) {
        let mut map: HashMap<Vec<u64>, u64> = HashMap::new();
        for (seed, (tally, count)) in tallies.iter_mut().zip(counts).enumerate() {
            for key in keys(seed as u64, *count) {
                add(tally, &key);
                *map.entry(key).or_default() += 1;
            }
        }
        let mut all = tallies.remove(0);
        for mut tally in tallies {
            all.merge(&mut tally);
            assert_eq!(rows(&tally), []);
        }
        let mut expected: Vec<_> = map.into_iter().map(|(key, sum)| (Some(key), sum)).collect();
        expected.sort();
        assert_eq!(rows(&all), expected);
    }

    #[test]
    fn sums_equal_those_of_a_map_when_clones_are_merged() {
        let one = Tally::default();
        for counts in [[30_000, 30_000, 30_000], [0, 30_000, 10], [10, 0, 30_000], [30_000, 0, 0]] {
            merged(vec![one.clone(), one.clone(), one.clone()], &counts);
        }
    }

    #[test]
    fn tallies_with_other_fingerprints_are_merged() {
        merged(vec![Tally::default(), Tally::default()], &[20_000, 30_000]);
    }

    #[test]
    fn keys_above_the_limit_have_a_common_sum() {
        let mut tally = Tally::default();
        tally.table.limit = 2;
        let mut other = tally.clone();
        for key in [1, 2, 3, 1, 4] {
            add(&mut tally, &[key]);
        }
        let key = |n| Some(vec![n]);
        assert_eq!(rows(&tally), [(None, 2), (key(1), 2), (key(2), 1)]);
        add(&mut other, &[2]);
        add(&mut other, &[5]);
        tally.merge(&mut other);
        assert_eq!(rows(&tally), [(None, 3), (key(1), 2), (key(2), 2)]);
    }

    #[test]
    fn keys_are_truncated_to_a_block() {
        let mut tally = Tally::default();
        add(&mut tally, &vec![7; BLOCK + 5]);
        add(&mut tally, &[]);
        assert_eq!(rows(&tally), [(Some(vec![]), 1), (Some(vec![7; BLOCK - 1]), 1)]);
    }

    #[test]
    fn the_largest_sums_are_selected_with_equal_ones() {
        let mut tally = Tally::default();
        for key in 0..2000_u64 {
            tally.key().push(key);
            tally.add(key / 100);
        }
        let mut rows = tally.finish();
        for (first, brought, least) in [(0, 0, 0), (1, 100, 19), (100, 100, 19), (150, 200, 18)] {
            assert_eq!(rows.select_largest(first), brought);
            assert!(rows.sums().take(brought).all(|sum| sum >= least));
        }
        assert_eq!(rows.select_largest(5000), 2000);
    }
}
