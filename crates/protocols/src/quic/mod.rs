//! QUIC, versions 1 (RFC 9000, RFC 9001) and 2 (RFC 9369), the drafts 22 to 34 of version 1, and
//! Facebook's mvfst.
//!
//! A datagram holds one packet or more. What [`message`] reads of them is in clear text but for the
//! Initial packets, whose keys follow from the client's first destination connection id:
//! [`protection`] opens those. The CRYPTO frames in them carry the beginning of a TLS handshake, in
//! any order (`crypto.rs` joins them); the hello of each side goes to the analyzer of TLS, so that
//! there is a row in ssl.log as well. All later packets are encrypted with keys that only the two
//! sides know: of them the history tells.
//!
//! An Initial packet that could be opened confirms the protocol. A connection makes one row of
//! quic.log; a Retry packet, an unknown version and the end of a QUIC connection close the row, and
//! what comes after begins another one.

mod analyzer;
mod crypto;
pub mod events;
pub mod message;
pub mod protection;
mod rows;

pub use analyzer::Analyzer;
pub use rows::QuicRow;
