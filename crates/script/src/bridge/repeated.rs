//! Records that several events of one message carry, such as `dns_msg`: the record is created once.
//!
//! Handlers cannot see that they share a record if no script changes records of its type: scripts compare records by content.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::HashSet;
use std::rc::Rc;

use gannet_event::Reader;

use crate::ast::{ExprKind, Function, UnaryOp};
use crate::ids::TypeId;
use crate::program::Program;
use crate::types::Flavor;
use crate::value::Value;
use crate::vm::Vm;
use crate::walk;

/// The last record of a type.
#[derive(Debug, Default)]
pub(super) struct LastRecord {
    /// The packed bytes that it was created from. No packed value of a type is a prefix of another.
    bytes: Vec<u8>,
    value: Value,
}

impl LastRecord {
    /// Returns the record and advances the reader if the next bytes are those that the record was created from.
    pub(super) fn get_if_equal(&self, from: &mut Reader<'_>) -> Option<Value> {
        if !self.value.is_set() || !from.rest().starts_with(&self.bytes) {
            return None;
        }
        from.advance(self.bytes.len())?;
        Some(self.value.clone())
    }

    /// Stores a record and the bytes between `from` and `to` that it was created from.
    pub(super) fn set(&mut self, from: &Reader<'_>, to: &Reader<'_>, value: &Value) {
        let len = from.rest().len() - to.rest().len();
        self.bytes.clear();
        self.bytes.extend_from_slice(from.rest().get(..len).unwrap_or_default());
        self.value = value.clone();
    }
}

/// Which types of records are shared, and the last record of each.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// The record types that scripts change; `None` before the program was searched.
    changed: Option<HashSet<TypeId>>,
    lasts: HashMap<TypeId, Option<Rc<RefCell<LastRecord>>>>,
}

/// The last record of a type, if events share it: several handled events have a parameter of this type, its fields are
/// atomic, and no script changes one.
pub(super) fn shared(vm: &Vm<'_>, ty: TypeId) -> Option<Rc<RefCell<LastRecord>>> {
    // Under seeds, strings may be names that change from event to event. An event trace reveals shared records.
    if vm.m.state.traffic.names.is_some() || vm.m.event_trace.is_some() {
        return None;
    }
    let mut repeated = vm.m.state.traffic.repeated.borrow_mut();
    let Repeated { changed, lasts } = &mut *repeated;
    let changed = changed.get_or_insert_with(|| changed_types(vm.p));
    let is_shared = || !changed.contains(&ty) && is_atomic(vm, ty) && has_events(vm.p, ty);
    lasts.entry(ty).or_insert_with(|| is_shared().then(Rc::default)).clone()
}

/// Whether all fields of records of a type are atomic and so cannot be changed in place.
fn is_atomic(vm: &Vm<'_>, ty: TypeId) -> bool {
    vm.p.types.record(ty).is_some_and(|record| {
        record.fields.iter().all(|field| vm.p.types.tag(field.ty).is_atomic())
    })
}

/// Whether several events with handlers have a parameter of a type.
fn has_events(program: &Program, ty: TypeId) -> bool {
    let has = |function: &Function| {
        function.flavor == Flavor::Event
            && !function.bodies.is_empty()
            && program.types.params(function.ty).iter().any(|param| param.ty == ty)
    };
    program.functions.iter().filter(|(_, function)| has(function)).nth(1).is_some()
}

/// The types of records of which scripts assign or delete fields.
fn changed_types(program: &Program) -> HashSet<TypeId> {
    let mut changed = HashSet::new();
    for (_, expr) in program.exprs.iter() {
        let target = match &expr.kind {
            ExprKind::Assign(target, _)
            | ExprKind::AddTo(_, target, _)
            | ExprKind::RemoveFrom(target, _)
            | ExprKind::Add(target)
            | ExprKind::Delete(target)
            | ExprKind::Unary(UnaryOp::Increment | UnaryOp::Decrement, target) => *target,
            _ => continue,
        };
        walk::expressions(program, target, &mut |part| {
            if let ExprKind::Field(record, _) = program.exprs[part].kind {
                changed.insert(program.exprs[record].ty);
            }
        });
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::parse::{Input, Parser};
    use crate::vm::Machine;

    /// Whether events share records of the type `msg`.
    fn is_shared(code: &str) -> bool {
        let diagnostics = Diagnostics::default();
        let mut program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        let input = Input::Text { name: "test".to_owned(), code: code.as_bytes().to_vec() };
        let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
        assert!(parsed.is_ok(), "{code}");
        let vm = machine.with(&mut program);
        shared(&vm, vm.type_named("msg").unwrap()).is_some()
    }

    #[test]
    fn events_share_records_that_no_script_changes() {
        let types = "type msg: record { id: count; name: string &optional; };
            global e: event(m: msg); global f: event(m: msg);";
        let handlers = format!(
            "{types} event e(m: msg) {{ local l = m; print l$id; }} event f(m: msg) {{ print m; }}"
        );
        assert!(is_shared(&handlers));
        for change in [
            "m$id = 1",
            "++m$id",
            "--m$id",
            "m$id += 1",
            "m$id -= 1",
            "m$name += \"x\"",
            "delete m$name",
        ] {
            let code = format!("{handlers} function g(m: msg) {{ {change}; }}");
            assert!(!is_shared(&code), "{change}");
        }
        assert!(!is_shared(&format!("{types} event e(m: msg) {{ print m; }}")), "one event");
        let set = handlers.replacen("id: count", "id: count; ids: set[count] &optional", 1);
        assert!(!is_shared(&set), "scripts can add to a set");
    }

    #[test]
    fn the_last_record_is_reused_for_equal_bytes() {
        let bytes = [1, 2, 3, 4];
        let mut last = LastRecord::default();
        assert_eq!(last.get_if_equal(&mut Reader::new(&bytes)).map(|value| value.count()), None);
        let (begin, mut end) = (Reader::new(&bytes), Reader::new(&bytes));
        end.advance(3);
        last.set(&begin, &end, &Value::Count(7));
        for (bytes, found, rest) in [
            (vec![1, 2, 3, 9], Some(7), vec![9]),
            (vec![1, 2, 4, 4], None, vec![1, 2, 4, 4]),
            (vec![1, 2], None, vec![1, 2]),
        ] {
            let mut reader = Reader::new(&bytes);
            assert_eq!(last.get_if_equal(&mut reader).map(|value| value.count()), found);
            assert_eq!(reader.rest(), rest);
        }
    }
}
