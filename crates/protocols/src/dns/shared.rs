//! Reusable buffers for parsing messages.

use super::answers::Answers;
use super::message::Notes;
use super::session::ExchangePool;

/// Buffers that all connections of a shard reuse.
#[derive(Debug, Default)]
pub struct Shared {
    /// Buffers for one message. Boxed, because they are moved out and back for each message.
    pub(super) scratch: Option<Box<Scratch>>,
    /// Pool of exchanges.
    pub(super) exchanges: ExchangePool,
}

/// Buffers for one message.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) walk: Buffers,
    pub(super) rows: RowBuffers,
}

/// Buffers for the walk over one message.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) question: Vec<u8>,
    pub(super) owner: Vec<u8>,
    pub(super) names: Vec<u8>,
    pub(super) notes: Notes,
}

/// Buffers for the rows of one message.
#[derive(Debug, Default)]
pub(super) struct RowBuffers {
    pub(super) answers: Answers,
    pub(super) owner: Vec<u8>,
}
