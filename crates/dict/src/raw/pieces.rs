//! Byte strings of 16 to 64 bytes, in four pieces of sixteen: as many whatever the length, so that hashing and comparing
//! them asks nothing of it. What branches on lengths is foreseen wrongly as often as not.

use core::ops::RangeInclusive;

/// Bytes of a piece.
pub(crate) const PIECE: usize = 16;

/// Pieces of a string.
const COUNT: usize = 4;

/// Lengths of strings that four pieces cover.
pub(crate) const LENGTHS: RangeInclusive<usize> = PIECE..=COUNT * PIECE;

/// A byte string as long as [`LENGTHS`] allow: its pieces cover it, and overlap where it is shorter than they are together.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'b>(pub(super) [&'b [u8; PIECE]; COUNT]);

/// Where the pieces of a string of such a length begin: none is nearer to its end than a piece is long.
#[inline(always)]
pub(crate) fn starts(len: usize) -> [usize; COUNT] {
    let last = len - PIECE;
    let second = last.min(PIECE);
    [0, second, last - second, last]
}

/// Secret words that the words of four pieces are added to, each to its own.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Secret(pub(crate) [[u32; 4]; COUNT]);

impl<'b> Pieces<'b> {
    /// The pieces of these bytes; `None` if their number is not one of [`LENGTHS`].
    #[inline(always)]
    pub(crate) fn of(bytes: &'b [u8]) -> Option<Self> {
        let len = bytes.len();
        // SAFETY: there are a piece at least, and `starts` leaves one behind each of them.
        let piece = |start| unsafe { &*bytes.as_ptr().add(start).cast() };
        LENGTHS.contains(&len).then(|| Pieces(starts(len).map(piece)))
    }

    /// Whether all four are the same as these.
    #[inline(always)]
    pub(crate) fn are(self, other: Pieces<'_>) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_mm_and_si128, _mm_cmpeq_epi8, _mm_movemask_epi8};
            let equal = |at: usize| {
                let (own, others) = (vector::load(self.0[at]), vector::load(other.0[at]));
                // SAFETY: SSE2 is part of x86-64.
                unsafe { _mm_cmpeq_epi8(own, others) }
            };
            // SAFETY: as above.
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

    /// Two sums of products: of each piece the first two words of 32 bits, each added to its own of the secret, make one
    /// product for the first sum, and the last two one for the second.
    ///
    /// This is NH, the universal hash of UMAC (RFC 4418, section 5.2.2): for two strings that
    /// differ in a piece and a number chosen without knowing the secret, some sum of the one
    /// exceeds that of the other by that number with probability at most 2^-32. The multiplications
    /// wait for memory in the vector unit, separate from other instructions, so the processor can
    /// run further ahead.
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
            // SAFETY: SSE2 is part of x86-64; the 16 bytes read are those of the four words, which stand at a multiple of
            // 16: so does the first, by its type, and so do the others, as each takes 16 bytes.
            unsafe {
                let sums = _mm_add_epi32(load(pieces.0[at]), _mm_load_si128(words.cast()));
                // The second and the last word in front of the first and the third.
                _mm_mul_epu32(sums, _mm_shuffle_epi32::<0b11_11_01_01>(sums))
            }
        };
        // SAFETY: as above; nothing is read.
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
            let Some(Pieces(pieces)) = Pieces::of(&bytes[..len]) else {
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
            let pieces = Pieces::of(&bytes).expect("as many");
            assert_eq!(pieces.products(&secret), portable::products(pieces, &secret));
            assert!(pieces.are(Pieces::of(&bytes.clone()).expect("as many")));
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                let other = Pieces::of(&other).expect("as many");
                assert!(!pieces.are(other));
                assert_ne!(pieces.products(&secret), other.products(&secret));
            }
        }
    }
}
