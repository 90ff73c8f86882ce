//! Sets as balanced trees of comparisons, for engines without set lookups.
//!
//! A few single numbers are compared one by one; more of them, and ranges, are bisected. The same
//! holds for chains of comparisons of one value with many numbers, independent of their targets.

use crate::bpf;
use crate::ir::{Block, BlockId, Builder, Graph, REJECT, Step, Test, ValueId, Values};

/// Maximum number of exceptions compared one by one; more are bisected, which costs an instruction
/// but saves time.
const MAX_LINEAR: usize = 6;
/// Chains of at least this many comparisons become a tree.
const LONG_CHAIN: usize = 12;

/// A graph without sets, in which long chains of comparisons are trees.
pub(crate) fn expand(graph: Graph) -> Graph {
    expanded(graph, false)
}

/// A graph with sets of single words only, for engines that look those up.
#[cfg(feature = "jit")]
pub(crate) fn expand_words(graph: Graph) -> Graph {
    expanded(graph, true)
}

fn expanded(graph: Graph, sets: bool) -> Graph {
    let Graph { mut values, blocks, root } = graph;
    let chains = Chains::find(&values, &blocks);
    let mut builder = Builder::default();
    let mut place: Vec<BlockId> = vec![0, 1];
    for (id, block) in blocks.iter().enumerate().skip(place.len()) {
        let (yes, no) = (place[block.yes], place[block.no]);
        place.push(match &block.step {
            Step::In(..) if sets => builder.add(Block { step: block.step.clone(), yes, no }),
            Step::In(value, set) => {
                let pieces = pieces(set.ranges(), yes, no);
                Tree::new(&mut values, &mut builder).decide(*value, &pieces)
            }
            Step::In6(words, set) => {
                let mut tree = Tree::new(&mut values, &mut builder);
                let found = tree.words(words, set.ranges(), yes, no);
                // First reads the last word: all words are adjacent.
                tree.touch(words[3], found)
            }
            _ if chains.inside[id] => REJECT,
            _ => match chains.pieces(&values, &blocks, &place, id) {
                Some((value, pieces)) => {
                    Tree::new(&mut values, &mut builder).decide(value, &pieces)
                }
                None => builder.add(Block { step: block.step.clone(), yes, no }),
            },
        });
    }
    Graph { values, root: place[root], blocks: builder.blocks }.pruned()
}

/// Targets of numbers, each from its number up to the next.
type Pieces = Vec<(u32, BlockId)>;

fn pieces(ranges: &[(u32, u32)], yes: BlockId, no: BlockId) -> Pieces {
    let mut out = Vec::with_capacity(ranges.len() * 2 + 1);
    if ranges.first().is_none_or(|(low, _)| *low > 0) {
        out.push((0, no));
    }
    for (low, high) in ranges {
        out.push((*low, yes));
        if let Some(next) = high.checked_add(1) {
            out.push((next, no));
        }
    }
    out
}

struct Tree<'a> {
    values: &'a mut Values,
    builder: &'a mut Builder,
    /// Whether to skip the search for equal blocks and constants: within a tree there are none, and
    /// the search is most of the work.
    large: bool,
}

/// Trees of at least this many exceptions are large.
const LARGE: usize = 256;

/// Numbers whose target is not the default.
#[derive(Clone, Copy, Debug)]
struct Exception {
    low: u32,
    high: u32,
    to: BlockId,
}

impl<'a> Tree<'a> {
    fn new(values: &'a mut Values, builder: &'a mut Builder) -> Self {
        Self { values, builder, large: false }
    }

    fn test(&mut self, op: u16, value: ValueId, k: u32, yes: BlockId, no: BlockId) -> BlockId {
        if yes == no {
            return yes;
        }
        if self.large {
            let right = self.values.another_constant(k);
            let step = Step::Test(Test { op, left: value, right });
            return self.builder.push(Block { step, yes, no });
        }
        let right = self.values.constant(k);
        self.builder.test(Test { op, left: value, right }, yes, no)
    }

    /// Continues to `to`, or rejects the packet if a value cannot be evaluated.
    fn touch(&mut self, value: ValueId, to: BlockId) -> BlockId {
        let right = self.values.constant(0);
        self.builder.test(Test { op: bpf::JEQ, left: value, right }, to, to)
    }

    /// The tree that leads a value to its target.
    fn decide(&mut self, value: ValueId, pieces: &[(u32, BlockId)]) -> BlockId {
        let Some(first) = pieces.first() else { return REJECT };
        // The target of most ranges becomes the default.
        let mut counts: Vec<(BlockId, usize)> = Vec::new();
        for (_, to) in pieces {
            match counts.iter().position(|(t, _)| t == to) {
                Some(at) => counts[at].1 += 1,
                None if counts.len() < MAX_LINEAR => counts.push((*to, 1)),
                None => (),
            }
        }
        let default_target = counts.iter().max_by_key(|(_, n)| *n).map_or(first.1, |(to, _)| *to);
        let exceptions: Vec<Exception> = pieces
            .iter()
            .enumerate()
            .filter(|(_, (_, to))| *to != default_target)
            .map(|(i, (low, to))| {
                let high = pieces.get(i + 1).map_or(u32::MAX, |(next, _)| next - 1);
                Exception { low: *low, high, to: *to }
            })
            .collect();
        let high = self.values.max_value(value);
        self.large = exceptions.len() >= LARGE;
        let id = self.split(value, &exceptions, default_target, (0, high));
        self.large = false;
        match exceptions.len() {
            0 => self.touch(value, id),
            _ => id,
        }
    }

    /// [`decide`](Self::decide) for values known to lie between two bounds.
    fn split(
        &mut self,
        value: ValueId,
        exceptions: &[Exception],
        default_target: BlockId,
        bounds: (u32, u32),
    ) -> BlockId {
        let singles = exceptions.iter().all(|e| e.low == e.high);
        if exceptions.len() <= 1 || singles && exceptions.len() <= MAX_LINEAR {
            return exceptions
                .iter()
                .rev()
                .fold(default_target, |next, e| self.leaf(value, *e, next, bounds));
        }
        let middle = exceptions.len() / 2;
        let (left, right) = exceptions.split_at(middle);
        let k = right[0].low;
        let below = self.split(value, left, default_target, (bounds.0, k - 1));
        let above = self.split(value, right, default_target, (k, bounds.1));
        self.test(bpf::JGE, value, k, above, below)
    }

    fn leaf(
        &mut self,
        value: ValueId,
        e: Exception,
        default_target: BlockId,
        bounds: (u32, u32),
    ) -> BlockId {
        if e.low == e.high {
            return self.test(bpf::JEQ, value, e.low, e.to, default_target);
        }
        let below = match e.high >= bounds.1 {
            true => e.to,
            false => self.test(bpf::JGT, value, e.high, default_target, e.to),
        };
        match e.low <= bounds.0 {
            true => below,
            false => self.test(bpf::JGE, value, e.low, below, default_target),
        }
    }

    /// Word by word: equal higher words are decided by the next.
    fn words(
        &mut self,
        words: &[ValueId],
        ranges: &[(u128, u128)],
        yes: BlockId,
        no: BlockId,
    ) -> BlockId {
        let Some((word, rest)) = words.split_first() else { return yes };
        let shift = rest.len() * 32;
        let parts = by_word(ranges, shift);
        let mut pieces: Pieces = vec![(0, no)];
        let mut push = |from: u32, to: BlockId| match pieces.last_mut() {
            Some((start, there)) if *start == from => *there = to,
            Some((_, there)) if *there == to => (),
            _ => pieces.push((from, to)),
        };
        let mut i = 0;
        while let Some(&(first, last, part)) = parts.get(i) {
            let to = match part {
                None => yes,
                Some(_) => {
                    let same = parts[i..].iter().take_while(|p| p.0 == first);
                    let within: Vec<_> = same.filter_map(|p| p.2).collect();
                    i += within.len() - 1;
                    self.words(rest, &within, yes, no)
                }
            };
            push(first, to);
            if let Some(next) = last.checked_add(1) {
                push(next, no);
            }
            i += 1;
        }
        self.decide(*word, &pieces)
    }
}

/// A range of words, and the part of the set below them; all of it if `None`.
type Part = (u32, u32, Option<(u128, u128)>);

/// Splits ranges where the word above `shift` bits changes.
fn by_word(ranges: &[(u128, u128)], shift: usize) -> Vec<Part> {
    let below = (1_u128 << shift) - 1;
    let word = |n: u128| (n >> shift) as u32;
    let mut out = Vec::with_capacity(ranges.len());
    for &(low, high) in ranges {
        let (mut first, mut last) = (u64::from(word(low)), u64::from(word(high)));
        let (from, to) = (low & below, high & below);
        if first == last && (from > 0 || to < below) {
            out.push((word(low), word(low), Some((from, to))));
            continue;
        }
        if from > 0 {
            out.push((word(low), word(low), Some((from, below))));
            first += 1;
        }
        if to < below {
            last = last.saturating_sub(1);
        }
        if first <= last {
            out.push((first as u32, last as u32, None));
        }
        if to < below {
            out.push((word(high), word(high), Some((0, to))));
        }
    }
    out
}

/// Chains of blocks that compare one value with one number after the other.
struct Chains {
    /// The length of the chain that begins at a block; zero if it is short.
    length: Vec<usize>,
    /// Whether a block belongs to a chain that begins before it.
    inside: Vec<bool>,
}

impl Chains {
    fn find(values: &Values, blocks: &[Block]) -> Self {
        let mut entries = vec![0_u32; blocks.len()];
        for block in blocks {
            entries[block.yes] += 1;
            entries[block.no] += 1;
        }
        let mut length = vec![0; blocks.len()];
        let mut inside = vec![false; blocks.len()];
        for head in (0..blocks.len()).rev().filter(|id| !matches!(blocks[*id].step, Step::In(..))) {
            let Some((value, _)) = equality(values, &blocks[head]) else { continue };
            if inside[head] {
                continue;
            }
            let mut members = vec![head];
            let mut at = blocks[head].no;
            while entries[at] == 1 && equality(values, &blocks[at]).is_some_and(|(v, _)| v == value)
            {
                members.push(at);
                at = blocks[at].no;
            }
            if members.len() >= LONG_CHAIN {
                length[head] = members.len();
                for id in &members[1..] {
                    inside[*id] = true;
                }
            }
        }
        Self { length, inside }
    }

    /// The targets of a chain's value.
    fn pieces(
        &self,
        values: &Values,
        blocks: &[Block],
        place: &[BlockId],
        head: BlockId,
    ) -> Option<(ValueId, Pieces)> {
        if self.length[head] == 0 {
            return None;
        }
        let (value, _) = equality(values, &blocks[head])?;
        let mut at = head;
        let mut ones: Vec<(u32, BlockId)> = Vec::with_capacity(self.length[head]);
        for _ in 0..self.length[head] {
            let (_, k) = equality(values, &blocks[at])?;
            ones.push((k, place[blocks[at].yes]));
            at = blocks[at].no;
        }
        let other = place[at];
        // Of equal numbers the first counts.
        ones.sort_by_key(|(k, _)| *k);
        ones.dedup_by_key(|(k, _)| *k);
        let mut out: Pieces = vec![(0, other)];
        for (k, to) in ones {
            match out.last_mut() {
                Some((start, there)) if *start == k => *there = to,
                _ => out.push((k, to)),
            }
            out.extend(k.checked_add(1).map(|next| (next, other)));
        }
        Some((value, out))
    }
}

fn equality(values: &Values, block: &Block) -> Option<(ValueId, u32)> {
    match block.step {
        Step::Test(Test { op: bpf::JEQ, left, right }) => Some((left, values.as_const(right)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_where_words_change() {
        let part = |w: u32, from: u128, to: u128| (w, w, Some((from, to)));
        assert_eq!(by_word(&[(0x5_0000_0001, 0x5_0000_0002)], 32), [part(5, 1, 2)]);
        assert_eq!(by_word(&[(0x5_0000_0000, 0x5_ffff_ffff)], 32), [(5, 5, None)]);
        assert_eq!(
            by_word(&[(0x5_0000_0001, 0x8_0000_0002)], 32),
            [part(5, 1, 0xffff_ffff), (6, 7, None), part(8, 0, 2)]
        );
        assert_eq!(
            by_word(&[(0x5_0000_0001, 0x6_0000_0002)], 32),
            [part(5, 1, 0xffff_ffff), part(6, 0, 2)]
        );
        assert_eq!(by_word(&[(1, 2)], 0), [(1, 2, None)]);
    }
}
