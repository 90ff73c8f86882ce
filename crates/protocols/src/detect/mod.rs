//! Finding protocols by their content, whatever the port.
//!
//! Each TCP and UDP connection has a [`Detector`], and each tunnel that carries a stream. It stores
//! the first data of both sides, up to [`BUFFER`] bytes or [`CHUNKS`] chunks together, and checks
//! after each chunk which protocols match. A detected protocol is [started](crate::Context::start)
//! and receives all stored data.
//!
//! What a beginning looks like is said in `tcp.rs` (in order in `rules.rs`) and `udp.rs`, one small function each, written to
//! accept exactly what the signatures of Zeek's base scripts accept: all are anchored at the
//! start of the stream (or of each datagram), some count for one side only, and some
//! need the other side to have begun in a certain way as well. Being
//! questions about all bytes of a side so far, they need no state between chunks; what takes long to
//! look for is remembered nevertheless.

mod detector;
mod kept;
mod rules;
mod tcp;
mod text;
mod udp;

pub use detector::BUFFER;
pub use detector::CHUNKS;
pub use detector::Detector;
