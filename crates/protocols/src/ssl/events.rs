//! Events of SSL, TLS and DTLS.

use std::sync::Arc;

use gannet_base::Time;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;
use gannet_files::x509::Certificate;

use super::extension;
use super::fingerprint::Carrier;
use super::message::ServerHello;

gannet_event::record! {
    /// A signature algorithm as in TLS 1.2 (RFC 5246 section 7.4.1.4.1).
    #[derive(Clone, Copy, Debug)]
    pub struct SignatureAndHash = "SSL::SignatureAndHashAlgorithm" {
        /// Hash algorithm.
        hash: u64 = "HashAlgorithm",
        /// Signature algorithm.
        signature: u64 = "SignatureAlgorithm",
    }
}

gannet_event::record! {
    /// A pre-shared key that a client offers (RFC 8446 section 4.2.11).
    #[derive(Clone, Copy, Debug)]
    pub struct PskIdentity<'a> = "SSL::PSKIdentity" {
        /// Identity of the key.
        identity: &'a [u8] = "identity",
        /// Obfuscated age of the key.
        age: u32 = "obfuscated_ticket_age",
    }
}

/// Cipher suites that a client offers.
#[derive(Clone, Copy, Debug)]
pub enum Suites<'a> {
    /// Two bytes per suite.
    Tls(&'a [u8]),
    /// Three bytes per suite.
    Ssl2(&'a [u8]),
}

impl Arg for Suites<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        match self {
            Self::Tls(bytes) => words(bytes).pack(to),
            Self::Ssl2(bytes) => {
                let all = bytes.as_chunks::<3>().0;
                to.list(all.len());
                all.iter().for_each(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c]).pack(to));
            }
        }
    }
}

/// One-byte numbers, encoded as a vector of counts.
#[derive(Clone, Copy, Debug)]
pub struct Octets<'a>(pub(super) &'a [u8]);

impl Arg for Octets<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        octets(self.0).pack(to);
    }
}

/// Numbers that a client offers, or the one that a server chose.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// The chosen one.
    One(u16),
    /// The offered ones.
    Many(Vec<u16>),
}

impl Arg for Numbers {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        match self {
            Self::One(number) => {
                to.list(1);
                number.pack(to);
            }
            Self::Many(numbers) => numbers.pack(to),
        }
    }
}

/// Names of hosts.
#[derive(Clone, Copy, Debug)]
pub struct Hosts<'a>(pub(super) &'a [&'a [u8]]);

impl Arg for Hosts<'_> {
    const TYPE: Type = Type::Vector(&Type::String);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|name| name.pack(to));
    }
}

/// Names of application protocols.
#[derive(Clone, Copy, Debug)]
pub struct Protocols<'a> {
    pub(super) first: Option<&'a [u8]>,
    /// Content of the extension, which was checked.
    pub(super) data: &'a [u8],
}

impl Arg for Protocols<'_> {
    const TYPE: Type = Type::Vector(&Type::String);

    fn pack(&self, to: &mut Packer<'_>) {
        extension::alpn_names(self.data).unwrap_or_default().pack(to);
    }
}

/// The description of an alert. An error of SSL 2.0 has two bytes, of which events contain the
/// second.
#[derive(Clone, Copy, Debug)]
pub struct AlertCode(pub(super) u16);

impl Arg for AlertCode {
    const TYPE: Type = Type::Count;

    fn pack(&self, to: &mut Packer<'_>) {
        (self.0 & 0xff).pack(to);
    }
}

impl Arg for Carrier {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let name = match self {
            Self::Tcp => "tcp",
            Self::Quic => "quic",
            Self::Dtls => "dtls",
        };
        name.pack(to);
    }
}

/// A ServerHello: its parsed fields, and its body.
#[derive(Clone, Copy, Debug)]
pub struct HelloRead<'a> {
    pub(super) hello: &'a ServerHello<'a>,
    pub(super) body: &'a [u8],
}

impl Arg for HelloRead<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.body.pack(to);
    }
}

/// A parsed certificate.
#[derive(Clone, Copy, Debug)]
pub struct CertificateRef<'a>(pub(super) &'a Arc<Certificate>);

impl Arg for CertificateRef<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.0.fingerprint.as_str().pack(to);
    }
}

/// Declares events that begin with the connection and the sender.
macro_rules! tls_events {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $(<$lt:lifetime>)? = $event:literal $(, $opt_in:ident)? { $( $(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $param:literal ),* $(,)? }
    )*) => {
        gannet_event::events! {
            crate::events::module_of(crate::Tag::Ssl);

            /// Both sides have switched to encryption, or resumed an encrypted session.
            pub struct Established = "ssl_established" {
                /// The connection.
                c: Connection = "c",
            }

            /// The client is the responder of the connection.
            pub struct Flipped = "ssl_connection_flipped" {
                /// The connection.
                c: Connection = "c",
            }

            /// A client opens a handshake.
            pub struct ClientHelloSeen<'a> = "ssl_client_hello" {
                /// The connection.
                c: Connection = "c",
                /// Version in the message.
                version: u16 = "version",
                /// Version in the header of its record.
                record_version: u16 = "record_version",
                /// The client's clock, if the first random bytes are a timestamp.
                possible_ts: Time = "possible_ts",
                /// The other random bytes.
                client_random: &'a [u8] = "client_random",
                /// Session to resume, padded with zeros to 32 bytes.
                session_id: [u8; 32] = "session_id",
                /// Cipher suites that the client offers.
                ciphers: Suites<'a> = "ciphers",
                /// Compression methods that the client offers.
                comp_methods: Octets<'a> = "comp_methods",
            }

            /// A server replies to a client's hello.
            pub struct ServerHelloSeen<'a> = "ssl_server_hello" {
                /// The connection.
                c: Connection = "c",
                /// Version in the message.
                version: u16 = "version",
                /// Version in the header of its record.
                record_version: u16 = "record_version",
                /// The server's clock, if the first random bytes are a timestamp.
                possible_ts: Time = "possible_ts",
                /// Random bytes, including those of the timestamp.
                server_random: &'a [u8] = "server_random",
                /// Session that is resumed or started, padded with zeros to 32 bytes.
                session_id: [u8; 32] = "session_id",
                /// Chosen cipher suite.
                cipher: u32 = "cipher",
                /// Chosen compression method.
                comp_method: u64 = "comp_method",
            }

            /// A server sends elliptic-curve parameters of a key exchange.
            pub struct EcdhServerParams<'a> = "ssl_ecdh_server_params" {
                /// The connection.
                c: Connection = "c",
                /// Named curve.
                curve: u16 = "curve",
                /// Public point.
                point: &'a [u8] = "point",
            }

            /// A server sends Diffie-Hellman parameters of a key exchange.
            pub struct DhServerParams<'a> = "ssl_dh_server_params" {
                /// The connection.
                c: Connection = "c",
                /// Prime.
                p: &'a [u8] = "p",
                /// Generator.
                q: &'a [u8] = "q",
                /// Public value.
                ys: &'a [u8] = "Ys",
            }

            /// The signature of a server's key exchange.
            pub struct ServerSignature<'a> = "ssl_server_signature", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Its algorithm; 256 for both parts before TLS 1.2, whose signatures do not state it.
                algorithm: SignatureAndHash = "signature_and_hashalgorithm",
                /// Signature.
                signature: &'a [u8] = "signature",
            }

            /// A client sends the encrypted secret of an RSA key exchange.
            pub struct RsaClientPms<'a> = "ssl_rsa_client_pms", opt_in {
                /// The connection.
                c: Connection = "c",
                /// The body of the message.
                pms: &'a [u8] = "pms",
            }

            /// A client sends its part of a Diffie-Hellman key exchange.
            pub struct DhClientParams<'a> = "ssl_dh_client_params", opt_in {
                /// The connection.
                c: Connection = "c",
                /// The body of the message.
                yc: &'a [u8] = "Yc",
            }

            /// A client sends its part of an elliptic-curve key exchange.
            pub struct EcdhClientParams<'a> = "ssl_ecdh_client_params", opt_in {
                /// The connection.
                c: Connection = "c",
                /// The body of the message.
                point: &'a [u8] = "point",
            }

            /// A server sends a ticket for resuming the session (RFC 5077).
            pub struct SessionTicket<'a> = "ssl_session_ticket_handshake", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Lifetime in seconds.
                ticket_lifetime_hint: u32 = "ticket_lifetime_hint",
                /// The ticket.
                ticket: &'a [u8] = "ticket",
            }

            /// A certificate was seen, in TLS or another protocol.
            pub struct X509Seen<'a> = "gannet::x509_seen", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Whether the client sent it.
                is_client: bool = "is_client",
                /// Whether it is the first certificate of its chain, that of the sender.
                is_host: bool = "is_host",
                /// The certificate, by its fingerprint.
                certificate: CertificateRef<'a> = "fingerprint",
                /// The fingerprint in binary form.
                digest: [u8; 32] = "digest",
            }

            /// The analyzer confirmed the protocol.
            pub struct Recognized = "gannet::ssl_recognized", opt_in {
                /// The connection.
                c: Connection = "c",
            }

            /// A session without missing bytes violated the protocol.
            pub struct Violated = "gannet::ssl_broken", opt_in {
                /// The connection.
                c: Connection = "c",
            }

            $(
                $(#[doc = $doc])*
                pub struct $name $(<$lt>)? = $event $(, $opt_in)? {
                    /// The connection.
                    c: Connection = "c",
                    /// Whether the client sent it.
                    is_client: bool = "is_client",
                    $( $(#[doc = $fdoc])* $field: $ty = $param, )*
                }
            )*
        }
    };
}

tls_events! {
    /// An extension of a hello.
    ExtensionSeen<'a> = "ssl_extension" {
        /// Type.
        code: u16 = "code",
        /// Content.
        val: &'a [u8] = "val",
    }

    /// Names of servers (RFC 6066 section 3).
    ServerNameSeen<'a> = "ssl_extension_server_name" {
        /// Names.
        names: Hosts<'a> = "names",
    }

    /// Application protocols (RFC 7301).
    AlpnSeen<'a> = "ssl_extension_application_layer_protocol_negotiation" {
        /// Names of protocols.
        protocols: Protocols<'a> = "protocols",
    }

    /// Versions that a client offers, or the one that a server chose (RFC 8446 section 4.2.1).
    SupportedVersionsSeen = "ssl_extension_supported_versions" {
        /// Versions.
        versions: Numbers = "versions",
    }

    /// Groups of key shares (RFC 8446 section 4.2.8).
    KeyShareSeen = "ssl_extension_key_share" {
        /// Groups.
        curves: Numbers = "curves",
    }

    /// Groups that a side supports (RFC 8422 section 5.1.1).
    EllipticCurvesSeen = "ssl_extension_elliptic_curves", opt_in {
        /// Groups.
        curves: Vec<u16> = "curves",
    }

    /// Formats of points that a side supports (RFC 8422 section 5.1.2).
    PointFormatsSeen = "ssl_extension_ec_point_formats", opt_in {
        /// Formats.
        point_formats: Vec<u16> = "point_formats",
    }

    /// Signature algorithms that a side supports (RFC 5246 section 7.4.1.4.1).
    SignatureAlgorithmsSeen = "ssl_extension_signature_algorithm", opt_in {
        /// Algorithms.
        signature_algorithms: Vec<SignatureAndHash> = "signature_algorithms",
    }

    /// Modes of using pre-shared keys (RFC 8446 section 4.2.9).
    PskModesSeen = "ssl_extension_psk_key_exchange_modes", opt_in {
        /// Modes.
        modes: Vec<u16> = "modes",
    }

    /// Signature algorithms of certificates that a side supports (RFC 8446 section 4.2.3).
    SignatureAlgorithmsCertSeen = "ssl_extension_signature_algorithms_cert", opt_in {
        /// Algorithms.
        signature_schemes: Vec<u16> = "signature_schemes",
    }

    /// Pre-shared keys that a client offers (RFC 8446 section 4.2.11).
    OfferedPsksSeen<'a> = "ssl_extension_pre_shared_key_client_hello", opt_in {
        /// Keys.
        identities: Vec<PskIdentity<'a>> = "identities",
        /// Binders: proofs that the client has the keys.
        binders: Vec<&'a [u8]> = "binders",
    }

    /// The pre-shared key that a server chose (RFC 8446 section 4.2.11).
    SelectedPskSeen = "ssl_extension_pre_shared_key_server_hello", opt_in {
        /// Index in the client's list.
        selected_identity: u16 = "selected_identity",
    }

    /// A connection identifier of DTLS (RFC 9146).
    ConnectionIdSeen<'a> = "ssl_extension_connection_id", opt_in {
        /// Identifier.
        cid: &'a [u8] = "cid",
    }

    /// An encrypted client hello (RFC 9849).
    EncryptedClientHelloSeen<'a> = "ssl_extension_encrypted_client_hello", opt_in {
        /// Key derivation function.
        kdf_id: u16 = "kdf_id",
        /// AEAD algorithm.
        aead_id: u16 = "aead_id",
        /// Identifier of the server's key configuration.
        config_id: u64 = "config_id",
        /// Encapsulated key.
        enc: &'a [u8] = "enc",
        /// Length of the encrypted hello, in bytes.
        payload_length: u64 = "payload_length",
    }

    /// A signed certificate timestamp of a certificate log (RFC 6962 section 3.3).
    TimestampSeen<'a> = "ssl_extension_signed_certificate_timestamp", opt_in {
        /// Version.
        version: u64 = "version",
        /// Identifier of the log.
        logid: &'a [u8] = "logid",
        /// Time of the signature, in milliseconds since 1970.
        timestamp: u64 = "timestamp",
        /// Algorithm of the signature.
        algorithm: SignatureAndHash = "signature_and_hashalgorithm",
        /// Signature.
        signature: &'a [u8] = "signature",
    }

    /// A server requests a certificate of the client (RFC 5246 section 7.4.4).
    CertificateRequested<'a> = "ssl_certificate_request", opt_in {
        /// Types of certificates.
        certificate_types: Vec<u16> = "certificate_types",
        /// Signature algorithms.
        algorithms: Vec<SignatureAndHash> = "supported_signature_algorithms",
        /// Issuers, each a name in DER.
        authorities: Vec<&'a [u8]> = "certificate_authorities",
    }

    /// A server sends the OCSP response of its certificate (RFC 6066 section 8).
    StapledOcsp<'a> = "ssl_stapled_ocsp", opt_in {
        /// Response.
        response: &'a [u8] = "response",
    }

    /// An encrypted record.
    EncryptedData = "ssl_encrypted_data", opt_in {
        /// Version in its header.
        record_version: u16 = "record_version",
        /// Content type according to the header.
        content_type: u16 = "content_type",
        /// Length of its content.
        length: u64 = "length",
    }

    /// An encrypted record of TLS 1.3 that probably belongs to the handshake.
    ProbableHandshake = "ssl_probable_encrypted_handshake_message", opt_in {
        /// Length of its content.
        length: u64 = "length",
    }

    /// A handshake message.
    HandshakeMessage = "ssl_handshake_message" {
        /// Type.
        msg_type: u64 = "msg_type",
        /// Length of its body.
        length: u64 = "length",
    }

    /// A record in clear text.
    PlaintextData = "ssl_plaintext_data" {
        /// Version in its header.
        record_version: u16 = "record_version",
        /// Type of its content.
        content_type: u16 = "content_type",
        /// Length of its content.
        length: u64 = "length",
    }

    /// A side announces the switch to encryption.
    ChangeCipherSpec = "ssl_change_cipher_spec" {}

    /// An alert in clear text.
    Alert = "ssl_alert" {
        /// Level: 1 warning, 2 fatal.
        level: u64 = "level",
        /// Description, by its number.
        desc: AlertCode = "desc",
    }

    /// A heartbeat in clear text (RFC 6520).
    Heartbeat<'a> = "ssl_heartbeat" {
        /// Length of the record's content.
        length: u64 = "length",
        /// Type: 1 request, 2 response.
        heartbeat_type: u64 = "heartbeat_type",
        /// Length of the payload as announced in the message.
        payload_length: u16 = "payload_length",
        /// Payload and padding.
        payload: &'a [u8] = "payload",
    }

    /// The body of a client's hello, before it is parsed.
    ClientHelloBody<'a> = "gannet::ssl_client_hello_body", opt_in {
        /// Transport: `tcp`, `quic` or `dtls`.
        carrier: Carrier = "carrier",
        /// The message without its header.
        body: &'a [u8] = "body",
    }

    /// The body of a server's hello, after it was parsed up to its extensions.
    ServerHelloBody<'a> = "gannet::ssl_server_hello_body", opt_in {
        /// The message without its header.
        hello: HelloRead<'a> = "body",
    }

    /// A hello of SSL 2.0, which is not a handshake message.
    Ssl2Hello = "gannet::ssl2_hello", opt_in {}

    /// A certificate of a side's chain.
    ChainCertificate<'a> = "gannet::ssl_certificate", opt_in {
        /// The certificate, by its fingerprint; unset if it cannot be parsed.
        certificate: Option<CertificateRef<'a>> = "fingerprint",
    }
}

/// Splits 32 random bytes into a possible timestamp and the others.
pub(super) fn clock(random: &[u8]) -> (Time, &[u8]) {
    match random.split_first_chunk() {
        Some((clock, rest)) => (Time::from_secs(i64::from(u32::from_be_bytes(*clock))), rest),
        None => (Time::ZERO, random),
    }
}

/// Decodes two-byte numbers.
pub(super) fn words(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks::<2>().0.iter().map(|word| u16::from_be_bytes(*word)).collect()
}

/// Decodes one-byte numbers.
pub(super) fn octets(bytes: &[u8]) -> Vec<u16> {
    bytes.iter().copied().map(u16::from).collect()
}
