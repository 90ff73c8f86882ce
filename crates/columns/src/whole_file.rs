//! Files that get their final name when they are complete.

use std::fs;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use gannet_base::NewFile;

/// A buffered [`NewFile`] whose errors contain its path.
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<NewFile>,
    path: PathBuf,
}

/// Size of the buffer, in bytes.
const BUFFER: usize = 64 << 10;

impl WholeFile {
    /// Creates the file, and its folder if it does not exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = |e: io::Error| named(path, &e);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(name)?;
        }
        let file = NewFile::create(path).map_err(name)?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), path: path.to_owned() })
    }

    /// Writes the buffered bytes and gives the file its final name.
    pub fn finish(self) -> io::Result<()> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(NewFile::finish).map_err(|e| named(&self.path, &e))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| named(&self.path, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| named(&self.path, &e))
    }
}

/// Adds the path of a file to its error.
pub(crate) fn named(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = std::env::temp_dir().join(format!("gannet-whole-{}", std::process::id()));
        let path = folder.join("deeper/file");
        let list = || {
            let entries = fs::read_dir(folder.join("deeper")).unwrap();
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        let unfinished = list();
        assert!(unfinished.len() == 1 && unfinished[0].ends_with(".tmp"), "{unfinished:?}");
        drop(file);
        assert!(list().is_empty());
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(
            (list(), fs::read(&path).unwrap()),
            (vec!["file".to_owned()], b"whole".to_vec())
        );
        // Two writers do not disturb each other.
        let [mut first, mut second] = [0, 1].map(|_| WholeFile::create(&path).unwrap());
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        second.finish().unwrap();
        assert_eq!((list().len(), fs::read(&path).unwrap()), (1, b"second".to_vec()));
        fs::remove_dir_all(folder).unwrap();
    }
}
