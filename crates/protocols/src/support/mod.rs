//! What several protocols need: lines, messages and numbers out of streams, MIME entities, words.

mod bytes;
mod frames;
mod lines;
pub mod mime;
pub mod text;

pub use bytes::Bytes;
pub use frames::Frames;
pub use lines::Line;
pub use lines::Lines;
