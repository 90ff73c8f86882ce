//! What several protocols need: lines out of streams.

mod lines;

pub use lines::Line;
pub use lines::Lines;
