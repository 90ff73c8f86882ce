//! Events of packets, of transports and of connection sizes, which the engine raises without a
//! protocol analyzer.
//!
//! Nearly all of them are opt-in: they are raised for every packet, and only listeners that name
//! them receive them.

pub mod build;
pub mod events;
mod fields;
pub mod headers;
mod ip6;
