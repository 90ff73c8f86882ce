//! Names of object identifiers.
//!
//! `oids.txt` has one registered identifier per line: dotted arcs, short name, and long name, which
//! is empty if it equals the short name. A hash table with the contents octets as key is computed
//! at compile time.

use gannet_log::write_count;

/// The registered identifiers.
const REGISTRY: &str = include_str!("oids.txt");

/// Maximum length of an algorithm's name in a log, in bytes.
pub(crate) const MAX_ALGORITHM_NAME: usize = 254;

/// Maximum number of contents octets of an identifier that is converted to text: 128 arcs of 32
/// bits fit (RFC 2578 section 3.5); a longer one gives an empty text.
const MAX_OCTETS: usize = 586;

/// The names of a registered identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The short name: `CN`, `RSA-SHA256`.
    pub short: &'static str,
    /// The long name: `commonName`, `sha256WithRSAEncryption`.
    pub long: &'static str,
}

/// The dotted arcs of an identifier, given its contents octets (ITU-T X.690 §8.19); empty above 586
/// octets.
pub fn dotted(octets: &[u8]) -> String {
    if octets.len() > MAX_OCTETS {
        return String::new();
    }
    // An octet of an arc needs at most two digits and a fraction, and a dot.
    let mut text = Vec::with_capacity(3 * octets.len() + 1);
    let mut start = 0;
    while start < octets.len() {
        let arc = &octets[start..];
        let length =
            arc.iter().position(|octet| octet & 0x80 == 0).map_or(arc.len(), |end| end + 1);
        push_arc(&arc[..length], start == 0, &mut text);
        start += length;
    }
    // The text consists of digits and dots.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends an arc; the first octets of an identifier encode two arcs.
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
        // Values of more than 63 bits are at least 80.
        subtract(&mut magnitude, 80);
    }
    if let Some(digits) = crate::der::decimal(&magnitude) {
        text.extend_from_slice(digits.as_bytes());
    }
}

/// Converts seven bits per octet to eight bits per octet, aligned at the end.
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

/// Subtracts a small number from a larger one.
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

/// The names of a registered identifier, given its contents octets.
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

/// Whether dotted arcs are encoded by these contents octets.
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

/// Offsets of the columns of a line of the registry; `end` is 0 in an empty slot.
#[derive(Clone, Copy)]
struct Line {
    start: u16,
    short: u16,
    long: u16,
    end: u16,
}

/// Number of slots of the hash table: a power of two, nearly twice the number of lines.
const SLOTS: usize = 2048;

// At least one slot must be empty, where each search ends; and offsets must fit into sixteen bits.
const _: () = assert!(REGISTRY.len() < u16::MAX as usize);

/// The lines of the registry, each at the first free slot from the hash of its contents octets on.
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

/// Offset of the end of a column.
const fn end_of(text: &[u8], start: usize, mark: u8) -> usize {
    let mut end = start;
    while text[end] != mark {
        end += 1;
    }
    end
}

/// The hash of zero octets (FNV-1a).
const HASH_START: u32 = 0x811c_9dc5;

/// Adds an octet to a hash.
const fn hashed(hash: u32, octet: u8) -> u32 {
    (hash ^ octet as u32).wrapping_mul(0x0100_0193)
}

/// A number in the contents octets: an arc, or the first two arcs, which are encoded as one number.
struct Arc {
    value: u64,
    /// Number of octets that follow the current one.
    octets: u32,
    /// Offset of the end of its text.
    end: usize,
}

impl Arc {
    const fn first(text: &[u8]) -> Self {
        Self::first_at(text, 0)
    }

    const fn first_at(text: &[u8], start: usize) -> Self {
        let (root, end) = number(text, start);
        // Every identifier has at least two arcs.
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

    /// The next octet: seven bits, and the flag for further octets.
    const fn octet(&self) -> u8 {
        let septet = (self.value >> (7 * (self.octets - 1))) as u8 & 0x7f;
        if self.octets > 1 { septet | 0x80 } else { septet }
    }
}

/// A decimal number, and the offset of its end.
const fn number(text: &[u8], start: usize) -> (u64, usize) {
    let (mut value, mut at) = (0, start);
    while at < text.len() && text[at].is_ascii_digit() {
        value = 10 * value + (text[at] - b'0') as u64;
        at += 1;
    }
    (value, at)
}

/// The name of an algorithm in the logs: the long name, or the dotted arcs if it is not registered.
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

    /// The contents octets of dotted arcs.
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
    fn neither_prefixes_nor_extensions_of_an_identifier_are_found() {
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
    fn names_of_common_identifiers() {
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
        // 2^70 as a later arc, and 80 + 1 more than 2^63 as the first arcs.
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
