//! XMPP (RFC 6120), as far as it takes to recognise it and to see TLS begin.
//!
//! As in Zeek, each chunk of the stream is read by itself as XML tags with text between. A client's
//! `stream:stream` confirms the protocol; `starttls` and `proceed` hand the connection to the SSL
//! analyzer; once the handshake is past, nothing more is looked at. There is no log.

mod analyzer;
pub mod events;
mod tags;

pub use analyzer::Analyzer;
pub use analyzer::Session;
pub use tags::tags;
