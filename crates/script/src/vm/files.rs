//! Files that scripts write, and standard output.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::rc::{Rc, Weak};

use crate::value::FileValue;
use crate::value::object::FileSink;

/// The outputs of scripts.
pub(crate) struct Output {
    stdout: Box<dyn std::io::Write>,
    buffer: Vec<u8>,
    files: Vec<Weak<FileValue>>,
    failures: Failures,
    /// Whether rows of a text log were lost; the log's writer reports that.
    pub(crate) rows_lost: bool,
    /// Whether anything was written or opened.
    pub(crate) used: bool,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            stdout: Box::new(std::io::stdout()),
            buffer: Vec::new(),
            files: Vec::new(),
            failures: Failures::default(),
            rows_lost: false,
            used: false,
        }
    }
}

impl Output {
    /// Redirects `print` to `sink`.
    pub(crate) fn redirect(&mut self, sink: Box<dyn std::io::Write>) {
        self.stdout = sink;
    }

    /// Writes to standard output.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.used = true;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > 1 << 14 {
            self.flush();
        }
    }

    /// Flushes standard output.
    pub(crate) fn flush(&mut self) {
        let written = self.stdout.write_all(&self.buffer).and_then(|()| self.stdout.flush());
        self.buffer.clear();
        if let Err(error) = written {
            self.failures.add("standard output", error);
        }
    }

    /// Records a write error of a file.
    pub(crate) fn add_failure(&self, name: &str, error: std::io::Error) {
        self.failures.add(name, error);
    }

    /// Takes the recorded write errors, by file.
    pub(crate) fn take_failures(&self) -> Vec<(String, std::io::Error)> {
        self.failures.0.take()
    }

    /// Flushes standard output and all files. Returns false if a file could not be written.
    pub(crate) fn flush_all(&mut self) -> bool {
        self.flush();
        let mut is_flushed = true;
        for file in self.files.iter().filter_map(Weak::upgrade) {
            is_flushed &= file.flush();
        }
        is_flushed
    }

    /// Writes to a file, and records an error.
    pub(crate) fn write_file(&mut self, file: &FileValue, bytes: &[u8]) {
        if let Err(error) = self.try_write_file(file, bytes) {
            self.failures.add(&file.name, error);
        }
    }

    /// Like [`write_file`](Self::write_file), but returns the error.
    ///
    /// # Errors
    /// Returns the system's error in writing these bytes or earlier buffered ones.
    pub(crate) fn try_write_file(&mut self, file: &FileValue, bytes: &[u8]) -> std::io::Result<()> {
        self.used = true;
        match &mut *file.sink.borrow_mut() {
            Some(FileSink::Stdout) => self.write(bytes),
            Some(FileSink::Stderr) => return std::io::stderr().write_all(bytes),
            Some(FileSink::File(sink)) => {
                sink.write_all(bytes)?;
                if file.unbuffered.get() {
                    return sink.flush();
                }
            }
            None => (),
        }
        Ok(())
    }

    /// The process's own standard error, with the name that Zeek gives it.
    pub(crate) fn standard_error(&self, now: f64) -> Rc<FileValue> {
        let file = FileValue::closed("-", now);
        *file.sink.borrow_mut() = Some(FileSink::Stderr);
        file
    }

    /// Opens a file: `/dev/stdout` and `/dev/stderr` are the process's own.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(crate) fn open(
        &mut self,
        name: &str,
        append: bool,
        now: f64,
    ) -> std::io::Result<Rc<FileValue>> {
        self.used = true;
        let sink = match name {
            "-" if !append => FileSink::Stdout,
            "/dev/stdout" => FileSink::Stdout,
            "/dev/stderr" => FileSink::Stderr,
            _ => {
                let mut options = File::options();
                options.create(true).write(true).append(append).truncate(!append);
                FileSink::File(BufWriter::new(options.open(name)?))
            }
        };
        let file = Rc::new(FileValue {
            name: name.to_owned(),
            sink: RefCell::new(Some(sink)),
            raw: std::cell::Cell::new(false),
            unbuffered: std::cell::Cell::new(false),
            opened: now,
            failures: self.failures.clone(),
        });
        self.files.retain(|file| file.strong_count() > 0);
        self.files.push(Rc::downgrade(&file));
        Ok(file)
    }
}

/// The first write error of each file, by file name.
#[derive(Clone, Default)]
pub(crate) struct Failures(Rc<RefCell<Vec<(String, std::io::Error)>>>);

impl Failures {
    fn add(&self, name: &str, error: std::io::Error) {
        let mut all = self.0.borrow_mut();
        // A reader that closed the pipe is no error of the script.
        let is_closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        if !is_closed && !all.iter().any(|(known, _)| known == name) {
            all.push((name.to_owned(), error));
        }
    }
}

// Scripts seldom close files: most are closed when the last reference is dropped.
impl Drop for FileValue {
    fn drop(&mut self) {
        self.close();
    }
}

impl FileValue {
    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.sink.borrow().is_some()
    }

    /// Sets whether writes are buffered. Returns whether the file is open and was flushed.
    pub fn set_buffered(&self, buffered: bool) -> bool {
        self.unbuffered.set(!buffered);
        match &mut *self.sink.borrow_mut() {
            Some(FileSink::File(sink)) => self.is_written(sink.flush()),
            other => other.is_some(),
        }
    }

    /// Flushes the buffer. Returns false if that failed.
    fn flush(&self) -> bool {
        match &mut *self.sink.borrow_mut() {
            Some(FileSink::File(sink)) => self.is_written(sink.flush()),
            _ => true,
        }
    }

    fn is_written(&self, result: std::io::Result<()>) -> bool {
        result.map_err(|error| self.failures.add(&self.name, error)).is_ok()
    }

    /// Closes the file. Returns whether it was open and its buffer could be written.
    pub fn close(&self) -> bool {
        match self.sink.borrow_mut().take() {
            Some(FileSink::File(mut sink)) => self.is_written(sink.flush()),
            Some(_) => true,
            None => false,
        }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> f64 {
        if let Some(FileSink::File(sink)) = &mut *self.sink.borrow_mut() {
            self.is_written(sink.flush());
        }
        std::fs::metadata(&self.name).map_or(0.0, |data| data.len() as f64)
    }
}
