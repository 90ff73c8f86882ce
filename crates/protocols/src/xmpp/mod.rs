//! XMPP (RFC 6120), as far as it takes to recognise it and to see TLS begin.
//!
//! As in Zeek, each chunk of the stream is read by itself as XML tags with text between. A client's
//! `stream:stream` confirms the protocol; `starttls` and `proceed` hand the connection to the SSL
//! analyzer; once the handshake is past, nothing more is looked at. There is no log.

mod analyzer;
mod detect;
pub mod events;
mod tags;

pub use analyzer::Analyzer;
pub use analyzer::Session;
pub use tags::tags;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Ports;

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[5222, 5269]),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Xmpp, "XMPP", "xmpp")
    }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
