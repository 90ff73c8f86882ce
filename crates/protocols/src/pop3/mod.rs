//! POP3 (RFC 1939, extensions of RFC 2449, authentication of RFC 1734 and 5034, STLS of RFC 2595).
//!
//! POP3 has no log of its own: it is recognised by the replies to USER, CAPA and STLS, the mail
//! that RETR and TOP fetch goes to the files, and after STLS the stream is TLS. Commands may be
//! sent ahead, so they wait in line for their replies: what a reply means depends on the
//! command that it answers. [`message`] reads single lines, [`Analyzer`] knows the dialogue.

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Analyzer;
