//! The expression as conditions on the packet's bytes, before it becomes a graph.

use std::fmt::Write;

use super::listing::step;
use crate::Compiled;
use crate::ir::{Cond, Step, Values};

impl Compiled {
    /// The conditions on the packet after resolving names, qualifiers and the link type: a line for
    /// each test, with the operands of `all`, `any` and `not` indented. The prologue comes first.
    pub fn predicates(&self) -> String {
        let mut out = String::new();
        match self.conditions() {
            None => out.push_str("true\n"),
            Some((values, prologue, cond)) => {
                for first in prologue.iter().chain([cond]) {
                    condition(values, first, 0, &mut out);
                }
            }
        }
        out
    }
}

fn condition(values: &Values, cond: &Cond, depth: usize, out: &mut String) {
    let (head, inner) = match cond {
        Cond::True => ("true".to_owned(), &[][..]),
        Cond::False => ("false".to_owned(), &[][..]),
        Cond::Not(inner) => ("not".to_owned(), std::slice::from_ref(&**inner)),
        Cond::All(all) => ("all".to_owned(), &all[..]),
        Cond::Any(any) => ("any".to_owned(), &any[..]),
        Cond::Test(test) => (step(values, &Step::Test(*test)), &[][..]),
        Cond::In(value, set) => (step(values, &Step::In(*value, set.clone())), &[][..]),
        Cond::In6(words, set) => (step(values, &Step::In6(*words, set.clone())), &[][..]),
        Cond::Set(var, value) => (step(values, &Step::Set(*var, *value)), &[][..]),
        Cond::Code(insns, k) => (step(values, &Step::Code(insns.clone(), *k)), &[][..]),
    };
    let _ = writeln!(out, "{}{head}", "  ".repeat(depth));
    for one in inner {
        condition(values, one, depth + 1, out);
    }
}
