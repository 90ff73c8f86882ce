//! Several tests decided by one branch.
//!
//! Consecutive tests that all leave to the same block need only one branch: it may be unpredictable
//! which of two ports matches, but predictable that one does. The same holds for tests that leave
//! with different verdicts: the verdict can be selected. The bytes of such a test must be present:
//! already checked, or within a few bytes after them, for which one more check is added; packets
//! that end in between take the branches one by one.

use crate::bpf::JEQ;
use crate::engine::bounds::{Bounds, Reach, is_known};
use crate::engine::graph::{BlockId, End, Fault, Graph, Node, Value};

/// Tests that are decided together.
#[derive(Debug)]
pub(super) struct Join {
    /// The blocks after the first, in order.
    pub(super) tests: Vec<BlockId>,
    /// Target of each test that leaves, starting with the first: the same block, or one with a
    /// verdict.
    pub(super) exits: Vec<BlockId>,
    /// Target if no test leaves.
    pub(super) next: BlockId,
    /// Checks that the joined tests require.
    pub(super) checks: Vec<Reach>,
}

impl Join {
    /// The target of all leaving tests, if it is the same.
    pub(super) fn exit(&self) -> Option<BlockId> {
        let (first, rest) = self.exits.split_first()?;
        rest.iter().all(|e| e == first).then_some(*first)
    }
}

/// Maximum number of joined tests.
const MAX_TESTS: usize = 4;

/// Maximum number of bytes of a check beyond those already checked.
const MAX_STEP: u64 = 4;

/// Maximum number of operations of a joined test.
const MAX_NODES: usize = 6;

/// The longest sequence of tests that begins at a block and can be joined.
pub(super) fn find(graph: &Graph, bounds: &Bounds, at: BlockId) -> Option<Join> {
    let End::Test { op, yes, no, .. } = graph.blocks[at].end else { return None };
    // Joining the test of the link layer's protocol with the next one costs more than its branch,
    // unless the row ends the filter.
    let alone = op == JEQ && about_link(graph, at);
    let pays = |join: &Join| !alone || join.exits[0] == yes || verdict(graph, join.next).is_some();
    let ways = [(yes, no), (no, yes)];
    let rows = ways.into_iter().filter_map(|(next, exit)| row(graph, bounds, at, next, exit));
    let rows = rows.filter(pays);
    // The longer one; of two equal ones the one with a single target.
    rows.max_by_key(|j| (j.tests.len(), j.exit().is_some()))
}

/// Whether a later block repeats the first test: the protocol above the link, which is the same for
/// nearly all packets and already loaded.
fn about_link(graph: &Graph, at: BlockId) -> bool {
    let tested = |at: BlockId| match graph.blocks[at].end {
        End::Test { left, .. } => Some(left),
        _ => None,
    };
    at != 0 && tested(at).is_some() && tested(at) == tested(0)
}

fn row(graph: &Graph, bounds: &Bounds, at: BlockId, next: BlockId, exit: BlockId) -> Option<Join> {
    if !graph.params[exit].is_empty() {
        return None;
    }
    let mut join = Join { tests: Vec::new(), exits: vec![exit], next, checks: Vec::new() };
    let mut known = bounds.known[at].clone();
    while join.exits.len() < MAX_TESTS {
        let block = &graph.blocks[join.next];
        let End::Test { left, right, yes, no, .. } = block.end else { break };
        let Some((out, behind)) = leaves(graph, &join.exits, [yes, no]) else { break };
        let plain = block.faults.iter().all(|f| matches!(f, Fault::Load(_)));
        if !plain
            || !graph.params[join.next].is_empty()
            || bounds.need[join.next] == u64::MAX
            || nodes(graph, [left, right]) > MAX_NODES
        {
            break;
        }
        let unknown = |r: &&Reach| !is_known(graph, &known, **r);
        let wanted: Vec<Reach> = bounds.checks[join.next].iter().filter(unknown).copied().collect();
        let near =
            |r: &Reach| known.iter().any(|k| k.0 == r.0 && r.1.saturating_sub(k.1) <= MAX_STEP);
        if !wanted.iter().all(near) {
            break;
        }
        for reach in wanted {
            for list in [&mut known, &mut join.checks] {
                list.retain(|k| k.0 != reach.0);
                list.push(reach);
            }
        }
        join.tests.push(join.next);
        join.exits.push(out);
        join.next = behind;
    }
    (!join.tests.is_empty()).then_some(join)
}

/// The edge of a test that leaves a row, and the one that stays.
fn leaves(graph: &Graph, exits: &[BlockId], [yes, no]: [BlockId; 2]) -> Option<(BlockId, BlockId)> {
    let exit = *exits.first()?;
    match (yes == exit, no == exit) {
        (true, false) => return Some((yes, no)),
        (false, true) => return Some((no, yes)),
        (true, true) => return None,
        (false, false) => (),
    }
    // A different verdict is allowed where one path to a match was tested first and the rest begins
    // another. Tests that reject first drop most packets, so that further tests would be wasted.
    let matched = exits.iter().all(|e| *e == exit) && verdict(graph, exit).is_some_and(|v| v > 0);
    match (verdict(graph, yes), verdict(graph, no)) {
        (Some(0), None) if matched => Some((yes, no)),
        (None, Some(0)) if matched => Some((no, yes)),
        _ => None,
    }
}

/// The verdict of a block without tests.
pub(super) fn verdict(graph: &Graph, at: BlockId) -> Option<u32> {
    let block = &graph.blocks[at];
    match block.end {
        End::Return(value) if block.faults.is_empty() => graph.constant(value),
        _ => None,
    }
}

/// Number of operations of values, up to the limit.
fn nodes(graph: &Graph, values: [Value; 2]) -> usize {
    let mut stack = values.to_vec();
    let mut count = 0;
    while let Some(value) = stack.pop() {
        if count > MAX_NODES {
            break;
        }
        match graph.node(value) {
            Node::Const(_) | Node::Wire | Node::Differs(..) => (),
            // A base is an address that is already computed.
            Node::Load { .. } => count += 1,
            Node::Neg(a) => {
                count += 1;
                stack.push(a);
            }
            Node::Binary(_, a, b) => {
                count += 1;
                stack.extend([a, b]);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    #[test]
    fn ports_are_tested_together() {
        let program = compile("tcp port 80", 1, &Options::default(), &NoNames).unwrap();
        let mut graph = Graph::new(program.program().insns()).unwrap();
        let bounds = Bounds::new(&mut graph);
        let joins: Vec<Option<Join>> =
            (0..graph.blocks.len()).map(|at| find(&graph, &bounds, at)).collect();
        // Two ports over IPv6, two over IPv4, the latter after one check; and TCP in the first
        // fragment of an IPv4 packet.
        let rows = || joins.iter().flatten();
        assert_eq!(rows().count(), 3, "{joins:?}");
        assert!(rows().all(|j| j.tests.len() == 1), "{joins:?}");
        let over_options = |j: &&Join| j.checks.iter().any(|c| c.0.is_some());
        assert_eq!(rows().filter(over_options).count(), 1, "{joins:?}");
        // The test for IPv4 has a branch of its own.
        let about_link = |at: &usize| about_link(&graph, *at);
        let mut protocols = (0..graph.blocks.len()).filter(about_link);
        assert!(protocols.all(|at| joins[at].is_none()), "{joins:?}");
    }

    #[test]
    fn either_verdict_leaves() {
        let text = "ip src 10.0.0.1 or (ip dst 10.0.0.2 and tcp[13] & 2 != 0)";
        let program = compile(text, 1, &Options::default(), &NoNames).unwrap();
        let mut graph = Graph::new(program.program().insns()).unwrap();
        let bounds = Bounds::new(&mut graph);
        let mut joins = (0..graph.blocks.len()).filter_map(|at| find(&graph, &bounds, at));
        // Matches by the source, or rejects by the destination.
        assert!(joins.any(|j| j.exit().is_none()), "{graph:?}");
    }
}
