//! Packets in and out: pcap and pcapng, mapped, streamed and compressed.
//!
//! A [`Reader`] reads one capture from a file, from standard input or from any
//! [`Read`](std::io::Read); a [`Stream`] reads many files and directories as one capture, ordered
//! by time. Both return [`Batch`]es: up to [`NEAR_PACKETS`] [`Packet`]s by default, with time (ns),
//! wire length, link type, interface and bytes. A [`Writer`] writes packets, and [`Info`]
//! summarizes a capture.
//!
//! # How data moves
//!
//! ```text
//! file ──map──▶ window ─┐
//! pipe ─┐               ├──records──▶ packet positions ──▶ Batch (positions + the window's bytes)
//! gzip ─┴buffer▶ window ┘
//! ```
//!
//! A source is a window of bytes: the remainder of a mapped file, or the filled part of a reused
//! buffer. The record reader parses the window and stores the positions of packets in a list, which
//! is reused too. So a packet needs neither a copy nor an allocation: a batch borrows the reader
//! until the next one is requested. Only packets of files that overlap in time are copied, to be
//! merged.
//!
//! # Bad input
//!
//! Captures may be truncated, damaged or not captures at all. Everything before the damage is
//! delivered; then an [`Error`] names file, packet and byte. A length in a file is only trusted as
//! far as the file has bytes.
//!
//! ```
//! use gannet_base::Time;
//! use gannet_capture::{Error, LinkType, Packet, Reader, WriteOptions, Writer};
//!
//! let path = std::env::temp_dir().join(format!("gannet-doc-{}.pcapng.zst", std::process::id()));
//! let mut writer = Writer::create(&path, WriteOptions::default())?;
//! writer.write(&Packet {
//!     time: Time::from_secs(1_300_475_167),
//!     wire_len: 5,
//!     link_type: LinkType::RAW,
//!     interface: 0,
//!     format: gannet_capture::Format::Pcap,
//!     number: 1,
//!     data: b"hello",
//! })?;
//! writer.finish()?;
//!
//! let mut reader = Reader::open(&path)?;
//! while let Some(batch) = reader.next_batch()? {
//!     for packet in batch {
//!         assert_eq!(packet.data, b"hello");
//!     }
//! }
//! assert_eq!(reader.packets(), 1);
//! # std::fs::remove_file(path).ok();
//! # Ok::<(), Error>(())
//! ```

mod blocks;
mod bytes;
mod compress;
mod decoder_thread;
mod encoder_thread;
mod error;
mod format;
mod gather;
mod info;
mod json;
mod link;
mod map;
mod options;
mod output_file;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod restart;
mod shared;
mod source;
mod stream;
#[cfg(test)]
mod test;
mod ticks;
mod write;

pub use blocks::Block;
pub use blocks::Blocks;
pub use compress::Compression;
pub use error::Error;
pub use format::Endian;
pub use format::Format;
pub use format::Interface;
pub use format::Origin;
pub use gannet_base::NewFile;
pub use gannet_inflate::MAX_RESTART_BYTES;
pub use gannet_inflate::RestartPoint;
pub use gannet_inflate::RestartPoints;
pub use gather::Gathered;
pub use gather::Record;
pub use info::Info;
pub use link::LinkType;
pub use map::PageReadahead;
pub use output_file::FileId;
pub use packet::BATCH_BYTES;
pub use packet::BATCH_PACKETS;
pub use packet::Batch;
pub use packet::BytesAfter;
pub use packet::Iter;
pub use packet::MAX_PACKET;
pub use packet::NEAR_PACKETS;
pub use packet::OwnedBatch;
pub use packet::Packet;
pub use reader::Access;
pub use reader::Reader;
pub use reader::UNPACK_THREADS;
pub use restart::unpacked_from;
pub use shared::Bytes;
pub use shared::Owner;
pub use stream::Options;
pub use stream::Stream;
pub use stream::is_index;
pub use write::Precision;
pub use write::WriteOptions;
pub use write::Writer;
