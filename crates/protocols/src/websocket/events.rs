//! Events of WebSocket.

use gannet_event::AnalyzerId;
use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::WebSocket);

    /// An HTTP connection was upgraded to WebSocket.
    pub struct WebsocketEstablished = "websocket_established" {
        /// The connection.
        c: Connection = "c",
        /// Number of the analyzer.
        aid: AnalyzerId = "aid",
    }

    /// The responder accepts the upgrade: what the request says about its destination.
    pub struct WebsocketUpgrade<'a> = "gannet::websocket_upgrade", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The request's `Host` header.
        host: Option<&'a [u8]> = "host",
        /// Target of the request, with `%` escapes decoded.
        uri: Option<&'a [u8]> = "uri",
        /// `User-Agent` header of the request.
        user_agent: Option<&'a [u8]> = "user_agent",
    }

    /// A frame begins.
    pub struct WebsocketFrame = "websocket_frame", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Whether it is the last frame of its message.
        fin: bool = "fin",
        /// The three reserved bits.
        rsv: u64 = "rsv",
        /// Opcode: 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        opcode: u64 = "opcode",
        /// Length of the payload, in bytes.
        payload_len: u64 = "payload_len",
    }

    /// A piece of a frame's payload, at most 8 KiB.
    pub struct WebsocketFrameData<'a> = "websocket_frame_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Unmasked payload.
        data: &'a [u8] = "data",
    }

    /// A frame closes the connection.
    pub struct WebsocketClose<'a> = "websocket_close", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Status code; 0 if the frame has none.
        status: u64 = "status",
        /// Reason.
        reason: &'a [u8] = "reason",
    }

    /// A message is complete.
    pub struct WebsocketMessage = "websocket_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Opcode: 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        opcode: u64 = "opcode",
    }
}
