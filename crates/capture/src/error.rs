//! What can go wrong with a capture.

use std::io;
use std::path::PathBuf;

/// Why a capture cannot be read or written, or not to its end.
///
/// `packet` counts from 1 within the file; `offset` counts bytes from 0 in the capture as it is
/// after decompression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are of no capture format, nor of a compressed one.
    #[error("{}: not a capture: {found} where pcap or pcapng was expected", file.display())]
    NotACapture {
        /// The file as it was named.
        file: PathBuf,
        /// What the file looks like instead.
        found: &'static str,
    },
    /// A capture of a kind or version that gannet does not read or write.
    #[error("{}: {what}", file.display())]
    Unsupported {
        /// The file as it was named.
        file: PathBuf,
        /// What it is, and what to do about it.
        what: String,
    },
    /// A record that cannot be true. The packets before it were delivered.
    #[error(
        "{}: damaged at packet {packet}, byte {offset}: {what}; the packets before it were read",
        file.display()
    )]
    Damaged {
        /// The file as it was named.
        file: PathBuf,
        /// Number of the packet that could not be read.
        packet: u64,
        /// Where its record starts.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The capture ends within a record. The packets before it were delivered.
    #[error(
        "{}: cut short in packet {packet}, byte {offset}: {what}; the packets before it were read",
        file.display()
    )]
    Cut {
        /// The file as it was named.
        file: PathBuf,
        /// Number of the packet that could not be read.
        packet: u64,
        /// Where its record starts.
        offset: u64,
        /// What is missing.
        what: String,
    },
    /// The system could not open, read or write.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file as it was named.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// Whether the input is a capture that was read in part: everything before the damage was
    /// delivered.
    pub fn is_partial(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Cut { .. })
    }
}
