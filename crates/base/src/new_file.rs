//! Files that get their name when they are complete. A new file replaces an old one by a rename, so that the content of
//! the old file remains intact for its other hard links, for processes that read it, and after a failure.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

/// A file that is written under a temporary name in the same folder, and renamed when it is complete and synced to
/// disk.
///
/// The temporary name is unique, so several writers of one file do not interfere: the last one that finishes replaces
/// the others. If it is dropped before [`NewFile::finish`], the temporary file is removed and the old file remains. A
/// path that is not a regular file (a pipe, a terminal, `/dev/null`) cannot be replaced and is written directly.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    rename: Rename,
}

impl NewFile {
    /// Opens a temporary file in the folder of `path`.
    ///
    /// # Errors
    /// If the folder or an existing file of that name cannot be written, or the path is a folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::with(path, OpenOptions::new())
    }

    /// Like [`NewFile::create`], but only the owner can read a file that did not exist before.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn create_private(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::with(path, options)
    }

    fn with(path: &Path, options: OpenOptions) -> io::Result<Self> {
        let Some(path) = replaceable(path)? else {
            return Ok(Self { file: File::create(path)?, rename: Rename::default() });
        };
        let old = match OpenOptions::new().write(true).open(&path) {
            Ok(old) => Some(old.metadata()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (file, temporary) = temporary(&path, options)?;
        let rename = Rename { names: Some((temporary, path)) };
        if let Some(old) = old {
            // This fails on file systems without permissions, where it is not needed.
            let _ = file.set_permissions(old.permissions());
        }
        Ok(Self { file, rename })
    }

    /// Renames the file before anything is written: for output that is read while it grows.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn at_once(self) -> io::Result<File> {
        let (file, rename) = self.into_parts();
        rename.at_once()?;
        Ok(file)
    }

    /// Syncs the file to disk and gives it its final name.
    ///
    /// # Errors
    /// If the file cannot be synced or renamed.
    pub fn finish(self) -> io::Result<()> {
        self.rename.finish()
    }

    /// Gives the file its final name without a sync to disk, like the output of most programs.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn rename(self) -> io::Result<()> {
        self.rename.at_once()
    }

    /// Splits into the file and the step that renames it.
    pub fn into_parts(self) -> (File, Rename) {
        (self.file, self.rename)
    }

    /// Creates a file with this content.
    ///
    /// # Errors
    /// If it cannot be created or written.
    pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut new = Self::create(path)?;
        new.file.write_all(bytes)?;
        new.finish()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The last step of writing a file; if it is dropped instead, the temporary file is removed.
#[derive(Debug, Default)]
pub struct Rename {
    /// The temporary name and the final one; `None` if there is nothing to rename.
    names: Option<(PathBuf, PathBuf)>,
}

impl Rename {
    /// Syncs the file to disk and gives it its final name.
    ///
    /// # Errors
    /// If the file cannot be synced or renamed.
    pub fn finish(self) -> io::Result<()> {
        if let Some((temporary, _)) = &self.names {
            OpenOptions::new().write(true).open(temporary)?.sync_data()?;
        }
        self.at_once()
    }

    /// Gives the file its final name without a sync to disk.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn at_once(mut self) -> io::Result<()> {
        match &self.names {
            Some((temporary, path)) => fs::rename(temporary, path)?,
            None => return Ok(()),
        }
        self.names = None;
        Ok(())
    }
}

impl Drop for Rename {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.names {
            // A failure here cannot be handled.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// The path that a rename has to replace, with all symbolic links resolved; `None` if the path must be written
/// directly.
fn replaceable(path: &Path) -> io::Result<Option<PathBuf>> {
    // A file that is standard output, under its path in these folders, belongs to the parent process.
    let is_special = path.starts_with("/dev") || path.starts_with("/proc");
    match fs::metadata(path) {
        Ok(metadata) if is_special || !metadata.is_file() => return Ok(None),
        Ok(_) => return path.canonicalize().map(Some),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    // The file does not exist; symbolic links may lead to it.
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(Some(path)) };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Maximum number of consecutive symbolic links, as in Linux.
const MAX_LINKS: u32 = 40;

/// Creates a file with a unique name in the folder of `path`.
fn temporary(path: &Path, mut options: OpenOptions) -> io::Result<(File, PathBuf)> {
    options.write(true).create_new(true);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(".gannet-{process}-{number}.tmp"));
        match options.open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder, removed on drop.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("gannet-new-file-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(dir: &Dir) -> Vec<String> {
        let entries = fs::read_dir(&dir.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn other_hard_links_keep_the_old_content() {
        let dir = Dir::new("hard-link");
        let (one, two) = (dir.0.join("one"), dir.0.join("two"));
        fs::write(&one, "old").unwrap();
        fs::hard_link(&one, &two).unwrap();
        NewFile::write(&two, b"new").unwrap();
        assert_eq!(
            (fs::read(&one).unwrap(), fs::read(&two).unwrap()),
            (b"old".into(), b"new".into())
        );
        NewFile::create(&one).unwrap().at_once().unwrap().write_all(b"at once").unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"at once");
        assert_eq!(names(&dir), ["one", "two"]);
    }

    #[test]
    fn an_unfinished_file_leaves_the_old_one() {
        let dir = Dir::new("unfinished");
        let path = dir.0.join("file");
        fs::write(&path, "old").unwrap();
        let (mut file, rename) = NewFile::create(&path).unwrap().into_parts();
        file.write_all(b"half").unwrap();
        drop(rename);
        assert_eq!((fs::read(&path).unwrap(), names(&dir)), (b"old".into(), vec!["file".into()]));
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_and_permissions_are_preserved() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = Dir::new("links");
        let (file, link, new) = (dir.0.join("file"), dir.0.join("link"), dir.0.join("new"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        NewFile::write(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        std::os::unix::fs::symlink("made", &new).unwrap();
        NewFile::write(&new, b"made").unwrap();
        assert_eq!(fs::read(dir.0.join("made")).unwrap(), b"made");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(&dir), ["file", "link", "made", "new"]);
        std::os::unix::fs::symlink("loop", dir.0.join("loop")).unwrap();
        assert!(NewFile::create(&dir.0.join("loop")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_directly() {
        NewFile::write(Path::new("/dev/null"), b"x").unwrap();
        assert!(fs::metadata("/dev/null").is_ok_and(|m| !m.is_file()));
        assert!(NewFile::create(&std::env::temp_dir()).is_err());
    }

    #[test]
    fn two_writers_of_a_file_do_not_interfere() {
        let dir = Dir::new("writers");
        let path = dir.0.join("file");
        let [mut first, mut second] = [0, 1].map(|_| NewFile::create(&path).unwrap());
        assert_eq!(names(&dir).len(), 2);
        for _ in 0..1_000 {
            first.write_all(b"first").unwrap();
            second.write_all(b"2nd").unwrap();
        }
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first".repeat(1_000));
        second.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2nd".repeat(1_000));
        // A writer that fails does not affect the other.
        let [failed, mut third] = [0, 1].map(|_| NewFile::create(&path).unwrap());
        third.write_all(b"third").unwrap();
        drop(failed);
        third.finish().unwrap();
        assert_eq!((names(&dir), fs::read(&path).unwrap()), (vec!["file".into()], b"third".into()));
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = Dir::new("private");
        let path = dir.0.join("file");
        NewFile::create_private(&path).unwrap().finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
