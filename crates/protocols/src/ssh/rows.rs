use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;

use super::events::*;
use super::message::Names;
use super::version;
use super::version::Disagreement;
use crate::Context;
use crate::Hear;
use crate::policy::software::Found;

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

/// The row of a connection, from its first version line on.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

/// The data of a row.
#[derive(Debug)]
struct Session {
    ts: Time,
    direction: Option<Enum>,
    client: Option<Vec<u8>>,
    server: Option<Vec<u8>>,
    version: Option<u64>,
    /// The algorithms of the side whose list came first.
    first: Option<Box<Lists>>,
    algorithms: Option<Algorithms>,
    fingerprint: Option<String>,
    auth_success: Option<bool>,
    auth_attempts: u64,
    logged: bool,
}

/// The lists of one side, for the time until the other one's come.
#[derive(Debug)]
struct Lists {
    is_server: bool,
    kex: List,
    host_key: List,
    cipher: [List; 2],
    mac: [List; 2],
    compression: [List; 2],
}

/// The names of a list that are looked at, joined by commas.
type List = Vec<u8>;

#[derive(Debug)]
struct Algorithms {
    cipher: Vec<u8>,
    mac: Vec<u8>,
    compression: Vec<u8>,
    kex: Vec<u8>,
    host_key: Vec<u8>,
}

impl Rows {
    /// The analyzer begins again: both sides send their lists again.
    pub(super) fn begin_again(&mut self) {
        if let Some(session) = &mut self.0 {
            session.first = None;
        }
    }

    /// Writes the row unless it was.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = &mut self.0 {
            session.write(cx);
        }
    }

    /// A version line of either side.
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        software(cx, from, line);
        let session = self.0.get_or_insert_with(|| Session::new(cx));
        session.line(cx, from.is_orig(), line);
    }
}

impl Hear<SshClientVersion<'_>> for Rows {
    fn hear(&mut self, cx: &mut Context<'_>, event: &SshClientVersion<'_>) {
        self.line(cx, Dir::Orig, event.version);
    }
}

impl Hear<SshServerVersion<'_>> for Rows {
    fn hear(&mut self, cx: &mut Context<'_>, event: &SshServerVersion<'_>) {
        self.line(cx, Dir::Resp, event.version);
    }
}

impl Hear<SshCapabilities<'_>> for Rows {
    fn hear(&mut self, _cx: &mut Context<'_>, event: &SshCapabilities<'_>) {
        let Some(session) = &mut self.0 else { return };
        let own = &event.capabilities;
        match &session.first {
            None => session.first = Some(Box::new(Lists::of(own))),
            Some(first) if first.is_server == own.is_server => {}
            Some(first) => session.algorithms = Some(Algorithms::of(first, &Lists::of(own))),
        }
    }
}

impl Hear<SshServerHostKeyFingerprint<'_>> for Rows {
    fn hear(&mut self, _cx: &mut Context<'_>, event: &SshServerHostKeyFingerprint<'_>) {
        if let Some(session) = &mut self.0 {
            session.fingerprint = Some(event.fingerprint.to_owned());
        }
    }
}

impl Hear<SshAuthAttempted> for Rows {
    fn hear(&mut self, cx: &mut Context<'_>, event: &SshAuthAttempted) {
        if let Some(session) = &mut self.0 {
            session.attempt(cx, event.authenticated);
        }
    }
}

impl Lists {
    fn of(all: &Capabilities<'_>) -> Self {
        let list = |names: Names<'_>| names.iter().collect::<Vec<_>>().join(&b',');
        let both = |prefs: &AlgorithmPrefs<'_>| {
            [prefs.up(), prefs.down()].map(|names| names.map(list).unwrap_or_default())
        };
        Self {
            is_server: all.is_server,
            kex: list(all.kex_algorithms),
            host_key: list(all.server_host_key_algorithms),
            cipher: both(&all.encryption_algorithms),
            mac: both(&all.mac_algorithms),
            compression: both(&all.compression_algorithms),
        }
    }
}

impl Algorithms {
    /// What two sides agree on.
    fn of(one: &Lists, other: &Lists) -> Self {
        let (client, server) = if one.is_server { (other, one) } else { (one, other) };
        let both = |client: &[List; 2], server: &[List; 2]| {
            let [up, down] = [0, 1].map(|way| negotiated(&client[way], &server[way]));
            if up == down {
                return up.to_vec();
            }
            [b"To server: ", up, b", to client: ", down].concat()
        };
        Self {
            cipher: both(&client.cipher, &server.cipher),
            mac: both(&client.mac, &server.mac),
            compression: both(&client.compression, &server.compression),
            kex: negotiated(&client.kex, &server.kex).to_vec(),
            host_key: negotiated(&client.host_key, &server.host_key).to_vec(),
        }
    }
}

/// The name that two lists have in common.
fn negotiated<'a>(client: &'a [u8], server: &[u8]) -> &'a [u8] {
    let (client, server) = (Names::new(client, usize::MAX), Names::new(server, usize::MAX));
    client.common(&server).unwrap_or(b"Algorithm negotiation failed")
}

impl Session {
    fn new(cx: &Context<'_>) -> Self {
        let id = cx.conn.id;
        let (orig, resp) = (cx.env.is_local(id.orig_h), cx.env.is_local(id.resp_h));
        let way = if orig { "OUTBOUND" } else { "INBOUND" };
        Self {
            ts: cx.now,
            direction: (orig != resp).then_some(Enum(way)),
            client: None,
            server: None,
            version: None,
            first: None,
            algorithms: None,
            fingerprint: None,
            auth_success: None,
            auth_attempts: 0,
            logged: false,
        }
    }

    fn line(&mut self, cx: &mut Context<'_>, client: bool, line: &[u8]) {
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

    /// An attempt to log in.
    fn attempt(&mut self, cx: &mut Context<'_>, success: bool) {
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
    }

    fn write(&mut self, cx: &mut Context<'_>) {
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

/// Reports the software in a version line, without the protocol's version, if software.log is
/// enabled.
fn software(cx: &mut Context<'_>, from: Dir, line: &[u8]) {
    let Some(mut policy) = cx.env.policy() else { return };
    let (host, port, kind) = match from {
        Dir::Orig => (cx.conn.id.orig_h, None, "SSH::CLIENT"),
        Dir::Resp => (cx.conn.id.resp_h, Some(cx.conn.id.resp_p), "SSH::SERVER"),
    };
    let rest = line.strip_prefix(b"SSH").unwrap_or(line);
    let version = rest.iter().take_while(|c| c.is_ascii_digit() || b".-".contains(c)).count();
    policy.software(cx.now, &Found { host, port, kind, text: &rest[version..] });
}
