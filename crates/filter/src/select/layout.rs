//! Blocks behind each other, joined by jumps.
//!
//! Comparisons can jump over 255 instructions only. Blocks are put in from the last to the first, so
//! that where a jump must lead is always known; where it is too far, a stepping stone is put in just
//! behind the block, and serves all blocks before that can reach it.

use super::Codes;
use crate::bpf::{self, Insn};
use crate::ir::{BlockId, Graph, Step};

/// No place yet.
const NOWHERE: usize = usize::MAX;

struct Layout<'a> {
    graph: &'a Graph,
    snaplen: u32,
    /// From the end.
    out: Vec<Insn>,
    /// Where each block, or the nearest stone that leads to it, begins, counted from the end.
    place: Vec<usize>,
}

/// The program of blocks in the order given, each before those it leads to.
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
    /// How many instructions lie between here and a block.
    fn distance(&self, to: BlockId) -> usize {
        self.out.len().saturating_sub(self.place[to])
    }

    /// Puts in what leads to a block.
    fn stone(&mut self, to: BlockId) {
        self.out.push(match self.graph.blocks[to].step {
            Step::Return(verdict) => Insn::new(bpf::RET, if verdict { self.snaplen } else { 0 }),
            _ => Insn::new(bpf::JMP | bpf::JA, self.distance(to) as u32),
        });
        self.place[to] = self.out.len();
    }
}
