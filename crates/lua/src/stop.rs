//! Ending pipelines that write captures when a signal comes, so that their files are complete.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

static ASKED: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// What a pipeline raises that ends early.
pub(crate) const STOPPED: &str = "stopped by a signal";

/// Ends all pipelines of this process: those that write captures complete them first. Returns whether there are such;
/// where there are none, a script has nothing to complete.
pub fn stop_writing() -> bool {
    ASKED.store(true, Ordering::SeqCst);
    WRITING.load(Ordering::SeqCst) > 0
}

/// Whether pipelines are to end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Exists as long as a pipeline writes captures.
pub(crate) struct Writing(());

impl Writing {
    pub(crate) fn begin() -> Self {
        WRITING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}
