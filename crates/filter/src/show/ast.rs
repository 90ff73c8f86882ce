//! The syntax tree, a line for each part, those inside of others indented.

use std::fmt::Write;

use crate::Compiled;
use crate::ast::{Expr, Join};

impl Compiled {
    /// The syntax tree: a line for each part with its place in the text, parts of parts indented.
    pub fn ast(&self) -> String {
        let mut out = String::new();
        match self.tree() {
            None => out.push_str("everything\n"),
            Some(tree) => expression(&tree, 0, &mut out),
        }
        out
    }
}

fn expression(expr: &Expr, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match expr {
        Expr::Not(inner) => {
            let _ = writeln!(out, "{indent}not");
            expression(inner, depth + 1, out);
        }
        Expr::Chain(first, rest) => {
            let _ = writeln!(out, "{indent}chain");
            expression(first, depth + 1, out);
            for (join, next) in rest {
                let _ = writeln!(out, "{indent}{}", if *join == Join::And { "and" } else { "or" });
                expression(next, depth + 1, out);
            }
        }
        Expr::Leaf(primitive, span) => {
            let _ = writeln!(out, "{indent}{}..{}: {primitive:?}", span.at, span.at + span.width);
        }
    }
}
