//! Checks of finished bodies: valid positions of `break`, `next` and `fallthrough`.

use super::Parser;
use crate::ast::StmtKind;
use crate::diagnostics::Severity;
use crate::ids::{BodyId, StmtId};
use crate::report::Object;
use crate::types::Flavor;

/// The context of a statement.
#[derive(Clone, Copy)]
struct StatementContext {
    in_loop: bool,
    in_switch: bool,
    /// Whether the statement is in a case whose label declares a variable.
    in_cast: bool,
}

impl Parser<'_> {
    /// Queues the checks of a body, which run after everything is parsed.
    pub(super) fn validate(&mut self, body: BodyId, flavor: Flavor) {
        self.unchecked.push((body, flavor));
    }

    /// Reports misplaced `break` and `next` in all parsed bodies.
    pub(super) fn validate_all(&mut self) {
        for (body, flavor) in std::mem::take(&mut self.unchecked) {
            let stmt = self.program.bodies[body].stmt;
            self.validate_stmt(stmt, flavor);
        }
    }

    fn validate_stmt(&mut self, stmt: StmtId, flavor: Flavor) {
        let hook = flavor == Flavor::Hook;
        let mut open =
            vec![(stmt, StatementContext { in_loop: false, in_switch: false, in_cast: false })];
        while let Some((stmt, around)) = open.pop() {
            let mut inner = around;
            match &self.program.stmts[stmt].kind {
                StmtKind::Break if !around.in_loop && !around.in_switch && !hook => {
                    let message = "break statement used outside of for, while or switch statement and not within a hook.";
                    self.error_about(message, &Object::Stmt(stmt));
                }
                StmtKind::Next if !around.in_loop => {
                    self.error_about(
                        "next statement used outside of for or while statement.",
                        &Object::Stmt(stmt),
                    );
                }
                StmtKind::Fallthrough if around.in_cast => {
                    let span = self.program.stmts[stmt].span;
                    let text = "invalid 'fallthrough' in type-casting 'case' block";
                    self.program.report(Severity::Error, span, text);
                }
                StmtKind::For(_) | StmtKind::While(..) => inner.in_loop = true,
                StmtKind::Switch(switch) => {
                    inner.in_switch = true;
                    let cases = switch.cases.iter().rev().map(|case| {
                        let casts = case.types.iter().any(|(_, local)| local.is_some());
                        (case.body, StatementContext { in_cast: casts, ..inner })
                    });
                    open.extend(cases);
                    continue;
                }
                _ => {}
            }
            let mut inside = Vec::new();
            crate::walk::substatements(self.program, stmt, &mut inside);
            open.extend(inside.into_iter().rev().map(|stmt| (stmt, inner)));
        }
    }
}
