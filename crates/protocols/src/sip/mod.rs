//! SIP (RFC 3261) over UDP.
//!
//! A message is a request or status line, header lines, an empty line and a body of
//! `Content-Length` bytes. As in Zeek, the datagrams of one kind (requests, replies) are parsed
//! like a stream: the missing part of a message is taken from the next datagram. Replies are
//! recognized by their first bytes, not by their sender; a reply confirms the protocol.
//!
//! A row of sip.log combines a request and its reply; each reply writes one.

mod analyzer;
mod detect;
pub mod events;
pub mod message;
mod rows;
mod values;

pub use analyzer::Analyzer;
pub use rows::SipRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[5060]),
        pending: Some(Limit {
            name: "pending-sip",
            default: 100,
            what: "SIP transactions of one connection; beyond, the oldest is logged.",
            reported_by: "sip_excessive_pending_requests",
        }),
        udp_rules: detect::UDP,
        ..Entry::new(Tag::Sip, "SIP", "sip")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<SipRow<'_>>()],
};
