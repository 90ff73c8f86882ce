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
    /// A signature algorithm, as TLS 1.2 writes one (RFC 5246 section 7.4.1.4.1).
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
        /// Label of the key.
        identity: &'a [u8] = "identity",
        /// Age of the key, obfuscated.
        age: u32 = "obfuscated_ticket_age",
    }
}

/// Cipher suites that a client offers.
#[derive(Clone, Copy, Debug)]
pub enum Suites<'a> {
    /// Numbers of two bytes.
    Tls(&'a [u8]),
    /// Numbers of three bytes.
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

/// Numbers of one byte.
#[derive(Clone, Copy, Debug)]
pub struct Octets<'a>(pub(super) &'a [u8]);

impl Arg for Octets<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        octets(self.0).pack(to);
    }
}

/// Numbers of a client's list, or the one that a server chose.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// The choice.
    One(u16),
    /// The list.
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
    /// The extension, which is sound.
    pub(super) data: &'a [u8],
}

impl Arg for Protocols<'_> {
    const TYPE: Type = Type::Vector(&Type::String);

    fn pack(&self, to: &mut Packer<'_>) {
        extension::alpn_names(self.data).unwrap_or_default().pack(to);
    }
}

/// The description of an alert. An error of SSL 2.0 has two bytes, of which events show the second.
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

/// A server's hello: what was read, and its bytes.
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

/// A certificate that was read.
#[derive(Clone, Copy, Debug)]
pub struct CertificateRef<'a>(pub(super) &'a Arc<Certificate>);

impl Arg for CertificateRef<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.0.fingerprint.as_str().pack(to);
    }
}

/// Declares events that have the connection and the sender first.
macro_rules! tls_events {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $(<$lt:lifetime>)? = $event:literal $(, $opt_in:ident)? { $( $(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $param:literal ),* $(,)? }
    )*) => {
        gannet_event::events! {
            crate::events::module_of(crate::Tag::Ssl);

            /// Both sides have changed to encryption, or resumed a session that has.
            pub struct Established = "ssl_established" {
                /// The connection.
                c: Connection = "c",
            }

            /// The client turns out to be the responder of the connection.
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
                /// The client's clock, if the first random bytes are that.
                possible_ts: Time = "possible_ts",
                /// Random bytes behind those.
                client_random: &'a [u8] = "client_random",
                /// Session to resume, filled up to 32 bytes with zeros.
                session_id: [u8; 32] = "session_id",
                /// Cipher suites that the client offers.
                ciphers: Suites<'a> = "ciphers",
                /// Compression methods that the client offers.
                comp_methods: Octets<'a> = "comp_methods",
            }

            /// A server answers a client's hello.
            pub struct ServerHelloSeen<'a> = "ssl_server_hello" {
                /// The connection.
                c: Connection = "c",
                /// Version in the message.
                version: u16 = "version",
                /// Version in the header of its record.
                record_version: u16 = "record_version",
                /// The server's clock, if the first random bytes are that.
                possible_ts: Time = "possible_ts",
                /// Random bytes, those of the clock among them.
                server_random: &'a [u8] = "server_random",
                /// Session that is resumed or begun, filled up to 32 bytes with zeros.
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

            /// A server gives the client a ticket to resume the session with (RFC 5077).
            pub struct SessionTicket<'a> = "ssl_session_ticket_handshake", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Seconds for which it is valid.
                ticket_lifetime_hint: u32 = "ticket_lifetime_hint",
                /// Ticket.
                ticket: &'a [u8] = "ticket",
            }

            /// A certificate came by, in TLS or in another protocol.
            pub struct X509Seen<'a> = "gannet::x509_seen", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Whether the client sent it.
                is_client: bool = "is_client",
                /// Whether it is its sender's own: the first of its chain.
                is_host: bool = "is_host",
                /// Its fingerprint.
                certificate: CertificateRef<'a> = "fingerprint",
                /// The fingerprint in bytes.
                digest: [u8; 32] = "digest",
            }

            /// The analyzer recognises the protocol.
            pub struct Recognized = "gannet::ssl_recognized", opt_in {
                /// The connection.
                c: Connection = "c",
            }

            /// The bytes of a session that lacks none are not the protocol.
            pub struct Broken = "gannet::ssl_broken", opt_in {
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
        /// Proofs that the client has the keys.
        binders: Vec<&'a [u8]> = "binders",
    }

    /// The pre-shared key that a server chose (RFC 8446 section 4.2.11).
    SelectedPskSeen = "ssl_extension_pre_shared_key_server_hello", opt_in {
        /// Its position in the client's list.
        selected_identity: u16 = "selected_identity",
    }

    /// A connection identifier of DTLS (RFC 9146).
    ConnectionIdSeen<'a> = "ssl_extension_connection_id", opt_in {
        /// Identifier.
        cid: &'a [u8] = "cid",
    }

    /// An encrypted hello of a client (RFC 9849).
    EncryptedClientHelloSeen<'a> = "ssl_extension_encrypted_client_hello", opt_in {
        /// Function that derives keys.
        kdf_id: u16 = "kdf_id",
        /// Cipher.
        aead_id: u16 = "aead_id",
        /// Configuration of the server's key.
        config_id: u64 = "config_id",
        /// Encapsulated key.
        enc: &'a [u8] = "enc",
        /// Length of the encrypted hello.
        payload_length: u64 = "payload_length",
    }

    /// A promise of a log of certificates (RFC 6962 section 3.3).
    TimestampSeen<'a> = "ssl_extension_signed_certificate_timestamp", opt_in {
        /// Version.
        version: u64 = "version",
        /// Identifier of the log.
        logid: &'a [u8] = "logid",
        /// Time of the promise: milliseconds since 1970.
        timestamp: u64 = "timestamp",
        /// Algorithm of the signature.
        algorithm: SignatureAndHash = "signature_and_hashalgorithm",
        /// Signature.
        signature: &'a [u8] = "signature",
    }

    /// A server asks for a certificate of the client (RFC 5246 section 7.4.4).
    CertificateRequested<'a> = "ssl_certificate_request", opt_in {
        /// Kinds of certificates.
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

    /// An encrypted record was read.
    EncryptedData = "ssl_encrypted_data", opt_in {
        /// Version in its header.
        record_version: u16 = "record_version",
        /// Type of its content, as its header states it.
        content_type: u16 = "content_type",
        /// Length of its content.
        length: u64 = "length",
    }

    /// An encrypted record of TLS 1.3 that probably belongs to the handshake.
    ProbableHandshake = "ssl_probable_encrypted_handshake_message", opt_in {
        /// Length of its content.
        length: u64 = "length",
    }

    /// A handshake message was read.
    HandshakeMessage = "ssl_handshake_message" {
        /// Type.
        msg_type: u64 = "msg_type",
        /// Length of its body.
        length: u64 = "length",
    }

    /// A record in clear text was read.
    PlaintextData = "ssl_plaintext_data" {
        /// Version in its header.
        record_version: u16 = "record_version",
        /// Type of its content.
        content_type: u16 = "content_type",
        /// Length of its content.
        length: u64 = "length",
    }

    /// A side announces that it changes to encryption.
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
        /// Length of the payload as the message claims it.
        payload_length: u16 = "payload_length",
        /// Payload and padding.
        payload: &'a [u8] = "payload",
    }

    /// The body of a client's hello is about to be read.
    ClientHelloBody<'a> = "gannet::ssl_client_hello_body", opt_in {
        /// How it came: `tcp`, `quic` or `dtls`.
        carrier: Carrier = "carrier",
        /// The message without its header.
        body: &'a [u8] = "body",
    }

    /// The body of a server's hello was read, up to its extensions.
    ServerHelloBody<'a> = "gannet::ssl_server_hello_body", opt_in {
        /// The message without its header.
        hello: HelloRead<'a> = "body",
    }

    /// A hello of SSL 2.0, which is no handshake message, was read.
    Ssl2Hello = "gannet::ssl2_hello", opt_in {}

    /// A certificate of a side's chain.
    ChainCertificate<'a> = "gannet::ssl_certificate", opt_in {
        /// It, if it can be read: its fingerprint.
        certificate: Option<CertificateRef<'a>> = "fingerprint",
    }
}

/// The clock that the first of 32 random bytes may be, and those behind it.
pub(super) fn clock(random: &[u8]) -> (Time, &[u8]) {
    match random.split_first_chunk() {
        Some((clock, rest)) => (Time::from_secs(i64::from(u32::from_be_bytes(*clock))), rest),
        None => (Time::ZERO, random),
    }
}

/// Numbers of two bytes.
pub(super) fn words(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks::<2>().0.iter().map(|word| u16::from_be_bytes(*word)).collect()
}

/// Numbers of one byte.
pub(super) fn octets(bytes: &[u8]) -> Vec<u16> {
    bytes.iter().copied().map(u16::from).collect()
}
