//! Placing blocks and adding jumps.
//!
//! Comparisons can skip at most 255 instructions. Blocks are placed from the last to the first, so
//! that targets are always known; if a target is too far, a jump to it is inserted right behind the
//! block, and shared by all earlier blocks that can reach it.

use super::Codes;
use crate::bpf::{self, Insn};
use crate::ir::{BlockId, Graph, Step};

/// Not yet placed.
const NOWHERE: usize = usize::MAX;

struct Layout<'a> {
    graph: &'a Graph,
    snaplen: u32,
    /// From the end.
    out: Vec<Insn>,
    /// Position of each block, or of the nearest jump to it, counted from the end.
    place: Vec<usize>,
}

/// The program of blocks in the given order, each before its targets.
pub(super) fn layout(graph: &Graph, order: &[BlockId], codes: &Codes, snaplen: u32) -> Vec<Insn> {
    let mut l =
        Layout { graph, snaplen, out: Vec::new(), place: vec![NOWHERE; graph.blocks.len()] };
    for (id, code) in order.iter().zip(codes.iter()).rev() {
        let block = &graph.blocks[*id];
        let mut jumps = None;
        match block.step {
            Step::Return(_) => (),
            Step::Set(..) => {
                if l.distance(block.yes) > 0 {
                    l.stone(block.yes);
                }
            }
            _ => {
                while let Some(far) =
                    [block.yes, block.no].into_iter().find(|b| l.distance(*b) > 255)
                {
                    l.stone(far);
                }
                jumps = Some((l.distance(block.yes) as u8, l.distance(block.no) as u8));
            }
        }
        let last = l.out.len();
        l.out.extend(code.iter().rev());
        if let (Some((jt, jf)), Some(last)) = (jumps, l.out.get_mut(last)) {
            (last.jt, last.jf) = (jt, jf);
        }
        l.place[*id] = l.out.len();
    }
    l.out.reverse();
    l.out
}

impl Layout<'_> {
    /// The number of instructions from here to a block.
    fn distance(&self, to: BlockId) -> usize {
        self.out.len().saturating_sub(self.place[to])
    }

    /// Inserts a jump to a block.
    fn stone(&mut self, to: BlockId) {
        self.out.push(match self.graph.blocks[to].step {
            Step::Return(verdict) => Insn::new(bpf::RET, if verdict { self.snaplen } else { 0 }),
            _ => Insn::new(bpf::JMP | bpf::JA, self.distance(to) as u32),
        });
        self.place[to] = self.out.len();
    }
}
