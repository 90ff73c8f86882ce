//! The program as a function in C.

use std::fmt::Write;

use crate::bpf::{
    ABS, ADD, ALU, AND, B, DIV, H, IMM, IND, Insn, JA, JEQ, JGE, JGT, JMP, LD, LDX, LEN, LSH, MEM,
    MISC, MOD, MSH, MUL, NEG, OR, Program, RET, RSH, ST, STX, SUB, TAX, X,
};

impl Program {
    /// A C function that returns the number of bytes of a packet to keep. It uses only the standard
    /// library and has the meaning of [`Program::run`].
    pub fn to_c_function(&self, name: &str) -> String {
        let insns = self.insns();
        let mut targets = vec![false; insns.len() + 1];
        for (at, insn) in insns.iter().enumerate().filter(|(_, i)| i.code & 7 == JMP) {
            for to in jumps(at, insn) {
                if let Some(t) = targets.get_mut(to) {
                    *t = true;
                }
            }
        }
        let mut out = format!(
            "#include <stdint.h>\n\n\
             /* How many bytes of the packet to keep; 0 rejects it. */\n\
             uint32_t {name}(const uint8_t *p, uint32_t wire, uint32_t len)\n{{\n\
             \tuint32_t a = 0, x = 0, m[16] = {{0}};\n\t(void)p, (void)wire, (void)len, (void)m, \
             (void)a, (void)x;\n"
        );
        for (at, insn) in insns.iter().enumerate() {
            if targets[at] {
                let _ = writeln!(out, "l{at}:");
            }
            let _ = writeln!(out, "\t{}", statement(at, insn));
        }
        out.push_str("}\n");
        out
    }
}

fn jumps(at: usize, insn: &Insn) -> [usize; 2] {
    if insn.code & 0xf0 == JA {
        let to = (at + 1).wrapping_add_signed(insn.k.cast_signed() as isize);
        return [to, to];
    }
    [at + 1 + usize::from(insn.jt), at + 1 + usize::from(insn.jf)]
}

/// Bytes at an offset that must not wrap; otherwise the packet is rejected.
fn load(size: u16, offset: &str) -> String {
    let n = match size {
        B => 1,
        H => 2,
        _ => 4,
    };
    let bytes: Vec<String> =
        (0..n).map(|i| format!("(uint32_t)p[o + {i}] << {}", 8 * (n - 1 - i))).collect();
    format!("{{ uint64_t o = {offset}; if (o + {n} > len) return 0; a = {}; }}", bytes.join(" | "))
}

fn statement(at: usize, insn: &Insn) -> String {
    let Insn { code, k, .. } = *insn;
    let operand = if code & X == 0 { format!("{k}u") } else { "x".to_owned() };
    let register = if matches!(code & 7, LD | ST) { "a" } else { "x" };
    match code & 7 {
        LD | LDX => match code & 0xe0 {
            ABS => load(code & 0x18, &format!("{k}u")),
            IND => load(code & 0x18, &format!("(uint64_t)x + {k}u; if (o > 0xffffffffu) return 0")),
            IMM => format!("{register} = {k}u;"),
            LEN => format!("{register} = wire;"),
            MEM => format!("{register} = m[{k}];"),
            MSH => format!("if ({k}u >= len) return 0; x = (p[{k}u] & 15u) << 2;"),
            _ => "return 0;".to_owned(),
        },
        ST | STX => format!("m[{k}] = {register};"),
        ALU => {
            let sign = match code & 0xf0 {
                ADD => "+",
                SUB => "-",
                MUL => "*",
                OR => "|",
                AND => "&",
                DIV | MOD => {
                    let sign = if code & 0xf0 == DIV { "/" } else { "%" };
                    return format!("if ({operand} == 0) return 0; a {sign}= {operand};");
                }
                LSH | RSH => {
                    let sign = if code & 0xf0 == LSH { "<<" } else { ">>" };
                    return format!("a = {operand} > 31 ? 0 : a {sign} {operand};");
                }
                NEG => return "a = 0u - a;".to_owned(),
                _ => "^",
            };
            format!("a {sign}= {operand};")
        }
        JMP => {
            let [yes, no] = jumps(at, insn);
            let sign = match code & 0xf0 {
                JA => return format!("goto l{yes};"),
                JEQ => "==",
                JGT => ">",
                JGE => ">=",
                _ => "&",
            };
            format!("if (a {sign} {operand}) goto l{yes}; else goto l{no};")
        }
        RET if code & 0x18 == 0x10 => "return a;".to_owned(),
        RET => format!("return {k}u;"),
        MISC if code & 0xf8 == TAX => "x = a;".to_owned(),
        _ => "a = x;".to_owned(),
    }
}
