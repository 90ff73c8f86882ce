//! Sources of bytes: a mapped file, or any reader.

use std::io;
use std::io::BufRead;
use std::io::Read;
use std::ops::Range;
use std::sync::Weak;

use gannet_inflate::RestartPoints;
use gannet_inflate::gzip::Checker;
use gannet_inflate::gzip::Gunzip;
use gannet_inflate::gzip::HISTORY;
use gannet_inflate::gzip::Trailer;
use gannet_inflate::zstd::Unzstd;

use crate::Bytes;
use crate::map::Map;
use crate::map::SharedPages;
use crate::shared::Pool;

/// A sequence of bytes that is read through a window and consumed from its front.
///
/// Record readers parse the window without copying. If it ends within a record they request more
/// bytes, and only then may bytes move.
pub(crate) trait Source: Send {
    /// The current window.
    fn window(&self) -> &[u8];

    /// The buffer that contains the window.
    fn bytes(&self) -> &Bytes;

    /// Whether the bytes were just written, and so are in a near cache.
    fn is_near(&self) -> bool {
        false
    }

    /// Drops `n` bytes at the front of the window.
    fn advance(&mut self, n: usize);

    /// Tries to extend the window to at least `want` bytes; the window stays shorter only at the
    /// end of the input or after an error, which is returned once.
    fn fill(&mut self, want: usize) -> io::Result<()>;

    /// Starts a thread that makes bytes available in advance, if possible.
    fn read_ahead(&mut self) {}

    /// Sets the number of threads that decompress, including the caller's, if possible.
    fn set_threads(&mut self, _threads: usize) {}

    /// Starts to collect restart points; returns false if the format has none.
    fn keep_restarts(&mut self, _points: &RestartPoints) -> bool {
        false
    }

    /// Lets other threads prepare mapped pages, if any.
    fn share_pages(&mut self) -> Option<Weak<SharedPages>> {
        None
    }
}

/// A mapped file: the window is the unread part.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: Map,
    at: usize,
}

impl Mapped {
    pub(crate) fn new(mut map: Map) -> Self {
        map.reading_at(0);
        Self { map, at: 0 }
    }
}

impl Source for Mapped {
    fn window(&self) -> &[u8] {
        self.map.bytes().get(self.at..).unwrap_or_default()
    }

    fn bytes(&self) -> &Bytes {
        self.map.bytes()
    }

    fn advance(&mut self, n: usize) {
        self.at = self.at.saturating_add(n).min(self.map.bytes().len());
        self.map.reading_at(self.at);
    }

    fn fill(&mut self, _want: usize) -> io::Result<()> {
        Ok(())
    }

    fn read_ahead(&mut self) {
        self.map.read_ahead();
    }

    fn share_pages(&mut self) -> Option<Weak<SharedPages>> {
        self.map.share_pages()
    }
}

/// An input that fills a buffer sequentially.
pub(crate) trait Input: Send {
    /// Number of bytes before the write position that must not change.
    const LOOKBACK: usize;

    /// Writes to `buffer[at..]`; returns the number of bytes, 0 at the end of the input.
    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize>;

    /// See [`Source::set_threads`].
    fn set_threads(&mut self, _threads: usize) {}

    /// See [`Source::keep_restarts`].
    fn keep_restarts(&mut self, _points: &RestartPoints) -> bool {
        false
    }

    /// Leaves the verification of checksums to the caller, if the format has any: with the returned
    /// checker and [`Self::dues`].
    fn leave_checks(&mut self) -> Option<Checker> {
        None
    }

    /// Returns the trailers (expected checksums) since the last call.
    fn dues(&mut self) -> Vec<Trailer> {
        Vec::new()
    }
}

impl<R: Read + Send> Input for R {
    const LOOKBACK: usize = 0;

    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        self.read(buffer.get_mut(at..).unwrap_or_default())
    }
}

/// A gzip file.
pub(crate) struct Gzip<R>(pub(crate) Gunzip<R>);

impl<R: BufRead + Send> Input for Gzip<R> {
    const LOOKBACK: usize = HISTORY;

    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        self.0.read_at(buffer, at)
    }

    fn keep_restarts(&mut self, points: &RestartPoints) -> bool {
        self.0.keep_restarts(points);
        true
    }

    fn leave_checks(&mut self) -> Option<Checker> {
        Some(self.0.defer_checks())
    }

    fn dues(&mut self) -> Vec<Trailer> {
        self.0.take_trailers()
    }
}

/// A zstd file.
pub(crate) struct Zstd<R>(pub(crate) Unzstd<R>);

impl<R: BufRead + Send + 'static> Input for Zstd<R> {
    const LOOKBACK: usize = 0;

    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        self.0.read(buffer.get_mut(at..).unwrap_or_default())
    }

    fn set_threads(&mut self, threads: usize) {
        self.0.set_threads(threads);
    }

    fn keep_restarts(&mut self, points: &RestartPoints) -> bool {
        self.0.keep_restarts(points);
        true
    }
}

/// Initial size of the stream buffer in bytes: decompressed data is still in a near cache when it
/// is read.
const BUFFER: usize = 1 << 19;

/// Initial size for uncompressed files: half of that, because the data shares the second-level
/// cache with tables.
pub(crate) const READ: usize = 1 << 18;

/// Any reader, with a reused buffer that grows only for a record that does not fit, and only as far
/// as bytes have been read.
pub(crate) struct Streamed<R> {
    input: R,
    buffer: Bytes,
    /// Buffers whose packets still have other owners.
    pool: Pool<Bytes>,
    /// Minimum size of a buffer.
    size: usize,
    start: usize,
    end: usize,
    ended: bool,
}

impl<R: Input> Streamed<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_buffer(input, BUFFER)
    }

    /// Like [`Self::new`], with a buffer of `size` bytes.
    pub(crate) fn with_buffer(input: R, size: usize) -> Self {
        let buffer = vec![0; size].into();
        Self { input, buffer, pool: Pool::default(), size, start: 0, end: 0, ended: false }
    }

    /// An input that continues after these bytes, of which it refers to at most the last
    /// [`Input::LOOKBACK`].
    pub(crate) fn after(input: R, before: &[u8]) -> Self {
        let mut streamed = Self::new(input);
        if let Some(buffer) = streamed.buffer.buffer()
            && let Some(front) = buffer.get_mut(..before.len())
        {
            front.copy_from_slice(before);
            (streamed.start, streamed.end) = (before.len(), before.len());
        }
        streamed
    }

    /// See [`Source::keep_restarts`].
    pub(crate) fn keep_restarts(&mut self, points: &RestartPoints) -> bool {
        self.input.keep_restarts(points)
    }

    /// The buffer, the range of the window in it, and the input.
    pub(crate) fn into_parts(self) -> (Bytes, Range<usize>, R) {
        (self.buffer, self.start..self.end, self.input)
    }

    /// Whether the buffer is full.
    pub(crate) fn is_full(&self) -> bool {
        self.end == self.buffer.len()
    }
}

impl<R: Input> Source for Streamed<R> {
    fn window(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    fn bytes(&self) -> &Bytes {
        &self.buffer
    }

    fn is_near(&self) -> bool {
        true
    }

    fn advance(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    fn set_threads(&mut self, threads: usize) {
        self.input.set_threads(threads);
    }

    fn keep_restarts(&mut self, points: &RestartPoints) -> bool {
        Self::keep_restarts(self, points)
    }

    fn fill(&mut self, want: usize) -> io::Result<()> {
        if self.end - self.start >= want || self.ended {
            return Ok(());
        }
        let rest = self.start.min(self.end.saturating_sub(R::LOOKBACK))..self.end;
        let read_by_others = self.pool.exchange(&mut self.buffer);
        let Some(buffer) = self.buffer.buffer() else { return Ok(()) };
        match read_by_others {
            None => buffer.copy_within(rest.clone(), 0),
            Some(old) => {
                let len = self.size.max(rest.len());
                if buffer.is_empty() {
                    // Newly allocated memory is zero and is not written.
                    *buffer = vec![0; len];
                } else if buffer.len() < len {
                    buffer.resize(len, 0);
                }
                buffer[..rest.len()].copy_from_slice(&old[rest.clone()]);
            }
        }
        self.end = rest.len();
        self.start -= rest.start;
        while self.end - self.start < want {
            if self.end == buffer.len() {
                // The size doubles with the number of bytes read, independent of the length field
                // of a record.
                buffer.resize(buffer.len() * 2, 0);
            }
            let spare = buffer.len() - self.end;
            match self.input.read_at(buffer, self.end) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => self.end += n.min(spare),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.ended = true;
                    return Err(e);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte per call, like a slow pipe.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(buf.len()).min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn the_window_grows_with_the_bytes_read() {
        let mut s = Streamed::new(Drip(b"abcdef"));
        s.fill(2).unwrap();
        assert_eq!(s.window(), b"ab");
        s.advance(1);
        s.fill(3).unwrap();
        assert_eq!(s.window(), b"bcd");
        s.fill(usize::MAX).unwrap();
        assert_eq!(s.window(), b"bcdef");
        assert_eq!(s.buffer.len(), BUFFER);
        s.advance(100);
        assert!(s.window().is_empty());
    }

    #[test]
    fn one_big_record_makes_the_buffer_grow() {
        let bytes = vec![7; 3 * BUFFER];
        let mut s = Streamed::new(&bytes[..]);
        s.fill(2 * BUFFER + 1).unwrap();
        assert!(s.window().len() > 2 * BUFFER);
        assert_eq!(s.buffer.len(), 4 * BUFFER);
    }
}
