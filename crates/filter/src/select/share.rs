//! Blocks that compare the accumulator, whatever it holds, with the same number, as one.
//!
//! `portrange 25-53` tests the port of IPv4 and that of IPv6, which lie elsewhere: `port >= 25` must
//! load the one or the other, but `port <= 53` finds it in the accumulator either way.

use std::collections::HashMap;

use crate::ir::{BlockId, Graph, Step, Test};

/// Graphs of more blocks stay as they are.
const MAX_BLOCKS: usize = 1 << 14;

/// The graph with such blocks joined, and which blocks take the accumulator as it is; none if there
/// is nothing to join.
pub(super) fn share(graph: &Graph) -> Option<(Graph, Vec<bool>)> {
    if graph.blocks.len() > MAX_BLOCKS {
        return None;
    }
    let compared = |id: BlockId| match graph.blocks[id].step {
        Step::Test(Test { op, left, right }) => Some((op, left, graph.values.as_const(right)?)),
        _ => None,
    };
    // Whether each way to a block comes from a comparison of the value that it compares itself.
    let mut loaded = vec![true; graph.blocks.len()];
    loaded[graph.root] = false;
    for (from, block) in graph.blocks.iter().enumerate() {
        for to in [block.yes, block.no] {
            let of = |id| compared(id).map(|(_, left, _)| left);
            loaded[to] &= of(from).is_some() && of(from) == of(to);
        }
    }
    let mut first: HashMap<_, BlockId> = HashMap::new();
    let mut one: Vec<BlockId> = (0..graph.blocks.len()).collect();
    let mut as_is = vec![false; graph.blocks.len()];
    // Blocks that lead to the same come behind what they lead to: chains join from their ends.
    for (id, block) in graph.blocks.iter().enumerate().filter(|(id, _)| loaded[*id]) {
        if let Some((op, _, k)) = compared(id) {
            let same = *first.entry((op, k, one[block.yes], one[block.no])).or_insert(id);
            one[id] = same;
            as_is[same] |= same != id;
        }
    }
    if !as_is.contains(&true) {
        return None;
    }
    let mut graph = graph.clone();
    for block in &mut graph.blocks {
        (block.yes, block.no) = (one[block.yes], one[block.no]);
    }
    Some((graph, as_is))
}
