//! Registers: their contents, and loading values into them.

use crate::bpf::{self, Insn};
use crate::ir::{Node, Test, ValueId, Values};

/// The contents of the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers {
    a: Option<ValueId>,
    x: Option<ValueId>,
    /// The variable that the accumulator was just stored to.
    stored: Option<u8>,
}

impl Registers {
    /// The contents that are equal on two joining paths.
    pub(super) fn meet(self, other: Self) -> Self {
        Self {
            a: self.a.filter(|_| self.a == other.a),
            x: self.x.filter(|_| self.x == other.x),
            stored: self.stored.filter(|_| self.stored == other.stored),
        }
    }
}

/// Writes the instructions of a block.
#[derive(Debug)]
pub(super) struct Emit<'a> {
    values: &'a Values,
    out: Vec<Insn>,
    held: Registers,
    temps: u8,
    /// Variables use this scratch word and those above.
    vars: u8,
}

impl<'a> Emit<'a> {
    /// Appends to existing instructions.
    pub(super) fn new(values: &'a Values, out: Vec<Insn>, held: Registers, vars: u8) -> Self {
        Self { values, out, held, temps: 0, vars }
    }

    /// The instructions, and the register contents after them.
    pub(super) fn finish(self) -> (Vec<Insn>, Registers) {
        (self.out, self.held)
    }

    pub(super) fn push(&mut self, code: u16, k: u32) {
        self.out.push(Insn::new(code, k));
    }

    pub(super) fn set(&mut self, var: u8, value: ValueId) -> Result<(), String> {
        self.load_a(value)?;
        self.push(bpf::ST, u32::from(var));
        let stays = |held: Option<ValueId>| held.filter(|v| !self.values.mentions(*v, var));
        self.held = Registers { a: stays(self.held.a), x: stays(self.held.x), stored: Some(var) };
        Ok(())
    }

    /// Instructions with internal jumps, then a comparison of their result.
    pub(super) fn code(&mut self, insns: &[Insn], k: u32) {
        self.out.extend_from_slice(insns);
        self.push(bpf::JMP | bpf::JEQ, k);
        self.held = Registers::default();
    }

    /// Compares the accumulator, whatever value it holds.
    pub(super) fn compare(&mut self, test: Test) {
        self.push(bpf::JMP | test.op, self.values.as_const(test.right).unwrap_or_default());
        self.held.a = None;
        self.held.stored = None;
    }

    pub(super) fn test(&mut self, test: Test) -> Result<(), String> {
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

    /// Whether the accumulator holds a value.
    fn holds(&self, id: ValueId) -> bool {
        let stored = |var| self.values.node(id) == Node::Var(var);
        self.held.a == Some(id) || self.held.stored.is_some_and(stored)
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

    /// Whether one instruction loads it to X without changing A.
    fn loads_to_x(&self, id: ValueId) -> bool {
        matches!(
            self.values.node(id),
            Node::Const(_) | Node::Len | Node::HeaderLen(_) | Node::Var(_)
        )
    }

    /// Whether evaluating it leaves X unchanged.
    fn leaves_x(&self, id: ValueId) -> bool {
        self.holds(id)
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
        if self.holds(id) {
            self.push(bpf::MISC | bpf::TAX, 0);
            self.held.x = Some(id);
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
        if self.holds(id) {
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
                // The constant zero is not allowed as a divisor.
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
        self.held.stored = None;
        Ok(())
    }
}
