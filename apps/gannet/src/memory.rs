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

/// How many want to know.
static ON: AtomicUsize = AtomicUsize::new(0);
/// Allocations and growths.
static CALLS: AtomicUsize = AtomicUsize::new(0);
static IN_USE: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// How often it asked what is taken.
    static LOOKS: Cell<u32> = const { Cell::new(0) };
    /// Bytes of this thread that are not yet added to the global counter.
    static OWN: Cell<isize> = const { Cell::new(0) };
    /// What this thread has in use, by itself.
    static OF_THREAD: Cell<isize> = const { Cell::new(0) };
}

/// The most that was resident, the most that was in use, and what lies between.
static LARGEST: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);
static BESIDE: AtomicU64 = AtomicU64::new(0);

/// Calls of [`taken`] by one thread between looks at what is resident: some ten microseconds each, and
/// packets of a flood may bring dozens of kilobytes.
const LOOK_EVERY: u32 = 512;

/// What the program takes before it has analysed anything, with its threads.
const PROGRAM: u64 = 8 << 20;

/// Threads add their bytes to the global counter in steps of this size.
const STEP: usize = 64 << 10;

fn count(bytes: isize) {
    let _ = OF_THREAD.try_with(|sum| sum.set(sum.get() + bytes));
    // A thread that ends frees memory after its counter is gone: that is added at once.
    let told = OWN.try_with(|own| {
        let sum = own.get() + bytes;
        let much = sum.unsigned_abs() >= STEP;
        own.set(if much { 0 } else { sum });
        if much { sum } else { 0 }
    });
    match told.unwrap_or(bytes) {
        0 => {}
        told => {
            IN_USE.fetch_add(told, Ordering::Relaxed);
        }
    }
}

/// What an allocation really takes: its size class, not what was asked for.
#[cold]
fn add(at: *mut u8) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `at` was just returned by this allocator.
    count(unsafe { MiMalloc.usable_size(at) } as isize);
}

#[cold]
fn sub(at: *mut u8) {
    // SAFETY: `at` is about to be freed or resized by this allocator, so it is still allocated.
    count(-(unsafe { MiMalloc.usable_size(at) } as isize));
}

/// Whether every block for `size` bytes stands where `align` asks: blocks of 16 bytes and more stand at multiples
/// of 16, smaller ones at multiples of 8 (mimalloc's `MI_MAX_ALIGN_SIZE`).
///
/// mimalloc's crate requests the alignment even then. Without a free block, mimalloc takes `align -
/// 1` bytes more for it, which for powers of two is the next size class: a fifth more.
#[inline]
fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= 16 && align <= size
}

// SAFETY: every call goes to mimalloc, which gives memory of the size and alignment that was asked for, by
// `is_aligned_anyway` or by its own promise; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let at = if is_aligned_anyway(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            unsafe { mi_malloc(layout.size()) }.cast()
        } else {
            // SAFETY: the caller's promise, passed on.
            unsafe { MiMalloc.alloc(layout) }
        };
        if ON.load(Ordering::Relaxed) > 0 {
            add(at);
        }
        at
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let at = if is_aligned_anyway(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            unsafe { mi_zalloc(layout.size()) }.cast()
        } else {
            // SAFETY: the caller's promise, passed on.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        };
        if ON.load(Ordering::Relaxed) > 0 {
            add(at);
        }
        at
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if ON.load(Ordering::Relaxed) > 0 {
            sub(at);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let counts = ON.load(Ordering::Relaxed) > 0;
        if counts {
            sub(at);
        }
        let at = if is_aligned_anyway(size, layout.align()) {
            // SAFETY: `at` is allocated, by the caller's promise.
            unsafe { mi_realloc(at.cast(), size) }.cast()
        } else {
            // SAFETY: the caller's promise, passed on.
            unsafe { MiMalloc.realloc(at, layout, size) }
        };
        if counts {
            add(at);
        }
        at
    }
}

/// The kernel gives this process no huge pages (`PR_SET_THP_DISABLE` in prctl(2)).
///
/// A run over a capture takes its memory once and ends: nearly all that pages cost it is to be cleared. For 400 MB in small
/// pages that takes 0.2 s on any machine. In huge pages it takes 0.04 to 0.9 s: virtual machines that gave memory
/// back to their host need milliseconds for each.
pub(crate) fn refuse_huge_pages() {
    set_huge_pages(false);
}

/// The kernel gives this process huge pages where it has some: a process that runs for days accesses its memory faster in
/// these.
#[cfg(target_os = "linux")]
pub(crate) fn allow_huge_pages() {
    set_huge_pages(true);
}

fn set_huge_pages(allowed: bool) {
    // A kernel without this has no huge pages, or gives them as before: both work.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!allowed);
    #[cfg(not(target_os = "linux"))]
    let _ = allowed;
}

/// Counts from here on.
pub(crate) fn start_counting() {
    ON.fetch_add(1, Ordering::Relaxed);
}

/// Bytes in use that were allocated since counting began, as this thread knows it: to some 64 KiB for every
/// other one.
pub(crate) fn in_use() -> u64 {
    let own = OWN.try_with(Cell::get).unwrap_or(0);
    u64::try_from(IN_USE.load(Ordering::Relaxed) + own).unwrap_or(0)
}

/// [`in_use`] plus the allocator's overhead: memory between used blocks, and freed memory not yet
/// returned to the system. Excludes pages of files, and the base usage of every program.
///
/// What it holds is looked at now and then. Where the process is larger than ever, it is more; that it
/// is not smaller when something was freed is no reason to free more.
pub(crate) fn taken() -> u64 {
    let look = LOOKS.try_with(|looks| looks.replace(looks.get().wrapping_add(1)));
    let in_use = in_use();
    let looks = look.is_ok_and(|n| n.is_multiple_of(LOOK_EVERY));
    if looks && let Some(resident) = resident() {
        // Both at their most: in between less is in use than before, and as much is held.
        let most = MOST.fetch_max(in_use, Ordering::Relaxed).max(in_use);
        if resident > LARGEST.fetch_max(resident, Ordering::Relaxed) {
            BESIDE.store(resident.saturating_sub(most + PROGRAM), Ordering::Relaxed);
        }
    }
    in_use + BESIDE.load(Ordering::Relaxed)
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

/// Bytes of the allocator that `make` leaves in use of what it allocated in this thread, with the
/// allocator's own rounding, and what it made.
pub(crate) fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let now = || OF_THREAD.try_with(Cell::get).unwrap_or(0);
    ON.fetch_add(1, Ordering::Relaxed);
    let before = now();
    let made = make();
    let bytes = now() - before;
    ON.fetch_sub(1, Ordering::Relaxed);
    (made, usize::try_from(bytes).unwrap_or(0))
}

/// How often `make` allocates something, or lets something grow, in all threads.
pub(crate) fn allocations_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = CALLS.load(Ordering::Relaxed);
    let (made, _) = bytes_of(make);
    (made, CALLS.load(Ordering::Relaxed).wrapping_sub(before))
}

/// Allocations and growths since counting began.
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
    fn what_is_resident_is_known_where_the_system_tells() {
        let resident = resident();
        assert!(resident.is_none_or(|bytes| bytes > 100_000), "{resident:?}");
        assert_eq!(resident.is_some(), std::path::Path::new("/proc/self/status").exists());
        assert!(taken() >= in_use() / 2);
    }

    #[test]
    fn memory_stands_where_it_was_asked_for() {
        // The rest of a size class is taken, too, so that blocks in the middle of pages are seen.
        let mut held = Vec::new();
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
                    held.push((at, layout));
                }
            }
        }
        for (at, layout) in held {
            // SAFETY: allocated above, with this layout.
            unsafe { Counting.dealloc(at, layout) }
        }
    }

    #[test]
    fn a_power_of_two_takes_no_more_than_itself() {
        let (kept, bytes) = bytes_of(|| (0..100).map(|_| vec![0_u64; 8_192]).collect::<Vec<_>>());
        assert!(bytes <= 100 * 65_536 + 4_096, "{bytes} for {}", kept.len());
    }

    #[test]
    fn counts_what_is_kept_in_classes() {
        let (kept, bytes) = bytes_of(|| {
            drop(vec![0_u8; 500]);
            vec![1_u8; 1000]
        });
        assert!(kept.len() <= bytes && bytes <= 1024 + 512, "{bytes}");
    }
}
