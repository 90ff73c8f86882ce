//! Sums by key, for millions of them a second.
//!
//! A key is a few words; whoever counts writes them where the tally keeps those that wait, so that
//! nothing is copied before a key is new. Keys are looked up many at a time: the processor then waits
//! for the memory of many of them at once instead of for one after the other.
//!
//! Sums and keys lie in pieces of memory that never move, a sum, a length and the words; an
//! open-addressed index of hashes leads there. Hashes are keyed by a random number, so that nobody can make them meet.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Keys that are told apart; what comes after them is counted together.
pub const MAX_KEYS: usize = 16 << 20;

/// Keys that wait to be looked up.
const WAITING: usize = 256;
/// Words of keys that make them be looked up, however few they are.
const WAITING_WORDS: usize = 1 << 14;

/// Sums by key.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    table: Table,
    /// Words of the keys that wait.
    words: Vec<u64>,
    /// Where the key that is being written begins.
    start: usize,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug)]
struct Table {
    /// Hashes' upper halves, and where the entry stands, plus one; 0 for none. The length is a power
    /// of two, more than half of it free.
    index: Vec<u64>,
    entries: Entries,
    keys: usize,
    others: u64,
    seeds: [u64; 2],
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    hash: u64,
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

    /// Adds so much under the key whose words were written since the last time.
    #[inline(always)]
    pub fn add(&mut self, amount: u64) {
        let hash = hash(self.table.seeds, self.words.get(self.start..).unwrap_or_default());
        let (start, end) = (self.start as u32, self.words.len() as u32);
        self.waiting.push(Waiting { hash, amount, start, end });
        self.start = self.words.len();
        if self.waiting.len() >= WAITING || self.words.len() >= WAITING_WORDS {
            self.settle();
        }
    }

    /// Looks up what waits.
    #[inline(never)]
    fn settle(&mut self) {
        // What each will read is read ahead, without a question that depends on it.
        let mut places = [0; WAITING];
        for (place, waiting) in places.iter_mut().zip(&self.waiting) {
            *place = self.table.glance(waiting.hash);
        }
        let sums = places.iter().fold(0, |all, place| all ^ self.table.entries.glance(*place));
        std::hint::black_box(sums);
        for waiting in &self.waiting {
            let range = waiting.start as usize..waiting.end as usize;
            let key = self.words.get(range).unwrap_or_default();
            self.table.add(waiting.hash, key, waiting.amount);
        }
        self.waiting.clear();
        self.words.clear();
        self.start = 0;
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &mut Self) {
        self.settle();
        other.settle();
        for (key, sum) in other.table.rows() {
            self.table.add(hash(self.table.seeds, key), key, sum);
        }
        self.table.others = self.table.others.wrapping_add(other.table.others);
    }

    /// Ends adding up: keys and their sums in the order in which they were first seen, and the sum of
    /// those that found no room.
    pub fn finish(&mut self) -> (impl Iterator<Item = (&[u64], u64)>, u64) {
        self.settle();
        (self.table.rows(), self.table.others)
    }
}

impl Default for Table {
    fn default() -> Self {
        let state = RandomState::default();
        Self {
            index: vec![0; 4096],
            entries: Entries::default(),
            keys: 0,
            others: 0,
            seeds: [state.hash_one(1), state.hash_one(2)],
            limit: MAX_KEYS,
        }
    }
}

impl Table {
    #[inline]
    fn add(&mut self, hash: u64, key: &[u64], amount: u64) {
        match self.find(hash, key) {
            Ok(place) => {
                let sum = self.entries.sum(place);
                *sum = sum.wrapping_add(amount);
            }
            Err(_) if self.keys >= self.limit => self.others = self.others.wrapping_add(amount),
            Err(free) => self.insert(free, hash, key, amount),
        }
    }

    /// Where the entry of a hash most likely is, plus one; 0 for none.
    #[inline]
    fn glance(&self, hash: u64) -> usize {
        (self.index[hash as usize & (self.index.len() - 1)] & !TAG) as usize
    }

    /// Where a key's entry is, or else the free place for it in the index.
    #[inline]
    fn find(&self, hash: u64, key: &[u64]) -> Result<usize, usize> {
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let found = self.index[at];
            if found == 0 {
                return Err(at);
            }
            if (found ^ hash) & TAG == 0 {
                let place = (found & !TAG) as usize - 1;
                if self.entries.entry(place).is_some_and(|(_, words)| same(words, key)) {
                    return Ok(place);
                }
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(never)]
    fn insert(&mut self, free: usize, hash: u64, key: &[u64], amount: u64) {
        let place = self.entries.push(amount, key);
        self.index[free] = (hash & TAG) | (place as u64 + 1);
        self.keys += 1;
        if self.keys * 2 >= self.index.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mut index = vec![0; self.index.len() * 4];
        let mask = index.len() - 1;
        for (place, _, key) in self.entries.iter() {
            let hash = hash(self.seeds, key);
            let mut at = hash as usize & mask;
            while index[at] != 0 {
                at = (at + 1) & mask;
            }
            index[at] = (hash & TAG) | (place as u64 + 1);
        }
        self.index = index;
    }

    fn rows(&self) -> impl Iterator<Item = (&[u64], u64)> {
        self.entries.iter().map(|(_, sum, key)| (key, sum))
    }
}

/// Whether two keys are; four words, which most names have, at once.
#[inline]
fn same(a: &[u64], b: &[u64]) -> bool {
    match (a, b) {
        ([a, b, c, d], [e, f, g, h]) => (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0,
        _ => a == b,
    }
}

/// The half of a hash that the index has; the other half says where an entry stands. There are far
/// fewer than 2^32 words of entries: as many keys as there may be, of 256 words each.
const TAG: u64 = 0xffff_ffff << 32;

/// Sums, lengths of keys and keys, in pieces: growing copies nothing, and needs one size of memory.
#[derive(Clone, Debug, Default)]
struct Entries(Vec<Vec<u64>>);

const PIECE: usize = 8192;

impl Entries {
    /// Adds an entry; its place. Keys are cut to what a piece has room for.
    fn push(&mut self, sum: u64, key: &[u64]) -> usize {
        let key = key.get(..PIECE - 2).unwrap_or(key);
        if self.0.last().is_none_or(|piece| piece.len() + 2 + key.len() > PIECE) {
            self.0.push(Vec::with_capacity(PIECE));
        }
        let number = self.0.len() - 1;
        let piece = &mut self.0[number];
        let at = piece.len();
        piece.extend_from_slice(&[sum, key.len() as u64]);
        piece.extend_from_slice(key);
        number * PIECE + at
    }

    /// Some word of the entry before a place: its memory is wanted soon.
    #[inline]
    fn glance(&self, place: usize) -> u64 {
        let at = place.saturating_sub(1);
        self.0.get(at / PIECE).and_then(|piece| piece.get(at % PIECE)).copied().unwrap_or(0)
    }

    #[inline]
    fn entry(&self, place: usize) -> Option<(u64, &[u64])> {
        let (&[sum, len], keys) =
            self.0.get(place / PIECE)?.get(place % PIECE..)?.split_first_chunk()?;
        Some((sum, keys.get(..len as usize)?))
    }

    #[inline]
    fn sum(&mut self, place: usize) -> &mut u64 {
        &mut self.0[place / PIECE][place % PIECE]
    }

    /// Place, sum and key of each, in the order in which they came.
    fn iter(&self) -> impl Iterator<Item = (usize, u64, &[u64])> {
        self.0.iter().enumerate().flat_map(|(number, piece)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let (&[sum, len], keys) = piece.get(at..)?.split_first_chunk()?;
                let key = keys.get(..len as usize)?;
                let place = number * PIECE + at;
                at += 2 + key.len();
                Some((place, sum, key))
            })
        })
    }
}

/// A keyed hash by folded multiplication, two words a step.
#[inline]
pub fn hash([first, by]: [u64; 2], key: &[u64]) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let (pairs, last) = key.as_chunks::<2>();
    let mut hash = first ^ key.len() as u64;
    for [a, b] in pairs {
        hash = fold(hash ^ a, by ^ b);
    }
    if let [a] = last {
        hash = fold(hash ^ a, by);
    }
    fold(hash ^ by, first)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn add(tally: &mut Tally, key: &[u64]) {
        tally.key().extend_from_slice(key);
        tally.add(1);
    }

    fn rows(tally: &mut Tally) -> Vec<(Vec<u64>, u64)> {
        let (rows, _) = tally.finish();
        let mut rows: Vec<_> = rows.map(|(key, count)| (key.to_vec(), count)).collect();
        rows.sort();
        rows
    }

    #[test]
    fn as_a_map_would_and_merged_as_one() {
        let keys = |seed: u64| {
            (0..30_000_u64).map(move |n| {
                let x = (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
                (0..x % 5).map(|i| x / 3 + i).collect::<Vec<u64>>()
            })
        };
        let mut map: HashMap<Vec<u64>, u64> = HashMap::new();
        let (mut one, mut two) = (Tally::default(), Tally::default());
        for key in keys(1) {
            add(&mut one, &key);
            *map.entry(key).or_default() += 1;
        }
        for key in keys(2) {
            add(&mut two, &key);
            *map.entry(key).or_default() += 1;
        }
        one.merge(&mut two);
        let mut expected: Vec<_> = map.into_iter().collect();
        expected.sort();
        assert_eq!(rows(&mut one), expected);
    }

    #[test]
    fn keys_beyond_the_limit_are_counted_together() {
        let mut tally = Tally::default();
        tally.table.limit = 2;
        for key in [1, 2, 3, 1, 4] {
            add(&mut tally, &[key]);
        }
        assert_eq!(rows(&mut tally), [(vec![1], 2), (vec![2], 1)]);
        assert_eq!(tally.finish().1, 2);
    }
}
