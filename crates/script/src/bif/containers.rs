//! Tables, vectors and any values.

use std::cmp::Ordering;
use std::rc::Rc;

use super::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::types::Tag;
use crate::value::equal::compare;
use crate::value::table::ExpireKind;
use crate::value::{FuncValue, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("sort", sort),
    ("order", order),
    ("clear_table", |vm, a| {
        match arg(a, 0) {
            Value::Table(_) => vm.delete_all(arg(a, 0))?,
            _ => vm.builtin_error("clear_table() requires a table/set argument"),
        }
        Ok(Value::Unset)
    }),
    ("table_keys", |vm, a| {
        let Some(table) = mapping(vm, arg(a, 0)) else {
            vm.builtin_error("table_keys() requires a table argument");
            return Ok(Value::Unset);
        };
        let (single, index) = match vm.p.types.table(table.ty()) {
            Some(ty) => (table.is_single(), ty.index.clone()),
            None => (true, Vec::new().into()),
        };
        let ty = vm.set_of(&index);
        let set = vm.new_table(ty, None);
        if let Value::Table(set) = &set {
            debug_assert_eq!(set.is_single(), single);
            for key in table.keys() {
                set.insert(key, Value::Unset, 0.0);
            }
        }
        Ok(set)
    }),
    ("table_values", |vm, a| {
        let Some(table) = mapping(vm, arg(a, 0)) else {
            vm.builtin_error("table_values() requires a table argument");
            return Ok(Value::Unset);
        };
        let values = table.entries().into_iter().map(|(_, value)| value).collect();
        let element = vm.p.types.table(table.ty()).and_then(|table| table.value);
        let ty = match element {
            Some(element) => vm.vector_of(element),
            None => vm.result_type(),
        };
        Ok(Value::Vector(Vector::new(ty, values)))
    }),
    ("resize", |vm, a| {
        let Some(vector) = arg(a, 0).vector() else {
            vm.builtin_error("resize() operates on vectors");
            return Ok(Value::Count(0));
        };
        let old = vector.len();
        let new = usize::try_from(arg(a, 1).count()).unwrap_or(usize::MAX).min(1 << 28);
        vector.items_mut().resize(new, Value::Unset);
        Ok(Value::Count(old as u64))
    }),
    ("any_set", |vm, a| {
        let vector = bools(vm, arg(a, 0), "any_set");
        Ok(Value::Bool(vector.is_some_and(|vector| vector.items().iter().any(Value::truth))))
    }),
    ("all_set", |vm, a| {
        let vector = bools(vm, arg(a, 0), "all_set");
        Ok(Value::Bool(vector.is_some_and(|vector| vector.items().iter().all(Value::truth))))
    }),
    ("same_object", |_, a| {
        let (one, other) = (arg(a, 0), arg(a, 1));
        // Atomic values have no identity: equal ones are the same.
        let has_identity = |value: &Value| {
            value.address().is_some() || value.bytes().is_some() || value.pattern().is_some()
        };
        let plain = !has_identity(one) && !has_identity(other);
        Ok(Value::Bool(one.same_object(other) || plain && crate::value::equal::equal(one, other)))
    }),
    ("val_footprint", |_, a| Ok(Value::Count(footprint(arg(a, 0), &mut Vec::new())))),
    ("matching_subnets", |vm, a| {
        if !has_subnets(vm, arg(a, 1), "matching_subnets") {
            return Ok(Value::Unset);
        }
        let items = arg(a, 1)
            .table()
            .map(|table| {
                let indices = table.indexes_containing(arg(a, 0));
                indices.into_iter().map(|index| table.key_at(index)).collect()
            })
            .unwrap_or_default();
        Ok(Value::Vector(Vector::new(vm.result_type(), items)))
    }),
    ("filter_subnet_table", |vm, a| {
        if !has_subnets(vm, arg(a, 1), "filter_subnet_table") {
            return Ok(Value::Unset);
        }
        let Some(table) = arg(a, 1).table() else { return Ok(Value::Unset) };
        let ty = table.ty();
        let filtered = vm.new_table(ty, None);
        if let Value::Table(filtered) = &filtered {
            for index in table.indexes_containing(arg(a, 0)) {
                filtered.insert(table.key_at(index), table.value_at(index), vm.m.now);
                let attrs = table.attrs();
                let read = attrs.and_then(|attrs| Some(attrs.expire?.0 == ExpireKind::Read));
                if read.unwrap_or_default() {
                    table.touch(index, vm.m.now);
                }
            }
        }
        Ok(filtered)
    }),
    ("check_subnet", |vm, a| {
        if !has_subnets(vm, arg(a, 1), "check_subnet") {
            return Ok(Value::Bool(false));
        }
        Ok(Value::Bool(
            arg(a, 1)
                .table()
                .is_some_and(|table| table.find(std::slice::from_ref(arg(a, 0))).is_some()),
        ))
    }),
];

/// The table in a value; `None` for sets.
fn mapping(vm: &Vm<'_>, value: &Value) -> Option<Rc<crate::value::Table>> {
    value.table().filter(|table| !vm.p.types.is_set(table.ty())).cloned()
}

/// The vector of bool in a value; reports an error otherwise.
fn bools(vm: &mut Vm<'_>, value: &Value, name: &str) -> Option<Rc<Vector>> {
    let vector = value.vector().filter(|vector| {
        let element = vm.p.types.element(vector.ty());
        element.is_some_and(|ty| matches!(vm.p.types.tag(ty), Tag::Bool | Tag::Void))
    });
    if vector.is_none() {
        vm.builtin_error(format!("{name}() requires vector of bool"));
    }
    vector.cloned()
}

/// Whether a value is a table or set indexed by subnets; reports an error otherwise.
fn has_subnets(vm: &mut Vm<'_>, value: &Value, name: &str) -> bool {
    let index = value.table().and_then(|table| vm.p.types.table(table.ty())).map(|ty| &*ty.index);
    let fits = match index {
        Some([one]) => vm.p.types.tag(*one) == Tag::Subnet,
        _ => false,
    };
    if !fits {
        let text = format!("{name} needs to be called on a set[subnet]/table[subnet].");
        vm.report(Severity::Error, text);
    }
    fits
}

/// Number of bytes of a string that count as one unit of its footprint.
const FOOTPRINT_UNIT: usize = 32;

fn footprint(value: &Value, open: &mut Vec<usize>) -> u64 {
    if let Some(address) = value.address() {
        if open.contains(&address) || open.len() > 500 {
            return 1;
        }
        open.push(address);
    }
    let sum = match value {
        Value::Record(record) => {
            let fields = record.fields();
            fields.len() as u64
                + fields
                    .iter()
                    .filter(|field| field.is_set())
                    .map(|field| footprint(field, open))
                    .sum::<u64>()
        }
        Value::Vector(vector) => {
            let items = vector.items();
            items.len() as u64
                + items
                    .iter()
                    .filter(|item| item.is_set())
                    .map(|item| footprint(item, open))
                    .sum::<u64>()
        }
        Value::List(list) => {
            list.items.len() as u64
                + list.items.iter().map(|item| footprint(item, open)).sum::<u64>()
        }
        Value::Table(table) => {
            table.len() as u64
                + table
                    .entries()
                    .iter()
                    .map(|(key, value)| {
                        let value = if value.is_set() { footprint(value, open) } else { 0 };
                        let key = match key {
                            Value::List(list) => {
                                list.items.len() as u64
                                    + list
                                        .items
                                        .iter()
                                        .map(|item| footprint(item, open))
                                        .sum::<u64>()
                            }
                            one => 1 + footprint(one, open),
                        };
                        key + value
                    })
                    .sum::<u64>()
        }
        text => 1 + (text.str_bytes().len() / FOOTPRINT_UNIT) as u64,
    };
    if value.address().is_some() {
        open.pop();
    }
    sum
}

/// The comparison of two elements.
enum ElementOrder {
    Values,
    Function(Rc<FuncValue>),
}

fn ordering_of(
    vm: &mut Vm<'_>,
    args: &[Value],
    name: &str,
) -> Result<Option<(Rc<Vector>, ElementOrder)>> {
    let Some(vector) = arg(args, 0).vector().cloned() else {
        vm.builtin_error(format!("{name}() requires vector"));
        return Ok(None);
    };
    if args.len() > 2 {
        vm.builtin_error(format!("{name}() called with extraneous argument"));
        return Ok(None);
    }
    let element = vm.p.types.element(vector.ty());
    let by = match args.get(1) {
        Some(Value::Func(func)) => {
            let result = vm.p.types.func(func.ty).map(|func| func.result);
            let takes: Vec<_> = vm.p.types.params(func.ty).iter().map(|param| param.ty).collect();
            let fits = |ty| element.is_none_or(|element| vm.p.same_type(element, ty));
            if takes.len() != 2
                || !takes.into_iter().all(fits)
                || result.is_none_or(|ty| vm.p.types.tag(ty) != Tag::Int)
            {
                vm.builtin_error(format!("invalid comparison function in call to {name}()"));
                return Ok(None);
            }
            ElementOrder::Function(Rc::clone(func))
        }
        Some(_) => {
            let text = format!("second argument to {name}() needs to be comparison function");
            vm.builtin_error(text);
            return Ok(None);
        }
        None => {
            let sorts = element.is_none_or(|ty| {
                matches!(
                    vm.p.types.tag(ty),
                    Tag::Int | Tag::Count | Tag::Double | Tag::Time | Tag::Interval | Tag::Void
                )
            });
            if !sorts {
                vm.builtin_error(format!(
                    "comparison function required for {name}() with non-numeric types"
                ));
                return Ok(None);
            }
            ElementOrder::Values
        }
    };
    Ok(Some((vector, by)))
}

/// Sorts with a comparison that may fail: insertion into runs, then merges, so that the sort ends even if the order is inconsistent.
fn sorted(
    vm: &mut Vm<'_>,
    items: Vec<(usize, Value)>,
    by: &ElementOrder,
) -> Result<Vec<(usize, Value)>> {
    if items.len() <= 1 {
        return Ok(items);
    }
    let mut runs: Vec<Vec<(usize, Value)>> = items.into_iter().map(|item| vec![item]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            match rest.next() {
                Some(right) => merged.push(merge(vm, left, right, by)?),
                None => merged.push(left),
            }
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge(
    vm: &mut Vm<'_>,
    left: Vec<(usize, Value)>,
    right: Vec<(usize, Value)>,
    by: &ElementOrder,
) -> Result<Vec<(usize, Value)>> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some((_, a)), Some((_, b))) = (left.peek(), right.peek()) {
        // The right element goes first only if it is less: the sort is stable.
        if comes_before(vm, b, a, by)? {
            merged.extend(right.next());
        } else {
            merged.extend(left.next());
        }
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

fn comes_before(vm: &mut Vm<'_>, a: &Value, b: &Value, by: &ElementOrder) -> Result<bool> {
    if !a.is_set() || !b.is_set() {
        // Unset elements go to the end.
        return Ok(a.is_set() && !b.is_set());
    }
    match by {
        ElementOrder::Values => Ok(compare(a, b) == Some(Ordering::Less)),
        ElementOrder::Function(func) => {
            let result = vm.call(func, &[a.clone(), b.clone()])?;
            if !result.is_set() {
                let body = vm.p.functions[func.func].bodies.first().copied();
                let text = "comparison function did not return a value".to_owned();
                return Err(vm.runtime_error(body, text));
            }
            Ok(result.int() < 0)
        }
    }
}

fn sort(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let Some((vector, by)) = ordering_of(vm, args, "sort")? else {
        return Ok(arg(args, 0).clone());
    };
    let items: Vec<(usize, Value)> = vector.items().iter().cloned().enumerate().collect();
    let items = match by {
        // Values that need no function are sorted directly.
        ElementOrder::Values => {
            let mut items = items;
            items.sort_by(|(_, a), (_, b)| match (a.is_set(), b.is_set()) {
                (true, true) => compare(a, b).unwrap_or(Ordering::Equal),
                (a, b) => b.cmp(&a),
            });
            items
        }
        ElementOrder::Function(_) => sorted(vm, items, &by)?,
    };
    *vector.items_mut() = items.into_iter().map(|(_, value)| value).collect();
    Ok(arg(args, 0).clone())
}

fn order(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let Some((vector, by)) = ordering_of(vm, args, "order")? else {
        return Ok(Value::Vector(Vector::new(ty, Vec::new())));
    };
    let items: Vec<(usize, Value)> = vector.items().iter().cloned().enumerate().collect();
    let items = sorted(vm, items, &by)?;
    let indices = items.into_iter().map(|(index, _)| Value::Count(index as u64)).collect();
    Ok(Value::Vector(Vector::new(ty, indices)))
}
