//! Placing blocks and adding jumps.
//!
//! Comparisons can skip at most 255 instructions. Blocks are placed from the last to the first, so
//! that targets are always known; if a target is too far, a jump to it is inserted right after the
//! block, and shared by all earlier blocks that can reach it.

use super::Codes;
use crate::bpf::{self, Insn};
use crate::ir::{BlockId, Graph, Step};

/// Not yet placed.
const UNPLACED: usize = usize::MAX;

struct Layout<'a> {
    graph: &'a Graph,
    snaplen: u32,
    /// The instructions, in reverse order.
    out: Vec<Insn>,
    /// Position of each block, or of the nearest jump to it, counted from the end.
    positions: Vec<usize>,
}

/// The program of blocks in the given order, each before its targets.
pub(super) fn layout(graph: &Graph, order: &[BlockId], codes: &Codes, snaplen: u32) -> Vec<Insn> {
    let mut l =
        Layout { graph, snaplen, out: Vec::new(), positions: vec![UNPLACED; graph.blocks.len()] };
    for (id, code) in order.iter().zip(codes.iter()).rev() {
        let block = &graph.blocks[*id];
        let mut jumps = None;
        match block.step {
            Step::Return(_) => (),
            Step::Set(..) => {
                if l.distance(block.yes) > 0 {
                    l.jump_to(block.yes);
                }
            }
            _ => {
                while let Some(far) =
                    [block.yes, block.no].into_iter().find(|b| l.distance(*b) > 255)
                {
                    l.jump_to(far);
                }
                jumps = Some((l.distance(block.yes) as u8, l.distance(block.no) as u8));
            }
        }
        let last = l.out.len();
        l.out.extend(code.iter().rev());
        if let (Some((jt, jf)), Some(last)) = (jumps, l.out.get_mut(last)) {
            (last.jt, last.jf) = (jt, jf);
        }
        l.positions[*id] = l.out.len();
    }
    l.out.reverse();
    l.out
}

impl Layout<'_> {
    /// The number of instructions from here to a block.
    fn distance(&self, to: BlockId) -> usize {
        self.out.len().saturating_sub(self.positions[to])
    }

    /// Inserts a jump to a block.
    fn jump_to(&mut self, to: BlockId) {
        self.out.push(match self.graph.blocks[to].step {
            Step::Return(verdict) => Insn::new(bpf::RET, if verdict { self.snaplen } else { 0 }),
            _ => Insn::new(bpf::JMP | bpf::JA, self.distance(to) as u32),
        });
        self.positions[to] = self.out.len();
    }
}
