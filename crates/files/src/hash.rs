//! Hashes of files, computed incrementally.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Selects the hashes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashSelection {
    /// MD5 (RFC 1321).
    pub md5: bool,
    /// SHA-1 (FIPS 180-4).
    pub sha1: bool,
    /// SHA-256 (FIPS 180-4).
    pub sha256: bool,
}

/// The incremental hashes of a file.
#[derive(Clone, Debug, Default)]
pub struct Hashes {
    md5: Option<Md5>,
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
    has_data: bool,
}

/// The hashes of a complete file, in lower-case hexadecimal; `None` for those not requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// 32 digits.
    pub md5: Option<String>,
    /// 40 digits.
    pub sha1: Option<String>,
    /// 64 digits.
    pub sha256: Option<String>,
}

impl Hashes {
    /// Starts the requested hashes.
    pub fn new(wanted: HashSelection) -> Self {
        Self {
            md5: wanted.md5.then(Md5::new),
            sha1: wanted.sha1.then(Sha1::new),
            sha256: wanted.sha256.then(Sha256::new),
            has_data: false,
        }
    }

    /// Adds the requested hashes that are not yet computed.
    pub fn add(&mut self, wanted: HashSelection) {
        if wanted.md5 {
            self.md5.get_or_insert_with(Md5::new);
        }
        if wanted.sha1 {
            self.sha1.get_or_insert_with(Sha1::new);
        }
        if wanted.sha256 {
            self.sha256.get_or_insert_with(Sha256::new);
        }
    }

    /// Removes the selected hashes.
    pub fn remove(&mut self, which: HashSelection) {
        if which.md5 {
            self.md5 = None;
        }
        if which.sha1 {
            self.sha1 = None;
        }
        if which.sha256 {
            self.sha256 = None;
        }
    }

    /// Whether any bytes were hashed; files without bytes have no hashes in the logs.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    /// Adds the next bytes of the file.
    pub fn update(&mut self, data: &[u8]) {
        self.has_data |= !data.is_empty();
        if let Some(md5) = &mut self.md5 {
            md5.update(data);
        }
        if let Some(sha1) = &mut self.sha1 {
            sha1.update(data);
        }
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(data);
        }
    }

    /// Returns the hashes of all bytes.
    pub fn finish(self) -> Digests {
        Digests {
            md5: self.md5.map(|md5| hex(&md5.finalize())),
            sha1: self.sha1.map(|sha1| hex(&sha1.finalize())),
            sha256: self.sha256.map(|sha256| hex(&sha256.finalize())),
        }
    }
}

/// The SHA-256 of `data` in lower-case hexadecimal.
pub fn sha256_hex(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

/// The lower-case hexadecimal digits of `octets`.
pub fn hex(octets: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(octets.len() * 2);
    for &octet in octets {
        text.push(char::from(DIGITS[usize::from(octet >> 4)]));
        text.push(char::from(DIGITS[usize::from(octet & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests_of_abc_in_pieces() {
        let mut hashes = Hashes::new(HashSelection { md5: true, sha1: true, sha256: true });
        assert!(!hashes.has_data());
        hashes.update(b"a");
        hashes.update(b"bc");
        assert!(hashes.has_data());
        let digests = hashes.finish();
        assert_eq!(digests.md5.as_deref(), Some("900150983cd24fb0d6963f7d28e17f72"));
        assert_eq!(digests.sha1.as_deref(), Some("a9993e364706816aba3e25717850c26c9cd0d89d"));
        assert_eq!(
            digests.sha256.as_deref(),
            Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        );
        assert_eq!(Hashes::new(HashSelection::default()).finish(), Digests::default());
    }
}
