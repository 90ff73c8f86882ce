//! SIP (RFC 3261) over UDP.
//!
//! A message is a request or status line, header lines, an empty line and a body of
//! `Content-Length` bytes. As in Zeek, the datagrams of one kind (requests, replies) are parsed
//! like a stream: the missing part of a message is taken from the next one. Replies are recognised
//! by their first bytes, not by their sender; a reply confirms the protocol.
//!
//! A row of sip.log joins a request and its replies; each reply writes one.

mod analyzer;
pub mod events;
pub mod message;
mod rows;
mod values;

pub use analyzer::Analyzer;
pub use rows::SipRow;
