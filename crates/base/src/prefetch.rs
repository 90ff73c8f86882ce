//! Asking the cache for memory before it is needed.
#![allow(unsafe_code)]

/// Bytes of a cache line, on all machines that matter here.
const LINE: usize = 64;

/// Asks for the cache lines in which a `T` at `at` lies. It is a hint: nothing is read, the address
/// need not be good, and where the machine has no such instruction nothing happens.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    for line in 0..size_of::<T>().div_ceil(LINE) {
        touch(at.cast::<u8>().wrapping_add(line * LINE));
    }
}

/// The same for what is needed later only: as near as the second-level cache, so that nothing in the first
/// one has to go for it.
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
    // SAFETY: PREFETCHT0 belongs to SSE, which every x86-64 has. It accesses no memory as far as the
    // language can see, and does not fault, whatever the address.
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
    fn any_address_will_do() {
        let value = [7_u64; 40];
        prefetch(&raw const value);
        prefetch(core::ptr::null::<[u8; 1000]>());
        prefetch_for_later(core::ptr::null::<[u8; 1000]>());
        prefetch(core::ptr::without_provenance::<u8>(usize::MAX));
        assert_eq!(value, [7; 40]);
    }
}
