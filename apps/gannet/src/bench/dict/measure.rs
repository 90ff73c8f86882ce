//! The measurement: N keys into a fresh map, all looked up, as many absent ones looked up, all removed.
//!
//! What else runs on the machine only ever adds time. So each figure is the least of many turns, and all maps take each
//! turn one after another, so that a slow minute is slow for all.

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

/// What is looked up: the keys, in the order they are inserted; the order they are looked up and removed in; absent ones.
pub(super) struct Keys<'k, Q: ?Sized> {
    pub(super) present: Vec<&'k Q>,
    pub(super) shuffled: Vec<&'k Q>,
    pub(super) absent: Vec<&'k Q>,
}

/// Several maps of one kind, worked on together.
struct Set<M> {
    maps: Vec<M>,
}

/// How many of the keys are found, in all maps. Not inlined: one loop, whoever asks.
#[inline(never)]
fn find_all<Q: ?Sized, M: Map<Q>>(set: &Set<M>, keys: &[&Q]) -> usize {
    set.maps.iter().map(|map| keys.iter().filter(|k| map.find(k)).count()).sum()
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
    // Once without the clock: what is in the cache is then what searches left there, not what insertions did.
    black_box(find_all(&set, &keys.shuffled));
    let start = Instant::now();
    let mut right = find_all(&set, &keys.shuffled);
    nanos[1] = per(start);
    let start = Instant::now();
    right += copies * keys.absent.len() - find_all(&set, &keys.absent);
    nanos[2] = per(start);
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
    for _ in 0..turns {
        for ((_, turn), best) in maps.iter_mut().zip(&mut best) {
            let cost = turn();
            let least = best.get_or_insert(cost);
            for (least, nanos) in least.nanos.iter_mut().zip(cost.nanos) {
                *least = least.min(nanos);
            }
        }
    }
    let names = maps.iter().map(|(name, _)| *name);
    names.zip(best).filter_map(|(name, cost)| Some((name, cost?))).collect()
}
