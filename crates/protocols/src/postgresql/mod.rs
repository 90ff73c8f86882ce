//! PostgreSQL, protocol 3 (PostgreSQL's documentation, chapter "Frontend/Backend Protocol").
//!
//! A client begins with a startup message of parameters, or requests TLS first, to which the server
//! replies with one byte. All later messages have a type, a length and a body; [`Analyzer`] makes
//! rows of those that [`message`] parses. A row of postgresql.log is a request of a client (TLS, a
//! login, a query) with the server's replies until it is ready for the next one.
//!
//! A valid startup message and the reply to a TLS request confirm the protocol. TLS itself is
//! analyzed with [`inner_protocols`](crate::Options::inner_protocols).

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

/// Analyzers, events and logs of the protocol.
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
