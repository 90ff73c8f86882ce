//! Events of SSL, TLS and DTLS.

use gannet_base::Time;
use gannet_event::Connection;

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

/// Declares events that have the connection and the sender first.
macro_rules! tls_events {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $(<$lt:lifetime>)? = $event:literal $(, $opt_in:ident)? { $( $(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $param:literal ),* $(,)? }
    )*) => {
        gannet_event::events! {
            crate::events::module::SSL;

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
                ciphers: Vec<u16> = "ciphers",
                /// Compression methods that the client offers.
                comp_methods: Vec<u16> = "comp_methods",
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
        names: Vec<&'a [u8]> = "names",
    }

    /// Application protocols (RFC 7301).
    AlpnSeen<'a> = "ssl_extension_application_layer_protocol_negotiation" {
        /// Names of protocols.
        protocols: Vec<&'a [u8]> = "protocols",
    }

    /// Versions that a client offers, or the one that a server chose (RFC 8446 section 4.2.1).
    SupportedVersionsSeen = "ssl_extension_supported_versions" {
        /// Versions.
        versions: Vec<u16> = "versions",
    }

    /// Groups of key shares (RFC 8446 section 4.2.8).
    KeyShareSeen = "ssl_extension_key_share" {
        /// Groups.
        curves: Vec<u16> = "curves",
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
        desc: u64 = "desc",
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
