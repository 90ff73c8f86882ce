//! Checks of programs by the rules of the Linux kernel.

use super::graph::{Graph, Node};
use crate::bpf::*;
use crate::{Invalid, Program};

/// Maximum number of instructions of a program in the Linux kernel.
pub const MAX_KERNEL: usize = 4096;

/// The reason why the kernel refuses a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is invalid everywhere.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// More instructions than the kernel accepts.
    #[error("{0} instructions; the kernel accepts at most {MAX_KERNEL}")]
    Length(usize),
    /// An instruction that the kernel does not know.
    #[error("instruction {0} is unknown to the kernel")]
    Unknown(usize),
    /// A jump backwards.
    #[error("instruction {0} jumps backwards, which the kernel does not allow")]
    Backward(usize),
    /// A shift by 32 or more.
    #[error("instruction {0} shifts by 32 or more")]
    Shift(usize),
    /// An unknown metadata offset.
    #[error("instruction {0} loads packet data that the kernel does not have")]
    Offset(usize),
    /// A scratch word that is not written on some path before.
    #[error("instruction {0} reads a scratch word that was not written")]
    Unwritten(usize),
}

/// The last metadata offset, in steps of four from [`KERNEL`]: below `SKF_AD_MAX` of
/// linux/filter.h.
const LAST_KNOWN: u32 = 60;

/// Checks whether the kernel accepts a program, by the rules of its own checker
/// (`bpf_check_classic` in net/core/filter.c).
///
/// # Errors
/// The first rule that is violated.
pub fn check(program: &Program) -> Result<(), Refused> {
    let insns = program.insns();
    if insns.len() > MAX_KERNEL {
        return Err(Refused::Length(insns.len()));
    }
    for (at, insn) in insns.iter().enumerate() {
        if !is_known(insn.code) {
            return Err(Refused::Unknown(at));
        }
        match (insn.code & 7, insn.code & 0xf0) {
            (ALU, LSH | RSH) if insn.code & X == 0 && insn.k >= 32 => {
                return Err(Refused::Shift(at));
            }
            (JMP, JA) if insn.k.cast_signed() < 0 => return Err(Refused::Backward(at)),
            (LD, _) if insn.code & 0xe0 == ABS && insn.k >= KERNEL => {
                let what = insn.k - KERNEL;
                if what > LAST_KNOWN || !what.is_multiple_of(4) {
                    return Err(Refused::Offset(at));
                }
            }
            _ => (),
        }
    }
    match unwritten(insns) {
        Some(at) => Err(Refused::Unwritten(at)),
        None => Ok(()),
    }
}

/// Whether the kernel gives a program the same meaning as libpcap.
///
/// # Errors
/// The difference: shifts by 32 and more, and offsets that wrap.
pub fn same_meaning(program: &Program) -> Result<(), &'static str> {
    for insn in program.insns() {
        match (insn.code & 7, insn.code & 0xf0) {
            (ALU, LSH | RSH) if insn.code & X != 0 => {
                return Err("the kernel shifts by X modulo 32, libpcap does not");
            }
            (LD, _) if insn.code & 0xe0 == ABS && insn.k.cast_signed() < 0 => {
                return Err("the kernel reads offsets below zero in its own way");
            }
            _ => (),
        }
    }
    let wraps = |graph: &Graph, node: &Node| match *node {
        Node::Load { base: Some(base), offset, .. } => {
            let most = u64::from(graph.max_value(base)) + u64::from(offset);
            i32::try_from(most).is_err()
        }
        // From a base that is a constant.
        Node::Load { base: None, offset, .. } => i32::try_from(offset).is_err(),
        _ => false,
    };
    match Graph::new(program.insns()) {
        Ok(graph) if graph.nodes.iter().any(|n| wraps(&graph, n)) => {
            Err("the kernel lets offsets wrap, libpcap does not")
        }
        _ => Ok(()),
    }
}

/// The codes of classic BPF, as the kernel and BSD's manual list them.
fn is_known(code: u16) -> bool {
    if code > 0xff {
        return false;
    }
    match code & 7 {
        LD => {
            let size = code & 0x18;
            match code & 0xe0 {
                ABS | IND => size != 0x18,
                IMM | LEN | MEM => size == 0,
                _ => false,
            }
        }
        LDX => match code & 0xe0 {
            MSH => code & 0x18 == B,
            IMM | LEN | MEM => code & 0x18 == 0,
            _ => false,
        },
        ST | STX => code & !7 == 0,
        ALU => match code & 0xf0 {
            NEG => code & X == 0,
            op => op <= XOR,
        },
        JMP => match code & 0xf0 {
            JA => code & X == 0,
            JEQ | JGT | JGE | JSET => true,
            _ => false,
        },
        RET => matches!(code & !7, 0 | 0x10),
        _ => matches!(code & !7, TAX | TXA),
    }
}

/// The first instruction that may read a scratch word before it is written. Backward jumps are
/// ignored: a word written before a loop stays written. As in the kernel, code after a return
/// inherits the state before the return.
pub fn unwritten(insns: &[Insn]) -> Option<usize> {
    // A bit for each word that is written on all paths to an instruction.
    let mut written = vec![u16::MAX; insns.len()];
    *written.first_mut()? = 0;
    for (at, insn) in insns.iter().enumerate() {
        let mut now = written[at];
        let word = 1_u16 << (insn.k & 15);
        match insn.code & 7 {
            ST | STX => now |= word,
            LD | LDX if insn.code & 0xe0 == MEM && now & word == 0 => return Some(at),
            _ => (),
        }
        let mut to = |next: Option<usize>| {
            if let Some(there) = next.and_then(|n| written.get_mut(n)) {
                *there &= now;
            }
        };
        match (insn.code & 7, insn.code & 0xf0) {
            (JMP, JA) if insn.k.cast_signed() < 0 => (),
            (JMP, JA) => to((at + 1).checked_add(insn.k as usize)),
            (JMP, _) => {
                to(Some(at + 1 + usize::from(insn.jt)));
                to(Some(at + 1 + usize::from(insn.jf)));
            }
            _ => to(Some(at + 1)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(insns: &[Insn]) -> Result<(), Refused> {
        let mut all = insns.to_vec();
        all.push(Insn::new(RET, 1));
        check(&Program::new(all)?)
    }

    #[test]
    fn the_kernels_rules() {
        assert_eq!(checked(&[Insn::new(LD | H | ABS, 12)]), Ok(()));
        assert_eq!(checked(&[Insn::new(ALU | LSH, 32)]), Err(Refused::Shift(0)));
        assert_eq!(checked(&[Insn::new(ALU | LSH, 31)]), Ok(()));
        assert_eq!(checked(&[Insn::new(LD | MEM, 3)]), Err(Refused::Unwritten(0)));
        assert_eq!(checked(&[Insn::new(ST, 3), Insn::new(LDX | MEM, 3)]), Ok(()));
        let back = Insn::new(JMP | JA, u32::MAX);
        assert_eq!(checked(&[back]), Err(Refused::Backward(0)));
        assert_eq!(checked(&[Insn::new(LD | B | LEN, 0)]), Err(Refused::Unknown(0)));
        assert_eq!(
            checked(&vec![Insn::new(MISC, 0); MAX_KERNEL]),
            Err(Refused::Length(MAX_KERNEL + 1))
        );
    }

    #[test]
    fn offsets_that_wrap_mean_something_else() {
        let behind = |x| {
            let insns = [Insn::new(LDX | IMM, x), Insn::new(LD | IND, 14), Insn::new(RET, 1)];
            same_meaning(&Program::new(insns.to_vec()).unwrap())
        };
        assert_eq!(behind(40), Ok(()));
        assert!(behind(0xffff_fffc).is_err());
    }

    #[test]
    fn a_word_written_on_one_path_only_is_not_written() {
        let branch = |jt, jf| Insn { code: JMP | JEQ, jt, jf, k: 0 };
        let one = [branch(0, 1), Insn::new(ST, 0), Insn::new(LD | MEM, 0)];
        assert_eq!(checked(&one), Err(Refused::Unwritten(2)));
        let both = [Insn::new(ST, 0), branch(0, 0), Insn::new(LD | MEM, 0)];
        assert_eq!(checked(&both), Ok(()));
    }
}
