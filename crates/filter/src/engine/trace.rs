//! A trace of the interpreter on one packet, step by step.

use std::fmt;

use super::View;
use crate::Program;
use crate::bpf::line;

/// Maximum number of stored steps: programs with loops have many.
const MAX_STEPS: usize = 4096;

/// An executed instruction, with the registers before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the instruction, from zero.
    pub at: usize,
    /// The accumulator.
    pub a: u32,
    /// The index register.
    pub x: u32,
}

/// The execution of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace<'a> {
    program: &'a Program,
    /// The first steps, up to the limit.
    pub steps: Vec<Step>,
    /// Number of further steps.
    pub more: usize,
    /// Bytes of the packet to keep.
    pub verdict: u32,
}

/// Runs a program over a packet and records its steps.
pub fn trace<'a>(program: &'a Program, packet: View<'_>) -> Trace<'a> {
    let (mut steps, mut more) = (Vec::new(), 0);
    let verdict = program.run_watched(packet.data(), packet.wire_len(), |at, a, x| {
        if steps.len() < MAX_STEPS {
            steps.push(Step { at, a, x });
        } else {
            more += 1;
        }
    });
    Trace { program, steps, more, verdict }
}

/// A line for each step: the instruction, followed by A and X.
impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (i, step) in self.steps.iter().enumerate() {
            let Some(insn) = self.program.insns().get(step.at) else { continue };
            text.clear();
            line(insn, step.at, &mut text)?;
            // A tab before `jf` in tcpdump's form.
            let text = text.replace('\t', " ");
            match self.steps.get(i + 1) {
                Some(next) => writeln!(f, "{text:<44} A={:#x} X={:#x}", next.a, next.x)?,
                None => writeln!(f, "{text}")?,
            }
        }
        if self.more > 0 {
            writeln!(f, "... {} steps more", self.more)?;
        }
        let last = self.steps.last().and_then(|s| self.program.insns().get(s.at));
        let returned = last.is_some_and(|i| i.code & 7 == crate::bpf::RET);
        match (self.verdict, returned || self.more > 0) {
            (0, false) => f.write_str(
                "rejected: the instruction loads bytes beyond the packet or divides by zero",
            ),
            (0, true) => f.write_str("rejected"),
            (n, _) => write!(f, "accepted: at most {n} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Options, compile};

    #[test]
    fn steps_and_why_it_ended() {
        let compiled = compile("ip", 1, &Options::default(), &NoNames).unwrap();
        let frame = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
        let told = trace(compiled.program(), View::new(&frame, 14)).to_string();
        let expected = "(000) ldh      [12]                          A=0x800 X=0x0\n\
                        (001) jeq      #0x800           jt 2 jf 3    A=0x800 X=0x0\n\
                        (002) ret      #262144\naccepted: at most 262144 bytes";
        assert_eq!(told, expected);
        let told = trace(compiled.program(), View::new(&frame[..13], 14));
        assert_eq!((told.steps.len(), told.verdict), (1, 0));
        let reason = "rejected: the instruction loads bytes beyond the packet or divides by zero";
        assert!(told.to_string().ends_with(reason));
    }
}
