use std::borrow::Cow;

use gannet_base::Dir;
use md5::Md5;
use sha2::Digest;
use sha2::Sha256;

use super::auth::Auth;
use super::events::*;
use super::limits::Limits;
use super::message;
use super::message::Kex;
use super::message::KexInit;
use super::message::Malformed;
use super::message::Names;
use super::message::Packet;
use super::message::Packet1;
use super::rows::Rows;
use super::version::Version;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Frames;
use crate::support::Lines;

/// Maximum number of stored bytes of a version line or an unencrypted packet.
const MAX_KEPT: usize = 256 << 10;

/// Idle timeout in seconds of a confirmed connection.
const IDLE_TIMEOUT: u16 = 3600;

/// The analyzer of one connection.
pub struct Analyzer {
    side: [Side; 2],
    /// The KEXINIT that was seen first, until the other side's is seen.
    first: Option<(Dir, Vec<u8>)>,
    /// Whether both sides compress encrypted data, so that its sizes are meaningless.
    compresses: bool,
    rows: Rows,
    auth: Auth,
    done: bool,
    confirmed: bool,
    limits: Limits,
}

struct Side {
    state: State,
    version: Option<Version>,
    lines: Lines,
    frames: Frames,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Version,
    KexInit,
    Kex(Kex),
    Encrypted,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self::with_rows(Rows::default(), false, Limits::from_settings(cx))
    }

    /// The initial state, before any data.
    fn with_rows(rows: Rows, compresses: bool, limits: Limits) -> Self {
        let side = || Side {
            state: State::Version,
            version: None,
            lines: Lines::new(MAX_KEPT),
            frames: Frames::new(MAX_KEPT),
        };
        Self {
            side: [side(), side()],
            first: None,
            compresses,
            rows,
            auth: Auth::default(),
            done: false,
            confirmed: false,
            limits,
        }
    }

    fn version(&self) -> Option<u8> {
        Version::agree(self.side[0].version, self.side[1].version)
    }

    /// Handles a segment of `len` encrypted bytes.
    fn encrypted(&mut self, cx: &mut Context<'_>, from: Dir, len: usize) {
        cx.raise(|c| SshEncryptedPacket { c, orig: from.is_orig(), len: len as u64 });
        if self.version() != Some(2) {
            return;
        }
        let Some(success) = self.auth.segment(from, len) else { return };
        cx.report(&mut self.rows, |c| SshAuthAttempted { c, authenticated: success });
        if success {
            let auth_method_none = self.auth.is_first();
            cx.raise(|c| SshAuthSuccessful { c, auth_method_none });
        }
        self.done |= success && !self.compresses && self.confirmed;
    }

    /// Handles a version line.
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) -> Result<(), Malformed> {
        if !line.starts_with(b"SSH-") {
            // Servers may send other lines before their version, clients may not.
            if from.is_orig() {
                return Err(Malformed);
            }
            cx.raise(|c| SshServerPreBannerData { c, data: line });
            return Ok(());
        }
        let side = &mut self.side[from.index()];
        side.state = State::KexInit;
        side.version = Version::parse(line).or(side.version);
        match from {
            Dir::Orig => cx.report(&mut self.rows, |c| SshClientVersion { c, version: line }),
            Dir::Resp => cx.report(&mut self.rows, |c| SshServerVersion { c, version: line }),
        }
        Ok(())
    }

    /// Handles a packet of version 2.
    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        let max = self.limits.string;
        let packet = Packet::parse_with_limit(data, self.limits.packet)?;
        if packet.number == message::NEWKEYS {
            self.side[from.index()].state = State::Encrypted;
            self.confirm(cx);
            return Ok(());
        }
        match self.side[from.index()].state {
            // Any packet before KEXINIT is parsed as KEXINIT.
            State::KexInit => self.kexinit(cx, from, packet.payload)?,
            State::Kex(kex) => {
                if let Some(n) = kex.excess(&packet, max) {
                    limit(cx, "SSH_max_string_length_exceeded", n as usize, max as usize);
                }
                let key = kex.host_key(&packet, max)?;
                if let Some(key) = key {
                    let fingerprint = fingerprint(&[key]);
                    if cx.wants::<SshServerHostKey>() {
                        raise_hash(cx, &Md5::digest(key));
                    }
                    cx.raise(|c| Ssh2ServerHostKey { c, key });
                    let fingerprint = &fingerprint[..];
                    cx.report(&mut self.rows, |c| SshServerHostKeyFingerprint { c, fingerprint });
                }
                raise_exchange(cx, from, kex, &packet, max);
            }
            State::Version | State::Encrypted => {}
        }
        Ok(())
    }

    fn kexinit(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        payload: &[u8],
    ) -> Result<(), Malformed> {
        let limits = self.limits;
        if let Some(n) = KexInit::excess(payload, limits.string) {
            limit(cx, "SSH_max_string_length_exceeded", n as usize, limits.string as usize);
        }
        let kexinit = KexInit::parse_with_limit(payload, limits.string)?;
        for (list, max, name) in [
            (kexinit.kex, limits.kex, "SSH_max_kexinit_kex_algorithms_exceeded"),
            (kexinit.host_key, limits.host_key, "SSH_max_kexinit_hostkey_algorithms_exceeded"),
            (kexinit.cipher[0], limits.cipher, "SSH_max_kexinit_encryption_algorithms_exceeded"),
            (kexinit.cipher[1], limits.cipher, "SSH_max_kexinit_encryption_algorithms_exceeded"),
            (kexinit.mac[0], limits.mac, "SSH_max_kexinit_mac_algorithms_exceeded"),
            (kexinit.mac[1], limits.mac, "SSH_max_kexinit_mac_algorithms_exceeded"),
            (
                kexinit.compression[0],
                limits.compression,
                "SSH_max_kexinit_compression_algorithms_exceeded",
            ),
            (
                kexinit.compression[1],
                limits.compression,
                "SSH_max_kexinit_compression_algorithms_exceeded",
            ),
            (kexinit.languages[0], limits.languages, "SSH_max_kexinit_languages_exceeded"),
            (kexinit.languages[1], limits.languages, "SSH_max_kexinit_languages_exceeded"),
        ] {
            if let Some(n) = Names::new(list, max).excess_len() {
                limit(cx, name, n, max);
            }
        }
        let own = capabilities(&kexinit, !from.is_orig(), &limits);
        let cookie = kexinit.cookie;
        cx.report(&mut self.rows, |c| SshCapabilities { c, cookie, capabilities: own });
        let Some((dir, first)) = &self.first else {
            self.first = Some((from, payload.to_vec()));
            return Ok(());
        };
        if *dir == from {
            return Ok(());
        }
        let Ok(other) = KexInit::parse_with_limit(first, limits.string) else { return Ok(()) };
        let other = capabilities(&other, from.is_orig(), &limits);
        let (client, server) = if from.is_orig() { (own, other) } else { (other, own) };
        self.compresses = compresses(&client, &server);
        if let Some(name) = client.kex_algorithms.common(&server.kex_algorithms) {
            match Kex::from_name(name) {
                Some(kex) => {
                    self.side[0].state = State::Kex(kex);
                    self.side[1].state = State::Kex(kex);
                }
                None => {
                    cx.weird_bytes("ssh_unknown_kex_algorithm", name, Some("SSH"));
                }
            }
        }
        // If they have no known algorithm in common, the next packet may be another KEXINIT.
        Ok(())
    }

    /// Handles a packet of version 1.
    fn packet1(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        match Packet1::parse_with_limit(data, self.limits.packet)? {
            // Zeek's scripts log this key only if its MD5 has a handler.
            Packet1::PublicKey { exponent, modulus } => {
                if cx.wants::<SshServerHostKey>() {
                    // For a key of version 1, Zeek reports the first 16 bytes of its SHA-256
                    // instead of its MD5.
                    let hash =
                        Sha256::new().chain_update(modulus).chain_update(exponent).finalize();
                    raise_hash(cx, &hash[..16]);
                    let fingerprint = &fingerprint(&[modulus, exponent])[..];
                    cx.raise(|c| SshServerHostKeyFingerprint { c, fingerprint });
                }
                cx.raise(|c| Ssh1ServerHostKey { c, modulus, exponent });
            }
            Packet1::SessionKey => self.confirm(cx),
        }
        self.side[from.index()].state = State::Encrypted;
        Ok(())
    }

    fn confirm(&mut self, cx: &mut Context<'_>) {
        cx.confirm(Tag::Ssh);
        if !self.confirmed {
            self.confirmed = true;
            cx.conn.set_timeout(IDLE_TIMEOUT);
        }
    }

    /// Parses the next line or packet of a chunk; `None` if it is incomplete.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        data: &mut &[u8],
    ) -> Option<Result<(), Cow<'static, str>>> {
        if self.side[from.index()].state == State::Version {
            let mut lines = std::mem::replace(&mut self.side[from.index()].lines, Lines::new(1));
            let done = lines.next(data).map(|l| {
                self.line(cx, from, l.text).map_err(|Malformed| no_version_line(l.text).into())
            });
            self.side[from.index()].lines = lines;
            return done;
        }
        self.side[from.index()].lines.skip_lf(data);
        let version = self.version();
        let mut frames = std::mem::replace(&mut self.side[from.index()].frames, Frames::new(1));
        let before = frames.partial().len();
        let max = self.limits.packet;
        let need = |d: &[u8]| match version {
            Some(1) => message::length1(d, max),
            Some(_) => message::length2(d, max),
            // Without a common version, no packet can be parsed.
            None => 4,
        };
        // An excessive length is reported once, when the length field is complete.
        let check = |cx: &mut Context<'_>, head: &[u8]| {
            if before < 4
                && let Some(n) = message::excess(head, max)
            {
                limit(cx, "SSH_max_packet_length_exceeded", n as usize, max as usize);
            }
        };
        let done = if let Some(frame) = frames.next(data, need) {
            check(cx, frame);
            Some(match version {
                Some(1) => self.packet1(cx, from, frame),
                Some(_) => self.packet(cx, from, frame),
                None => Err(Malformed),
            })
        } else {
            check(cx, frames.partial());
            None
        };
        self.side[from.index()].frames = frames;
        let reason = if version.is_none() { NO_VERSION } else { MALFORMED };
        Some(done?.map_err(|Malformed| reason.into()))
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.done || cx.conn.is_partial() {
            return;
        }
        let mut rest = data;
        while !rest.is_empty() && self.side[from.index()].state != State::Encrypted {
            match self.step(cx, from, &mut rest) {
                Some(Ok(())) => {}
                Some(Err(reason)) => {
                    cx.violation(Tag::Ssh, &reason, &[]);
                    self.side[from.index()].frames.reset();
                    return;
                }
                None => return,
            }
        }
        if !rest.is_empty() {
            self.encrypted(cx, from, rest.len());
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.done = true;
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.rows.reset_lists();
        *self = Self::with_rows(std::mem::take(&mut self.rows), self.compresses, self.limits);
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.write(cx);
    }
}

fn limit(cx: &mut Context<'_>, name: &'static str, n: usize, max: usize) {
    cx.weird(name, &format!("{n} > {max}"), Some("SSH"));
    cx.conn.note_limit();
}

/// Reasons of violations: the sides have no version in common, and any other fault.
const NO_VERSION: &str =
    "Binpac exception: binpac exception: invalid index for case: SSH_Key_Exchange: 3";
const MALFORMED: &str = "Binpac exception: binpac exception";

/// Reason for an invalid first line of a client, as in Zeek: it contains the source position of
/// Zeek's pattern and the text up to a NUL.
#[cold]
fn no_version_line(line: &[u8]) -> String {
    let text = line.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    format!(
        "{MALFORMED}: string mismatch at /zeek/ssh-protocol.pac:45: \nexpected pattern: \"SSH-.*\"\nactual data: \"{text}\""
    )
}

/// Raises the events of a key exchange packet, except those of a host key.
fn raise_exchange(cx: &mut Context<'_>, from: Dir, kex: Kex, packet: &Packet<'_>, max: u32) {
    let is_orig = from.is_orig();
    match (kex, packet.number) {
        (Kex::Dh, 30) | (Kex::DhGex, 32) => cx.raise(|c| Ssh2DhGexInit { c, is_orig }),
        (Kex::DhGex, 31) | (Kex::Gss, 41) => {
            if let Some((p, q)) = kex.group(packet, max) {
                cx.raise(|c| Ssh2DhServerParams { c, p, q });
            }
        }
        (Kex::Gss, 30) => cx.raise(|c| Ssh2GssInit { c, is_orig }),
        (Kex::Gss, 34) => {
            if let Some((major, minor, err_msg)) = packet.gss_error(max) {
                let (major_status, minor_status) = (major.into(), minor.into());
                cx.raise(|c| Ssh2GssError { c, major_status, minor_status, err_msg });
            }
        }
        (Kex::Rsa, 31) => cx.raise(|c| Ssh2RsaSecret { c, is_orig }),
        (Kex::Ecc, 30 | 31) => {
            if let Some(q) = kex.ecc_key(packet, max) {
                cx.raise(|c| Ssh2EccKey { c, is_orig, q });
            }
            if packet.number == 30 {
                cx.raise(|c| Ssh2EccInit { c, is_orig });
            }
        }
        _ => {}
    }
}

/// Raises the event of a host key's hash, as pairs of hexadecimal digits.
fn raise_hash(cx: &mut Context<'_>, hash: &[u8]) {
    let pairs: Vec<String> = hash.iter().map(|b| format!("{b:02x}")).collect();
    let hash = &pairs.join(":")[..];
    cx.raise(|c| SshServerHostKey { c, hash });
}

/// One side's algorithms, up to the limit of each list.
fn capabilities<'a>(kexinit: &KexInit<'a>, is_server: bool, limits: &Limits) -> Capabilities<'a> {
    let both = |[up, down]: [&'a [u8]; 2], max: usize| AlgorithmPrefs {
        client_to_server: Some(Names::new(up, max)),
        server_to_client: Some(Names::new(down, max)),
    };
    let languages = kexinit.languages.map(|list| Names::new(list, limits.languages));
    let [up, down] = languages.map(|list| (!list.is_empty()).then_some(list));
    Capabilities {
        kex_algorithms: Names::new(kexinit.kex, limits.kex),
        server_host_key_algorithms: Names::new(kexinit.host_key, limits.host_key),
        encryption_algorithms: both(kexinit.cipher, limits.cipher),
        mac_algorithms: both(kexinit.mac, limits.mac),
        compression_algorithms: both(kexinit.compression, limits.compression),
        languages: (up.is_some() || down.is_some())
            .then_some(AlgorithmPrefs { client_to_server: up, server_to_client: down }),
        is_server,
    }
}

/// Whether both directions use the same compression.
fn compresses(client: &Capabilities<'_>, server: &Capabilities<'_>) -> bool {
    fn common<'a>(client: Option<Names<'a>>, server: Option<Names<'_>>) -> Option<&'a [u8]> {
        client?.common(&server?)
    }
    let (client, server) = (&client.compression_algorithms, &server.compression_algorithms);
    let up = common(client.client_to_server, server.client_to_server);
    let down = common(client.server_to_client, server.server_to_client);
    up == down && matches!(up, Some(b"zlib" | b"zlib@openssh.com"))
}

/// `SHA256:` and the hash's first 24 bytes in base64.
fn fingerprint(key: &[&[u8]]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = key.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize();
    let mut out = String::from("SHA256:");
    for three in hash[..24].chunks_exact(3) {
        let n = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for shift in [18, 12, 6, 0] {
            out.push(char::from(DIGITS[(n >> shift & 63) as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::message::tests::kexinit;
    use super::message::tests::packet;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    const O: Dir = Dir::Orig;
    const R: Dir = Dir::Resp;

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 22);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in chunks {
            a.stream(&mut h.cx(), *dir, data);
        }
        a.finish(&mut h.cx());
        h
    }

    #[test]
    fn exchanges_with_gss_and_rsa() {
        let mut h = Harness::new(Proto::Tcp, 22);
        h.listen("ssh2_");
        let error = b"\0\0\0\x01\0\0\0\x02\0\0\0\x03bad\0\0\0\0";
        let packets: [(Kex, u8, &[u8]); 3] =
            [(Kex::Gss, 30, b""), (Kex::Gss, 34, error), (Kex::Rsa, 31, b"")];
        for (kex, number, payload) in packets {
            let packet = Packet { number, payload };
            raise_exchange(&mut h.cx(), Dir::Orig, kex, &packet, 100);
        }
        let expected = [
            r#"ssh2_gss_init "is_orig":true"#,
            r#"ssh2_gss_error "major_status":1,"minor_status":2,"err_msg":"bad""#,
            r#"ssh2_rsa_secret "is_orig":true"#,
        ];
        let events: Vec<_> =
            h.events().iter().map(|e| e.trim_end_matches('}').to_owned()).collect();
        assert_eq!(events, expected);
    }

    #[test]
    fn a_whole_connection() {
        let client = kexinit([
            "curve25519-sha256,x",
            "ed25519",
            "aes",
            "aes",
            "m1,m2",
            "m2",
            "none",
            "none",
        ]);
        let server =
            kexinit(["y,curve25519-sha256", "rsa", "aes,b", "aes", "m2", "m2", "none", "none"]);
        let reply = packet(31, b"\0\0\0\x03key\0\0\0\x01q\0\0\0\x01s");
        let mut both = packet(31, b"\0\0\0\x03key\0\0\0\x01q\0\0\0\x01s");
        both.extend_from_slice(&packet(21, b""));
        assert_eq!(reply[..4], [0, 0, 0, 23]);
        let chunks: &[(Dir, &[u8])] = &[
            (R, b"welcome\r\nSSH-2.0-server\r"),
            (R, b"\n"),
            (O, b"SSH-2.0-client\r\n"),
            (O, &packet(20, &client)),
            (R, &packet(20, &server)),
            (O, &packet(30, b"\0\0\0\x01q")),
            (R, &both),
            (O, &packet(21, b"")),
            (O, &[0; 48]),
            (R, &[0; 48]),
            (R, &[0; 64]),
            (R, &[0; 64]),
            (R, &[0; 32]),
        ];
        let h = run(chunks);
        assert!(h.confirmed(Tag::Ssh));
        assert!(!h.violated(Tag::Ssh));
        assert_eq!(h.conn.timeout(), gannet_base::Interval::from_secs(i64::from(IDLE_TIMEOUT)));
        let rows = h.rows("ssh");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["version"], &*r["auth_success"], &*r["auth_attempts"]), ("2", "T", "2"));
        assert_eq!((&*r["client"], &*r["server"]), ("SSH-2.0-client", "SSH-2.0-server"));
        assert_eq!(r["kex_alg"], "curve25519-sha256");
        assert_eq!(r["mac_alg"], "m2");
        assert_eq!(r["host_key_alg"], "Algorithm negotiation failed");
        // SHA-256 of "key".
        assert_eq!(r["host_key_fingerprint"], "SHA256:LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6");
    }

    #[test]
    fn unequal_versions_end_it() {
        let h = run(&[(O, b"SSH-1.5-c\n"), (R, b"SSH-2.0-s\n"), (R, &packet(20, &[0; 20]))]);
        assert!(h.violated(Tag::Ssh));
        let rows = h.rows("ssh");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["version"], "-");
        assert_eq!(rows[0]["auth_attempts"], "0");
        assert_eq!(h.rows("weird")[0]["name"], "SSH_version_mismatch");
        assert_eq!(h.rows("weird")[0]["addl"], "SSH-2.0-s vs SSH-1.5-c");
    }

    #[test]
    fn lists_are_bounded() {
        let list = packet(20, &[[0; 20], [1; 20]].concat());
        let h = run(&[(O, b"SSH-2.0-c\n"), (R, b"SSH-2.0-s\n"), (O, &list)]);
        assert!(h.violated(Tag::Ssh));
        let r = &h.rows("weird")[0];
        assert_eq!(r["name"], "SSH_max_string_length_exceeded");
        assert_eq!(r["addl"], "16843009 > 2097152");
    }

    #[test]
    fn a_length_that_is_too_great_is_reported_once() {
        let h = run(&[
            (O, b"SSH-2.0-c\n"),
            (R, b"SSH-2.0-s\n"),
            (O, b"\x01\x01"),
            (O, b"\x01\x01"),
            (O, b"more"),
            (O, b"more"),
        ]);
        let rows = h.rows("weird");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["name"], "SSH_max_packet_length_exceeded");
    }

    #[test]
    fn later_lists_count_where_the_first_agree_on_nothing() {
        let lists = |kex, mac| kexinit([kex, "k", "c", "c", mac, mac, "none", "none"]);
        let h = run(&[
            (O, b"SSH-2.0-c\n"),
            (R, b"SSH-2.0-s\n"),
            (O, &packet(20, &lists("a", "m"))),
            (R, &packet(20, &lists("b", "n"))),
            (R, &packet(20, &lists("a", "m"))),
        ]);
        assert_eq!(h.rows("ssh")[0]["mac_alg"], "m");
    }

    #[test]
    fn clients_greet_with_their_version() {
        let h = run(&[(O, b"GET / HTTP/1.1\r\n")]);
        assert!(h.rows("ssh").is_empty());
        let violations = h.violations();
        let [(Tag::Ssh, reason)] = &violations[..] else { panic!("{violations:?}") };
        let reason = reason.strip_prefix(MALFORMED).unwrap();
        let text = "\nexpected pattern: \"SSH-.*\"\nactual data: \"GET / HTTP/1.1\"";
        assert_eq!(reason, format!(": string mismatch at /zeek/ssh-protocol.pac:45: {text}"));
    }
}
