//! The sequential stage: executes blocks, verifies checksums, and returns errors in order.

use std::fmt;
use std::hash::Hasher;
use std::io;
use std::ops::Range;

use twox_hash::XxHash64;

use super::execute::Window;
use super::job::Content;
use super::job::Failure;
use super::job::Frame;
use super::job::Job;
use crate::restart::RestartPoints;

/// Executes blocks in order.
pub(super) struct Order {
    window: Window,
    frame: Option<Frame>,
    hash: XxHash64,
    /// Unread bytes of the last block.
    rest: Range<usize>,
    /// Error to return after these bytes.
    failed: Option<io::Error>,
    /// Bytes decompressed of all frames so far.
    total_out: u64,
    /// Collects restart points, if requested.
    restarts: Option<RestartPoints>,
}

impl Order {
    pub(super) fn new() -> Self {
        Self {
            window: Window::default(),
            frame: None,
            hash: XxHash64::with_seed(0),
            rest: 0..0,
            failed: None,
            total_out: 0,
            restarts: None,
        }
    }

    /// Collects restart points from now on.
    pub(super) fn keep_restarts(&mut self, points: &RestartPoints) {
        self.restarts = Some(points.clone());
    }

    /// The current frame.
    pub(super) fn frame(&self) -> Option<Frame> {
        self.frame
    }

    /// Bytes decompressed of all frames so far.
    pub(super) fn total_out(&self) -> u64 {
        self.total_out
    }

    /// Copies available bytes to `to`; returns their number.
    pub(super) fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = self.window.bytes(self.rest.clone());
        if bytes.is_empty() {
            return self.failed.take().map_or(Ok(0), Err);
        }
        let n = bytes.len().min(to.len());
        to[..n].copy_from_slice(&bytes[..n]);
        self.rest.start += n;
        Ok(n)
    }

    /// Executes the next block; the bytes of the last one must have been read. Returns false after
    /// an error, which `read` then returns.
    pub(super) fn put(&mut self, job: &mut Job) -> bool {
        if let Err(error) = self.block(job) {
            self.failed = Some(error);
            return false;
        }
        true
    }

    fn block(&mut self, job: &mut Job) -> io::Result<()> {
        if let Some(frame) = job.frame {
            self.window.begin(frame);
            self.frame = Some(frame);
            if let Some(points) = &self.restarts {
                points.add(self.total_out, job.frame_offset, 0, &[]);
            }
            self.hash = XxHash64::with_seed(0);
        }
        self.rest = match self.window.execute(job) {
            Ok(range) => range,
            Err(damage) => return Err(damaged(&damage, job.used)),
        };
        self.total_out += self.rest.len() as u64;
        let frame = self.frame.as_ref();
        let total_out = self.window.produced;
        let size = frame.and_then(|frame| frame.size);
        let ends = job.end.is_some() && !matches!(job.content, Content::Nothing);
        if let Some(size) = size.filter(|&size| total_out > size || ends && total_out != size) {
            // The output of the last block is as wrong as the size.
            self.rest = 0..0;
            let what = format!("a frame decompressed to {total_out} bytes, but states {size}");
            return Err(damaged(&what, job.used));
        }
        match job.failure.take() {
            None => {}
            Some(Failure::Input(error)) => return Err(error),
            Some(Failure::Damage(damage)) => return Err(damaged(&damage, job.used)),
        }
        if frame.is_some_and(|frame| frame.checksum) {
            self.hash.write(self.window.bytes(self.rest.clone()));
        }
        if let Some(stored) = job.end {
            let sum = self.hash.finish() as u32;
            if let Some(stored) = stored
                && stored != sum
            {
                let what = format!("a frame has the checksum {sum:08x}, but states {stored:08x}");
                return Err(damaged(&what, job.used));
            }
            self.frame = None;
        }
        Ok(())
    }
}

fn damaged(what: &dyn fmt::Display, used: u64) -> io::Error {
    let what = format!("{what}, before byte {used} of the file");
    io::Error::new(io::ErrorKind::InvalidData, what)
}
