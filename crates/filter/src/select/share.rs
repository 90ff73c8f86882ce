//! Merging of blocks that compare the accumulator with the same number, though it holds different
//! values.
//!
//! `portrange 25-53` tests the port of IPv4 and of IPv6, which are at different offsets: `port >=
//! 25` must load one or the other, but `port <= 53` finds it in the accumulator either way.

use std::collections::HashMap;

use crate::ir::{BlockId, Graph, Step, Test};

/// Larger graphs are left unchanged.
const MAX_BLOCKS: usize = 1 << 14;

/// The graph with such blocks merged, and the blocks that use the accumulator as it is; `None` if
/// there is nothing to merge.
pub(super) fn share(graph: &Graph) -> Option<(Graph, Vec<bool>)> {
    if graph.blocks.len() > MAX_BLOCKS {
        return None;
    }
    let compared = |id: BlockId| match graph.blocks[id].step {
        Step::Test(Test { op, left, right }) => Some((op, left, graph.values.as_const(right)?)),
        _ => None,
    };
    // Whether each path to a block comes from a comparison of the block's own value.
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
    // Blocks follow their targets, so chains merge from their ends.
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
