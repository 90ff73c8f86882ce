//! QUIC, versions 1 (RFC 9000, RFC 9001) and 2 (RFC 9369), the drafts 22 to 34 of version 1, and
//! Facebook's mvfst.
//!
//! A datagram contains one or more packets. [`message`] parses their unprotected parts. Initial
//! packets are encrypted with keys derived from the client's first destination connection id:
//! [`protection`] decrypts them. Their CRYPTO frames carry the beginning of a TLS handshake, in any
//! order (`crypto.rs` reassembles them); the hello of each side goes to the TLS analyzer, so that
//! ssl.log has a row as well. Later packets are encrypted with keys that only the endpoints know,
//! and are only recorded in the history.
//!
//! A decrypted Initial packet confirms the protocol. A connection has one row in quic.log; a Retry
//! packet, an unknown version and the end of a QUIC connection complete the row, and later packets
//! start another one.

mod analyzer;
mod crypto;
mod detect;
pub mod events;
pub mod message;
pub mod protection;
mod rows;

pub use analyzer::Analyzer;
pub use rows::QuicRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Origin;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[443, 784, 853]),
        origin: Origin::Spicy,
        udp_rules: detect::UDP,
        ..Entry::new(Tag::Quic, "QUIC", "quic")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<QuicRow<'_>>()],
};
