//! Protection of Initial packets (RFC 9001 sections 5.2 to 5.4, RFC 9369 section 3.3).

use aes_gcm::Aes128Gcm;
use aes_gcm::Nonce;
use aes_gcm::Tag;
use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::KeyInit;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::BlockCipherEncrypt;
use gannet_base::Dir;
use hkdf::Hkdf;
use sha2::Sha256;

use super::message::VERSION_2;

/// Maximum length of a protected part that is decrypted, in bytes: longer than any Ethernet frame.
const MAX_PROTECTED: usize = 10_000;
const TAG: usize = 16;
const SAMPLE: usize = 16;
/// Offset of the header protection sample from the start of the packet number, in bytes.
const SAMPLE_AT: usize = 4;

/// Salt and labels of the key derivation of a version.
struct KeyDerivation {
    salt: &'static [u8; 20],
    key: &'static [u8],
    iv: &'static [u8],
    header: &'static [u8],
}

const SALT_DRAFT_22: &[u8; 20] =
    b"\x7f\xbc\xdb\x0e\x7c\x66\xbb\xe9\x19\x3a\x96\xcd\x21\x51\x9e\xbd\x7a\x02\x64\x4a";
const SALT_DRAFT_23: &[u8; 20] =
    b"\xc3\xee\xf7\x12\xc7\x2e\xbb\x5a\x11\xa7\xd2\x43\x2b\xb4\x63\x65\xbe\xf9\xf5\x02";
const SALT_DRAFT_29: &[u8; 20] =
    b"\xaf\xbf\xec\x28\x99\x93\xd2\x4c\x9e\x97\x86\xf1\x9c\x61\x11\xe0\x43\x90\xa8\x99";
const SALT_1: &[u8; 20] =
    b"\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a";
const SALT_2: &[u8; 20] =
    b"\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9";

impl KeyDerivation {
    fn for_version(version: u32) -> Self {
        if version == VERSION_2 {
            let (key, iv, header) = (b"quicv2 key", b"quicv2 iv", b"quicv2 hp");
            return Self { salt: SALT_2, key, iv, header };
        }
        let salt = match version {
            0xff00_0016 | 0xface_b001 => SALT_DRAFT_22,
            0xff00_0017..=0xff00_001c | 0xface_b002..=0xface_b013 => SALT_DRAFT_23,
            0xff00_001d..=0xff00_0020 => SALT_DRAFT_29,
            _ => SALT_1,
        };
        Self { salt, key: b"quic key", iv: b"quic iv", header: b"quic hp" }
    }
}

/// The keys of one side's Initial packets.
pub struct Keys {
    packet: Aes128Gcm,
    iv: [u8; 12],
    header: Aes128,
}

impl Keys {
    /// Derives the keys of the side `from` from the client's first destination connection id.
    /// Unknown versions are treated as version 1.
    pub fn initial(version: u32, id: &[u8], from: Dir) -> Self {
        let derivation = KeyDerivation::for_version(version);
        let (_, initial) = Hkdf::<Sha256>::extract(Some(derivation.salt), id);
        let label: &[u8] = if from.is_orig() { b"client in" } else { b"server in" };
        let secret: [u8; 32] = expand(&initial, label);
        // A pseudorandom key of the hash's length is always long enough.
        let side = Hkdf::from_prk(&secret).unwrap_or(initial);
        Self {
            packet: Aes128Gcm::new(&expand::<16>(&side, derivation.key).into()),
            iv: expand(&side, derivation.iv),
            header: Aes128::new(&expand::<16>(&side, derivation.header).into()),
        }
    }

    /// Decrypts a packet whose packet number is at offset `number_at`, and writes its frames to
    /// `plaintext`. `None` if authentication fails.
    pub fn open(&self, packet: &[u8], number_at: usize, plaintext: &mut Vec<u8>) -> Option<()> {
        plaintext.clear();
        let protected = packet.get(number_at..).filter(|p| p.len() <= MAX_PROTECTED)?;
        let sample: [u8; SAMPLE] = protected.get(SAMPLE_AT..SAMPLE_AT + SAMPLE)?.try_into().ok()?;
        let mut mask = sample.into();
        self.header.encrypt_block(&mut mask);
        // The unprotected header is authenticated together with the content.
        let first = packet.first()? ^ mask[0] & 0x0f;
        let number_len = usize::from(first & 3) + 1;
        let (content, tag) = protected.get(number_len..)?.split_last_chunk::<TAG>()?;
        plaintext.extend_from_slice(&packet[..number_at]);
        plaintext[0] = first;
        let mut number = 0_u64;
        for (b, m) in protected[..number_len].iter().zip(&mask[1..]) {
            plaintext.push(b ^ m);
            number = number << 8 | u64::from(b ^ m);
        }
        let mut nonce = self.iv;
        for (n, b) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *n ^= b;
        }
        let header = plaintext.len();
        plaintext.extend_from_slice(content);
        let (header_bytes, content) = plaintext.split_at_mut(header);
        let opened = self.packet.decrypt_inout_detached(
            &Nonce::from(nonce),
            header_bytes,
            content.into(),
            &Tag::from(*tag),
        );
        if opened.is_err() {
            plaintext.clear();
            return None;
        }
        plaintext.drain(..header);
        Some(())
    }
}

/// HKDF-Expand-Label without context (RFC 8446 section 7.1).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let (n, prefix) = ((N as u16).to_be_bytes(), b"tls13 ");
    let len = [(prefix.len() + label.len()) as u8];
    // Expansion fails only beyond 255 blocks of the hash.
    let _ = secret.expand_multi_info(&[&n, &len, prefix, label, &[0]], &mut out);
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encrypts an Initial packet: `header` up to the length, then protected frames. The packet
    /// number takes two bytes.
    pub(in crate::quic) fn seal(keys: &Keys, header: &[u8], number: u16, frames: &[u8]) -> Vec<u8> {
        let mut packet = header.to_vec();
        packet.extend((0x4000 | (2 + frames.len() + TAG) as u16).to_be_bytes());
        let number_at = packet.len();
        packet[0] |= 1;
        packet.extend(number.to_be_bytes());
        let mut nonce = keys.iv;
        nonce[10] ^= number.to_be_bytes()[0];
        nonce[11] ^= number.to_be_bytes()[1];
        let mut content = frames.to_vec();
        let nonce = Nonce::from(nonce);
        let tag = keys
            .packet
            .encrypt_inout_detached(&nonce, &packet, content.as_mut_slice().into())
            .unwrap();
        packet.extend(content);
        packet.extend(tag);
        let at = number_at + SAMPLE_AT;
        let sample: [u8; SAMPLE] = packet[at..at + SAMPLE].try_into().unwrap();
        let mut mask = sample.into();
        keys.header.encrypt_block(&mut mask);
        packet[0] ^= mask[0] & 0x0f;
        packet[number_at] ^= mask[1];
        packet[number_at + 1] ^= mask[2];
        packet
    }

    /// The client's first destination connection id in the RFCs' examples.
    const ID: &[u8] = b"\x83\x94\xc8\xf0\x3e\x51\x57\x08";

    #[test]
    fn the_server_packet_of_rfc_9001() {
        // Appendix A.3.
        let packet = b"\xcf\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5\x00\x40\x75\
            \xc0\xd9\x5a\x48\x2c\xd0\x99\x1c\xd2\x5b\x0a\xac\x40\x6a\x58\x16\xb6\x39\x41\x00\xf3\
            \x7a\x1c\x69\x79\x75\x54\x78\x0b\xb3\x8c\xc5\xa9\x9f\x5e\xde\x4c\xf7\x3c\x3e\xc2\x49\
            \x3a\x18\x39\xb3\xdb\xcb\xa3\xf6\xea\x46\xc5\xb7\x68\x4d\xf3\x54\x8e\x7d\xde\xb9\xc3\
            \xbf\x9c\x73\xcc\x3f\x3b\xde\xd7\x4b\x56\x2b\xfb\x19\xfb\x84\x02\x2f\x8e\xf4\xcd\xd9\
            \x37\x95\xd7\x7d\x06\xed\xbb\x7a\xaf\x2f\x58\x89\x18\x50\xab\xbd\xca\x3d\x20\x39\x8c\
            \x27\x64\x56\xcb\xc4\x21\x58\x40\x7d\xd0\x74\xee";
        let keys = Keys::initial(1, ID, Dir::Resp);
        let mut plaintext = Vec::new();
        keys.open(packet, 18, &mut plaintext).unwrap();
        // An acknowledgement, and a ServerHello of 90 bytes.
        assert_eq!(&plaintext[..13], b"\x02\x00\x00\x00\x00\x06\x00\x40\x5a\x02\x00\x00\x56");
        assert_eq!(plaintext.len(), 99);
        let mut broken = packet.to_vec();
        broken[60] ^= 1;
        assert_eq!(keys.open(&broken, 18, &mut plaintext), None);
        assert!(plaintext.is_empty());
        assert_eq!(Keys::initial(1, ID, Dir::Orig).open(packet, 18, &mut plaintext), None);
        assert_eq!(Keys::initial(VERSION_2, ID, Dir::Resp).open(packet, 18, &mut plaintext), None);
        assert_eq!(keys.open(&packet[..37], 18, &mut plaintext), None, "no sample");
        assert_eq!(keys.open(packet, packet.len() + 1, &mut plaintext), None);
    }

    #[test]
    fn the_server_packet_of_rfc_9369() {
        // Appendix A.3.
        let packet = b"\xdc\x6b\x33\x43\xcf\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5\x00\x40\x75\
            \xd9\x2f\xaa\xf1\x6f\x05\xd8\xa4\x39\x8c\x47\x08\x96\x98\xba\xee\xa2\x6b\x91\xeb\x76\
            \x1d\x9b\x89\x23\x7b\xbf\x87\x26\x30\x17\x91\x53\x58\x23\x00\x35\xf7\xfd\x39\x45\xd8\
            \x89\x65\xcf\x17\xf9\xaf\x6e\x16\x88\x6c\x61\xbf\xc7\x03\x10\x6f\xba\xf3\xcb\x4c\xfa\
            \x52\x38\x2d\xd1\x6a\x39\x3e\x42\x75\x75\x07\x69\x80\x75\xb2\xc9\x84\xc7\x07\xf0\xa0\
            \x81\x2d\x8c\xd5\xa6\x88\x1e\xaf\x21\xce\xda\x98\xf4\xbd\x23\xf6\xfe\x1a\x3e\x2c\x43\
            \xed\xd9\xce\x7c\xa8\x4b\xed\x85\x21\xe2\xe1\x40";
        let mut plaintext = Vec::new();
        Keys::initial(VERSION_2, ID, Dir::Resp).open(packet, 18, &mut plaintext).unwrap();
        assert_eq!(&plaintext[..13], b"\x02\x00\x00\x00\x00\x06\x00\x40\x5a\x02\x00\x00\x56");
    }

    proptest::prop_compose! {
        fn versions()(i in 0_usize..4) -> u32 { [1, VERSION_2, 0xff00_0016, 0xface_b002][i] }
    }

    proptest::proptest! {
        #[test]
        fn what_was_sealed_opens(
            version in versions(),
            id in proptest::collection::vec(proptest::num::u8::ANY, 0..20),
            number: u16,
            frames in proptest::collection::vec(proptest::num::u8::ANY, 2..100),
        ) {
            let keys = Keys::initial(version, &id, Dir::Orig);
            let packet = seal(&keys, b"\xc0header", number, &frames);
            let mut plaintext = Vec::new();
            proptest::prop_assert_eq!(keys.open(&packet, 9, &mut plaintext), Some(()));
            proptest::prop_assert_eq!(plaintext, frames);
        }
    }
}
