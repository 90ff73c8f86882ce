//! Jump threading: along each edge, the facts established before it decide the tests after it.
//!
//! A test is skipped only if its bytes are known to be present, or if the packet is rejected in any
//! case: verdicts on short packets do not change.

use super::facts::Facts;
use crate::ir::{BlockId, Graph, REJECT, Step};

/// Maximum number of rounds over the graph; a round that changes nothing is the last.
const MAX_ROUNDS: usize = 32;
/// Maximum number of steps of an edge in a round.
const MAX_STEPS: usize = 64;
/// Maximum number of blocks visited in all rounds: large graphs get fewer rounds.
const MAX_WORK: usize = 1 << 13;

/// Shortens the paths of a graph.
pub(crate) fn thread(mut graph: Graph) -> Graph {
    let mut work = 0;
    for _ in 0..MAX_ROUNDS {
        work += graph.blocks.len();
        let changed = round(&mut graph, &Facts::default());
        graph = graph.deduplicated();
        if !changed || work > MAX_WORK {
            break;
        }
    }
    graph
}

/// Whether nothing can match because one value would have to be two numbers, or a test both hold
/// and fail: these are the expressions that libpcap refuses as rejecting all packets.
/// Contradictions of ranges and bits only shorten the program.
pub(crate) fn contradicts(mut graph: Graph) -> bool {
    for _ in 0..MAX_ROUNDS {
        let changed = round(&mut graph, &Facts::plain());
        graph = graph.deduplicated();
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
        // Unreachable blocks are skipped.
        let Some(facts) = known[id].take() else { continue };
        let step = graph.blocks[id].step.clone();
        if matches!(step, Step::Return(_)) {
            continue;
        }
        if let Some(holds) = facts.sure(&graph.values, &step) {
            // The only remaining effect is that its bytes must be present.
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

/// The target of a path from a block on, as far as facts decide.
fn skip(graph: &Graph, facts: &Facts, mut at: BlockId) -> BlockId {
    for _ in 0..MAX_STEPS {
        let block = &graph.blocks[at];
        if matches!(block.step, Step::Return(_)) {
            return at;
        }
        let idle = || match block.step {
            // Its variable is not read.
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
