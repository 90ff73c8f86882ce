//! Keys of a few words as 128 bits, by which they are distinguished.
//!
//! Fingerprints are keyed by random numbers, so that collisions cannot be crafted; a chance
//! collision among a thousand million different keys has a probability below 10^-20.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// 127 bits of keyed hash, and one that is set, so that none is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Some of them, each as random as the others.
    pub first: u64,
    /// The rest; the lowest is set.
    pub second: u64,
}

/// Makes fingerprints: the same of clones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprints([[u64; 2]; 2]);

impl Default for Fingerprints {
    fn default() -> Self {
        let state = RandomState::default();
        Self([1, 3].map(|n| [state.hash_one(n), state.hash_one(n + 1)]))
    }
}

impl Fingerprints {
    /// Of a key: by folded multiplication, two words a step, in two lanes of which neither waits for
    /// the other.
    #[inline]
    pub fn of(&self, key: &[u64]) -> Fingerprint {
        let [[first, by], [second, with]] = self.0;
        let (mut x, mut y) = (first, second);
        let (pairs, last) = key.as_chunks::<2>();
        for [a, b] in pairs {
            x = fold(x ^ a, by ^ b);
            y = fold(y ^ a, with ^ b);
        }
        if let [a] = last {
            x = fold(x ^ a, by);
            y = fold(y ^ a, with);
        }
        // Last and apart from the words, so that none of them can make up for it.
        let len = key.len() as u64;
        Fingerprint { first: fold(x ^ by, first ^ len), second: fold(y ^ with, second ^ len) | 1 }
    }
}

/// Both halves of a product as one.
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
    fn keys_have_their_own_and_clones_make_the_same() {
        let make = Fingerprints::default();
        let mut seen = HashSet::new();
        for len in 0..6 {
            for n in 0..1000 {
                let mut key = vec![0; len];
                if let Some(last) = key.last_mut() {
                    *last = n;
                } else if n > 0 {
                    continue;
                }
                let print = make.of(&key);
                assert_eq!(print, make.clone().of(&key));
                assert!(seen.insert(print.first) & seen.insert(print.second), "{key:?}");
            }
        }
        assert!([[5, 7], [4, 7], [5, 6]].iter().all(|key| seen.insert(make.of(key).first)));
        assert_ne!(make.of(&[1]), Fingerprints::default().of(&[1]));
    }

    #[test]
    fn each_half_spreads_over_all_places() {
        let make = Fingerprints::default();
        let mut places = [[0_u32; 64]; 2];
        for n in 0..64_000 {
            let print = make.of(&[n, 7, 0, 0]);
            places[0][(print.first >> 58) as usize] += 1;
            places[1][(print.second >> 1 & 63) as usize] += 1;
        }
        for count in places.into_iter().flatten() {
            assert!((700..1300).contains(&count), "{count}");
        }
    }
}
