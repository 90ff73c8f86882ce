//! A collector of reference cycles: frees values that only refer to each other.
//!
//! Values are reference-counted, so a record that contains itself, directly or through others, is never freed by its count.
//! Therefore values of the types that can be part of a cycle are tracked from their creation. Once many are tracked, the references
//! between them are subtracted from their counts: values with a remaining count, and the values that they refer to, are in use. The
//! rest is garbage, and is emptied. References through other values (an opaque value, a key of several parts) count as external, so
//! such cycles are not freed.
//!
//! Few types can be part of a cycle: those whose parts lead back to them, also through `any` and through the captures
//! of lambdas. Values of other types are not tracked.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use hashbrown::HashMap;

use super::{FuncValue, Record, Table, Value, Vector};
use crate::ids::{Id, TypeId};
use crate::program::Program;
use crate::types::Type;

/// Number of tracked values at which the first collection runs.
const MIN_TRACKED: usize = 50_000;

thread_local! {
    /// A bit for each type: whether its values can be part of a cycle.
    static TYPES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// For record types, the fields whose values can be part of a cycle. Other fields need not be visited.
    static FIELDS: RefCell<HashMap<TypeId, Box<[usize]>>> = RefCell::default();
    /// Values that can be part of a cycle.
    static TRACKED: RefCell<Vec<CyclicValue>> = const { RefCell::new(Vec::new()) };
    /// Number of tracked values at which the next check runs.
    static LIMIT: Cell<usize> = const { Cell::new(MIN_TRACKED) };
    /// Number of values in use after the last collection.
    static IN_USE: Cell<usize> = const { Cell::new(0) };
}

/// A value that can be part of a cycle.
enum CyclicValue {
    Record(Weak<Record>),
    Table(Weak<Table>),
    Vector(Weak<Vector>),
    Func(Weak<FuncValue>),
}

impl CyclicValue {
    /// The value; `None` if it was freed.
    fn value(&self) -> Option<Value> {
        Some(match self {
            Self::Record(record) => Value::Record(record.upgrade()?),
            Self::Table(table) => Value::Table(table.upgrade()?),
            Self::Vector(vector) => Value::Vector(vector.upgrade()?),
            Self::Func(func) => Value::Func(func.upgrade()?),
        })
    }

    fn exists(&self) -> bool {
        let count = match self {
            Self::Record(record) => record.strong_count(),
            Self::Table(table) => table.strong_count(),
            Self::Vector(vector) => vector.strong_count(),
            Self::Func(func) => func.strong_count(),
        };
        count > 0
    }
}

fn is_cyclic(ty: TypeId) -> bool {
    let index = ty.index();
    TYPES.with_borrow(|types| {
        types.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    })
}

#[inline(never)]
fn track(value: CyclicValue) {
    TRACKED.with_borrow_mut(|tracked| tracked.push(value));
}

/// Tracks a new record.
#[inline]
pub(super) fn record(record: &Rc<Record>) {
    if is_cyclic(record.ty()) {
        track(CyclicValue::Record(Rc::downgrade(record)));
    }
}

/// Tracks a new table.
#[inline]
pub(super) fn table(table: &Rc<Table>) {
    if is_cyclic(table.ty()) {
        track(CyclicValue::Table(Rc::downgrade(table)));
    }
}

/// Tracks a new vector.
#[inline]
pub(super) fn vector(vector: &Rc<Vector>) {
    if is_cyclic(vector.ty()) {
        track(CyclicValue::Vector(Rc::downgrade(vector)));
    }
}

/// Tracks a new function with captures.
pub(super) fn func(func: &Rc<FuncValue>) {
    track(CyclicValue::Func(Rc::downgrade(func)));
}

/// Finds the types that can be part of a cycle, before a program runs.
pub(crate) fn find_cyclic_types(program: &Program) {
    let count = program.types.len();
    let edges = parts(program);
    let is_cyclic = leading_to_cycles(count, &edges);
    let mut types = vec![0_u64; count.div_ceil(64)];
    let mut fields: HashMap<TypeId, Box<[usize]>> = HashMap::new();
    for (index, _) in is_cyclic.iter().enumerate().filter(|(_, is_cyclic)| **is_cyclic) {
        types[index / 64] |= 1 << (index % 64);
        let Some(id) = u32::try_from(index).ok().map(TypeId) else { break };
        if let Type::Record(record) = program.types.get(id) {
            let types = record.fields.iter().map(|field| field.ty.index());
            let cyclic = types.enumerate().filter(|(_, ty)| is_cyclic[*ty]);
            fields.insert(id, cyclic.map(|(at, _)| at).collect());
        }
    }
    TYPES.set(types);
    FIELDS.set(fields);
}

/// Finds the types from which a path of parts leads to a cycle of types. A value of any of them can be part of a cycle of values,
/// since an `any` can contain it.
fn leading_to_cycles(count: usize, edges: &[(u32, u32)]) -> Vec<bool> {
    // For each type, the types that have it as a part, in consecutive ranges.
    let mut starts = vec![0_u32; count + 1];
    let mut parts_left = vec![0_u32; count];
    for (ty, part) in edges {
        starts[*part as usize] += 1;
        parts_left[*ty as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    // Each start is the end of its range, and moves back with each edge.
    let mut users = vec![0_u32; sum as usize];
    for (ty, part) in edges {
        let start = &mut starts[*part as usize];
        *start -= 1;
        users[*start as usize] = *ty;
    }
    // A type leads to no cycle if it has no parts, or if none of its parts lead to one.
    let mut leads = vec![true; count];
    let mut ended: Vec<usize> = (0..count).filter(|ty| parts_left[*ty] == 0).collect();
    while let Some(ty) = ended.pop() {
        leads[ty] = false;
        for user in &users[starts[ty] as usize..starts[ty + 1] as usize] {
            let left = &mut parts_left[*user as usize];
            *left -= 1;
            if *left == 0 {
                ended.push(*user as usize);
            }
        }
    }
    leads
}

/// Pairs of a type and the type of one of its parts. For `any` the only pair is with itself.
fn parts(program: &Program) -> Vec<(u32, u32)> {
    let number = |ty: TypeId| u32::try_from(ty.index()).unwrap_or(u32::MAX);
    let any = number(TypeId::ANY);
    let mut captured = Vec::new();
    for (_, function) in program.functions.iter() {
        let Some(ty) = program.types.func(function.ty).filter(|ty| !ty.captures.is_empty()) else {
            continue;
        };
        let body = function.bodies.first().map(|body| &program.bodies[*body]);
        for (_, local) in body.into_iter().flat_map(|body| body.locals.iter()) {
            if ty.captures.iter().any(|capture| capture.name == local.name) {
                captured.push(number(local.ty));
            }
        }
    }
    captured.sort_unstable();
    captured.dedup();
    let mut edges = vec![(any, any)];
    for index in 0..program.types.len() {
        let Some(id) = u32::try_from(index).ok().map(TypeId) else { break };
        let ty = number(id);
        match program.types.get(id) {
            Type::Record(record) => {
                edges.extend(record.fields.iter().map(|field| (ty, number(field.ty))));
            }
            Type::Table(table) if table.index.is_empty() => edges.push((ty, any)),
            Type::Table(table) => {
                edges
                    .extend(table.index.iter().chain(&table.value).map(|part| (ty, number(*part))));
            }
            Type::Vector(TypeId::VOID) => edges.push((ty, any)),
            Type::Vector(element) => edges.push((ty, number(*element))),
            Type::Func(_) => edges.extend(captured.iter().map(|part| (ty, *part))),
            Type::List(list) => edges.extend(list.types.iter().map(|part| (ty, number(*part)))),
            _ => (),
        }
    }
    edges
}

/// Whether enough values are tracked for a check.
#[inline]
pub(crate) fn is_due() -> bool {
    TRACKED.with_borrow(Vec::len) >= LIMIT.get()
}

/// Stops tracking freed values, and runs a collection if the others are twice as many as after the last one. This bounds
/// garbage by the number of values in use.
pub(crate) fn collect_if_needed() {
    let tracked = discard_freed();
    if tracked >= MIN_TRACKED.max(2 * IN_USE.get()) {
        collect();
    }
    let tracked = TRACKED.with_borrow(Vec::len);
    LIMIT.set(MIN_TRACKED.max(tracked + tracked / 2));
}

/// Stops tracking freed values. Returns the number of the others.
fn discard_freed() -> usize {
    TRACKED.with_borrow_mut(|tracked| {
        tracked.retain(CyclicValue::exists);
        tracked.len()
    })
}

/// Frees the tracked values that only garbage refers to. Returns their number.
pub(crate) fn collect() -> usize {
    discard_freed();
    let live: Vec<Value> =
        TRACKED.with_borrow(|tracked| tracked.iter().filter_map(CyclicValue::value).collect());
    let fields = FIELDS.take();
    // References between tracked values: by target address, their number and the index of the target in `live`.
    let mut targets: HashMap<usize, (usize, Option<usize>)> = HashMap::new();
    for value in &live {
        each_part(value, &fields, &mut |part| match address(part) {
            0 => (),
            address => targets.entry(address).or_default().0 += 1,
        });
    }
    // `live` itself refers to each value once.
    let mut external: Vec<usize> =
        live.iter().map(|value| count(value).saturating_sub(1)).collect();
    for (index, value) in live.iter().enumerate() {
        if let Some((references, target)) = targets.get_mut(&address(value)) {
            *target = Some(index);
            external[index] = external[index].saturating_sub(*references);
        }
    }
    let index_of = |value: &Value| match address(value) {
        0 => None,
        address => targets.get(&address)?.1,
    };
    let mut in_use: Vec<bool> = external.iter().map(|count| *count > 0).collect();
    let mut new = Vec::new();
    if in_use.contains(&false) {
        new.extend((0..live.len()).filter(|index| in_use[*index]));
    }
    while let Some(index) = new.pop() {
        each_part(&live[index], &fields, &mut |part| {
            if let Some(index) = index_of(part)
                && !std::mem::replace(&mut in_use[index], true)
            {
                new.push(index);
            }
        });
    }
    let garbage = live.iter().zip(&in_use).filter(|(_, in_use)| !**in_use);
    FIELDS.set(fields);
    // `live` keeps the values alive until all are empty, so that drops do not nest.
    let freed = garbage.map(|(value, _)| empty(value)).count();
    IN_USE.set(live.len() - freed);
    drop(live);
    freed
}

/// The address of a record, container or function; 0 for other values.
fn address(value: &Value) -> usize {
    match value {
        Value::Record(record) => Rc::as_ptr(record).addr(),
        Value::Table(table) => Rc::as_ptr(table).addr(),
        Value::Vector(vector) => Rc::as_ptr(vector).addr(),
        Value::Func(func) => Rc::as_ptr(func).addr(),
        _ => 0,
    }
}

/// The number of references to a value.
fn count(value: &Value) -> usize {
    match value {
        Value::Record(record) => Rc::strong_count(record),
        Value::Table(table) => Rc::strong_count(table),
        Value::Vector(vector) => Rc::strong_count(vector),
        Value::Func(func) => Rc::strong_count(func),
        _ => 0,
    }
}

/// Calls `f` with each part of a value that can be part of a cycle. References that it omits count as external, and keep their
/// targets alive.
fn each_part(value: &Value, fields: &HashMap<TypeId, Box<[usize]>>, f: &mut dyn FnMut(&Value)) {
    match value {
        Value::Record(record) => {
            let stored = record.stored();
            match fields.get(&record.ty()) {
                Some(fields) => fields.iter().filter_map(|at| stored.get(*at)).for_each(f),
                None => stored.iter().for_each(f),
            }
        }
        Value::Table(table) => table.each_part(f),
        Value::Vector(vector) => vector.items().iter().for_each(f),
        Value::Func(func) => func.captures.borrow().iter().for_each(f),
        _ => (),
    }
}

/// Removes all parts of a value.
fn empty(value: &Value) {
    match value {
        Value::Record(record) => drop(record.take()),
        Value::Table(table) => table.clear(),
        Value::Vector(vector) => drop(vector.take()),
        Value::Func(func) => drop(func.captures.take()),
        _ => (),
    }
}

/// Frees cycles when it is dropped: the last field of an owner of values.
#[derive(Debug, Default)]
pub(crate) struct CollectOnDrop;

impl Drop for CollectOnDrop {
    fn drop(&mut self) {
        collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::parse::{Input, Parser};
    use crate::vm::Machine;

    /// Marks every type that a test uses as possible part of a cycle.
    fn all_types() {
        FIELDS.take();
        TYPES.with_borrow_mut(|types| *types = vec![u64::MAX; 4]);
    }

    fn record_of(fields: Vec<Value>) -> Rc<Record> {
        Record::new(TypeId(70), fields)
    }

    #[test]
    fn garbage_is_bounded_and_used_values_stay() {
        all_types();
        collect();
        let held: Vec<_> = (0..60_000).map(|_| record_of(vec![Value::Count(7)])).collect();
        let mut peak = 0;
        for _ in 0..1_000_000 {
            // A vector that contains itself, and a record that is freed at once.
            let vector = Vector::new(TypeId(71), Vec::new());
            vector.items_mut().push(Value::Vector(Rc::clone(&vector)));
            drop(record_of(Vec::new()));
            if is_due() {
                collect_if_needed();
            }
            peak = peak.max(TRACKED.with_borrow(Vec::len));
        }
        assert!(peak < 3 * 2 * held.len(), "{peak}");
        assert!(held.iter().all(|record| record.get(0).count() == 7));
        drop(held);
        collect();
        assert_eq!(
            TRACKED.with_borrow_mut(|tracked| {
                tracked.retain(CyclicValue::exists);
                tracked.len()
            }),
            0
        );
    }

    #[test]
    fn exactly_the_unreachable_values_are_freed() {
        for n in [10, 1_000, 100_000] {
            all_types();
            collect();
            let held = record_of(vec![Value::Unset]);
            for _ in 0..n {
                // A record and a vector of each other, and a record that the vector alone refers to.
                let vector = Vector::new(TypeId(71), vec![Value::Record(record_of(Vec::new()))]);
                let record = record_of(vec![
                    Value::Vector(Rc::clone(&vector)),
                    Value::Record(Rc::clone(&held)),
                ]);
                vector.items_mut().push(Value::Record(record));
            }
            // The held record refers to itself through a table: it stays.
            let table = Table::new(TypeId(72), true, None);
            table.put(&[Value::Count(1)], Value::Record(Rc::clone(&held)), 0.0, TypeId(72));
            held.set(0, Value::Table(Rc::clone(&table)));
            drop(table);
            assert_eq!(Rc::strong_count(&held), n + 2);
            assert_eq!(collect(), 3 * n);
            assert_eq!(Rc::strong_count(&held), 2);
            let Value::Table(table) = held.get(0) else { panic!("the table was freed") };
            assert_eq!(table.len(), 1);
            drop(table);
            assert_eq!(collect(), 0);
            let weak = Rc::downgrade(&held);
            drop(held);
            assert_eq!(collect(), 2);
            assert!(weak.upgrade().is_none());
        }
    }

    /// Runs a program. Returns the number of values that are tracked at its end.
    fn tracked_after(code: &str) -> usize {
        TYPES.take();
        collect();
        let diagnostics = Diagnostics::new(Box::new(|diagnostic, _| {
            panic!("{}", String::from_utf8_lossy(&diagnostic.line()));
        }));
        let mut program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        let input = Input::Text { name: "test".to_owned(), code: code.as_bytes().to_vec() };
        let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
        assert!(parsed.is_ok());
        assert_eq!(machine.with(&mut program).run(), 0);
        let tracked = TRACKED.with_borrow(Vec::len);
        drop(machine);
        assert_eq!(collect(), 0, "the machine leaves none");
        tracked
    }

    #[test]
    fn programs_free_their_cycles() {
        // Each event creates a thousand values that refer to themselves, of all kinds.
        let code = |events: usize| {
            format!(
                r"
type Node: record {{ n: count; link: any &optional; }};
type Plain: record {{ n: count; v: vector of count; }};
global exit: function(code: int): any;
global kept: table[count] of Node;
event work(left: count)
    {{
    local i = 0;
    while ( ++i <= 250 )
        {{
        local node = Node($n=i);
        node$link = node;
        local v: vector of any;
        v[0] = v;
        local t: table[count] of any;
        t[1] = t;
        local other = Node($n=i);
        local f = function[other](): count {{ return other$n; }};
        other$link = f;
        local plain = Plain($n=i, $v=vector(i));
        }}
    if ( left % 100 == 1 )
        {{
        kept[left] = Node($n=left);
        kept[left]$link = kept;
        }}
    if ( left > 1 )
        event work(left - 1);
    else
        for ( k, value in kept )
            if ( value$n != k || ! value?$link )
                exit(3);
    }}
event zeek_init() {{ event work({events}); }}
"
            )
        };
        for events in [1, 10, 1_000] {
            let tracked = tracked_after(&code(events));
            assert!(tracked <= MIN_TRACKED + 2 * 1_250, "{events} events left {tracked}");
        }
        let plain = "type R: record { n: count; s: set[string]; };
            event zeek_init() { local v: vector of R; local t: table[count] of R; t[1] = R($n=1); v[0] = t[1]; }";
        // No type of this program can be part of a cycle.
        assert_eq!(tracked_after(plain), tracked_after(""));
    }

    #[test]
    fn long_chains_are_freed_without_recursion() {
        all_types();
        collect();
        let first = record_of(vec![Value::Unset]);
        let mut last = Rc::clone(&first);
        for _ in 0..1_000_000 {
            last = record_of(vec![Value::Record(last)]);
        }
        first.set(0, Value::Record(last));
        drop(first);
        assert_eq!(collect(), 1_000_001);
    }

    #[test]
    fn values_in_a_list_stay() {
        all_types();
        collect();
        let record = record_of(vec![Value::Unset]);
        record.set(0, Value::Record(Rc::clone(&record)));
        let list = Value::List(Rc::new(super::super::List {
            ty: TypeId(73),
            items: vec![Value::Record(record)],
        }));
        assert_eq!(collect(), 0);
        drop(list);
        assert_eq!(collect(), 1);
    }
}
