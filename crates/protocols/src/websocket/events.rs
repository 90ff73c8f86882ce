//! Events of WebSocket.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module::WEBSOCKET;

    /// A connection of HTTP becomes one of WebSocket.
    pub struct WebsocketEstablished = "websocket_established" {
        /// The connection.
        c: Connection = "c",
        /// Number of the analyzer.
        aid: u64 = "aid",
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
