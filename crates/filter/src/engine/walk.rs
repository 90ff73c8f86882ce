//! An interpreter of the graph, block by block: for IPv6 lists so long that their code would have
//! millions of comparisons.

use super::{Engine, View};
use crate::ir::Graph;

/// Interprets a graph. Sets are searched by bisection.
#[derive(Debug)]
pub struct Walk {
    graph: Graph,
    snaplen: u32,
}

impl Walk {
    /// An engine for a graph; `snaplen` bytes are kept of matching packets.
    pub fn new(graph: Graph, snaplen: u32) -> Self {
        Self { graph, snaplen }
    }
}

impl Engine for Walk {
    fn run(&self, packet: View<'_>) -> u32 {
        if self.graph.run(packet.data(), packet.wire_len()) { self.snaplen } else { 0 }
    }
}
