//! Receivers of packed rows.

use std::fmt;
use std::io;

use gannet_base::Time;

use super::PackedRows;
use crate::collect::Fields;
use crate::collect::Shape;
use crate::logs::Format;
use crate::logs::Logs;
use crate::logs::Options;
use crate::row::Field;

/// A stream whose packed rows are written.
#[derive(Clone, Copy, Debug)]
pub struct PackedStream<'a> {
    /// Its name.
    pub path: &'static str,
    /// The columns that each row has, in order.
    pub fields: &'a [Field],
    /// Packet time at the first row.
    pub opened: Time,
    pub(crate) shape: Shape,
}

impl<'a> PackedStream<'a> {
    /// A stream that [`Logs`] did not write: rows that were read, or a stream that is declared at
    /// run time.
    pub fn new(
        path: &'static str,
        fields: &'static [Field],
        opened: Time,
    ) -> PackedStream<'static> {
        let shape = Shape { path, opt_in: false, fields: Fields::Listed(fields) };
        PackedStream { path, fields, opened, shape }
    }
}

/// Receives the packed rows of all streams.
///
/// The rows of one stream come in order, in pieces whose boundaries mean nothing. The result must
/// not depend on the order in which pieces of different streams arrive, which varies with the
/// number of threads.
pub trait PackedWriter: Send {
    /// Receives some rows of a stream.
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()>;
    /// Completes all files; packet time is `now`.
    fn close(&mut self, now: Time) -> io::Result<()>;
    /// Rows that it has go to where others can read them, as far as its format allows that.
    ///
    /// # Errors
    /// When they cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Completes all files: rows to come begin new ones.
    ///
    /// # Errors
    /// When a file cannot be completed.
    fn rotate(&mut self, terminating: bool) -> io::Result<()> {
        let _ = terminating;
        Ok(())
    }
    /// Opens files again by their names.
    fn reopen(&mut self) {}
}

/// Makes writers of packed rows, one for each run of the analysis.
pub trait Output: Send + Sync + fmt::Debug {
    /// A writer for a run with these options.
    fn open(&self, options: &Options) -> Box<dyn PackedWriter>;
}

/// Text files among several formats.
#[derive(Clone, Copy, Debug)]
pub struct TextOutput {
    /// Their format.
    pub format: Format,
    /// Their extension: `log` if there is none.
    pub extension: Option<&'static str>,
}

impl Output for TextOutput {
    fn open(&self, options: &Options) -> Box<dyn PackedWriter> {
        let Self { format, extension } = *self;
        let outputs = Vec::new();
        Box::new(TextWriter(Logs::new(Options { format, extension, outputs, ..options.clone() })))
    }
}

struct TextWriter(Logs);

impl PackedWriter for TextWriter {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        self.0.write_packed(stream.shape, stream.opened, rows);
        self.0.check()
    }

    fn close(&mut self, now: Time) -> io::Result<()> {
        self.0.set_time(now);
        self.0.close()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.write_out();
        self.0.check()
    }

    fn rotate(&mut self, terminating: bool) -> io::Result<()> {
        self.0.complete_all(terminating);
        self.0.check()
    }

    fn reopen(&mut self) {
        self.0.reopen();
    }
}
