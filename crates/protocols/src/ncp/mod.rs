//! NCP, the NetWare Core Protocol, over TCP.
//!
//! Each direction of a stream consists of [frames](Frame): a header of TCP with a length, then a header and a request or a reply
//! of NCP. The [`Analyzer`] reports each of them; a reply names the last request. Where the begin of a connection was not
//! seen, a segment that begins with a known type of frames is where frames begin.
//!
//! Zeek puts this analyzer on no port and detects it nowhere: scripts start it. There is no log, and no service, since it confirms
//! nothing.

mod analyzer;
pub mod events;
mod message;

pub use analyzer::Analyzer;
pub use message::Frame;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Ncp, "NCP", "ncp")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
