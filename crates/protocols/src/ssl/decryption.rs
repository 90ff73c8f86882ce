//! Decrypts application data of which scripts have the keys, as in Zeek: TLS 1.2 with the suite
//! TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 (RFC 5246 section 6.3, RFC 5288 section 3).

use aes_gcm::Aes256Gcm;
use aes_gcm::Nonce;
use aes_gcm::Tag as Authentication;
use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::KeyInit;
use gannet_base::Dir;
use hkdf::hmac::Hmac;
use hkdf::hmac::Mac;
use sha2::Sha384;

use super::role::Role;
use crate::Context;
use crate::Nested;
use crate::Tag;
use crate::TlsSecret;

/// TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 (RFC 5289 section 3.2), the only suite that is decrypted.
const SUITE: u16 = 0xc030;
const KEY: usize = 32;
/// Length of the implicit part of a nonce, which is derived from the key block, in bytes.
const SALT: usize = 4;
/// Length of the explicit part of a nonce, at the start of each record, in bytes.
const EXPLICIT_NONCE: usize = 8;
const AUTHENTICATION_TAG: usize = 16;
/// Length of the key block, with the keys and salts of both sides, in bytes.
const KEY_BLOCK: usize = 2 * KEY + 2 * SALT;

/// The random bytes of both hellos.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Randoms {
    pub(super) client: [u8; 32],
    pub(super) server: [u8; 32],
}

/// Keys of one side.
struct Sender {
    cipher: Aes256Gcm,
    salt: [u8; SALT],
}

/// The decryption of one session.
pub(super) struct Decryption {
    /// The master secret; empty if unknown.
    master: Vec<u8>,
    /// The key block that a script set or that was derived from the master secret; empty if
    /// unknown.
    block: Vec<u8>,
    /// Keys of client and server, when there is a key block.
    senders: Option<[Sender; 2]>,
    /// Number of application data records so far, of client and server.
    records: [u32; 2],
    /// A record was not decrypted: no later one is.
    has_failed: bool,
    /// Plaintext of a record.
    plaintext: Vec<u8>,
    /// Analyzers of the plaintext.
    inner: Option<Nested>,
}

impl Decryption {
    /// State of a session; `has_failed` says whether application data was skipped before.
    pub(super) fn new(has_failed: bool) -> Self {
        Self {
            master: Vec::new(),
            block: Vec::new(),
            senders: None,
            records: [0; 2],
            has_failed,
            plaintext: Vec::new(),
            inner: None,
        }
    }

    /// Sets a secret of the session for a script. A key block replaces the previous one.
    pub(super) fn set(&mut self, secret: TlsSecret<'_>) {
        match secret {
            TlsSecret::Master(secret) => self.master = secret.to_vec(),
            TlsSecret::KeyBlock(block) => {
                self.block = block.to_vec();
                self.senders = None;
            }
        }
    }

    /// Whether records are still decrypted.
    pub(super) fn is_on(&self) -> bool {
        !self.has_failed
    }

    /// Decrypts a record of application data and delivers the plaintext to the nested analyzers;
    /// the client is their originator.
    pub(super) fn record(
        &mut self,
        cx: &mut Context<'_>,
        role: Role,
        suite: Option<u16>,
        randoms: &Randoms,
        version: u16,
        data: &[u8],
    ) {
        if self.has_failed {
            return;
        }
        if suite != Some(SUITE) || self.decrypt(role, randoms, version, data).is_none() {
            self.has_failed = true;
            return;
        }
        let from = if role == Role::Client { Dir::Orig } else { Dir::Resp };
        let inner = self.inner.get_or_insert_with(|| {
            let mut inner = Nested::new(Tag::Ssl);
            inner.start(cx, Tag::Detector);
            inner
        });
        inner.stream(cx, from, &self.plaintext);
    }

    /// Decrypts a record into `plaintext`. `None` if there are no keys, or authentication fails.
    fn decrypt(&mut self, role: Role, randoms: &Randoms, version: u16, data: &[u8]) -> Option<()> {
        if self.block.is_empty() && !self.master.is_empty() {
            let seed = [randoms.server, randoms.client].concat();
            self.block = expand(&self.master, b"key expansion", &seed, KEY_BLOCK);
        }
        if self.senders.is_none() {
            self.senders = Some(senders(&self.block)?);
        }
        let [client, server] = self.senders.as_ref()?;
        let (sender, records) = match role {
            Role::Client => (client, &mut self.records[0]),
            Role::Server => (server, &mut self.records[1]),
        };
        // The first record of each side is its Finished message.
        *records = records.wrapping_add(1);
        let (explicit, rest) = data.split_first_chunk::<EXPLICIT_NONCE>()?;
        let (content, authentication) = rest.split_last_chunk::<AUTHENTICATION_TAG>()?;
        if content.is_empty() {
            return None;
        }
        let mut nonce = [0; SALT + EXPLICIT_NONCE];
        nonce[..SALT].copy_from_slice(&sender.salt);
        nonce[SALT..].copy_from_slice(explicit);
        let mut header = Vec::with_capacity(13);
        header.extend(u64::from(*records).to_be_bytes());
        header.push(super::role::content::APPLICATION_DATA as u8);
        header.extend(version.to_be_bytes());
        header.extend(u16::try_from(content.len()).ok()?.to_be_bytes());
        self.plaintext.clear();
        self.plaintext.extend_from_slice(content);
        let decrypted = sender.cipher.decrypt_inout_detached(
            &Nonce::from(nonce),
            &header,
            self.plaintext.as_mut_slice().into(),
            &Authentication::from(*authentication),
        );
        decrypted.ok()
    }

    /// The analyzers of the plaintext.
    pub(super) fn inner(&mut self) -> Option<&mut Nested> {
        self.inner.as_mut()
    }
}

/// Splits a key block into both sides' keys. `None` if its length is wrong.
fn senders(block: &[u8]) -> Option<[Sender; 2]> {
    let block: &[u8; KEY_BLOCK] = block.try_into().ok()?;
    let (keys, salts) = block.split_at(2 * KEY);
    let sender = |side: usize| {
        let key: [u8; KEY] = keys[side * KEY..][..KEY].try_into().ok()?;
        let salt = salts[side * SALT..][..SALT].try_into().ok()?;
        Some(Sender { cipher: Aes256Gcm::new(&key.into()), salt })
    };
    Some([sender(0)?, sender(1)?])
}

/// The first `len` bytes of P_SHA384 (RFC 5246 section 5).
fn expand(secret: &[u8], label: &[u8], seed: &[u8], len: usize) -> Vec<u8> {
    let hash = |parts: &[&[u8]]| {
        // HMAC accepts keys of any length.
        let mut mac = Hmac::<Sha384>::new_from_slice(secret).ok()?;
        parts.iter().for_each(|part| mac.update(part));
        Some(mac.finalize().into_bytes().to_vec())
    };
    let mut out = Vec::new();
    let mut a = [label, seed].concat();
    while out.len() < len {
        let Some(next) = hash(&[&a]) else { break };
        a = next;
        out.extend(hash(&[&a, label, seed]).unwrap_or_default());
    }
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::super::Analyzer;
    use super::super::samples::client_hello;
    use super::super::samples::ecdhe;
    use super::super::samples::message;
    use super::super::samples::record;
    use super::super::samples::server_hello;
    use super::*;
    use crate::Analyze;
    use crate::ScriptRequest;
    use crate::activation::Activation;
    use crate::testing::Harness;

    const MASTER: &[u8] = &[3; 48];

    /// Key block of the sample hellos.
    fn block() -> Vec<u8> {
        expand(MASTER, b"key expansion", &[[8; 32], [7; 32]].concat(), KEY_BLOCK)
    }

    /// Builds an encrypted record of application data with the sequence number `number` of its
    /// side.
    fn sealed(from: Dir, number: u64, plaintext: &[u8]) -> Vec<u8> {
        let [client, server] = senders(&block()).unwrap();
        let sender = if from.is_orig() { client } else { server };
        let explicit = number.to_be_bytes();
        let nonce: [u8; 12] = [&sender.salt[..], &explicit].concat().try_into().unwrap();
        let header = [&explicit[..], &[23, 3, 3], &(plaintext.len() as u16).to_be_bytes()].concat();
        let mut content = plaintext.to_vec();
        let inout = content.as_mut_slice().into();
        let tag =
            sender.cipher.encrypt_inout_detached(&Nonce::from(nonce), &header, inout).unwrap();
        record(23, &[&explicit[..], &content, &tag].concat())
    }

    fn start(suite: u16) -> (Harness, Analyzer) {
        let mut h = Harness::new(Proto::Tcp, 443);
        h.env.activation = Activation::scripted();
        let analyzer = Tag::Http.zeek_name().to_owned();
        h.env.apply_command(h.now, gannet_event::Command::Detect { analyzer, on: true });
        let mut a = Analyzer::new(&mut h.cx());
        let client = client_hello(0x0303, &[], &[]);
        let answer = [
            message(2, &server_hello(0x0303, &[5; 32], suite, &[])),
            message(12, &ecdhe()),
            message(14, b""),
        ];
        a.stream(&mut h.cx(), Dir::Orig, &record(22, &message(1, &client)));
        a.stream(&mut h.cx(), Dir::Resp, &record(22, &answer.concat()));
        (h, a)
    }

    /// Both sides switch to encryption.
    fn change(h: &mut Harness, a: &mut Analyzer) {
        for from in [Dir::Orig, Dir::Resp] {
            a.stream(&mut h.cx(), from, &record(20, &[1]));
            a.stream(&mut h.cx(), from, &record(22, &[0xee; 40]));
        }
    }

    const GET: &[u8] = b"GET /secret HTTP/1.1\r\nHost: example.com\r\n\r\n";
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

    /// A request and its response, in chunks of `chunk` bytes.
    fn exchange(h: &mut Harness, a: &mut Analyzer, chunk: usize) {
        for (from, plaintext) in [(Dir::Orig, GET), (Dir::Resp, OK)] {
            let half = plaintext.len() / 2;
            let sent =
                [sealed(from, 1, &plaintext[..half]), sealed(from, 2, &plaintext[half..])].concat();
            for part in sent.chunks(chunk) {
                a.stream(&mut h.cx(), from, part);
            }
        }
        a.finish(&mut h.cx());
    }

    #[test]
    fn the_pseudorandom_function_has_known_answers() {
        // For SHA-384, as published on the mailing list of the TLS working group.
        let secret = b"\xb8\x0b\x73\x3d\x6c\xee\xfc\xdc\x71\x56\x6e\xa4\x8e\x55\x67\xdf";
        let seed = b"\xcd\x66\x5c\xf6\xa8\x44\x7d\xd6\xff\x8b\x27\x55\x5e\xdb\x74\x65";
        let known = b"\x7b\x0c\x18\xe9\xce\xd4\x10\xed\x18\x04\xf2\xcf\xa3\x4a\x33\x6a\
            \x1c\x14\xdf\xfb\x49\x00\xbb\x5f\xd7\x94\x21\x07\xe8\x1c\x83\xcd\
            \xe9\xca\x0f\xaa\x60\xbe\x9f\xe3\x4f\x82\xb1\x23\x3c\x91\x46\xa0";
        assert_eq!(expand(secret, b"test label", seed, known.len()), known);
    }

    #[test]
    fn application_data_is_decrypted_and_analyzed() {
        let block = block();
        for chunk in [1, 7, 4_096] {
            for secret in [TlsSecret::Master(MASTER), TlsSecret::KeyBlock(&block)] {
                let (mut h, mut a) = start(SUITE);
                assert!(a.handle_request(&mut h.cx(), ScriptRequest::Decrypt(secret)));
                change(&mut h, &mut a);
                exchange(&mut h, &mut a, chunk);
                let rows = h.rows("http");
                assert_eq!(rows.len(), 1, "{secret:?}");
                assert_eq!(rows[0]["uri"], "/secret");
                assert_eq!(rows[0]["status_code"], "200");
                assert_eq!(rows[0]["response_body_len"], "2");
            }
        }
    }

    #[test]
    fn nothing_is_decrypted_without_the_right_secret_and_suite() {
        let wrong =
            [TlsSecret::Master(&[4; 48]), TlsSecret::KeyBlock(&[1; 71]), TlsSecret::Master(b"")];
        for secret in wrong {
            let (mut h, mut a) = start(SUITE);
            a.handle_request(&mut h.cx(), ScriptRequest::Decrypt(secret));
            change(&mut h, &mut a);
            exchange(&mut h, &mut a, 4_096);
            assert!(h.rows("http").is_empty(), "{secret:?}");
        }
        let (mut h, mut a) = start(0xc02f);
        a.handle_request(&mut h.cx(), ScriptRequest::Decrypt(TlsSecret::Master(MASTER)));
        change(&mut h, &mut a);
        exchange(&mut h, &mut a, 4_096);
        assert!(h.rows("http").is_empty());
    }

    #[test]
    fn a_secret_behind_application_data_is_late() {
        let (mut h, mut a) = start(SUITE);
        change(&mut h, &mut a);
        a.stream(&mut h.cx(), Dir::Resp, &sealed(Dir::Resp, 1, b"push"));
        a.handle_request(&mut h.cx(), ScriptRequest::Decrypt(TlsSecret::Master(MASTER)));
        exchange(&mut h, &mut a, 4_096);
        assert!(h.rows("http").is_empty());
    }

    #[test]
    fn a_changed_record_ends_the_decryption() {
        let (mut h, mut a) = start(SUITE);
        a.handle_request(&mut h.cx(), ScriptRequest::Decrypt(TlsSecret::Master(MASTER)));
        change(&mut h, &mut a);
        let mut changed = sealed(Dir::Orig, 1, b"nothing");
        *changed.last_mut().unwrap() ^= 1;
        a.stream(&mut h.cx(), Dir::Orig, &changed);
        a.stream(&mut h.cx(), Dir::Orig, &sealed(Dir::Orig, 2, GET));
        a.finish(&mut h.cx());
        assert!(h.rows("http").is_empty());
    }
}
