//! RADIUS (RFC 2865): access requests and their replies, over UDP.
//!
//! Each datagram is one [`Message`]. A row of radius.log combines a request, its challenges and the
//! final accept or reject; an incomplete exchange is logged at the end of the connection.

mod analyzer;
pub mod events;
mod message;
mod rows;

pub use analyzer::Analyzer;
pub use message::Attribute;
pub use message::Message;
pub use rows::RadiusRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { ports: Ports::udp(&[1812]), ..Entry::new(Tag::Radius, "RADIUS", "radius") }],
    events: &[events::EVENTS],
    logs: &[Log::of::<RadiusRow<'_>>()],
};
