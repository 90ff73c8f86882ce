//! XMPP (RFC 6120), parsed as far as needed to detect the protocol and the start of TLS.
//!
//! As in Zeek, each chunk of the stream is parsed independently as XML tags with text between them.
//! A client's `stream:stream` confirms the protocol; after `starttls` and `proceed` the SSL
//! analyzer receives the stream; once TLS can no longer begin, parsing stops. There is no log.

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

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[5222, 5269]),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Xmpp, "XMPP", "xmpp")
    }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
