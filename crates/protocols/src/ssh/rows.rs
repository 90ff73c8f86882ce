use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;

use super::limits::Limits;
use super::message::KexInit;
use super::version;
use super::version::Disagreement;
use crate::Context;

gannet_log::row! {
    /// One row for each SSH connection.
    pub struct SshRow<'a> = "ssh" {
        /// When the first version line was seen.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// The protocol's major version, once both sides sent theirs and they agree.
        version: Option<u64> = "version",
        /// Whether a login succeeded, inferred from packet sizes.
        auth_success: Option<bool> = "auth_success",
        /// Login attempts seen.
        auth_attempts: u64 = "auth_attempts",
        /// Whether it leaves or enters the local networks; unset if neither or both ends are local.
        direction: Option<Enum> = "direction",
        /// The client's version line.
        client: Option<&'a [u8]> = "client",
        /// The server's version line.
        server: Option<&'a [u8]> = "server",
        /// Encryption.
        cipher_alg: Option<&'a [u8]> = "cipher_alg",
        /// Message authentication.
        mac_alg: Option<&'a [u8]> = "mac_alg",
        /// Compression.
        compression_alg: Option<&'a [u8]> = "compression_alg",
        /// Key exchange.
        kex_alg: Option<&'a [u8]> = "kex_alg",
        /// Server's host key.
        host_key_alg: Option<&'a [u8]> = "host_key_alg",
        /// The host key's hash: `SHA256:` and base 64, of which Zeek gives the first 32 digits.
        host_key_fingerprint: Option<&'a [u8]> = "host_key_fingerprint",
    }
}

/// The data of a connection's row.
#[derive(Debug)]
pub(super) struct Session {
    ts: Time,
    direction: Option<Enum>,
    client: Option<Vec<u8>>,
    server: Option<Vec<u8>>,
    version: Option<u64>,
    algorithms: Option<Algorithms>,
    fingerprint: Option<String>,
    auth_success: Option<bool>,
    auth_attempts: u64,
    logged: bool,
}

#[derive(Debug)]
struct Algorithms {
    cipher: Vec<u8>,
    mac: Vec<u8>,
    compression: Vec<u8>,
    kex: Vec<u8>,
    host_key: Vec<u8>,
}

impl Session {
    pub(super) fn new(cx: &Context<'_>) -> Self {
        let id = cx.conn.id;
        let (orig, resp) = (cx.env.is_local(id.orig_h), cx.env.is_local(id.resp_h));
        let way = if orig { "OUTBOUND" } else { "INBOUND" };
        Self {
            ts: cx.now,
            direction: (orig != resp).then_some(Enum(way)),
            client: None,
            server: None,
            version: None,
            algorithms: None,
            fingerprint: None,
            auth_success: None,
            auth_attempts: 0,
            logged: false,
        }
    }

    /// A version line of either side.
    pub(super) fn line(&mut self, cx: &mut Context<'_>, client: bool, line: &[u8]) {
        let place = if client { &mut self.client } else { &mut self.server };
        *place = Some(line.to_vec());
        self.version = None;
        let (Some(client), Some(server)) = (&self.client, &self.server) else { return };
        match version::logged(client, server) {
            Ok(v) => self.version = v,
            Err(why) => {
                let name = match why {
                    Disagreement::Mismatch => "SSH_version_mismatch",
                    Disagreement::TooShort => "SSH_cannot_determine_version",
                };
                cx.weird_bytes(name, &[server, &b" vs "[..], client].concat(), None);
            }
        }
    }

    /// Both sides' algorithms.
    pub(super) fn algorithms(
        &mut self,
        client: &KexInit<'_>,
        server: &KexInit<'_>,
        limits: &Limits,
    ) {
        let both = |c: [&[u8]; 2], s: [&[u8]; 2], max: usize| {
            let (up, down) = (negotiated(c[0], s[0], max), negotiated(c[1], s[1], max));
            if up == down {
                return up.to_vec();
            }
            [b"To server: ", up, b", to client: ", down].concat()
        };
        self.algorithms = Some(Algorithms {
            cipher: both(client.cipher, server.cipher, limits.cipher),
            mac: both(client.mac, server.mac, limits.mac),
            compression: both(client.compression, server.compression, limits.compression),
            kex: negotiated(client.kex, server.kex, limits.kex).to_vec(),
            host_key: negotiated(client.host_key, server.host_key, limits.host_key).to_vec(),
        });
    }

    /// The server's host key as `SHA256:` and base 64.
    pub(super) fn fingerprint(&mut self, text: String) {
        self.fingerprint = Some(text);
    }

    /// An attempt to log in. Returns whether nothing further is of interest.
    pub(super) fn attempt(&mut self, cx: &mut Context<'_>, success: bool) -> bool {
        let compressed = self
            .algorithms
            .as_ref()
            .is_some_and(|a| matches!(&a.compression[..], b"zlib" | b"zlib@openssh.com"));
        // Sizes of compressed packets say nothing.
        if !compressed && self.auth_success != Some(true) {
            self.auth_success = Some(success);
            self.auth_attempts += 1;
        }
        if success {
            self.write(cx);
        }
        success && !compressed
    }

    /// Writes the row unless it was.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.logged, true) {
            return;
        }
        let a = self.algorithms.as_ref();
        cx.log(&SshRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            version: self.version,
            auth_success: self.auth_success,
            auth_attempts: self.auth_attempts,
            direction: self.direction,
            client: self.client.as_deref(),
            server: self.server.as_deref(),
            cipher_alg: a.map(|a| &a.cipher[..]),
            mac_alg: a.map(|a| &a.mac[..]),
            compression_alg: a.map(|a| &a.compression[..]),
            kex_alg: a.map(|a| &a.kex[..]),
            host_key_alg: a.map(|a| &a.host_key[..]),
            host_key_fingerprint: self.fingerprint.as_ref().map(|f| f.as_bytes()),
        });
    }
}

/// The client's first algorithm that the server has, too (RFC 4253 section 7.1), among the first `max` of each.
pub(super) fn common<'a>(client: &'a [u8], server: &[u8], max: usize) -> Option<&'a [u8]> {
    let split = |b: &u8| *b == b',';
    client.split(split).take(max).find(|c| server.split(split).take(max).any(|s| s == *c))
}

fn negotiated<'a>(client: &'a [u8], server: &[u8], max: usize) -> &'a [u8] {
    common(client, server, max).unwrap_or(b"Algorithm negotiation failed")
}

/// The algorithms of a list that are looked at.
pub(super) fn names(list: &[u8], max: usize) -> Vec<&[u8]> {
    list.split(|b| *b == b',').take(max).collect()
}

/// How many algorithms a list holds, if that is more than are looked at.
pub(super) fn too_many(list: &[u8], max: usize) -> Option<usize> {
    let n = list.split(|b| *b == b',').count();
    (n > max).then_some(n)
}
