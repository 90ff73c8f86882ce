//! A log stream and its file.

use std::fs::File;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use gannet_base::Time;

use super::Options;
use super::live::LiveState;
use crate::buffer::Buffer;
use crate::buffer::PIECE;
use crate::collect::Key;
use crate::collect::Shape;
use crate::json::civil;
use crate::row::Field;

/// A log stream: buffered rows and their file.
pub(super) struct Stream {
    pub(super) path: &'static str,
    pub(super) shape: Shape,
    /// Columns that are written.
    pub(super) fields: Vec<Field>,
    pub(super) enabled: bool,
    pub(super) file: Option<File>,
    pub(super) buffer: Buffer,
    /// Key and end offset of each row in `buffer`, if rows are collected.
    pub(super) marks: Vec<(Key, u32)>,
    /// Packet time of the first row in `buffer`, if rows are collected.
    pub(super) opened: Time,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) live: LiveState,
}

impl Stream {
    /// Creates the file before the first row, if logs are written to files, so that errors are reported early.
    pub(super) fn create(&mut self, options: &Options, error: &mut Option<io::Error>) {
        let Some(path) = self.file_path(options) else { return };
        match if options.stdout { stdout() } else { create(&path) } {
            Ok(file) => self.file = Some(file),
            Err(e) => note(error, &path, &e),
        }
    }

    /// Path of the file, if logs are written to files.
    fn file_path(&self, options: &Options) -> Option<PathBuf> {
        if options.stdout {
            return Some(PathBuf::from("standard output"));
        }
        let extension = options.extension.unwrap_or("log");
        options.dir.as_ref().map(|dir| dir.join(format!("{}.{extension}", self.path)))
    }

    /// Writes the buffer, up to a multiple of `unit` bytes.
    #[cold]
    pub(super) fn flush(&mut self, options: &Options, error: &mut Option<io::Error>, unit: usize) {
        let whole = self.buffer.len() / unit * unit;
        self.bytes += whole as u64;
        if let Some(file) = &mut self.file {
            let mut pieces = self.buffer.bytes()[..whole].chunks(PIECE);
            if let Err(e) = pieces.try_for_each(|piece| file.write_all(piece))
                && let Some(path) = self.file_path(options)
            {
                note(error, &path, &e);
            }
        }
        self.buffer.drop_first(whole);
    }
}

/// Standard output as a file.
fn stdout() -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        io::stdout().as_fd().try_clone_to_owned().map(File::from)
    }
    #[cfg(not(unix))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Creates a file. If an existing file has several hard links, the others keep its content.
fn create(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.nlink() > 1) {
            std::fs::remove_file(path)?;
        }
    }
    File::create(path)
}

/// Stores the first error, with the path of the file.
fn note(error: &mut Option<io::Error>, path: &Path, e: &io::Error) {
    error.get_or_insert_with(|| io::Error::new(e.kind(), format!("{}: {e}", path.display())));
}

/// The header lines of a TSV log.
pub(super) fn header(path: &str, fields: &[Field], now: Time) -> Vec<u8> {
    let mut out = Vec::new();
    let mut line = |name: &str, values: &mut dyn Iterator<Item = String>| {
        out.extend_from_slice(name.as_bytes());
        for v in values {
            out.push(b'\t');
            out.extend_from_slice(v.as_bytes());
        }
        out.push(b'\n');
    };
    let one = |v: &str| std::iter::once(v.to_owned());
    line("#separator \\x09", &mut std::iter::empty());
    line("#set_separator", &mut one(","));
    line("#empty_field", &mut one("(empty)"));
    line("#unset_field", &mut one("-"));
    line("#path", &mut one(path));
    line("#open", &mut one(&stamp(now)));
    line("#fields", &mut fields.iter().map(|f| f.name.to_owned()));
    line("#types", &mut fields.iter().map(|f| f.ty.to_string()));
    out
}

/// Formats a time as `2026-11-21-08-47-00`, in UTC.
pub(super) fn stamp(t: Time) -> String {
    let s = t.as_nanos().div_euclid(1_000_000_000);
    let (y, m, d) = civil(s.div_euclid(86_400));
    let s = s.rem_euclid(86_400);
    format!("{y:04}-{m:02}-{d:02}-{:02}-{:02}-{:02}", s / 3600, s / 60 % 60, s % 60)
}
