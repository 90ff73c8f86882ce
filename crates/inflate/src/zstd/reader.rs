//! The decompressed data as a reader.

use std::fmt;
use std::io;
use std::io::BufRead;

use super::ahead::BlocksInFlight;
use super::order::Order;
use crate::restart::RestartPoints;

/// Number of bytes decompressed before threads are started, as short files would end before threads
/// have started.
const LONG: u64 = 1 << 20;

/// Decompresses zstd data of one or several frames.
///
/// ```
/// use gannet_inflate::zstd::Unzstd;
///
/// // A frame of one block with one byte, repeated.
/// let packed = b"\x28\xb5\x2f\xfd\x20\x05\x2b\0\0a";
/// let mut text = [0; 16];
/// let mut unzstd = Unzstd::new(&packed[..]);
/// assert_eq!(unzstd.read(&mut text)?, 5);
/// assert_eq!(&text[..5], b"aaaaa");
/// assert_eq!(unzstd.read(&mut text)?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Unzstd<R> {
    ahead: BlocksInFlight<R>,
    order: Order,
    /// Whether reading the input never blocks.
    in_memory: bool,
    /// Number of threads for long input; the output size after which they start; the function that
    /// starts them.
    threads: usize,
    long: u64,
    start: Option<fn(&mut BlocksInFlight<R>, usize)>,
    ended: bool,
}

impl<R> fmt::Debug for Unzstd<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unzstd").field("frame", &self.order.frame()).finish_non_exhaustive()
    }
}

impl<R: BufRead> Unzstd<R> {
    /// For input that begins with a frame. It reads no more of the input than the requested output
    /// needs, so that it never waits for later data.
    pub fn new(input: R) -> Self {
        Self::of(input, 0, false)
    }

    /// For input that never blocks, like a mapped file: blocks are read ahead, since decoding two
    /// at once takes less time.
    pub fn in_memory(input: R) -> Self {
        Self::of(input, 0, true)
    }

    /// For input that begins with the frame at this offset of its file.
    pub fn resume(input: R, at: u64) -> Self {
        Self::of(input, at, false)
    }

    /// Collects restart points from now on.
    pub fn keep_restarts(&mut self, points: &RestartPoints) {
        self.order.keep_restarts(points);
    }

    fn of(input: R, used: u64, in_memory: bool) -> Self {
        let (ahead, order) = (BlocksInFlight::new(input, used, in_memory), Order::new());
        Self { ahead, order, in_memory, threads: 0, long: LONG, start: None, ended: false }
    }

    /// Decompresses the next bytes; returns their number, 0 at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] where the input ends within a frame,
    /// [`io::ErrorKind::InvalidData`] where it is damaged or does not match its checksum or size,
    /// and the input's own errors. Data before the error is returned first.
    pub fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let n = self.order.read(to)?;
            if n > 0 {
                return Ok(n);
            }
            if !self.step()? {
                return self.order.read(to);
            }
        }
    }

    /// Executes the next block; false at the end, and where an error is next.
    fn step(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.threads > 0
            && self.order.total_out() >= self.long
            && let Some(start) = self.start.take()
        {
            start(&mut self.ahead, self.threads);
        }
        let next = self.ahead.next();
        self.ended = !matches!(next, Ok(Some(_)));
        match next {
            Ok(Some(job)) => self.ended = !self.order.put(job),
            Ok(None) => {}
            Err(_) => return Err(io::Error::other("a decompression thread panicked")),
        }
        Ok(!self.ended)
    }
}

impl<R: BufRead + Send + 'static> Unzstd<R> {
    /// Sets the number of threads, including the caller's, for long input that never blocks. Once
    /// threads have started, they are kept.
    pub fn set_threads(&mut self, threads: usize) {
        if self.in_memory && (self.start.is_some() || self.threads == 0) {
            self.threads = threads.saturating_sub(1);
            self.start = Some(BlocksInFlight::start);
        }
    }

    /// Starts threads after this much output.
    #[cfg(test)]
    pub(super) fn start_at(&mut self, made: u64) {
        self.long = made;
    }
}
