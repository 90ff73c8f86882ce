//! Classic BPF: instructions, their text form, validation, and semantics.

mod image;
mod interp;
mod read;
pub(crate) use image::line;
#[cfg(any(feature = "jit", feature = "llvm"))]
pub(crate) use interp::MAX_STEPS;
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

/// Scratch words.
pub const MEMORY: usize = 16;

pub(crate) const LD: u16 = 0;
pub(crate) const LDX: u16 = 1;
pub(crate) const ST: u16 = 2;
pub(crate) const STX: u16 = 3;
pub(crate) const ALU: u16 = 4;
pub(crate) const JMP: u16 = 5;
pub(crate) const RET: u16 = 6;
pub(crate) const MISC: u16 = 7;
pub(crate) const W: u16 = 0;
pub(crate) const H: u16 = 0x08;
pub(crate) const B: u16 = 0x10;
pub(crate) const IMM: u16 = 0;
pub(crate) const ABS: u16 = 0x20;
pub(crate) const IND: u16 = 0x40;
pub(crate) const MEM: u16 = 0x60;
pub(crate) const LEN: u16 = 0x80;
pub(crate) const MSH: u16 = 0xa0;
pub(crate) const ADD: u16 = 0;
pub(crate) const SUB: u16 = 0x10;
pub(crate) const MUL: u16 = 0x20;
pub(crate) const DIV: u16 = 0x30;
pub(crate) const OR: u16 = 0x40;
pub(crate) const AND: u16 = 0x50;
pub(crate) const LSH: u16 = 0x60;
pub(crate) const RSH: u16 = 0x70;
pub(crate) const NEG: u16 = 0x80;
pub(crate) const MOD: u16 = 0x90;
pub(crate) const XOR: u16 = 0xa0;
pub(crate) const JA: u16 = 0;
pub(crate) const JEQ: u16 = 0x10;
pub(crate) const JGT: u16 = 0x20;
pub(crate) const JGE: u16 = 0x30;
pub(crate) const JSET: u16 = 0x40;
pub(crate) const X: u16 = 0x08;
pub(crate) const TAX: u16 = 0;
pub(crate) const TXA: u16 = 0x80;
/// The first of the offsets for the kernel's metadata of a packet (`SKF_AD_OFF`).
pub(crate) const KERNEL: u32 = 0xffff_f000;

impl Insn {
    /// An instruction without jumps.
    pub(crate) const fn new(code: u16, k: u32) -> Self {
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
