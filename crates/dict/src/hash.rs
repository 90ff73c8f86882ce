//! The hash of keys.

use core::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// The default hash: foldhash (its fast variant) under a key drawn once a process.
///
/// Why keyed: whoever sends packets chooses keys; under a fixed hash a list of colliding keys, computed
/// once, would turn every table into a list. Why foldhash: it hashes short keys in one or two wide
/// multiplications, several times faster than `SipHash`, and every multiplication is folded with secret
/// words (192 bits and a seed here, from the operating system through std's `RandomState`), so collisions
/// cannot be computed without them. It is not a cryptographic function: someone who could see hashes, or
/// time single lookups finely, might learn of the key; logs show neither. Where that is not enough, give
/// the dictionary std's `RandomState` instead: any `BuildHasher` will do.
///
/// Takes no room in the dictionary: the key belongs to the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyedHash;

static KEY: OnceLock<(u64, SharedSeed)> = OnceLock::new();

#[cold]
fn draw() -> (u64, SharedSeed) {
    let random = std::collections::hash_map::RandomState::new();
    (random.hash_one(0_u64), SharedSeed::from_u64(random.hash_one(1_u64)))
}

impl BuildHasher for KeyedHash {
    type Hasher = FoldHasher<'static>;

    #[inline]
    fn build_hasher(&self) -> FoldHasher<'static> {
        let (seed, shared) = KEY.get_or_init(draw);
        FoldHasher::with_seed(*seed, shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_hash_alike_and_others_do_not() {
        assert_eq!(KeyedHash.hash_one(b"conn"), KeyedHash.hash_one(b"conn"));
        assert_ne!(KeyedHash.hash_one(b"conn"), KeyedHash.hash_one(b"http"));
        assert_eq!(size_of::<KeyedHash>(), 0);
    }
}
