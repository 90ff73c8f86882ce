//! MaxMind databases of IP addresses, version 2: a binary tree over the bits of addresses, whose leaves point
//! to maps.
//!
//! Files are untrusted: every offset is checked, and nesting and iterations are bounded.

use std::net::Ipv6Addr;

/// Precedes the metadata of the database.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// Length of the separator between tree and data, in bytes.
const SEPARATOR: usize = 16;

/// Maximum nesting depth of maps, arrays and pointers.
const MAX_DEPTH: usize = 32;

/// A value of the database.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A floating-point number.
    Double(f64),
    /// An unsigned number.
    Number(u64),
    /// Any other type.
    Other,
}

/// A database in memory.
#[derive(Debug)]
pub struct Database {
    bytes: Vec<u8>,
    nodes: usize,
    /// Size of a record, in bits: 24, 28 or 32.
    record_bits: usize,
    /// Whether the tree is for IPv6 addresses of 128 bits.
    is_ipv6: bool,
    /// Offset of the data section.
    data: usize,
}

/// The header of a value: its type, its size, and the offset of its content.
#[derive(Clone, Copy)]
struct Header {
    kind: u8,
    size: usize,
    at: usize,
}

impl Database {
    /// Opens a database; `None` if the bytes are not a MaxMind database.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let marker = bytes.windows(MARKER.len()).rposition(|window| window == MARKER)?;
        let start = marker + MARKER.len();
        let meta = Reader { bytes: &bytes, base: start };
        let number = |name: &[u8]| match meta.value(meta.member(meta.header(start)?, name)?) {
            Value::Number(number) => usize::try_from(number).ok(),
            _ => None,
        };
        let (nodes, record_bits) = (number(b"node_count")?, number(b"record_size")?);
        let is_ipv6 = number(b"ip_version")? == 6;
        if !matches!(record_bits, 24 | 28 | 32) {
            return None;
        }
        let tree = nodes.checked_mul(record_bits / 4)?;
        let data = tree.checked_add(SEPARATOR).filter(|data| *data <= marker)?;
        Some(Self { nodes, record_bits, is_ipv6, data, bytes })
    }

    /// The value at a path of names and indices (`"0"`) in the entry of an address.
    #[must_use]
    pub fn get(&self, address: Ipv6Addr, path: &[&str]) -> Option<Value<'_>> {
        let reader = Reader { bytes: &self.bytes, base: self.data };
        let mut header = reader.header(self.entry(address)?)?;
        for name in path {
            header = match (header.kind, name.parse::<usize>()) {
                (ARRAY, Ok(index)) => reader.element(header, index)?,
                (MAP, _) => reader.member(header, name.as_bytes())?,
                _ => return None,
            };
        }
        Some(reader.value(header))
    }

    /// Whether an address has an entry.
    #[must_use]
    pub fn has(&self, address: Ipv6Addr) -> bool {
        self.entry(address).is_some()
    }

    /// The offset of the entry of an address.
    fn entry(&self, address: Ipv6Addr) -> Option<usize> {
        let (bits, count) = match (address.to_ipv4_mapped(), self.is_ipv6) {
            (Some(four), false) => (u128::from(u32::from(four)) << 96, 32),
            // IPv4 addresses are the first 2^32 addresses of the IPv6 tree.
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
        // The node count means that no entry exists.
        let offset = node.checked_sub(self.nodes).filter(|offset| *offset > 0)?;
        self.data.checked_add(offset)?.checked_sub(SEPARATOR)
    }

    fn child(&self, node: usize, right: bool) -> Option<usize> {
        let size = self.record_bits / 4;
        let bytes = self.bytes.get(node * size..(node + 1) * size)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        Some(match (self.record_bits, right, bytes) {
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

/// Reader of the data section; pointers are relative to `base`.
struct Reader<'a> {
    bytes: &'a [u8],
    base: usize,
}

impl<'a> Reader<'a> {
    /// The header of the value at an offset, after following pointers.
    fn header(&self, at: usize) -> Option<Header> {
        let (mut header, _) = self.raw(at)?;
        for _ in 0..MAX_DEPTH {
            if header.kind != POINTER {
                return Some(header);
            }
            (header, _) = self.raw(self.base.checked_add(header.size)?)?;
        }
        None
    }

    /// The header of the value at an offset, and the offset after it. The size of a pointer is its target.
    fn raw(&self, at: usize) -> Option<(Header, usize)> {
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
            return Some((Header { kind, size: target, at }, at + len + 1));
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
        Some((Header { kind, size, at }, at))
    }

    /// The offset after the value at an offset.
    fn skip(&self, at: usize, depth: usize) -> Option<usize> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (header, behind) = self.raw(at)?;
        let parts = match header.kind {
            POINTER => return Some(behind),
            MAP => header.size.checked_mul(2)?,
            ARRAY => header.size,
            // The size field contains the value.
            BOOLEAN => return Some(header.at),
            _ => return header.at.checked_add(header.size).filter(|end| *end <= self.bytes.len()),
        };
        let mut at = header.at;
        for _ in 0..parts {
            at = self.skip(at, depth + 1)?;
        }
        Some(at)
    }

    /// The value for a name in a map.
    fn member(&self, map: Header, name: &[u8]) -> Option<Header> {
        let mut at = map.at;
        for _ in 0..if map.kind == MAP { map.size } else { 0 } {
            let key = self.header(at)?;
            let value = self.skip(at, 0)?;
            if key.kind == TEXT && self.bytes.get(key.at..key.at + key.size) == Some(name) {
                return self.header(value);
            }
            at = self.skip(value, 0)?;
        }
        None
    }

    /// The value at an index of an array.
    fn element(&self, array: Header, index: usize) -> Option<Header> {
        let mut at = array.at;
        for _ in 0..index {
            at = self.skip(at, 0)?;
        }
        if index < array.size { self.header(at) } else { None }
    }

    fn value(&self, header: Header) -> Value<'a> {
        let Some(content) = self.bytes.get(header.at..header.at.saturating_add(header.size)) else {
            return Value::Other;
        };
        match (header.kind, content) {
            (TEXT, text) => Value::Text(text),
            (DOUBLE, bytes) => bytes
                .try_into()
                .map_or(Value::Other, |bytes| Value::Double(f64::from_be_bytes(bytes))),
            (MAP | ARRAY | BYTES | POINTER | BOOLEAN, _) => Value::Other,
            // Unsigned numbers of 16, 32 and 64 bits.
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

    /// A database with one node: addresses whose first bit is set have an entry.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 0, 0, 17];
        bytes.extend([0; SEPARATOR]);
        // {"country": {"iso_code": "DE"}, "list": [7, 2.5]}, with a pointer to the key of the second map.
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
    fn broken_databases_have_fewer_entries_or_none() {
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
