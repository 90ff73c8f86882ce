//! Errors as Python exceptions.

use std::ffi::CString;
use std::io;
use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The exception for an error of an analysis.
pub(crate) fn of(error: &gannet_task::Error) -> PyErr {
    use gannet_task::Error as E;
    match error {
        E::Capture(error) => of_capture(error),
        E::Analysis(_) | E::Columns(_) => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Warns in Python.
///
/// # Errors
/// The warning as an exception, where Python's filters of warnings ask for it.
pub(crate) fn warn(remarks: &[String]) -> PyResult<()> {
    if remarks.is_empty() {
        return Ok(());
    }
    Python::attach(|py| {
        let class = py.get_type::<PyRuntimeWarning>();
        let text = |remark: &String| CString::new(remark.replace('\0', " "));
        remarks.iter().try_for_each(|remark| PyErr::warn(py, &class, &text(remark)?, 1))
    })
}

/// The exception for an error of a capture: `gannet.CaptureError`, with file, packet and offset; what the system
/// refused is an `OSError` of its kind.
pub(crate) fn of_capture(error: &gannet_capture::Error) -> PyErr {
    use gannet_capture::Error as E;
    let (file, packet, offset) = match error {
        E::Damaged { file, packet, offset, .. } | E::Cut { file, packet, offset, .. } => {
            (file, Some(*packet), Some(*offset))
        }
        E::Io { file, source } => return of_file(file, source),
        E::NotACapture { file, .. } | E::Unsupported { file, .. } => (file, None, None),
        _ => return PyRuntimeError::new_err(error.to_string()),
    };
    Python::attach(|py| {
        let make = || {
            let class = py.import("gannet._errors")?.getattr("CaptureError")?;
            let name = file.display().to_string();
            class.call1((error.to_string(), name, packet, offset))
        };
        make().map_or_else(|error| error, PyErr::from_value)
    })
}

/// The exception for an error of an index.
pub(crate) fn of_index(error: &gannet_index::Error) -> PyErr {
    use gannet_index::Error as E;
    match error {
        E::Capture(error) => of_capture(error),
        E::Io(file, source) => of_file(file, source),
        error => PyOSError::new_err(error.to_string()),
    }
}

/// The exception for a file that the system does not read or write: what a file object raised, or an `OSError` of its
/// kind, as Python makes it.
fn of_file(file: &Path, source: &io::Error) -> PyErr {
    Python::attach(|py| {
        if let Some(raised) = source.get_ref().and_then(|e| e.downcast_ref::<PyErr>()) {
            return raised.clone_ref(py);
        }
        let make = || {
            let os = py.get_type::<PyOSError>();
            let name = file.display().to_string();
            match source.raw_os_error() {
                // With a number OSError becomes FileNotFoundError and the like; the text is Python's, since Rust's has the
                // number as well.
                Some(code) => {
                    let text = py.import("os")?.call_method1("strerror", (code,))?;
                    os.call1((code, text, name))
                }
                None => os.call1((format!("{name}: {source}"),)),
            }
        };
        make().map_or_else(|error| error, PyErr::from_value)
    })
}
