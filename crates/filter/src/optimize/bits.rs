//! Comparisons of masked values as tests of bits, which need one instruction instead of two.

use crate::bpf;
use crate::ir::{Graph, Node, Step, Test};

/// Rewrites comparisons of masked values.
pub(crate) fn bits(mut graph: Graph) -> Graph {
    for at in 0..graph.blocks.len() {
        let Step::Test(Test { op: bpf::JEQ, left, right }) = graph.blocks[at].step else {
            continue;
        };
        let Some(k) = graph.values.as_const(right) else { continue };
        let Node::Binary(bpf::AND, value, mask) = graph.values.node(left) else { continue };
        let Some(bits) = graph.values.as_const(mask) else { continue };
        let test = Step::Test(Test { op: bpf::JSET, left: value, right: mask });
        let block = &mut graph.blocks[at];
        if k == 0 {
            block.step = test;
            std::mem::swap(&mut block.yes, &mut block.no);
        } else if k == bits && bits.is_power_of_two() {
            block.step = test;
        }
    }
    graph
}
