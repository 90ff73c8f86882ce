//! SNMP, versions 1 (RFC 1157), 2c (RFC 1901, RFC 3416) and 3 (RFC 3412, RFC 3414), over UDP.
//!
//! Each datagram is one [`Message`]. A connection has one row in snmp.log, with the numbers of
//! requested and returned variables. A message of the responder confirms the protocol.

mod analyzer;
mod bindings;
pub mod events;
mod message;
mod rows;

pub use analyzer::Analyzer;
pub use message::Kind;
pub use message::Message;
pub use message::TooLong;
pub use rows::SnmpRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[161, 162]),
        is_session: true,
        ..Entry::new(Tag::Snmp, "SNMP", "snmp")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<SnmpRow<'_>>()],
};
