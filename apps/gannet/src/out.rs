//! Data on standard output.

use std::io;
use std::io::Write;

use crate::outcome::Outcome;

/// Whether an error only means that the reader of standard output closed it.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(closed))
}

/// Writes to standard output. A reader that closed it is no error.
pub(crate) fn write(data: &[u8]) -> anyhow::Result<Outcome> {
    let mut out = io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("standard output"))
        }
        _ => Ok(Outcome::Done),
    }
}
