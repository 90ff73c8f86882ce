//! Keys crafted to collide.

use std::hash::BuildHasher;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use gannet_dict::{Dict, KeyedHash, TableHash};

use super::mix;

/// The dictionary's hash with a fixed key, which an attacker knows.
#[derive(Clone, Copy, Default)]
struct Unkeyed;

/// The fixed key.
const FIXED_KEY: u64 = 0x243f_6a88_85a3_08d3;

static SHARED: SharedSeed = SharedSeed::from_u64(FIXED_KEY);

impl BuildHasher for Unkeyed {
    type Hasher = FoldHasher<'static>;

    fn build_hasher(&self) -> FoldHasher<'static> {
        FoldHasher::with_seed(FIXED_KEY, &SHARED)
    }
}

impl TableHash for Unkeyed {}

/// Pairs of numbers with the same hash without a key: the first half cancels the seed, and the rest
/// is multiplied by zero.
fn crafted(i: u64) -> (u64, u64) {
    (FIXED_KEY, i)
}

fn random_pair(i: u64) -> (u64, u64) {
    (mix(i), mix(!i))
}

/// Nanoseconds per key to insert and to find `count` keys.
fn time<S: TableHash + Default>(count: u64, key: impl Fn(u64) -> (u64, u64)) -> [f64; 2] {
    let mut dict: Dict<(u64, u64), u64, S> = Dict::default();
    let per = |start: Instant| start.elapsed().as_nanos() as f64 / count as f64;
    let start = Instant::now();
    for i in 0..count {
        dict.insert(black_box(key(i)), i);
    }
    let insert = per(start);
    let start = Instant::now();
    let found = (0..count).filter(|i| dict.contains_key(black_box(&key(*i)))).count() as u64;
    assert!(found == count, "the dictionary lost keys");
    [insert, per(start)]
}

/// Prints the cost of crafted keys with a keyed hash, and of fewer ones with the fixed key.
pub(super) fn run(out: &mut impl Write, count: usize, turns: usize) -> std::io::Result<()> {
    let mut best = [[f64::INFINITY; 2]; 2];
    for _ in 0..turns.clamp(1, 5) {
        let costs = [
            time::<KeyedHash>(count as u64, random_pair),
            time::<KeyedHash>(count as u64, crafted),
        ];
        for (best, cost) in best.iter_mut().flatten().zip(costs.iter().flatten()) {
            *best = best.min(*cost);
        }
    }
    let [chance, flood] = best;
    let few = count.min(4000);
    let [insert, found] = time::<Unkeyed>(few as u64, crafted);
    writeln!(out, "\nns with {count} keys of 16 bytes: insert, found")?;
    writeln!(out, "chosen by chance            {:>10.1} {:>10.1}", chance[0], chance[1])?;
    writeln!(out, "crafted to collide          {:>10.1} {:>10.1}", flood[0], flood[1])?;
    writeln!(out, "{few} of them, hash without key {insert:>7.1} {found:>10.1}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crafted_keys_collide_only_without_a_secret_key() {
        let hashes = |hash: &dyn Fn(u64) -> u64| {
            (0..1000).map(hash).collect::<std::collections::HashSet<_>>().len()
        };
        assert_eq!(hashes(&|i| Unkeyed.hash_one(crafted(i))), 1);
        assert_eq!(hashes(&|i| KeyedHash.hash_one(crafted(i))), 1000);
    }
}
