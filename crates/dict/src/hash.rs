//! The hash of keys.

use core::fmt;
use core::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::hash::RandomState;

use foldhash::fast::FoldHasher;

use crate::raw::pieces::{Pieces, Secret};
use crate::raw::secret::{self, Drawn, Words};

/// The default hash: foldhash (its fast variant) under a key drawn once per process.
///
/// The hash is keyed because senders of packets choose keys: with a fixed hash, a precomputed list
/// of colliding keys would turn every table into a list. It uses foldhash because that hashes short
/// keys in one or two wide multiplications, several times faster than `SipHash`, and folds every
/// multiplication with secret words (192 bits and a seed here, from the operating system through
/// std's `RandomState`), so collisions cannot be computed without them. Byte strings of 16 to 64
/// bytes are first reduced to two numbers by a universal hash with 512 more secret bits: two
/// strings chosen without the key collide with probability 2^-32, so among a million there are some
/// hundred colliding pairs. None of this is a cryptographic function: an observer of hashes, or of
/// the exact time of single lookups, might learn the key; logs show neither. Where that is not
/// enough, use std's `RandomState`: any `BuildHasher` that is a [`TableHash`] works.
///
/// Takes no memory in the dictionary: the key belongs to the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyedHash;

/// The hasher of [`KeyedHash`]: foldhash, with a different treatment of byte strings.
///
/// * Strings of 16 to 64 bytes are reduced to two numbers by sums of products, without branches on
///   the length; the two are folded with the length and the number hashed before.
/// * For other strings the preceding length needs no multiplication of its own, as foldhash mixes
///   it in with the bytes anyway.
#[derive(Clone)]
pub struct KeyedHasher {
    hasher: FoldHasher<'static>,
    /// A hashed number that bytes may follow, such as their length.
    number: Option<u64>,
    piece_secret: &'static Secret,
}

impl KeyedHasher {
    /// The hasher, after it has hashed a pending number that no bytes followed.
    #[inline(always)]
    fn hasher(&mut self) -> &mut FoldHasher<'static> {
        if let Some(number) = self.number.take() {
            self.hasher.write_u64(number);
        }
        &mut self.hasher
    }
}

impl fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its contents are as secret as the key.
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
        let len = bytes.len() as u64;
        if let Some(pieces) = Pieces::from_bytes(bytes) {
            let [low, high] = pieces.products(self.piece_secret);
            // Added, as the sums are: a difference of numbers or lengths cancels one of sums only
            // by chance.
            let low = low.wrapping_add(self.number.take().unwrap_or(0));
            let high = high.wrapping_add(len);
            return self.hasher.write_u128(u128::from(low) | u128::from(high) << 64);
        }
        if self.number == Some(len) {
            self.number = None;
        }
        self.hasher().write(bytes);
    }

    #[inline(always)]
    fn write_usize(&mut self, i: usize) {
        self.write_u64(i as u64);
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
        self.hasher();
        self.number = Some(i);
    }

    #[inline(always)]
    fn write_u128(&mut self, i: u128) {
        self.hasher().write_u128(i);
    }
}

#[inline(always)]
fn keyed(drawn: Drawn) -> KeyedHasher {
    let Words { seed, shared, piece_secret } = secret::words(drawn);
    KeyedHasher { hasher: FoldHasher::with_seed(*seed, shared), number: None, piece_secret }
}

/// A hash for dictionaries: any `BuildHasher`; the implementation may be empty.
pub trait TableHash: BuildHasher + Sized {
    /// [`hash_one`](BuildHasher::hash_one), with the same result, for a search in a table, where
    /// the key of [`KeyedHash`] is known to have been drawn. Hashers that gain nothing from that
    /// use the default.
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
    fn byte_strings_of_all_lengths_have_different_hashes() {
        let mut hashes = std::collections::HashSet::new();
        // The bytes are equal and only the lengths differ; then one byte differs, at any position.
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
        // Numbers hashed before bytes affect the hash, whether they are lengths or not.
        let hashes = [(1_usize, "abc"), (3, "abc"), (3, "abd"), (4, "abc"), (3, "")];
        let hashes: std::collections::HashSet<u64> =
            hashes.iter().map(|key| KeyedHash.hash_one(key)).collect();
        assert_eq!(hashes.len(), 5);
        assert_ne!(KeyedHash.hash_one(b"a\0"), KeyedHash.hash_one(b"a"));
        assert_ne!(KeyedHash.hash_one(3_usize), KeyedHash.hash_one(4_usize));
    }
}
