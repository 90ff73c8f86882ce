//! Ending of pipelines by a signal: written captures are completed, and pipes are read to their
//! end.

use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicUsize = AtomicUsize::new(0);
static READING_PIPES: AtomicUsize = AtomicUsize::new(0);

/// The error that a pipeline raises if it is stopped.
pub(crate) const STOPPED: &str = "stopped by a signal";

/// Requests the end of all pipelines of this process; pipelines that write captures complete them
/// first. Returns whether any pipeline writes captures; otherwise the script can be ended at once.
pub fn stop_writing() -> bool {
    REQUESTED.store(true, Ordering::SeqCst);
    WRITING.load(Ordering::SeqCst) > 0
}

/// Whether a script reads packets from a pipe. A terminal sends SIGINT to the program that writes
/// the pipe as well, and the packets that it has captured are still in the pipe.
pub fn reads_pipe() -> bool {
    READING_PIPES.load(Ordering::SeqCst) > 0
}

/// Whether pipelines must end.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
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

/// Exists as long as packets are read from a pipe.
pub(crate) struct ReadingPipe(());

impl ReadingPipe {
    /// `Some` if one of the inputs is a pipe.
    pub(crate) fn begin(paths: &[PathBuf]) -> Option<Self> {
        paths.iter().any(|path| is_pipe(path)).then(|| {
            READING_PIPES.fetch_add(1, Ordering::SeqCst);
            Self(())
        })
    }
}

impl Drop for ReadingPipe {
    fn drop(&mut self) {
        READING_PIPES.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether an input is a pipe or a socket; `-` is standard input.
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let path = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
    let about = path.metadata().map(|about| about.file_type());
    about.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}
