//! What all connections share.

use std::collections::HashMap;

use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_files::FileId;

use super::state::Exchanges;

/// A file of which several responses bring ranges.
#[derive(Debug)]
pub(super) struct RangeFile {
    pub(super) id: FileId,
    /// The connection that joined last, and its exchange: that row shows the type.
    pub(super) uid: Uid,
    pub(super) exchange: u64,
}

/// What all connections of a shard share for HTTP: files that come in ranges.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) ranges: HashMap<Box<[u8]>, RangeFile, KeyedHash>,
    pub(super) swept: Time,
    /// The exchanges that an analyzer shares with inner analyzers of the same protocol, during
    /// their calls.
    pub(super) lent: Option<Exchanges>,
}
