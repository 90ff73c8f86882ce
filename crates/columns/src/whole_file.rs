//! Files that have their names only when they are complete.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

/// A file that is written under another name, `NAME.tmp`, and gets its own when it is complete and on the disk.
/// One that is dropped before is removed; one of a process that was killed is replaced by the next that has its name.
#[derive(Debug)]
pub struct WholeFile {
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    path: PathBuf,
}

/// Bytes that go to the file at a time.
const BUFFER: usize = 64 << 10;

impl WholeFile {
    /// Creates the file, and its folder if that is missing.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = |e: io::Error| named(path, &e);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(name)?;
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(name)?;
        let file = Some(BufWriter::with_capacity(BUFFER, file));
        Ok(Self { file, temporary, path: path.to_owned() })
    }

    /// Gives the file its name, once all of it is on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        let result = self.complete();
        result.map_err(|e| named(&self.path, &e))
    }

    fn complete(&mut self) -> io::Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let written = file.flush().and_then(|()| file.get_ref().sync_data());
        drop(file);
        let renamed = written.and_then(|()| fs::rename(&self.temporary, &self.path));
        if renamed.is_err() {
            let _ = fs::remove_file(&self.temporary);
        }
        renamed
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes).map_err(|e| named(&self.path, &e)),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.flush().map_err(|e| named(&self.path, &e)))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// An error with the file that it is about.
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
        assert_eq!(list(), ["file.tmp"]);
        drop(file);
        assert!(list().is_empty());
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(
            (list(), fs::read(&path).unwrap()),
            (vec!["file".to_owned()], b"whole".to_vec())
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
