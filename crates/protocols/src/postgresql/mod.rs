//! PostgreSQL, protocol 3 (PostgreSQL's documentation, chapter "Frontend/Backend Protocol").
//!
//! A client begins with a startup message of parameters, or requests TLS first: then one byte of
//! the server is the answer. All later messages have a type, a length and a body;
//! [`analyzer`](Analyzer) makes rows of those that [`message`] parses. A row of postgresql.log is a
//! request of a client — TLS, a login, a query — with the server's answers until it was ready for
//! the next one.
//!
//! A startup message that parses, and an answer to the wish for TLS, confirm the protocol. TLS itself is
//! followed with [`inner_protocols`](crate::Options::inner_protocols).

mod analyzer;
mod detect;
pub mod events;
pub mod message;
mod raise;
mod rows;

pub use analyzer::Analyzer;
pub use rows::PostgresqlRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Origin;
use crate::descriptor::Ports;

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[5432]),
        origin: Origin::Spicy,
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Postgresql, "POSTGRESQL", "postgresql")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<PostgresqlRow<'_>>().stream("PostgreSQL::LOG")],
};
