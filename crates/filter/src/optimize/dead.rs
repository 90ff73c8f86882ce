//! Elimination of unused assignments.

use crate::ir::{ACCEPT, Graph, Step};

/// Removes unused assignments, except where evaluating the value may reject the packet.
pub(crate) fn dead(mut graph: Graph) -> Graph {
    let Graph { values, blocks, root } = &mut graph;
    if !blocks.iter().any(|b| matches!(b.step, Step::Set(..))) {
        return graph;
    }
    // Variables that are read from a block on, and the targets of removed blocks.
    let mut live = vec![0_u16; blocks.len()];
    let mut place: Vec<usize> = (0..blocks.len()).collect();
    for id in ACCEPT + 1..blocks.len() {
        let block = &mut blocks[id];
        (block.yes, block.no) = (place[block.yes], place[block.no]);
        let behind = live[block.yes] | live[block.no];
        live[id] = match &block.step {
            Step::Test(test) => behind | values.vars(test.left) | values.vars(test.right),
            Step::In(value, _) => behind | values.vars(*value),
            Step::In6(words, _) => words.iter().fold(behind, |v, w| v | values.vars(*w)),
            Step::Set(var, value) => {
                let bit = 1 << (var & 15);
                if behind & bit == 0 && !values.may_fault(*value) {
                    place[id] = block.yes;
                    behind
                } else {
                    behind & !bit | values.vars(*value)
                }
            }
            Step::Code(..) | Step::Return(_) => behind,
        };
    }
    *root = place[*root];
    graph.deduplicated()
}
