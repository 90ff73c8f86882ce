//! The tags of small arrays.

use core::hash::{Hash, Hasher};

/// A fast hash of a key whose upper eight bits are its tag.
///
/// Tags only distinguish entries of one small array, so they need no secret. Keys crafted with
/// equal tags make a search compare at most [`FEW_MAX`](crate::raw::few::FEW_MAX) keys.
#[inline]
pub(crate) fn digest<Q: Hash + ?Sized>(key: &Q) -> u64 {
    let mut digest = Digest(0);
    key.hash(&mut digest);
    digest.finish()
}

/// The words mixed so far, folded into one.
struct Digest(u64);

impl Digest {
    #[inline]
    fn mix(&mut self, word: u64) {
        // Rotated by a number of bits that is no multiple of a field's width.
        self.0 = self.0.rotate_left(21) ^ word;
    }
}

impl Hasher for Digest {
    #[inline]
    fn finish(&self) -> u64 {
        // A multiple of the golden ratio spreads every bit upwards.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        // The first and the last eight bytes: the bytes between rarely distinguish keys further.
        let word = |chunk: Option<&[u8; 8]>| u64::from_le_bytes(*chunk.unwrap_or(&[0; 8]));
        let half =
            |chunk: Option<&[u8; 4]>| u64::from(u32::from_le_bytes(*chunk.unwrap_or(&[0; 4])));
        if bytes.len() >= 8 {
            self.mix(word(bytes.first_chunk()).rotate_left(5) ^ word(bytes.last_chunk()));
        } else if bytes.len() >= 4 {
            self.mix(half(bytes.first_chunk()) | half(bytes.last_chunk()) << 32);
        } else if let [first, .., last] = bytes {
            self.mix(u64::from(*first) | u64::from(*last) << 8 | u64::from(bytes[1]) << 16);
        } else if let [only] = bytes {
            self.mix(u64::from(*only));
        }
    }

    #[inline]
    fn write_u8(&mut self, i: u8) {
        self.mix(i.into());
    }

    #[inline]
    fn write_u16(&mut self, i: u16) {
        self.mix(i.into());
    }

    #[inline]
    fn write_u32(&mut self, i: u32) {
        self.mix(i.into());
    }

    #[inline]
    fn write_u64(&mut self, i: u64) {
        self.mix(i);
    }

    #[inline]
    fn write_u128(&mut self, i: u128) {
        self.mix(i as u64 ^ ((i >> 64) as u64).rotate_left(5));
    }

    #[inline]
    fn write_usize(&mut self, i: usize) {
        self.mix(i as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_a_little_differ_in_their_digests() {
        let spread = |digests: Vec<u64>| {
            digests
                .iter()
                .map(|digest| digest >> 56)
                .collect::<std::collections::HashSet<_>>()
                .len()
        };
        assert!(spread((0..16_u64).map(|i| digest(&i)).collect()) > 12);
        assert!(spread((0..16_u64).map(|i| digest(&(i << 40))).collect()) > 12);
        assert!(spread((0..16_u8).map(|i| digest(&[7, i, 7][..])).collect()) > 12);
        assert!(spread((0..16).map(|i| digest(format!("name{i}").as_str())).collect()) > 10);
        assert_eq!(digest(&[1_u8, 2, 3][..]), digest(&vec![1_u8, 2, 3]));
    }
}
