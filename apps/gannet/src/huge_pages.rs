//! Huge pages, as long as they are not dear.
//!
//! A huge page is usually allocated within a tenth of a millisecond, and replaces 512 page faults.
//! But a virtual machine may have returned unused memory to its host in pieces of this size (free
//! page reporting). The host then has to find it again, one small page at a time: seven
//! milliseconds for each huge page, more than the analysis of a short run takes. Small pages then
//! come from memory that the virtual machine still has.
//!
//! So a large block is taken with an eye on the clock: the allocator writes to pages that are new.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

/// Sizes of blocks that are timed: they are rare enough that reading the clock costs nothing, yet
/// the first block in many a huge page is one of them. Larger blocks may take longer because of
/// copying.
const LARGE: RangeInclusive<usize> = 8 << 10..=512 << 10;

/// A huge page is dear that takes longer than 512 small ones.
const DEAR: Duration = Duration::from_micros(1500);

/// Whether allocations are timed.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on the process does without huge pages once one of them was dear.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// Allocates a block of `size` bytes, timed if it is large.
#[inline]
pub(crate) fn take<T>(size: usize, take: impl FnOnce() -> T) -> T {
    if LARGE.contains(&size) { watched(take) } else { take() }
}

#[inline(never)]
fn watched<T>(take: impl FnOnce() -> T) -> T {
    if !WATCHED.load(Ordering::Relaxed) {
        return take();
    }
    let begun = Instant::now();
    let block = take();
    if is_dear(begun.elapsed()) {
        WATCHED.store(false, Ordering::Relaxed);
        // A hint: a kernel without support for it continues as before.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_thp_disable(true);
    }
    block
}

fn is_dear(took: Duration) -> bool {
    took > DEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dear_page_ends_the_watch() {
        watch();
        assert_eq!(watched(|| 7), 7);
        // Another test's block may have been dear, too.
        watch();
        watched(|| std::thread::sleep(2 * DEAR));
        assert!(!WATCHED.load(Ordering::Relaxed));
        assert!(!is_dear(Duration::from_micros(400)) && is_dear(Duration::from_millis(5)));
    }
}
