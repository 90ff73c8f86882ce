//! PostgreSQL, protocol 3 (PostgreSQL's documentation, chapter "Frontend/Backend Protocol").
//!
//! A client begins with a startup message of parameters, or asks for TLS first: then one byte of the
//! server says whether it follows. All later messages have a type, a length and a body; of those that
//! [`message`] knows, [`analyzer`](Analyzer) makes rows. A row of postgresql.log is what a client asked
//! for — TLS, a login, a query — with what the server said of it until it was ready for the next one.
//!
//! A startup message that parses, and an answer to the wish for TLS, confirm the protocol. TLS itself is
//! followed with [`inner_protocols`](crate::Options::inner_protocols).

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::PostgresqlRow;
