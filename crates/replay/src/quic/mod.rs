//! DNS over QUIC (RFC 9250), on the state machine of `quinn-proto`, which has no sockets and no clock of
//! its own.
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

/// What both sides must agree on (§4.1.1).
pub(crate) const ALPN: &[u8] = b"doq";
/// Codes that say why something ends (§4.3).
pub(crate) const NO_ERROR: VarInt = VarInt::from_u32(0);
pub(crate) const PROTOCOL_ERROR: VarInt = VarInt::from_u32(2);
pub(crate) const UNSPECIFIED_ERROR: VarInt = VarInt::from_u32(5);
pub(crate) const REQUEST_CANCELLED: VarInt = VarInt::from_u32(3);
/// Bytes of the length before each message (§4.2).
pub(crate) const LENGTH: usize = 2;
/// Bytes that a stream may bring: one message, and one more for servers that answer twice.
pub(crate) const MOST: usize = 2 * (LENGTH + 65_535);
/// Bytes of a datagram that comes in, which we tell the other side.
pub(crate) const DATAGRAM: usize = 1472;

/// What connections of either side have in common.
pub(crate) fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(MOST as u32))
        // Datagrams of 1,200 bytes hold nearly every message; nothing is to be found out first.
        .mtu_discovery_config(None)
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(false);
    transport
}

/// What endpoints of either side have in common.
pub(crate) fn endpoint() -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    // It is one of the sizes that QUIC allows, 1,200 at the least.
    config.max_udp_payload_size(DATAGRAM as u16).map(|_| ()).unwrap_or_default();
    Arc::new(config)
}
