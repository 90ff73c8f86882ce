//! POP3 (RFC 1939, RFC 2449, RFC 2595, RFC 5034), as far as it takes to recognise it and to see TLS
//! begin.
//!
//! Commands wait in a queue for their replies ([`Queue`](queue::Queue)), because what a reply means
//! depends on the command. Answers to USER, CAPA and STLS confirm the protocol; the latter hands
//! the connection to the SSL analyzer. There is no log.

mod analyzer;
mod command;
pub mod queue;

pub use analyzer::Analyzer;
pub use command::Command;
