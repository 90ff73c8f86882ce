//! The measurement: N keys into fresh maps, all looked up, as many absent ones looked up, all removed.
//!
//! Small maps are measured many at a time, and each step takes maps and keys in an order without a pattern, which is another
//! one in each turn: processors learn how a few thousand searches branch if those come in the same order again. The passes
//! before the clock starts, which bring maps into the cache, take yet another order. `black_box` hides each key, so that no
//! work is done for several operations at once.
//!
//! Other programs of the machine only ever add time, so the least of many turns is shown, with the median. All maps take each
//! turn one after another, so that a slow minute is slow for all. Every other turn goes the other way round: no map
//! always has the memory that the same other one left. Freed memory stays with the process: the kernel's work is not
//! the maps'.

use std::hint::black_box;
use std::time::Instant;

use super::maps::Map;
use super::mix;
use crate::memory::{bytes_of, while_freed_stays};

/// Figures of one map at one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes an entry, the map itself included.
    pub(super) bytes: f64,
    /// Nanoseconds an operation: insert, found, absent, remove.
    pub(super) nanos: [f64; 4],
    /// The same, in the median of turns.
    pub(super) medians: [f64; 4],
}

/// The keys of the map, and as many others.
pub(super) struct Keys<'k, Q: ?Sized> {
    pub(super) present: Vec<&'k Q>,
    pub(super) absent: Vec<&'k Q>,
}

/// Lookups that no processor learns by heart.
const UNLEARNT: usize = 20_000;

/// Times at most that all keys are looked up in a turn, with the clock; the least counts.
const PASSES: usize = 5;

/// Each key of each map, without order: the number of the map and the key.
fn schedule<'k, Q: ?Sized>(keys: &[&'k Q], copies: usize, seed: usize) -> Vec<(usize, &'k Q)> {
    let pairs = (0..copies).flat_map(|map| keys.iter().map(move |key| (map, *key)));
    let mut pairs: Vec<(usize, &Q)> = pairs.collect();
    // The shuffle of Fisher and Yates.
    for at in (1..pairs.len()).rev() {
        let drawn = u128::from(mix((seed as u64) << 40 ^ at as u64)) * (at as u128 + 1);
        pairs.swap(at, (drawn >> 64) as usize);
    }
    pairs
}

/// Looks all of them up; returns how many were found. Not inlined: one loop for all callers.
#[inline(never)]
fn find_all<Q: ?Sized, M: Map<Q>>(maps: &[M], schedule: &[(usize, &Q)]) -> usize {
    schedule.iter().filter(|(map, key)| maps[*map].find(black_box(key))).count()
}

/// The same, with the least nanoseconds that it took in several passes.
fn find_timed<Q: ?Sized, M: Map<Q>>(maps: &[M], keys: &[&Q], seed: usize) -> (usize, f64) {
    let found = find_all(maps, &schedule(keys, maps.len(), seed));
    let order = schedule(keys, maps.len(), seed + 1);
    let mut least = f64::INFINITY;
    for _ in 0..(keys.len() / UNLEARNT).clamp(1, PASSES) {
        let start = Instant::now();
        let again = find_all(maps, &order);
        least = least.min(start.elapsed().as_nanos() as f64);
        assert!(again == found, "a map lost keys");
    }
    (found, least)
}

#[inline(never)]
fn insert_all<Q: ?Sized, M: Map<Q>>(maps: &mut [M], schedule: &[(usize, &Q)]) {
    schedule.iter().for_each(|(map, key)| maps[*map].put(black_box(key), 7));
}

#[inline(never)]
fn remove_all<Q: ?Sized, M: Map<Q>>(maps: &mut [M], schedule: &[(usize, &Q)]) -> usize {
    schedule.iter().filter(|(map, key)| maps[*map].take(black_box(key))).count()
}

/// One turn, with `copies` maps side by side; `number` decides the orders.
pub(super) fn turn<Q: ?Sized, M: Map<Q>>(keys: &Keys<'_, Q>, copies: usize, number: usize) -> Cost {
    let operations = (copies * keys.present.len()) as f64;
    let per = |start: Instant| start.elapsed().as_nanos() as f64 / operations;
    let seed = 8 * number;
    let mut maps: Vec<M> = (0..copies).map(|_| M::default()).collect();
    let order = schedule(&keys.present, copies, seed);
    let ((), bytes) = bytes_of(|| insert_all(&mut maps, &order));
    let nanos = while_freed_stays(|| {
        maps.iter_mut().for_each(|map| *map = M::default());
        let mut nanos = [0.0; 4];
        let start = Instant::now();
        insert_all(&mut maps, &order);
        nanos[0] = per(start);
        let (mut right, found) = find_timed(&maps, &keys.present, seed + 1);
        let (wrong, absent) = find_timed(&maps, &keys.absent, seed + 3);
        right += copies * keys.absent.len() - wrong;
        (nanos[1], nanos[2]) = (found / operations, absent / operations);
        let order = schedule(&keys.present, copies, seed + 5);
        let start = Instant::now();
        right += remove_all(&mut maps, &order);
        nanos[3] = per(start);
        assert!(right == copies * (2 * keys.present.len() + keys.absent.len()), "a map lost keys");
        nanos
    });
    Cost {
        bytes: bytes as f64 / operations + size_of::<M>() as f64 / keys.present.len() as f64,
        nanos,
        medians: nanos,
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
    let shuffled: Vec<&Q> = schedule(&keys.present, 1, 0).into_iter().map(|(_, key)| key).collect();
    let mut right = 0;
    let start = Instant::now();
    for key in &shuffled {
        right += maps.iter().filter(|map| map.find(black_box(key))).count();
    }
    nanos[1] = per(start);
    let start = Instant::now();
    for key in &keys.absent {
        right += maps.iter().filter(|map| !map.find(black_box(key))).count();
    }
    nanos[2] = per(start);
    let start = Instant::now();
    for key in &shuffled {
        right += maps.iter_mut().map(|map| map.take(black_box(key))).filter(|took| *took).count();
    }
    nanos[3] = per(start);
    assert!(right == copies * (2 * shuffled.len() + keys.absent.len()), "a map lost keys");
    Cost { bytes: f64::NAN, nanos, medians: nanos }
}

/// A function that measures one map in the turn of a number.
pub(super) type Turn<'f> = (&'static str, Box<dyn FnMut(usize) -> Cost + 'f>);

/// Each figure over `turns`, for all maps in turn: the least and the median.
pub(super) fn measure(mut maps: Vec<Turn<'_>>, turns: usize) -> Vec<(&'static str, Cost)> {
    let mut costs: Vec<Vec<Cost>> = maps.iter().map(|_| Vec::new()).collect();
    for number in 0..turns.max(1) {
        for at in 0..maps.len() {
            let at = if number % 2 == 0 { at } else { maps.len() - 1 - at };
            costs[at].push(maps[at].1(number));
        }
    }
    let names = maps.iter().map(|(name, _)| *name);
    let cost = |costs: Vec<Cost>| {
        let sorted = |of: usize| {
            let mut nanos: Vec<f64> = costs.iter().map(|cost| cost.nanos[of]).collect();
            nanos.sort_by(f64::total_cmp);
            nanos
        };
        let of = [0, 1, 2, 3].map(sorted);
        Some(Cost {
            bytes: costs.first()?.bytes,
            nanos: [0, 1, 2, 3].map(|at| of[at][0]),
            medians: [0, 1, 2, 3].map(|at| of[at][of[at].len() / 2]),
        })
    };
    names.zip(costs).filter_map(|(name, costs)| Some((name, cost(costs)?))).collect()
}
