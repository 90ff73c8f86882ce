//! Restart points: where decompression can begin other than at the start of a file.
//!
//! A gzip stream can be read from the beginning of any DEFLATE block on, with the bit where the block begins and the
//! 32 KiB of output before it; zstd from the beginning of any frame on, with nothing else. [`RestartPoints`] collects
//! such points while a file is decompressed, at stated distances in its output.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::gzip::HISTORY;

/// Maximum size of the restart points of a file, in bytes: beyond it, every second point is
/// discarded, and the distance doubles.
pub const MAX_RESTART_BYTES: usize = 256 << 20;

/// Size of a point in bytes, without its window.
const POINT_SIZE: usize = size_of::<RestartPoint>();

/// Compression level of windows.
const LEVEL: i32 = 6;

/// Where decompression can begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestartPoint {
    /// Offset in the decompressed data.
    pub offset: u64,
    /// Offset in the file.
    pub at: u64,
    /// Number of bits of the byte at that offset that belong to the preceding block, less than 8.
    pub skip: u8,
    /// The decompressed bytes that matches may refer to, compressed with zstd; empty if there are
    /// none.
    pub window: Vec<u8>,
}

/// The restart points of a file that is being read.
#[derive(Clone, Debug)]
pub struct RestartPoints(Arc<Mutex<PointList>>);

#[derive(Debug)]
struct PointList {
    points: Vec<RestartPoint>,
    /// Minimum number of decompressed bytes from one point to the next.
    distance: u64,
    bytes: usize,
    max_bytes: usize,
}

impl RestartPoints {
    /// An empty list, with at least this many decompressed bytes from one point to the next.
    pub fn new(distance: u64) -> Self {
        Self::with_limit(distance, MAX_RESTART_BYTES)
    }

    fn with_limit(distance: u64, max_bytes: usize) -> Self {
        let distance = distance.max(1);
        Self(Arc::new(Mutex::new(PointList { points: Vec::new(), distance, bytes: 0, max_bytes })))
    }

    fn lock(&self) -> MutexGuard<'_, PointList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the points found so far, in order.
    pub fn take(&self) -> Vec<RestartPoint> {
        let mut kept = self.lock();
        kept.bytes = 0;
        std::mem::take(&mut kept.points)
    }

    /// The minimum offset in the decompressed data of the next point.
    pub(crate) fn next(&self) -> u64 {
        self.lock().next()
    }

    /// Adds a point, with the bytes that precede it; returns the minimum offset of the next one.
    pub(crate) fn add(&self, offset: u64, at: u64, skip: u8, window: &[u8]) -> u64 {
        let mut kept = self.lock();
        if offset < kept.next() {
            return kept.next();
        }
        // Without a window the point would be invalid.
        let window = match window {
            [] => Some(Vec::new()),
            _ => zstd::bulk::compress(window, LEVEL).ok(),
        };
        let distance = kept.distance;
        let Some(window) = window else { return offset + distance };
        kept.bytes += POINT_SIZE + window.len();
        kept.points.push(RestartPoint { offset, at, skip, window });
        while kept.bytes > kept.max_bytes && kept.points.len() > 1 {
            kept.thin_out();
        }
        kept.next()
    }
}

impl PointList {
    fn next(&self) -> u64 {
        self.points.last().map_or(0, |last| last.offset).saturating_add(self.distance)
    }

    fn thin_out(&mut self) {
        let mut n = 0;
        self.points.retain(|_| {
            n += 1;
            n % 2 == 0
        });
        self.points.shrink_to_fit();
        self.distance = self.distance.saturating_mul(2);
        self.bytes = self.points.iter().map(|point| POINT_SIZE + point.window.len()).sum();
    }
}

impl RestartPoint {
    /// The decompressed bytes before the point that matches may refer to.
    ///
    /// # Errors
    /// If the window is not valid zstd data.
    pub fn history(&self) -> io::Result<Vec<u8>> {
        match &self.window[..] {
            [] => Ok(Vec::new()),
            packed => zstd::bulk::decompress(packed, HISTORY),
        }
    }
}

pub(crate) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_points_is_bounded() {
        let points = RestartPoints::with_limit(10, 20 * POINT_SIZE);
        (0..10_000).for_each(|n| {
            points.add(n * 10, n, 0, &[]);
        });
        let kept = points.take();
        assert!((5..=20).contains(&kept.len()), "{}", kept.len());
        assert!(kept.last().unwrap().offset > 80_000);
        assert!(kept.windows(2).all(|pair| pair[0].offset < pair[1].offset));
    }
}
