//! The handshake protocol (RFC 5246 section 7.4, RFC 8446 section 4): reassembles messages that
//! span records, and reports their contents.

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_event::FilePart;
use gannet_files::FileStart;

use super::ciphers::KeyExchange;
use super::ciphers::key_exchange;
use super::events::*;
use super::extension;
use super::extension::ServerNames;
use super::fingerprint::Carrier;
use super::message;
use super::message::ClientHello;
use super::message::Malformed;
use super::message::Reader;
use super::message::ServerHello;
use super::message::kind;
use super::message::padded;
use super::names;
use super::raise;
use super::raise::algorithm;
use super::record::Core;
use super::role::Role;
use super::seen::report_certificate;
use crate::Context;
use crate::support::BINPAC;

/// Maximum number of stored bytes of an incomplete message. Its length field could announce 16 MB.
const MAX_MESSAGE: usize = 10 << 20;

impl Core {
    /// Delivers bytes of the handshake protocol, which may contain any number of messages, also
    /// incomplete ones. Returns whether they are valid.
    pub(super) fn handshake(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> bool {
        let mut buffered = std::mem::take(&mut self.handshake.partial[from.index()]);
        let read = if buffered.is_empty() {
            let read = self.messages(cx, from, data);
            if let Ok(used) = read {
                buffered.extend_from_slice(&data[used..]);
            }
            read
        } else {
            buffered.extend_from_slice(data);
            let read = self.messages(cx, from, &buffered);
            if let Ok(used) = read {
                buffered.drain(..used);
            }
            read
        };
        let broken = match read {
            Ok(_) if buffered.len() <= MAX_MESSAGE => None,
            Ok(_) => {
                Some(format!("{BINPAC}flowbuffer allocation failed: expand past max capacity"))
            }
            Err(e) => Some(e.to_string()),
        };
        if let Some(reason) = &broken {
            // The rest of the data is lost, too.
            buffered = Vec::new();
            self.violation(cx, reason);
        }
        self.handshake.partial[from.index()] = buffered;
        broken.is_none()
    }

    /// Handles a message of a datagram: `header` was rebuilt, and `data` may be shorter or longer
    /// than the header's length; missing data follows in the next datagram.
    pub(super) fn handshake_parts(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        header: [u8; 4],
        data: &[u8],
    ) {
        let [ty, a, b, c] = header;
        let is_complete = u32::from_be_bytes([0, a, b, c]) as usize == data.len();
        if !is_complete || !self.handshake.partial[from.index()].is_empty() {
            if self.handshake(cx, from, &header) {
                self.handshake(cx, from, data);
            }
        } else if let Err(e) = self.message(cx, from, ty, data) {
            self.violation(cx, &e.to_string());
        }
    }

    /// Handles all complete messages and returns the number of bytes that they take.
    fn messages(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        input: &[u8],
    ) -> Result<usize, Malformed> {
        let mut r = Reader::new(input);
        while let [ty, a, b, c, rest @ ..] = r.rest() {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some((body, rest)) = rest.split_at_checked(len) else { break };
            self.message(cx, from, *ty, body)?;
            r = Reader::new(rest);
        }
        Ok(input.len() - r.rest().len())
    }

    /// Handles one complete message.
    pub(super) fn message(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        ty: u8,
        body: &[u8],
    ) -> Result<(), Malformed> {
        match ty {
            kind::HELLO_REQUEST => self.set_role(cx, from, Role::Server),
            kind::CLIENT_HELLO => self.client_hello(cx, from, body)?,
            kind::SERVER_HELLO => self.server_hello(cx, from, body)?,
            kind::HELLO_VERIFY_REQUEST => message::check_hello_verify_request(body)?,
            kind::SESSION_TICKET => {
                let (ticket_lifetime_hint, ticket) = message::session_ticket(body)?;
                cx.raise(|c| SessionTicket { c, ticket_lifetime_hint, ticket });
            }
            kind::CERTIFICATE => {
                for (i, der) in message::certificates(body)?.into_iter().enumerate() {
                    self.certificate(cx, from, i, der);
                }
            }
            kind::SERVER_KEY_EXCHANGE => self.server_key_exchange(cx, body)?,
            kind::CERTIFICATE_REQUEST => {
                let form = self.handshake.signature_form();
                message::check_certificate_request(body, form)?;
                let is_client = self.role(from) == Role::Client;
                raise::certificate_request(cx, is_client, body, form);
            }
            kind::CERTIFICATE_STATUS => self.certificate_status(cx, from, body)?,
            kind::CLIENT_KEY_EXCHANGE => raise::client_key(cx, self.handshake.cipher, body),
            kind::SERVER_HELLO_DONE
            | kind::CERTIFICATE_VERIFY
            | kind::FINISHED
            | kind::CERTIFICATE_URL => {}
            _ => {
                let side = match from {
                    Dir::Orig => "originator",
                    Dir::Resp => "responder",
                };
                self.violation(cx, &format!("unknown handshake message ({ty}) from {side}"));
            }
        }
        let role = self.role(from);
        cx.report(&mut self.session, |c| HandshakeMessage {
            c,
            is_client: role == Role::Client,
            msg_type: ty.into(),
            length: body.len() as u64,
        });
        Ok(())
    }

    /// Exchanges the roles if the sender's is wrong: the client opens the session, even if the
    /// connection seems to be in the other direction.
    fn set_role(&mut self, cx: &mut Context<'_>, from: Dir, role: Role) {
        if self.role(from) == role {
            return;
        }
        let back = self.handshake.is_flipped;
        self.handshake.is_flipped = !back;
        cx.report(&mut self.session, |c| Flipped { c });
        if back && !std::mem::replace(&mut self.handshake.reported_unclear, true) {
            cx.weird("SSL_unclear_connection_direction", "", Some(self.tag.name()));
        }
    }

    /// Whether a version is a valid one; otherwise parsing stops.
    pub(super) fn check_version(&mut self, cx: &mut Context<'_>, role: Role, v: u16) -> bool {
        use names::{DTLS10, DTLS12, DTLS13, SSL2, SSL3, TLS10, TLS13};
        let known = matches!(v, SSL2 | SSL3 | TLS10..=TLS13 | DTLS10 | DTLS12 | DTLS13);
        if known || v >> 8 == 0x7f {
            return true;
        }
        let side = match role {
            Role::Client => "client",
            Role::Server => "server",
        };
        self.fail(cx, &format!("unsupported {side} SSL version 0x{v:04x}"));
        false
    }

    fn client_hello(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        body: &[u8],
    ) -> Result<(), Malformed> {
        ClientHello::version(body)?;
        self.set_role(cx, from, Role::Client);
        let mut hello = ClientHello::parse(body, |v| matches!(v, names::DTLS10 | names::DTLS12))?;
        let carrier = match (cx.conn.proto, hello.version) {
            (_, names::DTLS10 | names::DTLS12) => Carrier::Dtls,
            (Proto::Udp, _) => Carrier::Quic,
            _ => Carrier::Tcp,
        };
        cx.report(&mut self.session, |c| ClientHelloBody { c, is_client: true, carrier, body });
        while !hello.extensions.is_empty() {
            let (ty, data) = extension::next(&mut hello.extensions)?;
            if !data.is_empty() {
                self.client_extension(cx, ty, data)?;
            }
            let rows = &mut self.session;
            cx.report(rows, |c| ExtensionSeen { c, is_client: true, code: ty, val: data });
        }
        if self.check_version(cx, Role::Client, hello.version) {
            self.confirm(cx);
        }
        self.keep_random(cx, Role::Client, hello.random);
        let (record_version, ..) = self.record;
        cx.report(&mut self.session, |c| {
            let (possible_ts, client_random) = clock(hello.random);
            ClientHelloSeen {
                c,
                version: hello.version,
                record_version,
                possible_ts,
                client_random,
                session_id: padded(hello.session_id),
                ciphers: Suites::Tls(hello.ciphers),
                comp_methods: Octets(hello.compressions),
            }
        });
        Ok(())
    }

    /// Stores the random bytes of a hello if scripts may need them for decryption.
    fn keep_random(&mut self, cx: &Context<'_>, role: Role, random: &[u8]) {
        if let Ok(random) = random.try_into()
            && cx.env.is_scripted()
        {
            let randoms = self.handshake.randoms.get_or_insert_default();
            match role {
                Role::Client => randoms.client = random,
                Role::Server => randoms.server = random,
            }
        }
    }

    fn client_extension(
        &mut self,
        cx: &mut Context<'_>,
        ty: u16,
        data: &[u8],
    ) -> Result<(), Malformed> {
        match ty {
            extension::ty::SERVER_NAME => self.server_name(cx, Role::Client, data)?,
            extension::ty::ALPN => {
                let protocols = Protocols { first: extension::alpn(data)?, data };
                cx.raise(|c| AlpnSeen { c, is_client: true, protocols });
            }
            _ => {
                extension::check(ty, data, true)?;
                raise_extension(cx, true, ty, data);
                self.check_client_hello_encryption(cx, ty, data);
            }
        }
        Ok(())
    }

    fn server_hello(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        body: &[u8],
    ) -> Result<(), Malformed> {
        ServerHello::version(body)?;
        self.set_role(cx, from, Role::Server);
        let mut hello = ServerHello::parse(body)?;
        cx.report(&mut self.session, |c| ServerHelloBody {
            c,
            is_client: false,
            hello: HelloRead { hello: &hello, body },
        });
        while !hello.extensions.is_empty() {
            let (ty, data) = extension::next(&mut hello.extensions)?;
            if !data.is_empty() {
                self.server_extension(cx, ty, data)?;
            }
            let rows = &mut self.session;
            cx.report(rows, |c| ExtensionSeen { c, is_client: false, code: ty, val: data });
        }
        self.check_version(cx, Role::Server, hello.version);
        let (record_version, ..) = self.record;
        cx.report(&mut self.session, |c| {
            let (possible_ts, _) = clock(hello.random);
            ServerHelloSeen {
                c,
                version: hello.version,
                record_version,
                possible_ts,
                server_random: hello.random,
                session_id: padded(hello.session_id),
                cipher: hello.cipher.into(),
                comp_method: hello.compression.into(),
            }
        });
        self.keep_random(cx, Role::Server, hello.random);
        self.handshake.cipher = Some(hello.cipher);
        self.handshake.choose(hello.version);
        Ok(())
    }

    fn server_extension(
        &mut self,
        cx: &mut Context<'_>,
        ty: u16,
        data: &[u8],
    ) -> Result<(), Malformed> {
        match ty {
            extension::ty::SERVER_NAME => self.server_name(cx, Role::Server, data)?,
            extension::ty::ALPN => {
                let protocols = Protocols { first: extension::alpn(data)?, data };
                cx.report(&mut self.session, |c| AlpnSeen { c, is_client: false, protocols });
            }
            extension::ty::SUPPORTED_VERSIONS => {
                let version = Reader::new(data).u16("OneSupportedVersion")?;
                self.handshake.choose(version);
                cx.report(&mut self.session, |c| SupportedVersionsSeen {
                    c,
                    is_client: false,
                    versions: Numbers::One(version),
                });
            }
            extension::ty::KEY_SHARE | extension::ty::KEY_SHARE_OLD => {
                let group = extension::server_key_share(data)?;
                cx.report(&mut self.session, |c| KeyShareSeen {
                    c,
                    is_client: false,
                    curves: Numbers::One(group),
                });
            }
            _ => {
                extension::check(ty, data, false)?;
                raise_extension(cx, false, ty, data);
                self.check_client_hello_encryption(cx, ty, data);
            }
        }
        Ok(())
    }

    fn server_name(
        &mut self,
        cx: &mut Context<'_>,
        role: Role,
        data: &[u8],
    ) -> Result<(), Malformed> {
        let list = ServerNames::parse(data)?;
        for ty in list.unknown {
            cx.weird("ssl_ext_unknown_server_name_type", &ty.to_string(), Some(self.tag.name()));
        }
        cx.report(&mut self.session, |c| ServerNameSeen {
            c,
            is_client: role == Role::Client,
            names: Hosts(&list.hosts),
        });
        Ok(())
    }

    /// The inner form of an encrypted client hello is never in clear text.
    fn check_client_hello_encryption(&mut self, cx: &mut Context<'_>, ty: u16, data: &[u8]) {
        if ty == extension::ty::ENCRYPTED_CLIENT_HELLO && data[0] != 0 {
            cx.weird("ssl_unexpected_inner_encrypted_client_hello", "", Some(self.tag.name()));
        }
    }

    /// Handles certificate `i` of a chain.
    pub(super) fn certificate(&mut self, cx: &mut Context<'_>, from: Dir, i: usize, der: &[u8]) {
        if der.is_empty() {
            cx.weird("zero_length_certificate", "", Some(self.tag.name()));
            return;
        }
        let role = self.role(from);
        let certificate =
            report_certificate(cx, self.tag.name(), der, i == 0, role == Role::Client, i as u32);
        let certificate = certificate.as_ref().map(CertificateRef);
        let is_client = role == Role::Client;
        cx.report(&mut self.session, |c| ChainCertificate { c, is_client, certificate });
    }

    fn server_key_exchange(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Result<(), Malformed> {
        let Some(cipher) = self.handshake.cipher else { return Ok(()) };
        let form = Some(self.handshake.signature_form());
        let curve = match key_exchange(u32::from(cipher)) {
            KeyExchange::Ecdhe => message::ecdh_parameters(body, form)?,
            KeyExchange::EcdhAnon => message::ecdh_parameters(body, None)?,
            KeyExchange::Dhe => message::dh_parameters(body, form).map(|()| None)?,
            KeyExchange::DhAnon => message::dh_parameters(body, None).map(|()| None)?,
            KeyExchange::Other => None,
        };
        if let Some(curve) = curve {
            let point = body.get(4..4 + usize::from(body[3])).unwrap_or_default();
            cx.report(&mut self.session, |c| EcdhServerParams { c, curve, point });
            if key_exchange(u32::from(cipher)) == KeyExchange::Ecdhe {
                raise::server_signature(cx, body.get(4 + point.len()..), form);
            }
        } else if matches!(key_exchange(u32::from(cipher)), KeyExchange::Dhe | KeyExchange::DhAnon)
            && let Ok([p, q, ys]) = message::dh_values(body)
        {
            cx.raise(|c| DhServerParams { c, p, q, ys });
            if key_exchange(u32::from(cipher)) == KeyExchange::Dhe {
                raise::server_signature(cx, body.get(6 + p.len() + q.len() + ys.len()..), form);
            }
        }
        Ok(())
    }

    /// Handles a stapled OCSP response, which is a file.
    fn certificate_status(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        body: &[u8],
    ) -> Result<(), Malformed> {
        const OCSP: u8 = 1;
        let (ty, response) = message::certificate_status(body)?;
        if response.is_empty() {
            cx.weird("SSL_zero_length_stapled_OCSP_message", "", Some(self.tag.name()));
        } else if ty == OCSP {
            let file = cx.file_start(FileStart {
                source: self.tag.name(),
                from: Dir::Resp,
                mime_type: Some("application/ocsp-response"),
                part: FilePart::OcspResponse,
                ..FileStart::default()
            });
            cx.file_data(file, response);
            let is_client = self.role(from) == Role::Client;
            cx.raise(|c| StapledOcsp { c, is_client, response });
            cx.file_end(file);
        }
        Ok(())
    }
}

/// Raises the event of an extension, which was checked before.
fn raise_extension(cx: &mut Context<'_>, is_client: bool, ty: u16, data: &[u8]) {
    let word_list = || words(data.get(2..).unwrap_or_default());
    match ty {
        extension::ty::SIGNATURE_ALGORITHMS_CERT => {
            cx.raise(|c| SignatureAlgorithmsCertSeen {
                c,
                is_client,
                signature_schemes: word_list(),
            });
        }
        extension::ty::SUPPORTED_VERSIONS if is_client => {
            let versions = || words(data.get(1..).unwrap_or_default());
            cx.raise(|c| SupportedVersionsSeen {
                c,
                is_client,
                versions: Numbers::Many(versions()),
            });
        }
        extension::ty::KEY_SHARE | extension::ty::KEY_SHARE_OLD if is_client => {
            let curves = || extension::client_key_shares(data).unwrap_or_default();
            cx.raise(|c| KeyShareSeen { c, is_client, curves: Numbers::Many(curves()) });
        }
        extension::ty::SUPPORTED_GROUPS => {
            cx.raise(|c| EllipticCurvesSeen { c, is_client, curves: word_list() });
        }
        extension::ty::EC_POINT_FORMATS => {
            let formats = || octets(data.get(1..).unwrap_or_default());
            cx.raise(|c| PointFormatsSeen { c, is_client, point_formats: formats() });
        }
        extension::ty::SIGNATURE_ALGORITHMS => {
            cx.raise(|c| {
                let signature_algorithms = word_list().into_iter().map(algorithm).collect();
                SignatureAlgorithmsSeen { c, is_client, signature_algorithms }
            });
        }
        extension::ty::PSK_KEY_EXCHANGE_MODES => {
            let modes = || octets(data.get(1..).unwrap_or_default());
            cx.raise(|c| PskModesSeen { c, is_client, modes: modes() });
        }
        _ => raise::rare_extension(cx, is_client, ty, data),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Analyzer;
    use super::super::samples::*;
    use super::*;
    use crate::Analyze;
    use crate::Tag;
    use crate::testing::Harness;

    #[test]
    fn a_message_may_claim_any_length() {
        let hello = record(22, &message(1, &client_hello(0x0303, &[], &[])));
        let mut h = Harness::new(Proto::Tcp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &hello);
        a.stream(&mut h.cx(), Dir::Resp, &record(22, &[0xea, 0xff, 0xff, 0xff, 1, 2, 3]));
        // The message is stored up to the limit.
        let more = record(22, &[0; 1 << 15]);
        for _ in 0..320 {
            assert!(!h.violated(Tag::Ssl));
            a.stream(&mut h.cx(), Dir::Resp, &more);
        }
        assert!(h.violated(Tag::Ssl));
    }

    #[test]
    fn names_are_reported_unchanged() {
        let names = [&[0, 0, 3][..], b"a\xffb", &[0, 0, 0], &[0, 0, 1], b"c"].concat();
        let list = [&[0, names.len() as u8][..], &names].concat();
        let hello = client_hello(0x0303, &[], &[extension(0, &list)]);
        let mut h = Harness::new(Proto::Tcp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &record(22, &message(1, &hello)));
        a.finish(&mut h.cx());
        assert_eq!(h.rows("ssl")[0]["server_name"], "a\\xffb");
        assert_eq!(h.rows("weird")[0]["name"], "SSL_many_server_names");
        assert_eq!(h.rows("weird")[0]["addl"], "[a\\xffb, , c]");
    }
}
