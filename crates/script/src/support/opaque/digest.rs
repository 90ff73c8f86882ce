//! Digests of strings.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

use crate::support::order::Hashes;
use crate::support::text::to_hex;

/// A digest function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `md5`
    Md5,
    /// `sha1`
    Sha1,
    /// `sha224`
    Sha224,
    /// `sha256`
    Sha256,
    /// `sha384`
    Sha384,
    /// `sha512`
    Sha512,
}

/// A digest in progress: `md5_hash_init`, `_update`, `_finish` and the like. A clone is
/// independent.
#[derive(Clone, Debug)]
pub struct Digest(State);

#[derive(Clone, Debug)]
enum State {
    Md5(Md5),
    Sha1(Sha1),
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Digest {
    /// The digest of no bytes.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Digest(match algorithm {
            Algorithm::Md5 => State::Md5(Md5::new()),
            Algorithm::Sha1 => State::Sha1(Sha1::new()),
            Algorithm::Sha224 => State::Sha224(Sha224::new()),
            Algorithm::Sha256 => State::Sha256(Sha256::new()),
            Algorithm::Sha384 => State::Sha384(Sha384::new()),
            Algorithm::Sha512 => State::Sha512(Sha512::new()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.0 {
            State::Md5(state) => state.update(data),
            State::Sha1(state) => state.update(data),
            State::Sha224(state) => state.update(data),
            State::Sha256(state) => state.update(data),
            State::Sha384(state) => state.update(data),
            State::Sha512(state) => state.update(data),
        }
    }

    /// The digest.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            State::Md5(state) => state.finalize().to_vec(),
            State::Sha1(state) => state.finalize().to_vec(),
            State::Sha224(state) => state.finalize().to_vec(),
            State::Sha256(state) => state.finalize().to_vec(),
            State::Sha384(state) => state.finalize().to_vec(),
            State::Sha512(state) => state.finalize().to_vec(),
        }
    }

    /// The digest in hexadecimal digits.
    #[must_use]
    pub fn finish_hex(self) -> String {
        String::from_utf8_lossy(&to_hex(&self.finish())).into_owned()
    }
}

/// `md5_hmac`: a digest of a digest, mixed with a key from the seeds. Not the HMAC of RFC 2104.
#[must_use]
pub fn hmac_md5(data: &[u8], hashes: &Hashes) -> [u8; 16] {
    let mut inner: [u8; 16] = Md5::digest(data).into();
    inner.iter_mut().zip(hashes.hmac_md5).for_each(|(byte, key)| *byte ^= key);
    Md5::digest(inner).into()
}

/// `sha256_hmac`: like [`hmac_md5`].
#[must_use]
pub fn hmac_sha256(data: &[u8], hashes: &Hashes) -> [u8; 32] {
    let mut inner: [u8; 32] = Sha256::digest(data).into();
    inner.iter_mut().zip(hashes.hmac_sha256).for_each(|(byte, key)| *byte ^= key);
    Sha256::digest(inner).into()
}

/// The input for digests and hashes of a number: the number of its type (bool 1, int 2, count 3, double 4, time
/// 5, interval 6, enum 9, port 10) and the eight bytes of its key. For a string it is the string's bytes.
#[must_use]
pub fn typed_key(type_number: i32, key: [u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&type_number.to_le_bytes());
    bytes[4..].copy_from_slice(&key);
    bytes
}

/// `fnv1a32`.
#[must_use]
pub fn fnv1a32(data: &[u8]) -> u32 {
    data.iter()
        .fold(2_166_136_261, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

/// `fnv1a64`.
#[must_use]
pub fn fnv1a64(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// `hrw_weight`: the weight of a site for a key; the site with the highest weight is chosen.
#[must_use]
pub fn hrw_weight(key_digest: u64, site: u64) -> u64 {
    const A: u32 = 1_103_515_245;
    const B: u32 = 12_345;
    let digest = key_digest as u32 & 0x7fff_ffff;
    let mixed = A.wrapping_mul(site as u32).wrapping_add(B) ^ digest;
    u64::from(A.wrapping_mul(mixed).wrapping_add(B) & 0x7fff_ffff)
}
