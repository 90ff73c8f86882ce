//! The Dynamic Host Configuration Protocol (RFC 2131, options of RFC 2132 and others).
//!
//! [`message`] parses a datagram without copying. [`Analyzer`] passes the fields to [`Shared`], which
//! joins the messages with the same transaction ID over all connections into one row: because of broadcasts
//! and changing addresses, a transaction is not a connection. A transaction's row is written after
//! some idle time ([`Shared::expire`]), or at the end of the input ([`Shared::finish`]).

mod analyzer;
mod detect;
pub mod events;
mod fields;
pub mod message;
mod row;
mod rows;
mod shared;

pub use analyzer::Analyzer;
pub use row::Dhcp;
pub use row::MessageType;
pub use shared::MAX_MESSAGES;
pub use shared::MAX_TRANSACTIONS;
pub use shared::MAX_UIDS;
pub use shared::Shared;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[67, 68, 4011]),
        servers: Some(Ports::udp(&[67, 4011])),
        pending: Some(Limit {
            name: "pending-dhcp",
            default: MAX_TRANSACTIONS,
            what: "DHCP transactions; beyond, the oldest are logged.",
            reported_by: "DHCP_max_tracked_transactions_exceeded",
        }),
        udp_rules: detect::UDP,
        ..Entry::new(Tag::Dhcp, "DHCP", "dhcp")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<Dhcp>()],
};
