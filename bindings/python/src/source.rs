//! Sources of packets: paths, bytes and file objects.

use std::io;
use std::io::Cursor;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use gannet_capture::Access;
use gannet_capture::Reader;
use gannet_capture::Stream;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// Maximum number of bytes requested from a file object per call.
const READ_BYTES: usize = 1 << 20;

/// A source of packets.
pub(crate) enum Source {
    Path(PathBuf),
    Bytes(PyBackedBytes, String),
    File(Py<PyAny>, String),
}

impl Source {
    /// Converts a list of pairs: a path, bytes or a file object, and its name.
    pub(crate) fn all(list: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        list.try_iter()?.map(|item| Self::of(&item?)).collect()
    }

    fn of(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (source, name): (Bound<'_, PyAny>, Option<String>) = item.extract()?;
        let named = |default: &str| name.clone().unwrap_or_else(|| default.to_owned());
        if let Ok(bytes) = source.cast::<PyBytes>() {
            return Ok(Self::Bytes(PyBackedBytes::from(bytes.clone()), named("bytes")));
        }
        if source.hasattr("read")? {
            return Ok(Self::File(source.unbind(), named("file object")));
        }
        Ok(Self::Path(source.extract()?))
    }

    /// Opens a single source. Called in the thread that reads it.
    pub(crate) fn reader(self, access: Access) -> Result<Reader, gannet_capture::Error> {
        match self {
            Self::Path(path) => Reader::open_by(&path, access),
            Self::Bytes(bytes, name) => Reader::from_read(Box::new(Cursor::new(bytes)), name),
            Self::File(file, name) => Reader::from_read(Box::new(PyFile(file)), name),
        }
    }
}

/// Opens sources as one stream. Called in the thread that reads it.
pub(crate) fn open(sources: Vec<Source>) -> Result<Stream, gannet_capture::Error> {
    let is_path = |source: &Source| matches!(source, Source::Path(path) if path != Path::new("-"));
    if sources.iter().all(is_path) {
        let path = |source| match source {
            Source::Path(path) => Some(path),
            _ => None,
        };
        let paths: Vec<_> = sources.into_iter().filter_map(path).collect();
        let options = gannet_capture::Options { access: Access::Read, ..Default::default() };
        return Stream::open(&paths, options);
    }
    let readers = sources.into_iter().map(|source| source.reader(Access::Read));
    Ok(Stream::from_readers(readers.collect::<Result<_, _>>()?))
}

/// A Python object with a method `read`.
struct PyFile(Py<PyAny>);

impl Read for PyFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = Python::attach(|py| {
            let bytes = self.0.call_method1(py, "read", (buf.len().min(READ_BYTES),))?;
            let bytes = bytes.bind(py);
            let bytes: PyBackedBytes = match bytes.is_none() {
                true => return Ok(Ok(0)),
                false => bytes.extract()?,
            };
            Ok(match buf.get_mut(..bytes.len()) {
                Some(target) => {
                    target.copy_from_slice(&bytes);
                    Ok(bytes.len())
                }
                None => Err(io::Error::other("read() returned more than was asked for")),
            })
        });
        read.map_err(|error: PyErr| io::Error::other(error)).flatten()
    }
}
