//! The optimizer: fewer tests for the same verdict, for packets truncated anywhere.
//!
//! `factor` works on the condition: common beginnings of alternatives are tested once, and long
//! lists become sets. The other passes work on the graph of blocks: `thread` redirects every edge
//! to its final target, `dead` drops unused assignments, `expand` turns sets into trees of
//! comparisons for engines without set lookups, `bits` finds shorter tests. The tests in `proof`
//! compare each pass with its input.

mod bits;
mod dead;
mod expand;
mod factor;
pub(crate) mod facts;
mod thread;

pub(crate) use bits::bits;
pub(crate) use dead::dead;
pub(crate) use expand::expand;
#[cfg(feature = "jit")]
pub(crate) use expand::expand_words;
pub(crate) use factor::factor;
pub(crate) use thread::contradicts;
pub(crate) use thread::thread;
