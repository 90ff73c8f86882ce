//! DNP3 (IEEE 1815) over TCP and UDP.
//!
//! TCP carries the *link frames* of the serial protocol: a header with checksum, then blocks of up
//! to sixteen bytes with a checksum each ([`frame`]). One or more frames form an *application message*,
//! which begins with a function code; a transport byte marks the first and the last frame. A header with
//! a valid checksum confirms the protocol.
//!
//! A row of dnp3.log joins a request and its response. Without listeners, the [`objects`] of a message are
//! only validated: a malformed message ends the analysis.

mod analyzer;
pub mod events;
pub mod frame;
pub mod objects;
mod part;
mod raise;
mod rows;

pub use analyzer::Tcp;
pub use analyzer::Udp;
pub use rows::Dnp3Row;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;
use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::UdpRule;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::tcp(&[20000]),
            tcp_rules: &[TcpRule::resp(Class::of(&[5]), |s| s.resp.starts_with(b"\x05\x64"))],
            ..Entry::new(Tag::Dnp3Tcp, "DNP3_TCP", "dnp3_tcp")
        },
        Entry {
            servers: Some(Ports::udp(&[20000])),
            udp_rules: &[UdpRule::any(|d| d.starts_with(b"\x05\x64"))],
            ..Entry::new(Tag::Dnp3Udp, "DNP3_UDP", "dnp3_udp")
        },
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<Dnp3Row>()],
};
