//! Classic BPF: instructions, their text form, validation, and semantics.

mod image;
mod interp;
mod read;
pub(crate) use image::line;
pub use interp::MAX_STEPS;
pub(crate) use interp::{alu, load};
mod validate;

pub use read::TextError;
pub use validate::Invalid;

/// An instruction, encoded as in `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Insn {
    /// Opcode.
    pub code: u16,
    /// Number of instructions to skip if a comparison holds.
    pub jt: u8,
    /// Number of instructions to skip if it does not hold.
    pub jf: u8,
    /// Its operand.
    pub k: u32,
}

/// Number of scratch words.
pub const MEMORY: usize = 16;

/// Codes of instructions and offsets of metadata: those of linux/bpf_common.h and linux/filter.h, without `BPF_`.
pub mod opcode {
    #![allow(missing_docs)]

    pub const LD: u16 = 0;
    pub const LDX: u16 = 1;
    pub const ST: u16 = 2;
    pub const STX: u16 = 3;
    pub const ALU: u16 = 4;
    pub const JMP: u16 = 5;
    pub const RET: u16 = 6;
    pub const MISC: u16 = 7;
    pub const W: u16 = 0;
    pub const H: u16 = 0x08;
    pub const B: u16 = 0x10;
    pub const IMM: u16 = 0;
    pub const ABS: u16 = 0x20;
    pub const IND: u16 = 0x40;
    pub const MEM: u16 = 0x60;
    pub const LEN: u16 = 0x80;
    pub const MSH: u16 = 0xa0;
    pub const ADD: u16 = 0;
    pub const SUB: u16 = 0x10;
    pub const MUL: u16 = 0x20;
    pub const DIV: u16 = 0x30;
    pub const OR: u16 = 0x40;
    pub const AND: u16 = 0x50;
    pub const LSH: u16 = 0x60;
    pub const RSH: u16 = 0x70;
    pub const NEG: u16 = 0x80;
    pub const MOD: u16 = 0x90;
    pub const XOR: u16 = 0xa0;
    pub const JA: u16 = 0;
    pub const JEQ: u16 = 0x10;
    pub const JGT: u16 = 0x20;
    pub const JGE: u16 = 0x30;
    pub const JSET: u16 = 0x40;
    pub const X: u16 = 0x08;
    pub const TAX: u16 = 0;
    pub const TXA: u16 = 0x80;
    /// The first of the offsets for the kernel's metadata of a packet (`SKF_AD_OFF`).
    pub const KERNEL: u32 = 0xffff_f000;
}

pub(crate) use opcode::*;

impl Insn {
    /// An instruction without jumps.
    pub const fn new(code: u16, k: u32) -> Self {
        Self { code, jt: 0, jf: 0, k }
    }
}

/// A validated program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) insns: Vec<Insn>,
}

impl Program {
    /// Validates instructions.
    ///
    /// # Errors
    /// If the program is invalid.
    pub fn new(insns: Vec<Insn>) -> Result<Self, Invalid> {
        validate::validate(&insns)?;
        Ok(Self { insns })
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }
}
