//! Events of QUIC.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Quic);

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Version of QUIC.
        version: u32 = "version",
        /// Destination connection id.
        dcid: &'a [u8] = "dcid",
    } {
        /// An Initial packet.
        pub struct InitialPacket<'a> = "QUIC::initial_packet" {
            /// Source connection id.
            scid: &'a [u8] = "scid",
        }

        /// A Retry packet: the server requests a new Initial packet with a token.
        pub struct RetryPacket<'a> = "QUIC::retry_packet" {
            /// Source connection id.
            scid: &'a [u8] = "scid",
            /// Token that the client repeats.
            retry_token: &'a [u8] = "retry_token",
            /// Integrity tag.
            retry_integrity_tag: &'a [u8] = "retry_integrity_tag",
        }

        /// A Handshake packet.
        pub struct HandshakePacket<'a> = "QUIC::handshake_packet" {
            /// Source connection id.
            scid: &'a [u8] = "scid",
        }

        /// A 0-RTT packet.
        pub struct ZeroRttPacket<'a> = "QUIC::zero_rtt_packet" {
            /// Source connection id.
            scid: &'a [u8] = "scid",
        }

        /// A frame in an Initial packet closes the connection.
        pub struct ConnectionCloseFrame<'a> = "QUIC::connection_close_frame" {
            /// Source connection id.
            scid: &'a [u8] = "scid",
            /// Error code.
            error_code: u64 = "error_code",
            /// Reason phrase.
            reason_phrase: &'a [u8] = "reason_phrase",
        }

        /// A packet of an unknown version.
        pub struct UnhandledVersion<'a> = "QUIC::unhandled_version" {
            /// Source connection id.
            scid: &'a [u8] = "scid",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// Bytes that are not a QUIC packet, or that cannot be parsed.
        pub struct DiscardedPacket = "QUIC::discarded_packet" {
            /// Number of packets that were decrypted before.
            total_decrypted: u64 = "total_decrypted",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A side sent a number of packets with a short header.
        pub struct ShortHeaderPacketThresholdCrossed = "QUIC::short_header_packet_threshold_crossed" {
            /// Whether the originator sent them.
            is_orig: bool = "is_orig",
            /// Number of packets.
            threshold: u64 = "threshold",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client names the host that it connects to (SNI).
        pub struct HelloServerName<'a> = "gannet::quic_server_name", opt_in {
            /// The first host of the extension.
            name: &'a [u8] = "name",
        }

        /// A client offers application protocols (ALPN).
        pub struct HelloProtocols<'a> = "gannet::quic_protocols", opt_in {
            /// The protocols.
            protocols: &'a Vec<&'a [u8]> = "protocols",
        }

        /// A complete TLS hello was parsed.
        pub struct HelloRead = "gannet::quic_hello", opt_in {
            /// Whether it is the client's.
            is_orig: bool = "is_orig",
        }
    }
}
