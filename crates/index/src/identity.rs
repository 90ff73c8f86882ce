//! Identifying the capture that was indexed.

use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;

use gannet_base::Uid;
use siphasher::sip::SipHasher13;
use siphasher::sip128;

/// The size of a capture, and a hash of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Bytes of the file.
    pub size: u64,
    /// Of its first and last 64 KiB.
    pub hash: u128,
}

/// Bytes of each end that are hashed.
const END: u64 = 64 << 10;

impl Identity {
    /// Of a file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut ends = Vec::with_capacity(2 * size.min(END) as usize);
        for start in [0, size.saturating_sub(END)] {
            file.seek(SeekFrom::Start(start))?;
            file.by_ref().take(END).read_to_end(&mut ends)?;
        }
        let hash = sip128::SipHasher13::new_with_keys(0, 1).hash(&ends);
        Ok(Self { size, hash: hash.as_u128() })
    }
}

/// The key of a uid's text.
pub(crate) fn key(uid: &[u8]) -> u64 {
    keyed(KEY).hash(uid)
}

/// The key of a uid.
pub(crate) fn key_of(uid: Uid) -> u64 {
    let (text, len) = uid.text();
    let word = |at| text.as_chunks::<8>().0.get(at).map_or(0, |word| u64::from_le_bytes(*word));
    let mut hasher = keyed(KEY);
    hasher.write_u64(word(0));
    hasher.write_u64(word(1));
    // Nearly all have one or two bytes more.
    match len {
        17 => hasher.write_u8(word(2) as u8),
        18 => hasher.write_u16(word(2) as u16),
        _ => return key(text.get(..len).unwrap_or_default()),
    }
    hasher.finish()
}

/// A check of bytes.
pub(crate) fn check(bytes: &[u8]) -> u64 {
    keyed(CHECK).hash(bytes)
}

/// The keys of the hashes.
const KEY: u64 = 2;
const CHECK: u64 = 3;

#[inline]
fn keyed(key: u64) -> SipHasher13 {
    SipHasher13::new_with_keys(0, key)
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;

    use super::*;

    #[test]
    fn the_key_of_a_uid_is_that_of_its_text() {
        for packet in 0..10_000 {
            let uid = UidSource::new(1).connection(packet, 0);
            assert_eq!(key_of(uid), key(uid.to_string().as_bytes()));
        }
    }
}
