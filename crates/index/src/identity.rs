//! Identification of the indexed capture, and hash functions of an index.

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

/// The size of a capture, and a hash of its first and last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Size of the file, in bytes.
    pub size: u64,
    /// Hash of the first and last 64 KiB.
    pub hash: u128,
}

/// Number of bytes hashed at each end of the file.
const END: u64 = 64 << 10;

impl Identity {
    /// Identifies a file.
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

/// The key of a uid in the index: a hash of its text.
pub(crate) fn uid_hash(uid: &[u8]) -> u64 {
    hasher(UID_KEY).hash(uid)
}

/// Like [`uid_hash`], but from a [`Uid`], without formatting its text.
pub(crate) fn hash_of_uid(uid: Uid) -> u64 {
    let (text, len) = uid.text();
    let word = |at| text.as_chunks::<8>().0.get(at).map_or(0, |word| u64::from_le_bytes(*word));
    let mut state = hasher(UID_KEY);
    state.write_u64(word(0));
    state.write_u64(word(1));
    // Nearly all uids have 17 or 18 bytes.
    match len {
        17 => state.write_u8(word(2) as u8),
        18 => state.write_u16(word(2) as u16),
        _ => return uid_hash(text.get(..len).unwrap_or_default()),
    }
    state.finish()
}

/// Checksum of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    hasher(CHECKSUM_KEY).hash(bytes)
}

/// SipHash keys.
const UID_KEY: u64 = 2;
const CHECKSUM_KEY: u64 = 3;

#[inline]
fn hasher(key: u64) -> SipHasher13 {
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
            assert_eq!(hash_of_uid(uid), uid_hash(uid.to_string().as_bytes()));
        }
    }
}
