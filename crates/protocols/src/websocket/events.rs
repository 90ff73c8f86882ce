//! Events of WebSocket.

use gannet_event::AnalyzerId;
use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::WebSocket);

    /// A connection of HTTP becomes one of WebSocket.
    pub struct WebsocketEstablished = "websocket_established" {
        /// The connection.
        c: Connection = "c",
        /// Number of the analyzer.
        aid: AnalyzerId = "aid",
    }

    /// The responder agrees to it: what the request says about its destination.
    pub struct WebsocketUpgrade<'a> = "gannet::websocket_upgrade", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The request's `Host` header.
        host: Option<&'a [u8]> = "host",
        /// Its target with its `%` escapes decoded.
        uri: Option<&'a [u8]> = "uri",
        /// Its `User-Agent` header.
        user_agent: Option<&'a [u8]> = "user_agent",
    }

    /// A frame begins.
    pub struct WebsocketFrame = "websocket_frame", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Whether the message ends with it.
        fin: bool = "fin",
        /// The three reserved bits.
        rsv: u64 = "rsv",
        /// What it is: 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        opcode: u64 = "opcode",
        /// Bytes of payload.
        payload_len: u64 = "payload_len",
    }

    /// A part of the payload of a frame, in pieces of 8 KiB.
    pub struct WebsocketFrameData<'a> = "websocket_frame_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Payload, unmasked.
        data: &'a [u8] = "data",
    }

    /// A frame closes the connection.
    pub struct WebsocketClose<'a> = "websocket_close", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Why, as a number; 0 if the frame has none.
        status: u64 = "status",
        /// Why, in words.
        reason: &'a [u8] = "reason",
    }

    /// A message is complete.
    pub struct WebsocketMessage = "websocket_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// What it is: 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        opcode: u64 = "opcode",
    }
}
