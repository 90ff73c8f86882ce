//! WebSocket (RFC 6455): messages in frames, on a connection that HTTP upgraded.
//!
//! The handshake is HTTP: the rows of a [`Handshake`] receive the events of HTTP's headers, and HTTP's analyzer starts the
//! [`Analyzer`] when the responder agrees. That reads frames (`frame.rs`), takes off their masks, and
//! passes what text and binary messages hold to analyzers of its own, found by content.

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

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::WebSocket, "WEBSOCKET", "websocket")],
    events: &[events::EVENTS],
    logs: &[Log::of::<WebSocketRow<'_>>().stream("WebSocket::LOG")],
};
