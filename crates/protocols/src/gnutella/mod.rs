//! Gnutella over TCP: a handshake of lines in each direction, then messages.
//!
//! The [`Analyzer`] reads lines until both sides accepted the connection (`GNUTELLA/0.6 200 OK`), and from then on
//! [messages](message::Header). A line of HTTP indicates a download: the HTTP analyzer takes over.
//!
//! As in Zeek, this analyzer has no ports and no detection rules: only scripts start it. There is no log, and no service name,
//! since it never confirms the protocol.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers and events of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Gnutella, "GNUTELLA", "gnutella")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
