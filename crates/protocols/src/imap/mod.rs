//! IMAP (RFC 3501), up to the start of TLS or the login of the user.
//!
//! As in Zeek, each chunk of the stream is parsed separately as lines of a tag, a command and the rest.
//! A server's greeting and some commands confirm the protocol; STARTTLS passes the connection
//! to the SSL analyzer; the analysis ends when the user logs in. There is no log.

mod analyzer;
pub mod events;
mod lines;

pub use analyzer::Analyzer;
pub use analyzer::Session;
pub use lines::Line;
pub use lines::lines;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Ports;

/// Analyzers and events of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { ports: Ports::tcp(&[143]), ..Entry::new(Tag::Imap, "IMAP", "imap") }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
