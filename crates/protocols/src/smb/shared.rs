//! State that all connections share.

pub(super) mod rows;

use std::collections::HashMap;

use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_files::FileId;

use self::rows::LastActions;

/// SMB state that all connections of a shard share. Files in transit are identified by client,
/// server, share, name and time of the last change.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) files: HashMap<Box<[u8]>, FileId, KeyedHash>,
    /// State of rows for connections that started files.
    pub(crate) rows: LastActions,
    pub(super) swept: Time,
}
