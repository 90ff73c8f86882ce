//! Queries of the file system and the environment by the parser, whose answers a cache depends on.
//!
//! A search for a file checks many paths, and a file that later appears at one of them would be found instead.
//! So the answers are recorded, and a cache is valid only while each of them is the same. A missing folder
//! covers all paths below it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::codec::{Codec, Damaged, DecodeResult, Reader, Writer, fields, variants};

/// What exists at a path.
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

/// The identity of a file's contents, as far as its metadata determine it.
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
    pub(super) fn from_metadata(data: &Metadata) -> Self {
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

    /// Whether the file may have been modified again within one clock tick, so that its time is not conclusive.
    pub(super) fn is_younger_than(&self, seconds: i64) -> bool {
        self.modified >= seconds || self.changed >= seconds
    }
}

thread_local! {
    static ANSWERS: RefCell<Option<ProbeAnswers>> = const { RefCell::new(None) };
}

/// The recorded answers.
#[derive(Default)]
pub(super) struct ProbeAnswers {
    /// Kind of each path.
    pub(super) paths: BTreeMap<PathBuf, Kind>,
    /// Identity of each file that was read, taken before reading.
    pub(super) files: BTreeMap<PathBuf, FileIdentity>,
}

/// Starts recording the answers of this thread.
pub(crate) fn begin() {
    ANSWERS.set(Some(ProbeAnswers::default()));
}

/// Stops recording and returns the answers.
pub(super) fn end() -> Option<ProbeAnswers> {
    ANSWERS.take()
}

/// Checks what exists at a path.
pub(crate) fn kind_at(path: &Path) -> Kind {
    let kind = current_kind(path);
    ANSWERS.with_borrow_mut(|answers| {
        if let Some(answers) = answers {
            answers.paths.insert(path.to_owned(), kind);
        }
    });
    kind
}

/// Reads a file.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    ANSWERS.with_borrow_mut(|answers| {
        if let Some(answers) = answers
            && let Ok(data) = std::fs::metadata(path)
        {
            answers.files.insert(path.to_owned(), FileIdentity::from_metadata(&data));
        }
    });
    std::fs::read(path)
}

fn current_kind(path: &Path) -> Kind {
    match std::fs::metadata(path) {
        Ok(data) if data.is_file() => Kind::File,
        Ok(data) if data.is_dir() => Kind::Folder,
        Ok(_) => Kind::Other,
        Err(_) => Kind::Missing,
    }
}

/// The minimal set of answers that implies all of them: of missing folders only the outermost. `None` if a path
/// is not UTF-8.
pub(super) fn minimal_answers(paths: &BTreeMap<PathBuf, Kind>) -> Option<Vec<(Box<str>, Kind)>> {
    let mut known: BTreeMap<PathBuf, Kind> = BTreeMap::new();
    for (path, kind) in paths {
        let mut path = path.clone();
        if *kind == Kind::Missing {
            while let Some(parent) = path.parent()
                && !parent.as_os_str().is_empty()
                && current_kind(parent) == Kind::Missing
            {
                path = parent.to_owned();
            }
        }
        known.insert(path, *kind);
    }
    known.iter().map(|(path, kind)| Some((path.to_str()?.into(), *kind))).collect()
}

/// Whether an answer is still the same.
pub(super) fn is_unchanged(path: &str, kind: Kind) -> bool {
    current_kind(Path::new(path)) == kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_covers_paths_below_it() {
        let missing = |path: &str| (PathBuf::from(path), Kind::Missing);
        let paths = BTreeMap::from([
            missing("/no such folder/a/b.zeek"),
            missing("/no such folder/c.zeek"),
            (PathBuf::from("/"), Kind::Folder),
        ]);
        let minimal_answers = minimal_answers(&paths).unwrap_or_default();
        assert_eq!(
            minimal_answers,
            [("/".into(), Kind::Folder), ("/no such folder".into(), Kind::Missing)]
        );
        assert!(minimal_answers.iter().all(|(path, kind)| is_unchanged(path, *kind)));
        assert!(!is_unchanged("/", Kind::Missing));
    }

    #[test]
    fn answers_are_recorded_between_begin_and_end() {
        assert_eq!(kind_at(Path::new("/")), Kind::Folder);
        begin();
        kind_at(Path::new("/"));
        assert_eq!(end().map(|answers| answers.paths.len()), Some(1));
        assert!(end().is_none());
    }
}
