//! Reads of `&optional` fields that no `?$` guards, the most common run-time error of scripts.
//!
//! The pass follows the control flow of a body with the set of fields that are known to be set: tested by `?$`,
//! or assigned.

use std::collections::BTreeSet;

use super::Lint;
use crate::ast::{BinaryOp, ExprKind, StmtKind, UnaryOp};
use crate::ids::{BodyId, ExprId, StmtId};
use crate::program::Program;
use crate::tools::finding::source;
use crate::types::{AttrKind, find_attr};

/// Texts of field expressions that are known to be set.
type Known = BTreeSet<Vec<u8>>;

pub(super) fn check(lint: &mut Lint<'_>) {
    for body in lint.bodies() {
        let mut pass =
            Pass { program: lint.program, found: Vec::new(), reported: Known::new(), depth: 0 };
        pass.body(body);
        for (expr, text) in pass.found {
            // As written in the script; the full text would qualify locals with the module.
            let written = source(lint.program, lint.program.exprs[expr].span);
            let written = written.filter(|text| text.contains('$') && !text.contains('\n'));
            let text = written.unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned());
            let message = format!("`{text}` is `&optional` and may have no value here");
            let at = text.rfind('$').unwrap_or(0);
            let hint = format!("test it first: `if ( {}?{} )`", &text[..at], &text[at..]);
            lint.warn("optional-field", lint.program.exprs[expr].span, message, &hint);
        }
    }
}

struct Pass<'a> {
    program: &'a Program,
    found: Vec<(ExprId, Vec<u8>)>,
    reported: Known,
    depth: usize,
}

impl Pass<'_> {
    fn body(&mut self, body: BodyId) {
        let mut known = Known::new();
        self.stmt(self.program.bodies[body].stmt, &mut known);
    }

    /// Follows a statement; returns whether control never continues after it.
    fn stmt(&mut self, stmt: StmtId, known: &mut Known) -> bool {
        if self.depth > 2_000 {
            return false;
        }
        self.depth += 1;
        let ends = self.stmt_inner(stmt, known);
        self.depth -= 1;
        ends
    }

    fn stmt_inner(&mut self, stmt: StmtId, known: &mut Known) -> bool {
        let program = self.program;
        match &program.stmts[stmt].kind {
            StmtKind::List(stmts) => {
                for stmt in stmts {
                    if self.stmt(*stmt, known) {
                        return true;
                    }
                }
                false
            }
            StmtKind::If(condition, yes, no) => {
                self.expr(*condition, known);
                let (mut if_true, mut if_false) = (known.clone(), known.clone());
                self.facts(*condition, true, &mut if_true);
                self.facts(*condition, false, &mut if_false);
                let yes = self.stmt(*yes, &mut if_true);
                let no = no.is_some_and(|no| self.stmt(no, &mut if_false));
                *known = match (yes, no) {
                    (true, _) => if_false,
                    (false, true) => if_true,
                    (false, false) => if_true.intersection(&if_false).cloned().collect(),
                };
                yes && no
            }
            StmtKind::While(condition, body) => {
                self.expr(*condition, known);
                let mut inside = known.clone();
                self.facts(*condition, true, &mut inside);
                self.stmt(*body, &mut inside);
                false
            }
            StmtKind::For(each) => {
                self.expr(each.over, known);
                self.stmt(each.body, &mut known.clone());
                false
            }
            StmtKind::Switch(switch) => {
                self.expr(switch.value, known);
                for case in &switch.cases {
                    self.stmt(case.body, &mut known.clone());
                }
                false
            }
            StmtKind::When(when) => {
                let mut inside = known.clone();
                self.facts(when.condition, true, &mut inside);
                self.stmt(when.body, &mut inside);
                if let Some((_, body)) = when.timeout {
                    self.stmt(body, &mut known.clone());
                }
                false
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.expr(*value, known);
                }
                true
            }
            StmtKind::Break | StmtKind::Next | StmtKind::Fallthrough => true,
            StmtKind::Assert(condition, _) => {
                self.expr(*condition, known);
                self.facts(*condition, true, known);
                false
            }
            _ => {
                let mut parts = Vec::new();
                crate::walk::stmt_expressions(program, stmt, &mut parts);
                for part in parts {
                    self.expr(part, known);
                }
                false
            }
        }
    }

    fn expr(&mut self, expr: ExprId, known: &mut Known) {
        if self.depth > 2_000 {
            return;
        }
        self.depth += 1;
        self.expr_inner(expr, known);
        self.depth -= 1;
    }

    fn expr_inner(&mut self, expr: ExprId, known: &mut Known) {
        let program = self.program;
        match &program.exprs[expr].kind {
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.expr(*a, known);
                let mut inside = known.clone();
                self.facts(*a, *op == BinaryOp::And, &mut inside);
                self.expr(*b, &mut inside);
            }
            ExprKind::Conditional(condition, a, b) => {
                self.expr(*condition, known);
                for (branch, holds) in [(a, true), (b, false)] {
                    let mut inside = known.clone();
                    self.facts(*condition, holds, &mut inside);
                    self.expr(*branch, &mut inside);
                }
            }
            ExprKind::Assign(left, right) => {
                self.expr(*right, known);
                if let ExprKind::Field(base, _) = program.exprs[*left].kind {
                    self.expr(base, known);
                } else {
                    self.expr(*left, known);
                }
                let text = crate::describe::expr(program, *left);
                let prefix = [&text[..], b"$"].concat();
                known.retain(|fact| !fact.starts_with(&prefix));
                if let ExprKind::Record(record) = &program.exprs[unconverted(program, *right)].kind
                {
                    let ty = program.exprs[unconverted(program, *right)].ty;
                    for (offset, _) in &record.fields {
                        if let Some(field) = field_name(program, ty, *offset) {
                            known.insert([&prefix[..], field.as_bytes()].concat());
                        }
                    }
                }
                known.insert(text);
            }
            ExprKind::Delete(target) => {
                known.remove(&crate::describe::expr(program, *target));
            }
            ExprKind::HasField(base, _) => self.expr(*base, known),
            ExprKind::Field(base, offset) => {
                self.expr(*base, known);
                let optional = program
                    .types
                    .record(program.exprs[*base].ty)
                    .and_then(|record| record.fields.get(*offset as usize))
                    .is_some_and(|field| {
                        find_attr(&field.attrs, AttrKind::Optional).is_some()
                            && find_attr(&field.attrs, AttrKind::Default).is_none()
                    });
                if optional {
                    let text = crate::describe::expr(program, expr);
                    if !known.contains(&text) && self.reported.insert(text.clone()) {
                        self.found.push((expr, text));
                    }
                }
            }
            _ => {
                let mut parts = Vec::new();
                crate::walk::operands(program, expr, &mut parts);
                for part in parts {
                    self.expr(part, known);
                }
            }
        }
    }

    /// Adds the fields that are set if `condition` has the value `holds`.
    fn facts(&self, condition: ExprId, holds: bool, known: &mut Known) {
        let program = self.program;
        let mut open = vec![(condition, holds)];
        while let Some((condition, holds)) = open.pop() {
            match program.exprs[condition].kind {
                ExprKind::Unary(UnaryOp::Not, inner) => open.push((inner, !holds)),
                ExprKind::Binary(BinaryOp::And, a, b) if holds => {
                    open.extend([(a, true), (b, true)]);
                }
                ExprKind::Binary(BinaryOp::Or, a, b) if !holds => {
                    open.extend([(a, false), (b, false)]);
                }
                ExprKind::HasField(base, offset) if holds => {
                    if let Some(field) = field_name(program, program.exprs[base].ty, offset) {
                        let base = crate::describe::expr(program, base);
                        known.insert([&base[..], b"$", field.as_bytes()].concat());
                    }
                }
                _ => {}
            }
        }
    }
}

fn field_name(program: &Program, record: crate::ids::TypeId, offset: u32) -> Option<&str> {
    let field = program.types.record(record)?.fields.get(offset as usize)?;
    Some(program.name(field.name))
}

fn unconverted(program: &Program, mut expr: ExprId) -> ExprId {
    while let ExprKind::Coerce(_, inner) = program.exprs[expr].kind {
        expr = inner;
    }
    expr
}
