//! SOCKS 4, 4a and 5 (RFC 1928, login by name and password of RFC 1929): the destination that a
//! client requests from a proxy, and the answer.
//!
//! Each side's segments are read as one message each, in the order of the handshake. Once
//! both sides have said their last word the rest of the stream is what the proxy relays:
//! analyzers of its own look at it. [`message`] reads single messages; [`Analyzer`] knows the
//! order; `rows` writes socks.log when the connection ends.

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::SocksRow;
