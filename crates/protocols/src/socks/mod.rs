//! SOCKS 4, 4a and 5 (RFC 1928, user name and password of RFC 1929): the destination that a client
//! requests from a proxy, and the reply.
//!
//! Each side's segments are parsed as one message each, in the order of the handshake. After the
//! last message of both sides, the rest of the stream is relayed data, which has its own analyzers.
//! [`message`] parses single messages; [`Analyzer`] tracks the handshake; `rows` writes socks.log
//! when the connection ends.

mod analyzer;
mod detect;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::SocksRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[1080]),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Socks, "SOCKS", "socks")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<SocksRow<'_>>()],
};
