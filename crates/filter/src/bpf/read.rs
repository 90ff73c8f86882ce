//! Programs from text: in the forms that `tcpdump -d`, `-dd` and `-ddd` print, and that `iptables`
//! reads.

use super::*;

/// The error for a text that is not a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A line that is not an instruction.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from one.
        line: usize,
        /// The reason.
        what: String,
    },
    /// The number of instructions differs from the stated one.
    #[error("{found} instructions instead of {stated}")]
    Count {
        /// The stated number.
        stated: usize,
        /// The actual number.
        found: usize,
    },
    /// The program is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl Program {
    /// Reads a program in any of the forms that `tcpdump` prints: `-d` (`ldh [12]`), `-dd` (C
    /// initializers), `-ddd` (the count, followed by decimal numbers), the last also on one line
    /// with commas. Empty lines and lines that begin with `#` or `;` are skipped.
    ///
    /// # Errors
    /// If the text is none of them, or the program is invalid.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let lines = text.split(['\n']).enumerate().map(|(i, l)| (i + 1, l.trim()));
        let lines: Vec<(usize, &str)> =
            lines.filter(|(_, l)| !l.is_empty() && !l.starts_with(['#', ';'])).collect();
        let Some((_, first)) = lines.first() else {
            return Err(TextError::Invalid(Invalid::Length(0)));
        };
        let insns = if first.starts_with('{') {
            lines
                .iter()
                .map(|(at, l)| c_initializer(l).map_err(on(*at)))
                .collect::<Result<_, _>>()?
        } else if first.starts_with(|c: char| c.is_ascii_digit()) {
            decimal(&lines)?
        } else {
            let mut out = Vec::with_capacity(lines.len());
            for (at, line) in lines {
                out.push(assembly(line, out.len()).map_err(on(at))?);
            }
            out
        };
        Ok(Self::new(insns)?)
    }
}

fn on(line: usize) -> impl Fn(String) -> TextError {
    move |what| TextError::Line { line, what }
}

/// `{ 0x28, 0, 0, 0x0000000c },`
fn c_initializer(line: &str) -> Result<Insn, String> {
    let line = line.trim_end_matches(',').trim();
    let inner = line.strip_prefix('{').and_then(|l| l.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("'{line}' is not an initializer in braces"))?;
    four(inner.split(',').map(str::trim))
}

/// A count, then `CODE JT JF K` for each instruction, separated by line breaks or commas.
fn decimal(lines: &[(usize, &str)]) -> Result<Vec<Insn>, TextError> {
    let mut parts = lines
        .iter()
        .flat_map(|(at, l)| l.split(',').map(move |p| (*at, p.trim())))
        .filter(|(_, p)| !p.is_empty());
    let Some((at, count)) = parts.next() else { return Ok(Vec::new()) };
    let stated = count.parse().map_err(|_| on(at)(format!("'{count}' is not a number")))?;
    let insns: Vec<Insn> = parts
        .map(|(at, p)| four(p.split_ascii_whitespace()).map_err(on(at)))
        .collect::<Result<_, _>>()?;
    match insns.len() {
        found if found == stated => Ok(insns),
        found => Err(TextError::Count { stated, found }),
    }
}

fn four<'a>(mut numbers: impl Iterator<Item = &'a str>) -> Result<Insn, String> {
    let mut next = || number(numbers.next().unwrap_or_default());
    let (code, jt, jf, k) = (next()?, next()?, next()?, next()?);
    let small = |n: u32| u8::try_from(n).map_err(|_| format!("a jump of {n} is too far"));
    let code = u16::try_from(code).map_err(|_| format!("no instruction has the code {code:#x}"))?;
    let insn = Insn { code, jt: small(jt)?, jf: small(jf)?, k };
    match numbers.next() {
        None => Ok(insn),
        Some(more) => Err(format!("'{more}' after the four numbers of an instruction")),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => match text.strip_prefix('-') {
            Some(digits) => digits.parse().map(u32::wrapping_neg),
            None => text.parse(),
        },
    };
    parsed.map_err(|_| format!("'{text}' is not a 32-bit number"))
}

/// `(003) jeq #0x800 jt 4 jf 6` (with a tab between the jumps), with or without the leading number.
fn assembly(line: &str, at: usize) -> Result<Insn, String> {
    let line = match line.strip_prefix('(').and_then(|l| l.split_once(')')) {
        Some((_, rest)) => rest.trim(),
        None => line,
    };
    let (op, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
    let rest = rest.trim();
    let (operand, jumps) = match rest.find("jt ") {
        Some(i) => (rest[..i].trim(), Some(&rest[i..])),
        None => (rest, None),
    };
    let (code, k) = instruction(op, operand)
        .unwrap_or_else(|| Err(format!("'{op} {operand}' is not an instruction")))?;
    if code & 7 != JMP {
        return Ok(Insn::new(code, k));
    }
    // Jumps have their target in place of an operand.
    if code & 0xf0 == JA {
        return Ok(Insn::new(code, k.wrapping_sub(at as u32 + 1)));
    }
    let mut words = jumps.unwrap_or_default().split_ascii_whitespace();
    let mut target = |name| -> Result<u8, String> {
        let is_named = words.next() == Some(name);
        let to = words.next().filter(|_| is_named).and_then(|w| w.parse::<usize>().ok());
        let to = to.ok_or_else(|| format!("'{op}' needs 'jt N jf N'"))?;
        to.checked_sub(at + 1)
            .and_then(|d| u8::try_from(d).ok())
            .ok_or_else(|| format!("{op} cannot jump from {at} to {to}"))
    };
    let (jt, jf) = (target("jt")?, target("jf")?);
    Ok(Insn { code, jt, jf, k })
}

/// The code and operand; `None` if the instruction does not exist.
fn instruction(op: &str, operand: &str) -> Option<Result<(u16, u32), String>> {
    let with = |code: u16| move |k: u32| (code, k);
    let immediate = operand.strip_prefix('#');
    let index = |text: &str| text.strip_prefix("M[")?.strip_suffix(']').map(number);
    let alu = |code: u16| {
        Some(match operand {
            "x" => Ok((code | X, 0)),
            _ => number(immediate?).map(with(code)),
        })
    };
    let load = |size: u16| {
        let inner = operand.strip_prefix('[')?.strip_suffix(']')?;
        Some(match inner.strip_prefix("x +") {
            Some(k) => number(k.trim()).map(with(LD | IND | size)),
            None => kernel(inner).map_or_else(|| number(inner), Ok).map(with(LD | ABS | size)),
        })
    };
    match op {
        "ld" | "ldx" => {
            let class = if op == "ld" { LD } else { LDX };
            if operand == "#pktlen" {
                return Some(Ok((class | LEN, 0)));
            }
            if let Some(k) = immediate {
                return Some(number(k).map(with(class | IMM)));
            }
            if let Some(k) = index(operand) {
                return Some(k.map(with(class | MEM)));
            }
            if op == "ld" { load(W) } else { None }
        }
        "ldh" => load(H),
        "ldb" => load(B),
        "ldxb" => {
            let k = operand.strip_prefix("4*([")?.strip_suffix("]&0xf)")?;
            Some(number(k).map(with(LDX | MSH | B)))
        }
        "st" => Some(index(operand)?.map(with(ST))),
        "stx" => Some(index(operand)?.map(with(STX))),
        "add" => alu(ALU | ADD),
        "sub" => alu(ALU | SUB),
        "mul" => alu(ALU | MUL),
        "div" => alu(ALU | DIV),
        "mod" => alu(ALU | MOD),
        "and" => alu(ALU | AND),
        "or" => alu(ALU | OR),
        "xor" => alu(ALU | XOR),
        "lsh" => alu(ALU | LSH),
        "rsh" => alu(ALU | RSH),
        "neg" => Some(Ok((ALU | NEG, 0))),
        "ja" | "jmp" => Some(number(operand).map(with(JMP | JA))),
        "jeq" => alu(JMP | JEQ),
        "jgt" => alu(JMP | JGT),
        "jge" => alu(JMP | JGE),
        "jset" => alu(JMP | JSET),
        "ret" if operand.is_empty() => Some(Ok((RET | 0x10, 0))),
        "ret" => Some(number(immediate?).map(with(RET))),
        "tax" => Some(Ok((MISC | TAX, 0))),
        "txa" => Some(Ok((MISC | TXA, 0))),
        _ => None,
    }
}

/// Offsets of the kernel's metadata.
fn kernel(name: &str) -> Option<u32> {
    let offset = match name {
        "proto" => 0,
        "type" => 4,
        "ifidx" => 8,
        "vlan_tci" => 44,
        "vlanp" => 48,
        _ => return None,
    };
    Some(KERNEL + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    #[test]
    fn printed_programs_are_read() {
        for text in [
            "tcp port 80",
            "ip6 protochain 6",
            "ip[2:2] - ((ip[0]&0xf)<<2) != 0",
            "geneve and udp",
            "host 1.2.3.4 or vlan",
            "-ip[0] * len / 3 % 7 ^ 5 | 2 >> 1 > 4",
            "inbound",
        ] {
            let options = Options { kernel: true, ..Options::default() };
            let compiled = compile(text, 1, &options, &NoNames).unwrap();
            let program = compiled.program();
            assert_eq!(Program::from_text(&program.to_string()).as_ref(), Ok(program), "{text}");
            assert_eq!(Program::from_text(&program.to_c()).as_ref(), Ok(program), "{text}");
            assert_eq!(Program::from_text(&program.to_decimal()).as_ref(), Ok(program), "{text}");
        }
    }

    #[test]
    fn comments_and_one_line_are_read() {
        let accept = Program::from_text("; all\n\nret #7\n").unwrap();
        assert_eq!(accept.run(&[], 0), 7);
        assert_eq!(Program::from_text("1,6 0 0 7,"), Ok(accept));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let error = |text: &str| Program::from_text(text).unwrap_err().to_string();
        assert_eq!(error("ld [0]\nfoo #1"), "line 2: 'foo #1' is not an instruction");
        assert_eq!(error("jeq #1"), "line 1: 'jeq' needs 'jt N jf N'");
        assert_eq!(error("(000) jeq #1 jt 0 jf 1"), "line 1: jeq cannot jump from 0 to 0");
        assert_eq!(error("2\n6 0 0 0"), "1 instructions instead of 2");
        assert_eq!(error("{ 0x6, 0, 0 },"), "line 1: '' is not a 32-bit number");
        assert_eq!(error("ret #4294967296"), "line 1: '4294967296' is not a 32-bit number");
        assert_eq!(error(""), "invalid length of 0 instructions");
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "([a-z]{2,4} |[#x\\[\\]M(){}0-9,+ *&-]|jt 1 jf 2|\n)*") {
            let _ = Program::from_text(&text);
        }
    }
}
