//! NTLM logins ([MS-NLMP]), as SMB and DCE-RPC carry them, directly or within GSSAPI.
//!
//! A login has three messages: the client's capabilities, the server's challenge, and the client's
//! identity. [`message`] parses them; a [`Session`] collects the connection's row and writes it
//! when GSSAPI reports the outcome or the connection ends. [`Inner`] is the analyzer to which other
//! protocols pass their tokens.
//!
//! [MS-NLMP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-nlmp

mod analyzer;
pub mod events;
pub mod message;
mod raise;
mod rows;

pub use analyzer::Inner;
pub use rows::NtlmRow;
pub use rows::Session;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::Ntlm, "NTLM", "ntlm")],
    events: &[events::EVENTS],
    logs: &[Log::of::<NtlmRow<'_>>()],
};
