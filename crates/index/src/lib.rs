//! Packet index: finds the packets of a connection in a capture, with lists of packets in a file next to it.
//!
//! [`Builder`] is a [`PacketIndex`](gannet_engine::PacketIndex) of the analysis: it collects the
//! packets of each connection (a packet of a tunnel belongs to the connection of the tunnel and to
//! the inner one; so do all fragments of its datagrams, and ICMP errors that quote one of its
//! packets) and, from the batches, the file offset of every 64th packet. [`Index::open`] reads the
//! index and refuses that of another capture; [`Index::packets`] returns the packet numbers of a uid,
//! and [`Slices`] reads these packets without those between. Offsets in a compressed capture refer to its decompressed
//! bytes: the index also has restart points, at which decompression can begin, about every [`RESTARTS_EVERY`] bytes.
//!
//! An index is the file `packets` in the folder `FILE.gannet`. All integers are little-endian; those in blocks are
//! LEB128:
//!
//! ```text
//! magic, version                                      8 bytes, u32
//! flags                                               u32: 1 packet offsets are recorded,
//!                                                     2 in a gzip file, 4 in a zstd file, 8 checksums were not
//!                                                     verified, 16 packets were filtered
//! seed of uids                                        u64
//! identity of the capture                             size u64, hash of its first and last 64 KiB u128
//! packets, forgotten fragments                        u64 each
//! head length, offsets, points, window bytes, blocks  u64 each
//! checksum of all bytes before                        u64
//! head                                                bytes of the capture before its first packet
//! offsets                                             of some packets: number u64, offset in the capture u64
//! restart points                                      offset in the capture u64, in the file u64, window length u32,
//!                                                     bits of the first byte to skip u32, checksum u64
//! windows of the restart points                       the 32 KiB before each, compressed with zstd
//! table of blocks                                     first key u64, offset u64, length u32, checksum u32
//! blocks of lists, in the order of keys               key, number of packets, length of list, list
//! ```
//!
//! The key of a uid is a hash of its text. A list consists of the distances from one packet number to the next.

mod analysis;
mod build;
mod collector;
mod error;
mod file;
mod header;
mod identity;
mod list;
mod lists;
mod records;
mod restarts;
mod slices;
mod varint;

pub use analysis::Analysis;
pub use build::Builder;
pub use build::IndexSize;
pub use build::RESTARTS_EVERY;
pub use error::Error;
pub use file::Index;
#[doc(hidden)]
pub use file::exercise;
pub use identity::Identity;
pub use slices::Slices;

use std::path::Path;
use std::path::PathBuf;

/// The path of a capture's index.
pub fn path_of(capture: &Path) -> PathBuf {
    let mut folder = capture.as_os_str().to_owned();
    folder.push(".gannet");
    PathBuf::from(folder).join("packets")
}
