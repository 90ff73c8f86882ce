//! Packets that satisfy many tests of a program.

use super::Random;
use crate::bpf::{
    ABS, ALU, AND, B, H, IMM, IND, Insn, JA, JEQ, JMP, JSET, LD, LDX, LEN, LSH, MEM, MEMORY, MISC,
    MSH, OR, Program, RET, RSH, ST, SUB, TAX, X, alu, load,
};

/// Maximum length of a generated packet, in bytes.
const MAX_LEN: usize = 256;

/// Generates packets for a program: each comparison of packet bytes is satisfied half of the time.
#[derive(Clone, Debug)]
pub struct Prober {
    random: Random,
    wire: u32,
}

/// A number in a register with its origin in the packet: offset, size, and the addition, shift and
/// mask applied.
#[derive(Clone, Copy, Debug, Default)]
struct Traced {
    value: u32,
    from: Option<(usize, usize)>,
    mask: u32,
    shift: i32,
}

/// The result of a run over a packet.
#[derive(Debug)]
struct Trace {
    /// The furthest byte that the program read.
    reach: usize,
    /// Comparisons of bytes: offset, size, required number and mask of relevant bits.
    comparisons: Vec<(usize, usize, u32, u32)>,
}

impl Prober {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), wire: 60 }
    }

    /// A packet for a program, its wire length, and the furthest byte that the program reads, at
    /// most the length. `sample` is an optional packet to start from.
    pub fn packet(&mut self, program: &Program, sample: Option<&[u8]>) -> (Vec<u8>, u32, usize) {
        let mut data: Vec<u8> = match (sample, self.random.below(4)) {
            (Some(sample), 0..3) => sample.iter().take(MAX_LEN).copied().collect(),
            (_, 0) => vec![0; MAX_LEN],
            (_, 1) => vec![0xff; MAX_LEN],
            _ => (0..MAX_LEN).map(|_| self.random.bits() as u8).collect(),
        };
        data.resize(MAX_LEN, 0);
        self.wire = match self.random.below(4) {
            0 => self.random.number(),
            _ => MAX_LEN as u32,
        };
        let mut reach = 0;
        for _ in 0..self.random.below(24) {
            let trace = trace(program, &data, self.wire);
            reach = trace.reach;
            if trace.comparisons.is_empty() {
                break;
            }
            let (at, size, wanted, mask) = *self.random.of(&trace.comparisons);
            let near = match self.random.below(8) {
                0 => wanted.wrapping_add(1),
                1 => wanted.wrapping_sub(1),
                2 => wanted ^ 1 << self.random.below(32),
                _ => wanted,
            };
            for i in 0..size {
                let shift = 8 * (size - 1 - i);
                let (new, kept) = ((near & mask) >> shift, !mask >> shift);
                if let Some(byte) = data.get_mut(at + i) {
                    *byte = *byte & kept as u8 | new as u8;
                }
            }
        }
        if self.random.one_in(3) {
            reach = trace(program, &data, self.wire).reach;
        } else {
            reach = reach.max(trace(program, &data, self.wire).reach);
        }
        (data, self.wire, reach.min(MAX_LEN))
    }
}

/// Runs a program and tracks the origin of numbers.
fn trace(program: &Program, data: &[u8], wire: u32) -> Trace {
    const MAX_STEPS: usize = 100_000;
    let insns = program.insns();
    let (mut a, mut x) = (Traced::default(), Traced::default());
    let mut memory = [Traced::default(); MEMORY];
    let mut out = Trace { reach: 0, comparisons: Vec::new() };
    let plain = |value| Traced { value, ..Traced::default() };
    let mut at = 0;
    for _ in 0..MAX_STEPS {
        let Some(&Insn { code, jt, jf, k }) = insns.get(at) else { break };
        at += 1;
        let operand = if code & X == 0 { k } else { x.value };
        let mut bytes = |offset: Option<u32>, size: u16| -> Option<Traced> {
            let offset = offset?;
            let n = match size {
                B => 1,
                H => 2,
                _ => 4,
            };
            out.reach = out.reach.max((offset as usize).saturating_add(n));
            let value = load(data, offset, size)?;
            let mask = u32::MAX >> (32 - 8 * n as u32);
            Some(Traced { value, from: Some((offset as usize, n)), mask, shift: 0 })
        };
        match code & 7 {
            LD | LDX => {
                let loaded = match code & 0xe0 {
                    ABS => bytes(Some(k), code & 0x18),
                    IND => bytes(x.value.checked_add(k), code & 0x18),
                    MSH => bytes(Some(k), B).map(|t| plain((t.value & 15) * 4)),
                    IMM => Some(plain(k)),
                    LEN => Some(plain(wire)),
                    MEM => Some(memory[k as usize % MEMORY]),
                    _ => None,
                };
                match loaded {
                    Some(value) if code & 7 == LD => a = value,
                    Some(value) => x = value,
                    None => break,
                }
            }
            ST => memory[k as usize % MEMORY] = a,
            ALU => {
                let Some(value) = alu(code & 0xf0, a.value, operand) else { break };
                let traced = match code & 0xf0 {
                    AND => Traced { mask: a.mask & unshifted(operand, a.shift), ..a },
                    LSH if operand < 32 => Traced { shift: a.shift + operand as i32, ..a },
                    RSH if operand < 32 => Traced { shift: a.shift - operand as i32, ..a },
                    OR | SUB => a,
                    _ => Traced { from: None, ..a },
                };
                a = Traced { value, ..traced };
            }
            JMP if code & 0xf0 == JA => at = at.wrapping_add_signed(k.cast_signed() as isize),
            JMP => {
                if let Some((from, size)) = a.from {
                    let wanted = match code & 0xf0 {
                        JSET if a.value & operand != 0 => 0,
                        _ => operand,
                    };
                    let mask = match code & 0xf0 {
                        JSET => unshifted(operand, a.shift) & a.mask,
                        _ => a.mask,
                    };
                    out.comparisons.push((from, size, unshifted(wanted, a.shift), mask));
                }
                let holds = match code & 0xf0 {
                    JEQ => a.value == operand,
                    0x20 => a.value > operand,
                    0x30 => a.value >= operand,
                    _ => a.value & operand != 0,
                };
                at += usize::from(if holds { jt } else { jf });
            }
            RET => break,
            MISC if code & 0xf8 == TAX => x = a,
            MISC => a = x,
            _ => memory[k as usize % MEMORY] = x,
        }
    }
    out
}

/// Reverses a left shift, or a right shift if `shift` is negative.
fn unshifted(bits: u32, shift: i32) -> u32 {
    let by = shift.unsigned_abs();
    if shift >= 0 { bits.checked_shr(by).unwrap_or(0) } else { bits.checked_shl(by).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    #[test]
    fn packets_satisfy_comparisons() {
        for text in [
            "tcp port 80",
            "ip6 and udp port 53",
            "vlan 7 and ip host 1.2.3.4",
            "tcp[12] & 0xf0 = 0x50 and tcp[13] & 2 != 0",
            "mpls 100 and mpls 200 and ip",
        ] {
            let compiled = compile(text, 1, &Options::default(), &NoNames).unwrap();
            let mut prober = Prober::new(7);
            let found = (0..2000).any(|_| {
                let (data, wire, _) = prober.packet(compiled.program(), None);
                compiled.program().run(&data, wire) != 0
            });
            assert!(found, "{text}");
        }
    }
}
