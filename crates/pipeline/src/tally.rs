//! Sums by key, for millions of them a second.
//!
//! A key is a few words; callers write them directly into the queue of pending keys, so that
//! nothing is copied before a key is new. Keys are looked up in batches, so that memory prefetched
//! when each was added has arrived.
//!
//! Keys are identified by their [`Fingerprint`], which is stored with the sum in an open-addressed
//! table: a known key takes one cache line. The keys themselves are in blocks of memory that never
//! move, for the final output.
//!
//! The table is in order of fingerprints, except for those displaced by collisions. So it grows and
//! merges from front to back, without access to the keys; merged tallies must be clones of one.

use std::cmp::Reverse;

use gannet_base::prefetch;

use crate::fingerprint::Fingerprint;
use crate::fingerprint::Fingerprints;

/// Keys that are distinguished; further ones are counted together.
pub const MAX_KEYS: usize = 16 << 20;

/// Keys that wait to be looked up.
const WAITING: usize = 256;
/// Words of keys that make them be looked up, however few they are.
const WAITING_WORDS: usize = 1 << 14;

/// Sums by key.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    fingerprints: Fingerprints,
    table: Table,
    /// Words of the keys that wait.
    words: Vec<u64>,
    /// Where the key that is being written begins.
    start: usize,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    print: Fingerprint,
    amount: u64,
    start: u32,
    end: u32,
}

impl Tally {
    /// Where the words of the next key go.
    #[inline]
    pub fn key(&mut self) -> &mut Vec<u64> {
        &mut self.words
    }

    /// Adds an amount to the key whose words were written since the last call.
    #[inline(always)]
    pub fn add(&mut self, amount: u64) {
        let print = self.fingerprints.of(self.words.get(self.start..).unwrap_or_default());
        self.table.fetch(print);
        let (start, end) = (self.start as u32, self.words.len() as u32);
        self.waiting.push(Waiting { print, amount, start, end });
        self.start = self.words.len();
        if self.waiting.len() >= WAITING || self.words.len() >= WAITING_WORDS {
            self.settle();
        }
    }

    /// Looks up what waits.
    #[inline(never)]
    fn settle(&mut self) {
        self.table.make_room(0);
        for waiting in &self.waiting {
            match self.table.find(waiting.print) {
                Ok(at) => self.table.raise(at, waiting.amount),
                Err(free) => {
                    let range = waiting.start as usize..waiting.end as usize;
                    let key = self.words.get(range).unwrap_or_default();
                    self.table.insert(free, waiting.print, key, waiting.amount);
                }
            }
        }
        self.waiting.clear();
        self.words.clear();
        self.start = 0;
    }

    /// Adds the contents of another one, and empties it.
    pub fn merge(&mut self, other: &mut Self) {
        self.settle();
        other.settle();
        let theirs = std::mem::take(&mut other.table);
        if self.fingerprints == other.fingerprints {
            self.table.merge(theirs);
            return;
        }
        self.table.make_room(0);
        for &[_, _, sum, place] in theirs.taken() {
            let key = theirs.keys.at(place);
            let print = self.fingerprints.of(key);
            match self.table.find(print) {
                Ok(at) => self.table.raise(at, sum),
                Err(free) => self.table.insert(free, print, key, sum),
            }
        }
        self.table.others = self.table.others.wrapping_add(theirs.others);
    }

    /// Ends adding up.
    pub fn finish(mut self) -> Rows {
        self.settle();
        let Table { mut slots, keys, others, .. } = self.table;
        slots.retain(is_taken);
        if others > 0 {
            slots.push([0, 0, others, 0]);
        }
        Rows { slots, keys }
    }
}

/// Keys that were counted, and their sums.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    slots: Vec<Slot>,
    keys: Keys,
}

impl Rows {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Of a row, the words of its key and its sum. One row may have no key: the sum of all keys that
    /// found no room.
    pub fn get(&self, row: usize) -> Option<(Option<&[u64]>, u64)> {
        let &[_, _, sum, place] = self.slots.get(row)?;
        Some(((place != 0).then(|| self.keys.at(place)), sum))
    }

    /// All sums, as they stand.
    pub fn sums(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().map(|slot| slot[2])
    }

    /// Moves the `first` rows with the largest sums to the front, in no order, and behind them
    /// those with the same sum as the smallest of them; returns the number of both.
    pub fn bring_largest(&mut self, first: usize) -> usize {
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

/// Fingerprint, sum, and where the key is in [`Keys`]; all 0 where the slot is free. Half a line of
/// memory.
type Slot = [u64; 4];

/// Whether a slot is not free: no fingerprint is 0.
#[inline]
fn is_taken(slot: &Slot) -> bool {
    slot[1] != 0
}

#[derive(Clone, Debug)]
struct Table {
    /// None, or a power of two, a quarter of them free. A key's slot is given by the upper bits of
    /// its fingerprint, rounded to a cache line, or is the next free one from there.
    slots: Vec<Slot>,
    keys: Keys,
    count: usize,
    others: u64,
    limit: usize,
}

/// Slots to begin with, a page or two.
const FEW: usize = 256;
/// Slots that come next: what stays in a core's second-level cache. Sizes in between would each be filled
/// for a moment, and take memory that must be cleared first.
const MANY: usize = 1 << 15;

impl Default for Table {
    fn default() -> Self {
        Self { slots: Vec::new(), keys: Keys::default(), count: 0, others: 0, limit: MAX_KEYS }
    }
}

impl Table {
    /// Where a fingerprint belongs: the first slot of a line.
    #[inline]
    fn home(&self, print: u64) -> usize {
        (print >> (u64::BITS - self.slots.len().trailing_zeros()).min(63)) as usize & !1
    }

    /// Where a key most likely is, memory is wanted soon.
    #[inline]
    fn fetch(&self, print: Fingerprint) {
        if let Some(slot) = self.slots.get(self.home(print.first)) {
            prefetch(slot);
        }
    }

    /// The slot of a key, or else the free one for it.
    #[inline]
    fn find(&self, print: Fingerprint) -> Result<usize, usize> {
        let home = self.home(print.first);
        let is = |slot: &Slot| (slot[0] ^ print.first) | (slot[1] ^ print.second) == 0;
        // Most are in the line where they belong: which half has it takes no branch to tell.
        if let Some([one, two]) = self.slots.get(home..).and_then(<[Slot]>::first_chunk)
            && is(one) | is(two)
        {
            return Ok(home + usize::from(is(two)));
        }
        let mask = self.slots.len() - 1;
        let mut at = home;
        loop {
            let slot = &self.slots[at];
            if !is_taken(slot) {
                return Err(at);
            }
            if is(slot) {
                return Ok(at);
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn raise(&mut self, at: usize, amount: u64) {
        let sum = &mut self.slots[at][2];
        *sum = sum.wrapping_add(amount);
    }

    #[inline(never)]
    fn insert(&mut self, free: usize, print: Fingerprint, key: &[u64], amount: u64) {
        if self.count >= self.limit {
            self.others = self.others.wrapping_add(amount);
            return;
        }
        self.slots[free] = [print.first, print.second, amount, self.keys.push(key)];
        self.count += 1;
        self.make_room(0);
    }

    /// Grows until there is room for this many more, and at least one free slot.
    fn make_room(&mut self, more: usize) {
        let wanted = (self.count + more) * 4 / 3 + 1;
        if wanted <= self.slots.len() {
            return;
        }
        let wanted = match wanted.next_power_of_two() {
            few if few <= FEW => FEW,
            many => many.max(MANY),
        };
        let slots = std::mem::replace(&mut self.slots, vec![[0; 4]; wanted]);
        for slot in slots.into_iter().filter(is_taken) {
            self.put(slot);
        }
    }

    /// Puts in a key that is not there, where there is room.
    #[inline]
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot[0]);
        while is_taken(&self.slots[at]) {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Adds the contents of another one with the same fingerprint key.
    fn merge(&mut self, mut other: Self) {
        if self.count < other.count {
            std::mem::swap(self, &mut other);
        }
        self.make_room(0);
        let moved = self.keys.append(other.keys);
        self.others = self.others.wrapping_add(other.others);
        let mut new = Vec::new();
        for [first, second, sum, place] in other.slots.into_iter().filter(is_taken) {
            match self.find(Fingerprint { first, second }) {
                Ok(at) => self.raise(at, sum),
                Err(_) if self.count + new.len() >= self.limit => {
                    self.others = self.others.wrapping_add(sum);
                }
                Err(_) => new.push([first, second, sum, place + moved]),
            }
        }
        // They come in order: into a table without room for all they would crowd its front.
        self.make_room(new.len());
        self.count += new.len();
        for slot in new {
            self.put(slot);
        }
    }

    fn taken(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| is_taken(slot))
    }
}

/// Keys with their lengths before them, in pieces: growing copies nothing, and needs one size of memory.
#[derive(Clone, Debug, Default)]
struct Keys(Vec<Vec<u64>>);

/// Words of a piece.
const PIECE: usize = 8192;

impl Keys {
    /// Adds a key; returns its position, which is never 0. Keys are truncated to the size of a
    /// block.
    fn push(&mut self, key: &[u64]) -> u64 {
        let key = key.get(..PIECE - 1).unwrap_or(key);
        if self.0.last().is_none_or(|piece| piece.len() + 1 + key.len() > PIECE) {
            self.0.push(Vec::with_capacity(PIECE));
        }
        let number = self.0.len() - 1;
        let piece = &mut self.0[number];
        let place = number * PIECE + piece.len() + 1;
        piece.push(key.len() as u64);
        piece.extend_from_slice(key);
        place as u64
    }

    /// Appends the contents of another one; returns the offset of its positions.
    fn append(&mut self, mut other: Self) -> u64 {
        let moved = self.0.len() * PIECE;
        self.0.append(&mut other.0);
        moved as u64
    }

    fn at(&self, place: u64) -> &[u64] {
        let find = || {
            let at = (place as usize).checked_sub(1)?;
            let (&len, words) = self.0.get(at / PIECE)?.get(at % PIECE..)?.split_first()?;
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

    /// Keys and sums; first those without a key.
    fn rows(tally: &Tally) -> Vec<(Option<Vec<u64>>, u64)> {
        let rows = tally.clone().finish();
        let mut all: Vec<_> = (0..rows.len())
            .filter_map(|row| rows.get(row))
            .map(|(key, sum)| (key.map(<[u64]>::to_vec), sum))
            .collect();
        all.sort();
        all
    }

    /// Keys of 0 to 4 words, half of which come often.
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
    fn as_a_map_would_and_merged_as_one() {
        let one = Tally::default();
        for counts in [[30_000, 30_000, 30_000], [0, 30_000, 10], [10, 0, 30_000], [30_000, 0, 0]] {
            merged(vec![one.clone(), one.clone(), one.clone()], &counts);
        }
    }

    #[test]
    fn merged_where_fingerprints_are_made_otherwise() {
        merged(vec![Tally::default(), Tally::default()], &[20_000, 30_000]);
    }

    #[test]
    fn keys_beyond_the_limit_are_counted_together() {
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
    fn keys_are_cut_to_a_piece() {
        let mut tally = Tally::default();
        add(&mut tally, &vec![7; PIECE + 5]);
        add(&mut tally, &[]);
        assert_eq!(rows(&tally), [(Some(vec![]), 1), (Some(vec![7; PIECE - 1]), 1)]);
    }

    #[test]
    fn the_largest_come_with_their_equals() {
        let mut tally = Tally::default();
        for key in 0..2000_u64 {
            tally.key().push(key);
            tally.add(key / 100);
        }
        let mut rows = tally.finish();
        for (first, brought, least) in [(0, 0, 0), (1, 100, 19), (100, 100, 19), (150, 200, 18)] {
            assert_eq!(rows.bring_largest(first), brought);
            assert!(rows.sums().take(brought).all(|sum| sum >= least));
        }
        assert_eq!(rows.bring_largest(5000), 2000);
    }
}
