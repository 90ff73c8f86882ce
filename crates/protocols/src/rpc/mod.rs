//! ONC RPC (RFC 5531) over UDP and TCP: the portmapper (RFC 1833 section 3), and MOUNT and NFS, both of version 3 (RFC 1813).
//!
//! [`Analyzer`] handles calls and replies: a message is a datagram, or a record of a stream
//! (`records.rs`), which may consist of fragments. Calls wait for the reply with their transaction
//! identifier, and end with the connection as if they had timed out. A [`Program`] parses the data
//! after the headers: [`portmap`], [`mount`] or [`nfs`] parses the arguments of a call when the
//! call is seen, and keeps them for the events of the reply. All of them decode values with XDR
//! (RFC 4506, [`xdr`]).
//!
//! Zeek registers these analyzers for no port and has no detection rules for them: scripts start
//! them. They have no log, and they add no service, since they never confirm a protocol.

mod analyzer;
pub mod events;
pub mod message;
pub mod mount;
mod names;
pub mod nfs;
pub mod portmap;
mod records;
pub mod xdr;

pub use analyzer::Analyzer;
pub use analyzer::Program;
pub use analyzer::ReplyInfo;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// The analyzer of the portmapper.
pub type Portmapper = Analyzer<portmap::Portmapper>;
/// The analyzer of MOUNT.
pub type Mount = Analyzer<mount::Mount>;
/// The analyzer of NFS.
pub type Nfs = Analyzer<nfs::Nfs>;

/// Analyzers and events of the protocols.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry::new(Tag::Mount, "MOUNT", "mount"),
        Entry::new(Tag::Nfs, "NFS", "nfs"),
        Entry::new(Tag::Portmapper, "PORTMAPPER", "portmapper"),
    ],
    events: &[events::EVENTS, mount::events::EVENTS, nfs::events::EVENTS],
    ..Descriptor::NONE
};
