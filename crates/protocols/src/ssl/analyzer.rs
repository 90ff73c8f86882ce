//! Parses records of a stream: SSL 3.0 and TLS (RFC 8446 section 5.1), and the two-octet headers of
//! SSL 2.0.

use gannet_base::Dir;
use gannet_base::Time;

use super::decryption::Decryption;
use super::events::Alert;
use super::events::AlertCode;
use super::events::ClientHelloSeen;
use super::events::Octets;
use super::events::ServerHelloSeen;
use super::events::Ssl2Hello;
use super::events::Suites;
use super::message::Malformed;
use super::message::Reader;
use super::message::padded;
use super::names;
use super::record::Core;
use super::role::Role;
use super::role::content;
use crate::Analyze;
use crate::Context;
use crate::ScriptRequest;
use crate::Tag;

/// Number of bytes of a record that are needed to determine its type and length.
const HEADER: usize = 5;

/// Message types of SSL 2.0, offset to differ from TLS record types.
mod v2 {
    pub(super) const BASE: u16 = 300;
    pub(super) const ERROR: u16 = BASE;
    pub(super) const CLIENT_HELLO: u16 = BASE + 1;
    pub(super) const CLIENT_MASTER_KEY: u16 = BASE + 2;
    pub(super) const SERVER_HELLO: u16 = BASE + 4;
}

/// The header of a record.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// Type, as in [`content`] or [`v2`].
    kind: u16,
    /// Number of content bytes after the first five bytes of the record.
    len: usize,
    /// The last two of the first five bytes, which belong to the content in SSL 2.0.
    last_two: [u8; 2],
    /// Version.
    version: u16,
}

/// Parser state of one side.
#[derive(Debug, Default)]
struct Side {
    /// Beginning of an incomplete record, at most one record long.
    partial: Vec<u8>,
    /// Header of the incomplete record.
    header: Option<Header>,
    /// Number of bytes of an encrypted record that are to be skipped.
    to_skip: usize,
}

/// The analyzer of one SSL or TLS connection.
pub struct Analyzer {
    core: Core,
    sides: [Side; 2],
    /// Version of the first record that was not only an SSL 2.0 hello; determines the record
    /// format.
    records: Option<u16>,
    /// State of decryption, if scripts have secrets of the session.
    decryption: Option<Box<Decryption>>,
    /// Application data arrived before a script had a secret.
    is_late: bool,
    /// Parsing stopped.
    is_stopped: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            core: Core::new(Tag::Ssl),
            sides: <[Side; 2]>::default(),
            records: None,
            decryption: None,
            is_late: false,
            is_stopped: false,
        }
    }

    /// Whether the handshake was completed.
    pub(crate) fn is_established(&self) -> bool {
        self.core.is_established()
    }

    /// Resets the parser for another handshake in the same session.
    pub(crate) fn restart(&mut self) {
        let session = std::mem::take(&mut self.core.session);
        self.core = Core::new(Tag::Ssl);
        self.core.session = session;
        self.sides = <[Side; 2]>::default();
        self.records = None;
    }

    /// Stops parsing, because no more data is needed or parseable.
    fn stop(&mut self, cx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            self.sides = <[Side; 2]>::default();
            cx.done(Tag::Ssl);
        }
    }

    /// Parses a chunk record by record.
    fn chunk(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        let mut rest = data;
        loop {
            let side = &mut self.sides[from.index()];
            if side.to_skip > 0 {
                let n = side.to_skip.min(rest.len());
                side.to_skip -= n;
                rest = &rest[n..];
                if side.to_skip > 0 {
                    return Ok(());
                }
                if let Some(header) = side.header.take() {
                    self.core.record = (header.version, header.kind, header.len);
                    self.is_late |= header.kind == content::APPLICATION_DATA;
                }
                self.core.ciphertext(cx, from);
                continue;
            }
            let Some(header) = side.header else {
                let Some(five) = fill::<HEADER>(&mut side.partial, &mut rest) else {
                    return Ok(());
                };
                match self.header(cx, from, five) {
                    Some(header) => self.sides[from.index()].header = Some(header?),
                    None => return Ok(()),
                }
                continue;
            };
            let is_read = self.decryption.as_ref().is_some_and(|decryption| decryption.is_on());
            if self.core.encrypted[from.index()]
                && header.len > rest.len() + side.partial.len()
                && !is_read
            {
                // The record is not parsed: it is skipped, not stored.
                side.to_skip = header.len - side.partial.len();
                side.partial.clear();
                continue;
            }
            if side.partial.is_empty() {
                let Some((content, after)) = rest.split_at_checked(header.len) else {
                    side.partial.extend_from_slice(rest);
                    return Ok(());
                };
                rest = after;
                side.header = None;
                self.record(cx, from, header, content)?;
            } else {
                let n = rest.len().min(header.len.saturating_sub(side.partial.len()));
                side.partial.extend_from_slice(&rest[..n]);
                rest = &rest[n..];
                if side.partial.len() < header.len {
                    return Ok(());
                }
                side.header = None;
                let mut content = std::mem::take(&mut side.partial);
                let read = self.record(cx, from, header, &content);
                content.clear();
                self.sides[from.index()].partial = content;
                read?;
            }
        }
    }

    /// Parses the first bytes of a record; `None` if parsing stops.
    fn header(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        b: [u8; HEADER],
    ) -> Option<Result<Header, Malformed>> {
        if self.core.is_stopped {
            return None;
        }
        let version = u16::from_be_bytes([b[1], b[2]]);
        let is_tls = matches!(version, names::SSL3 | names::TLS10..=names::TLS12);
        match self.records {
            Some(names::SSL2) => {}
            Some(_) if is_tls => {}
            Some(_) => {
                self.core.fail(
                    cx,
                    &format!(
                        "Invalid version late in TLS connection. Packet reported version: {version}"
                    ),
                );
                return None;
            }
            None if b[0] & 0x80 != 0 => self.first_v2(cx, from, b)?,
            None if !is_tls => {
                let reason = format!("Invalid version in TLS connection. Version: {version}");
                self.core.fail(cx, &reason);
                return None;
            }
            None if !(20..=30).contains(&b[0]) => {
                let reason =
                    format!("Invalid type in TLS connection. Version: {version}, Type: {}", b[0]);
                self.core.fail(cx, &reason);
                return None;
            }
            None => self.records = Some(version),
        }
        let last_two = [b[3], b[4]];
        if matches!(self.records, Some(v) if v != names::SSL2) {
            let len = usize::from(u16::from_be_bytes(last_two));
            return Some(Ok(Header { kind: u16::from(b[0]), len, last_two, version }));
        }
        // SSL 2.0: a length of 15 bits, then the message type.
        let length = usize::from(u16::from_be_bytes([b[0] & 0x7f, b[1]]));
        Some(match length.checked_sub(HEADER - 2) {
            Some(len) => {
                Ok(Header { kind: v2::BASE + u16::from(b[2]), len, last_two, version: names::SSL2 })
            }
            None => Err(Malformed { field: "SSLRecord", need: HEADER, have: length + 2 }),
        })
    }

    /// Handles a first record in SSL 2.0 format. A client's hello may be followed by TLS (RFC 5246
    /// appendix E.2); a server's selects SSL 2.0.
    fn first_v2(&mut self, cx: &mut Context<'_>, from: Dir, b: [u8; HEADER]) -> Option<()> {
        if b[2] == 1 && from == Dir::Orig {
            let version = u16::from_be_bytes([b[3], b[4]]);
            if matches!(version, names::SSL2 | names::SSL3 | names::TLS10..=names::TLS12) {
                return Some(());
            }
            let reason = format!("Invalid version in SSL client hello. Version: {version}");
            self.core.fail(cx, &reason);
        } else if b[2] == 4 && b[4] < 2 && from == Dir::Resp {
            self.records = Some(names::SSL2);
            return Some(());
        } else {
            let reason = format!(
                "Invalid headers in SSL connection. Head1: {}, head2: {}, head3: {}",
                b[1], b[2], b[3]
            );
            self.core.fail(cx, &reason);
        }
        None
    }

    /// Handles a complete record.
    fn record(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        header: Header,
        mut data: &[u8],
    ) -> Result<(), Malformed> {
        self.core.record = (header.version, header.kind, data.len());
        while !data.is_empty() {
            if self.is_encrypted(from, header.kind) {
                self.core.ciphertext(cx, from);
                if header.kind == content::APPLICATION_DATA {
                    self.application_data(cx, from, header.version, data);
                }
                return Ok(());
            }
            if header.kind == content::CHANGE_CIPHER_SPEC {
                self.core.change_cipher_spec(cx, from);
                data = &data[1..];
                continue;
            }
            match header.kind {
                content::HANDSHAKE => {
                    self.core.handshake(cx, from, data);
                }
                v2::ERROR => {
                    let role = self.core.role(from);
                    cx.report(&mut self.core.session, |c| Alert {
                        c,
                        is_client: role == Role::Client,
                        level: header.last_two[0].into(),
                        desc: AlertCode(u16::from_be_bytes(header.last_two)),
                    });
                }
                v2::CLIENT_HELLO | v2::SERVER_HELLO | v2::CLIENT_MASTER_KEY => {
                    data = match header.kind {
                        v2::CLIENT_HELLO => self.v2_client_hello(cx, header, data)?,
                        v2::SERVER_HELLO => self.v2_server_hello(cx, from, data)?,
                        _ => self.v2_client_master_key(cx, data)?,
                    };
                    self.core.report_plaintext(cx, from);
                    continue;
                }
                kind => return self.core.plaintext(cx, from, kind, data),
            }
            self.core.report_plaintext(cx, from);
            return Ok(());
        }
        Ok(())
    }

    /// Handles an encrypted record of application data.
    fn application_data(&mut self, cx: &mut Context<'_>, from: Dir, version: u16, data: &[u8]) {
        let Some(decryption) = &mut self.decryption else {
            self.is_late = true;
            return;
        };
        let handshake = &self.core.handshake;
        let randoms = handshake.randoms.as_deref().copied().unwrap_or_default();
        let role = Role::of_sender(from, handshake.is_flipped);
        decryption.record(cx, role, handshake.cipher, &randoms, version, data);
    }

    /// Whether a record's content is encrypted. The first application data of a side is, unless the
    /// server chose a version in which a message announces encryption.
    fn is_encrypted(&mut self, from: Dir, kind: u16) -> bool {
        use names::{SSL2, SSL3, TLS10, TLS12};
        let encrypted = &mut self.core.encrypted[from.index()];
        if kind == content::APPLICATION_DATA
            && !matches!(self.core.handshake.version, Some(SSL2 | SSL3 | TLS10..=TLS12))
        {
            *encrypted = true;
        }
        *encrypted
    }

    /// Returns the data after the message.
    fn v2_client_hello<'a>(
        &mut self,
        cx: &mut Context<'_>,
        header: Header,
        data: &'a [u8],
    ) -> Result<&'a [u8], Malformed> {
        let mut r = Reader::new(data);
        let lengths = r.take(6, "V2ClientHello:chal_len")?;
        let len = |i: usize| usize::from(u16::from_be_bytes([lengths[i], lengths[i + 1]]));
        let mut parts = r.limited_to(len(0) + len(2) + len(4), "V2ClientHello")?;
        let ciphers = parts.array(len(0) / 3, 3, "V2ClientHello:ciphers")?;
        let session_id = parts.array(len(2), 1, "V2ClientHello:session_id")?;
        if self.core.check_version(cx, Role::Client, u16::from_be_bytes(header.last_two)) {
            self.core.confirm(cx);
        }
        cx.report(&mut self.core.session, |c| ClientHelloSeen {
            c,
            version: u16::from_be_bytes(header.last_two),
            record_version: 0,
            possible_ts: Time::ZERO,
            client_random: parts.rest(),
            session_id: padded(session_id),
            ciphers: Suites::Ssl2(ciphers),
            comp_methods: Octets(&[]),
        });
        cx.report(&mut self.core.session, |c| Ssl2Hello { c, is_client: true });
        Ok(r.rest())
    }

    /// Returns the data after the message.
    fn v2_server_hello<'a>(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        data: &'a [u8],
    ) -> Result<&'a [u8], Malformed> {
        let mut r = Reader::new(data);
        let head = r.take(8, "V2ServerHello:conn_id_len")?;
        let word = |i: usize| u16::from_be_bytes([head[i], head[i + 1]]);
        let version = word(0);
        let certificate = r.take(word(2).into(), "V2ServerHello:cert_data")?;
        let ciphers = r.array(usize::from(word(4)) / 3, 3, "V2ServerHello:ciphers")?;
        let connection = r.take(word(6).into(), "V2ServerHello:conn_id_data")?;
        if version != names::SSL2 {
            let reason = format!("Invalid version in SSL server hello. Version: {version}");
            self.core.fail(cx, &reason);
            return Ok(r.rest());
        }
        let cipher = match ciphers {
            [a, b, c, ..] => u32::from_be_bytes([0, *a, *b, *c]),
            _ => 0,
        };
        cx.report(&mut self.core.session, |c| ServerHelloSeen {
            c,
            version,
            record_version: 0,
            possible_ts: Time::ZERO,
            server_random: connection,
            session_id: padded(&[]),
            cipher,
            comp_method: 0,
        });
        cx.report(&mut self.core.session, |c| Ssl2Hello { c, is_client: false });
        self.core.certificate(cx, from, 0, certificate);
        Ok(r.rest())
    }

    /// Returns the data after the message.
    fn v2_client_master_key<'a>(
        &mut self,
        cx: &mut Context<'_>,
        data: &'a [u8],
    ) -> Result<&'a [u8], Malformed> {
        let mut r = Reader::new(data);
        let head = r.take(7, "V2ClientMasterKey:key_arg_len")?;
        let len = |i: usize| usize::from(u16::from_be_bytes([head[i], head[i + 1]]));
        r.take(len(1) + len(3) + len(5), "V2ClientMasterKey")?;
        self.core.encrypted = [true; 2];
        self.core.establish(cx);
        Ok(r.rest())
    }
}

/// The next `N` bytes of stored and new data, if available.
fn fill<const N: usize>(stored: &mut Vec<u8>, input: &mut &[u8]) -> Option<[u8; N]> {
    if stored.is_empty()
        && let Some((front, rest)) = input.split_first_chunk::<N>()
    {
        *input = rest;
        return Some(*front);
    }
    let n = input.len().min(N.saturating_sub(stored.len()));
    stored.extend_from_slice(&input[..n]);
    *input = &input[n..];
    let array = stored.as_slice().try_into().ok()?;
    stored.clear();
    Some(array)
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.is_stopped || cx.conn.is_partial() {
            return;
        }
        if let Err(e) = self.chunk(cx, from, data) {
            // The rest of the chunk is lost; the next chunk begins with a record.
            self.sides[from.index()] = Side::default();
            self.core.violation(cx, &e.to_string());
        }
        if self.core.is_stopped || self.core.is_done(cx) {
            self.stop(cx);
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, _from: Dir, _len: u64) {
        // Record boundaries are lost, and with them all later data.
        self.stop(cx);
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        // The row is written and remains the only one.
        self.restart();
        self.is_stopped = false;
        true
    }

    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        match request {
            ScriptRequest::Decrypt(secret) => {
                let is_late = self.is_late;
                let decryption = || Box::new(Decryption::new(is_late));
                self.decryption.get_or_insert_with(decryption).set(secret);
                true
            }
            ScriptRequest::Establish => {
                self.core.start_encryption();
                true
            }
            _ => {
                let inner = self.decryption.as_mut().and_then(|decryption| decryption.inner());
                inner.is_some_and(|inner| inner.handle_request(cx, request))
            }
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(inner) = self.decryption.as_mut().and_then(|decryption| decryption.inner()) {
            inner.finish(cx);
        }
        self.core.session.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::super::samples::*;
    use super::*;
    use crate::Request;
    use crate::testing::Harness;

    fn session(h: &mut Harness, exchange: &[(Dir, Vec<u8>)], cut: usize) {
        let mut a = Analyzer::new(&mut h.cx());
        for (from, bytes) in exchange {
            for part in bytes.chunks(cut) {
                a.stream(&mut h.cx(), *from, part);
            }
        }
        a.finish(&mut h.cx());
    }

    fn tls12() -> Vec<(Dir, Vec<u8>)> {
        let client = client_hello(0x0303, &[], &[server_name(b"example.com"), extension(35, b"")]);
        let alpn = extension(16, b"\x00\x03\x02h2");
        let answer = [
            message(2, &server_hello(0x0303, &[5; 32], 0xc02f, &[alpn])),
            message(12, &ecdhe()),
            message(14, b""),
        ];
        vec![
            (Dir::Orig, record(22, &message(1, &client))),
            (Dir::Resp, record(22, &answer.concat())),
            (Dir::Orig, record(22, &message(16, &[1; 33]))),
            (Dir::Orig, record(20, &[1])),
            (Dir::Orig, record(22, &[0xee; 40])),
            (Dir::Resp, record(22, &message(4, &[0, 0, 0, 9, 0, 1, 1]))),
            (Dir::Resp, record(20, &[1])),
            (Dir::Resp, record(22, &[0xee; 40])),
        ]
    }

    #[test]
    fn a_session_of_tls_1_2_in_any_cut() {
        for cut in [1, 2, 7, 40, 10_000] {
            let mut h = Harness::new(Proto::Tcp, 443);
            session(&mut h, &tls12(), cut);
            let rows = h.rows("ssl");
            assert_eq!(rows.len(), 1, "cut {cut}");
            let row = &rows[0];
            assert_eq!(row["version"], "TLSv12");
            assert_eq!(row["cipher"], "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
            assert_eq!(row["curve"], "secp256r1");
            assert_eq!(row["server_name"], "example.com");
            assert_eq!(row["resumed"], "F");
            assert_eq!(row["next_protocol"], "h2");
            assert_eq!(row["established"], "T");
            assert_eq!(row["ssl_history"], "CsknGIti");
            assert_eq!(row["cert_chain_fps"], "-");
            assert!(h.confirmed(Tag::Ssl) && !h.violated(Tag::Ssl));
            assert!(h.requests.iter().any(|r| matches!(r, Request::Done(Tag::Ssl))));
        }
    }

    #[test]
    fn what_follows_a_hello_of_ssl_2_is_another() {
        let mut hello = vec![0x80, 0, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 4];
        hello.extend([9; 16]);
        for (junk, violated) in [(&b""[..], false), (b"junk", true)] {
            let mut both = [&hello, junk].concat();
            both[1] = (both.len() - 2) as u8;
            let mut h = Harness::new(Proto::Tcp, 443);
            session(&mut h, &[(Dir::Orig, both)], 1000);
            assert_eq!(h.rows("ssl")[0]["ssl_history"], "C");
            assert!(h.confirmed(Tag::Ssl));
            assert_eq!(h.violated(Tag::Ssl), violated);
        }
    }

    #[test]
    fn messages_span_records() {
        let hello = message(2, &server_hello(0x0303, &[], 0x002f, &[]));
        let (front, back) = hello.split_at(9);
        let exchange = [
            (Dir::Orig, record(22, &message(1, &client_hello(0x0303, &[], &[])))),
            (Dir::Resp, [record(22, front), record(22, back)].concat()),
        ];
        let mut h = Harness::new(Proto::Tcp, 443);
        session(&mut h, &exchange, 1000);
        let row = &h.rows("ssl")[0];
        assert_eq!(row["cipher"], "TLS_RSA_WITH_AES_128_CBC_SHA");
        assert_eq!((row["ssl_history"].as_str(), row["established"].as_str()), ("Cs", "F"));
    }

    #[test]
    fn scripts_say_that_encryption_has_begun() {
        let mut h = Harness::new(Proto::Tcp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        let exchange = tls12();
        for (from, bytes) in &exchange[..2] {
            a.stream(&mut h.cx(), *from, bytes);
        }
        assert!(!a.is_established());
        assert!(a.handle_request(&mut h.cx(), ScriptRequest::Establish));
        assert!(a.is_established());
        // An encrypted record, which would be a violation as a handshake message.
        a.stream(&mut h.cx(), Dir::Orig, &record(22, &[0xee; 40]));
        assert!(!h.violated(Tag::Ssl));
    }

    #[test]
    fn tls_1_3_is_established_by_application_data() {
        let versions = extension(43, &[2, 3, 4]);
        let share = extension(51, &[0, 29, 0, 1, 0xaa]);
        let chosen = [extension(43, &[3, 4]), share, extension(41, &[0, 0])];
        let offered = extension(41, &[0, 7, 0, 1, 9, 0, 0, 0, 0, 0, 2, 1, 9]);
        let exchange = [
            (Dir::Orig, client_hello(0x0303, &[4; 32], &[versions, offered])),
            (Dir::Resp, server_hello(0x0303, &[4; 32], 0x1301, &chosen)),
        ]
        .map(|(from, body)| {
            let ty = if from == Dir::Orig { 1 } else { 2 };
            (from, record(22, &message(ty, &body)))
        });
        let mut h = Harness::new(Proto::Tcp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, bytes) in &exchange {
            a.stream(&mut h.cx(), *from, bytes);
        }
        a.stream(&mut h.cx(), Dir::Resp, &record(20, &[1]));
        a.stream(&mut h.cx(), Dir::Resp, &record(23, &[0; 500]));
        assert!(h.rows("ssl").is_empty());
        a.stream(&mut h.cx(), Dir::Orig, &record(20, &[1]));
        a.stream(&mut h.cx(), Dir::Orig, &record(23, &[0; 50]));
        let row = &h.rows("ssl")[0];
        assert_eq!(row["version"], "TLSv13");
        assert_eq!(row["curve"], "x25519");
        assert_eq!(row["resumed"], "T");
        assert_eq!(row["ssl_history"], "CsiI");
        assert_eq!(row["established"], "T");
    }

    #[test]
    fn other_protocols_are_refused_at_once() {
        let mut h = Harness::new(Proto::Tcp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"GET / HTTP/1.1\r\n\r\n");
        a.stream(&mut h.cx(), Dir::Orig, b"GET / HTTP/1.1\r\n\r\n");
        a.finish(&mut h.cx());
        let reasons: Vec<_> = h
            .requests
            .iter()
            .filter_map(|r| match r {
                Request::Violation { reason, .. } => Some(&reason[..]),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [&b"Invalid version in TLS connection. Version: 17748"[..]]);
        assert!(h.rows("ssl").is_empty());
    }

    #[test]
    fn a_broken_message_costs_its_record_only() {
        let mut broken = client_hello(0x0303, &[], &[extension(16, b"\x00\x09\x02h2")]);
        broken.push(0);
        let exchange =
            [(Dir::Orig, record(22, &message(1, &broken))), (Dir::Orig, record(21, &[2, 40]))];
        let mut h = Harness::new(Proto::Tcp, 443);
        session(&mut h, &exchange, 1000);
        assert!(h.violated(Tag::Ssl) && !h.confirmed(Tag::Ssl));
        // The invalid message did not count, and the row has the values before it.
        let row = &h.rows("ssl")[0];
        assert_eq!(row["ssl_history"], "L");
        assert_eq!(row["last_alert"], "handshake_failure");
    }

    #[test]
    fn ssl_2_hellos() {
        let mut client = vec![0x80, 0x1c, 1, 0, 2, 0, 3, 0, 0, 0, 16, 1, 0, 0x80];
        client.extend([6; 16]);
        let mut server = vec![0x80, 0x1e, 4, 0, 1, 0, 2, 0, 0, 0, 3, 0, 16, 1, 0, 0x80];
        server.extend([6; 16]);
        let mut key = vec![0x80, 0x0b, 2, 1, 0, 0x80, 0, 0, 0, 1, 0, 0, 9];
        key.extend([0x80, 0x03, 9, 9, 9]);
        let exchange = [(Dir::Orig, client), (Dir::Resp, server), (Dir::Orig, key)];
        let mut h = Harness::new(Proto::Tcp, 443);
        session(&mut h, &exchange, 1000);
        let row = &h.rows("ssl")[0];
        assert_eq!(row["version"], "SSLv2");
        assert_eq!(row["cipher"], "SSLv20_CK_RC4_128_WITH_MD5");
        assert_eq!(row["ssl_history"], "Cs");
        assert_eq!(row["established"], "T");
    }

    #[test]
    fn a_gap_ends_it() {
        let mut h = Harness::new(Proto::Tcp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        let exchange = tls12();
        a.stream(&mut h.cx(), Dir::Orig, &exchange[0].1);
        a.gap(&mut h.cx(), Dir::Resp, 10);
        a.stream(&mut h.cx(), Dir::Resp, &exchange[1].1);
        a.finish(&mut h.cx());
        assert_eq!(h.rows("ssl")[0]["ssl_history"], "C");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_in_any_cut_are_survived(
            prefix in 0_usize..8,
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            cut in 1_usize..64,
        ) {
            let mut exchange: Vec<_> = tls12().into_iter().take(prefix).collect();
            exchange.push((Dir::Orig, bytes.clone()));
            exchange.push((Dir::Resp, bytes));
            let mut h = Harness::new(Proto::Tcp, 443);
            session(&mut h, &exchange, cut);
            proptest::prop_assert!(h.rows("ssl").len() <= 1);
        }
    }
}
