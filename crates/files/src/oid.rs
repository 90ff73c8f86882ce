//! Names of object identifiers.
//!
//! `oids.txt` holds one registered identifier a line: dotted arcs, short name, and the long name
//! where it is another; the lines are in byte order of the first column, so that a look-up is a
//! binary search among them.

use std::sync::LazyLock;

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
    find(&dotted(octets))
}

/// Names of a registered identifier, given its dotted arcs.
pub fn find(dotted: &str) -> Option<Names> {
    /// Arcs and the rest of each line.
    static LINES: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| REGISTRY.lines().filter_map(|line| line.split_once('\t')).collect());
    let at = LINES.binary_search_by_key(&dotted, |line| line.0).ok()?;
    let names = LINES.get(at)?.1;
    let (short, long) = names.split_once('\t').unwrap_or((names, ""));
    Some(Names { short, long: if long.is_empty() { short } else { long } })
}

/// The name of an algorithm as the logs have it: the long name, or else the dotted arcs.
pub fn algorithm_name(octets: &[u8]) -> String {
    let mut name = dotted(octets);
    if let Some(names) = find(&name) {
        return names.long.to_owned();
    }
    name.truncate(MAX_ALGORITHM_NAME);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_line_is_found() {
        let mut last = "";
        for line in REGISTRY.lines() {
            let dotted = line.split('\t').next().unwrap();
            assert!(last < dotted, "{dotted} is out of order");
            assert!(
                find(dotted).is_some_and(|names| !names.short.is_empty()),
                "{dotted} is not found"
            );
            last = dotted;
        }
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
