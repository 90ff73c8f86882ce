//! Functions of addresses and connections: anonymization, Community IDs, distances.
//!
//! ```
//! use gannet_script::support::net::{Method, Anonymizer, community_id};
//! use gannet_script::support::order::{Random, Seeds};
//!
//! let (mut random, hashes) = (Random::deterministic(1), Seeds::default().hashes());
//! let mut numbers = Anonymizer::new(Method::Sequential);
//! assert_eq!(numbers.anonymize([1, 2, 3, 5], &mut random, &hashes), [0, 0, 0, 2]);
//! assert_eq!(numbers.anonymize([1, 2, 3, 5], &mut random, &hashes), [0, 0, 0, 2]);
//!
//! let v4 = |a, b, c, d| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
//! let ends = [(v4(1, 2, 3, 4), 1122), (v4(5, 6, 7, 8), 3344)];
//! assert_eq!(community_id(ends, 6, 0, true), b"1:wCb3OG7yAFWelaUydu0D+125CLM=");
//! ```

use std::collections::HashMap;

use sha1::{Digest as _, Sha1};

use super::opaque::{hmac_md5, hmac_sha256};
use super::order::{Hashes, Random};
use super::text::{base64, to_hex};

/// Methods to anonymize IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Addresses are kept: `KEEP_ORIG_ADDR`.
    Keep,
    /// Consecutive numbers from 2: `SEQUENTIALLY_NUMBERED`.
    Sequential,
    /// MD5 digests: `RANDOM_MD5`.
    RandomMd5,
    /// Random addresses that share prefixes if the originals do: `PREFIX_PRESERVING_A50`.
    PrefixA50,
    /// Like [`PrefixA50`](Self::PrefixA50), with MD5 digests instead of random numbers:
    /// `PREFIX_PRESERVING_MD5`.
    PrefixMd5,
    /// SHA-256 digests: `RANDOM_SHA256`.
    RandomSha256,
    /// Like [`PrefixMd5`](Self::PrefixMd5), with SHA-256: `PREFIX_PRESERVING_SHA256`.
    PrefixSha256,
}

/// Maps each address to a fixed replacement.
#[derive(Clone, Debug)]
pub struct Anonymizer {
    method: Method,
    known: HashMap<u32, u32>,
    next: u32,
    tree: Tree,
    started: bool,
}

impl Anonymizer {
    /// An anonymizer without known addresses.
    #[must_use]
    pub fn new(method: Method) -> Self {
        Anonymizer { method, known: HashMap::new(), next: 2, tree: Tree::default(), started: false }
    }

    /// The replacement of an address.
    pub fn anonymize(&mut self, address: [u8; 4], random: &mut Random, hashes: &Hashes) -> [u8; 4] {
        let input = u32::from_be_bytes(address);
        if self.method == Method::Keep {
            return address;
        }
        self.started = true;
        if let Some(known) = self.known.get(&input) {
            return known.to_be_bytes();
        }
        let digest = |bytes: &[u8]| -> [u8; 4] {
            let sha = matches!(self.method, Method::RandomSha256 | Method::PrefixSha256);
            let first = if sha {
                hmac_sha256(bytes, hashes).first_chunk().copied()
            } else {
                hmac_md5(bytes, hashes).first_chunk().copied()
            };
            first.unwrap_or_default()
        };
        let output = match self.method {
            Method::Keep => input,
            Method::Sequential => {
                let number = self.next;
                self.next = self.next.wrapping_add(1);
                number
            }
            Method::RandomMd5 | Method::RandomSha256 => u32::from_le_bytes(digest(&address)),
            Method::PrefixMd5 | Method::PrefixSha256 => (0..32_u32).fold(input, |output, bit| {
                // The preceding bits, a one, zeros.
                let prefix = input & !(u32::MAX >> bit) | 1 << (31 - bit);
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&(bit + 1).to_be_bytes());
                bytes[4..].copy_from_slice(&prefix.to_be_bytes());
                output ^ u32::from(digest(&bytes)[0] & 1) << (31 - bit)
            }),
            Method::PrefixA50 => self.tree.output(input, random),
        };
        self.known.insert(input, output);
        output.to_be_bytes()
    }

    /// Preserves the first bits of an address; has an effect only with [`Method::PrefixA50`]. Returns false
    /// after the first address was replaced ("prefix preservation specified after anonymization begun").
    pub fn preserve_prefix(&mut self, address: [u8; 4], bits: u32, random: &mut Random) -> bool {
        if self.started {
            return false;
        }
        let suffix = u32::MAX.checked_shr(bits).unwrap_or(0);
        let input = u32::from_be_bytes(address) & !suffix;
        let node = self.tree.find(input, random);
        let output = match bits {
            0 => return true,
            32.. => input,
            _ => input | random32(random) & suffix,
        };
        self.tree.set_output(node, input, output);
        true
    }
}

fn random32(random: &mut Random) -> u32 {
    let high = random.next() as u32 & 0xffff;
    high << 16 | random.next() as u32 & 0xffff
}

/// The known addresses by their common prefixes: a binary tree whose leaves are addresses.
#[derive(Clone, Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    /// Replacements of 0.0.0.0 and 255.255.255.255, if they are replaced.
    special: [Option<u32>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Node {
    input: u32,
    output: u32,
    children: Option<[usize; 2]>,
}

/// The position of the highest one bit, counted from 1; 0 for zero.
fn first_bit(value: u32) -> u32 {
    if value == 0 { 0 } else { value.leading_zeros() + 1 }
}

impl Tree {
    fn output(&mut self, input: u32, random: &mut Random) -> u32 {
        match self.find(input, random) {
            Some(node) => self.nodes[node].output,
            None => self.special[(input & 1) as usize].unwrap_or(input),
        }
    }

    fn set_output(&mut self, node: Option<usize>, input: u32, output: u32) {
        match node.and_then(|node| self.nodes.get_mut(node)) {
            Some(node) => node.output = output,
            None => self.special[(input & 1) as usize] = Some(output),
        }
    }

    /// The node of an address, added if missing; `None` for 0.0.0.0 and 255.255.255.255.
    fn find(&mut self, input: u32, random: &mut Random) -> Option<usize> {
        if input == 0 || input == u32::MAX {
            return None;
        }
        if self.nodes.is_empty() {
            self.nodes.push(Node { input, output: random32(random), children: None });
            return Some(0);
        }
        let mut at = 0;
        loop {
            let node = self.nodes[at];
            if node.input == input {
                return Some(at);
            }
            let Some([low, high]) = node.children else {
                return Some(self.split(at, input, random));
            };
            let swivel = first_bit(self.nodes[low].input ^ self.nodes[high].input);
            if first_bit(input ^ node.input) < swivel {
                return Some(self.split(at, input, random));
            }
            at = if input >> (32 - swivel) & 1 == 1 { high } else { low };
        }
    }

    /// Adds a node for an address as a sibling of node `at`, below a new node in the position of `at`.
    fn split(&mut self, at: usize, input: u32, random: &mut Random) -> usize {
        let old = self.nodes[at];
        let swivel = first_bit(input ^ old.input);
        let output = if swivel == 32 {
            old.output ^ 1
        } else {
            // The common prefix is kept, the first differing bit differs, the rest is random.
            let known = ((old.output >> (32 - swivel)) ^ 1) << (32 - swivel);
            known | (random32(random) & 0x7fff_ffff) >> swivel
        };
        let (moved, made) = (self.nodes.len(), self.nodes.len() + 1);
        self.nodes.push(old);
        self.nodes.push(Node { input, output, children: None });
        let is_high = input >> (32 - swivel) & 1 == 1;
        let children = if is_high { [moved, made] } else { [made, moved] };
        let high = self.nodes[children[1]];
        self.nodes[at] = Node { input: high.input, output: high.output, children: Some(children) };
        made
    }
}

/// `community_id_v1` of a connection: its endpoints, each an address of sixteen bytes (IPv4 mapped) and a port
/// (for ICMP, type or code), and the number of its transport protocol.
#[must_use]
pub fn community_id(
    ends: [([u8; 16], u16); 2],
    protocol: u8,
    seed: u16,
    as_base64: bool,
) -> Vec<u8> {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let is_v4 = ends[0].0.starts_with(&MAPPED);
    let [mut from, mut to] = ends;
    let one_way = match protocol {
        1 => !matches!(from.1, 0 | 8..=10 | 13..=18),
        58 => !matches!(from.1, 128..=131 | 133..=136 | 139 | 140 | 144 | 145),
        _ => false,
    };
    // As in Zeek, ports are compared as their network-order bytes read in little-endian order.
    let place = |end: ([u8; 16], u16)| (end.0, end.1.swap_bytes());
    if !one_way && place(from) >= place(to) {
        std::mem::swap(&mut from, &mut to);
    }
    let bytes = |address: [u8; 16]| if is_v4 { address[12..].to_vec() } else { address.to_vec() };
    let mut sha = Sha1::new();
    sha.update(seed.to_be_bytes());
    sha.update(bytes(from.0));
    sha.update(bytes(to.0));
    sha.update([protocol, 0]);
    // TCP, UDP, SCTP and ICMP have ports or an equivalent.
    if matches!(protocol, 1 | 6 | 17 | 58 | 132) {
        sha.update(from.1.to_be_bytes());
        sha.update(to.1.to_be_bytes());
    }
    let digest = sha.finalize();
    let text = if as_base64 { base64::encode(&digest, None) } else { to_hex(&digest) };
    [b"1:", text.as_slice()].concat()
}

/// `haversine_distance`: the distance in miles between two locations, given by latitude and longitude in
/// degrees.
#[must_use]
pub fn haversine_distance(from: (f64, f64), to: (f64, f64)) -> f64 {
    const PI: f64 = std::f64::consts::PI;
    const RADIUS: f64 = 3958.8;
    let latitude = ((to.0 - from.0) * PI / 360.0).sin();
    let longitude = ((to.1 - from.1) * PI / 360.0).sin();
    let a = latitude * latitude
        + (from.0 * PI / 180.0).cos() * (to.0 * PI / 180.0).cos() * longitude * longitude;
    2.0 * RADIUS * a.sqrt().asin()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::support::order::Seeds;

    fn seeds() -> Seeds {
        Seeds::parse(
            b"2983378351 1299727368 0 310447 0 1409073626 3975311262 34130240 1450515018 1466150520 1342286698 \
              1193956778 2188527278 3361989254 3912865238 3596260151 517973768 1462428821 0 2278350848 32767",
        )
        .unwrap()
    }

    fn run(method: Method, prefix: Option<([u8; 4], u32)>, addresses: &[[u8; 4]]) -> Vec<[u8; 4]> {
        let (mut random, hashes) = (Random::deterministic(seeds().random), seeds().hashes());
        let mut anonymizer = Anonymizer::new(method);
        if let Some((address, bits)) = prefix {
            assert!(anonymizer.preserve_prefix(address, bits, &mut random));
        }
        let outputs =
            addresses.iter().map(|a| anonymizer.anonymize(*a, &mut random, &hashes)).collect();
        assert!(
            addresses.is_empty()
                || method == Method::Keep
                || !anonymizer.preserve_prefix([1; 4], 8, &mut random)
        );
        outputs
    }

    #[test]
    fn addresses_are_replaced_as_by_zeek() {
        let [a, b, c] = [[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 6]];
        assert_eq!(run(Method::Keep, None, &[a]), [a]);
        assert_eq!(
            run(Method::Sequential, None, &[b, b, c]),
            [[0, 0, 0, 2], [0, 0, 0, 2], [0, 0, 0, 3]]
        );
        assert_eq!(run(Method::RandomMd5, None, &[a, b]), [[40, 242, 99, 69], [31, 209, 90, 202]]);
        assert_eq!(
            run(Method::RandomSha256, None, &[a, b]),
            [[113, 33, 245, 163], [34, 70, 114, 138]]
        );
        let net = Some(([1, 2, 3, 0], 24));
        assert_eq!(
            run(Method::PrefixA50, net, &[a, [1, 2, 10, 5], [1, 3, 4, 5]]),
            [[1, 2, 3, 149], [1, 2, 9, 185], [1, 3, 52, 252]]
        );
        assert_eq!(run(Method::PrefixA50, None, &[[0; 4], [255; 4]]), [[0; 4], [255; 4]]);
    }

    #[test]
    fn community_ids() {
        let v4 = |a, b, c, d| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
        let id = |ends, protocol| String::from_utf8(community_id(ends, protocol, 0, true)).unwrap();
        let (a, b) = (v4(1, 2, 3, 4), v4(5, 6, 7, 8));
        assert_eq!(id([(b, 3344), (a, 1122)], 6), "1:wCb3OG7yAFWelaUydu0D+125CLM=");
        assert_eq!(id([(a, 1122), (b, 3344)], 17), "1:0Mu9InQx6z4ZiCZM/7HXi2WMhOg=");
        assert_eq!(id([(a, 8), (b, 0)], 1), id([(b, 0), (a, 8)], 1));
        // Destination unreachable has no response type: the direction matters.
        assert_ne!(id([(b, 3), (a, 0)], 1), id([(a, 0), (b, 3)], 1));
        assert!(community_id([(a, 1), (b, 2)], 6, 1, false).starts_with(b"1:"));
    }

    #[test]
    fn distances() {
        assert!((haversine_distance((53.1, -1.7), (53.1, -1.7))).abs() < 1e-9);
        assert!((haversine_distance((36.12, -86.67), (33.94, -118.40)) - 1_793.6).abs() < 1.0);
    }

    proptest! {
        #[test]
        fn common_prefixes_are_preserved(addresses in proptest::collection::vec(any::<u32>(), 2..20), sha: bool) {
            let methods = [Method::PrefixA50, if sha { Method::PrefixSha256 } else { Method::PrefixMd5 }];
            for method in methods {
                let inputs: Vec<[u8; 4]> = addresses.iter().map(|a| a.to_be_bytes()).collect();
                let outputs = run(method, None, &inputs);
                for (i, a) in addresses.iter().enumerate() {
                    for (j, b) in addresses.iter().enumerate().skip(i + 1) {
                        if [*a, *b].iter().any(|x| *x == 0 || *x == u32::MAX) {
                            continue;
                        }
                        let common = (u32::from_be_bytes(outputs[i]) ^ u32::from_be_bytes(outputs[j])).leading_zeros();
                        prop_assert_eq!(common, (a ^ b).leading_zeros());
                    }
                }
            }
        }
    }
}
