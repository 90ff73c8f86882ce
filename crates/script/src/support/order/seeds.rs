//! Seeds, and the keyed hashes derived from them.

use highway::{HighwayHash, HighwayHasher};
use md5::Md5;
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;

/// The contents of a seed file: a seed for random numbers and 80 bytes for hash keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seeds {
    /// The seed of the random number generator.
    pub random: u32,
    /// The bytes of the hash keys, as 32-bit numbers.
    pub words: [u32; 20],
}

impl Seeds {
    /// Parses a seed file: 21 decimal numbers; text after them is ignored.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers =
            text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(|word| {
                std::str::from_utf8(word).ok()?.parse::<i64>().ok().map(|number| number as u32)
            });
        let random = numbers.next()??;
        let mut words = [0; 20];
        for word in &mut words {
            *word = numbers.next()??;
        }
        Some(Seeds { random, words })
    }

    /// Seeds from 80 random bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 80]) -> Self {
        let mut seeds = Seeds::default();
        for (word, bytes) in seeds.words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
            seeds.random = (seeds.random ^ *word).rotate_left(1);
        }
        seeds
    }

    /// The text of a seed file.
    #[must_use]
    pub fn to_text(&self) -> String {
        std::iter::once(&self.random)
            .chain(&self.words)
            .map(|number| format!("{number}\n"))
            .collect()
    }

    fn bytes(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(self.words) {
            *bytes = word.to_le_bytes();
        }
        bytes
    }

    /// The hash functions with these seeds.
    #[must_use]
    pub fn hashes(&self) -> Hashes {
        let bytes = self.bytes();
        let pair = |at: usize| u64::from(self.words[at]) | u64::from(self.words[at + 1]) << 32;
        Hashes {
            sip: [pair(16), pair(18)],
            highway: words_of(&Sha256::digest(&bytes[..64])),
            hmac_md5: Md5::digest(&bytes[..64]).into(),
            hmac_sha256: Sha256::digest(&bytes[8..]).into(),
        }
    }
}

/// Keyed hash functions.
#[derive(Clone, Copy, Debug)]
pub struct Hashes {
    sip: [u64; 2],
    highway: [u64; 4],
    /// The key of `md5_hmac`.
    pub hmac_md5: [u8; 16],
    /// The key of `sha256_hmac`.
    pub hmac_sha256: [u8; 32],
}

impl Hashes {
    /// The hash of a table key or of other bytes: `SipHash-2-4`.
    #[must_use]
    pub fn key(&self, bytes: impl AsRef<[u8]>) -> u64 {
        SipHasher24::new_with_keys(self.sip[0], self.sip[1]).hash(bytes.as_ref())
    }

    /// A 128-bit hash: `HighwayHash`.
    #[must_use]
    pub fn hash128(&self, bytes: &[u8]) -> [u64; 2] {
        HighwayHasher::new(highway::Key(self.highway)).hash128(bytes)
    }

    /// A 256-bit hash: `HighwayHash`.
    #[must_use]
    pub fn hash256(&self, bytes: &[u8]) -> [u64; 4] {
        HighwayHasher::new(highway::Key(self.highway)).hash256(bytes)
    }
}

/// Hashes that depend only on the constant `digest_salt`, not on seeds: for generated names of files and
/// addresses.
#[derive(Clone, Copy, Debug)]
pub struct SaltedHashes([u64; 4]);

impl SaltedHashes {
    /// Hashes with the value of `digest_salt`.
    #[must_use]
    pub fn new(salt: &[u8]) -> Self {
        SaltedHashes(words_of(&Sha256::digest(salt)))
    }

    /// Hashes without a salt.
    #[must_use]
    pub fn unsalted() -> Self {
        SaltedHashes([0; 4])
    }

    /// A 64-bit hash.
    #[must_use]
    pub fn hash64(&self, bytes: &[u8]) -> u64 {
        HighwayHasher::new(highway::Key(self.0)).hash64(bytes)
    }

    /// A 128-bit hash.
    #[must_use]
    pub fn hash128(&self, bytes: &[u8]) -> [u64; 2] {
        HighwayHasher::new(highway::Key(self.0)).hash128(bytes)
    }
}

fn words_of(digest: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
