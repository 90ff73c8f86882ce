//! Negotiation of a login with GSSAPI (SPNEGO, [RFC 4178]) inside SMB and DCE-RPC.
//!
//! [`message`] parses a token; the analyzers of Kerberos and NTLM receive its content. [`Inner`] is the analyzer to
//! which other protocols pass their tokens; [`Logins`] holds the rows of all logins of a
//! connection.
//!
//! [RFC 4178]: https://www.rfc-editor.org/rfc/rfc4178

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Inner;
pub use analyzer::Logins;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers and events of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Gssapi, "GSSAPI", "gssapi")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
