//! Identification and writing of output files.

use std::fs;
use std::io;
use std::io::Write;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

/// Identifies a file independently of its name: by device and inode if the system has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl FileId {
    /// The id of an existing file; symbolic links are followed. `None` if the metadata cannot be
    /// read or the file is not a regular file.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Some(Self((metadata.dev(), metadata.ino())))
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            path.canonicalize().ok().map(Self)
        }
    }
}

/// Splits writes so that they end at multiples of [`PIECE`] in the file, if possible.
///
/// Kernels allocate page cache in units of the write size: from 128 KiB on they search for larger
/// units, which on virtual machines costs more than the copy.
pub(crate) struct Pieces<W> {
    inner: W,
    /// Number of bytes written.
    at: usize,
}

const PIECE: usize = 64 << 10;

impl<W: Write> Pieces<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, at: 0 }
    }
}

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

#[cfg(test)]
mod tests {
    use gannet_base::NewFile;

    use super::*;
    use crate::test::Dir;

    #[test]
    fn files_are_the_same_under_all_their_names() {
        let dir = Dir::new("hard-link");
        let (one, two) = (dir.0.join("one"), dir.0.join("two"));
        fs::write(&one, "old").unwrap();
        fs::hard_link(&one, &two).unwrap();
        assert_eq!(FileId::of(&one), FileId::of(&two));
        NewFile::write(&two, b"new").unwrap();
        assert_ne!(FileId::of(&one), FileId::of(&two));
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_no_files() {
        assert_eq!(FileId::of(Path::new("/dev/null")), None);
    }
}
