//! Shorter ways to the same verdict, whatever a packet is cut to.
//!
//! `factor` works on the condition: what alternatives begin with is tested once, and long lists
//! become sets. The other passes work on the graph of blocks: `thread` takes every edge straight to
//! where it must end, `dead` drops what is set and never asked for, `expand` turns sets into trees of comparisons for engines that know nothing
//! else, `bits` finds shorter tests. Each is compared with what it was given by the tests in
//! `proof`.

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
