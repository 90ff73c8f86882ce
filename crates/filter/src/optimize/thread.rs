//! Jumps go straight to where they must end: along each edge what the tests before it have shown
//! decides the tests behind it.
//!
//! A test is left out only if its bytes are known to be there, or if the packet is rejected in any
//! case: whether a short packet is rejected does not change.

use super::facts::Facts;
use crate::ir::{BlockId, Graph, REJECT, Step};

/// Rounds over the graph; each is of use only if the one before changed something.
const MAX_ROUNDS: usize = 32;
/// How far an edge moves in a round.
const MAX_STEPS: usize = 64;
/// How many blocks are looked at in all rounds: large graphs get fewer rounds.
const MAX_WORK: usize = 1 << 13;

/// Shortens the paths of a graph.
pub(crate) fn thread(mut graph: Graph) -> Graph {
    let mut work = 0;
    for _ in 0..MAX_ROUNDS {
        work += graph.blocks.len();
        let changed = round(&mut graph, &Facts::default());
        graph = graph.tidy();
        if !changed || work > MAX_WORK {
            break;
        }
    }
    graph
}

/// Whether nothing can match because one value would have to be two numbers, or a test both hold and fail: what
/// libpcap refuses as rejecting all packets. What ranges and bits show beyond that makes a program short, but is no
/// reason to refuse it.
pub(crate) fn contradicts(mut graph: Graph) -> bool {
    for _ in 0..MAX_ROUNDS {
        let changed = round(&mut graph, &Facts::plain());
        graph = graph.tidy();
        if graph.rejects_all() || !changed {
            break;
        }
    }
    graph.rejects_all()
}

fn round(graph: &mut Graph, begin: &Facts) -> bool {
    let mut known: Vec<Option<Facts>> = vec![None; graph.blocks.len()];
    let root = skip(graph, begin, graph.root);
    let mut changed = root != graph.root;
    graph.root = root;
    known[root] = Some(begin.clone());
    for id in (0..=root).rev() {
        // Blocks that no edge leads to any more are left behind.
        let Some(facts) = known[id].take() else { continue };
        let step = graph.blocks[id].step.clone();
        if matches!(step, Step::Return(_)) {
            continue;
        }
        if let Some(holds) = facts.sure(&graph.values, &step) {
            // The rest of it is whether its bytes are there.
            let block = &mut graph.blocks[id];
            changed |= block.yes != block.no;
            let end = if holds { block.yes } else { block.no };
            (block.yes, block.no) = (end, end);
        }
        for sense in [true, false] {
            let block = &graph.blocks[id];
            let begin = if sense { block.yes } else { block.no };
            if !sense && matches!(step, Step::Set(..)) {
                graph.blocks[id].no = block.yes;
                continue;
            }
            let mut facts = facts.clone();
            facts.at = id;
            facts.learn(&graph.values, &step, sense);
            let end = skip(graph, &facts, begin);
            if end != begin {
                changed = true;
                let block = &mut graph.blocks[id];
                *(if sense { &mut block.yes } else { &mut block.no }) = end;
            }
            match &mut known[end] {
                Some(there) => there.meet(&facts),
                none => *none = Some(facts),
            }
        }
    }
    changed
}

/// Where a path ends up from a block on, as far as facts decide.
fn skip(graph: &Graph, facts: &Facts, mut at: BlockId) -> BlockId {
    for _ in 0..MAX_STEPS {
        let block = &graph.blocks[at];
        if matches!(block.step, Step::Return(_)) {
            return at;
        }
        let idle = || match block.step {
            // What it sets nobody asks for.
            Step::Set(..) => block.yes == REJECT,
            _ => block.yes == REJECT || facts.idle(&graph.values, &block.step),
        };
        at = match facts.decide(&graph.values, &block.step) {
            Some(true) => block.yes,
            Some(false) => block.no,
            None if block.yes == block.no && idle() => block.yes,
            None => return at,
        };
    }
    at
}
