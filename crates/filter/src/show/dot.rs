//! The graph for Graphviz.

use std::fmt::Write;

use super::listing::step;
use crate::ir::{ACCEPT, Graph, Step};

impl Graph {
    /// The graph in the language of Graphviz: solid edges where a test holds, dashed ones where it
    /// does not.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph filter {\n  node [shape=box, fontname=monospace];\n");
        for id in self.order() {
            let block = &self.blocks[id];
            let label = step(&self.values, &block.step).replace('\\', "\\\\").replace('"', "\\\"");
            let shape = if id <= ACCEPT { ", shape=oval" } else { "" };
            let _ = writeln!(out, "  b{id} [label=\"{label}\"{shape}];");
            if id <= ACCEPT {
                continue;
            }
            let _ = writeln!(out, "  b{id} -> b{};", block.yes);
            if !matches!(block.step, Step::Set(..)) {
                let _ = writeln!(out, "  b{id} -> b{} [style=dashed];", block.no);
            }
        }
        out.push_str("}\n");
        out
    }
}
