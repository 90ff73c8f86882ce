//! Restart points in an index: a table, followed by the windows.

use gannet_capture::RestartPoint;

use crate::identity::checksum;

/// Size of a point in the table, in bytes.
pub(crate) const POINT_ENTRY: usize = 8 + 8 + 4 + 4 + 8;

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Offset in the decompressed capture.
    pub(crate) offset: u64,
    /// Offset in the compressed file.
    pub(crate) at: u64,
    /// Number of bits to skip in the first byte.
    skip: u32,
    /// Start of the window, relative to the first window.
    pub(crate) start: u64,
    /// Length of the window, in bytes.
    pub(crate) len: u32,
    checksum: u64,
}

/// Encoding and decoding of restart points.
#[derive(Debug)]
pub(crate) struct Restarts;

impl Restarts {
    /// Encodes the table and the windows.
    pub(crate) fn bytes<'a>(
        points: impl IntoIterator<Item = &'a RestartPoint>,
    ) -> (Vec<[u8; POINT_ENTRY]>, Vec<u8>) {
        let (mut table, mut windows) = (Vec::new(), Vec::new());
        for RestartPoint { offset, at, skip, window } in points {
            let mut entry = [0; POINT_ENTRY];
            entry[..8].copy_from_slice(&offset.to_le_bytes());
            entry[8..16].copy_from_slice(&at.to_le_bytes());
            entry[16..20].copy_from_slice(&(window.len() as u32).to_le_bytes());
            entry[20..24].copy_from_slice(&u32::from(*skip).to_le_bytes());
            let point_checksum = point_checksum(&entry, window);
            entry[24..].copy_from_slice(&point_checksum.to_le_bytes());
            table.push(entry);
            windows.extend_from_slice(window);
        }
        (table, windows)
    }

    /// Decodes a table; `None` if its points are not in order.
    pub(crate) fn read(table: &[u8]) -> Option<Vec<Point>> {
        let (mut start, mut points) = (0_u64, Vec::<Point>::new());
        for entry in table.as_chunks::<POINT_ENTRY>().0 {
            let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
            let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
            let (offset, at, len) = (u64_at(0), u64_at(8), u32_at(16));
            if points.last().is_some_and(|last| last.offset >= offset || last.at > at) {
                return None;
            }
            points.push(Point { offset, at, skip: u32_at(20), start, len, checksum: u64_at(24) });
            start = start.checked_add(len.into())?;
        }
        Some(points)
    }
}

impl Point {
    /// Joins the point with its window; `None` if the checksum differs.
    pub(crate) fn with_window(&self, window: Vec<u8>) -> Option<RestartPoint> {
        let skip = u8::try_from(self.skip).ok()?;
        let point = RestartPoint { offset: self.offset, at: self.at, skip, window };
        let (table, _) = Restarts::bytes([&point]);
        (point_checksum(table.first()?, &point.window) == self.checksum).then_some(point)
    }
}

fn point_checksum(entry: &[u8; POINT_ENTRY], window: &[u8]) -> u64 {
    let mut all = entry[..24].to_vec();
    all.extend_from_slice(window);
    checksum(&all)
}
