//! Reader that delivers a file in chunks.

use std::fs::File;
use std::io::Read as _;

use super::{FileVersion, MessageSink, Mode, PeriodicAction, Read, Source, prefixed};
use crate::support::field::{Column, Field, Kind};

/// Options: the constants of the module `InputBinary`.
#[derive(Clone, Debug)]
pub struct BinaryOptions {
    /// Size of a chunk, in bytes.
    pub chunk_size: usize,
    /// The folder of relative paths.
    pub path_prefix: String,
}

impl Default for BinaryOptions {
    fn default() -> Self {
        BinaryOptions { chunk_size: 1024, path_prefix: String::new() }
    }
}

/// Maximum size of a chunk, in bytes.
const MAX_CHUNK: usize = 64 << 20;

pub(super) struct Binary {
    source: Source,
    columns: Vec<Column>,
    path: String,
    chunk_size: usize,
    file: Option<File>,
    version: FileVersion,
    opened: bool,
}

impl Binary {
    pub(super) fn new(source: Source, columns: Vec<Column>, options: &BinaryOptions) -> Self {
        let path = prefixed(&source.source, &options.path_prefix);
        let chunk_size =
            if options.chunk_size == 0 { 1024 } else { options.chunk_size.min(MAX_CHUNK) };
        Binary {
            source,
            columns,
            path,
            chunk_size,
            file: None,
            version: FileVersion::default(),
            opened: false,
        }
    }

    fn open_file(&mut self, out: &mut MessageSink) -> bool {
        self.file = File::open(&self.path).ok();
        if self.file.is_none() {
            out.error(format!("Init: cannot open {}", self.path));
        }
        self.file.is_some()
    }

    /// Whether the file has changed; `None` after an error.
    fn changed(&mut self, out: &mut MessageSink) -> Option<bool> {
        let version = FileVersion::from_path(&self.path);
        match version {
            None => {
                out.error(format!("Could not get stat for {}", self.path));
                None
            }
            Some(version) => Some(std::mem::replace(&mut self.version, version) != version),
        }
    }

    /// Reads a chunk; only the last one of the file is shorter than `chunk_size`.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut chunk = Vec::new();
        let file = self.file.as_mut()?;
        file.take(self.chunk_size as u64).read_to_end(&mut chunk).ok()?;
        Some(chunk).filter(|chunk| !chunk.is_empty())
    }
}

impl Read for Binary {
    fn open(&mut self, out: &mut MessageSink) -> bool {
        if self.source.source.is_empty() {
            out.error("No source path provided");
            return false;
        }
        match self.columns.as_slice() {
            [Column { kind: Kind::String, .. }] => {}
            [_] => {
                out.error("Filter for binary reader contains a non-string field.");
                return false;
            }
            _ => {
                out.error(
                    "Filter for binary reader contains more than one field. Filters for binary reader must contain \
                     exactly one string field. Filter ignored.",
                );
                return false;
            }
        }
        if !self.open_file(out) || self.changed(out).is_none() {
            return false;
        }
        self.update(out);
        true
    }

    fn update(&mut self, out: &mut MessageSink) -> bool {
        if std::mem::replace(&mut self.opened, true) {
            if self.source.mode == Mode::Reread {
                match self.changed(out) {
                    None => return false,
                    Some(false) => return true,
                    Some(true) => {}
                }
            }
            if (self.source.mode != Mode::Stream || self.file.is_none()) && !self.open_file(out) {
                return false;
            }
        }
        while let Some(chunk) = self.chunk() {
            out.row(self.source.mode, vec![Field::String(chunk.into())], None);
        }
        if self.source.mode != Mode::Stream {
            out.end_of_send();
        }
        true
    }

    fn heartbeat(&mut self, _: &mut MessageSink) -> PeriodicAction {
        if self.source.mode == Mode::Manual {
            PeriodicAction::Nothing
        } else {
            PeriodicAction::Update
        }
    }
}
