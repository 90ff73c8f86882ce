use core::hash::Hasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;
use crate::table::SPLIT_AT;

/// Badly distributed hashes: only the top bits differ, and few of them.
#[derive(Default, Clone)]
struct Poor(u64);

impl Hasher for Poor {
    fn finish(&self) -> u64 {
        self.0 << 60
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(u64::from(*byte));
        }
    }
}

/// One hash for all keys.
#[derive(Default)]
struct Same;

impl Hasher for Same {
    fn finish(&self) -> u64 {
        u64::MAX
    }
    fn write(&mut self, _: &[u8]) {}
}

/// Hashes that are the same in every run and distributed like those of random keys.
#[derive(Default)]
struct Fixed(u64);

impl Hasher for Fixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mixed(self.0 ^ u64::from(*byte));
        }
    }
}

type FixedHash = core::hash::BuildHasherDefault<Fixed>;

type SameHash = core::hash::BuildHasherDefault<Same>;

type PoorHash = core::hash::BuildHasherDefault<Poor>;

/// Entries of large tests; fewer under Miri, which is some thousand times slower.
const MANY: u64 = if cfg!(miri) { 1_300 } else { 50_000 };

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u32),
    Remove(u16),
    Get(u16),
    InsertRun(u16, u16),
    RemoveRun(u16, u16),
    /// Steps of one of the walks.
    Walk(u8, u8),
}

fn steps(keys: u16, run: u16) -> impl Strategy<Value = Vec<Step>> {
    let key = 0..keys;
    let step = prop_oneof![
        4 => (key.clone(), any::<u32>()).prop_map(|(k, v)| Step::Insert(k, v)),
        4 => key.clone().prop_map(Step::Remove),
        2 => key.clone().prop_map(Step::Get),
        1 => (key.clone(), 0..run).prop_map(|(k, n)| Step::InsertRun(k, n)),
        1 => (key, 0..run).prop_map(|(k, n)| Step::RemoveRun(k, n)),
        2 => (0_u8..3, any::<u8>()).prop_map(|(w, n)| Step::Walk(w, n)),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A walk, with the keys that it must visit and those that it has visited.
#[derive(Default)]
struct Walk {
    cursor: Cursor,
    /// Present since the walk began.
    steady: BTreeSet<u16>,
    seen: BTreeSet<u16>,
}

fn run<S: TableHash + Default>(steps: Vec<Step>, check_walks: bool) {
    let mut dict: Dict<u16, u32, S> = Dict::default();
    let mut model: BTreeMap<u16, u32> = BTreeMap::new();
    let mut walks: Vec<Walk> = (0..3).map(|_| Walk::default()).collect();
    for step in steps {
        match step {
            Step::Insert(k, v) => assert_eq!(dict.insert(k, v), model.insert(k, v)),
            Step::Get(k) => {
                assert_eq!(dict.get(&k), model.get(&k));
                assert_eq!(dict.get_mut(&k), model.get_mut(&k));
            }
            Step::InsertRun(from, n) => {
                for k in from..from.saturating_add(n) {
                    assert_eq!(dict.insert(k, u32::from(k)), model.insert(k, u32::from(k)));
                }
            }
            Step::Remove(k) => {
                assert_eq!(dict.remove(&k), model.remove(&k));
                for walk in &mut walks {
                    walk.steady.remove(&k);
                }
            }
            Step::RemoveRun(from, n) => {
                for k in from..from.saturating_add(n) {
                    assert_eq!(dict.remove(&k), model.remove(&k));
                    for walk in &mut walks {
                        walk.steady.remove(&k);
                    }
                }
            }
            Step::Walk(which, n) => {
                let walk = &mut walks[usize::from(which)];
                for _ in 0..n {
                    if let Some((k, v)) = dict.next(&mut walk.cursor) {
                        assert_eq!(model.get(k), Some(v));
                        assert!(
                            walk.seen.insert(*k) || !walk.steady.contains(k) || !check_walks,
                            "{k} visited twice"
                        );
                    } else {
                        if check_walks {
                            assert!(walk.steady.is_subset(&walk.seen), "missed");
                        }
                        *walk = Walk { steady: model.keys().copied().collect(), ..Walk::default() };
                        break;
                    }
                }
            }
        }
        assert_eq!(dict.len(), model.len());
    }
    let all: BTreeMap<u16, u32> = dict.iter().map(|(k, v)| (*k, *v)).collect();
    assert_eq!(all, model);
    let keys: Vec<u16> = (0..if cfg!(miri) { 200 } else { 3000 }).collect();
    let mut found = Vec::new();
    dict.get_many(&keys, &mut found);
    assert_eq!(found, keys.iter().map(|k| model.get(k)).collect::<Vec<_>>());
    for k in model.keys() {
        assert!(dict.remove(k).is_some());
    }
    assert!(dict.is_empty() && dict.memory_bytes() <= 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 192 }))]

    #[test]
    fn agrees_with_a_tree_map_when_small(steps in steps(20, 5)) {
        run::<KeyedHash>(steps, true);
    }

    #[test]
    fn agrees_with_a_tree_map_around_one_segment(steps in steps(160, 60)) {
        run::<KeyedHash>(steps, true);
    }

    #[test]
    fn agrees_with_a_tree_map_around_one_segment_under_a_poor_hash(steps in steps(160, 60)) {
        run::<PoorHash>(steps, false);
    }

    #[test]
    fn agrees_with_a_tree_map_when_large(steps in steps(3000, if cfg!(miri) { 100 } else { 2000 })) {
        run::<KeyedHash>(steps, true);
    }

    #[test]
    fn agrees_with_a_tree_map_under_a_poor_hash(steps in steps(1200, if cfg!(miri) { 50 } else { 400 })) {
        // Many hashes are equal here, and walks guarantee less for them.
        run::<PoorHash>(steps, false);
    }
}

/// A pseudorandom permutation of the numbers: the finalizer of SplitMix64 (Steele, Lea, Flood
/// 2014).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

#[test]
fn grows_evenly_and_shrinks_when_it_empties() {
    let mut dict: Dict<u64, u64> = Dict::new();
    let mut model = HashMap::new();
    let mut sums = [0.0; 2];
    for i in 0..MANY {
        // Consecutive keys are hashed less evenly, depending on the process's key.
        let key = mixed(i);
        dict.insert(key, i);
        model.insert(key, i);
        if i >= 100 {
            // A block may just have been split, or grown early: rarely, so the mean is checked.
            let per_entry = dict.memory_bytes() as f64 / dict.len() as f64;
            assert!(per_entry < 64.0, "{per_entry} at {i}");
            sums[usize::from(i >= 600)] += per_entry;
        }
    }
    let means = [sums[0] / 500.0, sums[1] / (MANY - 600) as f64];
    assert!(means[0] < 27.5 && means[1] < 26.0, "{means:?}");
    let stats = dict.stats();
    assert_eq!(stats.len, model.len());
    assert!(stats.longest_distance < 16 && stats.mean_distance < 3.0, "{stats:?}");
    assert!(stats.largest_segment <= SPLIT_AT * 5 / 4, "{stats:?}");
    for (k, v) in &model {
        assert_eq!(dict.get(k), Some(v));
        assert_eq!(dict.get(&(k + 1)), None);
    }
    let full = dict.memory_bytes();
    for (left, k) in model.keys().enumerate() {
        dict.remove(k);
        if left == model.len() * 9 / 10 {
            assert!(dict.memory_bytes() * 5 < full, "{:?}", dict.stats());
            assert!(cfg!(miri) || dict.stats().reshaped.merged > 100, "{:?}", dict.stats());
        }
    }
    assert!(dict.is_empty());
    assert_eq!(dict.memory_bytes(), size_of::<Dict<u64, u64>>());
}

#[test]
fn a_hundred_entries_are_one_segment_without_a_directory() {
    let mut dict: Dict<u64, u64, FixedHash> = Dict::with_hasher(FixedHash::default());
    let (mut sizes, mut model) = (Vec::new(), BTreeMap::new());
    for i in 0..400 {
        assert_eq!(dict.insert(mixed(i), i), None);
        model.insert(mixed(i), i);
        let stats = dict.stats();
        match dict.len() {
            ..16 => assert_eq!((stats.segments, stats.directory), (0, 0)),
            16..=106 => {
                assert!(matches!(dict.state, State::Single(_)), "{}", dict.len());
                assert_eq!((stats.segments, stats.directory), (1, 0));
                assert!(stats.len <= stats.capacity && stats.longest_distance < 16, "{stats:?}");
            }
            107.. => assert!(matches!(dict.state, State::Table(_)), "{}", dict.len()),
        }
        sizes.push(dict.memory_bytes());
        assert_eq!(dict.by_handle(dict.handle(&mixed(i))), Some((&mixed(i), &i)));
    }
    assert!(sizes[99] <= 2_090 && sizes[15] <= 680, "{} {}", sizes[99], sizes[15]);
    for (_, value) in dict.iter_mut() {
        *value += 1;
    }
    for (count, key) in model.keys().enumerate() {
        let left = model.len() - count;
        assert_eq!(dict.get(key), Some(&(model[key] + 1)));
        assert_eq!(dict.remove(key), Some(model[key] + 1));
        assert_eq!((dict.get(key), dict.by_handle(dict.handle(key))), (None, None));
        assert_eq!(dict.get_mut(key), None);
        assert_eq!(dict.remove(key), None);
        match dict.len() {
            36.. => assert!(matches!(dict.state, State::Table(_)), "{left}"),
            8..36 => {
                assert!(matches!(dict.state, State::Single(_)), "{left}");
                assert!(dict.memory_bytes() <= 1_100, "{left}: {}", dict.memory_bytes());
            }
            _ => assert_eq!(dict.stats().segments, 0),
        }
        assert_eq!(dict.iter().count(), dict.len());
    }
    assert_eq!(dict.memory_bytes(), size_of_val(&dict));
}

/// If too many of the random hashes have the same homes, a segment becomes a table before it is
/// full.
#[test]
fn nearly_all_segments_of_random_hashes_hold_a_hundred_entries() {
    let count = if cfg!(miri) { 10 } else { 1_000 };
    let single = (0..count).filter(|of| {
        let dict: Dict<u64, u64> = (0..100).map(|i| (mixed(of * 100 + i), i)).collect();
        assert_eq!(dict.len(), 100);
        matches!(dict.state, State::Single(_))
    });
    let single = single.count() as u64;
    assert!(single * 10 >= count * 9, "{single} of {count}");
}

#[test]
fn entries_of_one_hash_become_a_table_early_and_stay_one() {
    // The last home has nine lanes; the other entries are in the separate list of a table.
    let mut dict: Dict<u64, u64, SameHash> = (0..60).map(|i| (i, i)).collect();
    for i in (20..60).rev() {
        assert!(matches!(dict.state, State::Table(_)), "{i}");
        assert_eq!(dict.remove(&i), Some(i));
        assert!((0..i).all(|i| dict.get(&i) == Some(&i)), "{i}");
    }
    assert!((0..20).all(|i| dict.remove(&i) == Some(i)));
    assert!(dict.is_empty());
}

#[test]
fn few_entries_need_neither_heap_nor_much_room() {
    let mut dict: Dict<u64, u64> = Dict::new();
    dict.insert(1, 1);
    dict.insert(2, 2);
    assert_eq!(dict.memory_bytes(), size_of_val(&dict));
    assert!(dict.memory_bytes() <= 68);
    dict.extend((3..=10).map(|i| (i, i)));
    assert!(dict.memory_bytes() <= 360, "{}", dict.memory_bytes());
}

#[test]
fn drops_keys_and_values_once() {
    let value = std::rc::Rc::new(());
    let count = MANY.min(3000);
    let mut dict: Dict<u64, _> = (0..count).map(|i| (i, value.clone())).collect();
    assert_eq!(std::rc::Rc::strong_count(&value) as u64, count + 1);
    dict.retain(|k, _| k % 2 == 0);
    assert_eq!(std::rc::Rc::strong_count(&value) as u64, count / 2 + 1);
    drop(dict);
    assert_eq!(std::rc::Rc::strong_count(&value), 1);
}

#[test]
fn walks_visit_all_while_the_dictionary_grows_a_hundredfold() {
    let mut dict: Dict<u64, ()> = (0..MANY / 100).map(|i| (i, ())).collect();
    let (mut cursor, mut seen, mut next) = (dict.cursor(), BTreeSet::new(), MANY);
    while let Some((k, ())) = dict.next(&mut cursor) {
        assert!(seen.insert(*k));
        if next < 2 * MANY {
            for _ in 0..100 {
                dict.insert(next, ());
                next += 1;
            }
        }
    }
    assert!((0..MANY / 100).all(|i| seen.contains(&i)));
}

#[test]
fn equal_hashes_for_all_still_work() {
    let count = if cfg!(miri) { 100 } else { 2000 };
    let mut dict: Dict<u64, u64, SameHash> = (0..count).map(|i| (i, i)).collect();
    let mut cursor = dict.cursor();
    let mut visited = BTreeSet::new();
    while let Some((key, _)) = dict.next(&mut cursor) {
        assert!(visited.insert(*key));
    }
    assert_eq!(visited.len() as u64, count);
    assert!((0..count).all(|i| dict.remove(&i) == Some(i)));
}

#[test]
fn overflowed_entries_return_to_their_block_at_the_next_insertion() {
    let mut dict: Dict<u64, u64> = Dict::new();
    let (mut overflowed, mut most) = (0_u32, 0);
    for i in 0..MANY {
        dict.insert(mixed(i), i);
        let State::Table(table) = &dict.state else { continue };
        if table.has_overflow() {
            let now = table.iter().filter(|(k, _)| dict.get(k).is_none()).count();
            assert_eq!(now, 0);
            overflowed += 1;
            most = most.max(i);
        }
    }
    // Entries overflow rarely, and only until the next insertion into their block.
    assert!(u64::from(overflowed) < MANY / 4, "{overflowed} of {MANY}, the last at {most}");
    assert!((0..MANY).all(|i| dict.get(&mixed(i)) == Some(&i)));
}
