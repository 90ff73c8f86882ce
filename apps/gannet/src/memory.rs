//! The allocator, and counters of its usage and calls, enabled for benchmarks and for a limit of
//! state.
//!
//! Rows, streams and tables make many small long-lived allocations: the system's allocator would
//! take a quarter of the CPU time of a run, so the command uses mimalloc. Counting costs a test of
//! one flag where it is disabled.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

use libmimalloc_sys::{mi_malloc, mi_realloc, mi_zalloc};
use mimalloc::MiMalloc;

/// The allocator of the command.
pub(crate) struct Counting;

/// Number of active counters: allocations are counted while it is above 0.
static COUNTERS: AtomicUsize = AtomicUsize::new(0);
/// Calls that allocate or grow a block.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Bytes in use, as published by all threads.
static IN_USE: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// Number of calls of [`in_use_with_overhead`] by this thread.
    static SAMPLE_CALLS: Cell<u32> = const { Cell::new(0) };
    /// Bytes of this thread that are not yet added to [`IN_USE`].
    static UNPUBLISHED: Cell<isize> = const { Cell::new(0) };
    /// Bytes allocated less bytes freed by this thread.
    static THREAD_IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// Peak of resident bytes.
static PEAK_RESIDENT: AtomicU64 = AtomicU64::new(0);
/// Peak of bytes in use.
static PEAK_IN_USE: AtomicU64 = AtomicU64::new(0);
/// Resident bytes at the peak beyond those in use.
static OVERHEAD: AtomicU64 = AtomicU64::new(0);

/// Calls of [`in_use_with_overhead`] by one thread between two samples of resident memory: a sample takes about ten
/// microseconds, and each packet of a flood may allocate dozens of kilobytes.
const SAMPLE_EVERY: u32 = 512;

/// Resident bytes of the process, with its threads, before it analyses anything.
const BASE_USAGE: u64 = 8 << 20;

/// A thread adds its bytes to [`IN_USE`] when they reach this number.
const PUBLISH_STEP: usize = 64 << 10;

fn count(bytes: isize) {
    let _ = THREAD_IN_USE.try_with(|sum| sum.set(sum.get() + bytes));
    // A thread that ends frees memory after its counter is dropped: these bytes are added at once.
    let published = UNPUBLISHED.try_with(|own| {
        let sum = own.get() + bytes;
        let is_due = sum.unsigned_abs() >= PUBLISH_STEP;
        own.set(if is_due { 0 } else { sum });
        if is_due { sum } else { 0 }
    });
    match published.unwrap_or(bytes) {
        0 => {}
        published => {
            IN_USE.fetch_add(published, Ordering::Relaxed);
        }
    }
}

/// Counts an allocation with the size of its size class, not the requested size.
#[cold]
fn add(at: *mut u8) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `at` was just returned by this allocator.
    count(unsafe { MiMalloc.usable_size(at) } as isize);
}

/// Uncounts an allocation.
#[cold]
fn sub(at: *mut u8) {
    // SAFETY: `at` is about to be freed or resized by this allocator, so it is still allocated.
    count(-(unsafe { MiMalloc.usable_size(at) } as isize));
}

/// Whether every block of `size` bytes is aligned to `align` without a request: mimalloc aligns blocks of 16 bytes or more
/// to 16, smaller ones to 8 (`MI_MAX_ALIGN_SIZE`).
///
/// The `mimalloc` crate requests the alignment even then. Without a free block, mimalloc adds `align - 1` bytes to an
/// aligned request, which moves a power of two to the next size class: a fifth more.
#[inline]
fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= 16 && align <= size
}

// SAFETY: every call goes to mimalloc, which gives memory of the requested size and alignment, by
// `is_aligned_anyway` or by its own contract; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let at = if is_aligned_anyway(layout.size(), layout.align()) {
            // SAFETY: any size may be requested.
            unsafe { mi_malloc(layout.size()) }.cast()
        } else {
            // SAFETY: the caller's contract is the callee's.
            unsafe { MiMalloc.alloc(layout) }
        };
        if COUNTERS.load(Ordering::Relaxed) > 0 {
            add(at);
        }
        at
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let at = if is_aligned_anyway(layout.size(), layout.align()) {
            // SAFETY: any size may be requested.
            unsafe { mi_zalloc(layout.size()) }.cast()
        } else {
            // SAFETY: the caller's contract is the callee's.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        };
        if COUNTERS.load(Ordering::Relaxed) > 0 {
            add(at);
        }
        at
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if COUNTERS.load(Ordering::Relaxed) > 0 {
            sub(at);
        }
        // SAFETY: the caller's contract is the callee's.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let counts = COUNTERS.load(Ordering::Relaxed) > 0;
        if counts {
            sub(at);
        }
        let at = if is_aligned_anyway(size, layout.align()) {
            // SAFETY: `at` is allocated, by the caller's contract.
            unsafe { mi_realloc(at.cast(), size) }.cast()
        } else {
            // SAFETY: the caller's contract is the callee's.
            unsafe { MiMalloc.realloc(at, layout, size) }
        };
        if counts {
            add(at);
        }
        at
    }
}

/// Disables transparent huge pages for this process (`PR_SET_THP_DISABLE` in prctl(2)).
///
/// A run over a capture allocates its memory once and ends, so that clearing pages is nearly all that they cost. To clear
/// 400 MB takes 0.2 s in small pages on any machine, and 0.04 to 0.9 s in huge pages: a virtual machine that returned memory
/// to its host needs milliseconds for each.
pub(crate) fn refuse_huge_pages() {
    set_huge_pages(false);
}

/// Enables transparent huge pages for this process: one that runs for days accesses its memory faster in these.
#[cfg(target_os = "linux")]
pub(crate) fn allow_huge_pages() {
    set_huge_pages(true);
}

fn set_huge_pages(allowed: bool) {
    // An error means a kernel without this control, where huge pages stay as they are configured.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!allowed);
    #[cfg(not(target_os = "linux"))]
    let _ = allowed;
}

/// Starts counting allocations and bytes in use, until the process ends.
pub(crate) fn start_counting() {
    COUNTERS.fetch_add(1, Ordering::Relaxed);
}

/// Bytes in use that were allocated since counting started. Up to [`PUBLISH_STEP`] bytes of each other thread are missing.
pub(crate) fn in_use() -> u64 {
    let own = UNPUBLISHED.try_with(Cell::get).unwrap_or(0);
    u64::try_from(IN_USE.load(Ordering::Relaxed) + own).unwrap_or(0)
}

/// [`in_use`] plus the allocator's overhead: memory between used blocks, and freed memory not yet
/// returned to the system. Excludes pages of files, and the base usage of every program.
///
/// The overhead is sampled every [`SAMPLE_EVERY`] calls, and only when the resident size of the process reaches a new peak:
/// a process that does not shrink after memory was freed is no reason to free more.
pub(crate) fn in_use_with_overhead() -> u64 {
    let call = SAMPLE_CALLS.try_with(|calls| calls.replace(calls.get().wrapping_add(1)));
    let in_use = in_use();
    let is_sampled = call.is_ok_and(|n| n.is_multiple_of(SAMPLE_EVERY));
    if is_sampled && let Some(resident) = resident() {
        // Both are peaks: after a peak, fewer bytes are in use, but as many are resident.
        let peak = PEAK_IN_USE.fetch_max(in_use, Ordering::Relaxed).max(in_use);
        if resident > PEAK_RESIDENT.fetch_max(resident, Ordering::Relaxed) {
            OVERHEAD.store(resident.saturating_sub(peak + BASE_USAGE), Ordering::Relaxed);
        }
    }
    in_use + OVERHEAD.load(Ordering::Relaxed)
}

/// Resident bytes not backed by files, if the system reports them (Linux).
fn resident() -> Option<u64> {
    let mut text = [0; 4_096];
    let len = File::open("/proc/self/status").and_then(|mut f| f.read(&mut text)).ok()?;
    let text = std::str::from_utf8(text.get(..len)?).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Runs `make` in this thread and returns its result with the bytes that it leaves allocated, rounded to size classes.
pub(crate) fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let now = || THREAD_IN_USE.try_with(Cell::get).unwrap_or(0);
    COUNTERS.fetch_add(1, Ordering::Relaxed);
    let before = now();
    let result = make();
    let bytes = now() - before;
    COUNTERS.fetch_sub(1, Ordering::Relaxed);
    (result, usize::try_from(bytes).unwrap_or(0))
}

/// Runs `make` and returns its result with the number of allocations and growths meanwhile, in all threads.
pub(crate) fn allocations_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = CALLS.load(Ordering::Relaxed);
    let (result, _) = bytes_of(make);
    (result, CALLS.load(Ordering::Relaxed).wrapping_sub(before))
}

/// Number of allocations and growths since counting started.
pub(crate) fn allocations() -> u64 {
    CALLS.load(Ordering::Relaxed) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn huge_pages_are_refused_and_allowed() {
        let is_enabled = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
            line.map(|line| line.trim() == "1")
        };
        refuse_huge_pages();
        let refused = is_enabled();
        allow_huge_pages();
        let Some(allowed) = is_enabled() else {
            return eprintln!("skipped: the kernel does not say whether there are huge pages");
        };
        assert_eq!((refused, allowed), (Some(false), true));
    }

    #[test]
    fn counts_allocations_and_growths() {
        let (kept, calls) = allocations_of(|| {
            let mut grows = Vec::with_capacity(10);
            grows.resize(1_000, 7_u8);
            (grows, Box::new(1))
        });
        // Other tests allocate concurrently.
        assert!(calls >= 3, "{calls} for {kept:?}");
    }

    #[test]
    fn resident_memory_is_read_from_proc() {
        let resident = resident();
        assert!(resident.is_none_or(|bytes| bytes > 100_000), "{resident:?}");
        assert_eq!(resident.is_some(), std::path::Path::new("/proc/self/status").exists());
        assert!(in_use_with_overhead() >= in_use() / 2);
    }

    #[test]
    fn blocks_have_the_requested_alignment() {
        // All blocks stay allocated until the end, so that some are in the middle of pages.
        let mut live = Vec::new();
        for size in [
            1, 2, 7, 8, 9, 15, 16, 17, 24, 40, 48, 100, 1_000, 1_024, 1_032, 5_000, 65_536, 65_552,
            300_000,
        ] {
            for align in [1, 2, 4, 8, 16, 32, 64, 4_096] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                // SAFETY: neither size is zero; both are freed below with the layout that they have then.
                let (fresh, zeroed, grown) = unsafe {
                    let grown = Counting.alloc(layout);
                    (
                        Counting.alloc(layout),
                        Counting.alloc_zeroed(layout),
                        Counting.realloc(grown, layout, size + 8),
                    )
                };
                let larger = Layout::from_size_align(size + 8, align).expect("a layout");
                for (at, layout) in [(fresh, layout), (zeroed, layout), (grown, larger)] {
                    assert!(
                        !at.is_null() && at.addr() % align == 0,
                        "{size} bytes at multiples of {align}: {at:?}"
                    );
                    live.push((at, layout));
                }
            }
        }
        for (at, layout) in live {
            // SAFETY: allocated above, with this layout.
            unsafe { Counting.dealloc(at, layout) }
        }
    }

    #[test]
    fn a_power_of_two_is_its_own_size_class() {
        let (kept, bytes) = bytes_of(|| (0..100).map(|_| vec![0_u64; 8_192]).collect::<Vec<_>>());
        assert!(bytes <= 100 * 65_536 + 4_096, "{bytes} for {}", kept.len());
    }

    #[test]
    fn counts_size_classes_of_live_blocks() {
        let (kept, bytes) = bytes_of(|| {
            drop(vec![0_u8; 500]);
            vec![1_u8; 1000]
        });
        assert!(kept.len() <= bytes && bytes <= 1024 + 512, "{bytes}");
    }
}
