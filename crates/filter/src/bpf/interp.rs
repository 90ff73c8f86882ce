//! The semantics of programs, as in libpcap's interpreter: unsigned 32-bit numbers that wrap;
//! reading beyond the captured bytes and dividing by zero reject the packet; shifting by 32 or more
//! gives zero; a scratch word that was not written holds zero.

use super::*;

/// Maximum number of instructions of a run; beyond it, the packet is rejected. Loops emitted by the
/// compiler end at the latest at the end of the packet; those of other programs may not end.
pub const MAX_STEPS: usize = 1 << 24;

const LD_W: u16 = LD | W | ABS;
const LD_H: u16 = LD | H | ABS;
const LD_B: u16 = LD | B | ABS;
const LD_W_X: u16 = LD | W | IND;
const LD_H_X: u16 = LD | H | IND;
const LD_B_X: u16 = LD | B | IND;
const LDX_MSH: u16 = LDX | B | MSH;
const JEQ_K: u16 = JMP | JEQ;
const JGT_K: u16 = JMP | JGT;
const JGE_K: u16 = JMP | JGE;
const JSET_K: u16 = JMP | JSET;
const AND_K: u16 = ALU | AND;
const RET_K: u16 = RET;

impl Program {
    /// Runs the program over a packet with this wire length: the number of bytes to keep, 0 to
    /// reject it.
    pub fn run(&self, data: &[u8], wire: u32) -> u32 {
        self.run_watched(data, wire, |_, _, _| ())
    }

    /// Like [`Program::run`]; calls `watch` with the index, A and X before each instruction.
    #[inline(always)]
    pub(crate) fn run_watched(
        &self,
        data: &[u8],
        wire: u32,
        mut watch: impl FnMut(usize, u32, u32),
    ) -> u32 {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
        let mut memory = [0_u32; MEMORY];
        for _ in 0..MAX_STEPS {
            let Some(&Insn { code, jt, jf, k }) = self.insns.get(at) else {
                return 0;
            };
            watch(at, a, x);
            at += 1;
            // Instructions that compilers emit, with one jump each; all other valid ones are below.
            match code {
                LD_W | LD_H | LD_B => {
                    let Some(value) = load(data, k, code & 0x18) else { return 0 };
                    a = value;
                    continue;
                }
                LD_W_X | LD_H_X | LD_B_X => {
                    let there = x.checked_add(k).and_then(|o| load(data, o, code & 0x18));
                    let Some(value) = there else { return 0 };
                    a = value;
                    continue;
                }
                LDX_MSH => {
                    let Some(byte) = load(data, k, B) else { return 0 };
                    x = (byte & 15) << 2;
                    continue;
                }
                JEQ_K => {
                    at += usize::from(if a == k { jt } else { jf });
                    continue;
                }
                JGT_K => {
                    at += usize::from(if a > k { jt } else { jf });
                    continue;
                }
                JGE_K => {
                    at += usize::from(if a >= k { jt } else { jf });
                    continue;
                }
                JSET_K => {
                    at += usize::from(if a & k != 0 { jt } else { jf });
                    continue;
                }
                AND_K => {
                    a &= k;
                    continue;
                }
                RET_K => return k,
                _ => (),
            }
            let operand = if code & X == 0 { k } else { x };
            match code & 7 {
                LD => {
                    let loaded = match code & 0xe0 {
                        ABS => load(data, k, code & 0x18),
                        IND => x.checked_add(k).and_then(|o| load(data, o, code & 0x18)),
                        IMM => Some(k),
                        LEN => Some(wire),
                        MEM => memory.get(k as usize).copied(),
                        _ => None,
                    };
                    match loaded {
                        Some(value) => a = value,
                        None => return 0,
                    }
                }
                LDX => {
                    let loaded = match code & 0xe0 {
                        IMM => Some(k),
                        LEN => Some(wire),
                        MEM => memory.get(k as usize).copied(),
                        MSH => load(data, k, B).map(|b| (b & 15) << 2),
                        _ => None,
                    };
                    match loaded {
                        Some(value) => x = value,
                        None => return 0,
                    }
                }
                ST | STX => {
                    if let Some(word) = memory.get_mut(k as usize) {
                        *word = if code & 7 == ST { a } else { x };
                    }
                }
                ALU => match alu(code & 0xf0, a, operand) {
                    Some(value) => a = value,
                    None => return 0,
                },
                JMP if code & 0xf0 == JA => {
                    // Validated: within the program.
                    at = at.wrapping_add_signed(k.cast_signed() as isize);
                }
                JMP => {
                    let holds = match code & 0xf0 {
                        JEQ => a == operand,
                        JGT => a > operand,
                        JGE => a >= operand,
                        _ => a & operand != 0,
                    };
                    at += usize::from(if holds { jt } else { jf });
                }
                RET => return if code & 0x18 == 0x10 { a } else { k },
                _ if code & 0xf8 == TAX => x = a,
                _ => a = x,
            }
        }
        0
    }
}

/// The result of an operation; `None` for a division by zero.
pub(crate) fn alu(op: u16, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        ADD => a.wrapping_add(b),
        SUB => a.wrapping_sub(b),
        MUL => a.wrapping_mul(b),
        DIV => return a.checked_div(b),
        MOD => return a.checked_rem(b),
        OR => a | b,
        AND => a & b,
        XOR => a ^ b,
        LSH => a.checked_shl(b).unwrap_or(0),
        RSH => a.checked_shr(b).unwrap_or(0),
        _ => a.wrapping_neg(),
    })
}

/// `size` bytes as a number, if the packet has them.
pub(crate) fn load(data: &[u8], offset: u32, size: u16) -> Option<u32> {
    let rest = data.get(offset as usize..)?;
    match size {
        W => rest.first_chunk().map(|b| u32::from_be_bytes(*b)),
        H => rest.first_chunk().map(|b| u32::from(u16::from_be_bytes(*b))),
        _ => rest.first().map(|b| u32::from(*b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(insns: &[Insn], data: &[u8]) -> u32 {
        let mut all = insns.to_vec();
        all.push(Insn::new(RET | 0x10, 0));
        Program::new(all).unwrap().run(data, 99)
    }

    #[test]
    fn arithmetic_wraps_and_faults_reject() {
        let ld = |k| Insn::new(LD | IMM, k);
        assert_eq!(result(&[ld(5), Insn::new(ALU | SUB, 6)], &[]), u32::MAX);
        assert_eq!(result(&[ld(5), Insn::new(ALU | LSH, 32)], &[]), 0);
        assert_eq!(result(&[ld(5), Insn::new(ALU | DIV | X, 0)], &[]), 0);
        assert_eq!(result(&[Insn::new(LD | H | ABS, 1)], &[1, 2, 3]), 0x0203);
        assert_eq!(result(&[ld(7), Insn::new(LD | H | ABS, 2)], &[1, 2, 3]), 0);
        assert_eq!(result(&[Insn::new(LD | LEN, 0)], &[]), 99);
        let wraps = [Insn::new(LDX | IMM, u32::MAX), Insn::new(LD | B | IND, 1)];
        assert_eq!(result(&wraps, &[9]), 0);
        assert_eq!(Program::new(vec![ld(1)]), Err(Invalid::End));
        assert_eq!(Program::new(vec![Insn::new(JMP | JA, 5)]), Err(Invalid::Jump(0)));
    }
}
