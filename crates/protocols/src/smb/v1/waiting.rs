//! What requests say that their answers do not.

use std::collections::HashMap;

use gannet_dict::KeyedHash;

/// What requests say that their answers do not, by message.
#[derive(Debug, Default)]
pub(in crate::smb) struct Waiting {
    /// Offsets of reads.
    pub(in crate::smb) reads: HashMap<u16, u64, KeyedHash>,
    /// Whether a transaction is one of a pipe.
    pub(in crate::smb) pipes: HashMap<u16, bool, KeyedHash>,
}
