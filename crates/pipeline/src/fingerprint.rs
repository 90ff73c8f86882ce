//! 128-bit hashes that identify keys of a few words.
//!
//! Fingerprints are keyed with random numbers, so that collisions cannot be crafted. The probability of a collision
//! among 10^9 distinct keys is below 10^-20.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// 127 bits of a keyed hash, and a bit that is always set, so that no fingerprint is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// 64 bits of the hash.
    pub first: u64,
    /// The other 63 bits of the hash; the lowest bit is set.
    pub second: u64,
}

/// A keyed fingerprint function; clones return the same fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprints([[u64; 2]; 2]);

impl Default for Fingerprints {
    fn default() -> Self {
        let state = RandomState::default();
        Self([1, 3].map(|n| [state.hash_one(n), state.hash_one(n + 1)]))
    }
}

impl Fingerprints {
    /// The fingerprint of a key, by folded multiplication of two words per step, in two independent lanes.
    #[inline]
    pub fn of(&self, key: &[u64]) -> Fingerprint {
        let [[first, first_factor], [second, second_factor]] = self.0;
        let (mut x, mut y) = (first, second);
        let (pairs, last) = key.as_chunks::<2>();
        for [a, b] in pairs {
            x = fold(x ^ a, first_factor ^ b);
            y = fold(y ^ a, second_factor ^ b);
        }
        if let [a] = last {
            x = fold(x ^ a, first_factor);
            y = fold(y ^ a, second_factor);
        }
        // The length is mixed in last and separately, so that no word can compensate for it.
        let len = key.len() as u64;
        Fingerprint {
            first: fold(x ^ first_factor, first ^ len),
            second: fold(y ^ second_factor, second ^ len) | 1,
        }
    }
}

/// Combines both halves of a product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn fingerprints_are_distinct_and_clones_agree() {
        let fingerprints = Fingerprints::default();
        let mut seen = HashSet::new();
        for len in 0..6 {
            for n in 0..1000 {
                let mut key = vec![0; len];
                if let Some(last) = key.last_mut() {
                    *last = n;
                } else if n > 0 {
                    continue;
                }
                let fingerprint = fingerprints.of(&key);
                assert_eq!(fingerprint, fingerprints.clone().of(&key));
                assert!(
                    seen.insert(fingerprint.first) & seen.insert(fingerprint.second),
                    "{key:?}"
                );
            }
        }
        assert!([[5, 7], [4, 7], [5, 6]].iter().all(|key| seen.insert(fingerprints.of(key).first)));
        assert_ne!(fingerprints.of(&[1]), Fingerprints::default().of(&[1]));
    }

    #[test]
    fn each_half_is_evenly_distributed() {
        let fingerprints = Fingerprints::default();
        let mut counts = [[0_u32; 64]; 2];
        for n in 0..64_000 {
            let fingerprint = fingerprints.of(&[n, 7, 0, 0]);
            counts[0][(fingerprint.first >> 58) as usize] += 1;
            counts[1][(fingerprint.second >> 1 & 63) as usize] += 1;
        }
        for count in counts.into_iter().flatten() {
            assert!((700..1300).contains(&count), "{count}");
        }
    }
}
