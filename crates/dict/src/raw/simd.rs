//! Tags compared a group at a time, and memory asked for ahead of its use.
//!
//! On x86-64 one vector instruction of SSE2, which every such processor has, compares a whole group; elsewhere a
//! loop does, which compilers turn into what the processor offers. Tests hold the two against each other.

/// The bytes of `tags` that are `tag`: a bit each.
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

/// The same for the tag `RAISE` above `tag`, or the last.
#[inline(always)]
pub(crate) fn bytes_after<const RAISE: u8>(tags: &[u8; 16], tag: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_adds_epu8, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
        };
        // SAFETY: as above.
        let equal = unsafe {
            let tags = _mm_loadu_si128(tags.as_ptr().cast());
            let tag = _mm_adds_epu8(_mm_set1_epi8(tag as i8), _mm_set1_epi8(RAISE as i8));
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, tag))
        };
        equal as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable::bytes_of(tags, tag.saturating_add(RAISE))
}

/// Asks for the cache line at `at`, without waiting for it. Elsewhere than on x86-64 nothing happens: then a
/// batch still has its steps apart, which is what out-of-order processors need.
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
                assert_eq!(bytes_after::<2>(&tags, tag), bytes_of(&tags, tag + 2));
            }
        }
        assert_eq!((bytes_of(&[9; 16], 9), bytes_after::<2>(&[255; 16], 254)), (0xffff, 0xffff));
        prefetch::<u8>(core::ptr::null());
    }
}
