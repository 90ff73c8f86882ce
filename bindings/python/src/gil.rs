//! Whether this thread holds the interpreter's lock, and whether it is the one that handles signals.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::time::Duration;

use pyo3::prelude::*;

/// Signals are looked for this often.
const OFTEN: Duration = Duration::from_millis(50);

unsafe extern "C" {
    /// 1 where this thread holds the lock. Every CPython since 3.4 exports it; only the headers of the limited
    /// API leave it out.
    safe fn PyGILState_Check() -> c_int;
}

/// Calls `next` until it returns a value, from any thread, with the interpreter's lock or without. The lock is free while
/// `next` runs.
///
/// # Errors
/// The exception that a handler of a signal raised.
pub(crate) fn wait<T: Send>(mut next: impl FnMut(Duration) -> Option<T> + Send) -> PyResult<T> {
    if PyGILState_Check() == 1 {
        return Python::attach(|py| {
            loop {
                let got = py.detach(|| next(OFTEN));
                py.check_signals()?;
                if let Some(got) = got {
                    return Ok(got);
                }
            }
        });
    }
    let is_main = is_main_thread();
    loop {
        if let Some(got) = next(OFTEN) {
            return Ok(got);
        }
        if is_main {
            Python::attach(|py| py.check_signals())?;
        }
    }
}

/// Python runs handlers of signals in the thread that the process began with.
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

/// Has the interpreter raise `KeyboardInterrupt` as soon as it goes on.
pub(crate) fn interrupt_again() {
    // SAFETY: it only sets a flag, and may be called without the lock.
    unsafe { pyo3::ffi::PyErr_SetInterrupt() };
}
