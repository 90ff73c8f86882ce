//! Lookups in random order, so that most miss the cache: one by one and in batches.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use super::maps::{Brown, Clustered};
use super::mix;

/// Keys given to one call of `get_many`, as many as a batch of packets has.
const BATCH: usize = 256;

/// Prints nanoseconds a lookup.
pub(super) fn run(out: &mut impl Write, keys: &[u64], turns: usize) -> std::io::Result<()> {
    let dict: Clustered<u64> = keys.iter().map(|k| (*k, 7)).collect();
    let brown: Brown<u64> = keys.iter().map(|k| (*k, 7)).collect();
    let mut order = keys.to_vec();
    order.sort_by_key(|k| mix(!*k));
    let mut least = [f64::INFINITY; 3];
    for _ in 0..turns {
        let mut found = Vec::with_capacity(BATCH);
        let mut turn = |at: usize, look: &mut dyn FnMut(&[u64]) -> usize| {
            let start = Instant::now();
            let right: usize = order.chunks(BATCH).map(&mut *look).sum();
            assert!(right == order.len(), "a map lost keys");
            least[at] = least[at].min(start.elapsed().as_nanos() as f64 / right as f64);
        };
        turn(0, &mut |keys| keys.iter().filter(|k| brown.get(black_box(*k)).is_some()).count());
        turn(1, &mut |keys| keys.iter().filter(|k| dict.get(black_box(*k)).is_some()).count());
        turn(2, &mut |keys| {
            found.clear();
            dict.get_many(black_box(keys), &mut found);
            found.iter().filter(|v| v.is_some()).count()
        });
    }
    let [brown, single, many] = least;
    writeln!(out, "\nns of a lookup among {} entries, keys in no order", order.len())?;
    writeln!(out, "hashbrown get {brown:.1}, clustered get {single:.1}, get_many {many:.1}")?;
    writeln!(out, "get_many beside hashbrown's get: {:.2}", many / brown)?;
    writeln!(out, "{:?}", dict.stats())?;
    out.flush()
}
