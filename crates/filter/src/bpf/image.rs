//! Programs as `tcpdump -d`, `-dd` and `-ddd` print them.

use std::fmt::{self, Write};

use super::*;

impl Program {
    /// The form of `tcpdump -dd`: C initializers.
    pub fn to_c(&self) -> String {
        let mut out = String::new();
        for i in &self.insns {
            let _ = writeln!(out, "{{ 0x{:x}, {}, {}, 0x{:08x} }},", i.code, i.jt, i.jf, i.k);
        }
        out
    }

    /// The form of `tcpdump -ddd`: the number of instructions, followed by decimal numbers.
    pub fn to_decimal(&self) -> String {
        let mut out = format!("{}\n", self.insns.len());
        for i in &self.insns {
            let _ = writeln!(out, "{} {} {} {}", i.code, i.jt, i.jf, i.k);
        }
        out
    }
}

/// The form of `tcpdump -d`: a line for each instruction.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, insn) in self.insns.iter().enumerate() {
            if at > 0 {
                f.write_char('\n')?;
            }
            line(insn, at, f)?;
        }
        Ok(())
    }
}

/// An instruction as `tcpdump -d` prints it.
pub(crate) fn line(insn: &Insn, at: usize, f: &mut impl Write) -> fmt::Result {
    let (op, operand) = image(insn, at);
    write!(f, "({at:03}) ")?;
    let jump = insn.code & 7 == JMP && insn.code & 0xf0 != JA;
    if jump {
        let (t, e) = (at + 1 + usize::from(insn.jt), at + 1 + usize::from(insn.jf));
        write!(f, "{op:<8} {operand:<16} jt {t}\tjf {e}")
    } else if operand.is_empty() {
        f.write_str(op)
    } else {
        write!(f, "{op:<8} {operand}")
    }
}

fn image(insn: &Insn, at: usize) -> (&'static str, String) {
    let Insn { code, k, .. } = *insn;
    let sized = |w, h, b| match code & 0x18 {
        W => w,
        H => h,
        _ => b,
    };
    match code & 7 {
        LD => match code & 0xe0 {
            ABS => (sized("ld", "ldh", "ldb"), absolute(k)),
            IND => (sized("ld", "ldh", "ldb"), format!("[x + {k}]")),
            IMM => ("ld", format!("#0x{k:x}")),
            LEN => ("ld", "#pktlen".into()),
            _ => ("ld", format!("M[{k}]")),
        },
        LDX => match code & 0xe0 {
            MSH => ("ldxb", format!("4*([{k}]&0xf)")),
            IMM => ("ldx", format!("#0x{k:x}")),
            LEN => ("ldx", "#pktlen".into()),
            _ => ("ldx", format!("M[{k}]")),
        },
        ST => ("st", format!("M[{k}]")),
        STX => ("stx", format!("M[{k}]")),
        ALU => {
            let hex = code & X == 0 && matches!(code & 0xf0, AND | OR | XOR);
            let operand = match () {
                () if code & X != 0 => "x".into(),
                () if hex => format!("#0x{k:x}"),
                () => format!("#{k}"),
            };
            match code & 0xf0 {
                ADD => ("add", operand),
                SUB => ("sub", operand),
                MUL => ("mul", operand),
                DIV => ("div", operand),
                MOD => ("mod", operand),
                OR => ("or", operand),
                AND => ("and", operand),
                XOR => ("xor", operand),
                LSH => ("lsh", operand),
                RSH => ("rsh", operand),
                _ => ("neg", String::new()),
            }
        }
        JMP => {
            let operand = if code & X == 0 { format!("#0x{k:x}") } else { "x".into() };
            match code & 0xf0 {
                JA => ("ja", (at as i64 + 1 + i64::from(k.cast_signed())).to_string()),
                JEQ => ("jeq", operand),
                JGT => ("jgt", operand),
                JGE => ("jge", operand),
                _ => ("jset", operand),
            }
        }
        RET if code & 0x18 == 0x10 => ("ret", String::new()),
        RET => ("ret", format!("#{k}")),
        _ if code & 0xf8 == TAX => ("tax", String::new()),
        _ => ("txa", String::new()),
    }
}

/// An offset, or the name of the kernel's metadata.
fn absolute(k: u32) -> String {
    match k.wrapping_sub(KERNEL) {
        0 => "[proto]".into(),
        4 => "[type]".into(),
        8 => "[ifidx]".into(),
        44 => "[vlan_tci]".into(),
        48 => "[vlanp]".into(),
        _ => format!("[{k}]"),
    }
}
