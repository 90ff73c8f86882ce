//! Conditions as a graph of blocks, each of which tests one thing and continues to one of two
//! others.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashTable;

use super::{Cond, Set, Set6, ValueId, Values};
use crate::bpf::Insn;

/// A block's index in [`Graph::blocks`].
pub type BlockId = usize;

/// A comparison as BPF encodes it: equal, greater, greater or equal, or common bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Test {
    /// `0x10` (equal), `0x20` (greater), `0x30` (greater or equal) or `0x40` (bits in common).
    pub op: u16,
    /// The left operand.
    pub left: ValueId,
    /// The right operand.
    pub right: ValueId,
}

/// The step of a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Branches on a comparison.
    Test(Test),
    /// Branches on whether a value is in a set.
    In(ValueId, Arc<Set>),
    /// Branches on whether an address of four words, the highest first, is in a set. Rejects the
    /// packet if any of the words is missing.
    In6([ValueId; 4], Arc<Set6>),
    /// Sets a variable, and continues to `yes`.
    Set(u8, ValueId),
    /// Instructions that end with a number in A, and the number it is compared with. They may have
    /// internal jumps, including backward ones.
    Code(Vec<Insn>, u32),
    /// The verdict.
    Return(bool),
}

/// Maximum number of ranges of a set that is expanded to code; longer sets are looked up.
const LONG_SET: usize = 1024;

/// A block and its two targets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Its step.
    pub step: Step,
    /// The target if the step holds.
    pub yes: BlockId,
    /// The target if it does not hold.
    pub no: BlockId,
}

/// A filter as blocks without cycles from the root to a verdict. A packet that lacks bytes that a
/// block reads, or in which a division is by zero, does not match.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The values of the blocks.
    pub values: Values,
    /// The blocks, each after its targets: [`REJECT`] and [`ACCEPT`] first, the root last.
    pub blocks: Vec<Block>,
    /// The first block.
    pub root: BlockId,
}

/// The block that rejects the packet.
pub const REJECT: BlockId = 0;
/// The block that accepts the packet.
pub const ACCEPT: BlockId = 1;

impl Graph {
    /// The graph that evaluates the prologue, whatever its result, and then tests the condition.
    pub(crate) fn new(values: Values, prologue: &[Cond], cond: &Cond) -> Self {
        let mut builder = Builder::default();
        let mut root = builder.cond(cond, ACCEPT, REJECT);
        for cond in prologue.iter().rev() {
            root = builder.cond(cond, root, root);
        }
        Self { values, blocks: builder.blocks, root }.deduplicated()
    }

    /// Whether no packet matches.
    pub fn rejects_all(&self) -> bool {
        self.root == REJECT
    }

    /// Whether one of the sets is too long to be expanded.
    pub(crate) fn has_long_sets(&self) -> bool {
        let is_long = |block: &Block| match &block.step {
            Step::In(_, set) => set.ranges().len() > LONG_SET,
            _ => false,
        };
        self.has_long_sets6() || self.blocks.iter().any(is_long)
    }

    /// Whether one of the sets of IPv6 addresses is too long to be expanded.
    pub(crate) fn has_long_sets6(&self) -> bool {
        let is_long = |block: &Block| match &block.step {
            Step::In6(_, set) => set.ranges().len() > LONG_SET,
            _ => false,
        };
        self.blocks.iter().any(is_long)
    }

    /// The same graph with equal blocks merged, and unreachable ones removed.
    pub(crate) fn deduplicated(self) -> Self {
        let mut builder = Builder::default();
        let mut place = vec![REJECT; self.blocks.len()];
        place[ACCEPT] = ACCEPT;
        let mut blocks: Vec<Option<Block>> = self.blocks.into_iter().map(Some).collect();
        for id in reachable(&blocks, self.root) {
            if id > ACCEPT
                && let Some(Block { step, yes, no }) = blocks[id].take()
            {
                place[id] = builder.add(Block { step, yes: place[yes], no: place[no] });
            }
        }
        Self { values: self.values, root: place[self.root], blocks: builder.blocks }
    }

    /// The same graph without unreachable blocks.
    pub(crate) fn pruned(mut self) -> Self {
        let mut used = vec![false; self.blocks.len()];
        (used[REJECT], used[ACCEPT], used[self.root]) = (true, true, true);
        // Predecessors of a block have higher indices.
        for id in (ACCEPT + 1..=self.root).rev().filter(|id| *id > ACCEPT) {
            if used[id] {
                (used[self.blocks[id].yes], used[self.blocks[id].no]) = (true, true);
            }
        }
        if used.iter().all(|u| *u) {
            return self;
        }
        let mut place = vec![REJECT; self.blocks.len()];
        let mut kept = 0;
        for (id, used) in used.iter().enumerate() {
            place[id] = kept;
            kept += usize::from(*used);
        }
        let mut keep = used.iter();
        self.blocks.retain(|_| keep.next().is_some_and(|u| *u));
        for block in &mut self.blocks {
            (block.yes, block.no) = (place[block.yes], place[block.no]);
        }
        self.root = place[self.root];
        self
    }

    /// Reachable blocks, each before its targets; `no` targets before `yes` targets if possible.
    pub(crate) fn order(&self) -> Vec<BlockId> {
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut seen = vec![false; self.blocks.len()];
        let mut stack = vec![(self.root, 0)];
        seen[self.root] = true;
        while let Some((id, turn)) = stack.pop() {
            let block = &self.blocks[id];
            let next = match turn {
                0 => block.no,
                1 => block.yes,
                _ => {
                    order.push(id);
                    continue;
                }
            };
            stack.push((id, turn + 1));
            if !seen[next] {
                seen[next] = true;
                stack.push((next, 0));
            }
        }
        order.reverse();
        order
    }
}

/// Reachable blocks, each after its targets.
fn reachable(blocks: &[Option<Block>], root: BlockId) -> Vec<BlockId> {
    let mut order = Vec::with_capacity(blocks.len());
    let mut seen = vec![false; blocks.len()];
    let mut stack = vec![(root, 0)];
    seen[root] = true;
    while let Some((id, turn)) = stack.pop() {
        let Some(block) = &blocks[id] else { continue };
        let next = match turn {
            0 => block.yes,
            1 => block.no,
            _ => {
                order.push(id);
                continue;
            }
        };
        stack.push((id, turn + 1));
        if !seen[next] {
            seen[next] = true;
            stack.push((next, 0));
        }
    }
    order
}

/// Adds blocks after their targets; equal blocks are added once.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) blocks: Vec<Block>,
    /// Index by content.
    known: HashTable<BlockId>,
    hasher: foldhash::fast::FixedState,
}

/// A hash of a block. In large graphs nearly all blocks are comparisons, which a few words
/// distinguish.
fn hash_of(hasher: &foldhash::fast::FixedState, block: &Block) -> u64 {
    let mut h = hasher.build_hasher();
    h.write_u64((block.yes as u64) << 32 ^ block.no as u64);
    match &block.step {
        Step::Test(Test { op, left, right }) => {
            h.write_u64(u64::from(*op) << 48 ^ (left.index() as u64) << 24 ^ right.index() as u64);
        }
        other => other.hash(&mut h),
    }
    h.finish()
}

impl Default for Builder {
    fn default() -> Self {
        let end = |verdict, to| Block { step: Step::Return(verdict), yes: to, no: to };
        let blocks = vec![end(false, REJECT), end(true, ACCEPT)];
        Self { blocks, known: HashTable::new(), hasher: foldhash::fast::FixedState::default() }
    }
}

impl Builder {
    pub(crate) fn add(&mut self, block: Block) -> BlockId {
        // The packet is rejected with either result, and if bytes are missing.
        if block.yes == REJECT && block.no == REJECT {
            return REJECT;
        }
        let Self { blocks, known, hasher } = self;
        let hash = hash_of(hasher, &block);
        if let Some(id) = known.find(hash, |id| blocks[*id] == block) {
            return *id;
        }
        let id = blocks.len();
        known.insert_unique(hash, id, |id| hash_of(hasher, &blocks[*id]));
        blocks.push(block);
        id
    }

    /// Adds a block without looking for an equal one.
    pub(crate) fn push(&mut self, block: Block) -> BlockId {
        if block.yes == REJECT && block.no == REJECT {
            return REJECT;
        }
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    pub(crate) fn test(&mut self, test: Test, yes: BlockId, no: BlockId) -> BlockId {
        self.add(Block { step: Step::Test(test), yes, no })
    }

    fn cond(&mut self, cond: &Cond, yes: BlockId, no: BlockId) -> BlockId {
        let step = match cond {
            Cond::True => return yes,
            Cond::False => return no,
            Cond::Not(inner) => return self.cond(inner, no, yes),
            Cond::All(all) => {
                return all.iter().rev().fold(yes, |next, c| self.cond(c, next, no));
            }
            Cond::Any(any) => return any.iter().rev().fold(no, |next, c| self.cond(c, yes, next)),
            Cond::Test(test) => Step::Test(*test),
            Cond::In(value, set) => Step::In(*value, Arc::clone(set)),
            Cond::In6(words, set) => Step::In6(*words, Arc::clone(set)),
            Cond::Set(var, value) => {
                return self.add(Block { step: Step::Set(*var, *value), yes, no: yes });
            }
            Cond::Code(insns, k) => Step::Code(insns.clone(), *k),
        };
        self.add(Block { step, yes, no })
    }
}
