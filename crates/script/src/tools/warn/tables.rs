//! Tables: lost changes, lost attributes, unbounded growth, and output in undefined order.

use std::collections::{HashMap, HashSet};

use super::{Level, Lint};
use crate::ast::{ExprKind, StmtKind};
use crate::ids::{BodyId, ExprId, GlobalId, StmtId, TypeId};
use crate::program::Program;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::tools::finding::Finding;
use crate::types::{AttrKind, Tag, Type};

/// Attributes that belong to a table value; a plain constructor has none of them.
const OF_VALUES: [AttrKind; 7] = [
    AttrKind::CreateExpire,
    AttrKind::ReadExpire,
    AttrKind::WriteExpire,
    AttrKind::ExpireFunc,
    AttrKind::Default,
    AttrKind::DefaultInsert,
    AttrKind::OnChange,
];

pub(super) fn check(lint: &mut Lint<'_>) {
    for body in lint.bodies() {
        default_changed(lint, body);
        attribute_lost(lint, body);
        if lint.level == Level::All {
            unordered_output(lint, body);
        }
    }
    unbounded(lint);
}

/// `t[k]$f = v` where `t` has `&default`: a missing entry is not inserted, so the change is lost.
fn default_changed(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    let mut changed: Vec<(GlobalId, ExprId)> = Vec::new();
    let mut inserted = HashSet::new();
    super::expressions(program, body, &mut |_, expr| {
        let target = match program.exprs[expr].kind {
            ExprKind::In(_, table) => {
                inserted.extend(lint.global(table));
                return;
            }
            ExprKind::Assign(left, _) => {
                if let ExprKind::Index(table, _) = program.exprs[left].kind {
                    inserted.extend(lint.global(table));
                }
                left
            }
            ExprKind::Add(target) | ExprKind::Delete(target) => target,
            _ => return,
        };
        let (ExprKind::Field(inner, _) | ExprKind::Index(inner, _)) = program.exprs[target].kind
        else {
            return;
        };
        if let ExprKind::Index(table, _) = program.exprs[inner].kind
            && program.types.tag(program.exprs[table].ty) == Tag::Table
            && let Some(global) = lint.global(table)
            && has(program, global, AttrKind::Default)
        {
            changed.push((global, inner));
        }
    });
    for (global, place) in changed {
        if inserted.contains(&global) {
            continue;
        }
        let name = program.name(program.globals[global].name);
        let message = format!("change of an entry of `{name}` is lost where the entry is missing");
        let hint =
            "`&default` does not insert: use `&default_insert`, or test with `in` and assign first";
        let finding = Finding::warning("default-changed", program.exprs[place].span, message, hint);
        lint.push(finding.and(program.globals[global].span, "has `&default`"));
    }
}

/// `t = table()`: the new value has none of the attributes that the declaration gave to the first one.
fn attribute_lost(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    let mut found = Vec::new();
    super::expressions(program, body, &mut |_, expr| {
        let ExprKind::Assign(left, right) = program.exprs[expr].kind else { return };
        let ExprKind::Global(global) = program.exprs[left].kind else { return };
        let lost: Vec<&str> = program.globals[global]
            .attrs
            .iter()
            .filter(|attr| OF_VALUES.contains(&attr.kind))
            .map(|attr| attr.kind.name())
            .collect();
        if !lost.is_empty() && is_plain_constructor(program, right) {
            found.push((program.exprs[expr].span, global, lost.join(", ")));
        }
    });
    for (span, global, lost) in found {
        let name = program.name(program.globals[global].name);
        let message =
            format!("the new value of `{name}` has not the attributes of its declaration: {lost}");
        let hint = format!("`delete {name};` (or `clear_table`) empties the table and keeps them");
        let finding = Finding::warning("attribute-lost", span, message, &hint);
        lint.push(finding.and(program.globals[global].span, "declared here"));
    }
}

fn is_plain_constructor(program: &Program, expr: ExprId) -> bool {
    match &program.exprs[expr].kind {
        ExprKind::Table(table) => table.attrs.is_empty(),
        ExprKind::Set(set) => set.attrs.is_empty(),
        ExprKind::Coerce(_, inner) => is_plain_constructor(program, *inner),
        _ => false,
    }
}

/// Global tables that are keyed by host or connection and whose entries are never removed.
fn unbounded(lint: &mut Lint<'_>) {
    let program = lint.program;
    let mut inserts: HashMap<GlobalId, Span> = HashMap::new();
    let mut removes = HashSet::new();
    for (body, entry) in program.bodies.iter() {
        if lint.frames.contains(&body) {
            continue;
        }
        let runs_often = entry.func.is_some_and(|func| {
            !matches!(program.name(program.functions[func].name), "zeek_init" | "zeek_done")
        });
        super::expressions(program, body, &mut |_, expr| {
            let span = program.exprs[expr].span;
            let indexed = |target: ExprId| match program.exprs[target].kind {
                ExprKind::Index(table, _) => lint.global(table),
                _ => None,
            };
            match program.exprs[expr].kind {
                ExprKind::Assign(left, _) => {
                    if let Some(global) = indexed(left).filter(|_| runs_often) {
                        inserts.entry(global).or_insert(span);
                    }
                    removes.extend(lint.global(left));
                }
                ExprKind::Add(target) => {
                    if let Some(global) = indexed(target).filter(|_| runs_often) {
                        inserts.entry(global).or_insert(span);
                    }
                }
                ExprKind::Delete(target) => {
                    removes.extend(indexed(target).or_else(|| lint.global(target)));
                }
                ExprKind::RemoveFrom(left, _) => removes.extend(lint.global(left)),
                // Another function may remove entries.
                ExprKind::Call(ref call) => {
                    removes.extend(call.args.iter().filter_map(|arg| lint.global(*arg)));
                }
                _ => {}
            }
        });
    }
    let mut tables: Vec<(GlobalId, Span)> = inserts.into_iter().collect();
    tables.sort_by_key(|(global, _)| *global);
    for (global, insert) in tables {
        let entry = &program.globals[global];
        let expires = [AttrKind::CreateExpire, AttrKind::ReadExpire, AttrKind::WriteExpire]
            .iter()
            .any(|kind| has(program, global, *kind));
        if removes.contains(&global)
            || expires
            || entry.kind != GlobalKind::Variable
            || !is_per_host(program, entry.ty)
        {
            continue;
        }
        let name = program.name(entry.name);
        let message = format!("`{name}` grows with the traffic: nothing removes entries");
        let hint = "add `&create_expire`, `&read_expire` or `&write_expire`, or delete entries";
        let finding = Finding::warning("unbounded-table", entry.span, message, hint);
        lint.push(finding.and(insert, "entries are inserted here"));
    }
}

/// Whether a table is keyed by host or connection: by addresses, strings such as uids, records such as
/// `conn_id`.
fn is_per_host(program: &Program, ty: TypeId) -> bool {
    match program.types.get(ty) {
        Type::Table(table) => table
            .index
            .iter()
            .any(|part| matches!(program.types.tag(*part), Tag::Addr | Tag::String | Tag::Record)),
        _ => false,
    }
}

/// Loops over tables and sets whose bodies write output in undefined order.
fn unordered_output(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    let mut found = Vec::new();
    super::statements(program, body, &mut |_, stmt| {
        let StmtKind::For(each) = &program.stmts[stmt].kind else { return };
        let ordered =
            lint.global(each.over).is_some_and(|global| has(program, global, AttrKind::Ordered));
        if program.types.tag(program.exprs[each.over].ty) == Tag::Table
            && !ordered
            && let Some(output) = output(program, each.body)
        {
            found.push((program.exprs[each.over].span, output));
        }
    });
    for (span, output) in found {
        let message = "the order of output depends on the order of a table, which is not defined";
        let hint = "collect the indices in a vector and `sort` it, or declare the table `&ordered`";
        let finding = Finding::warning("unordered-output", span, message.to_owned(), hint);
        lint.push(finding.and(output, "written here"));
    }
}

/// A statement within `stmt` that writes output.
fn output(program: &Program, stmt: StmtId) -> Option<Span> {
    let mut open = vec![stmt];
    while let Some(stmt) = open.pop() {
        let span = program.stmts[stmt].span;
        match &program.stmts[stmt].kind {
            StmtKind::Print(_) => return Some(span),
            StmtKind::Expr(expr) => {
                if let ExprKind::Call(call) = &program.exprs[*expr].kind
                    && let ExprKind::Global(callee) = program.exprs[call.callee].kind
                    && program.name(program.globals[callee].name) == "Log::write"
                {
                    return Some(span);
                }
            }
            _ => {}
        }
        crate::walk::substatements(program, stmt, &mut open);
    }
    None
}

fn has(program: &Program, global: GlobalId, kind: AttrKind) -> bool {
    program.globals[global].attrs.iter().any(|attr| attr.kind == kind)
}
