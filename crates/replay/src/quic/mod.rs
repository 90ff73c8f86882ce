//! DNS over QUIC (RFC 9250), based on the state machine of `quinn-proto`, which has neither sockets
//! nor a clock.
//!
//! Each query has a stream: its length, the message with an id of 0 (§4.2.1), the end of the
//! stream; the answer has the same form. [`Session`] is a connection with a socket of its own,
//! [`Client`] is shared by the connections of one client. The server side is in `serve`.

mod session;

use std::sync::Arc;

use quinn_proto::EndpointConfig;
use quinn_proto::TransportConfig;
use quinn_proto::VarInt;

pub(crate) use session::Client;
pub(crate) use session::Session;

/// The ALPN token (§4.1.1).
pub(crate) const ALPN: &[u8] = b"doq";
/// Error codes for closed connections and streams (§4.3).
pub(crate) const NO_ERROR: VarInt = VarInt::from_u32(0);
pub(crate) const PROTOCOL_ERROR: VarInt = VarInt::from_u32(2);
pub(crate) const UNSPECIFIED_ERROR: VarInt = VarInt::from_u32(5);
pub(crate) const REQUEST_CANCELLED: VarInt = VarInt::from_u32(3);
/// Size of the length field before each message, in bytes (§4.2).
pub(crate) const LENGTH: usize = 2;
/// Maximum number of bytes accepted on a stream: one message, and one more for servers that answer
/// twice.
pub(crate) const MAX_STREAM_BYTES: usize = 2 * (LENGTH + 65_535);
/// Maximum size of a received datagram in bytes, announced to the peer.
pub(crate) const DATAGRAM: usize = 1472;

/// Transport configuration of connections, for client and server.
pub(crate) fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(MAX_STREAM_BYTES as u32))
        // Datagrams of 1,200 bytes hold nearly every message, so MTU discovery is not needed.
        .mtu_discovery_config(None)
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(false);
    transport
}

/// Endpoint configuration, for client and server.
pub(crate) fn endpoint() -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    // The size is valid: QUIC requires at least 1,200.
    config.max_udp_payload_size(DATAGRAM as u16).map(|_| ()).unwrap_or_default();
    Arc::new(config)
}
