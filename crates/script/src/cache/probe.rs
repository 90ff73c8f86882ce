//! What the parser asks the file system and the environment: the answers that a cache depends on.
//!
//! A search for a file looks at many paths, and a file that appears at one of them later would be found instead. So the answers are
//! noted, and a cache counts only while each of them is the same. Folders that do not exist stand for everything that was searched below them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::codec::{Codec, Damaged, Read, Reader, Writer, fields, variants};

/// What there is at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Nothing.
    Missing,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Something else.
    Other,
}

variants! {
    Kind { 0 = Missing, 1 = File, 2 = Folder, 3 = Other }
}

/// The identity of a file's contents, as far as its metadata say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: i64,
    modified_nanos: i64,
    changed: i64,
    changed_nanos: i64,
}

fields! {
    FileIdentity { device, inode, size, modified, modified_nanos, changed, changed_nanos }
}

impl FileIdentity {
    pub(super) fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: data.mtime(),
            modified_nanos: data.mtime_nsec(),
            changed: data.ctime(),
            changed_nanos: data.ctime_nsec(),
        }
    }

    /// Whether the file may have been written again since within one tick of the clock: then its time says nothing.
    pub(super) fn is_younger_than(&self, seconds: i64) -> bool {
        self.modified >= seconds || self.changed >= seconds
    }
}

thread_local! {
    static NOTED: RefCell<Option<ProbeAnswers>> = const { RefCell::new(None) };
}

/// The answers so far.
#[derive(Default)]
pub(super) struct ProbeAnswers {
    /// What there was at each path.
    pub(super) paths: BTreeMap<PathBuf, Kind>,
    /// The stamp of each file that was read, as it was before.
    pub(super) files: BTreeMap<PathBuf, FileIdentity>,
}

/// From now on answers of this thread are noted.
pub(crate) fn begin() {
    NOTED.set(Some(ProbeAnswers::default()));
}

/// The answers; none are noted any more.
pub(super) fn end() -> Option<ProbeAnswers> {
    NOTED.take()
}

/// What there is at a path.
pub(crate) fn look(path: &Path) -> Kind {
    let kind = now(path);
    NOTED.with_borrow_mut(|noted| {
        if let Some(noted) = noted {
            noted.paths.insert(path.to_owned(), kind);
        }
    });
    kind
}

/// Reads a file.
///
/// # Errors
/// Whatever the system says.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    NOTED.with_borrow_mut(|noted| {
        if let Some(noted) = noted
            && let Ok(data) = std::fs::metadata(path)
        {
            noted.files.insert(path.to_owned(), FileIdentity::of(&data));
        }
    });
    std::fs::read(path)
}

fn now(path: &Path) -> Kind {
    match std::fs::metadata(path) {
        Ok(data) if data.is_file() => Kind::File,
        Ok(data) if data.is_dir() => Kind::Folder,
        Ok(_) => Kind::Other,
        Err(_) => Kind::Missing,
    }
}

/// The answers that suffice to know that all are the same: of folders that are missing only the outermost. `None` where a path is no text.
pub(super) fn essential(paths: &BTreeMap<PathBuf, Kind>) -> Option<Vec<(Box<str>, Kind)>> {
    let mut known: BTreeMap<PathBuf, Kind> = BTreeMap::new();
    for (path, kind) in paths {
        let mut path = path.clone();
        if *kind == Kind::Missing {
            while let Some(parent) = path.parent()
                && !parent.as_os_str().is_empty()
                && now(parent) == Kind::Missing
            {
                path = parent.to_owned();
            }
        }
        known.insert(path, *kind);
    }
    known.iter().map(|(path, kind)| Some((path.to_str()?.into(), *kind))).collect()
}

/// Whether an answer is still the same.
pub(super) fn is_still(path: &str, kind: Kind) -> bool {
    now(Path::new(path)) == kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_stands_for_what_was_searched_in_it() {
        let missing = |path: &str| (PathBuf::from(path), Kind::Missing);
        let paths = BTreeMap::from([
            missing("/no such folder/a/b.zeek"),
            missing("/no such folder/c.zeek"),
            (PathBuf::from("/"), Kind::Folder),
        ]);
        let essential = essential(&paths).unwrap_or_default();
        assert_eq!(
            essential,
            [("/".into(), Kind::Folder), ("/no such folder".into(), Kind::Missing)]
        );
        assert!(essential.iter().all(|(path, kind)| is_still(path, *kind)));
        assert!(!is_still("/", Kind::Missing));
    }

    #[test]
    fn answers_are_noted_while_that_is_asked_for() {
        assert_eq!(look(Path::new("/")), Kind::Folder);
        begin();
        look(Path::new("/"));
        assert_eq!(end().map(|noted| noted.paths.len()), Some(1));
        assert!(end().is_none());
    }
}
