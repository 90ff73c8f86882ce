//! Input readers: text, configuration, lines of files and commands, databases, binary files, a benchmark.
//!
//! An [`InputStream`] has a reader and applies common rules: an error disables the stream, and warnings about
//! one problem are not repeated. [`update`](InputStream::update) (`Input::force_update`) and
//! [`heartbeat`](InputStream::heartbeat), which is called about once a second, make it read; each returns
//! [`Message`]s in order. With [`Mode::Manual`], readers of commands block until the command ends: run such a
//! stream on a thread.
//!
//! ```
//! use gannet_script::support::field::{Column, Field, Kind};
//! use gannet_script::support::input::{AsciiOptions, InputStream, Message, Mode, Source};
//!
//! let path = std::env::temp_dir().join("gannet-input-example");
//! std::fs::write(&path, "#fields\tip\tn\n10.0.0.1\t7\n").unwrap();
//! let source = Source::new("s", path.to_str().unwrap(), Mode::Manual);
//! let columns = vec![Column::new("n", Kind::Count)];
//! let (_stream, messages) = InputStream::ascii(source, columns, AsciiOptions::default());
//! assert!(matches!(&messages[0], Message::Entry { fields, line: Some(_) } if *fields == [Field::Count(7)]));
//! assert_eq!(messages[1], Message::EndOfSend);
//! ```

mod ascii;
mod benchmark;
mod binary;
mod config;
mod raw;
#[cfg(feature = "sqlite")]
mod sqlite;
mod value;

use std::collections::HashMap;

use super::field::{Column, Field};

pub use ascii::AsciiOptions;
pub use benchmark::BenchmarkOptions;
pub use binary::BinaryOptions;
pub use config::{ConfigOptions, OptionType};
pub use raw::RawOptions;
pub use value::ValueFormat;

/// When a source is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On request: `Input::MANUAL`.
    Manual,
    /// When it has changed: `Input::REREAD`.
    Reread,
    /// Appended data is read continuously: `Input::STREAM`.
    Stream,
}

/// The source of a stream.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the stream.
    pub name: String,
    /// The source as given in the script.
    pub source: String,
    /// When to read again.
    pub mode: Mode,
    /// `$config` of the stream description.
    pub config: HashMap<String, String>,
}

impl Source {
    /// A source without options.
    #[must_use]
    pub fn new(name: &str, source: &str, mode: Mode) -> Self {
        Source { name: name.to_owned(), source: source.to_owned(), mode, config: HashMap::new() }
    }
}

/// A message of a reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A row of a source that is read only once.
    Put {
        /// The values of the columns.
        fields: Vec<Field<'static>>,
        /// Line number, if the source has lines.
        line: Option<u64>,
    },
    /// A row of the current contents. Earlier rows that are missing until [`EndOfSend`](Self::EndOfSend) were
    /// removed.
    Entry {
        /// The values of the columns.
        fields: Vec<Field<'static>>,
        /// Line number, if the source has lines.
        line: Option<u64>,
    },
    /// The end of the source is reached.
    EndOfSend,
    /// An event to raise, by name, with its arguments.
    Event(&'static str, Vec<Field<'static>>),
    /// A warning.
    Warning(ReaderMessage),
    /// An error. The stream is disabled.
    Error(ReaderMessage),
    /// The stream is disabled.
    Disabled,
}

/// Text and position of a warning or an error. Zeek reports both; events receive only the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderMessage {
    /// The text.
    pub text: String,
    /// The file and line that it refers to; empty for none.
    pub location: String,
}

impl std::fmt::Display for ReaderMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let between = if self.location.is_empty() { "" } else { ": " };
        write!(f, "{}{between}{}", self.location, self.text)
    }
}

/// Collects the messages of a reader.
#[derive(Debug, Default)]
struct MessageSink {
    messages: Vec<Message>,
    quiet: bool,
    suppressed: u64,
    disabled: bool,
    /// The current file and line number.
    position: Option<(String, u64)>,
}

impl MessageSink {
    fn disable(&mut self) {
        if !std::mem::replace(&mut self.disabled, true) {
            self.messages.push(Message::Disabled);
        }
    }

    fn message(&self, text: String) -> ReaderMessage {
        let location = match &self.position {
            None => String::new(),
            Some((file, 0)) => file.clone(),
            Some((file, line)) => format!("{file}, line {line}"),
        };
        ReaderMessage { text, location }
    }

    fn warning(&mut self, text: String) {
        if self.quiet {
            self.suppressed += 1;
        } else {
            self.messages.push(Message::Warning(self.message(text)));
        }
    }

    fn error(&mut self, text: impl Into<String>) {
        self.messages.push(Message::Error(self.message(text.into())));
        self.disable();
    }

    /// Reports an error or a warning; with `once`, warnings are then suppressed.
    fn problem(&mut self, is_error: bool, message: String, once: bool) {
        if is_error {
            self.error(message);
        } else {
            self.warning(message);
            self.quiet |= once;
        }
    }

    /// Ends the suppression of warnings.
    fn end_quiet(&mut self) {
        self.quiet = false;
        let suppressed = std::mem::take(&mut self.suppressed);
        if suppressed > 0 {
            let note = self.message(format!("Suppressed {suppressed} warning(s)"));
            self.messages.push(Message::Warning(note));
        }
    }

    fn row(&mut self, mode: Mode, fields: Vec<Field<'static>>, line: Option<u64>) {
        self.messages.push(match mode {
            Mode::Stream => Message::Put { fields, line },
            Mode::Manual | Mode::Reread => Message::Entry { fields, line },
        });
    }

    fn end_of_send(&mut self) {
        self.messages.push(Message::EndOfSend);
    }
}

/// A kind of reader.
trait Read: Send {
    /// Reads for the first time; `false` disables the stream.
    fn open(&mut self, out: &mut MessageSink) -> bool;
    /// Reads again; `false` disables the stream.
    fn update(&mut self, out: &mut MessageSink) -> bool;
    /// The action for a periodic check.
    fn heartbeat(&mut self, out: &mut MessageSink) -> PeriodicAction;
    /// Ends reading, when the stream is removed or the process ends.
    fn close(&mut self) {}
}

/// A periodic action of a reader.
enum PeriodicAction {
    Nothing,
    Update,
}

/// An open input stream.
pub struct InputStream {
    reader: Box<dyn Read>,
    out: MessageSink,
}

impl std::fmt::Debug for InputStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputStream").field("disabled", &self.out.disabled).finish_non_exhaustive()
    }
}

impl InputStream {
    fn new(reader: impl Read + 'static) -> (Self, Vec<Message>) {
        let mut stream = InputStream { reader: Box::new(reader), out: MessageSink::default() };
        if !stream.reader.open(&mut stream.out) {
            stream.out.error("Init failed");
            stream.out.error("terminating thread");
        }
        let messages = stream.take_messages();
        (stream, messages)
    }

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.out.messages)
    }

    /// Text in columns: `Input::READER_ASCII`.
    #[must_use]
    pub fn ascii(
        source: Source,
        columns: Vec<Column>,
        options: AsciiOptions,
    ) -> (Self, Vec<Message>) {
        Self::new(ascii::Ascii::new(source, columns, options))
    }

    /// Options and their values: `Input::READER_CONFIG`.
    #[must_use]
    pub fn config(source: Source, options: ConfigOptions) -> (Self, Vec<Message>) {
        Self::new(config::Config::new(source, options))
    }

    /// Lines of a file or of a command's output: `Input::READER_RAW`.
    #[must_use]
    pub fn raw(source: Source, columns: Vec<Column>, options: RawOptions) -> (Self, Vec<Message>) {
        Self::new(raw::Raw::new(source, columns, options))
    }

    /// Chunks of a file: `Input::READER_BINARY`.
    #[must_use]
    pub fn binary(
        source: Source,
        columns: Vec<Column>,
        options: &BinaryOptions,
    ) -> (Self, Vec<Message>) {
        Self::new(binary::Binary::new(source, columns, options))
    }

    /// Random rows: `Input::READER_BENCHMARK`.
    #[must_use]
    pub fn benchmark(
        source: Source,
        columns: Vec<Column>,
        options: BenchmarkOptions,
    ) -> (Self, Vec<Message>) {
        Self::new(benchmark::Benchmark::new(source, columns, options))
    }

    /// The result of a query: `Input::READER_SQLITE`.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn sqlite(
        source: Source,
        columns: Vec<Column>,
        format: ValueFormat,
    ) -> (Self, Vec<Message>) {
        Self::new(sqlite::Sqlite::new(source, columns, format))
    }

    /// Whether reading has ended.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.out.disabled
    }

    /// Reads again.
    pub fn update(&mut self) -> Vec<Message> {
        if !self.out.disabled && !self.reader.update(&mut self.out) {
            self.out.disable();
        }
        self.take_messages()
    }

    /// Checks for new data if the mode requires it.
    pub fn heartbeat(&mut self) -> Vec<Message> {
        if !self.out.disabled {
            match self.reader.heartbeat(&mut self.out) {
                PeriodicAction::Nothing => {}
                PeriodicAction::Update => {
                    if !self.out.disabled && !self.reader.update(&mut self.out) {
                        self.out.disable();
                    }
                }
            }
        }
        self.take_messages()
    }
}

impl Drop for InputStream {
    fn drop(&mut self) {
        self.reader.close();
    }
}

/// A path under `prefix`, unless it is absolute.
fn prefixed(source: &str, prefix: &str) -> String {
    if source.starts_with('/') || prefix.is_empty() {
        return source.to_owned();
    }
    match prefix.trim_end_matches('/') {
        "" => format!("//{source}"),
        prefix => format!("{prefix}/{source}"),
    }
}

/// Identity of a file version: inode, modification time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    modified: i64,
}

impl FileVersion {
    fn from_path(path: &str) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let meta = std::fs::metadata(path).ok()?;
        Some(FileVersion { inode: meta.ino(), modified: meta.mtime() })
    }
}

#[cfg(test)]
mod tests;
