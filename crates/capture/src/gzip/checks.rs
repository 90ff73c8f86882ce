//! Checksums of members, reckoned while they are unpacked or by whoever takes what came out.

use std::fmt;
use std::io;

use flate2::Crc;

/// What a member's trailer says, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// Bytes that came out before it, since [`Checker`] began.
    pub(super) at: u64,
    /// Checksum (lower half) and length (upper half).
    pub(super) stored: u64,
    /// Bytes used up of all input.
    pub(super) used: u64,
}

/// Holds bytes against checksums in another thread than the one that unpacks them.
pub(crate) struct Checker {
    crc: Crc,
    seen: u64,
}

impl Checker {
    /// Goes on where a member has begun, with the checksum of what came out of it.
    pub(super) fn new(crc: Crc) -> Self {
        Self { crc, seen: 0 }
    }

    /// Takes all that was unpacked next, and the trailers that came since. How many of the bytes come
    /// before an error, and the error, if there is one.
    pub(crate) fn see(&mut self, mut bytes: &[u8], dues: &[Due]) -> Result<(), (usize, io::Error)> {
        let all = bytes.len();
        for due in dues {
            let before = usize::try_from(due.at.saturating_sub(self.seen)).unwrap_or(usize::MAX);
            let (of_it, rest) = bytes.split_at(before.min(bytes.len()));
            self.add(of_it);
            bytes = rest;
            check(&self.crc, due.stored, due.used).map_err(|error| (all - rest.len(), error))?;
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

/// Holds what was unpacked against checksum (lower half) and length (upper half).
pub(super) fn check(crc: &Crc, stored: u64, used: u64) -> io::Result<()> {
    let (sum, length) = (stored as u32, (stored >> 32) as u32);
    if sum != crc.sum() {
        let what =
            format!("what came out has the checksum {:08x} and should have {sum:08x}", crc.sum());
        return Err(damaged(&what, used));
    }
    if length != crc.amount() {
        let amount = crc.amount();
        let what = format!("{amount} bytes (modulo 4 GiB) came out and should be {length}");
        return Err(damaged(&what, used));
    }
    Ok(())
}

pub(super) fn damaged(what: &dyn fmt::Display, used: u64) -> io::Error {
    let what = format!("{what}, before byte {used} of the file");
    io::Error::new(io::ErrorKind::InvalidData, what)
}
