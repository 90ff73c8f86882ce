//! Identifying the capture that was indexed.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;

use gannet_base::Uid;
use siphasher::sip128::SipHasher13;

/// The size of a capture, and a hash of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Bytes of the file.
    pub size: u64,
    /// Of its first and last MiB.
    pub hash: u128,
}

/// Bytes of each end that are hashed.
const END: u64 = 1 << 20;

impl Identity {
    /// Of a file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut ends = Vec::new();
        for start in [0, size.saturating_sub(END)] {
            file.seek(SeekFrom::Start(start))?;
            file.by_ref().take(END).read_to_end(&mut ends)?;
        }
        let hash = SipHasher13::new_with_keys(0, 1).hash(&ends);
        Ok(Self { size, hash: hash.as_u128() })
    }
}

/// The key of a uid's text.
pub(crate) fn key(uid: &[u8]) -> u64 {
    hash(2, uid)
}

/// The key of a uid.
pub(crate) fn key_of(uid: Uid) -> u64 {
    let (text, len) = uid.text();
    key(text.get(..len).unwrap_or_default())
}

/// A check of bytes.
pub(crate) fn check(bytes: &[u8]) -> u64 {
    hash(3, bytes)
}

fn hash(key: u64, bytes: &[u8]) -> u64 {
    siphasher::sip::SipHasher13::new_with_keys(0, key).hash(bytes)
}
