//! Locals that are never read, and statements that are never reached.

use std::collections::HashSet;

use super::Lint;
use crate::ast::{ExprKind, LocalKind, StmtKind};
use crate::ids::{BodyId, LocalId, StmtId};
use crate::program::Program;
use crate::tools::finding::Finding;

pub(super) fn check(lint: &mut Lint<'_>) {
    for body in lint.bodies() {
        unused(lint, body);
        unreachable(lint, body);
    }
}

fn unused(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    let mut read: HashSet<(BodyId, LocalId)> = HashSet::new();
    let mut targets = HashSet::new();
    let mut frames = vec![body];
    super::statements(program, body, &mut |frame, stmt| match &program.stmts[stmt].kind {
        // An assignment statement does not read its target.
        StmtKind::Expr(expr) => {
            if let ExprKind::Assign(left, _) = program.exprs[*expr].kind
                && matches!(program.exprs[left].kind, ExprKind::Local(..))
            {
                targets.insert(left);
            }
        }
        StmtKind::When(when) => {
            frames.push(when.frame);
            read.extend(when.captures.iter().map(|capture| (frame, capture.outer)));
        }
        _ => {}
    });
    super::expressions(program, body, &mut |frame, expr| match &program.exprs[expr].kind {
        ExprKind::Local(local, _) if !targets.contains(&expr) => {
            read.insert((frame, *local));
        }
        ExprKind::Lambda(lambda) => {
            read.extend(lambda.captures.iter().map(|capture| (frame, capture.outer)));
        }
        _ => {}
    });
    for frame in frames {
        for local in program.bodies[frame].locals.ids() {
            let entry = &program.bodies[frame].locals[local];
            for attr in &entry.attrs {
                if let Some(expr) = attr.expr {
                    crate::walk::expressions(program, expr, &mut |expr| {
                        if let ExprKind::Local(local, _) = program.exprs[expr].kind {
                            read.insert((frame, local));
                        }
                    });
                }
            }
        }
        for local in program.bodies[frame].locals.ids() {
            let entry = &program.bodies[frame].locals[local];
            let name = lint.short(entry.name).to_owned();
            if matches!(entry.kind, LocalKind::Variable | LocalKind::Constant)
                && !name.starts_with('_')
                && !read.contains(&(frame, local))
                && !entry.attrs.iter().any(|attr| attr.kind == crate::types::AttrKind::IsUsed)
            {
                let message = format!("local `{name}` is never read");
                let hint = "remove it, or name it `_` where a name is required";
                lint.warn("unused-local", entry.span, message, hint);
            }
        }
    }
}

fn unreachable(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    let mut found = Vec::new();
    super::statements(program, body, &mut |_, stmt| {
        let StmtKind::List(stmts) = &program.stmts[stmt].kind else { return };
        let Some(at) = stmts.iter().position(|stmt| ends(program, *stmt, 0)) else { return };
        let next = stmts[at + 1..].iter().find(|stmt| {
            !matches!(
                program.stmts[**stmt].kind,
                StmtKind::Null | StmtKind::Break | StmtKind::Fallthrough
            )
        });
        if let Some(next) = next {
            found.push((program.stmts[stmts[at]].span, program.stmts[*next].span));
        }
    });
    for (end, next) in found {
        let finding =
            Finding::warning("unreachable-code", next, "statement is never reached".to_owned(), "");
        lint.push(finding.and(end, "control does not pass this"));
    }
}

/// Whether control never continues after this statement.
fn ends(program: &Program, stmt: StmtId, depth: usize) -> bool {
    if depth > 500 {
        return false;
    }
    match &program.stmts[stmt].kind {
        StmtKind::Return(_) | StmtKind::Break | StmtKind::Next | StmtKind::Fallthrough => true,
        StmtKind::List(stmts) => stmts.iter().any(|stmt| ends(program, *stmt, depth + 1)),
        StmtKind::If(_, yes, Some(no)) => {
            ends(program, *yes, depth + 1) && ends(program, *no, depth + 1)
        }
        StmtKind::Switch(switch) => {
            switch.cases.iter().any(|case| case.default)
                && switch.cases.iter().all(|case| returns(program, case.body))
        }
        _ => false,
    }
}

/// Whether the body of a case ends in `return` or falls through, and contains no `break` of the switch.
fn returns(program: &Program, body: StmtId) -> bool {
    let StmtKind::List(stmts) = &program.stmts[body].kind else { return false };
    let last = stmts.last().map(|stmt| &program.stmts[*stmt].kind);
    let mut breaks = false;
    let mut open = stmts.clone();
    while let Some(stmt) = open.pop() {
        match &program.stmts[stmt].kind {
            StmtKind::Break => breaks = true,
            StmtKind::For(_) | StmtKind::While(..) | StmtKind::Switch(_) => {}
            _ => crate::walk::substatements(program, stmt, &mut open),
        }
    }
    !breaks && matches!(last, Some(StmtKind::Return(_) | StmtKind::Fallthrough))
}
