//! RADIUS (RFC 2865): requests for access and their answers, over UDP.
//!
//! Each datagram is one [`Message`]. A row of radius.log joins a request, its challenges and the
//! final accept or reject; an incomplete one is logged with the end of the connection.

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

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { ports: Ports::udp(&[1812]), ..Entry::new(Tag::Radius, "RADIUS", "radius") }],
    events: &[events::EVENTS],
    logs: &[Log::of::<RadiusRow<'_>>()],
};
