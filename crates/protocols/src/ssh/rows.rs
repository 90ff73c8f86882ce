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
use crate::OnEvent;
use crate::policy::software::DetectedSoftware;

gannet_log::row! {
    /// One row for each SSH connection.
    pub struct SshRow<'a> = "ssh" {
        /// Time of the first version line.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// The protocol's major version, if both sides sent theirs and they agree.
        version: Option<u64> = "version",
        /// Whether a login succeeded, inferred from packet sizes.
        auth_success: Option<bool> = "auth_success",
        /// Number of login attempts.
        auth_attempts: u64 = "auth_attempts",
        /// Whether the connection leaves or enters the local networks; unset if neither or both
        /// ends are local.
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
        /// The host key's hash: `SHA256:` and base64, of which Zeek logs the first 32 digits.
        host_key_fingerprint: Option<&'a [u8]> = "host_key_fingerprint",
    }
}

/// The row of a connection, once it has a version line.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

/// The fields of a row.
#[derive(Debug)]
struct Session {
    ts: Time,
    direction: Option<Enum>,
    client: Option<Vec<u8>>,
    server: Option<Vec<u8>>,
    version: Option<u64>,
    /// The lists of the side whose KEXINIT was seen first.
    first: Option<Lists>,
    algorithms: Option<Algorithms>,
    fingerprint: Option<String>,
    auth_success: Option<bool>,
    auth_attempts: u64,
    logged_version: bool,
}

/// The lists of one side, kept until those of the other side are seen.
#[derive(Debug)]
struct Lists {
    is_server: bool,
    parts: Parts<8>,
}

/// The negotiated algorithms: encryption, MAC, compression, key exchange and host key.
#[derive(Debug)]
struct Algorithms(Parts<5>);

/// Concatenated texts.
#[derive(Debug)]
struct Parts<const N: usize> {
    text: Vec<u8>,
    ends: [usize; N],
}

impl Rows {
    /// Resets the lists when the analyzer is restarted: both sides send them again.
    pub(super) fn reset_lists(&mut self) {
        if let Some(session) = &mut self.0 {
            session.first = None;
        }
    }

    /// Writes the row, unless it was written.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = &mut self.0 {
            session.write(cx);
        }
    }

    /// Handles a version line of either side.
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        software(cx, from, line);
        let session = self.0.get_or_insert_with(|| Session::new(cx));
        session.line(cx, from.is_orig(), line);
    }
}

impl OnEvent<SshClientVersion<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SshClientVersion<'_>) {
        self.line(cx, Dir::Orig, event.version);
    }
}

impl OnEvent<SshServerVersion<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SshServerVersion<'_>) {
        self.line(cx, Dir::Resp, event.version);
    }
}

impl OnEvent<SshCapabilities<'_>> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &SshCapabilities<'_>) {
        let Some(session) = &mut self.0 else { return };
        let own = &event.capabilities;
        match &session.first {
            None => session.first = Some(Lists::from_capabilities(own)),
            Some(first) if first.is_server == own.is_server => {}
            Some(first) => session.algorithms = Some(Algorithms::negotiate(first, own)),
        }
    }
}

impl OnEvent<SshServerHostKeyFingerprint<'_>> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &SshServerHostKeyFingerprint<'_>) {
        if let Some(session) = &mut self.0 {
            session.fingerprint = Some(event.fingerprint.to_owned());
        }
    }
}

impl OnEvent<SshAuthAttempted> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SshAuthAttempted) {
        if let Some(session) = &mut self.0 {
            session.attempt(cx, event.authenticated);
        }
    }
}

impl<const N: usize> Parts<N> {
    /// Builds texts by calling `append` for each; `bytes` is the expected total length.
    fn build(bytes: usize, mut append: impl FnMut(usize, &mut Vec<u8>)) -> Self {
        let (mut text, mut ends) = (Vec::with_capacity(bytes), [0; N]);
        for (at, end) in ends.iter_mut().enumerate() {
            append(at, &mut text);
            *end = text.len();
        }
        Self { text, ends }
    }

    fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }
}

/// The lists of one side: key exchange, host key; then encryption, MAC and compression in both
/// directions.
fn lists<'a>(all: &Capabilities<'a>) -> [Names<'a>; 8] {
    let both = |prefs: &AlgorithmPrefs<'a>| {
        [prefs.client_to_server, prefs.server_to_client]
            .map(|names| names.unwrap_or(Names::new(b"", 0)))
    };
    let [cipher, mac, compression] =
        [&all.encryption_algorithms, &all.mac_algorithms, &all.compression_algorithms].map(both);
    let (kex, host_key) = (all.kex_algorithms, all.server_host_key_algorithms);
    [kex, host_key, cipher[0], cipher[1], mac[0], mac[1], compression[0], compression[1]]
}

impl Lists {
    fn from_capabilities(all: &Capabilities<'_>) -> Self {
        let lists = lists(all);
        let bytes = lists.iter().map(Names::len).sum();
        let parts = Parts::build(bytes, |at, text| {
            for (index, name) in lists[at].iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                text.extend_from_slice(name);
            }
        });
        Self { is_server: all.is_server, parts }
    }
}

impl Algorithms {
    /// Negotiates the algorithms of two sides; `first` was seen before `own`.
    fn negotiate(first: &Lists, own: &Capabilities<'_>) -> Self {
        let second = lists(own);
        // The stored names are those within the limits.
        let first_list = |at: usize| Names::new(first.parts.get(at), usize::MAX);
        let common = |at: usize| {
            let (one, other) = (first_list(at), second[at]);
            let found = if first.is_server { other.common(&one) } else { one.common(&other) };
            found.unwrap_or(b"Algorithm negotiation failed")
        };
        Self(Parts::build(128, |at, text| {
            let (up, down) = match at {
                3 => (common(0), common(0)),
                4 => (common(1), common(1)),
                direction => (common(2 + 2 * direction), common(3 + 2 * direction)),
            };
            if up == down {
                text.extend_from_slice(up);
            } else {
                [b"To server: ", up, b", to client: ", down]
                    .iter()
                    .for_each(|part| text.extend_from_slice(part));
            }
        }))
    }

    fn compression(&self) -> &[u8] {
        self.0.get(2)
    }
}

impl Session {
    fn new(cx: &Context<'_>) -> Self {
        let id = cx.conn.id;
        let (orig, resp) = (cx.env.is_local(id.orig_h), cx.env.is_local(id.resp_h));
        let direction = if orig { "OUTBOUND" } else { "INBOUND" };
        Self {
            ts: cx.now,
            direction: (orig != resp).then_some(Enum(direction)),
            client: None,
            server: None,
            version: None,
            first: None,
            algorithms: None,
            fingerprint: None,
            auth_success: None,
            auth_attempts: 0,
            logged_version: false,
        }
    }

    fn line(&mut self, cx: &mut Context<'_>, client: bool, line: &[u8]) {
        let slot = if client { &mut self.client } else { &mut self.server };
        *slot = Some(line.to_vec());
        self.version = None;
        let (Some(client), Some(server)) = (&self.client, &self.server) else { return };
        match version::logged_version(client, server) {
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

    /// Handles a login attempt.
    fn attempt(&mut self, cx: &mut Context<'_>, success: bool) {
        let compressed = self
            .algorithms
            .as_ref()
            .is_some_and(|a| matches!(a.compression(), b"zlib" | b"zlib@openssh.com"));
        // Sizes of compressed packets are meaningless.
        if !compressed && self.auth_success != Some(true) {
            self.auth_success = Some(success);
            self.auth_attempts += 1;
        }
        if success {
            self.write(cx);
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.logged_version, true) {
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
            cipher_alg: a.map(|a| a.0.get(0)),
            mac_alg: a.map(|a| a.0.get(1)),
            compression_alg: a.map(|a| a.0.get(2)),
            kex_alg: a.map(|a| a.0.get(3)),
            host_key_alg: a.map(|a| a.0.get(4)),
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
    policy.software(cx.now, &DetectedSoftware { host, port, kind, text: &rest[version..] });
}
