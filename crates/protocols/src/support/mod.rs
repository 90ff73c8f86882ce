//! What several protocols need: lines, messages and numbers out of streams, MIME entities, words
//! of a line, ASN.1.

pub mod ber;
mod bytes;
mod frames;
mod lines;
pub mod mime;
pub mod text;

pub use bytes::Bytes;
pub use frames::Frames;
pub use lines::Line;
pub use lines::Lines;
