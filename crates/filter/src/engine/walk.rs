//! The graph itself, walked block by block: for lists of IPv6 addresses so long that code of their size would be
//! millions of comparisons.

use super::{Engine, View};
use crate::ir::Graph;

/// Walks a graph. A set is looked up by halves, whatever its length.
#[derive(Debug)]
pub struct Walk {
    graph: Graph,
    snaplen: u32,
}

impl Walk {
    /// Of a graph; `snaplen` bytes are kept of packets that match.
    pub fn new(graph: Graph, snaplen: u32) -> Self {
        Self { graph, snaplen }
    }
}

impl Engine for Walk {
    fn run(&self, packet: View<'_>) -> u32 {
        if self.graph.run(packet.data(), packet.wire_len()) { self.snaplen } else { 0 }
    }
}
