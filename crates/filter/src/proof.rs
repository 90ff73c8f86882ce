//! Means to prove that two ways to run a filter agree: random expressions over the whole language,
//! packets that a program has a hard time with, and the check of every pass of the optimizer.
//!
//! [`Expressions`] writes filters from a seed. [`Prober`] makes packets that lead into the depths of
//! a program, by giving its comparisons what they ask for. [`check`] compiles an expression stage by
//! stage and runs what each pass was given against what it made of it, on such packets cut to every
//! length.

mod check;
mod expressions;
mod packets;
mod random;

pub use check::{Disagreement, check, check_as};
pub use expressions::Expressions;
pub use packets::Prober;
pub use random::Random;
