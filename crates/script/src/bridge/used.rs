//! Which parts of an event's arguments its handlers read: the other parts need not be converted.

use hashbrown::{HashMap, HashSet};

use crate::ast::{BinaryOp, Body, ExprKind, StmtKind, UnaryOp};
use crate::ids::{BodyId, ExprId, FuncId, Id as _, StmtId, TypeId};
use crate::program::Program;
use crate::walk;

/// The parts of a value that are read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UsedParts {
    /// Nothing.
    Nothing,
    /// Only these fields of a record, by offset; one with an empty map is only tested for presence.
    Fields(HashMap<u32, UsedParts>),
    /// All of it, or unknown.
    All,
}

impl UsedParts {
    /// The map of fields, empty at first; `None` if all parts are read.
    fn fields(&mut self) -> Option<&mut HashMap<u32, Self>> {
        if *self == Self::Nothing {
            *self = Self::Fields(HashMap::new());
        }
        match self {
            Self::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    /// Records that the field at the end of a path is read, or only tested for presence.
    fn add(&mut self, path: &[u32], is_all: bool) {
        match path {
            [] if is_all => *self = Self::All,
            // An empty map: the field itself must exist.
            [] => drop(self.fields()),
            [first, rest @ ..] => {
                if let Some(fields) = self.fields() {
                    fields.entry(*first).or_insert(Self::Nothing).add(rest, is_all);
                }
            }
        }
    }
}

/// How the handlers of an event use its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParameterUses {
    /// The parts of each parameter that they read.
    pub(super) read: Vec<UsedParts>,
    /// Types of records whose fields they change.
    pub(super) changed: Vec<TypeId>,
}

/// A record type whose fields at these offsets are known to be unset.
pub(super) struct FreshRecords {
    pub(super) ty: TypeId,
    pub(super) unset: HashSet<u32>,
}

impl FreshRecords {
    /// Returns the `?$` expression that makes a condition false because its field is unset.
    fn false_condition(&self, program: &Program, body: &Body, condition: ExprId) -> Option<ExprId> {
        let mut at = condition;
        loop {
            match &program.exprs[at].kind {
                ExprKind::Binary(BinaryOp::And, first, _) => at = *first,
                ExprKind::HasField(of, offset) => {
                    let ExprKind::Local(local, _) = program.exprs[*of].kind else { return None };
                    let is_it = program.exprs[*of].ty == self.ty
                        && self.unset.contains(offset)
                        && body.params.get(local.index()).is_some();
                    return is_it.then_some(at);
                }
                _ => return None,
            }
        }
    }

    /// Whether a statement returns because a field is unset.
    fn returns_early(&self, program: &Program, body: &Body, statement: StmtId) -> bool {
        let StmtKind::If(condition, then, None) = &program.stmts[statement].kind else {
            return false;
        };
        let ExprKind::Unary(UnaryOp::Not, denied) = program.exprs[*condition].kind else {
            return false;
        };
        let last = match &program.stmts[*then].kind {
            StmtKind::List(all) => all.last().copied(),
            _ => Some(*then),
        };
        let returns = |last: StmtId| matches!(program.stmts[last].kind, StmtKind::Return(_));
        matches!(program.exprs[denied].kind, ExprKind::HasField(..))
            && self.false_condition(program, body, denied).is_some()
            && last.is_some_and(returns)
    }
}

/// The parts of each parameter that the handlers of an event read.
pub(super) fn parameter_reads(program: &Program, event: FuncId, params: usize) -> Vec<UsedParts> {
    uses(program, event, params, None).read
}

/// How the handlers of an event use its parameters, if records of the type in `fresh` have unset fields.
pub(super) fn uses(
    program: &Program,
    event: FuncId,
    params: usize,
    fresh: Option<&FreshRecords>,
) -> ParameterUses {
    let mut uses = ParameterUses { read: vec![UsedParts::Nothing; params], changed: Vec::new() };
    for body in &program.functions[event].bodies {
        if !add_body(program, *body, &mut uses, fresh) {
            uses.read = vec![UsedParts::All; params];
            break;
        }
    }
    uses
}

/// Adds the uses in a body. Returns false if they cannot be determined.
fn add_body(
    program: &Program,
    body: BodyId,
    uses: &mut ParameterUses,
    fresh: Option<&FreshRecords>,
) -> bool {
    let body = &program.bodies[body];
    if body.locals.iter().any(|(_, local)| !local.attrs.is_empty()) {
        return false;
    }
    let mut statements = vec![body.stmt];
    let mut open: Vec<ExprId> = Vec::new();
    while let Some(statement) = statements.pop() {
        match &program.stmts[statement].kind {
            StmtKind::When(_) => return false,
            StmtKind::If(condition, _, otherwise) => {
                if let Some(read) =
                    fresh.and_then(|fresh| fresh.false_condition(program, body, *condition))
                {
                    open.push(read);
                    statements.extend(otherwise);
                    continue;
                }
            }
            StmtKind::List(all) => {
                let ends = |statement: &StmtId| {
                    fresh.is_some_and(|fresh| fresh.returns_early(program, body, *statement))
                };
                let run = all.iter().position(ends).map_or(all.len(), |last| last + 1);
                statements.extend(all.iter().take(run));
                continue;
            }
            _ => {}
        }
        walk::substatements(program, statement, &mut statements);
        walk::stmt_expressions(program, statement, &mut open);
    }
    while let Some(expr) = open.pop() {
        uses.changed.extend(walk::changed_record(program, expr).map(|of| program.exprs[of].ty));
        match &program.exprs[expr].kind {
            // Lambdas have captures, and attributes have expressions that are no operands.
            ExprKind::Lambda(_) => return false,
            ExprKind::Table(table) if !table.attrs.is_empty() => return false,
            ExprKind::Set(set) if !set.attrs.is_empty() => return false,
            ExprKind::Local(..) | ExprKind::Field(..) | ExprKind::HasField(..) => {
                match path(program, expr) {
                    Some((local, path, is_all)) => {
                        let param = body.params.get(local).map(|param| *param as usize);
                        if let Some(used) = param.and_then(|param| uses.read.get_mut(param)) {
                            used.add(&path, is_all);
                        }
                    }
                    None => walk::operands(program, expr, &mut open),
                }
            }
            _ => walk::operands(program, expr, &mut open),
        }
    }
    true
}

/// The local at the root of a field expression, the offsets of the fields down to it, and whether it is read, not only tested for presence.
fn path(program: &Program, expr: ExprId) -> Option<(usize, Vec<u32>, bool)> {
    let (mut at, mut path) = (expr, Vec::new());
    let is_all = !matches!(program.exprs[expr].kind, ExprKind::HasField(..));
    loop {
        match &program.exprs[at].kind {
            ExprKind::Local(local, _) => {
                path.reverse();
                return Some((local.index(), path, is_all));
            }
            ExprKind::Field(of, offset) => {
                path.push(*offset);
                at = *of;
            }
            ExprKind::HasField(of, offset) if at == expr => {
                path.push(*offset);
                at = *of;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::parse::{Input, Parser};
    use crate::vm::Machine;

    const TYPES: &str = "
type Inner: record { a: count; b: count; };
type Outer: record { i: Inner &optional; n: count; };
global e: event(o: Outer, s: string);
global f: function(o: Inner): count;
";

    /// The parts of the parameters of `e` that handlers read.
    fn used(handlers: &str) -> Vec<UsedParts> {
        with_fresh(handlers, false).read
    }

    /// How they use the parameters; with `is_fresh`, `i` of an `Outer` is unset.
    fn with_fresh(handlers: &str, is_fresh: bool) -> ParameterUses {
        let diagnostics = Diagnostics::default();
        let mut program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        let code = format!("{TYPES}{handlers}").into_bytes();
        let input = Input::Text { name: "test".to_owned(), code };
        let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
        assert!(parsed.is_ok(), "{handlers}");
        let vm = machine.with(&mut program);
        let (event, ty) = (vm.function_named("e").unwrap(), vm.type_named("Outer").unwrap());
        let fresh = FreshRecords { ty, unset: HashSet::from_iter([0]) };
        uses(&program, event, 2, is_fresh.then_some(&fresh))
    }

    fn fields(fields: impl IntoIterator<Item = (u32, UsedParts)>) -> UsedParts {
        UsedParts::Fields(fields.into_iter().collect())
    }

    #[test]
    fn fields_that_are_read_are_found() {
        let all = used("event e(o: Outer, s: string) { print o, s; }");
        assert_eq!(all, [UsedParts::All, UsedParts::All]);
        assert_eq!(
            used("event e(o: Outer, s: string) { }"),
            [UsedParts::Nothing, UsedParts::Nothing]
        );
        let some = used("event e(o: Outer, s: string) { if ( o?$i ) print o$i$b; }");
        assert_eq!(some, [fields([(0, fields([(1, UsedParts::All)]))]), UsedParts::Nothing]);
        // Reads of several handlers are united; a handler may have fewer parameters.
        let both = used(
            "global e: event(s: string);
             event e(o: Outer, s: string) { print o$n; }
             event e(s: string) { print |s|; }",
        );
        assert_eq!(both, [fields([(1, UsedParts::All)]), UsedParts::All]);
        let is_set = used("event e(o: Outer, s: string) { print o?$i; }");
        assert_eq!(is_set, [fields([(0, fields([]))]), UsedParts::Nothing]);
    }

    #[test]
    fn code_guarded_by_an_unset_field_is_ignored() {
        for handler in [
            "event e(o: Outer, s: string) { if ( o?$i ) print o, s; }",
            "event e(o: Outer, s: string) { if ( o?$i && o$i$a > 3 ) { print o, s; } }",
            "event e(o: Outer, s: string) { if ( ! o?$i ) return; print o, s; }",
            "event e(o: Outer, s: string) { if ( ! o?$i ) { return; } while ( T ) print o, s; }",
        ] {
            let is_asked = [fields([(0, fields([]))]), UsedParts::Nothing];
            assert_eq!(with_fresh(handler, true).read, is_asked, "{handler}");
            assert_eq!(
                with_fresh(handler, false).read,
                [UsedParts::All, UsedParts::All],
                "{handler}"
            );
        }
        for handler in [
            "event e(o: Outer, s: string) { if ( ! o?$i ) print o, s; }",
            "event e(o: Outer, s: string) { if ( o?$i ) return; print o, s; }",
            "event e(o: Outer, s: string) { if ( o?$i ) print 1; else print o, s; }",
            "event e(o: Outer, s: string) { if ( o?$i || |s| > 3 ) print o, s; }",
            "event e(o: Outer, s: string) { if ( ! o?$i ) print 1; print o, s; }",
            "event e(o: Outer, s: string) { local p: Outer; if ( p?$i ) print o, s; }",
        ] {
            assert_eq!(
                with_fresh(handler, true).read,
                [UsedParts::All, UsedParts::All],
                "{handler}"
            );
        }
        // A record that a handler changes is in `changed`.
        let changes = with_fresh("event e(o: Outer, s: string) { o$n = 3; }", true).changed;
        assert_eq!(changes.len(), 1);
    }

    #[test]
    fn escaping_values_are_used_entirely() {
        for handler in [
            "event e(o: Outer, s: string) { local l = o; print l$n; }",
            "event e(o: Outer, s: string) { o$n = 3; print o; }",
            "event e(o: Outer, s: string) { schedule 1sec { e(o, s) }; }",
            "event e(o: Outer, s: string) { print (function[o](): count { return o$n; })(); }",
            "event e(o: Outer, s: string) { for ( c in s ) { if ( c == \"x\" ) print vector(o); } }",
            "event e(o: Outer, s: string) { local t: table[count] of count &default=o$n; print t[1]; }",
            "event e(o: Outer, s: string) { switch ( s ) { case \"x\": print o; break; } }",
        ] {
            assert_eq!(used(handler)[0], UsedParts::All, "{handler}");
        }
        let inner = used("event e(o: Outer, s: string) { print f(o$i); }");
        assert_eq!(inner[0], fields([(0, UsedParts::All)]));
        // A field that is changed counts as used.
        let changed = used("event e(o: Outer, s: string) { o$i$a = o$n; }");
        assert_eq!(changed[0], fields([(0, fields([(0, UsedParts::All)])), (1, UsedParts::All)]));
    }
}
