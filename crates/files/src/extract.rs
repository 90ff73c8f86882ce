//! Receivers of the contents of files, such as the command, which writes them to a folder.
//!
//! Nothing here does I/O. What takes contents is given to [`Files`](crate::Files) with its options; it is
//! asked about each file once its type is known, and gets its bytes in order.

use std::fmt;
use std::sync::Arc;

use gannet_base::Uid;

/// A file whose contents can be had.
#[derive(Clone, Copy, Debug)]
pub struct Extractable {
    /// Its name in the logs.
    pub fuid: Uid,
    /// Where it was seen: `HTTP`, `SMTP`, `FTP_DATA`, `SSL`, …
    pub source: &'static str,
    /// Its type, where that is known.
    pub mime_type: Option<&'static str>,
}

/// Takes contents of files, of those that it wants.
pub trait Extract: Send + Sync + fmt::Debug {
    /// What takes the contents of this one.
    fn open(&self, file: &Extractable) -> Option<Box<dyn Contents>>;

    /// What writes contents to a file of this name, as a script asked for: at most `limit` bytes, or all where
    /// that is 0. Missing bytes count if `counts_gaps` says so.
    fn create(&self, path: &str, limit: u64, counts_gaps: bool) -> Option<Box<dyn Contents>> {
        let _ = (path, limit, counts_gaps);
        None
    }
}

/// Takes the contents of one file, from its first byte.
pub trait Contents: Send + fmt::Debug {
    /// The next bytes.
    fn data(&mut self, data: &[u8]);
    /// This many bytes are missing here.
    fn gap(&mut self, len: u64);
    /// The limit that the next `len` bytes exceed, present or missing ones; `None` where they do not, or none is reported.
    fn exceeded(&self, len: u64, is_gap: bool) -> Option<u64> {
        let _ = (len, is_gap);
        None
    }
    /// From now on at most `limit` bytes are written in all, or all where that is 0.
    fn set_limit(&mut self, limit: u64) {
        let _ = limit;
    }
    /// The file is over.
    fn finish(&mut self) -> Extracted;
}

/// What became of the contents of a file, for files.log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// Name of the file that was written.
    pub name: String,
    /// Bytes in it.
    pub size: u64,
    /// Whether there were more, beyond a limit.
    pub cutoff: bool,
}

/// How far it is with the contents of a file.
#[derive(Debug, Default)]
pub(crate) enum Extraction {
    /// There is no receiver, or not for this file.
    #[default]
    No,
    /// What is to be asked when the first bytes come.
    Ask(Arc<dyn Extract>),
    Open(Box<dyn Contents>),
}

impl Extraction {
    /// Of a file whose contents these options may want.
    pub(crate) fn of(extract: Option<&Arc<dyn Extract>>) -> Self {
        extract.map_or(Self::No, |extract| Self::Ask(Arc::clone(extract)))
    }

    /// The next bytes of this file.
    #[inline]
    pub(crate) fn data(&mut self, file: impl Fn() -> Extractable, data: &[u8]) {
        if !matches!(self, Self::No) {
            self.take(file, |contents| contents.data(data));
        }
    }

    /// Bytes of this file are missing.
    #[inline]
    pub(crate) fn gap(&mut self, file: impl Fn() -> Extractable, len: u64) {
        if !matches!(self, Self::No) {
            self.take(file, |contents| contents.gap(len));
        }
    }

    #[cold]
    fn take(&mut self, file: impl Fn() -> Extractable, then: impl FnOnce(&mut dyn Contents)) {
        if let Self::Ask(extract) = self {
            *self = extract.open(&file()).map_or(Self::No, Self::Open);
        }
        if let Self::Open(contents) = self {
            then(&mut **contents);
        }
    }

    /// The limit that the next `len` bytes exceed.
    pub(crate) fn exceeded(&self, len: u64, is_gap: bool) -> Option<u64> {
        match self {
            Self::Open(contents) => contents.exceeded(len, is_gap),
            _ => None,
        }
    }

    /// From now on at most `limit` bytes are written in all, or all where that is 0.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        if let Self::Open(contents) = self {
            contents.set_limit(limit);
        }
    }

    /// The file has ended: returns what was written of it.
    pub(crate) fn finish(&mut self) -> Option<Extracted> {
        match std::mem::take(self) {
            Self::Open(mut contents) => Some(contents.finish()),
            _ => None,
        }
    }
}
