//! The graph as text: a line for each block, and values as expressions.

use std::fmt;
use std::fmt::Write as _;

use crate::Compiled;
use crate::bpf;
use crate::ir::{ACCEPT, Graph, Node, REJECT, Step, Test, ValueId, Values};

impl Compiled {
    /// The graph after each pass of the optimizer; passes that changed nothing only by their name.
    pub fn passes_listed(&self) -> String {
        let (mut out, mut last) = (String::new(), String::new());
        for (name, graph) in self.passes() {
            let shown = graph.to_string();
            let blocks = graph.blocks.len().saturating_sub(2);
            if shown == last {
                let _ = writeln!(out, "{name}: the same");
            } else {
                let _ = writeln!(out, "{name}: {blocks} tests\n{shown}");
            }
            last = shown;
        }
        out
    }
}

/// A value as shown in listings.
pub(super) struct Shown<'a>(pub(super) &'a Values, pub(super) ValueId);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(values, id) = *self;
        match values.node(id) {
            Node::Const(k) => write!(f, "{k:#x}"),
            Node::Len => f.write_str("len"),
            Node::Load(size, None, k) => write!(f, "packet[{k}:{size}]"),
            Node::Load(size, Some(base), k) => {
                write!(f, "packet[{} + {k}:{size}]", Shown(values, base))
            }
            Node::HeaderLen(k) => write!(f, "4*(packet[{k}]&0xf)"),
            Node::Var(var) => write!(f, "v{var}"),
            Node::Neg(a) => write!(f, "-{}", Shown(values, a)),
            Node::Binary(op, a, b) => {
                let sign = match op {
                    bpf::ADD => "+",
                    bpf::SUB => "-",
                    bpf::MUL => "*",
                    bpf::DIV => "/",
                    bpf::MOD => "%",
                    bpf::OR => "|",
                    bpf::AND => "&",
                    bpf::XOR => "^",
                    bpf::LSH => "<<",
                    _ => ">>",
                };
                write!(f, "({} {sign} {})", Shown(values, a), Shown(values, b))
            }
        }
    }
}

/// The step of a block, in a line.
pub(super) fn step(values: &Values, step: &Step) -> String {
    let shown = |id: ValueId| Shown(values, id);
    match step {
        Step::Test(Test { op, left, right }) => {
            let sign = match *op {
                bpf::JEQ => "=",
                bpf::JGT => ">",
                bpf::JGE => ">=",
                _ => "has bits of",
            };
            format!("{} {sign} {}", shown(*left), shown(*right))
        }
        Step::In(value, set) => format!("{} in {set}", shown(*value)),
        Step::In6(words, set) => format!("{}.. as 16 bytes in {set}", shown(words[0])),
        Step::Set(var, value) => format!("v{var} := {}", shown(*value)),
        Step::Code(insns, k) => format!("loop over headers ({} instructions) = {k}", insns.len()),
        Step::Return(true) => "accept".to_owned(),
        Step::Return(false) => "reject".to_owned(),
    }
}

/// A line for each block, from the root on: its number, its step, and its targets.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |id| match id {
            REJECT => "reject".to_owned(),
            ACCEPT => "accept".to_owned(),
            id => format!("b{id}"),
        };
        if self.root <= ACCEPT {
            return writeln!(f, "{}", name(self.root));
        }
        for id in self.order().into_iter().filter(|id| *id > ACCEPT) {
            let block = &self.blocks[id];
            let does = step(&self.values, &block.step);
            match block.step {
                Step::Set(..) => writeln!(f, "b{id}: {does} -> {}", name(block.yes))?,
                _ => writeln!(f, "b{id}: {does} ? {} : {}", name(block.yes), name(block.no))?,
            }
        }
        Ok(())
    }
}
