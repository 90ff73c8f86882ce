use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn seeds() -> Seeds {
    Seeds::parse(include_bytes!("../../../tests/seed.txt")).unwrap()
}

/// The seeds of Zeek's test suite.
fn test_suite_seeds() -> Seeds {
    Seeds::parse(
        b"2983378351 1299727368 0 310447 0 1409073626 3975311262 34130240 1450515018 1466150520 1342286698 1193956778 \
          2188527278 3361989254 3912865238 3596260151 517973768 1462428821 0 2278350848 32767",
    )
    .unwrap()
}

fn order<K: Clone + PartialEq>(keys: &[K], bytes: impl Fn(&K) -> Vec<u8>) -> Vec<K> {
    let hashes = seeds().hashes();
    let mut dict = SlotDict::new();
    for key in keys {
        dict.insert(hashes.key(bytes(key)), key.clone(), ());
    }
    dict.iter().map(|(key, ())| key.clone()).collect()
}

fn mapped(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

#[test]
fn sets_are_in_the_order_that_zeek_prints() {
    let hashes = seeds().hashes();
    let hash = |n: u64| hashes.key(key::count(n * n));
    let mut squares = SlotDict::new();
    for n in 0..40_u64 {
        squares.insert(hash(n), n * n, ());
    }
    let threes: Vec<u64> = squares.iter().map(|(n, ())| *n).filter(|n| n % 3 == 0).collect();
    assert_eq!(threes, [144, 0, 36, 225, 1296, 9, 1521, 1089, 900, 729, 81, 576, 441, 324]);
    for n in 0..30_u64 {
        assert!(squares.remove(hash(n), &(n * n)).is_some());
    }
    let left: Vec<u64> = squares.iter().map(|(n, ())| *n).collect();
    assert_eq!(left, [1296, 961, 1521, 1089, 900, 1369, 1024, 1444, 1225, 1156]);
}

#[test]
fn keys_of_all_types_are_in_the_order_that_zeek_prints() {
    let last = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let addrs = [mapped(1, 1, 1, 1), mapped(10, 0, 0, 1), last];
    assert_eq!(order(&addrs, |a| key::addr(*a).to_vec()), addrs);
    assert_eq!(order(&[0x1_0050, 0x2_0035], |p| key::count(*p).to_vec()), [0x1_0050, 0x2_0035]);
    let subnets = [(mapped(10, 0, 0, 0), 8), (mapped(10, 1, 0, 0), 16)];
    assert_eq!(order(&subnets, |(a, n)| key::subnet(*a, *n).to_vec()), [subnets[1], subnets[0]]);
    assert_eq!(order(&[1, 0], |b| key::int(*b).to_vec()), [0, 1]);
    assert_eq!(order(&[1.5, -2.5], |d| key::double(*d).to_vec()), [-2.5, 1.5]);
    assert_eq!(order(&[1.0, 120.0], |d| key::double(*d).to_vec()), [120.0, 1.0]);
    let pair = |(n, s): &(u64, &str)| {
        let mut bytes = KeyBytes::new();
        bytes.count(*n);
        bytes.string(s.as_bytes());
        bytes.finish()
    };
    assert_eq!(order(&[(1, "x"), (2, "y"), (3, "z")], pair), [(1, "x"), (2, "y"), (3, "z")]);
}

#[test]
fn compound_keys_are_aligned() {
    let mut bytes = KeyBytes::new();
    bytes.string(b"abc");
    bytes.presence(true);
    bytes.int(-1);
    bytes.presence(false);
    bytes.addr(mapped(1, 2, 3, 4));
    bytes.double(1.0);
    let mut expected = b"\x03\0\0\0abc\x01".to_vec();
    expected.extend([0xff; 8]);
    expected.extend([0, 0, 0, 0]);
    expected.extend(mapped(1, 2, 3, 4));
    expected.extend([0, 0, 0, 0]);
    expected.extend(1.0_f64.to_le_bytes());
    assert_eq!(bytes.finish(), expected);

    let mut bytes = KeyBytes::new();
    bytes.size(2);
    bytes.element(0, true);
    bytes.string(b"a");
    bytes.element(1, false);
    // The last presence reserves four bytes and uses one.
    assert_eq!(bytes.finish(), b"\x02\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0a\0\0\0\x01\0\0\0\0\0\0\0");

    let mut bytes = KeyBytes::new();
    bytes.pattern(b"^?(a)$?", b"x");
    assert_eq!(bytes.finish(), b"\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0^?(a)$?\0x\0");
    assert_eq!(key::pattern(b"a", b"b"), b"a\0b\0");
    let mut bytes = KeyBytes::new();
    bytes.function(3);
    bytes.subnet(mapped(10, 0, 0, 0), 8);
    assert_eq!(bytes.finish().len(), 24);
}

#[test]
fn elements_of_a_key_are_sorted_by_half_of_their_hash() {
    let mut elements = [(0x1_0000_0002_u64, "b"), (0x1, "c"), (0x2_0000_0001, "aa"), (0x1, "a")];
    key::sort_elements(&mut elements, |(hash, key)| (*hash, key.as_bytes()));
    assert_eq!(elements.map(|(_, key)| key), ["a", "c", "aa", "b"]);
}

#[test]
fn uids_are_those_of_zeek() {
    let mut pools = UidPools::deterministic(test_suite_seeds().hashes());
    let uids =
        [(); 3].map(|()| String::from_utf8(pools.uid(UidPools::CONNECTIONS, b"C", 96)).unwrap());
    assert_eq!(uids, ["CHhAvVGS1DHFjwGM9", "ClEkJM2Vm5giqnMf4h", "C4J4Th3PJpwUYZZ6gc"]);
    assert_eq!(UidPools::custom(5), 15);
    assert_eq!(UidPools::custom(-20), UidPools::CONNECTIONS);
    assert_eq!(uid_text(b"F", [62, 61], 128), b"F01Z");
    assert_eq!(uid_text(b"F", [62 << 32, 1], 96), b"F011");
    let mut short = UidPools::deterministic(test_suite_seeds().hashes());
    assert!(short.uid(UidPools::SCRIPT, b"", 32).ends_with(b"0"));
}

#[test]
fn file_ids_are_hashes_of_their_handle() {
    // A file transferred over HTTP: analyzer, start time of the connection, direction, depth of the transaction
    // and of the part, connection.
    let hashes = SaltedHashes::new(b"Please change this value.");
    let handle =
        b"Analyzer::ANALYZER_HTTP1362692526.869344F11141.142.228.5:59856 > 192.150.187.43:80";
    assert_eq!(uid_text(b"F", hashes.hash128(handle), 96), b"FMnxxt3xjVcWNS2141");
    assert_ne!(hashes.hash64(b"a"), SaltedHashes::new(b"").hash64(b"a"));
}

#[test]
fn seeds_are_read_and_written() {
    let seeds = seeds();
    assert_eq!(seeds.random, 3_242_042_762);
    assert_eq!(Seeds::parse(seeds.to_text().as_bytes()), Some(seeds));
    assert_eq!(Seeds::parse(b"1 2 3"), None);
    assert_eq!(Seeds::parse(b"a"), None);
    assert_eq!(Seeds::from_bytes([0; 80]), Seeds::default());
}

#[test]
fn random_numbers_are_those_of_the_library() {
    let mut lehmer = Random::deterministic(0);
    assert_eq!(lehmer.next(), 16_807);
    // srandom(1); random(): documented by every C library that kept it.
    let mut random = Random::of_system(1);
    assert_eq!(
        [random.next(), random.next(), random.next()],
        [1_804_289_383, 846_930_886, 1_681_692_777]
    );
    random.seed(42);
    assert_eq!(random.next(), 71_876_166);
    assert!(random.below(10) < 10);
    assert_eq!(random.below(0), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    Remove(u16),
    Get(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u16..600).prop_map(Step::Insert),
        1 => (0_u16..600).prop_map(Step::Remove),
        1 => (0_u16..600).prop_map(Step::Get),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_map(steps in proptest::collection::vec(step(), 0..800), mask in prop_oneof![Just(u64::MAX), Just(7)]) {
        let hashes = seeds().hashes();
        let hash = |k: u16| hashes.key(k.to_le_bytes()) & mask;
        let mut dict: SlotDict<u16, usize> = SlotDict::new();
        let mut model = HashMap::new();
        for (n, step) in steps.iter().enumerate() {
            match *step {
                Step::Insert(k) => prop_assert_eq!(dict.insert(hash(k), k, n), model.insert(k, n)),
                Step::Remove(k) => prop_assert_eq!(dict.remove(hash(k), &k).map(|e| e.1), model.remove(&k)),
                Step::Get(k) => prop_assert_eq!(dict.get(hash(k), &k).copied(), model.get(&k).copied()),
            }
            prop_assert_eq!(dict.len(), model.len());
        }
        let mut left: Vec<u16> = dict.iter().map(|(k, _)| *k).collect();
        left.sort_unstable();
        let mut expected: Vec<u16> = model.keys().copied().collect();
        expected.sort_unstable();
        prop_assert_eq!(left, expected);
    }

    #[test]
    fn a_robust_iteration_visits_remaining_entries(
        before in proptest::collection::hash_set(0_u16..300, 0..120),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let hashes = seeds().hashes();
        let hash = |k: u16| hashes.key(k.to_le_bytes());
        let mut dict: SlotDict<u16, ()> = SlotDict::new();
        for k in &before {
            dict.insert(hash(*k), *k, ());
        }
        let walk = dict.begin_robust();
        let mut seen = Vec::new();
        let mut removed = Vec::new();
        let mut steps = steps.iter();
        while let Some((_, k)) = dict.next_robust(&walk) {
            seen.push(k);
            match steps.next() {
                Some(Step::Insert(k)) => { dict.insert(hash(*k), *k, ()); }
                Some(Step::Remove(k)) => { dict.remove(hash(*k), k); removed.push(*k); }
                _ => {}
            }
            prop_assert!(seen.len() <= 500);
        }
        for k in &before {
            prop_assert!(seen.contains(k) || removed.contains(k), "{}", k);
        }
    }
}
