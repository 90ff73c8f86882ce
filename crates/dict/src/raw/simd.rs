//! Tags compared a group at a time, and prefetching.
//!
//! On x86-64 one vector instruction of SSE2, which every such processor has, compares a whole
//! group; elsewhere a loop does, which compilers vectorise. Tests compare the results of both.

/// A bit set of the bytes of `tags` that equal `tag`.
#[inline(always)]
pub(crate) fn bytes_of(tags: &[u8; 16], tag: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
        };
        // SAFETY: SSE2 is part of x86-64; the 16 bytes read are those of `tags`, at any alignment.
        let equal = unsafe {
            let tags = _mm_loadu_si128(tags.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag as i8)))
        };
        equal as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::bytes_of(tags, tag)
}

/// The byte of a hash that becomes the tag: the fifth, which a vector instruction broadcasts
/// without a shift.
#[inline(always)]
pub(crate) fn byte_of_hash(hash: u64) -> u8 {
    (hash >> 32) as u8
}

/// The upper byte of a digest.
#[inline(always)]
pub(crate) fn byte_of_digest(digest: u64) -> u8 {
    (digest >> 56) as u8
}

/// [`bytes_of`] for the tag [`byte_of_hash`] plus `TAG_OFFSET`, saturating.
#[inline(always)]
pub(crate) fn bytes_of_hash<const TAG_OFFSET: u8>(tags: &[u8; 16], hash: u64) -> u32 {
    bytes_of_number::<0x00, TAG_OFFSET>(tags, hash, byte_of_hash)
}

/// [`bytes_of`] for the tag [`byte_of_digest`] plus `TAG_OFFSET`, saturating.
#[inline(always)]
pub(crate) fn bytes_of_digest<const TAG_OFFSET: u8>(tags: &[u8; 16], digest: u64) -> u32 {
    bytes_of_number::<0xff, TAG_OFFSET>(tags, digest, byte_of_digest)
}

/// [`bytes_of`] for a byte of a number plus `TAG_OFFSET`, saturating. `SPREAD` repeats the index of that
/// byte among the upper four bytes in four fields of two bits each, as shuffle instructions expect.
#[inline(always)]
fn bytes_of_number<const SPREAD: i32, const TAG_OFFSET: u8>(
    tags: &[u8; 16],
    number: u64,
    byte: impl Fn(u64) -> u8,
) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_adds_epu8, _mm_cmpeq_epi8, _mm_cvtsi64_si128, _mm_loadu_si128, _mm_movemask_epi8,
            _mm_set1_epi8, _mm_shuffle_epi32, _mm_shufflehi_epi16, _mm_unpacklo_epi8,
        };
        // SAFETY: as in `bytes_of`.
        let equal = unsafe {
            let tags = _mm_loadu_si128(tags.as_ptr().cast());
            let bytes =
                _mm_adds_epu8(_mm_cvtsi64_si128(number as i64), _mm_set1_epi8(TAG_OFFSET as i8));
            // Doubles each byte, then repeats the selected byte four times in each half.
            let twice = _mm_unpacklo_epi8(bytes, bytes);
            let tag = _mm_shuffle_epi32::<0xff>(_mm_shufflehi_epi16::<SPREAD>(twice));
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, tag))
        };
        let _ = byte;
        equal as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::bytes_of(tags, byte(number).saturating_add(TAG_OFFSET))
}

/// Sets a tag in its lane. All sixteen are written: a wide load after a narrow store would stall.
#[inline(always)]
pub(crate) fn set_byte(tags: &mut [u8; 16], lane: usize, tag: u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_and_si128, _mm_andnot_si128, _mm_loadu_si128, _mm_or_si128, _mm_set1_epi8,
            _mm_storeu_si128,
        };
        /// A byte of ones between zeros.
        const ONE: [u8; 31] = {
            let mut bytes = [0; 31];
            bytes[15] = 0xff;
            bytes
        };
        let Some(mask) = ONE.get(15_usize.wrapping_sub(lane)..).and_then(<[u8]>::first_chunk::<16>)
        else {
            return;
        };
        // SAFETY: SSE2 is part of x86-64; the 16 bytes read are those of `tags` and of `mask`, and those written of `tags`,
        // at any alignment.
        unsafe {
            let (old, mask) =
                (_mm_loadu_si128(tags.as_ptr().cast()), _mm_loadu_si128(mask.as_ptr().cast()));
            let new = _mm_or_si128(
                _mm_andnot_si128(mask, old),
                _mm_and_si128(mask, _mm_set1_epi8(tag as i8)),
            );
            _mm_storeu_si128(tags.as_mut_ptr().cast(), new);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    if let Some(to) = tags.get_mut(lane) {
        *to = tag;
    }
}

/// Prefetches the cache line at `at`. Does nothing on targets other than x86-64, where the separate
/// steps of a batch still let out-of-order processors overlap cache misses.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it reads nothing that the program sees and faults on no address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    pub(super) fn bytes_of(tags: &[u8; 16], tag: u8) -> u32 {
        tags.iter().enumerate().map(|(lane, t)| u32::from(*t == tag) << lane).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_loops_agree() {
        for seed in 0..200_usize {
            let tags = core::array::from_fn(|i| ((seed * 31 + i * 7) % 5) as u8);
            for tag in 0..5 {
                assert_eq!(bytes_of(&tags, tag), portable::bytes_of(&tags, tag));
                let hash = u64::from(tag) << 32 | 0x0102_0300_0405_0607;
                assert_eq!(byte_of_hash(hash), tag);
                assert_eq!(bytes_of_hash::<2>(&tags, hash), bytes_of(&tags, tag + 2));
                let digest = u64::from(tag) << 56 | 0x0002_0304_0506_0708;
                assert_eq!(byte_of_digest(digest), tag);
                assert_eq!(bytes_of_digest::<1>(&tags, digest), bytes_of(&tags, tag + 1));
            }
        }
        assert_eq!(bytes_of(&[9; 16], 9), 0xffff);
        assert_eq!(bytes_of_hash::<2>(&[255; 16], 254 << 32), 0xffff);
        assert_eq!(bytes_of_digest::<1>(&[255; 16], 255 << 56), 0xffff);
        prefetch::<u8>(core::ptr::null());
    }

    #[test]
    fn only_the_byte_of_the_lane_is_set() {
        for lane in 0..16 {
            let mut tags = core::array::from_fn(|i| i as u8);
            set_byte(&mut tags, lane, 99);
            let right = |i| if i == lane { 99 } else { i as u8 };
            assert_eq!(tags, core::array::from_fn(right));
        }
        let mut tags = [1; 16];
        set_byte(&mut tags, 16, 2);
        assert_eq!(tags, [1; 16]);
    }
}
