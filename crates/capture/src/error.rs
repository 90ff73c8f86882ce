//! Errors of captures.

use std::io;
use std::path::PathBuf;

/// Why a capture cannot be read or written to its end.
///
/// `packet` counts from 1 within the file; `offset` counts bytes from 0 in the decompressed
/// capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes match no capture format and no compressed format.
    #[error("{}: not a capture: {found} where pcap or pcapng was expected", file.display())]
    NotACapture {
        /// The path as given.
        file: PathBuf,
        /// A description of what the file is instead.
        found: &'static str,
    },
    /// A capture of a kind or version that is not supported.
    #[error("{}: {what}", file.display())]
    Unsupported {
        /// The path as given.
        file: PathBuf,
        /// The kind, and advice.
        what: String,
    },
    /// An invalid record. The packets before it were delivered.
    #[error(
        "{}: damaged at packet {packet}, byte {offset}: {what}; {}",
        file.display(), before(*packet)
    )]
    Damaged {
        /// The path as given.
        file: PathBuf,
        /// Number of the packet that could not be read.
        packet: u64,
        /// Offset of the start of its record.
        offset: u64,
        /// What is invalid in it.
        what: String,
    },
    /// The capture ends within a record. The packets before it were delivered.
    #[error(
        "{}: cut short in packet {packet}, byte {offset}: {what}; {}",
        file.display(), before(*packet)
    )]
    Cut {
        /// The path as given.
        file: PathBuf,
        /// Number of the packet that could not be read.
        packet: u64,
        /// Offset of the start of its record.
        offset: u64,
        /// What is missing.
        what: String,
    },
    /// The system could not open, read or write a file.
    #[error("{}: {source}", file.display())]
    Io {
        /// The path as given.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Whether a part of the capture was read: all packets before the damage were delivered.
    pub fn is_partial(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Cut { .. })
    }
}

/// Describes the packets that were read before a packet that could not be read.
fn before(packet: u64) -> &'static str {
    if packet > 1 { "the packets before it were read" } else { "no packet was read" }
}
