//! The hash of keys.

use core::fmt;
use core::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::hash::RandomState;

use foldhash::fast::FoldHasher;

use crate::raw::secret::{self, Drawn};

/// The default hash: foldhash (its fast variant) under a key drawn once a process.
///
/// Why keyed: whoever sends packets chooses keys; under a fixed hash a list of colliding keys, computed
/// once, would turn every table into a list. Why foldhash: it hashes short keys in one or two wide
/// multiplications, several times faster than `SipHash`, and every multiplication is folded with secret
/// words (192 bits and a seed here, from the operating system through std's `RandomState`), so collisions
/// cannot be computed without them. It is not a cryptographic function: someone who could see hashes, or
/// time single lookups finely, might learn of the key; logs show neither. Where that is not enough, give
/// the dictionary std's `RandomState` instead: any `BuildHasher` will do that is a [`TableHash`].
///
/// Takes no room in the dictionary: the key belongs to the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyedHash;

/// The hasher of [`KeyedHash`]: foldhash, but for the length in front of a byte string, which foldhash mixes in with the
/// bytes anyway and need not multiply twice, and for strings of 16 to 64 bytes, which are mixed in by sixteen without a call.
#[derive(Clone)]
pub struct KeyedHasher {
    hasher: FoldHasher<'static>,
    /// A number that may be the length of the bytes to come.
    length: Option<usize>,
}

impl KeyedHasher {
    #[inline(always)]
    pub(crate) fn new(hasher: FoldHasher<'static>) -> Self {
        KeyedHasher { hasher, length: None }
    }

    /// The hasher, with the number that was not followed by so many bytes.
    #[inline(always)]
    fn hasher(&mut self) -> &mut FoldHasher<'static> {
        if let Some(number) = self.length.take() {
            self.hasher.write_usize(number);
        }
        &mut self.hasher
    }
}

impl fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is within is as secret as the key.
        f.write_str("KeyedHasher")
    }
}

impl Hasher for KeyedHasher {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.clone().hasher().finish()
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        if self.length == Some(bytes.len()) {
            self.length = None;
        }
        let hasher = self.hasher();
        // Most byte strings, in pieces of sixteen that overlap: without a call, and with nothing decided by the length but
        // whether there are middle pieces.
        let number = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u128::from_le_bytes);
        let len = bytes.len();
        if (16..=64).contains(&len) {
            let ends = (number(0), number(len - 16));
            if let (Some(first), Some(last)) = ends {
                hasher.write_u128(first);
                if len > 32
                    && let (Some(second), Some(third)) = (number(16), number(len - 32))
                {
                    hasher.write_u128(second);
                    hasher.write_u128(third);
                }
                hasher.write_u128(last);
                hasher.write_usize(len);
                return;
            }
        }
        hasher.write(bytes);
    }

    #[inline(always)]
    fn write_usize(&mut self, i: usize) {
        self.hasher();
        self.length = Some(i);
    }

    #[inline(always)]
    fn write_u8(&mut self, i: u8) {
        self.hasher().write_u8(i);
    }

    #[inline(always)]
    fn write_u16(&mut self, i: u16) {
        self.hasher().write_u16(i);
    }

    #[inline(always)]
    fn write_u32(&mut self, i: u32) {
        self.hasher().write_u32(i);
    }

    #[inline(always)]
    fn write_u64(&mut self, i: u64) {
        self.hasher().write_u64(i);
    }

    #[inline(always)]
    fn write_u128(&mut self, i: u128) {
        self.hasher().write_u128(i);
    }
}

#[inline(always)]
fn keyed(drawn: Drawn) -> KeyedHasher {
    let (seed, shared) = secret::words(drawn);
    KeyedHasher::new(FoldHasher::with_seed(seed, shared))
}

/// A hash for dictionaries: any `BuildHasher`, which need not say more than that it is one.
pub trait TableHash: BuildHasher + Sized {
    /// [`hash_one`](BuildHasher::hash_one), and always the same as that, for a search in a table: so after the key of
    /// [`KeyedHash`] was drawn. What has nothing to gain from that leaves it as it is.
    #[inline(always)]
    fn hash_in_table<Q: Hash + ?Sized>(&self, key: &Q, _drawn: Drawn) -> u64 {
        self.hash_one(key)
    }
}

impl TableHash for RandomState {}

impl<H: Hasher + Default> TableHash for BuildHasherDefault<H> {}

impl TableHash for KeyedHash {
    #[inline(always)]
    fn hash_in_table<Q: Hash + ?Sized>(&self, key: &Q, drawn: Drawn) -> u64 {
        let mut hasher = keyed(drawn);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = KeyedHasher;

    #[inline(always)]
    fn build_hasher(&self) -> KeyedHasher {
        keyed(secret::draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_hash_as_others_do() {
        for key in ["", "a", "a string of many bytes, more than sixteen"] {
            assert_eq!(KeyedHash.hash_in_table(key, secret::draw()), KeyedHash.hash_one(key));
        }
        let random = RandomState::new();
        assert_eq!(random.hash_in_table(&7, secret::draw()), random.hash_one(7));
    }

    #[test]
    fn byte_strings_of_all_lengths_hash_apart() {
        let mut hashes = std::collections::HashSet::new();
        // The same bytes throughout: only the lengths differ. Then one that differs, wherever it is.
        for len in 0..150_usize {
            let mut bytes = vec![0_u8; len];
            assert!(hashes.insert(KeyedHash.hash_one(bytes.as_slice())), "{len}");
            for at in 0..len {
                bytes[at] = 1;
                assert!(hashes.insert(KeyedHash.hash_one(bytes.as_slice())), "{len} {at}");
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn equal_keys_hash_alike_and_others_do_not() {
        assert_eq!(KeyedHash.hash_one(b"conn"), KeyedHash.hash_one(b"conn"));
        assert_ne!(KeyedHash.hash_one(b"conn"), KeyedHash.hash_one(b"http"));
        assert_eq!(size_of::<KeyedHash>(), 0);
        // Numbers in front of bytes count, be they lengths or not.
        let hashes = [(1_usize, "abc"), (3, "abc"), (3, "abd"), (4, "abc"), (3, "")];
        let hashes: std::collections::HashSet<u64> =
            hashes.iter().map(|key| KeyedHash.hash_one(key)).collect();
        assert_eq!(hashes.len(), 5);
        assert_ne!(KeyedHash.hash_one(b"a\0"), KeyedHash.hash_one(b"a"));
        assert_ne!(KeyedHash.hash_one(3_usize), KeyedHash.hash_one(4_usize));
    }
}
