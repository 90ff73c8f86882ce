//! Distinct values and their numbers.

use std::hash::BuildHasher;
use std::hash::Hasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Distinct keys, numbered in the order of their first occurrence. The numbers do not depend on the hash.
#[derive(Default)]
pub(super) struct Numbers {
    table: HashTable<(u64, u32)>,
    hashes: RandomState,
}

impl Numbers {
    /// The number of a key; `Err` with the new number if it is new. `is` says whether an entry is it.
    #[inline(always)]
    fn number(&mut self, hash: u64, is: impl Fn(usize) -> bool) -> Result<u32, u32> {
        let new = self.table.len() as u32;
        let found = self.table.entry(
            hash,
            |(known, number)| *known == hash && is(*number as usize),
            |(known, _)| *known,
        );
        match found {
            Entry::Occupied(found) => Ok(found.get().1),
            Entry::Vacant(place) => {
                place.insert((hash, new));
                Err(new)
            }
        }
    }
}

/// Texts one after another.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) bytes: Vec<u8>,
    /// The end of each.
    pub(super) ends: Vec<u32>,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends the text that `write` writes.
    #[inline(always)]
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = &self.bytes[start..*end as usize];
            start = *end as usize;
            text
        })
    }
}

/// Distinct texts.
#[derive(Default)]
pub(super) struct TextDictionary {
    numbers: Numbers,
    pub(super) texts: Texts,
    last: u32,
}

impl TextDictionary {
    #[inline(always)]
    pub(super) fn number(&mut self, text: &[u8]) -> u32 {
        let Self { numbers, texts, last } = self;
        // Rows have the value of the row before very often.
        if texts.len() > 0 && texts.get(*last as usize) == text {
            return *last;
        }
        let mut hasher = numbers.hashes.build_hasher();
        hasher.write(text);
        let number = numbers.number(hasher.finish(), |at| texts.get(at) == text);
        *last = number.unwrap_or_else(|new| {
            texts.push_with(|bytes| bytes.extend_from_slice(text));
            new
        });
        *last
    }
}

/// Distinct numbers: of doubles the bits, of addresses the octets.
#[derive(Default)]
pub(super) struct Dictionary<K> {
    numbers: Numbers,
    pub(super) keys: Vec<K>,
    last: u32,
}

impl<K: Copy + PartialEq + Into<u128>> Dictionary<K> {
    #[inline(always)]
    pub(super) fn number(&mut self, key: K) -> u32 {
        let Self { numbers, keys, last } = self;
        if keys.get(*last as usize) == Some(&key) {
            return *last;
        }
        let mut hasher = numbers.hashes.build_hasher();
        hasher.write_u128(key.into());
        let number = numbers.number(hasher.finish(), |at| keys[at] == key);
        *last = number.unwrap_or_else(|new| {
            keys.push(key);
            new
        });
        *last
    }
}
