//! NetBIOS over TCP and UDP (RFC 1001 and 1002): the session service, and the headers of datagrams.
//!
//! A session begins with a request that names the server; what follows are messages, mostly of SMB, and signs of life. The
//! [`Analyzer`] reports each message and what the control messages say. SMB has an analyzer of its own, which reads sessions
//! without this one.
//!
//! Zeek puts this analyzer on no port and detects it nowhere: scripts start it. There is no log, and no service, since it confirms
//! nothing.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { is_session: true, ..Entry::new(Tag::Netbios, "NETBIOSSSN", "netbiosssn") }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
