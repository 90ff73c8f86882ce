//! Passes rows to memory instead of files.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::collect::Shape;
use crate::row::Field;

/// Collects the rows of all streams in the order in which they are written, as lines in the format of the logs without
/// headers. Clones share one tap.
#[derive(Clone, Debug, Default)]
pub struct Tap(Arc<Mutex<Tapped>>);

/// Rows taken from a [`Tap`].
#[derive(Debug, Default)]
pub struct Tapped {
    shapes: Vec<Shape>,
    /// The lines, concatenated without line ends.
    pub bytes: Vec<u8>,
    /// The stream and the position in `bytes` of each row.
    pub rows: Vec<TappedRow>,
}

/// The position of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TappedRow {
    /// Offset of the row.
    pub start: u64,
    /// Length of the row in bytes.
    pub len: u32,
    /// Index of the stream, in the order of first rows.
    pub stream: u32,
}

impl Tap {
    pub(crate) fn add(&self, shape: Shape, lines: &[u8]) {
        let mut tapped = self.lock();
        let known = tapped.shapes.iter().position(|s| s.path == shape.path);
        let stream = known.unwrap_or_else(|| {
            tapped.shapes.push(shape);
            tapped.shapes.len() - 1
        }) as u32;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let (start, len) = (tapped.bytes.len() as u64, line.len() as u32);
            tapped.bytes.extend_from_slice(line);
            tapped.rows.push(TappedRow { start, len, stream });
        }
    }

    /// Moves all collected rows to `rows`, whose previous rows are dropped and whose buffers are reused.
    pub fn take(&self, rows: &mut Tapped) {
        rows.bytes.clear();
        rows.rows.clear();
        let mut tapped = self.lock();
        std::mem::swap(&mut tapped.bytes, &mut rows.bytes);
        std::mem::swap(&mut tapped.rows, &mut rows.rows);
        rows.shapes.clone_from(&tapped.shapes);
    }

    fn lock(&self) -> MutexGuard<'_, Tapped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tapped {
    /// Name of a stream; `None` if the number is unknown.
    pub fn path(&self, stream: u32) -> Option<&'static str> {
        self.shapes.get(stream as usize).map(|shape| shape.path)
    }

    /// The columns of a stream, including optional ones.
    pub fn fields(&self, stream: u32) -> Vec<Field> {
        self.shapes.get(stream as usize).map_or_else(Vec::new, |shape| shape.fields.all())
    }
}
