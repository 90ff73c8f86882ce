//! ONC RPC (RFC 5531) over UDP and TCP: the portmapper (RFC 1833 section 3), and MOUNT and NFS, both of version 3 (RFC 1813).
//!
//! [`Analyzer`] knows calls and replies: a datagram is a message, and so is a record of a stream (`records.rs`), which may come in
//! fragments. Calls wait for their replies by their transaction, and end with the connection as if a reply had timed out. What
//! follows the headers is a [`Program`]'s: [`portmap`], [`mount`] or [`nfs`] reads the arguments of a call as soon as it is seen
//! and keeps them for the events of the reply. All of them read numbers and strings as XDR (RFC 4506) has them ([`xdr`]).
//!
//! Zeek puts these analyzers on no port and detects none of them: scripts start them. There is no log, and no service, since
//! they confirm nothing.

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
pub use analyzer::Replied;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// The analyzer of the portmapper.
pub type Portmapper = Analyzer<portmap::Portmapper>;
/// The analyzer of MOUNT.
pub type Mount = Analyzer<mount::Mount>;
/// The analyzer of NFS.
pub type Nfs = Analyzer<nfs::Nfs>;

/// What the rest of gannet knows of the protocols.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry::new(Tag::Mount, "MOUNT", "mount"),
        Entry::new(Tag::Nfs, "NFS", "nfs"),
        Entry::new(Tag::Portmapper, "PORTMAPPER", "portmapper"),
    ],
    events: &[events::EVENTS, mount::events::EVENTS, nfs::events::EVENTS],
    ..Descriptor::NONE
};
