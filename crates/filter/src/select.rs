//! Blocks to instructions of BPF. A register that still holds what is wanted is not loaded again.

use crate::bpf::{self, Insn, Program};
use crate::flow::{BlockId, Flow, REJECT, Step};
use crate::ir::{Node, Test, ValueId, Values};

/// What the registers hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    a: Option<ValueId>,
    x: Option<ValueId>,
}

/// The program for a graph, which keeps so many bytes of a packet that matches.
///
/// # Errors
/// What is too large for BPF.
pub(crate) fn select(
    flow: &Flow,
    values: &Values,
    snaplen: u32,
    vars: u8,
    reuse: bool,
) -> Result<Program, String> {
    let order = flow.order();
    let mut position = vec![usize::MAX; flow.blocks.len()];
    for (i, id) in order.iter().enumerate() {
        position[*id] = i;
    }
    let mut entry: Vec<Option<Held>> = vec![None; flow.blocks.len()];
    let mut codes = Vec::with_capacity(order.len());
    for id in &order {
        let block = &flow.blocks[*id];
        let held = if reuse { entry[*id].unwrap_or_default() } else { Held::default() };
        let mut out = Emit { values, out: Vec::new(), held, temps: 0, vars };
        match &block.step {
            Step::Return(verdict) => {
                out.push(bpf::RET, if *verdict { snaplen } else { 0 });
            }
            Step::Set(var, value) => {
                out.load_a(*value)?;
                out.push(bpf::ST, u32::from(*var));
                let a = out.held.a.filter(|v| !uses(values, *v, *var));
                let x = out.held.x.filter(|v| !uses(values, *v, *var));
                out.held = Held { a, x };
            }
            Step::Code(insns, k) => {
                out.out.clone_from(insns);
                out.push(bpf::JMP | bpf::JEQ, *k);
                out.held = Held::default();
            }
            Step::Test(test) => out.test(*test)?,
        }
        if !matches!(block.step, Step::Return(_)) {
            for next in [block.yes, block.no] {
                let there = &mut entry[next];
                *there = Some(match *there {
                    None => out.held,
                    Some(h) => Held {
                        a: h.a.filter(|_| h.a == out.held.a),
                        x: h.x.filter(|_| h.x == out.held.x),
                    },
                });
            }
        }
        codes.push(out.out);
    }
    let insns = layout(flow, &order, &position, &codes);
    Program::new(insns).map_err(|e| e.to_string())
}

fn uses(values: &Values, id: ValueId, var: u8) -> bool {
    match values.node(id) {
        Node::Var(v) => v == var,
        Node::Load(_, Some(b), _) | Node::Neg(b) => uses(values, b, var),
        Node::Binary(_, a, b) => uses(values, a, var) || uses(values, b, var),
        _ => false,
    }
}

struct Emit<'a> {
    values: &'a Values,
    out: Vec<Insn>,
    held: Held,
    temps: u8,
    /// Variables lie from this scratch word on.
    vars: u8,
}

impl Emit<'_> {
    fn push(&mut self, code: u16, k: u32) {
        self.out.push(Insn::new(code, k));
    }

    fn test(&mut self, test: Test) -> Result<(), String> {
        match self.values.node(test.right) {
            Node::Const(k) => {
                self.load_a(test.left)?;
                self.push(bpf::JMP | test.op, k);
            }
            _ => {
                self.both(test.left, test.right)?;
                self.push(bpf::JMP | test.op | bpf::X, 0);
            }
        }
        Ok(())
    }

    /// One value to A, the other to X.
    fn both(&mut self, a: ValueId, x: ValueId) -> Result<(), String> {
        if self.loads_to_x(x) || self.held.x == Some(x) && self.leaves_x(a) {
            self.load_a(a)?;
            return self.load_x(x);
        }
        if self.leaves_x(a) {
            self.load_x(x)?;
            return self.load_a(a);
        }
        self.load_a(x)?;
        let word = self.temps;
        if word >= self.vars {
            return Err("too many registers needed to evaluate expression".into());
        }
        self.temps += 1;
        self.push(bpf::ST, u32::from(word));
        self.load_a(a)?;
        self.push(bpf::LDX | bpf::MEM, u32::from(word));
        self.held.x = Some(x);
        self.temps -= 1;
        Ok(())
    }

    /// Whether an instruction loads it to X without touching A.
    fn loads_to_x(&self, id: ValueId) -> bool {
        matches!(
            self.values.node(id),
            Node::Const(_) | Node::Len | Node::HeaderLen(_) | Node::Var(_)
        )
    }

    /// Whether working it out leaves X as it is.
    fn leaves_x(&self, id: ValueId) -> bool {
        self.held.a == Some(id)
            || match self.values.node(id) {
                Node::Const(_) | Node::Len | Node::Load(_, None, _) | Node::Var(_) => true,
                Node::Binary(_, a, b) => self.values.as_const(b).is_some() && self.leaves_x(a),
                Node::Neg(a) => self.leaves_x(a),
                _ => false,
            }
    }

    fn load_x(&mut self, id: ValueId) -> Result<(), String> {
        if self.held.x == Some(id) {
            return Ok(());
        }
        match self.values.node(id) {
            Node::Const(k) => self.push(bpf::LDX | bpf::IMM, k),
            Node::Len => self.push(bpf::LDX | bpf::LEN, 0),
            Node::HeaderLen(k) => self.push(bpf::LDX | bpf::MSH | bpf::B, k),
            Node::Var(var) => self.push(bpf::LDX | bpf::MEM, u32::from(var)),
            _ => {
                self.load_a(id)?;
                self.push(bpf::MISC | bpf::TAX, 0);
            }
        }
        self.held.x = Some(id);
        Ok(())
    }

    fn load_a(&mut self, id: ValueId) -> Result<(), String> {
        if self.held.a == Some(id) {
            return Ok(());
        }
        match self.values.node(id) {
            _ if self.held.x == Some(id) => self.push(bpf::MISC | bpf::TXA, 0),
            Node::Const(k) => self.push(bpf::LD | bpf::IMM, k),
            Node::Len => self.push(bpf::LD | bpf::LEN, 0),
            Node::Var(var) => self.push(bpf::LD | bpf::MEM, u32::from(var)),
            Node::HeaderLen(_) => {
                self.load_x(id)?;
                self.push(bpf::MISC | bpf::TXA, 0);
            }
            Node::Load(size, base, k) => {
                let size = match size {
                    1 => bpf::B,
                    2 => bpf::H,
                    _ => bpf::W,
                };
                match base {
                    None => self.push(bpf::LD | bpf::ABS | size, k),
                    Some(base) => {
                        self.load_x(base)?;
                        self.push(bpf::LD | bpf::IND | size, k);
                    }
                }
            }
            Node::Neg(a) => {
                self.load_a(a)?;
                self.push(bpf::ALU | bpf::NEG, 0);
            }
            Node::Binary(op, a, b) => match self.values.as_const(b) {
                // The constant zero as a divisor is none that a program may have.
                Some(k) if k != 0 || !matches!(op, bpf::DIV | bpf::MOD) => {
                    self.load_a(a)?;
                    self.push(bpf::ALU | op, k);
                }
                _ => {
                    self.both(a, b)?;
                    self.push(bpf::ALU | op | bpf::X, 0);
                }
            },
        }
        self.held.a = Some(id);
        Ok(())
    }
}

/// Puts blocks behind each other and joins them by jumps, over intermediate ones where a
/// comparison cannot jump far enough.
fn layout(flow: &Flow, order: &[BlockId], position: &[usize], codes: &[Vec<Insn>]) -> Vec<Insn> {
    // Bits: the jump for yes, the one for no, is long.
    let mut long = vec![0_u8; order.len()];
    loop {
        let mut starts = Vec::with_capacity(order.len());
        let mut at = 0;
        for (i, code) in codes.iter().enumerate() {
            starts.push(at);
            at += code.len() + long[i].count_ones() as usize;
        }
        let mut grown = false;
        let mut out: Vec<Insn> = Vec::with_capacity(at);
        for (i, code) in codes.iter().enumerate() {
            let block = &flow.blocks[order[i]];
            out.extend_from_slice(code);
            let (yes, no) = (starts[position[block.yes]], starts[position[block.no]]);
            match block.step {
                Step::Return(_) => (),
                Step::Set(..) => {
                    // A set goes on to one block only: by a jump where that is not the next.
                    if position[block.yes] != i + 1 {
                        if long[i] == 0 {
                            long[i] = 1;
                            grown = true;
                        }
                        let k = yes.wrapping_sub(out.len() + 1) as u32;
                        out.push(Insn::new(bpf::JMP | bpf::JA, k));
                    }
                }
                Step::Test(_) | Step::Code(..) => {
                    let here = out.len();
                    let mut extra = Vec::new();
                    for (bit, target) in [(1, yes), (2, no)] {
                        let jump = if long[i] & bit != 0 {
                            extra.push(target);
                            extra.len() - 1
                        } else {
                            target.saturating_sub(here)
                        };
                        let jump = u8::try_from(jump).unwrap_or_else(|_| {
                            long[i] |= bit;
                            grown = true;
                            0
                        });
                        if let Some(last) = out.last_mut() {
                            *(if bit == 1 { &mut last.jt } else { &mut last.jf }) = jump;
                        }
                    }
                    for target in extra {
                        let k = target.wrapping_sub(out.len() + 1) as u32;
                        out.push(Insn::new(bpf::JMP | bpf::JA, k));
                    }
                }
            }
        }
        if !grown {
            return out;
        }
    }
}

/// Whether no packet matches.
pub(crate) fn rejects_all(flow: &Flow) -> bool {
    flow.root == REJECT
}
