//! What part of an analysis a shard does.

use crate::block::ExtractedPackets;

/// The role of a shard in an analysis.
pub(crate) enum Role {
    /// The whole analysis.
    Whole,
    /// The [global shard](gannet_protocols::global) and everything below the transport layer; packets
    /// of host pairs are handed over to the shards that own them.
    Global(Box<Outbox>),
    /// Some host pairs.
    HostPairs,
}

/// Packets that the global shard hands over from one block.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Number of shards that own host pairs.
    pub(crate) shards: usize,
    /// Start and length of the bytes of the block in memory.
    pub(crate) memory: (usize, usize),
    /// Index of the current packet in its block.
    pub(crate) index: u32,
    pub(crate) found: ExtractedPackets,
}
