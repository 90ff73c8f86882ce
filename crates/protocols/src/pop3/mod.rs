//! POP3 (RFC 1939, extensions of RFC 2449, authentication of RFC 1734 and 5034, STLS of RFC 2595).
//!
//! POP3 has no log: it is recognised by the replies to USER, CAPA and STLS, mail fetched by RETR
//! and TOP goes to file analysis, and after STLS the stream is TLS. Commands may be pipelined and
//! wait for their replies, since the meaning of a reply depends on its command. [`message`] parses
//! single lines, [`Analyzer`] follows the dialogue.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;
