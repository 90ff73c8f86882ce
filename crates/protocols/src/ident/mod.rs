//! Identification of the user of a connection (RFC 1413).
//!
//! A client asks with a line: the two ports of a TCP connection between the same hosts. The server's line repeats them, and has
//! either the user with the operating system, or an error. [`Request`](message::Request) and [`Reply`](message::Reply) are these
//! lines; the [`Analyzer`] raises an event for each.
//!
//! Zeek puts this analyzer on no port and detects it nowhere: scripts and signatures start it. There is no log, and no service,
//! since it confirms nothing.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;
pub(crate) use analyzer::report_partial_request;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Ident, "IDENT", "ident")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
