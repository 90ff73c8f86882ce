//! Tracks the sources of the `conn_id`s that scripts pass to built-in functions. If each comes from a `connection` record, these
//! functions look up no other connections, and the bridge need not store them.

use std::collections::{HashMap, HashSet};

use super::stored_conns::CONN_LOOKUPS;
use crate::ast::{EventCall, ExprKind, StmtKind};
use crate::ids::{BodyId, ExprId, FuncId, Id as _, LocalId, TypeId};
use crate::program::Program;
use crate::symbols::GlobalKind;
use crate::types::Flavor;
use crate::vm::Vm;

/// Where a `conn_id` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A `connection` record, or its `id`.
    Record,
    /// A parameter of a function or an event, by its index.
    Param(FuncId, usize),
    /// Anything else.
    Other,
}

/// Types of records with a `conn_id`, and the functions and events that take one.
#[derive(Default)]
pub(super) struct ConnIds {
    /// Types of records whose `conn_id` is that of a stored connection: `connection`, and `Tunnel::EncapsulatingConn`, whose
    /// connection the analysis reports.
    records: Vec<TypeId>,
    conn_id: Option<TypeId>,
    lookups: HashSet<FuncId>,
    /// Events that the analysis or the run raises.
    raised: HashSet<FuncId>,
}

/// How `conn_id`s reach built-in functions.
#[derive(Default)]
pub(super) struct Flow {
    /// Sources of the `conn_id`s that built-in functions look up.
    looked_up: Vec<Source>,
    /// Sources of the arguments passed to each parameter of type `conn_id`.
    arguments: HashMap<(FuncId, usize), Vec<Source>>,
    /// Functions that scripts use as values: their arguments are unknown.
    values: HashSet<FuncId>,
}

/// Locals of a body.
#[derive(Default)]
pub(super) struct Locals {
    func: Option<FuncId>,
    params: Vec<u32>,
    /// The expression assigned to each local; `None` if several are.
    assigned: HashMap<LocalId, Option<ExprId>>,
}

/// Maximum number of assignments that are followed.
const MAX_ASSIGNMENTS: usize = 8;

impl ConnIds {
    /// `raised` are the events that the analysis or the run raises.
    pub(super) fn new(vm: &Vm<'_>, raised: HashSet<FuncId>) -> Self {
        let records = ["connection", "Tunnel::EncapsulatingConn"].map(|name| vm.type_named(name));
        Self {
            records: records.into_iter().flatten().collect(),
            conn_id: vm.type_named("conn_id"),
            lookups: CONN_LOOKUPS.iter().filter_map(|name| vm.function_named(name)).collect(),
            raised,
        }
    }

    /// The source of an expression that is a `conn_id` or a `connection`.
    fn source(&self, program: &Program, locals: &Locals, expr: ExprId) -> Source {
        let mut at = expr;
        for _ in 0..MAX_ASSIGNMENTS {
            if self.records.contains(&program.exprs[at].ty) {
                return Source::Record;
            }
            match program.exprs[at].kind {
                ExprKind::Field(of, _) if self.records.contains(&program.exprs[of].ty) => {
                    return Source::Record;
                }
                ExprKind::Local(local, _) => {
                    let param = locals.params.get(local.index()).copied();
                    match (locals.assigned.get(&local), param, locals.func) {
                        (None, Some(param), Some(func)) => {
                            return Source::Param(func, param as usize);
                        }
                        (Some(Some(value)), None, _) => at = *value,
                        _ => return Source::Other,
                    }
                }
                _ => return Source::Other,
            }
        }
        Source::Other
    }

    /// Adds the arguments of a call.
    pub(super) fn call(
        &self,
        program: &Program,
        locals: &Locals,
        (func, args): (FuncId, &[ExprId]),
        to: &mut Flow,
    ) {
        if self.lookups.contains(&func) {
            let first = args.first().map(|first| self.source(program, locals, *first));
            to.looked_up.push(first.unwrap_or(Source::Other));
        }
        for (index, arg) in args.iter().enumerate() {
            if Some(program.exprs[*arg].ty) == self.conn_id {
                let source = self.source(program, locals, *arg);
                to.arguments.entry((func, index)).or_default().push(source);
            }
        }
    }

    /// Adds the arguments of an event that a script raises.
    pub(super) fn event(
        &self,
        program: &Program,
        locals: &Locals,
        event: &EventCall,
        to: &mut Flow,
    ) {
        if let GlobalKind::Function(func) = program.globals[event.event].kind {
            self.call(program, locals, (func, &event.args), to);
        }
    }

    /// Whether built-in functions may look up connections that scripts have no record of.
    pub(super) fn looks_up_any(&self, program: &Program, flow: &Flow) -> bool {
        let mut seen = HashSet::new();
        let mut open = flow.looked_up.clone();
        while let Some(source) = open.pop() {
            match source {
                Source::Record => {}
                Source::Other => return true,
                Source::Param(func, index) => {
                    let is_called = program.functions[func].flavor != Flavor::Hook
                        && !self.raised.contains(&func)
                        && !flow.values.contains(&func);
                    if !is_called {
                        return true;
                    }
                    if seen.insert((func, index)) {
                        open.extend(flow.arguments.get(&(func, index)).into_iter().flatten());
                    }
                }
            }
        }
        self.lookups.iter().any(|func| flow.values.contains(func))
    }
}

impl Flow {
    /// Adds a function that a script uses as a value.
    pub(super) fn value(&mut self, func: FuncId) {
        self.values.insert(func);
    }

    /// Adds the sources found in another body.
    pub(super) fn append(&mut self, other: Self) {
        self.looked_up.extend(other.looked_up);
        for (param, sources) in other.arguments {
            self.arguments.entry(param).or_default().extend(sources);
        }
        self.values.extend(other.values);
    }
}

impl Locals {
    /// The locals of a body.
    pub(super) fn new(program: &Program, body: BodyId) -> Self {
        let of = &program.bodies[body];
        let (mut statements, mut open) = (vec![of.stmt], Vec::new());
        let mut assigned = HashMap::new();
        while let Some(statement) = statements.pop() {
            if let StmtKind::For(each) = &program.stmts[statement].kind {
                let all = each.vars.iter().copied().chain([each.value]);
                assigned.extend(all.flatten().map(|local| (local, None)));
            }
            crate::walk::substatements(program, statement, &mut statements);
            crate::walk::stmt_expressions(program, statement, &mut open);
        }
        while let Some(expr) = open.pop() {
            if let ExprKind::Assign(to, value) = program.exprs[expr].kind {
                let targets = match &program.exprs[to].kind {
                    ExprKind::List(all) => all.clone(),
                    _ => vec![to],
                };
                let is_single = targets.len() == 1;
                for target in targets {
                    if let ExprKind::Local(local, _) = program.exprs[target].kind {
                        let value = Some(value).filter(|_| is_single);
                        let known = assigned.entry(local).or_insert(value);
                        if *known != value {
                            *known = None;
                        }
                    }
                }
            }
            crate::walk::operands(program, expr, &mut open);
        }
        Self { func: of.func, params: of.params.clone(), assigned }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::parse::{Input, Parser};
    use crate::vm::Machine;

    const DECLARATIONS: &str = "
type conn_id: record { a: count; };
type connection: record { id: conn_id; };
global connection_exists: function(id: conn_id): bool;
global raised: event(c: connection);
global other: event(id: conn_id);
";

    /// Whether functions of a program may look up any connection.
    fn looks_up_any(code: &str) -> bool {
        let diagnostics = Diagnostics::default();
        let mut program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        let code = format!("{DECLARATIONS}{code}").into_bytes();
        let input = Input::Text { name: "test".to_owned(), code };
        assert!(Parser::new(&mut program, &mut machine, Vec::new()).run([input]).is_ok());
        let vm = machine.with(&mut program);
        let found = super::super::steering::reached(&vm, &|name| name == "raised");
        found.expect("all is known").looks_up_any
    }

    #[test]
    fn conn_ids_of_records_are_tracked_through_locals_calls_and_events() {
        for code in [
            "event raised(c: connection) { print connection_exists(c$id); }",
            "event raised(c: connection) { local i = c$id; print connection_exists(i); }",
            "function f(i: conn_id) { print connection_exists(i); }
             event raised(c: connection) { f(c$id); }",
            "event other(id: conn_id) { print connection_exists(id); event other(id); }
             event raised(c: connection) { local i = c$id; schedule 1sec { other(i) }; }",
            // It is not called.
            "function f(i: conn_id) { print connection_exists(i); }",
        ] {
            assert!(!looks_up_any(code), "{code}");
        }
    }

    #[test]
    fn other_conn_ids_may_name_any_connection() {
        for other in [
            "event raised(c: connection) { print connection_exists(conn_id($a=1)); }",
            "event raised(c: connection) { local i = c$id; i = conn_id($a=1);
             print connection_exists(i); }",
            "global t: table[count] of conn_id;
             event raised(c: connection) { print connection_exists(t[1]); }",
            "event raised(c: connection) { for ( i in set(c$id) ) print connection_exists(i); }",
            "function f(i: conn_id) { print connection_exists(i); }
             global t: table[count] of conn_id;
             event raised(c: connection) { f(c$id); f(t[1]); }",
            "function f(i: conn_id) { print connection_exists(i); }
             event raised(c: connection) { local g = f; g(c$id); }",
            "event raised(c: connection) { local g = connection_exists; print g(c$id); }",
            "hook h(i: conn_id) { print connection_exists(i); }
             event raised(c: connection) { hook h(c$id); }",
        ] {
            assert!(looks_up_any(other), "{other}");
        }
    }
}
