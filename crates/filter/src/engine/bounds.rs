//! Placement of length checks.
//!
//! A packet that is too short is rejected, without other effects: so a check may be done earlier
//! than its load, wherever all accepting paths reach an equal or stricter check. Checks that hold
//! on all paths to a block are not repeated.

use super::graph::{Block, End, Fault, Graph, Node, Value};

/// Required bytes: from a base, or from the start of the packet, up to an end.
pub(crate) type Reach = (Option<Value>, u64);

/// The checks at the start of each block. A block that no packet passes becomes one that rejects.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The minimum length that all paths require, in bytes.
    pub(crate) need: Vec<u64>,
    /// Requirements not yet known to hold, at most one for each base.
    pub(crate) checks: Vec<Vec<Reach>>,
    /// Requirements known to hold after a block's checks.
    pub(crate) known: Vec<Vec<Reach>>,
}

/// Maximum number of bases in a list of known requirements; further ones are checked again.
const MAX_KNOWN: usize = 16;

impl Bounds {
    pub(crate) fn new(graph: &mut Graph) -> Self {
        let count = graph.blocks.len();
        let mut need = vec![0; count];
        for at in (0..count).rev() {
            let block = &graph.blocks[at];
            let ahead = match block.end {
                End::Return(v) if graph.constant(v) == Some(0) => u64::MAX,
                End::Return(_) => 0,
                _ => block.end.targets().map(|to| need[to]).min().unwrap_or(0),
            };
            let reaches = reaches(graph, block);
            let own = reaches.iter().find(|r| r.0.is_none()).map_or(0, |r| r.1);
            need[at] = own.max(ahead);
            // Lengths are numbers of 32 bits.
            if need[at] > u64::from(u32::MAX) {
                need[at] = u64::MAX;
                let zero = graph.add(Node::Const(0));
                graph.blocks[at] = Block { faults: Vec::new(), end: End::Return(zero) };
            }
        }
        let mut bounds =
            Self { need, checks: vec![Vec::new(); count], known: vec![Vec::new(); count] };
        let mut before: Vec<Option<Vec<Reach>>> = vec![None; count];
        if let Some(root) = before.first_mut() {
            *root = Some(Vec::new());
        }
        for at in 0..count {
            let Some(mut known) = before[at].take() else {
                continue;
            };
            let block = &graph.blocks[at];
            let mut wanted = reaches(graph, block);
            wanted.retain(|r| r.0.is_some());
            if bounds.need[at] != u64::MAX && bounds.need[at] > 0 {
                wanted.insert(0, (None, bounds.need[at]));
            }
            for reach in wanted {
                if !is_known(graph, &known, reach) {
                    bounds.checks[at].push(reach);
                    known.retain(|k| k.0 != reach.0);
                    if known.len() < MAX_KNOWN {
                        known.push(reach);
                    }
                }
            }
            for to in block.end.targets() {
                match &mut before[to] {
                    Some(there) => {
                        there.retain_mut(|r| match known.iter().find(|k| k.0 == r.0) {
                            Some(k) => {
                                r.1 = r.1.min(k.1);
                                true
                            }
                            None => false,
                        });
                    }
                    none => *none = Some(known.clone()),
                }
            }
            bounds.known[at] = known;
        }
        bounds
    }
}

/// The furthest loads of a block, one for each base.
pub(crate) fn reaches(graph: &Graph, block: &Block) -> Vec<Reach> {
    let mut all: Vec<Reach> = Vec::new();
    for fault in &block.faults {
        let Fault::Load(value) = fault else { continue };
        let Node::Load { size, base, offset } = graph.node(*value) else { continue };
        let end = u64::from(offset) + u64::from(size);
        match all.iter_mut().find(|r| r.0 == base) {
            Some(reach) => reach.1 = reach.1.max(end),
            None => all.push((base, end)),
        }
    }
    all
}

/// Whether known requirements imply a reach.
pub(crate) fn is_known(graph: &Graph, known: &[Reach], (base, end): Reach) -> bool {
    known.iter().any(|k| k.0 == base && k.1 >= end)
        || base.is_some_and(|b| {
            let most = u64::from(graph.max_value(b)) + end;
            known.iter().any(|k| k.0.is_none() && k.1 >= most)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    fn of(expression: &str, optimize: bool) -> (Graph, Bounds) {
        let options = Options { optimize, ..Options::default() };
        let program = compile(expression, 1, &options, &NoNames).unwrap();
        let mut graph = Graph::new(program.program().insns()).unwrap();
        let bounds = Bounds::new(&mut graph);
        (graph, bounds)
    }

    #[test]
    fn one_check_for_what_all_paths_need() {
        let (graph, bounds) = of("ip src 10.0.0.1 and ip dst 10.0.0.2", true);
        let checks: Vec<_> = bounds.checks.iter().flatten().collect();
        assert_eq!(checks, [&(None, 34)], "{graph:?}");
    }

    #[test]
    fn ports_after_options_are_checked_together() {
        let (_, bounds) = of("ip and tcp src port 80 and tcp dst port 81", true);
        let checks: usize = bounds.checks.iter().map(Vec::len).sum();
        assert!(checks <= 3, "{bounds:?}");
    }
}
