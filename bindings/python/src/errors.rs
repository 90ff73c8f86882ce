//! Converts errors to Python exceptions.

use std::ffi::CString;
use std::io;
use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns the exception for an error of an analysis.
pub(crate) fn exception(error: &gannet_task::Error) -> PyErr {
    use gannet_task::Error as E;
    match error {
        E::Capture(error) => capture_exception(error),
        E::Analysis(_) | E::Columns(_) => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Issues Python warnings.
///
/// # Errors
/// The warning as an exception, if Python's warning filters turn it into one.
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

/// Returns the exception for an error of a capture: `gannet.CaptureError` with file, packet and offset, or for an I/O
/// error the subclass of `OSError`.
pub(crate) fn capture_exception(error: &gannet_capture::Error) -> PyErr {
    use gannet_capture::Error as E;
    let (file, packet, offset) = match error {
        E::Damaged { file, packet, offset, .. } | E::Cut { file, packet, offset, .. } => {
            (file, Some(*packet), Some(*offset))
        }
        E::Io { file, source } => return io_exception(file, source),
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

/// Returns the exception for an error of an index.
pub(crate) fn index_exception(error: &gannet_index::Error) -> PyErr {
    use gannet_index::Error as E;
    match error {
        E::Capture(error) => capture_exception(error),
        E::Io(file, source) => io_exception(file, source),
        error => PyOSError::new_err(error.to_string()),
    }
}

/// Returns the exception for an I/O error: the exception that a file object raised, or the subclass of `OSError` for
/// the error number.
fn io_exception(file: &Path, source: &io::Error) -> PyErr {
    Python::attach(|py| {
        if let Some(raised) = source.get_ref().and_then(|e| e.downcast_ref::<PyErr>()) {
            return raised.clone_ref(py);
        }
        let make = || {
            let os = py.get_type::<PyOSError>();
            let name = file.display().to_string();
            match source.raw_os_error() {
                // With an error number, OSError creates the subclass, such as FileNotFoundError. The text is Python's,
                // because Rust's also contains the number.
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
