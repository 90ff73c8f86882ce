use proptest::prelude::*;

use super::*;
use crate::support::order::{KeyBytes, Seeds, key};

#[test]
fn digests() {
    let hex = |algorithm, parts: &[&str]| {
        let mut digest = Digest::new(algorithm);
        parts.iter().for_each(|part| digest.update(part.as_bytes()));
        digest.finish_hex()
    };
    assert_eq!(hex(Algorithm::Md5, &["one", "two", "three"]), "7b0391feb2e0cd271f1cf39aafb4376f");
    assert_eq!(hex(Algorithm::Sha1, &["abc"]), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert!(hex(Algorithm::Sha224, &["abc"]).starts_with("23097d22"));
    assert!(hex(Algorithm::Sha256, &["abc"]).starts_with("ba7816bf"));
    assert!(hex(Algorithm::Sha384, &["abc"]).starts_with("cb00753f"));
    assert!(hex(Algorithm::Sha512, &["abc"]).starts_with("ddaf35a1"));
}

fn test_suite_seeds() -> Seeds {
    Seeds::parse(
        b"2983378351 1299727368 0 310447 0 1409073626 3975311262 34130240 1450515018 1466150520 1342286698 1193956778 \
          2188527278 3361989254 3912865238 3596260151 517973768 1462428821 0 2278350848 32767",
    )
    .unwrap()
}

#[test]
fn keyed_digests_are_those_of_zeek() {
    let hashes = test_suite_seeds().hashes();
    let hex = |bytes: &[u8]| String::from_utf8(crate::support::text::to_hex(bytes)).unwrap();
    assert_eq!(hex(&hmac_md5(b"one", &hashes)), "571c0a35c7858ad5a0e16b8fdb41adcd");
    assert_eq!(hex(&hmac_md5(b"onetwothree", &hashes)), "1751cbd623726f423f734e23a8c7ec06");
    assert_ne!(hmac_sha256(b"one", &hashes), hmac_sha256(b"two", &hashes));
}

#[test]
fn other_hashes_are_those_of_zeek() {
    assert_eq!(fnv1a32(b"a"), 0xe40c_292c);
    assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(fnv1a32(&typed_key(3, key::count(123))), 0xc5b4_42fd);
    assert_eq!(fnv1a64(&typed_key(4, key::double(123.0))), 0xaac1_b659_ecb8_cfcf);
    assert!(hrw_weight(u64::MAX, 7) < 1 << 31);
}

#[test]
fn bits_of_bloom_filters_are_those_of_zeek() {
    let foo = |a: u64, b: &[u8]| {
        let mut key = KeyBytes::new();
        key.count(a);
        key.string(b);
        key.finish()
    };
    for seed in [bloom::seed(b"", b"my_seed", 3), bloom::seed(b"my_seed", b"other", 0)] {
        let mut strings = BloomFilter::basic(0.9, 10, seed).unwrap();
        strings.add(b"foo");
        strings.add(b"bar");
        assert_eq!(strings.internal_state(), 4_955_302_038_280_957_656);
        let mut records = BloomFilter::basic(0.9, 10, seed).unwrap();
        records.add(&foo(1, b"xx"));
        records.add(&foo(2, b"yy"));
        assert_eq!(records.internal_state(), 11_260_532_077_783_130_352);
    }
}

#[test]
fn bloom_filters_answer_as_those_of_zeek() {
    let seed = bloom::seed(b"", b"", test_suite_seeds().random);
    let mut strings = BloomFilter::basic(0.9, 10, seed).unwrap();
    strings.add(b"foo");
    strings.add(b"bar");
    assert_eq!(strings.count(b"quuux"), 1, "a false positive there also");
    let mut counting = BloomFilter::counting(3, 32, 3, seed).unwrap();
    for expected in [1, 2, 3, 3] {
        counting.add(b"foo");
        assert_eq!(counting.count(b"foo"), expected);
    }
    counting.add(b"bar");
    counting.add(b"bar");
    assert_eq!([counting.count(b"bar"), counting.count(b"foo")], [2, 3]);
    assert!(counting.decrement(b"bar"));
    assert_eq!(counting.count(b"bar"), 1);
    assert!(!counting.decrement(b"none of them"));
    let mut other = BloomFilter::counting(3, 32, 3, seed).unwrap();
    other.add(b"baz");
    let merged = counting.merge(&other).unwrap();
    assert_eq!([merged.count(b"foo"), merged.count(b"baz")], [3, 1]);
    assert_eq!(counting.intersect(&other).unwrap().count(b"foo"), 0);
}

#[test]
fn incompatible_bloom_filters_are_rejected() {
    let seed = bloom::seed(b"", b"", 0);
    let message = |made: Result<BloomFilter, bloom::Refused>| made.unwrap_err().0;
    assert_eq!(
        message(BloomFilter::basic(-0.5, 42, seed)),
        "false-positive rate must take value between 0 and 1"
    );
    assert_eq!(
        message(BloomFilter::basic_of_cells(0, 1, seed)),
        "number of hash functions must be non-negative"
    );
    assert_eq!(
        message(BloomFilter::basic_of_cells(1, 0, seed)),
        "number of cells must be non-negative"
    );
    assert_eq!(
        message(BloomFilter::counting(1, 1, 0, seed)),
        "max counter value must be greater than 0"
    );
    assert_eq!(message(BloomFilter::basic_of_cells(1, u64::MAX, seed)), "Bloom filter too large");
    assert!(BloomFilter::basic(0.999_999_9, 100_000_000_000, seed).is_ok());
    let empty = BloomFilter::basic(1.0, 0, seed).unwrap();
    assert_eq!(empty.count(b"x"), 0);
    let small = BloomFilter::basic(0.1, 10, seed).unwrap();
    let large = BloomFilter::basic_of_cells(4, 100, seed).unwrap();
    assert_eq!(
        small.merge(&large).unwrap_err(),
        "different bitvector size in BasicBloomFilter merge"
    );
    let other = BloomFilter::basic(0.1, 10, bloom::seed(b"x", b"", 0)).unwrap();
    assert_eq!(
        small.intersect(&other).unwrap_err(),
        "incompatible hashers in BasicBloomFilter intersect"
    );
    assert!(small.is_empty() && small.merge(&small).unwrap().is_empty());
}

#[test]
fn distinct_values_are_estimated_as_zeek_does() {
    let hashes = test_suite_seeds().hashes();
    let mut counter = Cardinality::new(0.01, 0.95).unwrap();
    for n in [2001, 2002, 2003, 1000, 1001, 101, 1003, 1004, 1005, 1006, 1007, 1008, 1009] {
        counter.add(hashes.key(key::count(n)));
    }
    let mut out = Vec::new();
    crate::support::format::double(&mut out, counter.estimate());
    assert_eq!(out, b"13.00129");
    let mut other = Cardinality::new(0.01, 0.95).unwrap();
    assert_eq!(other.estimate(), 0.0);
    for n in 0..100_000_u64 {
        other.add(hashes.key(key::count(n)));
    }
    assert!((other.estimate() - 100_000.0).abs() < 1_000.0);
    assert!(counter.merge(&other));
    assert!((counter.estimate() - 100_000.0).abs() < 1_000.0);
    assert!(!counter.merge(&Cardinality::new(0.1, 0.9).unwrap()));
    assert!(Cardinality::new(0.0, 0.95).is_none() && Cardinality::new(2.0, 0.5).is_none());
    counter.add(0);
}

#[test]
fn entropy_is_that_of_zeek() {
    let mut entropy = Entropy::default();
    entropy.add(b"dh3Hie02uh^s#Sdf9L3frd243h$d78r2G4cM6*Q05d(7rh46f!0|4-f");
    let r = entropy.finish();
    let mut out = Vec::new();
    for value in [r.entropy, r.chi_square, r.mean, r.monte_carlo_pi, r.serial_correlation] {
        crate::support::format::double(&mut out, value);
        out.push(b' ');
    }
    assert_eq!(out, b"4.715374 591.981818 75.472727 4.0 -0.11027 ");
    assert!(Entropy::default().finish().entropy == 0.0);
}

#[test]
fn top_values() {
    let mut top = TopK::new(4);
    for value in ["a", "b", "b", "c", "c", "c", "d"] {
        top.add(value.as_bytes(), value);
    }
    assert_eq!(top.top(1), ["c"]);
    assert_eq!(top.top(3), ["c", "b", "a", "d"]);
    // A new element replaces the oldest of the least frequent ones.
    top.add(b"e", "e");
    assert_eq!((top.count(b"e"), top.epsilon(b"e"), top.count(b"a")), (Some(2), Some(1), None));
    assert_eq!(top.sum(), (8, false));
    let mut other = TopK::new(2);
    other.add(b"x", "x");
    other.add(b"c", "c");
    other.merge(&top, true);
    assert_eq!(other.top(2), ["c", "e"]);
    assert!(other.sum().1);
    assert_eq!(top.copy().top(9), top.top(9));
    let mut none = TopK::new(0);
    none.add(b"x", "x");
    assert!(none.is_empty() && none.top(1).is_empty());
}

#[test]
fn globs_match_as_those_of_zeek() {
    let p = Globs::new(["*", "d?g", "*og", "d?", "d[!wl]g"]);
    assert_eq!(p.matching(b"dog"), [&b"*"[..], b"*og", b"d?g", b"d[!wl]g"]);
    assert_eq!(p, Globs::new(["d[!wl]g", "*og", "d?"]));
    assert_eq!(Globs::new(["once", "!o*", "once"]).matching(b"once"), [b"once"]);
    assert!(Globs::new(["once"]).matching(b"nothing").is_empty());
    let p = Globs::new(["https://*.google.com/*", "*malware*", "*.gov*", "*malware*"]);
    assert_eq!(p.matching(b"www.strange-malware-domain.gov"), [&b"*.gov*"[..], b"*malware*"]);
    assert_eq!(
        Globs::new([&b"z*ro"[..], b"zero\0zero"]).matching(b"zero\0zero"),
        [&b"z*ro"[..], b"zero\0zero"]
    );
    for (glob, string, matches) in [
        ("a*b*c", "aXXbYYc", true),
        ("a*b*c", "aXXbYY", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[]x]", "]", true),
        ("[a", "[a", true),
        ("\\*", "*", true),
        ("\\*", "x", false),
        ("[[:digit:]]*", "1a", true),
        ("**", "", true),
        ("", "", true),
        ("?", "", false),
        ("*x", "aax", true),
    ] {
        assert_eq!(fnmatch(glob.as_bytes(), string.as_bytes()), matches, "{glob} {string}");
    }
}

proptest! {
    #[test]
    fn a_bloom_filter_contains_added_values(values: Vec<Vec<u8>>, k in 1_u64..6, cells in 1_u64..200, max in 1_u64..9) {
        let seed = bloom::seed(b"x", b"", 0);
        let mut basic = BloomFilter::basic_of_cells(k, cells, seed).unwrap();
        let mut counting = BloomFilter::counting(k, cells, max, seed).unwrap();
        for value in &values {
            basic.add(value);
            counting.add(value);
        }
        for value in &values {
            prop_assert_eq!(basic.count(value), 1);
            let times = values.iter().filter(|v| *v == value).count() as u64;
            prop_assert!(counting.count(value) >= times.min(max));
        }
    }

    #[test]
    fn top_values_are_never_undercounted(values in proptest::collection::vec(0_u8..20, 0..200), size in 1_u64..10) {
        let mut top = TopK::new(size);
        values.iter().for_each(|value| top.add(&[*value], *value));
        for value in 0..20 {
            let times = values.iter().filter(|v| **v == value).count() as u64;
            if let (Some(count), Some(epsilon)) = (top.count(&[value]), top.epsilon(&[value])) {
                prop_assert!(count >= times && count - epsilon <= times);
            }
        }
        prop_assert_eq!(top.sum().0, values.len() as u64);
    }

    #[test]
    fn any_glob_is_accepted(glob in r"[ab*?\[\]!^\\:-]{0,10}", string in "[ab]{0,8}") {
        let matches = fnmatch(glob.as_bytes(), string.as_bytes());
        let set = Globs::new([glob.as_bytes()]);
        prop_assert!(set.matching(string.as_bytes()).len() <= glob.len() + 1 || matches);
    }
}
