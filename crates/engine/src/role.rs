//! The role of a shard.

use crate::block::ExtractedPackets;

/// The role of a shard in an analysis.
pub(crate) enum Role {
    /// The whole analysis.
    Whole,
    /// Runs the [global shard](gannet_protocols::global) and everything below the transport layer;
    /// passes packets of host pairs to the shards that own them.
    Global(Box<Outbox>),
    /// Analyzes some host pairs.
    HostPairs,
}

/// Packets of one block that the global shard extracts for other shards.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Number of shards that own host pairs.
    pub(crate) shards: usize,
    /// Address and length of the block's bytes in memory.
    pub(crate) block_memory: (usize, usize),
    /// Index of the current packet in its block.
    pub(crate) index: u32,
    pub(crate) extracted: ExtractedPackets,
}
