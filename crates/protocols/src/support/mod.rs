//! What several protocols need: lines out of streams, MIME entities, words of a line.

mod lines;
pub mod mime;
pub mod text;

pub use lines::Line;
pub use lines::Lines;
