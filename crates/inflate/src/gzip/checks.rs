//! Checksums of members, computed while decompressing or by the receiver of the data.

use std::fmt;
use std::io;

use flate2::Crc;

/// The trailer of a member, to be verified, and its position.
#[derive(Clone, Copy, Debug)]
pub struct Trailer {
    /// Bytes decompressed before it since the [`Checker`] was created.
    pub(super) at: u64,
    /// Checksum (lower half) and length (upper half).
    pub(super) stored: u64,
    /// Bytes of input consumed.
    pub(super) used: u64,
}

/// Verifies checksums in a thread other than the one that decompresses.
#[derive(Debug)]
pub struct Checker {
    crc: Crc,
    seen: u64,
}

impl Checker {
    /// Continues within a member, with the checksum of its data so far.
    pub(super) fn new(crc: Crc) -> Self {
        Self { crc, seen: 0 }
    }

    /// Adds the next decompressed bytes and verifies the trailers within them.
    ///
    /// # Errors
    /// A checksum or a length that differs, with the number of bytes before it.
    pub fn update(
        &mut self,
        mut bytes: &[u8],
        trailers: &[Trailer],
    ) -> Result<(), (usize, io::Error)> {
        let all = bytes.len();
        for trailer in trailers {
            let before =
                usize::try_from(trailer.at.saturating_sub(self.seen)).unwrap_or(usize::MAX);
            let (of_it, rest) = bytes.split_at(before.min(bytes.len()));
            self.add(of_it);
            bytes = rest;
            check(&self.crc, trailer.stored, trailer.used)
                .map_err(|error| (all - rest.len(), error))?;
            self.crc.reset();
        }
        self.add(bytes);
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.seen += bytes.len() as u64;
    }
}

/// Compares decompressed data with checksum (lower half) and length (upper half).
pub(super) fn check(crc: &Crc, stored: u64, used: u64) -> io::Result<()> {
    let (sum, length) = (stored as u32, (stored >> 32) as u32);
    if sum != crc.sum() {
        let what = format!(
            "the data have the checksum {:08x}, but the trailer states {sum:08x}",
            crc.sum()
        );
        return Err(damaged_error(&what, used));
    }
    if length != crc.amount() {
        let amount = crc.amount();
        let what =
            format!("the data have {amount} bytes (modulo 4 GiB), but the trailer states {length}");
        return Err(damaged_error(&what, used));
    }
    Ok(())
}

pub(super) fn damaged_error(what: &dyn fmt::Display, used: u64) -> io::Error {
    let what = format!("{what}, before byte {used} of the file");
    io::Error::new(io::ErrorKind::InvalidData, what)
}
