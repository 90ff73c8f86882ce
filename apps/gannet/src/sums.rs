//! Counts of packets and bytes: total, and by host, pair of hosts or protocol.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Maximum number of keys that are counted separately; packets of further keys add to `others`.
const MAX_KEYS: usize = 1 << 20;
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    /// Adds a packet.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// Counts by key.
#[derive(Debug)]
pub(crate) struct Tally<K> {
    sums: HashMap<K, Sum, RandomState>,
    /// Packets of keys beyond the limit.
    pub(crate) others: Sum,
}

impl<K: Hash + Eq + Copy + Ord> Tally<K> {
    /// Adds a packet.
    pub(crate) fn add(&mut self, key: K, bytes: u64) {
        let is_full = self.sums.len() >= MAX_KEYS && !self.sums.contains_key(&key);
        if is_full { self.others.add(bytes) } else { self.sums.entry(key).or_default().add(bytes) }
    }

    /// The keys with the most bytes.
    pub(crate) fn top(&self, count: usize) -> Vec<(K, Sum)> {
        let mut all: Vec<_> = self.sums.iter().map(|(key, sum)| (*key, *sum)).collect();
        all.sort_by_key(|(key, sum)| (std::cmp::Reverse(sum.bytes), *key));
        all.truncate(count);
        all
    }
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { sums: HashMap::default(), others: Sum::default() }
    }
}
