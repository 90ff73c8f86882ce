//! TFTP (RFC 1350), with options (RFC 2347 to 2349): files over UDP.
//!
//! A client sends a request to port 69; the server answers from another port, so that requests and contents are
//! in two connections. The analyzer of the request announces the other one, and [`Transfers`](shared::Transfers)
//! joins both in a row of tftp.log. Zeek has no analyzer of TFTP: this one runs only where tftp.log or events of
//! TFTP are asked for.

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

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[69]),
        origin: Origin::Extra,
        ..Entry::new(Tag::Tftp, "TFTP", "tftp")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<TftpRow<'_>>()],
};
