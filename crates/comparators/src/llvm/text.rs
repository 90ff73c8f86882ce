//! A program as LLVM assembly, translated instruction by instruction without optimization:
//! registers are memory locations, and every load has its own check. LLVM optimizes it.

use std::fmt::Write as _;

use gannet_filter::opcode::*;
use gannet_filter::{Insn, MAX_STEPS, MEMORY};

/// The function's name.
pub(super) const NAME: &str = "filter";

/// The text of a function that takes bytes, their number (64 bits) and the wire length, and returns
/// the bytes to keep. `opaque` selects pointers without types, as from LLVM 15 on. `attributes` are
/// the function's.
pub(super) fn function(program: &[Insn], opaque: bool, attributes: &str) -> String {
    let back = |i: &Insn| i.code & 7 == JMP && i.code & 0xf0 == JA && i.k.cast_signed() < 0;
    let mut text = Text { out: String::new(), opaque, loops: program.iter().any(back), next: 0 };
    let bytes = text.pointer("i8");
    text.line(&format!("define i32 @{NAME}({bytes} %data, i64 %len, i32 %wire) #0 {{"));
    for word in (0..MEMORY).map(memory).chain(["%a".into(), "%x".into(), "%steps".into()]) {
        text.line(&format!("{word} = alloca i32"));
        text.store("0", &word);
    }
    text.store(&MAX_STEPS.to_string(), "%steps");
    text.line("br label %i0");
    for (at, insn) in program.iter().enumerate() {
        text.line(&format!("i{at}:"));
        text.insn(at, insn);
    }
    // A valid program does not run over its end.
    text.line(&format!("i{}:\nbr label %none", program.len()));
    text.line("none:\nret i32 0\n}");
    for bits in [16, 32] {
        text.line(&format!("declare i{bits} @llvm.bswap.i{bits}(i{bits})"));
    }
    text.line(&format!("attributes #0 = {{ nounwind {attributes} }}"));
    text.out
}

fn memory(word: usize) -> String {
    format!("%m{word}")
}

struct Text {
    out: String,
    opaque: bool,
    /// Whether instructions must be counted.
    loops: bool,
    /// Number of names used.
    next: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn pointer(&self, to: &str) -> String {
        if self.opaque { "ptr".into() } else { format!("{to}*") }
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// Names a result.
    fn let_(&mut self, value: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "{name} = {value}");
        name
    }

    fn store(&mut self, value: &str, place: &str) {
        let pointer = self.pointer("i32");
        let _ = writeln!(self.out, "store i32 {value}, {pointer} {place}");
    }

    fn read(&mut self, place: &str) -> String {
        let pointer = self.pointer("i32");
        self.let_(&format!("load i32, {pointer} {place}"))
    }

    /// Continues only if the condition holds.
    fn check(&mut self, holds: &str) {
        self.next += 1;
        let on = self.next;
        let _ = writeln!(self.out, "br i1 {holds}, label %c{on}, label %none\nc{on}:");
    }

    /// Loads bytes of the packet as a number, after a bounds check.
    fn load(&mut self, size: u16, base: Option<&str>, k: u32) -> String {
        let bytes = match size {
            W => 4,
            H => 2,
            _ => 1_u64,
        };
        let offset = match base {
            None => k.to_string(),
            Some(base) => {
                let wide = self.let_(&format!("zext i32 {base} to i64"));
                self.let_(&format!("add i64 {wide}, {k}"))
            }
        };
        let end = self.let_(&format!("add i64 {offset}, {bytes}"));
        let there = self.let_(&format!("icmp ule i64 {end}, %len"));
        self.check(&there);
        let (data, bits) = (self.pointer("i8"), 8 * bytes);
        let mut at = self.let_(&format!("getelementptr i8, {data} %data, i64 {offset}"));
        if !self.opaque && bits > 8 {
            at = self.let_(&format!("bitcast i8* {at} to i{bits}*"));
        }
        let pointer = self.pointer(&format!("i{bits}"));
        let raw = self.let_(&format!("load i{bits}, {pointer} {at}, align 1"));
        if bits == 8 {
            return self.let_(&format!("zext i8 {raw} to i32"));
        }
        let swap = if cfg!(target_endian = "little") {
            self.let_(&format!("call i{bits} @llvm.bswap.i{bits}(i{bits} {raw})"))
        } else {
            raw
        };
        if bits == 32 { swap } else { self.let_(&format!("zext i16 {swap} to i32")) }
    }

    /// Continues only below the interpreter's limit.
    fn in_time(&mut self) {
        let left = self.read("%steps");
        let holds = self.let_(&format!("icmp sge i32 {left}, 0"));
        self.check(&holds);
    }

    fn insn(&mut self, at: usize, insn: &Insn) {
        let Insn { code, jt, jf, k } = *insn;
        if self.loops {
            let left = self.read("%steps");
            let less = self.let_(&format!("sub i32 {left}, 1"));
            self.store(&less, "%steps");
        }
        match code & 7 {
            LD | LDX => {
                let value = match (code & 7, code & 0xe0) {
                    (LD, ABS) => self.load(code & 0x18, None, k),
                    (LD, IND) => {
                        let x = self.read("%x");
                        self.load(code & 0x18, Some(&x), k)
                    }
                    (LDX, MSH) => {
                        let byte = self.load(B, None, k);
                        let low = self.let_(&format!("and i32 {byte}, 15"));
                        self.let_(&format!("shl i32 {low}, 2"))
                    }
                    (_, IMM) => k.to_string(),
                    (_, LEN) => "%wire".into(),
                    (_, MEM) if (k as usize) < MEMORY => self.read(&memory(k as usize)),
                    _ => return self.line("br label %none"),
                };
                self.store(&value, if code & 7 == LD { "%a" } else { "%x" });
            }
            ST | STX => {
                let value = self.read(if code & 7 == ST { "%a" } else { "%x" });
                if (k as usize) < MEMORY {
                    self.store(&value, &memory(k as usize));
                }
            }
            ALU => {
                let a = self.read("%a");
                let operand = self.operand(insn);
                let result = self.alu(code & 0xf0, &a, &operand);
                self.store(&result, "%a");
            }
            JMP => return self.jump(at, insn, [jt, jf]),
            RET => {
                if self.loops {
                    self.in_time();
                }
                let kept = if code & 0x18 == 0x10 { self.read("%a") } else { k.to_string() };
                return self.line(&format!("ret i32 {kept}"));
            }
            _ => {
                let (from, to) = if code & 0xf8 == TAX { ("%a", "%x") } else { ("%x", "%a") };
                let value = self.read(from);
                self.store(&value, to);
            }
        }
        self.line(&format!("br label %i{}", at + 1));
    }

    fn jump(&mut self, at: usize, insn: &Insn, [jt, jf]: [u8; 2]) {
        let op = insn.code & 0xf0;
        if op == JA {
            let by = insn.k.cast_signed();
            if by < 0 {
                self.in_time();
            }
            let to = (at + 1).wrapping_add_signed(by as isize);
            return self.line(&format!("br label %i{to}"));
        }
        let a = self.read("%a");
        let operand = self.operand(insn);
        let holds = match op {
            JEQ => self.let_(&format!("icmp eq i32 {a}, {operand}")),
            JGT => self.let_(&format!("icmp ugt i32 {a}, {operand}")),
            JGE => self.let_(&format!("icmp uge i32 {a}, {operand}")),
            _ => {
                let common = self.let_(&format!("and i32 {a}, {operand}"));
                self.let_(&format!("icmp ne i32 {common}, 0"))
            }
        };
        let to = |by: u8| at + 1 + usize::from(by);
        self.line(&format!("br i1 {holds}, label %i{}, label %i{}", to(jt), to(jf)));
    }

    fn operand(&mut self, insn: &Insn) -> String {
        if insn.code & X == 0 { insn.k.to_string() } else { self.read("%x") }
    }

    fn alu(&mut self, op: u16, a: &str, b: &str) -> String {
        let name = match op {
            ADD => "add",
            SUB => "sub",
            MUL => "mul",
            OR => "or",
            AND => "and",
            XOR => "xor",
            DIV | MOD => {
                let some = self.let_(&format!("icmp ne i32 {b}, 0"));
                self.check(&some);
                if op == DIV { "udiv" } else { "urem" }
            }
            LSH | RSH => {
                // Shifts by more bits than the number has are undefined in LLVM.
                let fits = self.let_(&format!("icmp ult i32 {b}, 32"));
                let by = self.let_(&format!("select i1 {fits}, i32 {b}, i32 0"));
                let name = if op == LSH { "shl" } else { "lshr" };
                let moved = self.let_(&format!("{name} i32 {a}, {by}"));
                return self.let_(&format!("select i1 {fits}, i32 {moved}, i32 0"));
            }
            _ => return self.let_(&format!("sub i32 0, {a}")),
        };
        self.let_(&format!("{name} i32 {a}, {b}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_precede_loads() {
        let insns = [Insn::new(LD | H | ABS, 12), Insn::new(RET | 0x10, 0)];
        let text = function(&insns, true, "");
        let check = text.find("icmp ule i64 %v1, %len").unwrap();
        let load = text.find("load i16, ptr %v4, align 1").unwrap();
        assert!(check < load, "{text}");
        assert!(!text.contains("%steps = sub"), "{text}");
        assert!(function(&insns, false, "").contains("bitcast i8* %v4 to i16*"));
    }
}
