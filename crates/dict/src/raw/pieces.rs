//! Byte strings of 16 to 64 bytes, in four pieces of sixteen. The number of pieces does not depend
//! on the length, so hashing and comparing need no branch on the length, which would often be
//! mispredicted.

use core::ops::RangeInclusive;

/// Bytes of a piece.
pub(crate) const PIECE: usize = 16;

/// Pieces of a string.
const COUNT: usize = 4;

/// Lengths of strings that four pieces cover.
pub(crate) const LENGTHS: RangeInclusive<usize> = PIECE..=COUNT * PIECE;

/// A byte string as long as [`LENGTHS`] allow: its pieces cover it, and overlap unless it is 64
/// bytes long.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'b>(pub(super) [&'b [u8; PIECE]; COUNT]);

/// Offsets of the pieces of a string of such a length; each piece ends within the string.
#[inline(always)]
pub(crate) fn starts(len: usize) -> [usize; COUNT] {
    let last = len - PIECE;
    let second = last.min(PIECE);
    [0, second, last - second, last]
}

/// Secret words that are added to the words of four pieces, one for each word.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Secret(pub(crate) [[u32; 4]; COUNT]);

impl<'b> Pieces<'b> {
    /// The pieces of these bytes; `None` if their number is not one of [`LENGTHS`].
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &'b [u8]) -> Option<Self> {
        let len = bytes.len();
        // SAFETY: the string has at least one piece, and each of `starts` leaves room for a piece.
        let piece = |start| unsafe { &*bytes.as_ptr().add(start).cast() };
        LENGTHS.contains(&len).then(|| Pieces(starts(len).map(piece)))
    }

    /// Whether all four pieces equal those of `other`.
    #[inline(always)]
    pub(crate) fn equals(self, other: Pieces<'_>) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_mm_and_si128, _mm_cmpeq_epi8, _mm_movemask_epi8};
            let equal = |at: usize| {
                let (own, others) = (vector::load(self.0[at]), vector::load(other.0[at]));
                // SAFETY: SSE2 is part of x86-64.
                unsafe { _mm_cmpeq_epi8(own, others) }
            };
            // SAFETY: SSE2 is part of x86-64.
            unsafe {
                let front = _mm_and_si128(equal(0), equal(1));
                let back = _mm_and_si128(equal(2), equal(3));
                _mm_movemask_epi8(_mm_and_si128(front, back)) == 0xffff
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self.0 == other.0
        }
    }

    /// Two sums of products: the first two 32-bit words of each piece, added to their words of the
    /// secret, are multiplied for the first sum, and the last two words for the second.
    ///
    /// This is NH, the universal hash of UMAC (RFC 4418, section 5.2.2): for two strings that
    /// differ in a piece, and any number chosen without knowing the secret, the probability that
    /// the sums differ by that number is at most 2^-32. The multiplications run in the vector unit,
    /// so while they wait for memory the processor can execute further ahead.
    #[inline(always)]
    pub(crate) fn products(self, secret: &Secret) -> [u64; 2] {
        #[cfg(target_arch = "x86_64")]
        return vector::products(self, secret);
        #[cfg(not(target_arch = "x86_64"))]
        portable::products(self, secret)
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use core::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_add_epi64, _mm_cvtsi128_si64, _mm_load_si128, _mm_loadu_si128,
        _mm_mul_epu32, _mm_shuffle_epi32, _mm_unpackhi_epi64,
    };

    use super::{PIECE, Pieces, Secret};

    #[inline(always)]
    pub(super) fn load(piece: &[u8; PIECE]) -> __m128i {
        // SAFETY: SSE2 is part of x86-64; the 16 bytes read are those of the piece, at any alignment.
        unsafe { _mm_loadu_si128(core::ptr::from_ref(piece).cast()) }
    }

    #[inline(always)]
    pub(super) fn products(pieces: Pieces<'_>, secret: &Secret) -> [u64; 2] {
        let product = |at: usize| {
            let words: *const [u32; 4] = &raw const secret.0[at];
            // SAFETY: SSE2 is part of x86-64; the 16 bytes read are those of the four words, which
            // are aligned to 16 bytes: the first by its type, the others because each takes 16
            // bytes.
            unsafe {
                let sums = _mm_add_epi32(load(pieces.0[at]), _mm_load_si128(words.cast()));
                // Multiplies the first word by the second and the third by the last.
                _mm_mul_epu32(sums, _mm_shuffle_epi32::<0b11_11_01_01>(sums))
            }
        };
        // SAFETY: SSE2 is part of x86-64; no memory is read.
        unsafe {
            let front = _mm_add_epi64(product(0), product(1));
            let back = _mm_add_epi64(product(2), product(3));
            let sums = _mm_add_epi64(front, back);
            let high = _mm_unpackhi_epi64(sums, sums);
            [sums, high].map(|sum| _mm_cvtsi128_si64(sum) as u64)
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{Pieces, Secret};

    pub(super) fn products(pieces: Pieces<'_>, secret: &Secret) -> [u64; 2] {
        let mut sums = [0_u64; 2];
        for (piece, secret) in pieces.0.iter().zip(&secret.0) {
            let (words, _) = piece.as_chunks::<4>();
            let mut added = words
                .iter()
                .zip(secret)
                .map(|(word, secret)| u64::from(u32::from_le_bytes(*word).wrapping_add(*secret)));
            for sum in &mut sums {
                let product = added.next().unwrap_or(0) * added.next().unwrap_or(0);
                *sum = sum.wrapping_add(product);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_string_and_nothing_else() {
        let bytes: Vec<u8> = (0..70).collect();
        for len in 0..70 {
            let Some(Pieces(pieces)) = Pieces::from_bytes(&bytes[..len]) else {
                assert!(!(16..=64).contains(&len));
                continue;
            };
            let mut all: Vec<u8> = pieces.into_iter().flatten().copied().collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all, &bytes[..len]);
        }
    }

    #[test]
    fn vectors_and_loops_agree() {
        let secret = Secret(core::array::from_fn(|piece| {
            core::array::from_fn(|word| 0x9e37_79b9_u32.wrapping_mul((4 * piece + word) as u32 + 1))
        }));
        for len in 16..=64 {
            let bytes: Vec<u8> = (0..len).map(|at| (at * 37 + len * 11) as u8).collect();
            let pieces = Pieces::from_bytes(&bytes).expect("as many");
            assert_eq!(pieces.products(&secret), portable::products(pieces, &secret));
            assert!(pieces.equals(Pieces::from_bytes(&bytes.clone()).expect("as many")));
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                let other = Pieces::from_bytes(&other).expect("as many");
                assert!(!pieces.equals(other));
                assert_ne!(pieces.products(&secret), other.products(&secret));
            }
        }
    }
}
