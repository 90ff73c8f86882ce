//! Where bytes come from: a mapped file, or anything that can be read.

use std::io;
use std::io::BufRead;
use std::io::Read;
use std::ops::Range;
use std::sync::Weak;

use crate::Bytes;
use crate::gzip::Checker;
use crate::gzip::Due;
use crate::gzip::Gunzip;
use crate::gzip::HISTORY;
use crate::held::Spares;
use crate::map::Map;
use crate::map::Tended;
use crate::zstd::Unzstd;

/// A run of bytes that is looked at through a window and used up from its front.
///
/// Record readers walk over the window without copying. When it ends within a record they ask for
/// more, and only then may bytes move.
pub(crate) trait Source: Send {
    /// The bytes at hand.
    fn window(&self) -> &[u8];

    /// What the window is a part of.
    fn bytes(&self) -> &Bytes;

    /// Whether the bytes are near the processor, having just been written.
    fn is_near(&self) -> bool {
        false
    }

    /// Drops `n` bytes from the front of the window.
    fn advance(&mut self, n: usize);

    /// Tries to widen the window to at least `want` bytes; the window stays shorter only at the
    /// end of the input or after an error, which later calls do not repeat.
    fn fill(&mut self, want: usize) -> io::Result<()>;

    /// Has a thread of its own make bytes ready, where that can be.
    fn read_ahead(&mut self) {}

    /// Has so many threads unpack, the caller's being one of them, where they can.
    fn set_threads(&mut self, _threads: usize) {}

    /// Has others see to mapped pages, where there are any.
    fn tend(&mut self) -> Option<Weak<Tended>> {
        None
    }
}

/// A mapped file: the window is all that is left of it.
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

    fn tend(&mut self) -> Option<Weak<Tended>> {
        self.map.tend()
    }
}

/// What fills a buffer from front to back.
pub(crate) trait Input: Send {
    /// Bytes before the place where it writes that must stay what they were.
    const KEPT: usize;

    /// Writes to `buffer[at..]`; how many bytes, 0 at the end of the input.
    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize>;

    /// As [`Source::set_threads`].
    fn set_threads(&mut self, _threads: usize) {}

    /// Leaves it to the caller to hold what comes out from now on against its checksums, if there are any:
    /// [`Self::dues`] says which.
    fn leave_checks(&mut self) -> Option<Checker> {
        None
    }

    /// Checksums that came since this was asked for the last time.
    fn dues(&mut self) -> Vec<Due> {
        Vec::new()
    }
}

impl<R: Read + Send> Input for R {
    const KEPT: usize = 0;

    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        self.read(buffer.get_mut(at..).unwrap_or_default())
    }
}

impl<R: BufRead + Send> Input for Gunzip<R> {
    const KEPT: usize = HISTORY;

    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        Gunzip::read_at(self, buffer, at)
    }

    fn leave_checks(&mut self) -> Option<Checker> {
        Some(Gunzip::leave_checks(self))
    }

    fn dues(&mut self) -> Vec<Due> {
        Gunzip::dues(self)
    }
}

impl<R: BufRead + Send + 'static> Input for Unzstd<R> {
    const KEPT: usize = 0;

    fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        self.read(buffer.get_mut(at..).unwrap_or_default())
    }

    fn set_threads(&mut self, threads: usize) {
        Unzstd::set_threads(self, threads);
    }
}

/// Size the stream buffer starts with: what was unpacked is still near when it is read.
const BUFFER: usize = 1 << 19;

/// The same where nothing is unpacked: half of it, as what is read lies beside tables in the second-level
/// cache.
pub(crate) const READ: usize = 1 << 18;

/// Anything readable, through one buffer that is reused and grows only for a record that does not
/// fit in it, and only as far as bytes have really come.
pub(crate) struct Streamed<R> {
    input: R,
    buffer: Bytes,
    /// Buffers whose packets others still read.
    spares: Spares<Bytes>,
    /// What a buffer has at least.
    size: usize,
    start: usize,
    end: usize,
    ended: bool,
}

impl<R: Input> Streamed<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_buffer(input, BUFFER)
    }

    /// The same with a buffer of so many bytes.
    pub(crate) fn with_buffer(input: R, size: usize) -> Self {
        let buffer = vec![0; size].into();
        Self { input, buffer, spares: Spares::default(), size, start: 0, end: 0, ended: false }
    }

    /// The buffer, where in it the window is, and the input it came from.
    pub(crate) fn into_parts(self) -> (Bytes, Range<usize>, R) {
        (self.buffer, self.start..self.end, self.input)
    }

    /// Whether as much has come as there was room for.
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

    fn fill(&mut self, want: usize) -> io::Result<()> {
        if self.end - self.start >= want || self.ended {
            return Ok(());
        }
        let rest = self.start.min(self.end.saturating_sub(R::KEPT))..self.end;
        let read_by_others = self.spares.exchange(&mut self.buffer);
        let Some(buffer) = self.buffer.buffer() else { return Ok(()) };
        match read_by_others {
            None => buffer.copy_within(rest.clone(), 0),
            Some(old) => {
                let len = self.size.max(rest.len());
                if buffer.is_empty() {
                    // Fresh memory is zero already, and not touched for it.
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
                // Doubling follows the bytes that came, never the length a record claims.
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

    /// Gives one byte a call, as a slow pipe does.
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
    fn window_grows_by_what_came() {
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
