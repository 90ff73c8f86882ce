//! Remote Desktop Protocol (MS-RDPBCGR) and its transport over UDP (MS-RDPEUDP).
//!
//! Over TCP, client and server agree on TLS or RDP's own encryption ([`message::Message`]), and in
//! the latter case exchange their settings ([`blocks`]). TLS goes to the SSL analyzer; RDP's own
//! encryption cannot be read. The client's or the server's settings confirm the protocol. The row
//! of rdp.log is written ten seconds after the first message, on a violation, or at the end.
//!
//! Over UDP only the handshake is analyzed: its second message confirms the protocol.

mod analyzer;
pub mod blocks;
mod detect;
pub mod events;
mod languages;
pub mod message;
mod raise;
mod rows;
mod udp;

pub use analyzer::Analyzer;
pub use rows::RdpRow;
pub use udp::Udp;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::tcp(&[3389]),
            names_files: true,
            tcp_rules: detect::TCP,
            ..Entry::new(Tag::Rdp, "RDP", "rdp")
        },
        Entry {
            ports: Ports::udp(&[3389]),
            udp_rules: detect::UDP,
            ..Entry::new(Tag::RdpEudp, "RDPEUDP", "rdpeudp")
        },
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<RdpRow<'_>>()],
};
