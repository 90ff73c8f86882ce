//! Files that captures are written to: new ones, emptied ones, and old ones that are written over.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;

/// Opens a file to be written from the front. With `over`, an old one that is long is not emptied
/// before, but cut where the new bytes end.
pub(crate) fn create(path: &Path, over: bool) -> io::Result<Box<dyn Write + Send>> {
    let old = over && std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() >= LONG);
    if !old {
        return Ok(Box::new(Pieces { inner: File::create(path)?, at: 0 }));
    }
    let file = OpenOptions::new().write(true).open(path)?;
    Ok(Box::new(Pieces { inner: Over::new(file)?, at: 0 }))
}

/// Shorter files are emptied in no time.
const LONG: u64 = 1 << 20;

/// Writes pieces that end at multiples of [`PIECE`] in the file, as far as that goes.
///
/// Kernels keep what was written in pieces like those it came in: from 128 KiB on they have to look
/// for memory that nobody used for long, which on virtual machines costs more than all copying.
struct Pieces<W> {
    inner: W,
    /// Bytes written.
    at: usize,
}

const PIECE: usize = 64 << 10;

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(PIECE - self.at % PIECE);
        let n = self.inner.write(&bytes[..n])?;
        self.at = self.at.wrapping_add(n);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// An old file that is written over.
///
/// To throw away what the kernel holds of an old file, and to find room for a new one, takes it as long
/// as writing does; bytes that replace bytes need neither. Until the end is known old packets follow
/// the new ones, so the file begins with zeros instead of what tells its format: if the machine or the
/// process comes to a sudden end meanwhile, nobody takes the mixture for a capture.
struct Over {
    file: File,
    /// The first bytes, held back until what is behind them is right.
    head: Vec<u8>,
    /// Whether that is so.
    settled: bool,
}

/// How many bytes are held back.
const HEAD: usize = 4;

impl Over {
    fn new(mut file: File) -> io::Result<Self> {
        file.write_all(&[0; HEAD])?;
        Ok(Self { file, head: Vec::with_capacity(HEAD), settled: false })
    }

    /// Cuts the file where it ends now, and begins it as it should.
    fn settle(&mut self) -> io::Result<()> {
        if self.settled {
            return Ok(());
        }
        self.settled = true;
        let written = self.file.stream_position()?;
        let end = if self.head.len() < HEAD { self.head.len() as u64 } else { written };
        self.file.set_len(end)?;
        self.file.rewind()?;
        self.file.write_all(&self.head)?;
        self.file.seek(SeekFrom::Start(end))?;
        Ok(())
    }
}

impl Write for Over {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.settled || self.head.len() == HEAD {
            return self.file.write(bytes);
        }
        let n = bytes.len().min(HEAD - self.head.len());
        self.head.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settle()
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        // After an error, or where nobody flushed: what is there is whole as far as it goes.
        let _ = self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::Dir;

    fn old(dir: &Dir) -> std::path::PathBuf {
        let path = dir.0.join("old");
        std::fs::write(&path, vec![7; LONG as usize + 5]).unwrap();
        path
    }

    #[test]
    fn old_bytes_are_gone_at_the_end() {
        let dir = Dir::new("over");
        let path = old(&dir);
        let mut file = create(&path, true).unwrap();
        for piece in [&b"ab"[..], b"cdefg", b""] {
            file.write_all(piece).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((&bytes[..9], bytes.len()), (&b"\0\0\0\0efg\x07\x07"[..], LONG as usize + 5));
        file.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdefg");
        file.write_all(b"h").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdefgh");
    }

    #[test]
    fn longer_ones_and_empty_ones_are_what_was_written() {
        let dir = Dir::new("over-long");
        let long: Vec<u8> = (0..3 * LONG).map(|i| (i % 251) as u8).collect();
        for bytes in [&long[..], b"abc", b""] {
            let path = old(&dir);
            let mut file = create(&path, true).unwrap();
            file.write_all(bytes).unwrap();
            // Dropped, not flushed.
            drop(file);
            assert!(std::fs::read(&path).unwrap() == bytes);
        }
    }

    #[test]
    fn without_being_asked_files_are_emptied_first() {
        let dir = Dir::new("emptied");
        let path = old(&dir);
        let _file = create(&path, false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        std::fs::write(&path, b"short").unwrap();
        let _file = create(&path, true).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
