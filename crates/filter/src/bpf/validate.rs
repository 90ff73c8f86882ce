//! Validation of programs, as in libpcap's `bpf_validate`.

use super::*;

/// The reason why a program is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It has no instructions, or more than a jump can skip.
    #[error("invalid length of {0} instructions")]
    Length(usize),
    /// An unknown instruction.
    #[error("instruction {0} is unknown")]
    Unknown(usize),
    /// A jump beyond the end.
    #[error("instruction {0} jumps out of the program")]
    Jump(usize),
    /// A scratch word beyond the last.
    #[error("instruction {0} uses a scratch word that does not exist")]
    Memory(usize),
    /// A division by the constant zero.
    #[error("instruction {0} divides by zero")]
    Division(usize),
    /// The last instruction is not a return.
    #[error("the program does not end in a return")]
    End,
}

pub(super) fn validate(insns: &[Insn]) -> Result<(), Invalid> {
    if insns.is_empty() || i32::try_from(insns.len()).is_err() {
        return Err(Invalid::Length(insns.len()));
    }
    for (i, insn) in insns.iter().enumerate() {
        let left = insns.len() - i - 1;
        let op = insn.code & 0xf0;
        match insn.code & 7 {
            LD | LDX => match insn.code & 0xe0 {
                MEM if insn.k as usize >= MEMORY => return Err(Invalid::Memory(i)),
                IMM | ABS | IND | MEM | LEN | MSH => (),
                _ => return Err(Invalid::Unknown(i)),
            },
            ST | STX if insn.k as usize >= MEMORY => return Err(Invalid::Memory(i)),
            ST | STX => (),
            ALU => match op {
                DIV | MOD if insn.code & X == 0 && insn.k == 0 => return Err(Invalid::Division(i)),
                ADD | SUB | MUL | DIV | OR | AND | LSH | RSH | NEG | MOD | XOR => (),
                _ => return Err(Invalid::Unknown(i)),
            },
            JMP => match op {
                // Backwards too: loops over header chains do this.
                JA => {
                    let to = (i as i64 + 1) + i64::from(insn.k.cast_signed());
                    if to < 0 || to >= insns.len() as i64 {
                        return Err(Invalid::Jump(i));
                    }
                }
                JEQ | JGT | JGE | JSET => {
                    if usize::from(insn.jt.max(insn.jf)) >= left {
                        return Err(Invalid::Jump(i));
                    }
                }
                _ => return Err(Invalid::Unknown(i)),
            },
            RET | MISC => (),
            _ => return Err(Invalid::Unknown(i)),
        }
    }
    match insns.last() {
        Some(last) if last.code & 7 == RET => Ok(()),
        _ => Err(Invalid::End),
    }
}
