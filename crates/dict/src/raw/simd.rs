//! Tags compared a group at a time, and memory asked for ahead of its use.
//!
//! On x86-64 one vector instruction of SSE2, which every such processor has, compares a whole group; elsewhere a
//! loop does, which compilers turn into what the processor offers. Tests hold the two against each other.

/// Every other bit, one for each of the first seven lanes.
const SEVEN_LANES: u32 = 0x1555;

/// The lanes among the first seven that hold `tag`: bit `2 × lane` of each.
#[inline]
pub(crate) fn lanes_of(tags: &[u16; 8], tag: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi16,
        };
        // SAFETY: SSE2 is part of x86-64; the 16 bytes read are those of `tags`, at any alignment.
        let equal = unsafe {
            let tags = _mm_loadu_si128(tags.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi16(tags, _mm_set1_epi16(tag as i16)))
        };
        equal as u32 & SEVEN_LANES
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::lanes_of(tags, tag)
}

/// The bytes of `tags` that are `tag`: a bit each.
#[inline]
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

/// Asks for the cache line at `at`, without waiting for it. Elsewhere than on x86-64 nothing happens: then a
/// batch still has its steps apart, which is what out-of-order processors need.
#[inline]
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
    pub(super) fn lanes_of(tags: &[u16; 8], tag: u16) -> u32 {
        let lanes = tags.iter().enumerate().take(7);
        lanes.map(|(lane, t)| u32::from(*t == tag) << (2 * lane)).sum()
    }

    pub(super) fn bytes_of(tags: &[u8; 16], tag: u8) -> u32 {
        tags.iter().enumerate().map(|(lane, t)| u32::from(*t == tag) << lane).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_loops_agree() {
        for seed in 0..200_u16 {
            let word = |i: u16| (seed.wrapping_mul(31).wrapping_add(i * 7)) % 5;
            let words: [u16; 8] = core::array::from_fn(|i| word(i as u16) * 0x0101);
            let bytes: [u8; 16] = core::array::from_fn(|i| word(i as u16) as u8);
            for tag in 0..5_u16 {
                assert_eq!(
                    lanes_of(&words, tag * 0x0101),
                    portable::lanes_of(&words, tag * 0x0101)
                );
                assert_eq!(bytes_of(&bytes, tag as u8), portable::bytes_of(&bytes, tag as u8));
            }
        }
        assert_eq!(lanes_of(&[9; 8], 9), SEVEN_LANES);
        assert_eq!(bytes_of(&[9; 16], 9), 0xffff);
        prefetch::<u8>(core::ptr::null());
    }
}
