//! What requests say that their answers do not.

use std::collections::HashMap;

use gannet_dict::KeyedHash;

type Map<V> = HashMap<u64, V, KeyedHash>;

/// What requests say that their answers do not, by message.
#[derive(Debug, Default)]
pub(in crate::smb) struct Waiting {
    pub(in crate::smb) trees: Map<u32>,
    /// Offset and file of reads.
    pub(in crate::smb) reads: Map<(u64, u64)>,
    pub(in crate::smb) controls: Map<u64>,
}
