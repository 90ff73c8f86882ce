//! Values of requests that their responses do not repeat.

use std::collections::HashMap;

use gannet_dict::KeyedHash;

type Map<V> = HashMap<u64, V, KeyedHash>;

/// Values of requests that their responses do not repeat, by message identifier.
#[derive(Debug, Default)]
pub(in crate::smb) struct PendingRequests {
    pub(in crate::smb) trees: Map<u32>,
    /// Offset and file identifier of read requests.
    pub(in crate::smb) reads: Map<(u64, u64)>,
    pub(in crate::smb) controls: Map<u64>,
}
