//! Identification of the user of a connection (RFC 1413).
//!
//! The request is a line with the two ports of a TCP connection between the same hosts. The reply repeats them, followed by
//! either the operating system and the user, or an error. [`Request`](message::Request) and [`Reply`](message::Reply) are these
//! lines; the [`Analyzer`] raises an event for each.
//!
//! As in Zeek, this analyzer has no ports and no detection rules: only scripts and signatures start it. There is no log, and no
//! service name, since it never confirms the protocol.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;
pub(crate) use analyzer::report_partial_request;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers and events of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Ident, "IDENT", "ident")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
