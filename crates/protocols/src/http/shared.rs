//! State that all connections of a shard share.

use std::collections::HashMap;

use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_files::FileId;

use super::state::Exchanges;

/// A file of ranges that several responses carry.
#[derive(Debug)]
pub(super) struct RangeFile {
    pub(super) id: FileId,
    /// The last connection that joined the file, and its exchange, whose row lists the type.
    pub(super) uid: Uid,
    pub(super) exchange: u64,
}

/// State that all HTTP connections of a shard share: files of ranges.
#[derive(Debug, Default)]
pub struct Shared {
    /// Files by key: host, URL and server, or connection and entity.
    pub(super) ranges: HashMap<Box<[u8]>, RangeFile, KeyedHash>,
    /// Time of the last removal of ended files.
    pub(super) swept: Time,
    /// The exchanges that an analyzer shares with nested analyzers of the same protocol during
    /// calls of them.
    pub(super) shared_exchanges: Option<Exchanges>,
}
