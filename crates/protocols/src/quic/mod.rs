//! QUIC, versions 1 (RFC 9000, RFC 9001) and 2 (RFC 9369), the drafts 22 to 34 of version 1, and
//! Facebook's mvfst.
//!
//! A datagram holds one or more packets. [`message`] parses their clear-text parts. Initial packets
//! are encrypted with keys derived from the client's first destination connection id:
//! [`protection`] decrypts them. Their CRYPTO frames carry the beginning of a TLS handshake, in any
//! order (`crypto.rs` joins them); the hello of each side goes to the TLS analyzer, so that ssl.log
//! has a row as well. Later packets are encrypted with keys that only the endpoints know, and only
//! count in the history.
//!
//! A decrypted Initial packet confirms the protocol. A connection has one row in quic.log; a Retry
//! packet, an unknown version and the end of a QUIC connection close the row, and later packets
//! start another one.

mod analyzer;
mod crypto;
pub mod events;
pub mod message;
pub mod protection;
mod rows;

pub use analyzer::Analyzer;
pub use rows::QuicRow;
