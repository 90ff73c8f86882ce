//! SMTP: RFC 5321, with BDAT (RFC 3030), STARTTLS (RFC 3207) and AUTH (RFC 4954).
//!
//! Both sides send lines. [`Analyzer`] tracks the session with a queue of pending commands, which
//! determines the lines that are mail. The lines of a mail go to
//! [`Mime`](crate::support::mime::Mime), which parses header fields for the row, and entities, each
//! of which becomes a file. [`SmtpRow`] is written when the server accepts or rejects a mail, when
//! the next one begins, or at the end. After STARTTLS the stream goes to TLS.
//!
//! After a gap the analyzer waits for the next reply and infers the state from it.

mod addresses;
mod analyzer;
mod bdat;
mod detect;
pub mod events;
mod mail;
mod message;
mod rows;
mod values;

pub use addresses::address_list;
pub use addresses::first_network_address;
pub use addresses::mail_addresses;
pub use addresses::received_from;
pub use analyzer::Analyzer;
pub use message::ChunkError;
pub use message::Command;
pub use message::Reply;
pub use message::Request;
pub use message::parse_chunk;
pub use rows::SmtpRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[25, 587]),
        pending: Some(Limit {
            name: "pending-smtp",
            default: 1_000,
            what: "SMTP commands without a reply; beyond, all of them are dropped.",
            reported_by: "smtp_excessive_pending_cmds",
        }),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Smtp, "SMTP", "smtp")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<SmtpRow>()],
};
