//! Bytes an entry and nanoseconds an operation, beside hashbrown and std, by size.
//!
//! `cargo run --release -p gannet-dict --example compare [KEYS]`: 8-byte keys and values, then the lines of the
//! file KEYS as byte strings. Inserts N keys into a fresh map, looks all up, looks as many absent ones up, removes
//! all; then batches and the distribution of single insertions at a million entries.
#![allow(clippy::print_stdout, unsafe_code)]

use core::hash::Hash;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gannet_dict::{ByteKey, Dict};

/// Counts what is allocated, each with the 8 bytes and the rounding to 16 of common allocators.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

fn real(layout: Layout) -> usize {
    (layout.size() + 8).next_multiple_of(16).max(32)
}

// SAFETY: hands every call to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(real(layout), Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(real(layout), Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

trait Map<K, Q: ?Sized>: Default {
    const NAME: &'static str;
    fn put(&mut self, key: &Q, value: u64);
    fn find(&self, key: &Q) -> bool;
    fn take(&mut self, key: &Q) -> bool;
}

macro_rules! map {
    ($map:ty, $key:ty, $query:ty, $name:literal, $own:expr) => {
        impl Map<$key, $query> for $map {
            const NAME: &'static str = $name;
            fn put(&mut self, key: &$query, value: u64) {
                let own: fn(&$query) -> $key = $own;
                self.insert(own(key), value);
            }
            fn find(&self, key: &$query) -> bool {
                self.get(key).is_some()
            }
            fn take(&mut self, key: &$query) -> bool {
                self.remove(key).is_some()
            }
        }
    };
}

type Brown<K> = hashbrown::HashMap<K, u64, foldhash::fast::RandomState>;
type Std<K> = std::collections::HashMap<K, u64>;

map!(Dict<u64, u64>, u64, u64, "clustered", |k| *k);
map!(Brown<u64>, u64, u64, "hashbrown", |k| *k);
map!(Std<u64>, u64, u64, "std", |k| *k);
map!(Dict<ByteKey, u64>, ByteKey, [u8], "clustered", ByteKey::new);
map!(Brown<Box<[u8]>>, Box<[u8]>, [u8], "hashbrown", |k| k.into());
map!(Std<Box<[u8]>>, Box<[u8]>, [u8], "std", |k| k.into());

fn measure<K, Q: ?Sized + Hash, M: Map<K, Q>>(keys: &[&Q], absent: &[&Q]) {
    let count = keys.len();
    let copies = (3_000_000 / count).clamp(1, 20_000);
    let nanos = |from: Instant| from.elapsed().as_nanos() as f64 / (copies * count) as f64;
    let mut maps: Vec<M> = (0..copies.min(2000)).map(|_| M::default()).collect();
    let rounds = copies.div_ceil(maps.len());
    let (mut insert, mut found, mut missed, mut remove) = (0.0, 0.0, 0.0, 0.0);
    let mut bytes = 0.0;
    for _ in 0..rounds {
        maps.iter_mut().for_each(|m| *m = M::default());
        let before = LIVE.load(Ordering::Relaxed);
        let start = Instant::now();
        for map in &mut maps {
            keys.iter().for_each(|k| map.put(black_box(*k), 7));
        }
        insert += nanos(start);
        let used = LIVE.load(Ordering::Relaxed) - before + maps.len() * size_of::<M>();
        bytes = used as f64 / (maps.len() * count) as f64;
        let start = Instant::now();
        for map in &maps {
            keys.iter().for_each(|k| assert!(map.find(black_box(*k))));
        }
        found += nanos(start);
        let start = Instant::now();
        for map in &maps {
            absent.iter().for_each(|k| assert!(!map.find(black_box(*k))));
        }
        missed += nanos(start);
        let start = Instant::now();
        for map in &mut maps {
            keys.iter().for_each(|k| assert!(map.take(black_box(*k))));
        }
        remove += nanos(start);
    }
    println!(
        "{count:>8} {:<10} {bytes:>8.1} {insert:>8.1} {found:>8.1} {missed:>8.1} {remove:>8.1}",
        M::NAME
    );
}

fn head(title: &str) {
    println!("\n{title}\n    size map        bytes/en   insert    found   absent   remove  (ns)");
}

fn mix(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn main() {
    head("8-byte keys, 8-byte values");
    let numbers: Vec<u64> = (0..1_000_000).map(mix).collect();
    let absent: Vec<u64> = (1_000_000..2_000_000).map(mix).collect();
    for size in [1, 2, 10, 100, 1000, 10_000, 100_000, 1_000_000] {
        let (keys, absent): (Vec<&u64>, Vec<&u64>) =
            (numbers[..size].iter().collect(), absent[..size].iter().collect());
        measure::<u64, u64, Dict<u64, u64>>(&keys, &absent);
        measure::<u64, u64, Brown<u64>>(&keys, &absent);
        measure::<u64, u64, Std<u64>>(&keys, &absent);
    }
    if let Some(text) = std::env::args().nth(1).and_then(|path| std::fs::read(path).ok()) {
        head("byte strings");
        let mut seen = std::collections::HashSet::new();
        let lines = text.split(|b| *b == b'\n').filter(|k| !k.is_empty());
        let keys: Vec<&[u8]> = lines.filter(|k| seen.insert(*k)).collect();
        let others: Vec<Vec<u8>> = keys.iter().map(|k| [k, b"\0".as_slice()].concat()).collect();
        let others: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
        for size in [1, 2, 10, 100, 1000, 10_000, 100_000] {
            let (keys, others) = (&keys[..size.min(keys.len())], &others[..size.min(keys.len())]);
            measure::<ByteKey, [u8], Dict<ByteKey, u64>>(keys, others);
            measure::<Box<[u8]>, [u8], Brown<Box<[u8]>>>(keys, others);
            measure::<Box<[u8]>, [u8], Std<Box<[u8]>>>(keys, others);
        }
    }
    latency(&numbers);
    batches(&numbers);
}

/// The distribution of single insertions.
fn latency(numbers: &[u64]) {
    let mut dict: Dict<u64, u64> = Dict::new();
    let mut brown: Brown<u64> = Brown::default();
    let quantiles = |mut times: Vec<u128>| {
        times.sort_unstable();
        [50.0, 99.0, 99.9, 99.99, 100.0]
            .map(|q| times[((times.len() - 1) as f64 * q / 100.0) as usize])
    };
    let timed = |mut insert: Box<dyn FnMut(u64) + '_>| {
        numbers
            .iter()
            .map(|k| {
                let start = Instant::now();
                insert(*k);
                start.elapsed().as_nanos()
            })
            .collect::<Vec<_>>()
    };
    println!("\nns of one insertion up to {} entries: 50, 99, 99.9, 99.99 %, worst", numbers.len());
    println!(
        "clustered {:?}",
        quantiles(timed(Box::new(|k| {
            black_box(dict.insert(k, k));
        })))
    );
    println!(
        "hashbrown {:?}",
        quantiles(timed(Box::new(|k| {
            black_box(brown.insert(k, k));
        })))
    );
}

/// Lookups in an order that defeats the cache.
fn batches(numbers: &[u64]) {
    let dict: Dict<u64, u64> = numbers.iter().map(|k| (*k, *k)).collect();
    let brown: Brown<u64> = numbers.iter().map(|k| (*k, *k)).collect();
    let mut order = numbers.to_vec();
    order.sort_unstable();
    let per = |start: Instant| start.elapsed().as_nanos() as f64 / order.len() as f64;
    let start = Instant::now();
    order.iter().for_each(|k| assert!(dict.get(black_box(k)).is_some()));
    let single = per(start);
    let start = Instant::now();
    let mut found = Vec::with_capacity(256);
    for keys in order.chunks(256) {
        found.clear();
        dict.get_many(keys, &mut found);
        assert!(black_box(&found).iter().all(Option::is_some));
    }
    let many = per(start);
    let start = Instant::now();
    order.iter().for_each(|k| assert!(brown.get(black_box(k)).is_some()));
    println!(
        "\nns of a lookup among {}: get {single:.1}, get_many {many:.1}, hashbrown's get {:.1}",
        order.len(),
        per(start)
    );
    println!("{:?}", dict.stats());
}
