//! Packets in and out: pcap and pcapng, mapped, streamed and compressed.

mod bytes;
mod compress;
mod error;
mod format;
mod info;
mod json;
mod link;
mod map;
mod options;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod source;
mod stream;
#[cfg(test)]
mod test;
mod ticks;
mod write;

pub use compress::Compression;
pub use error::Error;
pub use format::Endian;
pub use format::Format;
pub use format::Interface;
pub use format::Origin;
pub use info::Info;
pub use link::LinkType;
pub use packet::BATCH_BYTES;
pub use packet::BATCH_PACKETS;
pub use packet::Batch;
pub use packet::Iter;
pub use packet::MAX_PACKET;
pub use packet::Packet;
pub use reader::Reader;
pub use stream::Options;
pub use stream::Stream;
pub use write::Precision;
pub use write::WriteOptions;
pub use write::Writer;
