//! Detection of protocols by their content, independent of the port.
//!
//! Each TCP and UDP connection has a [`Detector`], and each tunnel that carries a stream. It stores
//! the first data of both sides, up to [`DEFAULT_BYTES`] bytes or [`DEFAULT_CHUNKS`] chunks in total, and checks
//! after each chunk which protocols match. A detected protocol is [started](crate::Context::start)
//! and receives all stored data.
//!
//! The rules are in the folders of the protocols (`detect.rs`), one small function each, and their descriptors list
//! them. They accept exactly what the signatures of Zeek's base scripts accept: all are anchored at the
//! start of the stream (or of each datagram), some apply to one side only, and some require a
//! certain beginning of the other side as well. A rule depends on all bytes of a side so far and
//! needs no state between chunks, except that results of long searches are cached.

mod buffer;
mod detector;
mod rule;
mod rules;
mod sides;
pub(crate) mod text;

pub use crate::activation::DEFAULT_BYTES;
pub use crate::activation::DEFAULT_CHUNKS;
pub use detector::Detector;
pub(crate) use rule::Class;
pub(crate) use rule::TcpRule;
pub(crate) use rule::UdpRule;
pub(crate) use sides::Sides;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// The analyzer of detection.
pub(crate) const DESCRIPTOR: Descriptor =
    Descriptor { entries: &[Entry::new(Tag::Detector, "PIA", "pia")], ..Descriptor::NONE };
