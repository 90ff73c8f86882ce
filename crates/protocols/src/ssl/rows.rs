//! The row of ssl.log, and the state of a session from which it is built.

use std::sync::Arc;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_files::x509::Certificate;
use gannet_log::Extra;
use gannet_log::Vector;

use super::certificates::with_row;
use super::events::*;
use super::extension;
use super::fingerprint;
use super::fingerprint::Carrier;
use super::message::ServerHello;
use super::message::is_retry_request;
use super::message::kind;
use super::names;
use super::role::Role;
use super::role::content;
use crate::Context;
use crate::OnEvent;
use crate::env::Fingerprints as Wanted;
use crate::policy::known::PresentedCertificate;

gannet_log::row! {
    /// SSL, TLS and DTLS sessions.
    pub struct SslRow<'a> = "ssl" {
        /// Time at which the session was first seen.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its endpoints.
        id: ConnId = "id",
        /// Version that the server chose.
        version: Option<&'a str> = "version",
        /// Cipher suite that the server chose.
        cipher: Option<&'a str> = "cipher",
        /// Group that the server chose for an elliptic-curve key exchange.
        curve: Option<&'a str> = "curve",
        /// Host name that the client connects to (SNI).
        server_name: Option<&'a [u8]> = "server_name",
        /// Whether an earlier session was resumed.
        resumed: bool = "resumed",
        /// Last alert seen in clear text.
        last_alert: Option<&'a str> = "last_alert",
        /// Application protocol that the server chose (ALPN).
        next_protocol: Option<&'a [u8]> = "next_protocol",
        /// Whether both sides sent encrypted records.
        established: bool = "established",
        /// One letter per message, in upper case for the client: `C` client hello, `S` server
        /// hello, `J` hello retry request, `X` certificate, `K` server key exchange, `N` server
        /// hello done, `G` client key exchange, `I` change cipher spec, `L` alert, and so on; `^`
        /// if the roles are reversed.
        ssl_history: &'a [u8] = "ssl_history",
        /// SHA-256 of the server's certificates, in the order of the chain.
        cert_chain_fps: Option<Vector<&'a str>> = "cert_chain_fps",
        /// SHA-256 of the client's certificates, in the order of the chain.
        client_cert_chain_fps: Option<Vector<&'a str>> = "client_cert_chain_fps",
        /// Whether the server's certificate matches the requested name.
        sni_matches_cert: Option<bool> = "sni_matches_cert",
        /// JA3 fingerprint of the client's hello.
        ja3: Extra<Option<&'a str>> = "ja3",
        /// JA3S fingerprint of the server's hello.
        ja3s: Extra<Option<&'a str>> = "ja3s",
        /// JA4 fingerprint of the client's hello.
        ja4: Extra<Option<&'a str>> = "ja4",
    }
}

/// As in Zeek, a history of exactly this length is full. A change of roles is still added, and
/// letters after it are added again.
pub(super) const MAX_HISTORY: usize = 100;
/// Maximum number of letters in a history: one more than are logged.
const MAX_LETTERS: usize = 4097;

/// Maximum number of certificates of a chain that are stored: one more than are logged, and the
/// first one, which may be unparseable.
const MAX_LINKS: usize = 102;

/// A certificate of a chain; `None` if it cannot be parsed.
pub(super) type Link = Option<Arc<Certificate>>;

/// State of a session so far.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Time at which it was first seen; before, nothing is recorded.
    since: Option<Time>,
    version: Option<u16>,
    cipher: Option<u32>,
    curve: Option<u16>,
    server_name: Option<Vec<u8>>,
    session_id: Option<[u8; 32]>,
    resumed: bool,
    /// The client sent a session ticket and no session id.
    ticket_without_id: bool,
    client_key_exchange: bool,
    /// The client offered a pre-shared key.
    client_psk: bool,
    retry_request: bool,
    last_alert: Option<u16>,
    next_protocol: Option<Vec<u8>>,
    established: bool,
    logged: bool,
    history: Vec<u8>,
    /// JA3, JA3S and JA4, if their columns are selected.
    fingerprints_ja: Option<Box<[Option<String>; 3]>>,
    /// Chains of server and client, once a certificate was seen.
    chains: Option<[Vec<Link>; 2]>,
}

impl Session {
    /// Notes that the protocol was seen, so that a row will be written.
    fn touch(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// Adds a letter to the history.
    fn note(&mut self, cx: &mut Context<'_>, role: Role, letter: u8) {
        if self.history.len() == MAX_HISTORY || self.history.len() >= MAX_LETTERS {
            return;
        }
        self.history.push(match role {
            Role::Client => letter.to_ascii_uppercase(),
            Role::Server => letter,
        });
        if self.history.len() == MAX_HISTORY {
            cx.weird("SSL_max_ssl_history_length_reached", "100", Some("SSL"));
            cx.conn.note_limit();
        }
    }

    /// Computes the fingerprints of a client's hello, if it is the first one.
    fn set_client_fingerprints(&mut self, selected: Wanted, carrier: Carrier, body: &[u8]) {
        if !selected.ja3 && !selected.ja4 {
            return;
        }
        let Ok(client) = fingerprint::Client::parse(body, carrier == Carrier::Dtls) else { return };
        let [ja3, _, ja4] = &mut **self.fingerprints_ja.get_or_insert_default();
        if selected.ja3 {
            ja3.get_or_insert_with(|| client.ja3());
        }
        if selected.ja4 {
            ja4.get_or_insert_with(|| client.ja4(carrier));
        }
    }

    /// Computes the fingerprint of a server's hello; a later one replaces it, since the first may
    /// be a HelloRetryRequest.
    fn set_server_fingerprint(&mut self, hello: &ServerHello<'_>) {
        self.fingerprints_ja.get_or_insert_default()[1] = Some(fingerprint::ja3s(hello));
    }

    /// Notes that originator and responder are reversed.
    fn flipped(&mut self, now: Time) {
        self.touch(now);
        if self.history.len() < MAX_LETTERS {
            self.history.push(b'^');
        }
    }

    /// Notes a client hello; its extensions were noted before.
    fn client_hello(&mut self, now: Time, id: [u8; 32]) {
        self.touch(now);
        if id != [0; 32] {
            self.session_id = Some(id);
            self.ticket_without_id = false;
        }
    }

    /// Notes a server hello; its extensions were noted before.
    fn server_hello(&mut self, now: Time, hello: &ServerHelloSeen<'_>) {
        self.touch(now);
        let version = *self.version.get_or_insert(hello.version);
        self.cipher = Some(hello.cipher);
        self.retry_request |= is_retry_request(hello.server_random);
        if self.session_id == Some(hello.session_id)
            && !names::is_draft13(version)
            && version != names::TLS13
        {
            self.resumed = true;
        }
    }

    /// Notes the server's group.
    fn chosen_curve(&mut self, now: Time, curve: u16) {
        self.touch(now);
        self.curve = Some(curve);
    }

    /// Notes the host names that the client connects to.
    fn server_names(&mut self, cx: &mut Context<'_>, hosts: &[&[u8]]) {
        if let Some(first) = hosts.first() {
            self.server_name = Some(first.to_vec());
        }
        if hosts.len() > 1 {
            let all = [b"[", &hosts.join(&b", "[..])[..], b"]"].concat();
            cx.weird_bytes("SSL_many_server_names", &all, None);
        }
    }

    /// Notes any extension, after its contents were noted.
    fn extension(&mut self, now: Time, role: Role, ty: u16, len: usize) {
        self.touch(now);
        match (role, ty) {
            (Role::Client, extension::ty::SESSION_TICKET) if len > 0 => {
                self.ticket_without_id = true;
            }
            (Role::Client, extension::ty::PRE_SHARED_KEY) => self.client_psk = true,
            (Role::Server, extension::ty::PRE_SHARED_KEY) if self.client_psk => self.resumed = true,
            _ => {}
        }
    }

    /// Notes any handshake message, after its contents were noted.
    fn message(&mut self, cx: &mut Context<'_>, role: Role, ty: u8) {
        self.touch(cx.now);
        if role == Role::Client && ty == kind::CLIENT_KEY_EXCHANGE {
            self.client_key_exchange = true;
        }
        let letter = match ty {
            kind::HELLO_REQUEST => b'h',
            kind::CLIENT_HELLO => b'c',
            kind::SERVER_HELLO if std::mem::take(&mut self.retry_request) => b'j',
            kind::SERVER_HELLO => b's',
            kind::HELLO_VERIFY_REQUEST => b'v',
            kind::SESSION_TICKET => b't',
            kind::END_OF_EARLY_DATA => b'e',
            kind::HELLO_RETRY_REQUEST => b'j',
            kind::ENCRYPTED_EXTENSIONS => b'o',
            kind::CERTIFICATE => b'x',
            kind::SERVER_KEY_EXCHANGE => b'k',
            kind::CERTIFICATE_REQUEST => b'r',
            kind::SERVER_HELLO_DONE => b'n',
            kind::CERTIFICATE_VERIFY => b'y',
            kind::CLIENT_KEY_EXCHANGE => b'g',
            kind::FINISHED => b'f',
            kind::CERTIFICATE_URL => b'w',
            kind::CERTIFICATE_STATUS => b'u',
            kind::SUPPLEMENTAL_DATA => b'a',
            kind::KEY_UPDATE => b'p',
            kind::MESSAGE_HASH => b'm',
            _ => b'z',
        };
        self.note(cx, role, letter);
    }

    /// Notes a ChangeCipherSpec.
    fn change_cipher_spec(&mut self, cx: &mut Context<'_>, role: Role) {
        self.touch(cx.now);
        self.note(cx, role, b'i');
        if role == Role::Client && self.ticket_without_id && !self.client_key_exchange {
            self.resumed = true;
        }
    }

    /// Notes an alert in clear text.
    fn alert(&mut self, cx: &mut Context<'_>, role: Role, description: u16) {
        self.touch(cx.now);
        self.note(cx, role, b'l');
        self.last_alert = Some(description);
    }

    /// Notes a heartbeat in clear text.
    fn heartbeat(&mut self, cx: &mut Context<'_>, role: Role) {
        self.touch(cx.now);
        self.note(cx, role, b'b');
    }

    /// Notes a record in clear text of any type.
    fn plaintext(&mut self, cx: &mut Context<'_>, application_data: bool) {
        self.touch(cx.now);
        if application_data && self.version.is_some() && !self.established {
            cx.weird("ssl_early_application_data", "", None);
        }
    }

    /// Adds a certificate to the chain of `role`.
    fn certificate(&mut self, role: Role, certificate: Link) {
        // Certificates before the session are ignored.
        if self.since.is_some() {
            let chain = &mut self.chains.get_or_insert_default()[role as usize];
            // The first is that of the sender, whether it could be parsed or not.
            if chain.is_empty() || certificate.is_some() && chain.len() < MAX_LINKS {
                chain.push(certificate);
            }
        }
    }

    /// Writes the row: both sides are encrypted.
    fn establish(&mut self, cx: &mut Context<'_>) {
        self.touch(cx.now);
        self.established = true;
        if let Some(leaf) = self.leaf()
            && let Some(mut policy) = cx.env.policy()
        {
            let seen = PresentedCertificate {
                host: cx.conn.id.resp_h,
                port: cx.conn.id.resp_p,
                fingerprint: &leaf.fingerprint,
                subject: &leaf.subject,
                issuer: &leaf.issuer,
                serial: &leaf.serial,
            };
            policy.certificate(cx.now, &seen);
        }
        self.log(cx);
    }

    /// Writes the row at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.log(cx);
    }

    /// Writes the row, unless it was written or there is nothing to log.
    fn log(&mut self, cx: &mut Context<'_>) {
        let Some(ts) = self.since else { return };
        if std::mem::replace(&mut self.logged, true) {
            return;
        }
        let version = self.version.map(names::version);
        let cipher = self.cipher.map(names::cipher);
        let curve = self.curve.map(names::curve);
        let last_alert = self.last_alert.map(names::alert);
        let chain = |role: Role| self.chains.as_ref().map(|c| fingerprints(&c[role as usize]));
        let selected = cx.env.fingerprints;
        let fingerprints_ja = self.fingerprints_ja.as_deref();
        let print =
            |selected: bool, i: usize| Extra(selected.then(|| fingerprints_ja?[i].as_deref()));
        let row = SslRow {
            ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            version: version.as_deref(),
            cipher: cipher.as_deref(),
            curve: curve.as_deref(),
            server_name: self.server_name.as_deref(),
            resumed: self.resumed,
            last_alert: last_alert.as_deref(),
            next_protocol: self.next_protocol.as_deref(),
            established: self.established,
            ssl_history: &self.history,
            cert_chain_fps: chain(Role::Server),
            client_cert_chain_fps: chain(Role::Client),
            sni_matches_cert: self.name_matches(),
            ja3: print(selected.ja3, 0),
            ja3s: print(selected.ja3s, 1),
            ja4: print(selected.ja4, 2),
        };
        cx.log(&row);
    }

    /// Whether the server's own certificate is valid for the requested name, if both are known.
    fn name_matches(&self) -> Option<bool> {
        Some(self.leaf()?.matches_host(self.server_name.as_ref()?))
    }

    /// The server's own certificate, if it could be parsed.
    fn leaf(&self) -> Option<&Certificate> {
        self.chains.as_ref()?[Role::Server as usize].first()?.as_deref()
    }
}

fn role(is_client: bool) -> Role {
    if is_client { Role::Client } else { Role::Server }
}

/// Implements the handlers: each event with what the session does.
macro_rules! on_event {
    ($($event:ty, |$session:ident, $cx:ident, $e:ident| $do:expr;)*) => { $(
        impl OnEvent<$event> for Session {
            #[inline]
            fn on_event(&mut self, $cx: &mut Context<'_>, $e: &$event) {
                let $session = self;
                $do;
            }
        }
    )* };
}

on_event! {
    Recognized, |s, cx, _e| s.touch(cx.now);
    Violated, |s, cx, _e| s.log(cx);
    Flipped, |s, cx, _e| s.flipped(cx.now);
    ClientHelloBody<'_>, |s, cx, e| s.set_client_fingerprints(cx.env.fingerprints, e.carrier, e.body);
    ServerHelloBody<'_>, |s, cx, e| {
        if cx.env.fingerprints.ja3s {
            s.set_server_fingerprint(e.hello.hello);
        }
    };
    ClientHelloSeen<'_>, |s, cx, e| s.client_hello(cx.now, e.session_id);
    ServerHelloSeen<'_>, |s, cx, e| s.server_hello(cx.now, e);
    Ssl2Hello, |s, cx, e| {
        let letter = if e.is_client { b'c' } else { b's' };
        s.note(cx, role(e.is_client), letter);
    };
    ExtensionSeen<'_>, |s, cx, e| s.extension(cx.now, role(e.is_client), e.code, e.val.len());
    ServerNameSeen<'_>, |s, cx, e| {
        s.touch(cx.now);
        if e.is_client {
            s.server_names(cx, e.names.0);
        }
    };
    AlpnSeen<'_>, |s, _cx, e| {
        // The server's choice.
        if let Some(name) = e.protocols.first.filter(|_| !e.is_client) {
            s.next_protocol = Some(name.to_vec());
        }
    };
    SupportedVersionsSeen, |s, cx, e| {
        // It overrides the version field of the hello.
        if let Numbers::One(version) = e.versions {
            s.touch(cx.now);
            s.version = Some(version);
        }
    };
    KeyShareSeen, |s, cx, e| {
        if let Numbers::One(group) = e.curves {
            s.chosen_curve(cx.now, group);
        }
    };
    EcdhServerParams<'_>, |s, cx, e| s.chosen_curve(cx.now, e.curve);
    ChainCertificate<'_>, |s, _cx, e| {
        s.certificate(role(e.is_client), e.certificate.map(|c| Arc::clone(c.0)));
    };
    HandshakeMessage, |s, cx, e| s.message(cx, role(e.is_client), e.msg_type as u8);
    ChangeCipherSpec, |s, cx, e| s.change_cipher_spec(cx, role(e.is_client));
    Alert, |s, cx, e| s.alert(cx, role(e.is_client), e.desc.0);
    Heartbeat<'_>, |s, cx, e| s.heartbeat(cx, role(e.is_client));
    PlaintextData, |s, cx, e| s.plaintext(cx, e.content_type == content::APPLICATION_DATA);
    Established, |s, cx, _e| s.establish(cx);
}

fn fingerprints(chain: &[Link]) -> Vector<&str> {
    Vector(chain.iter().flatten().map(|c| c.fingerprint.as_str()).collect())
}

/// Writes the rows of certificates, whose state belongs to the shard.
pub(super) struct CertificateRows;

impl OnEvent<X509Seen<'_>> for CertificateRows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &X509Seen<'_>) {
        let (env, now) = (&mut *cx.env, cx.now);
        if env.certificates.rows.is_to_be_logged(&env.logs, now, event) {
            let X509Seen { is_host, is_client, .. } = *event;
            with_row(now, event.certificate.0, is_host, is_client, |row| cx.log(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_of_a_chain_is_kept_than_is_logged() {
        let mut session = Session::default();
        session.touch(Time::from_secs(1));
        let read = || Some(Arc::new(Certificate::default()));
        for link in [None, None, read(), None].into_iter().chain((0..200).map(|_| read())) {
            session.certificate(Role::Server, link);
        }
        let [server, client] = session.chains.as_ref().unwrap();
        assert!(server[0].is_none() && client.is_empty());
        assert_eq!((server.len(), fingerprints(server).0.len()), (MAX_LINKS, 101));
        assert!(session.leaf().is_none());
    }
}
