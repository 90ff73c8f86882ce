//! What all connections share.

pub(super) mod rows;

use std::collections::HashMap;

use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_files::FileId;

use self::rows::LastActions;

/// What all connections of a shard share for SMB: files in transit, by client, server, share, name
/// and time of the last change.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) files: HashMap<Box<[u8]>, FileId, KeyedHash>,
    /// What rows need of connections that started files.
    pub(crate) rows: LastActions,
    pub(super) swept: Time,
}
