//! Memory for reading messages, which is used again.

use super::answers::Answers;
use super::message::Notes;
use super::session::Spare;

/// Memory that all connections of a shard use again and again.
#[derive(Debug, Default)]
pub struct Shared {
    /// Buffers for reading one message. Boxed, as they are moved out and back for each.
    pub(super) scratch: Option<Box<Scratch>>,
    /// Exchanges that are done with.
    pub(super) spare: Spare,
}

/// Buffers for one message.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) walk: Buffers,
    pub(super) rows: RowBuffers,
}

/// Buffers for one message.
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
