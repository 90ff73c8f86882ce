//! RFB, the protocol of VNC (RFC 6143, and Apple's authentication).
//!
//! Both sides send their versions, agree on an authentication method, authenticate, and send the
//! screen parameters. `analyzer.rs` keeps the state of both sides; [`message`] returns the length
//! of the expected message. Afterwards only the client's messages are parsed, not the server's
//! pixels. The client's version confirms the protocol.

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::RfbRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::detect::Class;
use crate::detect::TcpRule;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        tcp_rules: &[TcpRule::sides(Class::of(b"R"), Class::of(b"R"), |s| {
            s.orig.starts_with(b"RFB") && s.resp.starts_with(b"RFB")
        })],
        ..Entry::new(Tag::Rfb, "RFB", "rfb")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<RfbRow<'_>>()],
};
