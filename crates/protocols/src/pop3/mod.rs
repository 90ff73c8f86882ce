//! POP3 (RFC 1939, extensions of RFC 2449, authentication of RFC 1734 and 5034, STLS of RFC 2595).
//!
//! POP3 has no log. It is confirmed by the replies to USER, CAPA and STLS; mail fetched by RETR and
//! TOP goes to file analysis, and after STLS the stream is TLS. Pipelined commands are queued until
//! their replies, since the meaning of a reply depends on its command. [`message`] parses single
//! lines, [`Analyzer`] tracks the session.

mod analyzer;
mod detect;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        pending: Some(Limit {
            name: "pending-pop3",
            default: 10,
            what: "POP3 commands sent ahead; beyond, the oldest is dropped.",
            reported_by: "pop3_client_too_many_pending_commands",
        }),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Pop3, "POP3", "pop3")
    }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
