//! The allocator, and how much of it is in use, and how often it is asked, while a benchmark wants to know.
//!
//! Rows, streams and tables make many small allocations that live long: a quarter of the CPU time of a run
//! would go to the system's allocator, so the command uses mimalloc. Counting costs a test of one flag
//! where nobody measures.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

/// The allocator of the command.
pub(crate) struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// Allocations and growths.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// What an allocation really takes: its size class, not what was asked for.
#[cold]
fn add(at: *mut u8) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `at` was just returned by this allocator.
    IN_USE.fetch_add(unsafe { MiMalloc.usable_size(at) }, Ordering::Relaxed);
}

#[cold]
fn sub(at: *mut u8) {
    // SAFETY: `at` is about to be freed or resized by this allocator, so it is still allocated.
    IN_USE.fetch_sub(unsafe { MiMalloc.usable_size(at) }, Ordering::Relaxed);
}

// SAFETY: every call goes to mimalloc as it came; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let at = unsafe { MiMalloc.alloc(layout) };
        if ON.load(Ordering::Relaxed) {
            add(at);
        }
        at
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let at = unsafe { MiMalloc.alloc_zeroed(layout) };
        if ON.load(Ordering::Relaxed) {
            add(at);
        }
        at
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if ON.load(Ordering::Relaxed) {
            sub(at);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let count = ON.load(Ordering::Relaxed);
        if count {
            sub(at);
        }
        // SAFETY: the caller's promise, passed on.
        let at = unsafe { MiMalloc.realloc(at, layout, size) };
        if count {
            add(at);
        }
        at
    }
}

/// Bytes of the allocator that `make` leaves in use, with the allocator's own rounding, and what it made.
pub(crate) fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = IN_USE.load(Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    let made = make();
    ON.store(false, Ordering::Relaxed);
    (made, IN_USE.load(Ordering::Relaxed).wrapping_sub(before))
}

/// How often `make` allocates something, or lets something grow, in all threads.
pub(crate) fn allocations_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = CALLS.load(Ordering::Relaxed);
    let (made, _) = bytes_of(make);
    (made, CALLS.load(Ordering::Relaxed).wrapping_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_allocations_and_growths() {
        let (kept, calls) = allocations_of(|| {
            let mut grows = Vec::with_capacity(10);
            grows.resize(1_000, 7_u8);
            (grows, Box::new(1))
        });
        // Tests beside this one allocate, too.
        assert!(calls >= 3, "{calls} for {kept:?}");
    }

    #[test]
    fn counts_what_is_kept_in_classes() {
        // Other tests allocate at the same time: once in many times they do not.
        let close = |_| {
            let (kept, bytes) = bytes_of(|| {
                drop(vec![0_u8; 500]);
                vec![1_u8; 1000]
            });
            kept.len() <= bytes && bytes <= 1024 + 512
        };
        assert!((0..1000).any(close));
    }
}
