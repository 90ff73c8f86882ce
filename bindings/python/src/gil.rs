//! Waits with signal handling, whether or not the thread holds the GIL.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::time::Duration;

use pyo3::prelude::*;

/// Interval between checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

unsafe extern "C" {
    /// Returns 1 if this thread holds the GIL. CPython has exported it since 3.4, but the headers of the limited API
    /// omit it.
    safe fn PyGILState_Check() -> c_int;
}

/// Calls `next` until it returns a value, and handles signals. The thread may hold the GIL, which is released while
/// `next` runs.
///
/// # Errors
/// The exception that a signal handler raised.
pub(crate) fn wait<T: Send>(mut next: impl FnMut(Duration) -> Option<T> + Send) -> PyResult<T> {
    if PyGILState_Check() == 1 {
        return Python::attach(|py| {
            loop {
                let value = py.detach(|| next(SIGNAL_INTERVAL));
                py.check_signals()?;
                if let Some(value) = value {
                    return Ok(value);
                }
            }
        });
    }
    let is_main = is_main_thread();
    loop {
        if let Some(value) = next(SIGNAL_INTERVAL) {
            return Ok(value);
        }
        if is_main {
            Python::attach(|py| py.check_signals())?;
        }
    }
}

/// Whether this is the process's main thread, in which Python runs signal handlers.
fn is_main_thread() -> bool {
    #[cfg(target_os = "linux")]
    {
        let own = std::fs::read_link("/proc/thread-self");
        let id = std::process::id().to_string();
        own.is_ok_and(|path| path.file_name().is_some_and(|name| name.to_string_lossy() == id))
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// Makes the interpreter raise `KeyboardInterrupt` when it resumes.
pub(crate) fn interrupt_again() {
    // SAFETY: it only sets a flag, and may be called without the GIL.
    unsafe { pyo3::ffi::PyErr_SetInterrupt() };
}
