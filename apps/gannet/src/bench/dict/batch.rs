//! Lookups in random order, so that most miss the cache: one by one and in batches.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use super::maps::{Brown, Clustered};
use super::mix;

/// Number of keys for one call of `get_many`: as many as a batch has packets.
const BATCH: usize = 256;

/// Prints nanoseconds per lookup.
pub(super) fn run(out: &mut impl Write, keys: &[u64], turns: usize) -> std::io::Result<()> {
    let dict: Clustered<u64> = keys.iter().map(|k| (*k, 7)).collect();
    let brown: Brown<u64> = keys.iter().map(|k| (*k, 7)).collect();
    let mut order = keys.to_vec();
    order.sort_by_key(|k| mix(!*k));
    let mut best = [f64::INFINITY; 3];
    for _ in 0..turns {
        let mut found = Vec::with_capacity(BATCH);
        let mut measure = |at: usize, find: &mut dyn FnMut(&[u64]) -> usize| {
            let start = Instant::now();
            let found_keys: usize = order.chunks(BATCH).map(&mut *find).sum();
            assert!(found_keys == order.len(), "a map lost keys");
            best[at] = best[at].min(start.elapsed().as_nanos() as f64 / found_keys as f64);
        };
        measure(0, &mut |keys| keys.iter().filter(|k| brown.get(black_box(*k)).is_some()).count());
        measure(1, &mut |keys| keys.iter().filter(|k| dict.get(black_box(*k)).is_some()).count());
        measure(2, &mut |keys| {
            found.clear();
            dict.get_many(black_box(keys), &mut found);
            found.iter().filter(|v| v.is_some()).count()
        });
    }
    let [brown, single, many] = best;
    writeln!(out, "\nns per lookup among {} entries, keys in random order", order.len())?;
    writeln!(out, "hashbrown get {brown:.1}, clustered get {single:.1}, get_many {many:.1}")?;
    writeln!(out, "get_many relative to hashbrown get: {:.2}", many / brown)?;
    writeln!(out, "{:?}", dict.stats())?;
    out.flush()
}
