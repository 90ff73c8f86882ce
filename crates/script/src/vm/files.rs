//! Files that scripts write to, and standard output.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::rc::{Rc, Weak};

use crate::value::FileValue;
use crate::value::object::FileSink;

/// Where scripts write to.
pub(crate) struct Output {
    stdout: Box<dyn std::io::Write>,
    buffer: Vec<u8>,
    files: Vec<Weak<FileValue>>,
    /// Whether anything was written or opened.
    pub(crate) used: bool,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            stdout: Box::new(std::io::stdout()),
            buffer: Vec::new(),
            files: Vec::new(),
            used: false,
        }
    }
}

impl Output {
    /// Lets `print` write to `sink`.
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
        // A reader that went away is no error of the script.
        drop(self.stdout.write_all(&self.buffer).and_then(|()| self.stdout.flush()));
        self.buffer.clear();
    }

    /// Writes out everything.
    pub(crate) fn flush_all(&mut self) -> bool {
        self.flush();
        let mut good = true;
        for file in self.files.iter().filter_map(Weak::upgrade) {
            if let Some(FileSink::File(sink)) = &mut *file.sink.borrow_mut() {
                good &= sink.flush().is_ok();
            }
        }
        good
    }

    /// Writes to a file.
    pub(crate) fn write_file(&mut self, file: &FileValue, bytes: &[u8]) {
        drop(self.try_write_file(file, bytes));
    }

    /// The same.
    ///
    /// # Errors
    /// Whatever the system says, of these bytes or of earlier ones that were buffered.
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

    /// Opens a file: `/dev/stdout` and `/dev/stderr` are the process's own.
    ///
    /// # Errors
    /// Whatever the system says.
    pub(crate) fn open(
        &mut self,
        name: &str,
        append: bool,
        now: f64,
    ) -> std::io::Result<Rc<FileValue>> {
        self.used = true;
        let sink = match name {
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
            sink: std::cell::RefCell::new(Some(sink)),
            raw: std::cell::Cell::new(false),
            unbuffered: std::cell::Cell::new(false),
            opened: now,
        });
        self.files.retain(|file| file.strong_count() > 0);
        self.files.push(Rc::downgrade(&file));
        Ok(file)
    }
}

impl FileValue {
    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.sink.borrow().is_some()
    }

    /// Says whether what is written stays in memory until there is more of it; returns whether the file is open.
    pub fn set_buffered(&self, buffered: bool) -> bool {
        self.unbuffered.set(!buffered);
        match &mut *self.sink.borrow_mut() {
            Some(FileSink::File(sink)) => sink.flush().is_ok(),
            other => other.is_some(),
        }
    }

    /// Closes it; returns whether it was open and everything could be written.
    pub fn close(&self) -> bool {
        match self.sink.borrow_mut().take() {
            Some(FileSink::File(mut sink)) => sink.flush().is_ok(),
            Some(_) => true,
            None => false,
        }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> f64 {
        if let Some(FileSink::File(sink)) = &mut *self.sink.borrow_mut() {
            drop(sink.flush());
        }
        std::fs::metadata(&self.name).map_or(0.0, |data| data.len() as f64)
    }
}
