//! Tools to check that two forms of a filter agree: random expressions over the whole language,
//! packets that satisfy many tests of a program, and the check of every pass of the optimizer.
//!
//! [`Expressions`] generates filters from a seed. [`Prober`] generates packets that satisfy many of
//! a program's comparisons. [`check`] compiles an expression stage by stage and compares the result
//! of each pass with its input, on such packets truncated to every length.

mod check;
mod expressions;
mod packets;
mod random;

pub use check::{Disagreement, check, check_as};
pub use expressions::Expressions;
pub use packets::Prober;
pub use random::Random;
