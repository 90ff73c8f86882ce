//! NetBIOS over TCP and UDP (RFC 1001 and 1002): the session service, and the headers of datagrams.
//!
//! A session begins with a request that names the server; messages, mostly of SMB, and keepalives
//! follow. The [`Analyzer`] reports each message and the contents of control messages. SMB has a
//! separate analyzer, which reads sessions without this one.
//!
//! Zeek registers this analyzer for no port and has no detection rule for it: scripts start it. It
//! has no log, and it adds no service, since it never confirms a protocol.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { is_session: true, ..Entry::new(Tag::Netbios, "NETBIOSSSN", "netbiosssn") }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
