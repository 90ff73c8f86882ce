//! The reference semantics of a graph, by direct evaluation.

use super::{ACCEPT, Graph, Node, Step, Test, ValueId};
use crate::bpf::{self, MEMORY, Program};

struct Packet<'a> {
    graph: &'a Graph,
    data: &'a [u8],
    wire: u32,
    vars: [u32; MEMORY],
}

impl Graph {
    /// Whether a packet with this wire length matches.
    pub fn run(&self, data: &[u8], wire: u32) -> bool {
        let mut packet = Packet { graph: self, data, wire, vars: [0; MEMORY] };
        packet.verdict().unwrap_or(false)
    }
}

impl Packet<'_> {
    /// `None` if bytes are missing or a division is by zero.
    fn verdict(&mut self) -> Option<bool> {
        let mut at = self.graph.root;
        loop {
            let block = &self.graph.blocks[at];
            let holds = match &block.step {
                Step::Return(_) => return Some(at == ACCEPT),
                Step::Test(Test { op, left, right }) => {
                    let (a, b) = (self.value(*left)?, self.value(*right)?);
                    match *op {
                        bpf::JEQ => a == b,
                        bpf::JGT => a > b,
                        bpf::JGE => a >= b,
                        _ => a & b != 0,
                    }
                }
                Step::In(value, set) => set.contains(self.value(*value)?),
                Step::In6(words, set) => {
                    let mut address = 0;
                    for word in words {
                        address = address << 32 | u128::from(self.value(*word)?);
                    }
                    set.contains(address)
                }
                Step::Set(var, value) => {
                    self.vars[usize::from(*var) % MEMORY] = self.value(*value)?;
                    true
                }
                Step::Code(insns, k) => self.code(insns, *k)?,
            };
            at = if holds { block.yes } else { block.no };
        }
    }

    fn value(&self, id: ValueId) -> Option<u32> {
        Some(match self.graph.values.node(id) {
            Node::Const(k) => k,
            Node::Len => self.wire,
            Node::Load(size, base, k) => {
                let base = base.map_or(Some(0), |b| self.value(b))?;
                let size = match size {
                    1 => bpf::B,
                    2 => bpf::H,
                    _ => bpf::W,
                };
                bpf::load(self.data, base.checked_add(k)?, size)?
            }
            Node::HeaderLen(k) => (bpf::load(self.data, k, bpf::B)? & 15) * 4,
            Node::Var(var) => self.vars[usize::from(var) % MEMORY],
            Node::Binary(op, a, b) => bpf::alu(op, self.value(a)?, self.value(b)?)?,
            Node::Neg(a) => self.value(a)?.wrapping_neg(),
        })
    }

    /// Runs instructions as a separate program, with separate scratch words.
    fn code(&self, insns: &[bpf::Insn], k: u32) -> Option<bool> {
        let (accept, reject) = (bpf::Insn::new(bpf::RET, 2), bpf::Insn::new(bpf::RET, 1));
        let test = bpf::Insn { code: bpf::JMP | bpf::JEQ, jt: 0, jf: 1, k };
        let all = insns.iter().copied().chain([test, accept, reject]).collect();
        match Program::new(all).ok()?.run(self.data, self.wire) {
            0 => None,
            verdict => Some(verdict == 2),
        }
    }
}
