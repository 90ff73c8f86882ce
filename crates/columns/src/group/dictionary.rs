//! Dictionaries: distinct values and their indices.

use std::hash::BuildHasher;
use std::hash::Hasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Indices of distinct keys, in the order of their first occurrence; they do not depend on the hash function.
#[derive(Default)]
pub(super) struct IndexTable {
    table: HashTable<(u64, u32)>,
    hashes: RandomState,
}

impl IndexTable {
    /// Returns the index of a key, or `Err` with the index that it gets if it is new. `is_equal` compares the key with
    /// the entry of an index.
    #[inline(always)]
    fn index(&mut self, hash: u64, is_equal: impl Fn(usize) -> bool) -> Result<u32, u32> {
        let new = self.table.len() as u32;
        let found = self.table.entry(
            hash,
            |(known, index)| *known == hash && is_equal(*index as usize),
            |(known, _)| *known,
        );
        match found {
            Entry::Occupied(found) => Ok(found.get().1),
            Entry::Vacant(entry) => {
                entry.insert((hash, new));
                Err(new)
            }
        }
    }
}

/// Texts, concatenated.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) bytes: Vec<u8>,
    /// End offset of each text.
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

/// Dictionary of texts.
#[derive(Default)]
pub(super) struct TextDictionary {
    indices: IndexTable,
    pub(super) texts: Texts,
    last: u32,
}

impl TextDictionary {
    #[inline(always)]
    pub(super) fn index(&mut self, text: &[u8]) -> u32 {
        let Self { indices, texts, last } = self;
        // A row very often has the value of the previous row.
        if texts.len() > 0 && texts.get(*last as usize) == text {
            return *last;
        }
        let mut hasher = indices.hashes.build_hasher();
        hasher.write(text);
        let index = indices.index(hasher.finish(), |at| texts.get(at) == text);
        *last = index.unwrap_or_else(|new| {
            texts.push_with(|bytes| bytes.extend_from_slice(text));
            new
        });
        *last
    }
}

/// Dictionary of doubles, by their bits, or of addresses, by their octets.
#[derive(Default)]
pub(super) struct Dictionary<K> {
    indices: IndexTable,
    pub(super) keys: Vec<K>,
    last: u32,
}

impl<K: Copy + PartialEq + Into<u128>> Dictionary<K> {
    #[inline(always)]
    pub(super) fn index(&mut self, key: K) -> u32 {
        let Self { indices, keys, last } = self;
        if keys.get(*last as usize) == Some(&key) {
            return *last;
        }
        let mut hasher = indices.hashes.build_hasher();
        hasher.write_u128(key.into());
        let index = indices.index(hasher.finish(), |at| keys[at] == key);
        *last = index.unwrap_or_else(|new| {
            keys.push(key);
            new
        });
        *last
    }
}
