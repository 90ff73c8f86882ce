//! Standard input as a capture that a signal can end.

use std::fs::File;
use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use gannet_capture::Error;
use gannet_capture::Options;
use gannet_capture::Reader;
use gannet_capture::Stream;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;

use crate::stop::Stop;
use crate::terminal::Terminal;

/// Name of the input in errors.
const NAME: &str = "standard input";

/// Interval at which a blocked read checks for a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Opens captures as one stream. A signal ends the stream if its only input is standard input.
pub(crate) fn stream(files: &[PathBuf], options: Options, stop: &Stop) -> Result<Stream, Error> {
    if is_stdin(files) { open(stop).map(Stream::from_reader) } else { Stream::open(files, options) }
}

fn is_stdin(files: &[PathBuf]) -> bool {
    matches!(files, [file] if file == Path::new("-"))
}

/// Opens the capture on standard input. A signal counts as its end: a live capture in a pipe may be silent
/// for hours, and a plain read would block as long.
pub(crate) fn open(stop: &Stop) -> Result<Reader, Error> {
    let input = input().map_err(|source| Error::Io { file: NAME.into(), source })?;
    if !is_file(&input) {
        stop.drain_first();
    }
    Reader::from_read(Box::new(Stdin { input, stop: stop.clone(), is_noted: false }), NAME)
}

fn input() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

fn is_file(input: &File) -> bool {
    input.metadata().is_ok_and(|of| of.is_file())
}

struct Stdin {
    input: File,
    stop: Stop,
    /// Whether the note that the rest of the pipe is read was printed.
    is_noted: bool,
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.requested().is_some() {
                return Ok(0);
            }
            if is_ready(&self.input, POLL_INTERVAL)? {
                return self.input.read(buffer);
            }
            if self.stop.drains() && !self.is_noted && io::stderr().is_terminal() {
                self.is_noted = true;
                Terminal::new(false).note(&"reading the pipe to its end; press Ctrl-C to stop now");
            }
        }
    }
}

/// Whether data or the end of the input is available within this time.
fn is_ready(input: &File, within: Duration) -> io::Result<bool> {
    let mut input = [PollFd::new(input, PollFlags::IN)];
    let within = Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: within.subsec_nanos().into(),
    };
    match poll(&mut input, Some(&within)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Interval at which rows are written to their files while a pipe is read.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Schedules writes while standard input is followed: complete rows are written at least every second.
pub(crate) struct FlushSchedule {
    input: File,
    flushed: Instant,
}

impl FlushSchedule {
    /// A schedule if the only input is standard input and that is not a regular file.
    pub(crate) fn for_inputs(files: &[PathBuf]) -> Option<Self> {
        let input = input().ok().filter(|input| is_stdin(files) && !is_file(input))?;
        Some(Self { input, flushed: Instant::now() })
    }

    /// Whether rows are to be written now. While the pipe is `empty`, waits for data until they are.
    pub(crate) fn is_due(&mut self, empty: bool, stop: &Stop) -> bool {
        loop {
            let left = FLUSH_INTERVAL.saturating_sub(self.flushed.elapsed());
            if left.is_zero() {
                self.flushed = Instant::now();
                return true;
            }
            let has_more = || is_ready(&self.input, left.min(POLL_INTERVAL)).unwrap_or(true);
            if !empty || stop.requested().is_some() || has_more() {
                return false;
            }
        }
    }
}
