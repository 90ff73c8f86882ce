//! Blocks of a pcapng file other than packets, for programs that rewrite a part of its packets:
//! sections and interfaces with their options, host names, TLS secrets, statistics.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::pcapng::INTERFACE;
use crate::pcapng::SECTION;

/// Interface Statistics Block.
const STATISTICS: u32 = 5;

/// A block that is not a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of packets that precede the block in the file.
    pub before: u64,
    /// Block type.
    pub kind: u32,
    /// The encoded block, in the byte order of its section. The length of a section header is set
    /// to unknown.
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

    /// Whether it starts a section.
    pub fn is_section(&self) -> bool {
        self.kind == SECTION
    }

    /// Whether a pcap file cannot represent the block: names, secrets, and everything except
    /// sections and interfaces.
    pub fn is_extra(&self) -> bool {
        !matches!(self.kind, SECTION | INTERFACE | STATISTICS)
    }
}

/// Maximum number of bytes of blocks that are stored at a time: far more than files have between
/// two packets.
const MAX_STORED: usize = 256 << 20;

/// The blocks that were read and not yet taken.
#[derive(Clone, Debug, Default)]
pub struct Blocks(Arc<Mutex<BlockList>>);

#[derive(Debug, Default)]
struct BlockList {
    blocks: Vec<Block>,
    bytes: usize,
    /// Number of blocks that exceeded the limit.
    dropped: u64,
}

impl Blocks {
    pub(crate) fn push(&self, block: Block) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + block.bytes.len() > MAX_STORED {
            kept.dropped += 1;
            return;
        }
        kept.bytes += block.bytes.len();
        kept.blocks.push(block);
    }

    /// Takes the blocks since the last call, in file order.
    pub fn take(&self) -> Vec<Block> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes = 0;
        std::mem::take(&mut kept.blocks)
    }

    /// Number of blocks dropped because more than 256 MiB of them came without a packet in between.
    pub fn dropped(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}
