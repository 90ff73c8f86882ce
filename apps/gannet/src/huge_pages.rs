//! Huge pages, as long as they are not dear.
//!
//! Two megabytes in one piece are there within a tenth of a millisecond, and take the place of 512 faults. But
//! a virtual machine may have given memory that nobody used back to its host, in pieces of just this size
//! (balloons that report free pages do). The host has to find it again, a small page at a time: seven
//! milliseconds a piece, so that a short run spends more on memory than on packets. Small pages are then what
//! is left between such pieces, and most of them the machine still has.
//!
//! So a large block is taken with an eye on the clock: the allocator writes to pages that are new.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

/// Bytes of blocks that are large: so few are taken that the clock costs nothing, and yet the first block in
/// many a huge page is one of them. What is larger still may take its time with what is copied into it.
const LARGE: RangeInclusive<usize> = 8 << 10..=512 << 10;

/// A huge page is dear that takes longer than 512 small ones.
const DEAR: Duration = Duration::from_micros(1500);

/// Whether somebody looks at the clock.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on the process does without huge pages once one of them was dear.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// Takes a block of so many bytes, with an eye on the clock if it is large.
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
        // Only a wish: a kernel that does not know it goes on as it did.
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
