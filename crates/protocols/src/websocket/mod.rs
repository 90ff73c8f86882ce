//! WebSocket (RFC 6455): messages in frames, on a connection that HTTP upgraded.
//!
//! The handshake is HTTP: [`Handshake`] receives the events of HTTP's headers, and HTTP's analyzer
//! starts the [`Analyzer`] when the responder accepts. That parses frames (`frame.rs`), unmasks
//! them, and passes the payload of text and binary messages to nested analyzers, which are detected
//! by content.

mod analyzer;
pub mod events;
pub mod frame;
mod handshake;
mod rows;

pub use analyzer::Analyzer;
pub use analyzer::payload_of;
pub use handshake::Handshake;
pub use rows::WebSocketRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::WebSocket, "WEBSOCKET", "websocket")],
    events: &[events::EVENTS],
    logs: &[Log::of::<WebSocketRow<'_>>().stream("WebSocket::LOG")],
};
