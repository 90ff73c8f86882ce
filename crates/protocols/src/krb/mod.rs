//! Kerberos 5 (RFC 4120) over UDP, over TCP (RFC 4120 §7.2.2) and inside other protocols.
//!
//! [`message`] reads one message; a [`Session`] makes the one row that a connection gets of the
//! messages it carries. [`Udp`] and [`Tcp`] are the analyzers of connections to a key distribution
//! centre; GSSAPI hands its tokens to an [`Inner`], whose row belongs to the connection around it.

mod analyzer;
mod certificates;
pub mod events;
pub mod message;
mod names;
mod raise;
mod reader;
mod rows;

pub use analyzer::Inner;
pub use analyzer::Tcp;
pub use analyzer::Udp;
pub use rows::KerberosRow;
pub use rows::Session;
