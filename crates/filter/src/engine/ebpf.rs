//! Classic BPF translated to eBPF (RFC 9669), for display and for timing by the kernel.
//!
//! The program has the type `SCHED_CLS`, whose test runs start at the link header. A is r0, X is
//! r7, r6 holds the context, scratch words are on the stack. The loads `LD_ABS` and `LD_IND` read
//! network order, check lengths, and return 0 for a packet that is too short, like classic loads.
//! They clobber r1 to r5 and return their result in r0.

use std::fmt::Write;

use super::foreign::{Refused, check};
use crate::Program;
use crate::bpf::*;

/// An instruction of eBPF, encoded as in `struct bpf_insn` of linux/bpf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ebpf {
    /// Opcode.
    pub code: u8,
    /// Destination register, and in the upper half the source register.
    pub registers: u8,
    /// Jump distance, or stack offset.
    pub offset: i16,
    /// A constant.
    pub constant: i32,
}

const A: u8 = 0;
const CONTEXT: u8 = 6;
const RX: u8 = 7;
const FRAME: u8 = 10;

const LDX_W: u8 = 0x61;
const STX_W: u8 = 0x63;
const ST_W: u8 = 0x62;
const ALU32: u8 = 0x04;
const MOV: u8 = 0xb0;
const BY_REGISTER: u8 = 0x08;
const JMP32: u8 = 0x06;
const JUMP: u8 = 0x05;
const EXIT: u8 = 0x95;
/// `len` of `struct __sk_buff`.
const LEN_AT: i16 = 0;

fn insn(code: u8, to: u8, from: u8, offset: i16, constant: u32) -> Ebpf {
    Ebpf { code, registers: to | from << 4, offset, constant: constant.cast_signed() }
}

/// Stack offset of a scratch word.
fn slot(word: u32) -> i16 {
    -4 * (word as i16 + 1)
}

/// Translates a program that the kernel accepts.
///
/// # Errors
/// The reason why the kernel refuses it.
pub fn translate(program: &Program) -> Result<Vec<Ebpf>, Refused> {
    check(program)?;
    let classic = program.insns();
    // Pieces first: jump distances are known once all pieces have their lengths.
    let mut pieces: Vec<Vec<Ebpf>> = Vec::with_capacity(classic.len());
    for i in classic {
        pieces.push(piece(*i));
    }
    let prologue = [
        insn(0xb7 | BY_REGISTER, CONTEXT, 1, 0, 0),
        insn(0xb7, A, 0, 0, 0),
        insn(0xb7, RX, 0, 0, 0),
    ];
    let mut starts = Vec::with_capacity(classic.len());
    let mut at = prologue.len();
    for (piece, i) in pieces.iter().zip(classic) {
        starts.push(at);
        at += piece.len() + usize::from(i.code & 7 == JMP) * 2;
    }
    let mut out = prologue.to_vec();
    for (number, (piece, i)) in pieces.into_iter().zip(classic).enumerate() {
        out.extend(piece);
        if i.code & 7 != JMP {
            continue;
        }
        let to = |by: usize| starts.get(number + 1 + by).copied().unwrap_or(at);
        let (yes, no) = match i.code & 0xf0 {
            JA => (to(i.k as usize), to(i.k as usize)),
            _ => (to(usize::from(i.jt)), to(usize::from(i.jf))),
        };
        let here = out.len() as i64;
        let jump = |target: usize, from: i64| {
            i16::try_from(target as i64 - from - 1).map_err(|_| Refused::Length(classic.len()))
        };
        let op = (i.code & 0xf0) as u8;
        out.push(if i.code & 0xf0 == JA {
            insn(JUMP, 0, 0, jump(yes, here)?, 0)
        } else if i.code & X != 0 {
            insn(JMP32 | op | BY_REGISTER, A, RX, jump(yes, here)?, 0)
        } else {
            insn(JMP32 | op, A, 0, jump(yes, here)?, i.k)
        });
        out.push(insn(JUMP, 0, 0, jump(no, here + 1)?, 0));
    }
    Ok(out)
}

/// The translation of an instruction, without its jump.
fn piece(i: Insn) -> Vec<Ebpf> {
    let Insn { code, k, .. } = i;
    let size = (code & 0x18) as u8;
    let mov = |to, from| insn(ALU32 | MOV | BY_REGISTER, to, from, 0, 0);
    let set = |to, k| insn(ALU32 | MOV, to, 0, 0, k);
    match (code & 7, code & 0xe0) {
        (LD, ABS) => vec![insn(0x20 | size, 0, 0, 0, k)],
        (LD, IND) => vec![insn(0x40 | size, 0, RX, 0, k)],
        (LD, IMM) => vec![set(A, k)],
        (LD, LEN) => vec![insn(LDX_W, A, CONTEXT, LEN_AT, 0)],
        (LD, _) => vec![insn(LDX_W, A, FRAME, slot(k), 0)],
        (LDX, IMM) => vec![set(RX, k)],
        (LDX, LEN) => vec![insn(LDX_W, RX, CONTEXT, LEN_AT, 0)],
        (LDX, MSH) => vec![
            // The load returns in r0, which must hold A again afterwards; r8 is preserved.
            mov(8, A),
            insn(0x20 | 0x10, 0, 0, 0, k),
            insn(ALU32 | AND as u8, A, 0, 0, 15),
            insn(ALU32 | LSH as u8, A, 0, 0, 2),
            mov(RX, A),
            mov(A, 8),
        ],
        (LDX, _) => vec![insn(LDX_W, RX, FRAME, slot(k), 0)],
        (ST, _) => vec![insn(STX_W, FRAME, A, slot(k), 0)],
        (STX, _) => vec![insn(STX_W, FRAME, RX, slot(k), 0)],
        (ALU, _) => {
            let op = (code & 0xf0) as u8;
            match code & 0xf0 {
                NEG => vec![insn(ALU32 | op, A, 0, 0, 0)],
                // Classic programs reject where eBPF continues with 0 or A.
                DIV | MOD if code & X != 0 => vec![
                    insn(0x56, RX, 0, 2, 0),
                    set(A, 0),
                    insn(EXIT, 0, 0, 0, 0),
                    insn(ALU32 | op | BY_REGISTER, A, RX, 0, 0),
                ],
                _ if code & X != 0 => vec![insn(ALU32 | op | BY_REGISTER, A, RX, 0, 0)],
                _ => vec![insn(ALU32 | op, A, 0, 0, k)],
            }
        }
        (RET, _) if code & 0x18 == 0x10 => vec![insn(EXIT, 0, 0, 0, 0)],
        (RET, _) => vec![set(A, k), insn(EXIT, 0, 0, 0, 0)],
        (MISC, _) => vec![if code & 0xf8 == TAX { mov(RX, A) } else { mov(A, RX) }],
        _ => Vec::new(),
    }
}

/// Formats a program like `bpftool prog dump xlated`: a line for each instruction.
pub fn print(program: &[Ebpf]) -> String {
    let mut out = String::new();
    for (at, i) in program.iter().enumerate() {
        let (to, from) = (i.registers & 15, i.registers >> 4);
        let (k, operand) = (i.constant, i.code & BY_REGISTER != 0);
        let _ = write!(out, "{at:4}: ({:02x}) ", i.code);
        let right = |wide: char| {
            if operand { format!("{wide}{from}") } else { format!("{k:#x}") }
        };
        let target = at as i64 + 1 + i64::from(i.offset);
        let _ = match (i.code & 7, i.code) {
            (_, EXIT) => writeln!(out, "exit"),
            (_, JUMP) => writeln!(out, "goto {target}"),
            (0, code) => {
                let width = ["u32", "u16", "u8"][usize::from(code >> 3 & 3).min(2)];
                let base = if code & 0xe0 == 0x40 { format!("r{from} + ") } else { String::new() };
                writeln!(out, "r0 = *({width} *)skb[{base}{}]", k.cast_unsigned())
            }
            (1, _) => writeln!(out, "r{to} = *(u32 *)(r{from} {:+})", i.offset),
            (2 | 3, ST_W | STX_W) => writeln!(out, "*(u32 *)(r{to} {:+}) = r{from}", i.offset),
            (4 | 7, code) => {
                let r = if code & 7 == 7 { 'r' } else { 'w' };
                match code & 0xf0 {
                    MOV => writeln!(out, "{r}{to} = {}", right(r)),
                    0x80 => writeln!(out, "{r}{to} = -{r}{to}"),
                    op => {
                        let sign = match u16::from(op) {
                            ADD => "+",
                            SUB => "-",
                            MUL => "*",
                            DIV => "/",
                            OR => "|",
                            AND => "&",
                            LSH => "<<",
                            RSH => ">>",
                            MOD => "%",
                            _ => "^",
                        };
                        writeln!(out, "{r}{to} {sign}= {}", right(r))
                    }
                }
            }
            (_, code) => {
                let sign = match code & 0xf0 {
                    0x10 => "==",
                    0x20 => ">",
                    0x30 => ">=",
                    0x40 => "&",
                    _ => "!=",
                };
                writeln!(out, "if w{to} {sign} {} goto {target}", right('w'))
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    #[test]
    fn a_filter_is_translated_as_by_the_kernel() {
        let compiled = compile("ip", 1, &Options::default(), &NoNames).unwrap();
        let expected = "   0: (bf) r6 = r1\n   1: (b7) r0 = 0x0\n   2: (b7) r7 = 0x0\n   \
                        3: (28) r0 = *(u16 *)skb[12]\n   4: (16) if w0 == 0x800 goto 6\n   \
                        5: (05) goto 8\n   6: (b4) w0 = 0x40000\n   7: (95) exit\n   \
                        8: (b4) w0 = 0x0\n   9: (95) exit\n";
        assert_eq!(print(&translate(compiled.program()).unwrap()), expected);
    }

    #[test]
    fn jump_targets_are_preserved() {
        let compiled = compile("tcp port 80", 1, &Options::default(), &NoNames).unwrap();
        let all = translate(compiled.program()).unwrap();
        for (at, i) in all.iter().enumerate().filter(|(_, i)| i.code & 7 == JUMP && i.code != EXIT)
        {
            let to = at as i64 + 1 + i64::from(i.offset);
            assert!((0..all.len() as i64).contains(&to), "{at} to {to}");
        }
    }
}
