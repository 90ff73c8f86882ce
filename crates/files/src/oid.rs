//! Names of object identifiers.
//!
//! `oids.txt` holds one registered identifier a line: dotted arcs, short name, and the long name,
//! which is empty where it is the same. The compiler reads it, and makes a hash table by contents octets.

use gannet_log::write_count;

/// The registered identifiers.
const REGISTRY: &str = include_str!("oids.txt");

/// Most bytes of an algorithm's name in a log.
pub(crate) const MAX_ALGORITHM_NAME: usize = 254;

/// Most contents octets of an identifier that is spelled out: 128 arcs of 32 bits fit (RFC 2578
/// section 3.5); a longer one reads as nothing.
const MAX_OCTETS: usize = 586;

/// Names of one registered identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The short name: `CN`, `RSA-SHA256`.
    pub short: &'static str,
    /// The long name: `commonName`, `sha256WithRSAEncryption`.
    pub long: &'static str,
}

/// The dotted arcs of an identifier's contents octets (ITU-T X.690 §8.19); empty beyond 586 octets.
pub fn dotted(octets: &[u8]) -> String {
    if octets.len() > MAX_OCTETS {
        return String::new();
    }
    // An octet of an arc has two digits and a bit, and a dot before it.
    let mut text = Vec::with_capacity(3 * octets.len() + 1);
    let mut start = 0;
    while start < octets.len() {
        let arc = &octets[start..];
        let length =
            arc.iter().position(|octet| octet & 0x80 == 0).map_or(arc.len(), |end| end + 1);
        push_arc(&arc[..length], start == 0, &mut text);
        start += length;
    }
    // Digits and dots.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends one arc; the first octets of an identifier hold two.
fn push_arc(octets: &[u8], first: bool, text: &mut Vec<u8>) {
    if !first {
        text.push(b'.');
    }
    if octets.len() <= 9 {
        let value = octets.iter().fold(0u64, |value, octet| (value << 7) | u64::from(octet & 0x7f));
        let root = if first { (value / 40).min(2) } else { 0 };
        if first {
            write_count(text, root);
            text.push(b'.');
        }
        write_count(text, value - root * 40);
        return;
    }
    let mut magnitude = pack_septets(octets);
    if first {
        text.extend_from_slice(b"2.");
        // More than 63 bits are at least 80.
        subtract(&mut magnitude, 80);
    }
    if let Some(digits) = crate::der::decimal(&magnitude) {
        text.extend_from_slice(digits.as_bytes());
    }
}

/// Seven bits an octet to eight bits an octet, aligned at the end.
fn pack_septets(octets: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(octets.len());
    let (mut buffer, mut bits) = (0u32, 0u32);
    for octet in octets.iter().rev() {
        buffer |= u32::from(octet & 0x7f) << bits;
        bits += 7;
        if bits >= 8 {
            packed.push(buffer.to_le_bytes()[0]);
            buffer >>= 8;
            bits -= 8;
        }
    }
    packed.push(buffer.to_le_bytes()[0]);
    packed.reverse();
    packed
}

/// Takes a small number off a larger one.
fn subtract(magnitude: &mut [u8], number: u8) {
    let mut take = number;
    for octet in magnitude.iter_mut().rev() {
        let (rest, borrow) = octet.overflowing_sub(take);
        *octet = rest;
        if !borrow {
            break;
        }
        take = 1;
    }
}

/// Names of a registered identifier, given its contents octets.
pub fn names(octets: &[u8]) -> Option<Names> {
    let mut slot = octets.iter().fold(HASH_START, |hash, octet| hashed(hash, *octet)) as usize;
    loop {
        let line = &LINES[slot % SLOTS];
        if line.end == 0 {
            return None;
        }
        let text = |from: u16, to: u16| REGISTRY.get(usize::from(from)..usize::from(to));
        if is_of(text(line.start, line.short - 1)?.as_bytes(), octets) {
            let (short, long) = (text(line.short, line.long - 1)?, text(line.long, line.end)?);
            return Some(Names { short, long: if long.is_empty() { short } else { long } });
        }
        slot += 1;
    }
}

/// Whether dotted arcs have these contents octets.
fn is_of(dotted: &[u8], octets: &[u8]) -> bool {
    let (mut rest, mut arc) = (octets, Arc::first(dotted));
    loop {
        while arc.octets > 0 {
            let Some((octet, others)) = rest.split_first() else { return false };
            if *octet != arc.octet() {
                return false;
            }
            (rest, arc.octets) = (others, arc.octets - 1);
        }
        if arc.end == dotted.len() {
            return rest.is_empty();
        }
        arc = Arc::at(dotted, arc.end + 1);
    }
}

/// Where a line of the registry has its columns; `end` is 0 in a slot without a line.
#[derive(Clone, Copy)]
struct Line {
    start: u16,
    short: u16,
    long: u16,
    end: u16,
}

/// Slots of the hash table: a power of two, nearly twice as many as lines.
const SLOTS: usize = 2048;

// One slot at least is empty, where each search ends; and offsets have sixteen bits.
const _: () = assert!(REGISTRY.len() < u16::MAX as usize);

/// The lines of the registry by the hash of their contents octets, each at the first free slot from there.
static LINES: [Line; SLOTS] = {
    let text = REGISTRY.as_bytes();
    let mut lines = [Line { start: 0, short: 0, long: 0, end: 0 }; SLOTS];
    let (mut start, mut count) = (0, 0);
    while start < text.len() {
        let (mut hash, mut arc) = (HASH_START, Arc::first_at(text, start));
        loop {
            while arc.octets > 0 {
                hash = hashed(hash, arc.octet());
                arc.octets -= 1;
            }
            if text[arc.end] != b'.' {
                break;
            }
            arc = Arc::at(text, arc.end + 1);
        }
        let short = arc.end + 1;
        let long = end_of(text, short, b'\t') + 1;
        let end = end_of(text, long, b'\n');
        let mut slot = hash as usize % SLOTS;
        while lines[slot].end != 0 {
            slot = (slot + 1) % SLOTS;
        }
        lines[slot] =
            Line { start: start as u16, short: short as u16, long: long as u16, end: end as u16 };
        count += 1;
        assert!(count < SLOTS);
        start = end + 1;
    }
    lines
};

/// Where a column ends.
const fn end_of(text: &[u8], start: usize, mark: u8) -> usize {
    let mut end = start;
    while text[end] != mark {
        end += 1;
    }
    end
}

/// The hash of no octets (FNV-1a).
const HASH_START: u32 = 0x811c_9dc5;

/// The hash of one more octet.
const fn hashed(hash: u32, octet: u8) -> u32 {
    (hash ^ octet as u32).wrapping_mul(0x0100_0193)
}

/// A number of dotted arcs that has contents octets of its own: the first two arcs have one together.
struct Arc {
    value: u64,
    /// Octets that follow.
    octets: u32,
    /// Where its text ends.
    end: usize,
}

impl Arc {
    const fn first(text: &[u8]) -> Self {
        Self::first_at(text, 0)
    }

    const fn first_at(text: &[u8], start: usize) -> Self {
        let (root, end) = number(text, start);
        // Every identifier has two arcs at the least.
        let (second, end) = number(text, end + 1);
        Self::new(root * 40 + second, end)
    }

    const fn at(text: &[u8], start: usize) -> Self {
        let (value, end) = number(text, start);
        Self::new(value, end)
    }

    const fn new(value: u64, end: usize) -> Self {
        let bits = u64::BITS - value.leading_zeros();
        let octets = if bits == 0 { 1 } else { bits.div_ceil(7) };
        Self { value, octets, end }
    }

    /// The next octet: seven bits, and whether others follow.
    const fn octet(&self) -> u8 {
        let septet = (self.value >> (7 * (self.octets - 1))) as u8 & 0x7f;
        if self.octets > 1 { septet | 0x80 } else { septet }
    }
}

/// A decimal number, and where it ends.
const fn number(text: &[u8], start: usize) -> (u64, usize) {
    let (mut value, mut at) = (0, start);
    while at < text.len() && text[at].is_ascii_digit() {
        value = 10 * value + (text[at] - b'0') as u64;
        at += 1;
    }
    (value, at)
}

/// The name of an algorithm as the logs have it: the long name, or else the dotted arcs.
pub fn algorithm_name(octets: &[u8]) -> String {
    if let Some(names) = names(octets) {
        return names.long.to_owned();
    }
    let mut name = dotted(octets);
    name.truncate(MAX_ALGORITHM_NAME);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Contents octets of dotted arcs.
    fn octets(dotted: &str) -> Vec<u8> {
        let arcs: Vec<u64> = dotted.split('.').map(|arc| arc.parse().unwrap()).collect();
        let first = 40 * arcs[0] + arcs[1];
        let mut all = Vec::new();
        for value in std::iter::once(first).chain(arcs[2..].iter().copied()) {
            let septets = (1..10).take_while(|n| value >> (7 * n) > 0).count();
            let octet = |n| (value >> (7 * n)) as u8 & 0x7f | if n > 0 { 0x80 } else { 0 };
            all.extend((0..=septets).rev().map(octet));
        }
        all
    }

    #[test]
    fn every_line_is_found() {
        let mut last = "";
        for line in REGISTRY.lines() {
            let columns: Vec<_> = line.split('\t').collect();
            let dotted = columns[0];
            assert!(last < dotted, "{dotted} is out of order");
            let octets = octets(dotted);
            assert_eq!(super::dotted(&octets), dotted);
            let long = if columns[2].is_empty() { columns[1] } else { columns[2] };
            assert_eq!(names(&octets), Some(Names { short: columns[1], long }), "{dotted}");
            last = dotted;
        }
    }

    #[test]
    fn neither_a_beginning_nor_more_than_an_identifier_is_found() {
        let registered: std::collections::BTreeSet<_> =
            REGISTRY.lines().map(|line| octets(line.split('\t').next().unwrap())).collect();
        for octets in &registered {
            for end in 0..octets.len() {
                let part = &octets[..end];
                assert_eq!(names(part).is_some(), registered.contains(part), "{part:?}");
            }
            let more = [octets.as_slice(), &[0x01]].concat();
            assert_eq!(names(&more).is_some(), registered.contains(&more), "{more:?}");
        }
        assert_eq!(names(&[]), None);
        assert_eq!(names(&[0xff; 600]), None);
    }

    #[test]
    fn names_of_the_usual() {
        assert_eq!(names(&[0x55, 0x04, 0x03]), Some(Names { short: "CN", long: "commonName" }));
        let email = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01];
        assert_eq!(names(&email), Some(Names { short: "emailAddress", long: "emailAddress" }));
        let rsa = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
        assert_eq!(algorithm_name(&rsa), "sha256WithRSAEncryption");
        assert_eq!(
            algorithm_name(&[0x2b, 0x06, 0x01, 0x04, 0x01, 0x8f, 0x65, 0x01]),
            "1.3.6.1.4.1.2021.1"
        );
    }

    #[test]
    fn arcs_beyond_64_bits() {
        // 2^70 as a later arc, and 80 + 1 more than 2^63 as the first.
        let wide = [0x2a, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(dotted(&wide), "1.2.1180591620717411303424");
        let first = [0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x51];
        assert_eq!(dotted(&first), "2.9223372036854775809");
    }

    proptest! {
        #[test]
        fn never_panics(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = dotted(&octets);
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
            let _ = names(&octets);
        }
    }
}
