//! Prefetches memory into the CPU cache.
#![allow(unsafe_code)]

/// Size of a cache line on common machines, in bytes.
const LINE: usize = 64;

/// Prefetches the cache lines of the `T` at `at`. This is a hint: nothing is read, the address need not be valid, and
/// it has no effect on machines without such an instruction.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    for line in 0..size_of::<T>().div_ceil(LINE) {
        touch(at.cast::<u8>().wrapping_add(line * LINE));
    }
}

/// Like [`prefetch`], but for memory that is needed later: into the second-level cache, so that nothing is evicted from
/// the first-level cache.
#[inline(always)]
pub fn prefetch_for_later<T>(at: *const T) {
    for line in 0..size_of::<T>().div_ceil(LINE) {
        touch_for_later(at.cast::<u8>().wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn touch(at: *const u8) {
    use core::arch::x86_64::_MM_HINT_T0;
    use core::arch::x86_64::_mm_prefetch;
    // SAFETY: PREFETCHT0 belongs to SSE, which every x86-64 has. It accesses no memory in the sense
    // of the language and does not fault, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn touch_for_later(at: *const u8) {
    use core::arch::x86_64::_MM_HINT_T1;
    use core::arch::x86_64::_mm_prefetch;
    // SAFETY: as for `touch`.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn touch(_at: *const u8) {}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn touch_for_later(_at: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_is_accepted() {
        let value = [7_u64; 40];
        prefetch(&raw const value);
        prefetch(core::ptr::null::<[u8; 1000]>());
        prefetch_for_later(core::ptr::null::<[u8; 1000]>());
        prefetch(core::ptr::without_provenance::<u8>(usize::MAX));
        assert_eq!(value, [7; 40]);
    }
}
