//! DNP3 (IEEE 1815) over TCP and UDP.
//!
//! TCP carries the *link frames* of the serial protocol: a header with checksum, then blocks of up
//! to sixteen bytes with a checksum each ([`frame`]). Frames form a *message* of the application,
//! which begins with a function; a transport byte marks the first and the last frame. A header with
//! a valid checksum confirms the protocol.
//!
//! A row of dnp3.log joins a request and its response. The [`objects`] of a message are read only as far
//! as to know that they are whole: a message that is malformed ends the analysis.

mod analyzer;
pub mod events;
mod found;
pub mod frame;
pub mod objects;
mod raise;
mod rows;

pub use analyzer::Tcp;
pub use analyzer::Udp;
pub use rows::Dnp3Row;
