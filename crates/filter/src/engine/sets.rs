//! Recognising trees and chains of tests of one value as set lookups.
//!
//! `host a or host b or ...` becomes thousands of comparisons in BPF. Together they divide all
//! numbers into ranges, each with a target; with two targets these ranges form a [`Set`], and one
//! lookup in a [`Table`] replaces the comparisons.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::graph::{BlockId, End, Fault, Graph, Node, Value};
use crate::bpf::{AND, JEQ, JGE, JGT, RSH};

/// Numbers as ranges: sorted, disjoint, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) ranges: Vec<(u32, u32)>,
}

/// The lookup structure of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// A bit for each number up to the maximum.
    Bits(Vec<u8>),
    /// Numbers without their lowest bits, each in one of two slots given by hashes (a cuckoo
    /// table). Unused slots hold some member, which does not affect lookups.
    Hash { drop: u32, slots: Vec<u32>, factors: [u32; 2], shift: u32 },
    /// Start and end of each range, alternating, padded to a power of two minus one: a number at or
    /// above an odd count of them is a member.
    Borders(Vec<u64>),
}

/// The maximum for bit tables.
const MAX_BITS: u32 = 0xffff;

impl Set {
    /// Whether a number is in it.
    #[cfg(test)]
    pub(crate) fn contains(&self, number: u32) -> bool {
        let after = self.ranges.partition_point(|r| r.0 <= number);
        after > 0 && self.ranges[after - 1].1 >= number
    }

    /// A table for numbers up to `max_value`.
    pub(crate) fn table(&self, max_value: u32) -> Table {
        if max_value <= MAX_BITS {
            let mut bits = vec![0; max_value as usize / 8 + 1];
            for &(low, high) in &self.ranges {
                for n in low..=high.min(max_value) {
                    bits[n as usize / 8] |= 1 << (n % 8);
                }
            }
            return Table::Bits(bits);
        }
        self.hash().unwrap_or_else(|| self.borders())
    }

    fn borders(&self) -> Table {
        let ends = self.ranges.iter().flat_map(|&(l, h)| [u64::from(l), u64::from(h) + 1]);
        let mut borders: Vec<u64> = ends.collect();
        let full = (borders.len() + 1).next_power_of_two() - 1;
        borders.resize(full, u64::MAX);
        Table::Borders(borders)
    }

    /// `None` if the ranges hold too many numbers, or if no suitable pair of hashes was found.
    fn hash(&self) -> Option<Table> {
        let ends = self.ranges.iter().fold(0, |bits, &(l, h)| bits | l | h.wrapping_add(1));
        let drop = ends.trailing_zeros().min(31);
        let many = |&(l, h): &(u32, u32)| u64::from((h - l) >> drop) + 1;
        let count: u64 = self.ranges.iter().map(many).sum();
        if count > 4 * self.ranges.len() as u64 + 64 {
            return None;
        }
        let keys: Vec<u32> = self.ranges.iter().flat_map(|&(l, h)| l >> drop..=h >> drop).collect();
        let bits = (2 * keys.len()).next_power_of_two().trailing_zeros().max(4);
        // Odd factors, from the golden ratio on.
        let mut factor = 0x9e37_79b9_u32;
        let mut next = || {
            factor = factor.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            factor | 1
        };
        for attempt in 0..MAX_ATTEMPTS {
            let shift = 32 - (bits + attempt / 4).min(28);
            let factors = [next(), next()];
            if let Some(slots) = cuckoo(&keys, factors, shift) {
                return Some(Table::Hash { drop, slots, factors, shift });
            }
        }
        None
    }
}

/// Maximum number of hash pairs tried.
const MAX_ATTEMPTS: u32 = 12;

/// Maximum number of displacements for one insertion.
const MAX_MOVES: usize = 200;

fn cuckoo(keys: &[u32], factors: [u32; 2], shift: u32) -> Option<Vec<u32>> {
    let place = |key: u32, which: usize| (key.wrapping_mul(factors[which]) >> shift) as usize;
    let mut slots: Vec<Option<u32>> = vec![None; 1 << (32 - shift)];
    for key in keys {
        let mut key = *key;
        let mut at = place(key, 0);
        let mut moves = 0;
        while let Some(there) = slots[at].replace(key) {
            moves += 1;
            if moves > MAX_MOVES {
                return None;
            }
            key = there;
            at ^= place(key, 0) ^ place(key, 1);
        }
    }
    let filler = *keys.first()?;
    Some(slots.into_iter().map(|s| s.unwrap_or(filler)).collect())
}

impl Table {
    /// The lookup of the machine code, in Rust.
    #[cfg(test)]
    fn contains(&self, number: u32) -> bool {
        match self {
            Self::Bits(bits) => bits[number as usize / 8] >> (number % 8) & 1 != 0,
            Self::Hash { drop, slots, factors, shift } => {
                let key = number >> drop;
                factors.iter().any(|f| slots[(key.wrapping_mul(*f) >> shift) as usize] == key)
            }
            Self::Borders(borders) => {
                let (mut at, mut step) = (0, borders.len().div_ceil(2));
                while step > 0 {
                    if borders[at + step - 1] <= u64::from(number) {
                        at += step;
                    }
                    step /= 2;
                }
                at & 1 != 0
            }
        }
    }
}

/// Finds sets that begin at each block, from the first on, and replaces their tests.
pub(crate) fn find(graph: &mut Graph) {
    // Limits the work on chains that are not sets, which would otherwise be walked from each link.
    let mut budget = 16 * graph.blocks.len() + 10_000;
    let mut reached = vec![false; graph.blocks.len()];
    if let Some(root) = reached.first_mut() {
        *root = true;
    }
    for at in 0..graph.blocks.len() {
        if !reached[at] {
            continue;
        }
        if let Some((value, _)) = range_of(graph, &graph.blocks[at].end)
            && let Some(end) = region(graph, at, value, &mut budget)
        {
            graph.blocks[at].end = end;
        }
        for to in graph.blocks[at].end.targets() {
            reached[to] = true;
        }
    }
}

/// The range of a value in which a test with a constant holds.
fn range_of(graph: &Graph, end: &End) -> Option<(Value, (u32, u32))> {
    let End::Test { op, left, right, .. } = *end else {
        return None;
    };
    let k = graph.constant(right)?;
    let range = match op {
        JEQ => (k, k),
        JGT => (k.checked_add(1)?, u32::MAX),
        JGE => (k, u32::MAX),
        _ => return None,
    };
    // The upper bits of a value are a range of it.
    let (value, drop) = match graph.node(left) {
        Node::Binary(AND, value, mask) => match graph.constant(mask) {
            Some(mask) if mask.count_ones() == mask.leading_ones() && mask != 0 => {
                if k & !mask != 0 && op != JGT {
                    return None;
                }
                (value, !mask)
            }
            _ => return Some((left, range)),
        },
        Node::Binary(RSH, value, n) => match graph.constant(n) {
            Some(n) if n < 32 && k.leading_zeros() > n => {
                let low = range.0 << n;
                let high = if op == JEQ { low | ((1 << n) - 1) } else { u32::MAX };
                return (range.0.leading_zeros() >= n).then_some((value, (low, high)));
            }
            _ => return Some((left, range)),
        },
        _ => return Some((left, range)),
    };
    let range = match op {
        JEQ => (k, k | drop),
        JGT => ((k | drop).checked_add(1)?, u32::MAX),
        _ => (k, u32::MAX),
    };
    Some((value, range))
}

/// The set test that a block and its successors form together, if they do.
fn region(graph: &mut Graph, head: BlockId, value: Value, budget: &mut usize) -> Option<End> {
    let mut read: HashSet<Fault> = graph.blocks[head].faults.iter().copied().collect();
    read.extend(loads_of(graph, value));
    // Ranges and their targets; of overlapping ones the first counts.
    let mut rules: Vec<(u32, u32, BlockId)> = Vec::new();
    let mut stack = vec![(head, head, 0, graph.max_value(value))];
    let mut inside = HashSet::new();
    while let Some((from_block, at, low, high)) = stack.pop() {
        let block = &graph.blocks[at];
        let plain = block.faults.iter().all(|f| read.contains(f)) && graph.params[at].is_empty();
        let here = at == head || plain;
        // All targets must receive the arguments that the head would pass.
        let same = |p: &Value| graph.argument(from_block, *p) == graph.argument(head, *p);
        if at != head && !graph.params[at].iter().all(same) {
            return None;
        }
        let test = range_of(graph, &block.end).filter(|(v, _)| *v == value && here);
        let (Some((_, (from, to))), End::Test { yes, no, .. }) = (test, &block.end) else {
            rules.push((low, high, at));
            continue;
        };
        *budget = budget.checked_sub(1)?;
        inside.insert(at);
        let (from, to) = (from.max(low), to.min(high));
        if from > to {
            stack.push((at, *no, low, high));
        } else if from == low && to == high {
            stack.push((at, *yes, low, high));
        } else if from == low {
            stack.push((at, *no, to + 1, high));
            stack.push((at, *yes, from, to));
        } else if to == high {
            stack.push((at, *no, low, from - 1));
            stack.push((at, *yes, from, to));
        } else {
            // Below and above have the same target: as one rule, with this range before it.
            stack.push((at, *no, low, high));
            stack.push((at, *yes, from, to));
        }
    }
    if inside.len() < 2 {
        return None;
    }
    let pieces = pieces(&rules);
    let ways: BTreeSet<BlockId> = pieces.iter().map(|p| p.2).collect();
    let mut ways = ways.into_iter();
    let (first, second) = match (ways.next(), ways.next(), ways.next()) {
        (Some(only), None, _) => return Some(End::Jump(only)),
        (Some(a), Some(b), None) => (a, b),
        _ => return None,
    };
    let (mut yes, mut no) = (first, second);
    let count = |way| pieces.iter().filter(|p| p.2 == way).count();
    let bounded = |way| pieces.last().is_none_or(|p| p.2 != way);
    if (count(second), !bounded(second)) < (count(first), !bounded(first)) {
        (yes, no) = (second, first);
    }
    let ranges = pieces.iter().filter(|p| p.2 == yes).map(|p| (p.0, p.1)).collect();
    let set = graph.sets.len();
    graph.sets.push(Set { ranges });
    Some(End::In { set, value, yes, no })
}

/// The loads of a value: where the value is known, they succeeded.
fn loads_of(graph: &Graph, value: Value) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut stack = vec![value];
    let mut steps = 0;
    while let Some(value) = stack.pop() {
        steps += 1;
        if steps > 64 {
            break;
        }
        match graph.node(value) {
            Node::Load { base, .. } => {
                found.push(Fault::Load(value));
                stack.extend(base);
            }
            Node::Binary(_, a, b) => stack.extend([a, b]),
            Node::Neg(a) => stack.push(a),
            Node::Const(_) | Node::Wire | Node::Differs(..) => (),
        }
    }
    found
}

/// Converts rules, of which the first that applies counts, to disjoint ranges in order.
fn pieces(rules: &[(u32, u32, BlockId)]) -> Vec<(u32, u32, BlockId)> {
    let mut begin: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut end: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut borders = BTreeSet::new();
    for (i, &(low, high, _)) in rules.iter().enumerate() {
        begin.entry(u64::from(low)).or_default().push(i);
        end.entry(u64::from(high) + 1).or_default().push(i);
        borders.extend([u64::from(low), u64::from(high) + 1]);
    }
    let mut active = BTreeSet::new();
    let mut pieces: Vec<(u32, u32, BlockId)> = Vec::new();
    let mut borders = borders.into_iter().peekable();
    while let Some(at) = borders.next() {
        for i in begin.get(&at).into_iter().flatten() {
            active.insert(*i);
        }
        for i in end.get(&at).into_iter().flatten() {
            active.remove(i);
        }
        let (Some(next), Some(first)) = (borders.peek(), active.first()) else {
            continue;
        };
        let (low, high, way) = (at as u32, (next - 1) as u32, rules[*first].2);
        match pieces.last_mut() {
            Some(last) if last.2 == way => last.1 = high,
            _ => pieces.push((low, high, way)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    fn graph_of(expression: &str) -> Graph {
        let program = compile(expression, 1, &Options::default(), &NoNames).unwrap();
        let mut graph = Graph::new(program.program().insns()).unwrap();
        find(&mut graph);
        graph
    }

    #[test]
    fn lists_become_sets() {
        let ports = [22, 80, 443, 8080, 9000];
        let list = ports.map(|p| format!("ether[0:2] = {p}")).join(" or ");
        let graph = graph_of(&list);
        let set = graph.sets.iter().max_by_key(|s| s.ranges.len()).expect("a set");
        assert_eq!(set.ranges, ports.map(|p| (p, p)));
    }

    #[test]
    fn the_first_of_overlapping_rules_counts() {
        let rules = [(5, 5, 1), (3, 8, 2), (0, u32::MAX, 1)];
        let expected = [(0, 2, 1), (3, 4, 2), (5, 5, 1), (6, 8, 2), (9, u32::MAX, 1)];
        assert_eq!(pieces(&rules), expected);
    }

    proptest::proptest! {
        #[test]
        fn tables_agree_with_sets(
            mut ends in proptest::collection::btree_set(0u32..=u32::MAX, 2..200),
            narrow: bool,
            points: bool,
            asked in proptest::collection::vec(proptest::num::u32::ANY, 50),
        ) {
            if narrow {
                ends = ends.into_iter().map(|e| e & 0xffff).collect();
            }
            let all: Vec<u32> = ends.iter().copied().collect();
            let ranges: Vec<(u32, u32)> = if points {
                all.iter().step_by(2).map(|e| (*e, *e)).collect()
            } else {
                all.chunks_exact(2).map(|c| (c[0], c[1])).collect()
            };
            let set = Set { ranges };
            let max_value = if narrow { 0xffff } else { u32::MAX };
            let tables = [Some(set.table(max_value)), set.hash(), Some(set.borders())];
            let near = all.iter().flat_map(|e| [e.saturating_sub(1), *e, e.saturating_add(1)]);
            for n in near.chain(asked).chain([0, u32::MAX]).map(|n| n.min(max_value)) {
                for table in tables.iter().flatten() {
                    proptest::prop_assert_eq!(table.contains(n), set.contains(n), "{} {:?}", n, set);
                }
            }
        }
    }
}
