//! Receivers of file contents, for instance the command, which writes them to a folder.
//!
//! This crate does no I/O. The receiver is one of the options of [`Files`](crate::Files); it
//! decides about each file once the type of the file is known, and receives the bytes in order.

use std::fmt;
use std::sync::Arc;

use gannet_base::Uid;

/// A file whose contents can be extracted.
#[derive(Clone, Copy, Debug)]
pub struct Extractable {
    /// The uid of the file in the logs.
    pub fuid: Uid,
    /// The protocol that carried it: `HTTP`, `SMTP`, `FTP_DATA`, `SSL`, …
    pub source: &'static str,
    /// The media type, if known.
    pub mime_type: Option<&'static str>,
}

/// Receives the contents of files that it selects.
pub trait Extract: Send + Sync + fmt::Debug {
    /// Returns a receiver for the contents of this file, or `None` to ignore it.
    fn open(&self, file: &Extractable) -> Option<Box<dyn Contents>>;

    /// Returns a receiver that writes contents to a file with this name, as requested by a script:
    /// at most `limit` bytes, 0 means no limit. `counts_gaps` determines whether missing bytes
    /// count toward the limit.
    fn create(&self, path: &str, limit: u64, counts_gaps: bool) -> Option<Box<dyn Contents>> {
        let _ = (path, limit, counts_gaps);
        None
    }
}

/// Receives the contents of one file, from the first byte on.
pub trait Contents: Send + fmt::Debug {
    /// Receives the next bytes.
    fn data(&mut self, data: &[u8]);
    /// Reports that `len` bytes are missing at this position.
    fn gap(&mut self, len: u64);
    /// The limit that the next `len` bytes exceed, whether they are present or missing; `None` if
    /// they do not exceed it, or the limit is not reported.
    fn exceeded(&self, len: u64, is_gap: bool) -> Option<u64> {
        let _ = (len, is_gap);
        None
    }
    /// Sets the total limit in bytes; 0 means no limit.
    fn set_limit(&mut self, limit: u64) {
        let _ = limit;
    }
    /// Ends the file.
    fn finish(&mut self) -> Extracted;
}

/// What was extracted of a file, for files.log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// Name of the written file.
    pub name: String,
    /// Size of the written file in bytes.
    pub size: u64,
    /// Whether the file was truncated at a limit.
    pub cutoff: bool,
}

/// State of a file's extraction.
#[derive(Debug, Default)]
pub(crate) enum Extraction {
    /// No receiver is set, or it ignores this file.
    #[default]
    Ignored,
    /// The receiver decides when the first bytes arrive.
    Undecided(Arc<dyn Extract>),
    Open(Box<dyn Contents>),
}

impl Extraction {
    /// The initial state for a file; `extract` is the receiver of the options.
    pub(crate) fn new(extract: Option<&Arc<dyn Extract>>) -> Self {
        extract.map_or(Self::Ignored, |extract| Self::Undecided(Arc::clone(extract)))
    }

    /// Passes the next bytes of the file to the receiver.
    #[inline]
    pub(crate) fn data(&mut self, file: impl Fn() -> Extractable, data: &[u8]) {
        if !matches!(self, Self::Ignored) {
            self.with_receiver(file, |contents| contents.data(data));
        }
    }

    /// Reports missing bytes of the file to the receiver.
    #[inline]
    pub(crate) fn gap(&mut self, file: impl Fn() -> Extractable, len: u64) {
        if !matches!(self, Self::Ignored) {
            self.with_receiver(file, |contents| contents.gap(len));
        }
    }

    #[cold]
    fn with_receiver(
        &mut self,
        file: impl Fn() -> Extractable,
        then: impl FnOnce(&mut dyn Contents),
    ) {
        if let Self::Undecided(extract) = self {
            *self = extract.open(&file()).map_or(Self::Ignored, Self::Open);
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

    /// Sets the total limit in bytes; 0 means no limit.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        if let Self::Open(contents) = self {
            contents.set_limit(limit);
        }
    }

    /// Ends the extraction: returns what was written of the file.
    pub(crate) fn finish(&mut self) -> Option<Extracted> {
        match std::mem::take(self) {
            Self::Open(mut contents) => Some(contents.finish()),
            _ => None,
        }
    }
}
