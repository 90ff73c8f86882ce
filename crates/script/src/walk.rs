//! AST traversal without recursion.

use crate::ast::{EventCall, ExprKind, StmtKind, UnaryOp};
use crate::ids::{ExprId, StmtId};
use crate::program::Program;

/// Calls `visit` for `expr` and all expressions in it, except bodies of lambdas.
pub fn expressions(program: &Program, expr: ExprId, visit: &mut dyn FnMut(ExprId)) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        visit(expr);
        let from = open.len();
        operands(program, expr, &mut open);
        open[from..].reverse();
    }
}

/// Adds the operands of `expr` to `to`, in order.
pub fn operands(program: &Program, expr: ExprId, to: &mut Vec<ExprId>) {
    match &program.exprs[expr].kind {
        ExprKind::Error
        | ExprKind::Literal(_)
        | ExprKind::TypeValue(_)
        | ExprKind::Blank
        | ExprKind::Local(..)
        | ExprKind::Global(_)
        | ExprKind::Lambda(_) => {}
        ExprKind::Unary(_, a)
        | ExprKind::Field(a, _)
        | ExprKind::HasField(a, _)
        | ExprKind::FieldAssign(_, a)
        | ExprKind::Add(a)
        | ExprKind::Delete(a)
        | ExprKind::Coerce(_, a)
        | ExprKind::Cast(a)
        | ExprKind::Is(a, _)
        | ExprKind::CanCast(a, _) => to.push(*a),
        ExprKind::Binary(_, a, b)
        | ExprKind::In(a, b)
        | ExprKind::Index(a, b)
        | ExprKind::Assign(a, b)
        | ExprKind::AddTo(_, a, b)
        | ExprKind::RemoveFrom(a, b) => to.extend([*a, *b]),
        ExprKind::Conditional(a, b, c) | ExprKind::Slice(a, b, c) => to.extend([*a, *b, *c]),
        ExprKind::Record(constructor) => {
            to.extend(constructor.fields.iter().map(|(_, value)| *value));
        }
        ExprKind::Table(constructor) => {
            for (key, value) in &constructor.entries {
                to.extend(key);
                to.push(*value);
            }
        }
        ExprKind::Set(constructor) => to.extend(constructor.entries.iter().flatten()),
        ExprKind::Vector(elements) | ExprKind::List(elements) => to.extend(elements),
        ExprKind::Call(call) => {
            to.push(call.callee);
            to.extend(&call.args);
        }
        ExprKind::Event(event) => to.extend(&event.args),
        ExprKind::Schedule(when, event) => {
            to.push(*when);
            to.extend(&event.args);
        }
    }
}

/// The record whose field an expression changes, if any.
pub fn changed_record(program: &Program, expr: ExprId) -> Option<ExprId> {
    let to = match &program.exprs[expr].kind {
        ExprKind::Assign(to, _)
        | ExprKind::AddTo(_, to, _)
        | ExprKind::RemoveFrom(to, _)
        | ExprKind::Delete(to)
        | ExprKind::Unary(UnaryOp::Increment | UnaryOp::Decrement, to) => *to,
        _ => return None,
    };
    match program.exprs[to].kind {
        ExprKind::Field(of, _) => Some(of),
        _ => None,
    }
}

/// Adds the statements in `stmt` to `to`, in order.
pub fn substatements(program: &Program, stmt: StmtId, to: &mut Vec<StmtId>) {
    match &program.stmts[stmt].kind {
        StmtKind::List(stmts) => to.extend(stmts),
        StmtKind::If(_, yes, no) => {
            to.push(*yes);
            to.extend(no);
        }
        StmtKind::While(_, body) => to.push(*body),
        StmtKind::For(each) => to.push(each.body),
        StmtKind::Switch(switch) => to.extend(switch.cases.iter().map(|case| case.body)),
        StmtKind::When(when) => {
            to.push(when.body);
            to.extend(when.timeout.iter().map(|(_, body)| *body));
        }
        _ => {}
    }
}

/// Adds the immediate expressions of `stmt` to `to`, in order.
pub fn stmt_expressions(program: &Program, stmt: StmtId, to: &mut Vec<ExprId>) {
    let event = |event: &EventCall, to: &mut Vec<ExprId>| to.extend(&event.args);
    match &program.stmts[stmt].kind {
        StmtKind::Expr(expr) | StmtKind::If(expr, ..) | StmtKind::While(expr, _) => to.push(*expr),
        StmtKind::Print(values) => to.extend(values),
        StmtKind::For(each) => to.push(each.over),
        StmtKind::Switch(switch) => {
            to.push(switch.value);
            to.extend(switch.cases.iter().flat_map(|case| &case.values));
        }
        StmtKind::Return(value) => to.extend(value),
        StmtKind::Event(call) => event(call, to),
        StmtKind::When(when) => {
            to.push(when.condition);
            to.extend(when.timeout.iter().map(|(length, _)| *length));
        }
        StmtKind::Assert(condition, message) => {
            to.push(*condition);
            to.extend(message);
        }
        StmtKind::SliceAssign(left, right) => to.extend([*left, *right]),
        StmtKind::Null
        | StmtKind::List(_)
        | StmtKind::Break
        | StmtKind::Next
        | StmtKind::Fallthrough => {}
    }
}
