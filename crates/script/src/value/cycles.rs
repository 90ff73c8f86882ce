//! Values that only refer to each other are freed.
//!
//! Values are counted references: a record that contains itself, directly or through others, is never freed by that. So
//! values of the types that can be part of a cycle are noted when they are made. Once many are noted, each reference
//! that they have from each other is subtracted from its count: what has others, and what these values refer to, is in use. The
//! rest is garbage, and is emptied. References through other kinds of values (an opaque value, a key of several parts)
//! count as use from outside: such a cycle stays.
//!
//! Few types can: those whose parts lead back to them, also through `any` and through variables that a lambda
//! captures. Values of all others are not noted.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use hashbrown::HashMap;

use super::{FuncValue, Record, Table, Value, Vector};
use crate::ids::{Id, TypeId};
use crate::program::Program;
use crate::types::Type;

/// How many values are noted before the first search.
const AT_LEAST: usize = 50_000;

thread_local! {
    /// Which types can be part of a cycle, a bit each.
    static TYPES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// Of records of these types, the fields that can: the others need no look.
    static FIELDS: RefCell<HashMap<TypeId, Box<[usize]>>> = RefCell::default();
    static NOTED: RefCell<Vec<CyclicValue>> = const { RefCell::new(Vec::new()) };
    /// How many noted values the next look at them waits for.
    static LIMIT: Cell<usize> = const { Cell::new(AT_LEAST) };
    /// How many values were in use after the last search.
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
    /// The value, if it exists still.
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
fn note(value: CyclicValue) {
    NOTED.with_borrow_mut(|noted| noted.push(value));
}

/// A record was made.
#[inline]
pub(super) fn record(record: &Rc<Record>) {
    if is_cyclic(record.ty()) {
        note(CyclicValue::Record(Rc::downgrade(record)));
    }
}

/// A table was made.
#[inline]
pub(super) fn table(table: &Rc<Table>) {
    if is_cyclic(table.ty()) {
        note(CyclicValue::Table(Rc::downgrade(table)));
    }
}

/// A vector was made.
#[inline]
pub(super) fn vector(vector: &Rc<Vector>) {
    if is_cyclic(vector.ty()) {
        note(CyclicValue::Vector(Rc::downgrade(vector)));
    }
}

/// A function with captures was made.
pub(super) fn func(func: &Rc<FuncValue>) {
    note(CyclicValue::Func(Rc::downgrade(func)));
}

/// Finds the types that can be part of a cycle, before a program runs.
pub(crate) fn learn_types(program: &Program) {
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

/// Which types lead to a cycle, part by part. Each of these can be part of one: `any` can hold it, and leads to itself.
fn leading_to_cycles(count: usize, edges: &[(u32, u32)]) -> Vec<bool> {
    // The types that have each type as a part, one type after the other.
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
    // Each start is the end of its type, and moves back with each edge.
    let mut users = vec![0_u32; sum as usize];
    for (ty, part) in edges {
        let start = &mut starts[*part as usize];
        *start -= 1;
        users[*start as usize] = *ty;
    }
    // A type without parts leads nowhere, and neither does one whose parts lead nowhere.
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

/// Each type with the type of each of its parts. Those of `any` are left out, as it leads to itself.
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

/// Whether enough values are noted for a look at them to pay.
#[inline]
pub(crate) fn is_due() -> bool {
    NOTED.with_borrow(Vec::len) >= LIMIT.get()
}

/// Forgets the noted values that were freed. Where those that exist are twice as many as after the last search, frees
/// the ones that only noted values refer to: so garbage is at most as much as what is in use.
pub(crate) fn look() {
    let noted = forget_freed();
    if noted >= AT_LEAST.max(2 * IN_USE.get()) {
        collect();
    }
    let noted = NOTED.with_borrow(Vec::len);
    LIMIT.set(AT_LEAST.max(noted + noted / 2));
}

/// Forgets the noted values that were freed. Returns how many exist.
fn forget_freed() -> usize {
    NOTED.with_borrow_mut(|noted| {
        noted.retain(CyclicValue::exists);
        noted.len()
    })
}

/// Frees the noted values that only noted values refer to. Returns how many.
pub(crate) fn collect() -> usize {
    forget_freed();
    let live: Vec<Value> =
        NOTED.with_borrow(|noted| noted.iter().filter_map(CyclicValue::value).collect());
    let fields = FIELDS.take();
    // References of noted values: to which address, how many, and where `live` has what they refer to.
    let mut targets: HashMap<usize, (usize, Option<usize>)> = HashMap::new();
    for value in &live {
        each_part(value, &fields, &mut |part| match address(part) {
            0 => (),
            address => targets.entry(address).or_default().0 += 1,
        });
    }
    // `live` refers to each once.
    let mut others: Vec<usize> = live.iter().map(|value| count(value).saturating_sub(1)).collect();
    for (place, value) in live.iter().enumerate() {
        if let Some((references, target)) = targets.get_mut(&address(value)) {
            *target = Some(place);
            others[place] = others[place].saturating_sub(*references);
        }
    }
    let place_of = |value: &Value| match address(value) {
        0 => None,
        address => targets.get(&address)?.1,
    };
    let mut in_use: Vec<bool> = others.iter().map(|count| *count > 0).collect();
    let mut new = Vec::new();
    if in_use.contains(&false) {
        new.extend((0..live.len()).filter(|place| in_use[*place]));
    }
    while let Some(place) = new.pop() {
        each_part(&live[place], &fields, &mut |part| {
            if let Some(place) = place_of(part)
                && !std::mem::replace(&mut in_use[place], true)
            {
                new.push(place);
            }
        });
    }
    let garbage = live.iter().zip(&in_use).filter(|(_, in_use)| !**in_use);
    FIELDS.set(fields);
    // `live` keeps each until all are empty: no value is dropped within another.
    let freed = garbage.map(|(value, _)| empty(value)).count();
    IN_USE.set(live.len() - freed);
    drop(live);
    freed
}

/// The address of a record, container or function; 0 for values that own none.
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

/// Calls `f` with each reference that a value has to a value that can be part of a cycle. What it leaves out counts as use
/// from outside, so no value is freed for it.
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

/// Takes all parts out of a value.
fn empty(value: &Value) {
    match value {
        Value::Record(record) => drop(record.take()),
        Value::Table(table) => table.clear(),
        Value::Vector(vector) => drop(vector.take()),
        Value::Func(func) => drop(func.captures.take()),
        _ => (),
    }
}

/// Frees cycles when it is dropped: the last field of what owns values.
#[derive(Debug, Default)]
pub(crate) struct AtEnd;

impl Drop for AtEnd {
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

    /// Every type that a test uses can be part of a cycle.
    fn all_types() {
        FIELDS.take();
        TYPES.with_borrow_mut(|types| *types = vec![u64::MAX; 4]);
    }

    fn record_of(fields: Vec<Value>) -> Rc<Record> {
        Record::new(TypeId(70), fields)
    }

    #[test]
    fn garbage_is_bounded_and_what_is_in_use_stays() {
        all_types();
        collect();
        let held: Vec<_> = (0..60_000).map(|_| record_of(vec![Value::Count(7)])).collect();
        let mut most = 0;
        for _ in 0..1_000_000 {
            // A vector that contains itself, and a record that is freed at once.
            let vector = Vector::new(TypeId(71), Vec::new());
            vector.items_mut().push(Value::Vector(Rc::clone(&vector)));
            drop(record_of(Vec::new()));
            if is_due() {
                look();
            }
            most = most.max(NOTED.with_borrow(Vec::len));
        }
        assert!(most < 3 * 2 * held.len(), "{most}");
        assert!(held.iter().all(|record| record.get(0).count() == 7));
        drop(held);
        collect();
        assert_eq!(
            NOTED.with_borrow_mut(|noted| {
                noted.retain(CyclicValue::exists);
                noted.len()
            }),
            0
        );
    }

    #[test]
    fn exactly_what_is_unreachable_is_freed() {
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
            // What is held refers to itself and to a table of itself: it stays.
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

    /// Runs a program; returns the number of values that it left and that are noted still.
    fn noted_after(code: &str) -> usize {
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
        let noted = NOTED.with_borrow(Vec::len);
        drop(machine);
        assert_eq!(collect(), 0, "the machine leaves none");
        noted
    }

    #[test]
    fn programs_free_their_cycles() {
        // Per event a thousand values that refer to themselves, of each kind.
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
            let noted = noted_after(&code(events));
            assert!(noted <= AT_LEAST + 2 * 1_250, "{events} events left {noted}");
        }
        let plain = "type R: record { n: count; s: set[string]; };
            event zeek_init() { local v: vector of R; local t: table[count] of R; t[1] = R($n=1); v[0] = t[1]; }";
        // No type of this program can be part of a cycle.
        assert_eq!(noted_after(plain), noted_after(""));
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
    fn what_a_walk_or_a_list_holds_stays() {
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
