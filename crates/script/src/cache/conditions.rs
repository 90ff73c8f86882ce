//! Conditions of `@if` that depend on the command-line arguments.
//!
//! A script may read the command-line arguments while it is parsed, for example to declare something only for
//! captures. The condition is then stored with its result, and the cache is valid if the condition has the same
//! result again. This covers every influence of the arguments if the condition has no side effects:
//! [`changes_nothing`] accepts functions that assign only their own locals and call only functions that meet
//! the same requirement.

use std::collections::HashSet;

use super::is_repeatable;
use crate::ast::{ExprKind, StmtKind, UnaryOp};
use crate::ids::{ExprId, FuncId};
use crate::program::Program;
use crate::symbols::GlobalKind;
use crate::types::Flavor;
use crate::walk;

/// Whether evaluating an expression has no side effects.
pub(super) fn changes_nothing(program: &Program, expr: ExprId) -> bool {
    let mut seen = HashSet::new();
    is_quiet(program, expr, &mut seen)
}

fn is_quiet(program: &Program, expr: ExprId, seen: &mut HashSet<FuncId>) -> bool {
    let mut quiet = true;
    let mut called = Vec::new();
    walk::expressions(program, expr, &mut |expr| match &program.exprs[expr].kind {
        // Indexing a table may insert a missing entry, and `&default` functions may have side effects.
        ExprKind::Index(base, _) => {
            quiet &= program.types.element(program.exprs[*base].ty).is_some();
        }
        ExprKind::Assign(left, _)
        | ExprKind::AddTo(_, left, _)
        | ExprKind::RemoveFrom(left, _)
        | ExprKind::Unary(UnaryOp::Increment | UnaryOp::Decrement, left) => {
            quiet &= matches!(program.exprs[*left].kind, ExprKind::Local(..));
        }
        ExprKind::Call(call) => match function(program, call.callee) {
            Some(func) => called.push(func),
            None => quiet = false,
        },
        ExprKind::Error
        | ExprKind::Lambda(_)
        | ExprKind::Event(_)
        | ExprKind::Schedule(..)
        | ExprKind::Add(_)
        | ExprKind::Delete(_)
        | ExprKind::Record(_)
        | ExprKind::Coerce(..) => quiet = false,
        _ => {}
    });
    quiet && called.into_iter().all(|func| is_quiet_function(program, func, seen))
}

/// The function that `callee` refers to.
fn function(program: &Program, callee: ExprId) -> Option<FuncId> {
    let ExprKind::Global(global) = program.exprs[callee].kind else { return None };
    match program.globals[global].kind {
        GlobalKind::Function(func) => Some(func),
        _ => None,
    }
}

fn is_quiet_function(program: &Program, func: FuncId, seen: &mut HashSet<FuncId>) -> bool {
    let function = &program.functions[func];
    if function.flavor != Flavor::Function {
        return false;
    }
    let Some(body) = function.bodies.first() else {
        let name = program.name(function.name);
        return name == super::ARGUMENTS || is_repeatable(name);
    };
    if !seen.insert(func) {
        return true;
    }
    let mut open = vec![program.bodies[*body].stmt];
    let mut exprs = Vec::new();
    while let Some(stmt) = open.pop() {
        match &program.stmts[stmt].kind {
            StmtKind::Print(_)
            | StmtKind::Event(_)
            | StmtKind::When(_)
            | StmtKind::Assert(..)
            | StmtKind::SliceAssign(..) => return false,
            _ => {}
        }
        walk::substatements(program, stmt, &mut open);
        walk::stmt_expressions(program, stmt, &mut exprs);
    }
    exprs.into_iter().all(|expr| is_quiet(program, expr, seen))
}
