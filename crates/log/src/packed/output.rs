//! Outputs of packed rows.

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

/// Description of a stream for [`PackedWriter`]s.
#[derive(Clone, Copy, Debug)]
pub struct PackedStream<'a> {
    /// Name of the stream.
    pub path: &'static str,
    /// The columns that each row has, in order.
    pub fields: &'a [Field],
    /// Packet time at the first row.
    pub opened: Time,
    pub(crate) shape: Shape,
}

impl<'a> PackedStream<'a> {
    /// A stream that is not written by [`Logs`], such as rows read from a file.
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
/// The rows of one stream arrive in order, in pieces with arbitrary boundaries. The result must not depend on the order
/// in which pieces of different streams arrive, which varies with the number of threads.
pub trait PackedWriter: Send {
    /// Writes rows of a stream.
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()>;
    /// Completes all files; packet time is `now`.
    fn close(&mut self, now: Time) -> io::Result<()>;
    /// Writes buffered rows so that other processes can read them, as far as the format allows that.
    ///
    /// # Errors
    /// When they cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Completes all files; later rows go to new ones.
    ///
    /// # Errors
    /// When a file cannot be completed.
    fn rotate(&mut self, terminating: bool) -> io::Result<()> {
        let _ = terminating;
        Ok(())
    }
    /// Closes all files; later rows go to files opened by name again.
    fn reopen(&mut self) {}
}

/// A format of packed rows; creates a writer for each run of the analysis.
pub trait Output: Send + Sync + fmt::Debug {
    /// Creates a writer for a run with these options.
    fn open(&self, options: &Options) -> Box<dyn PackedWriter>;
}

/// Text files as one of several outputs.
#[derive(Clone, Copy, Debug)]
pub struct TextOutput {
    /// Format of the files.
    pub format: Format,
    /// Extension of the files; `log` by default.
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
