//! A chained dictionary, as older analysers have: used for comparison only.
//!
//! A prime number of buckets, each a list of pointers to entries, each entry allocated by itself with its key in
//! another allocation. At an average of three entries per bucket the number of buckets doubles; each insertion or removal
//! then moves eight chains. All keys are stored as bytes. The hash is keyed.

use std::hash::{BuildHasher, RandomState};

/// Initial number of buckets.
const BUCKETS: usize = 17;

/// Average number of entries per bucket at which the number of buckets doubles.
const DENSITY: usize = 3;

/// Number of chains moved per insertion or removal.
const STEP: usize = 8;

struct Entry {
    hash: u64,
    key: Box<[u8]>,
    value: u64,
}

/// A list is allocated with its first entry, and grows by ten pointers.
type Chain = Option<Box<Vec<Box<Entry>>>>;

/// The dictionary.
#[derive(Default)]
pub(super) struct Chained {
    buckets: Vec<Chain>,
    /// The table of twice the size, while chains move to it.
    larger: Vec<Chain>,
    /// Number of chains moved so far.
    moved: usize,
    len: usize,
    hasher: RandomState,
}

fn prime_from(mut n: usize) -> usize {
    while (2..).take_while(|d| d * d <= n).any(|d| n.is_multiple_of(d)) {
        n += 1;
    }
    n
}

fn empty(buckets: usize) -> Vec<Chain> {
    (0..buckets).map(|_| None).collect()
}

impl Chained {
    fn chain(&self, hash: u64) -> &Chain {
        let at = (hash % self.buckets.len() as u64) as usize;
        if at < self.moved {
            return &self.larger[(hash % self.larger.len() as u64) as usize];
        }
        &self.buckets[at]
    }

    fn chain_mut(&mut self, hash: u64) -> &mut Chain {
        let at = (hash % self.buckets.len() as u64) as usize;
        if at < self.moved {
            let at = (hash % self.larger.len() as u64) as usize;
            return &mut self.larger[at];
        }
        &mut self.buckets[at]
    }

    fn step(&mut self) {
        if self.larger.is_empty() {
            return;
        }
        for _ in 0..STEP {
            if self.moved == self.buckets.len() {
                self.buckets = core::mem::take(&mut self.larger);
                self.moved = 0;
                return;
            }
            for entry in self.buckets[self.moved].take().into_iter().flat_map(|chain| *chain) {
                let at = (entry.hash % self.larger.len() as u64) as usize;
                push(&mut self.larger[at], entry);
            }
            self.moved += 1;
        }
    }

    pub(super) fn insert(&mut self, key: &[u8], value: u64) {
        if self.buckets.is_empty() {
            self.buckets = empty(BUCKETS);
        }
        self.step();
        let hash = self.hasher.hash_one(key);
        let same = |e: &&mut Box<Entry>| e.hash == hash && *e.key == *key;
        if let Some(entry) = self.chain_mut(hash).iter_mut().flat_map(|c| c.iter_mut()).find(same) {
            entry.value = value;
            return;
        }
        push(self.chain_mut(hash), Box::new(Entry { hash, key: key.into(), value }));
        self.len += 1;
        if self.larger.is_empty() && self.len > DENSITY * self.buckets.len() {
            self.larger = empty(prime_from(2 * self.buckets.len() + 1));
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<u64> {
        if self.buckets.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let mut chain = self.chain(hash).iter().flat_map(|c| c.iter());
        chain.find(|e| e.hash == hash && *e.key == *key).map(|e| e.value)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<u64> {
        if self.buckets.is_empty() {
            return None;
        }
        self.step();
        let hash = self.hasher.hash_one(key);
        let chain = self.chain_mut(hash).as_mut()?;
        let at = chain.iter().position(|e| e.hash == hash && *e.key == *key)?;
        let entry = chain.remove(at);
        self.len -= 1;
        Some(entry.value)
    }
}

fn push(chain: &mut Chain, entry: Box<Entry>) {
    let chain = chain.get_or_insert_with(|| Box::new(Vec::with_capacity(10)));
    chain.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_map_through_growth() {
        let mut map = Chained::default();
        for i in 0..2000_u64 {
            map.insert(&i.to_le_bytes(), i);
            map.insert(&(i / 2).to_le_bytes(), i / 2);
        }
        assert_eq!(map.len, 2000);
        for i in 0..2000_u64 {
            assert_eq!(map.get(&i.to_le_bytes()), Some(i));
            assert_eq!(map.remove(&i.to_le_bytes()), Some(i));
            assert_eq!(map.get(&i.to_le_bytes()), None);
        }
        assert_eq!(map.remove(b"none"), None);
    }
}
