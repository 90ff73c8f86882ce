//! Warnings of `-u` about locals: uses before an assignment, and assignments that are never read.

use crate::ast::{ExprKind, LocalKind, StmtKind};
use crate::diagnostics::Severity;
use crate::ids::{BodyId, ExprId, IdSet, LocalId, StmtId};
use crate::program::Program;
use crate::report::Object;
use crate::types::{AttrKind, Type, find_attr};

/// A set of locals.
type LocalSet = IdSet<LocalId>;

/// Reports unset uses in all bodies; with `unread`, also assignments that are never read.
pub(crate) fn report(program: &mut Program, unread: bool) {
    let bodies: Vec<BodyId> = program.bodies.iter().map(|(id, _)| id).collect();
    for body in bodies {
        if program.bodies[body].func.is_none() {
            continue;
        }
        let mut forward = Forward::new(program, body);
        forward.stmt(program.bodies[body].stmt);
        let undefined = forward.found;
        let mut backward = Backward::new(program, body);
        backward.stmt(program.bodies[body].stmt, LocalSet::default());
        let unused = if unread { backward.found } else { Vec::new() };
        for (expr, certain) in undefined {
            let message = if certain {
                "used without definition"
            } else {
                "possibly used without definition"
            };
            program.report_about(Severity::Warning, message, &Object::Expr(expr), None);
        }
        for expr in unused {
            program.report_about(Severity::Warning, "assignment unused", &Object::Expr(expr), None);
        }
    }
}

/// The locals that an expression reads, in order of evaluation, including captures.
fn reads(program: &Program, expr: ExprId) -> Vec<(LocalId, ExprId)> {
    let mut found = Vec::new();
    crate::walk::expressions(program, expr, &mut |id| match &program.exprs[id].kind {
        ExprKind::Local(local, _) => found.push((*local, id)),
        ExprKind::Lambda(lambda) => {
            found.extend(lambda.captures.iter().map(|capture| (capture.outer, id)));
        }
        _ => {}
    });
    found
}

/// Target locals and value of an assignment statement.
fn assignment(program: &Program, expr: ExprId) -> Option<(Vec<LocalId>, ExprId)> {
    let ExprKind::Assign(left, right) = program.exprs[expr].kind else { return None };
    let one = |id: ExprId| match program.exprs[id].kind {
        ExprKind::Local(local, _) => Some(local),
        _ => None,
    };
    match &program.exprs[left].kind {
        ExprKind::Local(local, _) => Some((vec![*local], right)),
        ExprKind::List(parts) => {
            Some((parts.iter().map(|part| one(*part)).collect::<Option<_>>()?, right))
        }
        _ => None,
    }
}

/// Locals that are assigned on every path (`sure`) or on some path (`maybe`) to a point.
#[derive(Clone, Default)]
struct State {
    sure: LocalSet,
    maybe: LocalSet,
    /// Whether the point is unreachable.
    ends: bool,
}

impl State {
    fn assign(&mut self, local: LocalId) {
        self.sure.insert(local);
        self.maybe.insert(local);
    }

    fn join(self, other: Self) -> Self {
        match (self.ends, other.ends) {
            (true, _) => other,
            (_, true) => self,
            _ => Self {
                sure: self.sure.intersection(&other.sure).copied().collect(),
                maybe: self.maybe.union(&other.maybe).copied().collect(),
                ends: false,
            },
        }
    }
}

/// Forward data flow of a body.
struct Forward<'p> {
    program: &'p Program,
    /// Locals that start unset.
    unset: LocalSet,
    state: State,
    /// States at the `break`s of the innermost loop or `switch`.
    breaks: Vec<State>,
    found: Vec<(ExprId, bool)>,
}

impl<'p> Forward<'p> {
    fn new(program: &'p Program, body: BodyId) -> Self {
        let body = &program.bodies[body];
        let is_open = |local: &&LocalId| {
            body.locals.find(**local).is_some_and(|data| {
                let aggregate = matches!(
                    program.types.get(data.ty),
                    Type::Table(_) | Type::Vector(_) | Type::Record(_)
                );
                data.kind == LocalKind::Variable
                    && !aggregate
                    && find_attr(&data.attrs, AttrKind::IsAssigned).is_none()
            })
        };
        let unset = body.inits.iter().filter(is_open).copied().collect();
        Self { program, unset, state: State::default(), breaks: Vec::new(), found: Vec::new() }
    }

    fn read(&mut self, expr: ExprId) {
        for (local, at) in reads(self.program, expr) {
            if self.state.ends || !self.unset.contains(&local) || self.state.sure.contains(&local) {
                continue;
            }
            self.found.push((at, !self.state.maybe.contains(&local)));
            // Each local is reported once.
            self.unset.remove(&local);
        }
    }

    fn effect(&mut self, expr: ExprId) {
        match (assignment(self.program, expr), &self.program.exprs[expr].kind) {
            (Some((locals, right)), _) => {
                self.read(right);
                for local in locals {
                    self.state.assign(local);
                }
            }
            (None, ExprKind::Assign(left, right)) => {
                self.read(*right);
                self.read(*left);
            }
            _ => self.read(expr),
        }
    }

    fn stmt(&mut self, id: StmtId) {
        let program = self.program;
        match &program.stmts[id].kind {
            StmtKind::List(list) => list.iter().for_each(|stmt| self.stmt(*stmt)),
            StmtKind::Expr(expr) => self.effect(*expr),
            StmtKind::If(condition, yes, no) => {
                self.read(*condition);
                let before = self.state.clone();
                self.stmt(*yes);
                let after = std::mem::replace(&mut self.state, before);
                if let Some(no) = no {
                    self.stmt(*no);
                }
                self.state = std::mem::take(&mut self.state).join(after);
            }
            StmtKind::While(condition, body) => {
                self.read(*condition);
                self.walk(*body, &[]);
            }
            StmtKind::For(each) => {
                self.read(each.over);
                let vars: Vec<LocalId> =
                    each.vars.iter().chain([&each.value]).flatten().copied().collect();
                self.walk(each.body, &vars);
            }
            StmtKind::Switch(switch) => {
                self.read(switch.value);
                let before = self.state.clone();
                let outer = std::mem::take(&mut self.breaks);
                let mut has_default = false;
                self.state.ends = true;
                for case in &switch.cases {
                    has_default |= case.default;
                    let mut entry = before.clone();
                    for local in case.types.iter().filter_map(|(_, local)| *local) {
                        entry.assign(local);
                    }
                    // The previous case may fall through.
                    self.state = std::mem::take(&mut self.state).join(entry);
                    self.stmt(case.body);
                }
                let mut after = std::mem::take(&mut self.state);
                if !has_default {
                    after = after.join(before);
                }
                for state in std::mem::replace(&mut self.breaks, outer) {
                    after = after.join(state);
                }
                self.state = after;
            }
            StmtKind::Break => {
                self.breaks.push(self.state.clone());
                self.state.ends = true;
            }
            StmtKind::Next => self.state.ends = true,
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.read(*value);
                }
                self.state.ends = true;
            }
            StmtKind::When(when) => {
                if let Some((length, _)) = when.timeout {
                    self.read(length);
                }
                self.state.ends |= when.returns;
            }
            _ => {
                let mut exprs = Vec::new();
                crate::walk::stmt_expressions(program, id, &mut exprs);
                exprs.into_iter().for_each(|expr| self.read(expr));
            }
        }
    }

    /// A body that runs any number of times.
    fn walk(&mut self, body: StmtId, vars: &[LocalId]) {
        let outer = std::mem::take(&mut self.breaks);
        for local in vars {
            self.state.assign(*local);
        }
        let before = self.state.clone();
        self.stmt(body);
        let mut after = std::mem::take(&mut self.state).join(before);
        for state in std::mem::replace(&mut self.breaks, outer) {
            after = after.join(state);
        }
        self.state = after;
    }
}

/// Backward data flow of a body.
struct Backward<'p> {
    program: &'p Program,
    /// Locals whose assignments may be unread without a report.
    exempt: LocalSet,
    /// For each enclosing loop or `switch`: the locals that are live after it, and at the beginning of the next
    /// iteration.
    scopes: Vec<(LocalSet, LocalSet)>,
    /// Whether assignments are reported. Not before the reads of a loop are known.
    reports: bool,
    found: Vec<ExprId>,
}

impl<'p> Backward<'p> {
    fn new(program: &'p Program, body: BodyId) -> Self {
        let locals = &program.bodies[body].locals;
        let exempt = locals.iter().filter(|(_, local)| {
            local.kind == LocalKind::Capture || find_attr(&local.attrs, AttrKind::IsUsed).is_some()
        });
        let mut exempt: LocalSet = exempt.map(|(id, _)| id).collect();
        // Attributes of locals read other locals.
        for (_, local) in locals.iter() {
            for expr in local.attrs.iter().filter_map(|attr| attr.expr) {
                exempt.extend(reads(program, expr).into_iter().map(|(local, _)| local));
            }
        }
        Self { program, exempt, scopes: Vec::new(), reports: true, found: Vec::new() }
    }

    fn read(&self, expr: ExprId, live: &mut LocalSet) {
        live.extend(reads(self.program, expr).into_iter().map(|(local, _)| local));
    }

    fn effect(&mut self, expr: ExprId, mut live: LocalSet) -> LocalSet {
        let Some((locals, right)) = assignment(self.program, expr) else {
            self.read(expr, &mut live);
            return live;
        };
        // Calls and events have side effects.
        let acts = matches!(
            self.program.exprs[right].kind,
            ExprKind::Call(_) | ExprKind::Event(_) | ExprKind::Schedule(..)
        );
        if let [local] = locals.as_slice()
            && self.reports
            && !acts
            && !live.contains(local)
            && !self.exempt.contains(local)
        {
            self.found.push(expr);
        }
        for local in locals {
            live.remove(&local);
        }
        self.read(right, &mut live);
        live
    }

    /// The locals that are live before a statement, given those that are live after it.
    fn stmt(&mut self, id: StmtId, live: LocalSet) -> LocalSet {
        let program = self.program;
        match &program.stmts[id].kind {
            StmtKind::List(list) => {
                list.iter().rev().fold(live, |live, stmt| self.stmt(*stmt, live))
            }
            StmtKind::Expr(expr) => self.effect(*expr, live),
            StmtKind::If(condition, yes, no) => {
                let otherwise = match no {
                    Some(no) => self.stmt(*no, live.clone()),
                    None => live.clone(),
                };
                let mut all = self.stmt(*yes, live);
                all.extend(otherwise);
                self.read(*condition, &mut all);
                all
            }
            StmtKind::While(condition, body) => self.walk(*body, live, Some(*condition), &[]),
            StmtKind::For(each) => {
                let vars: Vec<LocalId> =
                    each.vars.iter().chain([&each.value]).flatten().copied().collect();
                let mut all = self.walk(each.body, live, None, &vars);
                self.read(each.over, &mut all);
                all
            }
            StmtKind::Switch(switch) => {
                self.scopes.push((live.clone(), live.clone()));
                let mut all = live.clone();
                // The statement may fall through to the next case.
                let mut next = live;
                for case in switch.cases.iter().rev() {
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.1.clone_from(&next);
                    }
                    next = self.stmt(case.body, next.clone());
                    all.extend(&next);
                }
                self.scopes.pop();
                self.read(switch.value, &mut all);
                all
            }
            StmtKind::Break => {
                self.scopes.last().map(|(after, _)| after.clone()).unwrap_or_default()
            }
            StmtKind::Next | StmtKind::Fallthrough => {
                self.scopes.last().map(|(_, next)| next.clone()).unwrap_or_default()
            }
            StmtKind::Return(value) => {
                let mut all = LocalSet::default();
                if let Some(value) = value {
                    self.read(*value, &mut all);
                }
                all
            }
            StmtKind::When(when) => {
                let mut all = if when.returns { LocalSet::default() } else { live };
                all.extend(when.captures.iter().map(|capture| capture.outer));
                if let Some((length, _)) = when.timeout {
                    self.read(length, &mut all);
                }
                all
            }
            _ => {
                let (mut all, mut exprs) = (live, Vec::new());
                crate::walk::stmt_expressions(program, id, &mut exprs);
                exprs.into_iter().for_each(|expr| self.read(expr, &mut all));
                all
            }
        }
    }

    /// A body that runs any number of times: the locals that an iteration reads are live after each iteration.
    fn walk(
        &mut self,
        body: StmtId,
        after: LocalSet,
        condition: Option<ExprId>,
        vars: &[LocalId],
    ) -> LocalSet {
        let reports = std::mem::replace(&mut self.reports, false);
        let mut head = after.clone();
        if let Some(condition) = condition {
            self.read(condition, &mut head);
        }
        loop {
            let before = head.len();
            self.scopes.push((after.clone(), head.clone()));
            let mut turn = self.stmt(body, head.clone());
            self.scopes.pop();
            for local in vars {
                turn.remove(local);
            }
            head.extend(turn);
            if head.len() == before {
                break;
            }
        }
        self.reports = reports;
        if reports {
            self.scopes.push((after, head.clone()));
            self.stmt(body, head.clone());
            self.scopes.pop();
        }
        head
    }
}
