//! Standard input that a signal can end.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;

use gannet_capture::Error;
use gannet_capture::Reader;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;

use crate::stop::Stop;

/// How errors name it.
const NAME: &str = "standard input";

/// Nobody waits longer than this for a stop, whenever the signal came.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A capture on standard input. A signal counts as its end: a live capture in a pipe may be silent
/// for hours, and reading alone would wait for it.
pub(crate) fn open(stop: &Stop) -> Result<Reader, Error> {
    let input = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|source| Error::Io { file: NAME.into(), source })?;
    Reader::from_read(Box::new(Stdin { input: input.into(), stop: stop.clone() }), NAME)
}

struct Stdin {
    input: File,
    stop: Stop,
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.asked().is_some() {
                return Ok(0);
            }
            let ready = {
                let mut input = [PollFd::new(&self.input, PollFlags::IN)];
                poll(&mut input, Some(&PATIENCE))
            };
            match ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.input.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
