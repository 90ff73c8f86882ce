//! IRC: RFC 1459 and RFC 2812, with DCC transfers and STARTTLS.
//!
//! Both sides send lines, which [`Message`] parses. Each NICK, USER and JOIN of a client is logged as an
//! [`IrcRow`]. An offer to send a file (DCC SEND, within a PRIVMSG) announces a connection: it
//! is stored in [`Shared`] and among the expected connections of [`Env`](crate::Env), and [`Data`]
//! is started on it. The row of the offer is written when the type of the file is final, with the state
//! of the session at that time; therefore sessions are in [`Shared`].

mod analyzer;
mod data;
mod detect;
pub mod events;
mod message;
mod raise;
mod rows;
mod shared;

pub use analyzer::Analyzer;
pub use data::Data;
pub use message::Dcc;
pub use message::DccProblem;
pub use message::Message;
pub use message::Problem;
pub use message::Verb;
pub use shared::IrcRow;
pub use shared::Shared;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Kind;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::tcp(&[6666, 6667, 6668, 6669]),
            tcp_rules: detect::TCP,
            ..Entry::new(Tag::Irc, "IRC", "irc")
        },
        Entry { kind: Kind::Service, ..Entry::new(Tag::IrcData, "IRC_DATA", "irc-dcc-data") },
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<IrcRow>()],
};
