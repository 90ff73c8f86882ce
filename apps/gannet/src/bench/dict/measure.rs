//! The measurement: N keys into a fresh map, all looked up, as many absent ones looked up, all removed.
//!
//! Other load on the machine only adds time. So each figure is the minimum of many rounds, and each round measures all maps
//! one after another, so that a slow minute is slow for all. Every second round runs in the opposite order, so that no map
//! always gets the memory that the same other map freed.
//!
//! Lookups in maps larger than the L2 cache wait for a cache that other machines share, and may take twice as long from one
//! millisecond to the next. So they are measured several times in each round; lookups in smaller maps are not, since branch
//! predictors learn them. For the same reason the pass that loads a map into the cache uses the opposite order.

use std::hint::black_box;
use std::time::Instant;

use super::maps::Map;
use crate::memory::bytes_of;

/// The cost of one map at one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes per entry, including the map itself.
    pub(super) bytes: f64,
    /// Nanoseconds per operation: insert, lookup of a present key, lookup of an absent key, remove.
    pub(super) nanos: [f64; 4],
}

/// The keys: in the order of insertion; in the order of lookup and removal; and absent ones.
pub(super) struct Keys<'k, Q: ?Sized> {
    pub(super) present: Vec<&'k Q>,
    pub(super) shuffled: Vec<&'k Q>,
    pub(super) absent: Vec<&'k Q>,
}

/// Several maps of one type, measured together.
struct Set<M> {
    maps: Vec<M>,
}

/// Number of lookups beyond which branch predictors do not learn the sequence.
const MIN_UNPREDICTED: usize = 20_000;

/// Maximum number of timed passes over all keys in a round; the minimum counts.
const MAX_PASSES: usize = 5;

/// Looks up the keys in all maps; returns how many were found. Not inlined: one loop for all
/// callers.
#[inline(never)]
fn find_all<Q: ?Sized, M: Map<Q>>(set: &Set<M>, keys: &[&Q]) -> usize {
    set.maps.iter().map(|map| keys.iter().filter(|k| map.find(k)).count()).sum()
}

/// Like [`find_all`], with the minimum nanoseconds of several passes.
fn find_timed<Q: ?Sized, M: Map<Q>>(set: &Set<M>, keys: &[&Q]) -> (usize, f64) {
    // One untimed pass warms the cache. It uses the opposite order: a branch predictor that has
    // seen all keys in this order would know the next ten thousand searches, unlike in practice.
    let reversed: Vec<_> = keys.iter().rev().copied().collect();
    let found = black_box(find_all(set, &reversed));
    let mut best_of = f64::INFINITY;
    for _ in 0..(keys.len() / MIN_UNPREDICTED).clamp(1, MAX_PASSES) {
        let start = Instant::now();
        let again = find_all(set, keys);
        best_of = best_of.min(start.elapsed().as_nanos() as f64);
        assert!(again == found, "a map lost keys");
    }
    (found, best_of)
}

/// One round with `copies` maps.
pub(super) fn round<Q: ?Sized, M: Map<Q>>(keys: &Keys<'_, Q>, copies: usize) -> Cost {
    let operations = (copies * keys.present.len()) as f64;
    let per = |start: Instant| start.elapsed().as_nanos() as f64 / operations;
    let mut set = Set { maps: (0..copies).map(|_| M::default()).collect() };
    let insert = |set: &mut Set<M>| {
        for map in &mut set.maps {
            keys.present.iter().for_each(|k| map.put(black_box(k), 7));
        }
    };
    let ((), bytes) = bytes_of(|| insert(&mut set));
    set.maps.iter_mut().for_each(|map| *map = M::default());
    let mut nanos = [0.0; 4];
    let start = Instant::now();
    insert(&mut set);
    nanos[0] = per(start);
    let (mut right, found) = find_timed(&set, &keys.shuffled);
    let (wrong, absent) = find_timed(&set, &keys.absent);
    right += copies * keys.absent.len() - wrong;
    (nanos[1], nanos[2]) = (found / operations, absent / operations);
    let start = Instant::now();
    for map in &mut set.maps {
        right += keys.shuffled.iter().filter(|k| map.take(black_box(k))).count();
    }
    nanos[3] = per(start);
    assert!(right == copies * (2 * keys.shuffled.len() + keys.absent.len()), "a map lost keys");
    Cost {
        bytes: bytes as f64 / operations + size_of::<M>() as f64 / keys.present.len() as f64,
        nanos,
    }
}

/// Like [`round`], but each operation goes through all maps, one key at a time: with many maps every operation misses the
/// cache.
pub(super) fn interleaved_round<Q: ?Sized, M: Map<Q>>(keys: &Keys<'_, Q>, copies: usize) -> Cost {
    let operations = (copies * keys.present.len()) as f64;
    let per = |start: Instant| start.elapsed().as_nanos() as f64 / operations;
    let mut maps: Vec<M> = (0..copies).map(|_| M::default()).collect();
    let mut nanos = [0.0; 4];
    let start = Instant::now();
    for key in &keys.present {
        maps.iter_mut().for_each(|map| map.put(black_box(key), 7));
    }
    nanos[0] = per(start);
    let mut right = 0;
    let start = Instant::now();
    for key in &keys.shuffled {
        right += maps.iter().filter(|map| map.find(black_box(key))).count();
    }
    nanos[1] = per(start);
    let start = Instant::now();
    for key in &keys.absent {
        right += maps.iter().filter(|map| !map.find(black_box(key))).count();
    }
    nanos[2] = per(start);
    let start = Instant::now();
    for key in &keys.shuffled {
        right += maps.iter_mut().map(|map| map.take(black_box(key))).filter(|took| *took).count();
    }
    nanos[3] = per(start);
    assert!(right == copies * (2 * keys.shuffled.len() + keys.absent.len()), "a map lost keys");
    Cost { bytes: f64::NAN, nanos }
}

/// A function that measures one map once.
pub(super) type Round<'f> = (&'static str, Box<dyn FnMut() -> Cost + 'f>);

/// The minimum of each figure over `rounds`, for all maps; each round measures all of them.
pub(super) fn best_of(mut maps: Vec<Round<'_>>, rounds: usize) -> Vec<(&'static str, Cost)> {
    let mut best: Vec<Option<Cost>> = vec![None; maps.len()];
    for number in 0..rounds {
        for at in 0..maps.len() {
            let at = if number % 2 == 0 { at } else { maps.len() - 1 - at };
            let (cost, best) = (maps[at].1(), &mut best[at]);
            let best_of = best.get_or_insert(cost);
            for (best_of, nanos) in best_of.nanos.iter_mut().zip(cost.nanos) {
                *best_of = best_of.min(nanos);
            }
        }
    }
    let names = maps.iter().map(|(name, _)| *name);
    names.zip(best).filter_map(|(name, cost)| Some((name, cost?))).collect()
}
