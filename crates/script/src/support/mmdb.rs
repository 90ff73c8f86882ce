//! Databases of addresses in MaxMind's format, version 2: a binary tree over the bits of addresses, whose leaves point to maps.
//!
//! A file is not trusted: every offset is checked, nesting and steps are bounded.

use std::net::Ipv6Addr;

/// What the description of the database follows.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// Bytes between the tree and the data.
const SEPARATOR: usize = 16;

/// How deep maps, arrays and pointers are followed.
const DEEPEST: usize = 32;

/// A value of the database.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(&'a [u8]),
    /// A number with a fraction.
    Double(f64),
    /// A number.
    Number(u64),
    /// Anything else.
    Other,
}

/// A database in memory.
#[derive(Debug)]
pub struct Database {
    bytes: Vec<u8>,
    nodes: usize,
    /// Bits of a record: 24, 28 or 32.
    record: usize,
    /// Whether addresses have 128 bits.
    six: bool,
    /// Where the data begins.
    data: usize,
}

/// Where a value is: its type, its size, and the position of its content.
#[derive(Clone, Copy)]
struct Head {
    kind: u8,
    size: usize,
    at: usize,
}

impl Database {
    /// A database of these bytes; none where they are no such database.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let marker = bytes.windows(MARKER.len()).rposition(|window| window == MARKER)?;
        let start = marker + MARKER.len();
        let meta = Reader { bytes: &bytes, base: start };
        let number = |name: &[u8]| match meta.value(meta.member(meta.head(start)?, name)?) {
            Value::Number(number) => usize::try_from(number).ok(),
            _ => None,
        };
        let (nodes, record) = (number(b"node_count")?, number(b"record_size")?);
        let six = number(b"ip_version")? == 6;
        if !matches!(record, 24 | 28 | 32) {
            return None;
        }
        let tree = nodes.checked_mul(record / 4)?;
        let data = tree.checked_add(SEPARATOR).filter(|data| *data <= marker)?;
        Some(Self { nodes, record, six, data, bytes })
    }

    /// The value under a path of names and indices (`"0"`) in the entry of an address.
    #[must_use]
    pub fn get(&self, address: Ipv6Addr, path: &[&str]) -> Option<Value<'_>> {
        let reader = Reader { bytes: &self.bytes, base: self.data };
        let mut head = reader.head(self.entry(address)?)?;
        for name in path {
            head = match (head.kind, name.parse::<usize>()) {
                (ARRAY, Ok(index)) => reader.element(head, index)?,
                (MAP, _) => reader.member(head, name.as_bytes())?,
                _ => return None,
            };
        }
        Some(reader.value(head))
    }

    /// Whether there is an entry of an address.
    #[must_use]
    pub fn has(&self, address: Ipv6Addr) -> bool {
        self.entry(address).is_some()
    }

    /// Where the entry of an address is.
    fn entry(&self, address: Ipv6Addr) -> Option<usize> {
        let (bits, count) = match (address.to_ipv4_mapped(), self.six) {
            (Some(four), false) => (u128::from(u32::from(four)) << 96, 32),
            // Addresses of version 4 are at the beginning of those of version 6.
            (Some(four), true) => (u128::from(u32::from(four)), 128),
            (None, true) => (u128::from(address), 128),
            (None, false) => return None,
        };
        let mut node = 0;
        for bit in 0..count {
            if node >= self.nodes {
                break;
            }
            node = self.child(node, bits >> (127 - bit) & 1 == 1)?;
        }
        // The number of nodes itself stands for no entry.
        let offset = node.checked_sub(self.nodes).filter(|offset| *offset > 0)?;
        self.data.checked_add(offset)?.checked_sub(SEPARATOR)
    }

    fn child(&self, node: usize, right: bool) -> Option<usize> {
        let size = self.record / 4;
        let bytes = self.bytes.get(node * size..(node + 1) * size)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        Some(match (self.record, right, bytes) {
            (28, false, [left @ .., middle, _, _, _]) => {
                usize::from(middle >> 4) << 24 | number(left)
            }
            (28, true, [_, _, _, middle, right @ ..]) => {
                usize::from(middle & 0x0f) << 24 | number(right)
            }
            (_, right, bytes) => {
                let (one, other) = bytes.split_at(size / 2);
                number(if right { other } else { one })
            }
        })
    }
}

const POINTER: u8 = 1;
const TEXT: u8 = 2;
const DOUBLE: u8 = 3;
const BYTES: u8 = 4;
const MAP: u8 = 7;
const ARRAY: u8 = 11;
const BOOLEAN: u8 = 14;

/// Reads values of the data section; pointers count from `base`.
struct Reader<'a> {
    bytes: &'a [u8],
    base: usize,
}

impl<'a> Reader<'a> {
    /// The value at a position, pointers followed.
    fn head(&self, at: usize) -> Option<Head> {
        let (mut head, _) = self.raw(at)?;
        for _ in 0..DEEPEST {
            if head.kind != POINTER {
                return Some(head);
            }
            (head, _) = self.raw(self.base.checked_add(head.size)?)?;
        }
        None
    }

    /// The value at a position, and the position behind a pointer there. The size of a pointer is its target.
    fn raw(&self, at: usize) -> Option<(Head, usize)> {
        let control = *self.bytes.get(at)?;
        let mut at = at + 1;
        let mut kind = control >> 5;
        let low = usize::from(control & 0x1f);
        let number = |from: usize, len: usize| -> Option<usize> {
            let bytes = self.bytes.get(from..from + len)?;
            Some(bytes.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
        };
        if kind == POINTER {
            let len = low >> 3;
            let bytes = number(at, len + 1)?;
            let target = match len {
                0 => (low & 7) << 8 | bytes,
                1 => ((low & 7) << 16 | bytes) + 2_048,
                2 => ((low & 7) << 24 | bytes) + 526_336,
                _ => bytes,
            };
            return Some((Head { kind, size: target, at }, at + len + 1));
        }
        if kind == 0 {
            kind = self.bytes.get(at)?.checked_add(7)?;
            at += 1;
        }
        let size = match low {
            29 => 29 + number(at, 1)?,
            30 => 285 + number(at, 2)?,
            31 => 65_821 + number(at, 3)?,
            size => size,
        };
        at += low.saturating_sub(28);
        Some((Head { kind, size, at }, at))
    }

    /// The position behind the value at a position.
    fn skip(&self, at: usize, depth: usize) -> Option<usize> {
        if depth > DEEPEST {
            return None;
        }
        let (head, behind) = self.raw(at)?;
        let parts = match head.kind {
            POINTER => return Some(behind),
            MAP => head.size.checked_mul(2)?,
            ARRAY => head.size,
            // Its size is its value.
            BOOLEAN => return Some(head.at),
            _ => return head.at.checked_add(head.size).filter(|end| *end <= self.bytes.len()),
        };
        let mut at = head.at;
        for _ in 0..parts {
            at = self.skip(at, depth + 1)?;
        }
        Some(at)
    }

    /// The value of a name in a map.
    fn member(&self, map: Head, name: &[u8]) -> Option<Head> {
        let mut at = map.at;
        for _ in 0..if map.kind == MAP { map.size } else { 0 } {
            let key = self.head(at)?;
            let value = self.skip(at, 0)?;
            if key.kind == TEXT && self.bytes.get(key.at..key.at + key.size) == Some(name) {
                return self.head(value);
            }
            at = self.skip(value, 0)?;
        }
        None
    }

    /// The value at an index of an array.
    fn element(&self, array: Head, index: usize) -> Option<Head> {
        let mut at = array.at;
        for _ in 0..index {
            at = self.skip(at, 0)?;
        }
        if index < array.size { self.head(at) } else { None }
    }

    fn value(&self, head: Head) -> Value<'a> {
        let Some(content) = self.bytes.get(head.at..head.at.saturating_add(head.size)) else {
            return Value::Other;
        };
        match (head.kind, content) {
            (TEXT, text) => Value::Text(text),
            (DOUBLE, bytes) => bytes
                .try_into()
                .map_or(Value::Other, |bytes| Value::Double(f64::from_be_bytes(bytes))),
            (MAP | ARRAY | BYTES | POINTER | BOOLEAN, _) => Value::Other,
            // Numbers without sign of 16, 32 and 64 bits.
            (5 | 6 | 9, bytes) if bytes.len() <= 8 => {
                Value::Number(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
            }
            _ => Value::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of one node: addresses that begin with a bit that is set have an entry.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 0, 0, 17];
        bytes.extend([0; SEPARATOR]);
        // {"country": {"iso_code": "DE"}, "list": [7, 2.5]}, with the key of the second map behind a pointer.
        bytes.extend(b"\xe2\x47country\xe1\x48iso_code\x42DE\x44list\x02\x04\xa1\x07\x68");
        bytes.extend(2.5_f64.to_be_bytes());
        bytes.extend(MARKER);
        bytes.extend(b"\xe3\x4anode_count\xc1\x01\x4brecord_size\xa1\x18\x4aip_version\xa1\x04");
        bytes
    }

    fn four(octets: [u8; 4]) -> Ipv6Addr {
        std::net::Ipv4Addr::from(octets).to_ipv6_mapped()
    }

    #[test]
    fn entries_are_found_by_their_bits() {
        let database = Database::new(sample()).unwrap();
        assert!(database.has(four([128, 0, 0, 1])));
        assert!(!database.has(four([127, 0, 0, 1])));
        let code = database.get(four([200, 1, 1, 1]), &["country", "iso_code"]);
        assert_eq!(code, Some(Value::Text(b"DE")));
        let list = |index| database.get(four([200, 1, 1, 1]), &["list", index]);
        assert_eq!(list("0"), Some(Value::Number(7)));
        assert_eq!(list("1"), Some(Value::Double(2.5)));
        assert_eq!(list("2"), None);
        assert_eq!(database.get(four([200, 1, 1, 1]), &["city"]), None);
    }

    #[test]
    fn broken_databases_give_nothing_or_a_part() {
        let whole = sample();
        for end in 0..whole.len() {
            let Some(database) = Database::new(whole[..end].to_vec()) else { continue };
            let _ = database.get(four([200, 1, 1, 1]), &["list", "1"]);
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                let Some(database) = Database::new(bytes) else { continue };
                let _ = database.get(four([200, 1, 1, 1]), &["country", "iso_code"]);
            }
        }
    }
}
