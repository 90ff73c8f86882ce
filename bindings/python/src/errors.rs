//! Errors as Python exceptions.

use pyo3::exceptions::PyRuntimeError;
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

/// The exception for an error of a capture: `gannet.CaptureError`, with file, packet and offset; what the system
/// refused is an `OSError` of its kind.
pub(crate) fn of_capture(error: &gannet_capture::Error) -> PyErr {
    use gannet_capture::Error as E;
    let (file, packet, offset) = match error {
        E::Damaged { file, packet, offset, .. } | E::Cut { file, packet, offset, .. } => {
            (file, Some(*packet), Some(*offset))
        }
        E::Io { file, source } => {
            return Python::attach(|py| {
                if let Some(raised) = source.get_ref().and_then(|e| e.downcast_ref::<PyErr>()) {
                    return raised.clone_ref(py);
                }
                let os = py.get_type::<pyo3::exceptions::PyOSError>();
                let name = file.display().to_string();
                let text = source.to_string();
                // With a number OSError becomes FileNotFoundError and the like.
                let made = match source.raw_os_error() {
                    Some(code) => os.call1((code, text, name)),
                    None => os.call1((format!("{name}: {text}"),)),
                };
                made.map_or_else(|error| error, PyErr::from_value)
            });
        }
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
