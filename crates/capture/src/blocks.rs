//! Blocks of a pcapng file that are no packets, for those who write some of its packets again: its
//! sections and interfaces with their options, names of hosts, secrets of TLS, statistics.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::pcapng::INTERFACE;
use crate::pcapng::SECTION;

/// Interface Statistics Block.
const STATISTICS: u32 = 5;

/// A block that is no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Packets of the file before it.
    pub before: u64,
    /// What it is.
    pub kind: u32,
    /// All of it, in the byte order of its section. A section's header says that its length is not known.
    pub bytes: Box<[u8]>,
}

impl Block {
    pub(crate) fn new(before: u64, kind: u32, bytes: &[u8]) -> Self {
        let mut bytes: Box<[u8]> = bytes.into();
        if kind == SECTION
            && let Some(length) = bytes.get_mut(16..24)
        {
            length.fill(0xff);
        }
        Self { before, kind, bytes }
    }

    /// Whether a section begins with it.
    pub fn is_section(&self) -> bool {
        self.kind == SECTION
    }

    /// Whether it says more than every capture does: names, secrets, or anything else that a pcap file has no
    /// place for.
    pub fn is_extra(&self) -> bool {
        !matches!(self.kind, SECTION | INTERFACE | STATISTICS)
    }
}

/// Bytes of blocks that are kept at a time: many times what stands between packets.
const MAX_KEPT: usize = 256 << 20;

/// The blocks that were kept and not taken yet.
#[derive(Clone, Debug, Default)]
pub struct Blocks(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    blocks: Vec<Block>,
    bytes: usize,
    /// Blocks for which there was no room.
    dropped: u64,
}

impl Blocks {
    pub(crate) fn push(&self, block: Block) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + block.bytes.len() > MAX_KEPT {
            kept.dropped += 1;
            return;
        }
        kept.bytes += block.bytes.len();
        kept.blocks.push(block);
    }

    /// Those that came since the last time, in order.
    pub fn take(&self) -> Vec<Block> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes = 0;
        std::mem::take(&mut kept.blocks)
    }

    /// Blocks that were dropped so far because more than 256 MiB of them came without a packet between.
    pub fn dropped(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}
