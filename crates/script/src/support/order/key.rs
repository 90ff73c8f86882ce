//! Encoding of table keys.
//!
//! A table with one index of a simple type uses the functions of this module: a number is eight bytes, a string
//! its own bytes. All other keys (several indices, records, sets, tables, vectors or lists) are encoded with
//! [`KeyBytes`]:
//!
//! | value | encoding |
//! |---|---|
//! | bool, int, enum | [`KeyBytes::int`] |
//! | count, port (number, and `0x10000` for TCP, `0x20000` UDP, `0x30000` ICMP) | [`KeyBytes::count`] |
//! | double, time, interval | [`KeyBytes::double`] |
//! | string, addr, subnet, function, pattern | the methods of these names |
//! | record | its fields in order; a field that is `&optional` is preceded by [`KeyBytes::presence`] |
//! | set, table | [`KeyBytes::size`], then the keys in the order of [`sort_elements`], each as a list; in a table each with its value |
//! | vector | [`KeyBytes::size`], then for each element [`KeyBytes::element`] and, if present, the
//! value |
//! | list | [`KeyBytes::size`], then the values |

use std::cmp::Ordering;

/// The key of a bool, an int or an enum.
#[must_use]
pub fn int(value: i64) -> [u8; 8] {
    value.to_le_bytes()
}

/// The key of a count or a port.
#[must_use]
pub fn count(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

/// The key of a double, a time or an interval.
#[must_use]
pub fn double(value: f64) -> [u8; 8] {
    value.to_le_bytes()
}

/// The key of a string.
#[must_use]
pub fn string(value: &[u8]) -> &[u8] {
    value
}

/// The key of an address of sixteen bytes, IPv4 mapped.
#[must_use]
pub fn addr(value: [u8; 16]) -> [u8; 16] {
    value
}

/// The key of a subnet: its address as [`addr`], and its prefix length as printed.
#[must_use]
pub fn subnet(address: [u8; 16], width: u32) -> [u8; 20] {
    let mut key = [0; 20];
    key[..16].copy_from_slice(&address);
    key[16..].copy_from_slice(&width.to_le_bytes());
    key
}

/// The key of a function: its number in order of first use as a key.
#[must_use]
pub fn function(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// The key of a pattern: its texts for exact matching and for searching.
#[must_use]
pub fn pattern(exact: &[u8], anywhere: &[u8]) -> Vec<u8> {
    [exact, b"\0", anywhere, b"\0"].concat()
}

/// Encodes the key of several indices or of one compound value.
#[derive(Clone, Debug, Default)]
pub struct KeyBytes {
    bytes: Vec<u8>,
    /// The reserved length. It differs from the used length, because a vector reserves more than it uses.
    reserved: usize,
}

impl KeyBytes {
    /// An empty key.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn append(&mut self, bytes: &[u8], align: usize) {
        let aligned = self.bytes.len().next_multiple_of(align);
        self.bytes.resize(aligned, 0);
        self.bytes.extend_from_slice(bytes);
        self.reserve(bytes.len(), align);
    }

    fn reserve(&mut self, len: usize, align: usize) {
        self.reserved = self.reserved.next_multiple_of(align) + len;
    }

    /// A bool, an int or an enum.
    pub fn int(&mut self, value: i64) {
        self.append(&value.to_le_bytes(), 8);
    }

    /// A count or a port.
    pub fn count(&mut self, value: u64) {
        self.append(&value.to_le_bytes(), 8);
    }

    /// A double, a time or an interval.
    pub fn double(&mut self, value: f64) {
        self.append(&value.to_le_bytes(), 8);
    }

    /// A string.
    pub fn string(&mut self, value: &[u8]) {
        self.append(&(value.len() as u32).to_le_bytes(), 4);
        self.append(value, 1);
    }

    /// An address.
    pub fn addr(&mut self, value: [u8; 16]) {
        self.append(&value, 4);
    }

    /// A subnet.
    pub fn subnet(&mut self, address: [u8; 16], width: u32) {
        self.append(&subnet(address, width), 4);
    }

    /// A function.
    pub fn function(&mut self, number: u32) {
        self.append(&number.to_le_bytes(), 4);
    }

    /// A pattern.
    pub fn pattern(&mut self, exact: &[u8], anywhere: &[u8]) {
        for text in [exact, anywhere] {
            self.append(&(text.len() as u64 + 1).to_le_bytes(), 8);
        }
        self.append(&pattern(exact, anywhere), 1);
    }

    /// Whether a field that is `&optional` is set; if so, its value follows.
    pub fn presence(&mut self, present: bool) {
        self.append(&[u8::from(present)], 1);
    }

    /// The number of elements of a container.
    pub fn size(&mut self, elements: u32) {
        self.append(&elements.to_le_bytes(), 4);
    }

    /// The index of an element of a vector, and whether it is set.
    pub fn element(&mut self, index: u32, present: bool) {
        self.append(&index.to_le_bytes(), 4);
        let reserved = self.reserved;
        self.presence(present);
        self.reserved = reserved;
        self.reserve(4, 4);
    }

    /// Returns the key.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        if self.bytes.len() < self.reserved {
            self.bytes.resize(self.reserved, 0);
        }
        self.bytes
    }
}

/// Sorts the elements of a set or table into the order in which they are encoded in a key. `key` returns the
/// hash and the bytes of an element's own key.
pub fn sort_elements<T>(elements: &mut [T], key: impl for<'a> Fn(&'a T) -> (u64, &'a [u8])) {
    // Dictionaries store 32 bits of the hash. An element without a hash is hashed again as a whole.
    let short = |hash: u64| if hash as u32 == 0 { hash } else { hash & 0xffff_ffff };
    elements.sort_by(|a, b| {
        let ((a_hash, a_key), (b_hash, b_key)) = (key(a), key(b));
        let by_hash = short(a_hash).cmp(&short(b_hash));
        by_hash.then(a_key.len().cmp(&b_key.len())).then_with(|| -> Ordering { a_key.cmp(b_key) })
    });
}
