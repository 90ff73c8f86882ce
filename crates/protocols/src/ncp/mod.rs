//! NCP, the NetWare Core Protocol, over TCP.
//!
//! Each direction of a stream consists of [frames](Frame): a header for TCP with a length, then an
//! NCP header with a request or a reply. The [`Analyzer`] reports each of them; a reply names the
//! last request. If the beginning of a connection was not seen, parsing starts with the first
//! segment that begins with a known frame type.
//!
//! Zeek registers this analyzer for no port and has no detection rule for it: scripts start it. It
//! has no log, and it adds no service, since it never confirms a protocol.

mod analyzer;
pub mod events;
mod message;

pub use analyzer::Analyzer;
pub use message::Frame;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Ncp, "NCP", "ncp")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
