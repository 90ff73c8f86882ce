//! Events of packets, of transports and of the sizes of connections: what the engine raises without any analyzer
//! of a protocol.
//!
//! Nearly all of them are opt-in: there is one for every packet, and only listeners that name them receive them.

pub mod build;
pub mod events;
mod fields;
pub mod headers;
mod ip6;
