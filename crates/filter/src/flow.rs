//! Conditions to a graph of blocks, each of which tests one thing and goes on to one of two others.

use std::collections::HashMap;

use crate::bpf::Insn;
use crate::ir::{Cond, Test, ValueId};

pub(crate) type BlockId = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Test(Test),
    Set(u8, ValueId),
    Code(Vec<Insn>, u32),
    Return(bool),
}

/// A block and where it leads: if its step holds, and if not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    pub(crate) step: Step,
    pub(crate) yes: BlockId,
    pub(crate) no: BlockId,
}

/// The graph, without cycles. Equal blocks are there once.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) blocks: Vec<Block>,
    pub(crate) root: BlockId,
    known: HashMap<Block, BlockId>,
}

pub(crate) const REJECT: BlockId = 0;
pub(crate) const ACCEPT: BlockId = 1;

impl Flow {
    /// The graph that carries out the prologue, whatever comes of it, then tests the condition.
    pub(crate) fn new(prologue: &[Cond], cond: &Cond) -> Self {
        let end = |verdict, to| Block { step: Step::Return(verdict), yes: to, no: to };
        let blocks = vec![end(false, REJECT), end(true, ACCEPT)];
        let mut flow = Self { blocks, root: ACCEPT, known: HashMap::new() };
        flow.root = flow.build(cond, ACCEPT, REJECT);
        for cond in prologue.iter().rev() {
            flow.root = flow.build(cond, flow.root, flow.root);
        }
        flow
    }

    fn add(&mut self, block: Block) -> BlockId {
        let next = self.blocks.len();
        let id = *self.known.entry(block.clone()).or_insert(next);
        if id == next {
            self.blocks.push(block);
        }
        id
    }

    fn build(&mut self, cond: &Cond, yes: BlockId, no: BlockId) -> BlockId {
        match cond {
            Cond::True => yes,
            Cond::False => no,
            Cond::Test(test) => self.add(Block { step: Step::Test(*test), yes, no }),
            Cond::Set(var, value) => {
                self.add(Block { step: Step::Set(*var, *value), yes, no: yes })
            }
            Cond::Code(insns, k) => {
                self.add(Block { step: Step::Code(insns.clone(), *k), yes, no })
            }
            Cond::Not(inner) => self.build(inner, no, yes),
            Cond::All(all) => all.iter().rev().fold(yes, |next, c| self.build(c, next, no)),
            Cond::Any(any) => any.iter().rev().fold(no, |next, c| self.build(c, yes, next)),
        }
    }

    /// Blocks that can be reached, each before those it leads to.
    pub(crate) fn order(&self) -> Vec<BlockId> {
        let mut order = Vec::new();
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
