//! Values of requests that their responses do not repeat.

use std::collections::HashMap;

use gannet_dict::KeyedHash;

/// Values of requests that their responses do not repeat, by message identifier.
#[derive(Debug, Default)]
pub(in crate::smb) struct PendingRequests {
    /// Offsets of read requests.
    pub(in crate::smb) reads: HashMap<u16, u64, KeyedHash>,
    /// Whether a transaction is on a pipe.
    pub(in crate::smb) pipes: HashMap<u16, bool, KeyedHash>,
}
