//! The measurement: N keys into a fresh map, all looked up, as many absent ones looked up, all removed.
//!
//! What else runs on the machine only ever adds time. So each figure is the least of many turns, and all maps take each
//! turn one after another, so that a slow minute is slow for all. Every other turn goes the other way round: no map always
//! has the memory that the same other one left.
//!
//! Searches in maps that are larger than the second cache wait for one that other machines use, too, and may take twice as
//! long from one millisecond to the next. So they are measured several times over in each turn; those in smaller maps
//! are not, as processors learn by heart how they branch. For the same reason the pass that brings a map into the cache goes
//! the other way round.

use std::hint::black_box;
use std::time::Instant;

use super::maps::Map;
use crate::memory::bytes_of;

/// Figures of one map at one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes an entry, the map itself included.
    pub(super) bytes: f64,
    /// Nanoseconds an operation: insert, found, absent, remove.
    pub(super) nanos: [f64; 4],
}

/// The keys: in the order of insertion; in the order of lookup and removal; and absent ones.
pub(super) struct Keys<'k, Q: ?Sized> {
    pub(super) present: Vec<&'k Q>,
    pub(super) shuffled: Vec<&'k Q>,
    pub(super) absent: Vec<&'k Q>,
}

/// Several maps of one kind, worked on together.
struct Set<M> {
    maps: Vec<M>,
}

/// Lookups that no processor learns by heart.
const UNLEARNT: usize = 20_000;

/// Times at most that all keys are looked up in a turn, with the clock; the least counts.
const PASSES: usize = 5;

/// Looks up the keys in all maps; returns how many were found. Not inlined: one loop for all
/// callers.
#[inline(never)]
fn find_all<Q: ?Sized, M: Map<Q>>(set: &Set<M>, keys: &[&Q]) -> usize {
    set.maps.iter().map(|map| keys.iter().filter(|k| map.find(k)).count()).sum()
}

/// The same, with the least nanoseconds that it took in several passes.
fn find_timed<Q: ?Sized, M: Map<Q>>(set: &Set<M>, keys: &[&Q]) -> (usize, f64) {
    // One untimed pass warms the cache. It uses the opposite order: a branch predictor that has
    // seen all keys in this order would know the next ten thousand searches, unlike in practice.
    let other_way: Vec<_> = keys.iter().rev().copied().collect();
    let found = black_box(find_all(set, &other_way));
    let mut least = f64::INFINITY;
    for _ in 0..(keys.len() / UNLEARNT).clamp(1, PASSES) {
        let start = Instant::now();
        let again = find_all(set, keys);
        least = least.min(start.elapsed().as_nanos() as f64);
        assert!(again == found, "a map lost keys");
    }
    (found, least)
}

/// One turn, with `copies` maps side by side.
pub(super) fn turn<Q: ?Sized, M: Map<Q>>(keys: &Keys<'_, Q>, copies: usize) -> Cost {
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

/// The same round after round through all maps, one key at a time: with many maps no operation finds its memory in
/// the cache.
pub(super) fn rounds<Q: ?Sized, M: Map<Q>>(keys: &Keys<'_, Q>, copies: usize) -> Cost {
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
pub(super) type Turn<'f> = (&'static str, Box<dyn FnMut() -> Cost + 'f>);

/// The least of each figure over `turns`, for all maps in turn.
pub(super) fn least(mut maps: Vec<Turn<'_>>, turns: usize) -> Vec<(&'static str, Cost)> {
    let mut best: Vec<Option<Cost>> = vec![None; maps.len()];
    for number in 0..turns {
        for at in 0..maps.len() {
            let at = if number % 2 == 0 { at } else { maps.len() - 1 - at };
            let (cost, best) = (maps[at].1(), &mut best[at]);
            let least = best.get_or_insert(cost);
            for (least, nanos) in least.nanos.iter_mut().zip(cost.nanos) {
                *least = least.min(nanos);
            }
        }
    }
    let names = maps.iter().map(|(name, _)| *name);
    names.zip(best).filter_map(|(name, cost)| Some((name, cost?))).collect()
}
