//! Restart points in an index: a table, and the windows behind it.

use gannet_capture::RestartPoint;

use crate::identity::check;

/// Bytes of a point in the table.
pub(crate) const POINT: usize = 8 + 8 + 4 + 4 + 8;

/// A point of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Offset in the decompressed capture.
    pub(crate) offset: u64,
    /// Offset in the file.
    pub(crate) at: u64,
    skip: u32,
    /// Start of the window, relative to the first one.
    pub(crate) start: u64,
    /// Bytes of the window.
    pub(crate) len: u32,
    check: u64,
}

/// Writing and reading restart points.
#[derive(Debug)]
pub(crate) struct Restarts;

impl Restarts {
    /// The table, and all windows.
    pub(crate) fn bytes<'a>(
        points: impl IntoIterator<Item = &'a RestartPoint>,
    ) -> (Vec<[u8; POINT]>, Vec<u8>) {
        let (mut table, mut windows) = (Vec::new(), Vec::new());
        for RestartPoint { offset, at, skip, window } in points {
            let mut entry = [0; POINT];
            entry[..8].copy_from_slice(&offset.to_le_bytes());
            entry[8..16].copy_from_slice(&at.to_le_bytes());
            entry[16..20].copy_from_slice(&(window.len() as u32).to_le_bytes());
            entry[20..24].copy_from_slice(&u32::from(*skip).to_le_bytes());
            let sum = sum(&entry, window);
            entry[24..].copy_from_slice(&sum.to_le_bytes());
            table.push(entry);
            windows.extend_from_slice(window);
        }
        (table, windows)
    }

    /// The points of a table, if they are in order.
    pub(crate) fn read(table: &[u8]) -> Option<Vec<Point>> {
        let (mut start, mut points) = (0_u64, Vec::<Point>::new());
        for entry in table.as_chunks::<POINT>().0 {
            let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
            let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
            let (offset, at, len) = (long(0), long(8), short(16));
            if points.last().is_some_and(|last| last.offset >= offset || last.at > at) {
                return None;
            }
            points.push(Point { offset, at, skip: short(20), start, len, check: long(24) });
            start = start.checked_add(len.into())?;
        }
        Some(points)
    }
}

impl Point {
    /// The point with its window, if both are what was written.
    pub(crate) fn with(&self, window: Vec<u8>) -> Option<RestartPoint> {
        let skip = u8::try_from(self.skip).ok()?;
        let point = RestartPoint { offset: self.offset, at: self.at, skip, window };
        let (table, _) = Restarts::bytes([&point]);
        (sum(table.first()?, &point.window) == self.check).then_some(point)
    }
}

fn sum(entry: &[u8; POINT], window: &[u8]) -> u64 {
    let mut all = entry[..24].to_vec();
    all.extend_from_slice(window);
    check(&all)
}
