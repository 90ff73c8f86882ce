//! Reader of records (by default lines) of a file or of a command's output.

use std::fs::File;
use std::io::{self, Cursor, Read as _, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Message, MessageSink, Mode, PeriodicAction, Read, Source};
use crate::support::field::{Column, Field, Kind};
use crate::support::logs::reason;
use crate::support::text::convert::scan;
use crate::support::text::find;

/// Options: the constants of the module `InputRaw`.
#[derive(Clone, Debug)]
pub struct RawOptions {
    /// Separator of records.
    pub record_separator: Vec<u8>,
}

impl Default for RawOptions {
    fn default() -> Self {
        RawOptions { record_separator: b"\n".to_vec() }
    }
}

/// Bytes per read.
const READ_SIZE: usize = 4096;

/// Maximum time to wait for the exit of a command that has closed its output, with [`Mode::Manual`].
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

enum Pipe {
    File(File),
    Out(ChildStdout),
    Err(ChildStderr),
    /// Data that a thread reads to the end.
    Thread(BackgroundReader),
}

impl Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Pipe::File(file) => file.read(buffer),
            Pipe::Out(pipe) => pipe.read(buffer),
            Pipe::Err(pipe) => pipe.read(buffer),
            Pipe::Thread(collected) => collected.read(buffer),
        }
    }
}

/// Standard error of a command whose standard output is read to its end first. A thread reads it concurrently,
/// because the command blocks when a pipe is full.
struct BackgroundReader {
    reader: Option<JoinHandle<io::Result<Vec<u8>>>>,
    read: Cursor<Vec<u8>>,
}

impl BackgroundReader {
    fn spawn(mut pipe: ChildStderr) -> Self {
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            pipe.read_to_end(&mut all).map(|_| all)
        });
        Self { reader: Some(reader), read: Cursor::default() }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(reader) = self.reader.take() {
            let all = reader.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            self.read = Cursor::new(all?);
        }
        self.read.read(buffer)
    }
}

/// Splits a file or pipe into records.
struct Records {
    pipe: Pipe,
    buffer: Vec<u8>,
    /// Length of the buffer's prefix that contains no separator.
    searched: usize,
}

/// The next record, or the reason why there is none.
enum Record {
    Some(Vec<u8>),
    /// The end of the input, or no data yet.
    None,
    Failed,
}

impl Records {
    fn new(pipe: Pipe) -> Self {
        Records { pipe, buffer: Vec::new(), searched: 0 }
    }

    fn next(&mut self, separator: &[u8], out: &mut MessageSink) -> Record {
        loop {
            let from = self.searched;
            if !separator.is_empty()
                && let Some(at) = self.buffer.get(from..).and_then(|rest| find(rest, separator))
            {
                let rest = self.buffer.split_off(from + at + separator.len());
                let mut record = std::mem::replace(&mut self.buffer, rest);
                record.truncate(from + at);
                self.searched = 0;
                return Record::Some(record);
            }
            self.searched = (self.buffer.len() + 1).saturating_sub(separator.len().max(1));
            let len = self.buffer.len();
            self.buffer.resize(len + READ_SIZE, 0);
            let read = self.pipe.read(&mut self.buffer[len..]);
            self.buffer.truncate(len + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(0) if self.buffer.is_empty() => return Record::None,
                Ok(0) => {
                    // The text after the last separator is also a record.
                    self.searched = 0;
                    return Record::Some(std::mem::take(&mut self.buffer));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Record::None,
                Err(error) => {
                    let code = error.raw_os_error().unwrap_or(0);
                    out.error(format!("Reader encountered unexpected error code {code}"));
                    return Record::Failed;
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    modified: i64,
    len: u64,
}

impl FileState {
    fn from_path(path: &str) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let meta = std::fs::metadata(path).ok()?;
        Some(FileState {
            device: meta.dev(),
            inode: meta.ino(),
            modified: meta.mtime(),
            len: meta.len(),
        })
    }
}

pub(super) struct Raw {
    source: Source,
    columns: Vec<Column>,
    separator: Vec<u8>,
    /// The path, or the command.
    path: String,
    executes: bool,
    reads_stderr: bool,
    kills: bool,
    offset: i64,
    /// Input for the command's standard input.
    input: Vec<u8>,
    input_offset: usize,
    first: bool,
    state: FileState,
    records: Option<Records>,
    errors: Option<Records>,
    stdin: Option<ChildStdin>,
    child: Option<Child>,
}

impl Raw {
    pub(super) fn new(source: Source, columns: Vec<Column>, options: RawOptions) -> Self {
        let command = source.source.strip_suffix('|');
        let executes = command.is_some();
        let path = command.unwrap_or(&source.source).to_owned();
        let input =
            source.config.get("stdin").map(|text| text.clone().into_bytes()).unwrap_or_default();
        let reads_stderr = executes && source.config.contains_key("read_stderr");
        let kills = executes && source.config.contains_key("force_kill");
        Raw {
            source,
            columns,
            separator: options.record_separator,
            path,
            executes,
            reads_stderr,
            kills,
            offset: 0,
            input,
            input_offset: 0,
            first: true,
            state: FileState::default(),
            records: None,
            errors: None,
            stdin: None,
            child: None,
        }
    }

    fn is_stream(&self) -> bool {
        self.source.mode == Mode::Stream
    }

    fn open_input(&mut self, out: &mut MessageSink) -> bool {
        if self.executes {
            return self.execute(out);
        }
        let Ok(mut file) = File::open(&self.path) else {
            // A stream waits for its file to appear.
            if !self.is_stream() {
                out.error(format!("Init: cannot open {}", self.path));
            }
            return self.is_stream();
        };
        if self.source.mode != Mode::Manual {
            let Some(state) = FileState::from_path(&self.path) else {
                out.error(format!("Could not get stat for {}", self.path));
                return false;
            };
            self.state = state;
        }
        if self.offset != 0 {
            let to = match u64::try_from(self.offset) {
                Ok(offset) => SeekFrom::Start(offset),
                // -1 is the end of the file.
                Err(_) => SeekFrom::End(self.offset.saturating_add(1)),
            };
            if let Err(error) = file.seek(to) {
                out.error(format!("Seek failed in init: {}", reason(&error)));
            }
        }
        self.records = Some(Records::new(Pipe::File(file)));
        true
    }

    fn execute(&mut self, out: &mut MessageSink) -> bool {
        let mut command = Command::new("/bin/sh");
        command.arg0("sh").arg("-c").arg(&self.path).process_group(0).stdout(Stdio::piped());
        command.stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stderr(if self.reads_stderr { Stdio::piped() } else { Stdio::null() });
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(0);
                out.error(format!("Could not spawn child process: {code}"));
                return false;
            }
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        self.stdin = child.stdin.take();
        let mut waits = Ok(());
        if self.is_stream()
            && let Some(pipe) = &stdout
        {
            waits = waits.and(ioctl_fionbio(pipe.as_fd(), true));
        }
        if self.is_stream()
            && let Some(pipe) = &stderr
        {
            waits = waits.and(ioctl_fionbio(pipe.as_fd(), true));
        }
        if let Some(pipe) = &self.stdin {
            waits = waits.and(ioctl_fionbio(pipe.as_fd(), true));
        }
        self.child = Some(child);
        if let Err(error) = waits {
            out.error(format!("failed to set fd flags: {error}"));
            return false;
        }
        self.records = stdout.map(|pipe| Records::new(Pipe::Out(pipe)));
        let is_stream = self.is_stream();
        self.errors = stderr.map(|pipe| {
            Records::new(if is_stream {
                Pipe::Err(pipe)
            } else {
                Pipe::Thread(BackgroundReader::spawn(pipe))
            })
        });
        true
    }

    fn write_input(&mut self, out: &mut MessageSink) {
        let Some(stdin) = &mut self.stdin else { return };
        // Writes as much as the command accepts without blocking, because it may be writing, too.
        while let Some(rest) = self.input.get(self.input_offset..).filter(|rest| !rest.is_empty()) {
            match stdin.write(rest) {
                Ok(count) => self.input_offset += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    let code = error.raw_os_error().unwrap_or(0);
                    out.error(format!(
                        "Writing to child process stdin failed: {code}. Stopping writing at position {}",
                        self.input_offset
                    ));
                    self.input_offset = self.input.len();
                }
            }
        }
        if self.input_offset >= self.input.len() {
            self.stdin = None;
        } else if self.source.mode == Mode::Manual {
            out.error(
                "Could not write whole string to stdin of child process in one go. Please use STREAM mode to pass more \
                 data to child.",
            );
            self.input_offset = self.input.len();
            self.stdin = None;
        }
    }

    /// Prepares to read again; `Ok(false)` if there is nothing to read, `Err` after an error that ends reading.
    fn reopen(&mut self, out: &mut MessageSink) -> Result<bool, ()> {
        match self.source.mode {
            Mode::Stream => {
                if !self.executes
                    && let Some(state) = FileState::from_path(&self.path)
                    && (self.records.is_none()
                        || (state.inode, state.device) != (self.state.inode, self.state.device))
                    && let Ok(file) = File::open(&self.path)
                {
                    self.state = state;
                    self.offset = 0;
                    self.records = Some(Records::new(Pipe::File(file)));
                }
                return Ok(true);
            }
            Mode::Reread => {
                let Some(state) = FileState::from_path(&self.path) else {
                    out.error(format!("Could not get stat for {}", self.path));
                    return Err(());
                };
                if state == self.state {
                    return Ok(false);
                }
                self.state = state;
            }
            Mode::Manual => {}
        }
        (self.records, self.errors, self.stdin) = (None, None, None);
        if self.open_input(out) { Ok(true) } else { Err(()) }
    }

    /// Reads available data of standard output or standard error; returns whether reading may
    /// continue.
    fn drain(&mut self, of_errors: bool, out: &mut MessageSink) -> bool {
        loop {
            if !of_errors && self.input_offset < self.input.len() {
                self.write_input(out);
            }
            let records = if of_errors { &mut self.errors } else { &mut self.records };
            let Some(records) = records else { return true };
            match records.next(&self.separator, out) {
                Record::Some(record) => {
                    let mut fields = vec![Field::String(record.into())];
                    if self.reads_stderr {
                        fields.push(Field::Bool(of_errors));
                    }
                    out.messages.push(Message::Put { fields, line: None });
                }
                Record::None => return true,
                Record::Failed => return false,
            }
        }
    }

    /// Whether the command has exited; reports its exit.
    fn check_exit(&mut self, out: &mut MessageSink) -> bool {
        let Some(child) = &mut self.child else { return false };
        let until = Instant::now() + EXIT_TIMEOUT;
        let status = loop {
            match child.try_wait() {
                Ok(None) if self.source.mode == Mode::Manual && Instant::now() < until => {
                    sleep(Duration::from_millis(1));
                }
                Ok(status) => break status,
                Err(_) => break None,
            }
        };
        let Some(status) = status else { return false };
        self.child = None;
        let (code, by_signal) = match (status.code(), status.signal()) {
            (Some(code), _) => (code, false),
            (None, signal) => (signal.unwrap_or(0), true),
        };
        if by_signal {
            out.error(format!("Child process exited due to signal {code}"));
        } else if code != 0 {
            out.error(format!("Child process exited with non-zero return code {code}"));
        }
        if self.is_stream() {
            out.end_of_send();
        }
        let string = |text: &str| Field::String(text.to_owned().into_bytes().into());
        let arguments = vec![
            string(&self.source.name),
            string(&self.source.source),
            Field::Count(u64::try_from(code).unwrap_or(0)),
            Field::Bool(by_signal),
        ];
        out.messages.push(Message::Event("InputRaw::process_finished", arguments));
        true
    }
}

impl Read for Raw {
    fn open(&mut self, out: &mut MessageSink) -> bool {
        if self.source.source.is_empty() {
            out.error("No source path provided");
            return false;
        }
        if let Some(offset) = self.source.config.get("offset") {
            if self.executes || self.source.mode == Mode::Reread {
                out.error(
                    "Offset only is supported for MODE_STREAM and MODE_MANUAL; it is also not supported when executing a \
                     command",
                );
                return false;
            }
            let (negative, value, _) = scan(offset.as_bytes(), 10).unwrap_or((false, Some(0), b""));
            let value = value.and_then(|value| i64::try_from(value).ok()).unwrap_or(i64::MAX);
            self.offset = if negative { -value } else { value };
        }
        let wanted = 1 + usize::from(self.reads_stderr);
        if self.columns.len() != wanted {
            out.error(format!(
                "Filter for raw reader contains wrong number of fields -- got {}, expected {wanted}. Filters for the raw \
                 reader contain one string field when used in normal mode and one string and one bool fields when using \
                 execute mode with stderr capturing. Filter ignored.",
                self.columns.len()
            ));
            return false;
        }
        if self.columns.first().is_some_and(|column| column.kind != Kind::String) {
            out.error("First field for raw reader always has to be of type string.");
            return false;
        }
        if self.columns.get(1).is_some_and(|column| column.kind != Kind::Bool) {
            out.error("Second field for raw reader always has to be of type bool.");
            return false;
        }
        if self.executes && self.source.mode == Mode::Reread {
            out.error("Rereading only supported for files, not for executables.");
            return false;
        }
        if !self.open_input(out) {
            return false;
        }
        self.update(out);
        true
    }

    fn update(&mut self, out: &mut MessageSink) -> bool {
        if !std::mem::replace(&mut self.first, false) {
            match self.reopen(out) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(()) => return false,
            }
        }
        if !self.drain(false, out) || (self.reads_stderr && !self.drain(true, out)) {
            return false;
        }
        if !self.is_stream() {
            out.end_of_send();
        }
        !self.check_exit(out)
    }

    fn heartbeat(&mut self, _: &mut MessageSink) -> PeriodicAction {
        if self.source.mode == Mode::Manual {
            PeriodicAction::Nothing
        } else {
            PeriodicAction::Update
        }
    }

    fn close(&mut self) {
        (self.records, self.errors, self.stdin) = (None, None, None);
        let Some(mut child) = self.child.take() else { return };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::TERM);
            if self.kills {
                sleep(Duration::from_micros(200));
                if !matches!(child.try_wait(), Ok(Some(_))) {
                    let _ = kill_process_group(group, Signal::KILL);
                    let _ = child.wait();
                }
            }
        }
    }
}
