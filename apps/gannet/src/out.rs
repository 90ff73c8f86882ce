//! Data on standard output.

use std::io;
use std::io::Write;

use crate::outcome::Outcome;

/// Writes to standard output. That a reader has seen enough and closed its end is no failure.
pub(crate) fn write(data: &[u8]) -> anyhow::Result<Outcome> {
    let mut out = io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("standard output"))
        }
        _ => Ok(Outcome::Done),
    }
}
