//! The syntax tree as text, a line for each node, indented by depth.

use std::fmt::Write;

use super::words;
use crate::Compiled;
use crate::ast::{Arith, Expr, Join, Primitive, Relation};
use crate::error::Span;

impl Compiled {
    /// The syntax tree: a line for each node, indented by depth. Leaves have their byte offset in
    /// the text after `@`.
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
            // Left-associative for all operators; a run of the same operator is one line.
            let _ = writeln!(out, "{indent}chain");
            expression(first, depth + 1, out);
            for (join, next) in rest {
                let _ = writeln!(out, "{indent}{}", if *join == Join::And { "and" } else { "or" });
                expression(next, depth + 1, out);
            }
        }
        Expr::Leaf(primitive, Span { at, width }) => {
            let _ = writeln!(out, "{indent}{} @{at}..{}", leaf(primitive), at + width);
        }
    }
}

/// A primitive with all its qualifiers, including inherited ones.
fn leaf(primitive: &Primitive) -> String {
    match primitive {
        Primitive::Id(q, id) => {
            let q = q.map_or_else(
                || "(none)".to_owned(),
                |q| {
                    let parts = [q.proto, q.dir, q.of].into_iter().flatten();
                    parts.collect::<Vec<_>>().join(" ")
                },
            );
            format!("id [{q}] {}", words::named(id))
        }
        Primitive::Among(q, items) => {
            let q: Vec<&str> = [q.proto, q.dir, q.of].into_iter().flatten().collect();
            let items: Vec<String> = items.iter().map(words::named).collect();
            format!("in [{}] {{{}}}", q.join(" "), items.join(", "))
        }
        Primitive::Proto(proto) => format!("proto {proto}"),
        Primitive::Relation(relation, a, b) => {
            let sign = match relation {
                Relation::Gt => ">",
                Relation::Ge => ">=",
                Relation::Eq => "=",
                Relation::Le => "<=",
                Relation::Lt => "<",
                Relation::Ne => "!=",
            };
            format!("({sign} {} {})", number(a), number(b))
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

/// Arithmetic in prefix form.
fn number(arith: &Arith) -> String {
    match arith {
        Arith::Number(n) => n.to_string(),
        Arith::Len => "len".to_owned(),
        Arith::Load(proto, at, size) => format!("{proto}[{}:{size}]", number(at)),
        Arith::Binary(sign, a, b) => format!("({sign} {} {})", number(a), number(b)),
        Arith::Neg(a) => format!("(- {})", number(a)),
    }
}
