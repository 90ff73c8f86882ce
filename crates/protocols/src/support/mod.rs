//! What several protocols need: lines, messages and numbers out of streams.

mod bytes;
mod frames;
mod lines;

pub use bytes::Bytes;
pub use frames::Frames;
pub use lines::Line;
pub use lines::Lines;
