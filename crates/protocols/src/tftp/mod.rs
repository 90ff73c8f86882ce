//! TFTP (RFC 1350), with options (RFC 2347 to 2349): files over UDP.
//!
//! A client sends a request to port 69; the server answers from another port, so that request and
//! contents are on two connections. The analyzer of the request announces the other connection, and
//! [`Transfers`](shared::Transfers) combines both in a row of tftp.log. Zeek has no TFTP analyzer:
//! this one runs only if tftp.log or an event of TFTP is requested.

mod analyzer;
pub mod events;
mod message;
mod rows;
mod shared;

pub use analyzer::Analyzer;
pub use message::Message;
pub use message::Request;
pub use rows::TftpRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Origin;
use crate::descriptor::Ports;

/// Source of weirds.
const SOURCE: Option<&str> = Some("TFTP");

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[69]),
        origin: Origin::Extra,
        ..Entry::new(Tag::Tftp, "TFTP", "tftp")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<TftpRow<'_>>()],
};
