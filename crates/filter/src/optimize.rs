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

use crate::ir::Graph;

pub(crate) use expand::expand;
#[cfg(feature = "jit")]
pub(crate) use expand::expand_words;
pub(crate) use factor::factor;
pub(crate) use thread::contradicts;

/// A pass over a graph, by the name of its result.
pub(crate) type Pass = (&'static str, fn(Graph) -> Graph);

/// Passes over a graph with sets, for engines that look sets up.
pub(crate) const WITH_SETS: [Pass; 2] =
    [("the threaded graph", thread::thread), ("the graph without dead variables", dead::dead)];

/// Passes over a graph without sets, or with only the sets that an engine looks up.
pub(crate) const EXPANDED: [Pass; 2] =
    [("the graph with tests of bits", bits::bits), ("the graph threaded again", thread_again)];

/// Maximum number of blocks of a graph that is threaded again after the expansion of sets; the
/// trees of larger graphs leave nothing to eliminate.
const MAX_THREADED: usize = 512;

fn thread_again(graph: Graph) -> Graph {
    if graph.blocks.len() <= MAX_THREADED { thread::thread(graph) } else { graph }
}

/// Applies passes one after the other.
pub(crate) fn apply(passes: &[Pass], graph: Graph) -> Graph {
    passes.iter().fold(graph, |graph, (_, pass)| pass(graph))
}
