//! The values of globals as bytes, with all objects that they refer to.
//!
//! Objects are numbered in the order in which they are found. First their kinds and types are written, so that a reader has all of
//! them before it meets the first reference; then what is in them. Entries of tables are inserted at the end, when the records that may be
//! their keys are complete. What has no form here, an open file for example, makes the state one that is not stored.

use std::collections::HashMap;
use std::rc::{Rc, Weak};

use super::codec::{Codec, Damaged, Read, Reader, Writer, fields, variants};
use crate::bif::telemetry::{self, Metrics};
use crate::ids::{FuncId, TypeId};
use crate::program::Program;
use crate::support::pattern::Pattern;
use crate::types::{AttrKind, find_attr};
use crate::value::table::{ExpireKind, TableAttrs, parts};
use crate::value::{FuncValue, List, OpaqueValue, Record, Table, Value, Vector};
use crate::vm::Machine;

/// How deep lists may be within each other.
const DEEPEST: usize = 32;

fields! {
    TableAttrs { default, default_insert, expire, expire_func, on_change, ordered }
}

variants! {
    ExpireKind { 0 = Create, 1 = Read, 2 = Write }
}

/// Writes the state of a machine that has evaluated initializers only. `None` where a part of it has no form.
pub(super) fn put(machine: &Machine, to: &mut Writer) -> Option<()> {
    if !machine.is_at_rest() {
        return None;
    }
    let timers = machine.queue.expiries()?;
    let mut found = FoundObjects::default();
    for value in &machine.globals {
        found.add(value)?;
    }
    for (_, table) in &timers {
        if let Some(table) = table {
            found.add(&Value::Table(Rc::clone(table)))?;
        }
    }
    while let Some(object) = found.objects.get(found.looked_at).cloned() {
        found.looked_at += 1;
        found.add_content(&object)?;
    }
    to.number(found.objects.len() as u64);
    for object in &found.objects {
        put_shell(object, to)?;
    }
    for object in &found.objects {
        found.put_content(object, to)?;
    }
    to.number(machine.globals.len() as u64);
    for value in &machine.globals {
        found.put(value, to, 0)?;
    }
    to.number(timers.len() as u64);
    for (time, table) in timers {
        time.put(to);
        found.put(&table.map_or(Value::Unset, Value::Table), to, 0)?;
    }
    machine.vectors.put(to);
    machine.sets.put(to);
    machine.instantiated.put(to);
    machine.state.metrics.put(to);
    Some(())
}

/// Reads such a state into a machine that is new.
pub(super) fn take(machine: &mut Machine, program: &Program, from: &mut Reader<'_>) -> Read<()> {
    let len = from.len()?;
    let mut objects = Vec::with_capacity(len);
    for _ in 0..len {
        objects.push(take_shell(from)?);
    }
    let mut tables = Vec::new();
    for object in &objects {
        take_content(object, &objects, &mut tables, from)?;
    }
    for (table, entries) in tables {
        for (key, value, time) in entries {
            table.insert(key, value, time);
        }
    }
    let globals = from.len()?;
    for _ in 0..globals {
        machine.globals.push(take_value(&objects, from, 0)?);
    }
    let timers = from.len()?;
    for _ in 0..timers {
        let time = f64::take(from)?;
        let table = match take_value(&objects, from, 0)? {
            Value::Table(table) => Rc::downgrade(&table),
            _ => Weak::new(),
        };
        machine.queue.add_expiry(time, table);
    }
    machine.vectors = Codec::take(from)?;
    machine.sets = Codec::take(from)?;
    machine.instantiated = Codec::take(from)?;
    machine.state.metrics = Metrics::take(from)?;
    for ty in &machine.instantiated {
        let Some(record) = program.types.find(*ty).and_then(|_| program.types.record(*ty)) else {
            return Err(Damaged);
        };
        let optional =
            record.fields.iter().map(|field| find_attr(&field.attrs, AttrKind::Optional));
        crate::value::order::set_optional(*ty, optional.map(|attr| attr.is_some()).collect());
    }
    Ok(())
}

#[derive(Default)]
struct FoundObjects {
    objects: Vec<Value>,
    numbers: HashMap<usize, u32>,
    looked_at: usize,
}

impl FoundObjects {
    /// Adds the objects that a value is or has in itself.
    fn add(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Record(_)
            | Value::Table(_)
            | Value::Vector(_)
            | Value::Func(_)
            | Value::Opaque(_) => {
                let number = u32::try_from(self.objects.len()).ok()?;
                if let std::collections::hash_map::Entry::Vacant(slot) =
                    self.numbers.entry(value.address()?)
                {
                    slot.insert(number);
                    self.objects.push(value.clone());
                }
            }
            Value::List(list) => {
                for item in &list.items {
                    self.add(item)?;
                }
            }
            Value::File(_) | Value::Iter(_) => return None,
            _ => {}
        }
        Some(())
    }

    fn add_content(&mut self, object: &Value) -> Option<()> {
        match object {
            Value::Record(record) => record.fields().iter().try_for_each(|value| self.add(value)),
            Value::Vector(vector) => vector.items().iter().try_for_each(|value| self.add(value)),
            Value::Func(func) => {
                func.captures.borrow().iter().try_for_each(|value| self.add(value))
            }
            Value::Table(table) => {
                if !table.is_at_rest() {
                    return None;
                }
                if let Some(value) = &*table.default_cache.borrow() {
                    self.add(value)?;
                }
                for (key, value, _) in table.entries_with_times() {
                    if !parts(&key).iter().all(|part| is_plain_key(part, 0)) {
                        return None;
                    }
                    self.add(&key)?;
                    self.add(&value)?;
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn put_content(&self, object: &Value, to: &mut Writer) -> Option<()> {
        match object {
            Value::Record(record) => self.put_all(&record.fields(), to),
            Value::Vector(vector) => self.put_all(&vector.items(), to),
            Value::Func(func) => self.put_all(&func.captures.borrow(), to),
            Value::Table(table) => {
                let default = table.default_cache.borrow();
                to.byte(u8::from(default.is_some()));
                if let Some(value) = &*default {
                    self.put(value, to, 0)?;
                }
                let entries = table.entries_with_times();
                to.number(entries.len() as u64);
                for (key, value, time) in entries {
                    self.put(&key, to, 0)?;
                    self.put(&value, to, 0)?;
                    time.put(to);
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn put_all(&self, values: &[Value], to: &mut Writer) -> Option<()> {
        to.number(values.len() as u64);
        values.iter().try_for_each(|value| self.put(value, to, 0))
    }

    fn put(&self, value: &Value, to: &mut Writer, depth: usize) -> Option<()> {
        match value {
            Value::Unset => to.byte(0),
            Value::Bool(value) => {
                to.byte(1);
                value.put(to);
            }
            Value::Int(value) => {
                to.byte(2);
                value.put(to);
            }
            Value::Count(value) => {
                to.byte(3);
                value.put(to);
            }
            Value::Double(value) => {
                to.byte(4);
                value.put(to);
            }
            Value::Time(value) => {
                to.byte(5);
                value.put(to);
            }
            Value::Interval(value) => {
                to.byte(6);
                value.put(to);
            }
            Value::Enum(ty, value) => {
                to.byte(7);
                ty.put(to);
                value.put(to);
            }
            Value::Port(port) => {
                to.byte(8);
                port.put(to);
            }
            Value::Addr4(_) | Value::Addr6(_) => {
                to.byte(9);
                value.addr_bytes()?.put(to);
            }
            Value::Net4(..) | Value::Net6(_) => {
                to.byte(10);
                value.as_subnet()?.put(to);
            }
            Value::Type(ty) => {
                to.byte(11);
                ty.put(to);
            }
            Value::Short(_) | Value::Long(_) => {
                to.byte(12);
                to.block(value.str_bytes());
            }
            Value::Pattern(pattern) if pattern.errors().is_empty() => {
                to.byte(13);
                to.block(pattern.text());
                to.block(pattern.anywhere_text());
            }
            Value::List(list) if depth < DEEPEST => {
                to.byte(14);
                list.ty.put(to);
                to.number(list.items.len() as u64);
                for item in &list.items {
                    self.put(item, to, depth + 1)?;
                }
            }
            Value::Record(_)
            | Value::Table(_)
            | Value::Vector(_)
            | Value::Func(_)
            | Value::Opaque(_) => {
                to.byte(15);
                self.numbers.get(&value.address()?)?.put(to);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether the hash of a key depends only on values that a record has in itself.
fn is_plain_key(part: &Value, depth: usize) -> bool {
    match part {
        Value::Record(record) => {
            depth < DEEPEST && record.fields().iter().all(|field| is_plain_key(field, depth + 1))
        }
        Value::List(list) => {
            depth < DEEPEST && list.items.iter().all(|item| is_plain_key(item, depth + 1))
        }
        Value::Table(_) | Value::Vector(_) | Value::Opaque(_) | Value::File(_) => false,
        _ => true,
    }
}

fn put_shell(object: &Value, to: &mut Writer) -> Option<()> {
    match object {
        Value::Record(record) => {
            to.byte(0);
            record.ty().put(to);
        }
        Value::Table(table) => {
            to.byte(1);
            table.ty().put(to);
            table.is_single().put(to);
            table.attrs().put(to);
            table.expiring.get().put(to);
        }
        Value::Vector(vector) => {
            to.byte(2);
            vector.ty().put(to);
        }
        Value::Func(func) => {
            to.byte(3);
            func.func.put(to);
            func.ty.put(to);
        }
        Value::Opaque(opaque) => {
            let (is_metric, number) = telemetry::handle(opaque)?;
            to.byte(4);
            opaque.ty.put(to);
            is_metric.put(to);
            number.put(to);
        }
        _ => return None,
    }
    Some(())
}

fn take_shell(from: &mut Reader<'_>) -> Read<Value> {
    Ok(match from.byte()? {
        0 => Value::Record(Record::new(TypeId::take(from)?, Vec::new())),
        1 => {
            let (ty, single) = (TypeId::take(from)?, bool::take(from)?);
            let attrs: Option<Rc<TableAttrs>> = Codec::take(from)?;
            let table = Table::new(ty, single, attrs);
            table.expiring.set(bool::take(from)?);
            Value::Table(table)
        }
        2 => Value::Vector(Vector::new(TypeId::take(from)?, Vec::new())),
        3 => Value::Func(FuncValue::new(FuncId::take(from)?, TypeId::take(from)?)),
        4 => {
            let (ty, is_metric) = (TypeId::take(from)?, bool::take(from)?);
            let opaque: Rc<OpaqueValue> = telemetry::from_handle(ty, is_metric, Codec::take(from)?);
            Value::Opaque(opaque)
        }
        _ => return Err(Damaged),
    })
}

/// Entries of a table: keys, values and times.
type Entries = Vec<(Value, Value, f64)>;

fn take_content(
    object: &Value,
    objects: &[Value],
    tables: &mut Vec<(Rc<Table>, Entries)>,
    from: &mut Reader<'_>,
) -> Read<()> {
    match object {
        Value::Record(record) => *record.fields_mut() = take_all(objects, from)?,
        Value::Vector(vector) => *vector.items_mut() = take_all(objects, from)?,
        Value::Func(func) => *func.captures.borrow_mut() = take_all(objects, from)?,
        Value::Table(table) => {
            if bool::take(from)? {
                *table.default_cache.borrow_mut() = Some(take_value(objects, from, 0)?);
            }
            let len = from.len()?;
            let mut entries = Vec::with_capacity(len.min(1 << 16));
            for _ in 0..len {
                let key = take_value(objects, from, 0)?;
                let value = take_value(objects, from, 0)?;
                entries.push((key, value, f64::take(from)?));
            }
            tables.push((Rc::clone(table), entries));
        }
        _ => {}
    }
    Ok(())
}

fn take_all(objects: &[Value], from: &mut Reader<'_>) -> Read<Vec<Value>> {
    let len = from.len()?;
    let mut values = Vec::with_capacity(len.min(1 << 16));
    for _ in 0..len {
        values.push(take_value(objects, from, 0)?);
    }
    Ok(values)
}

fn take_value(objects: &[Value], from: &mut Reader<'_>, depth: usize) -> Read<Value> {
    Ok(match from.byte()? {
        0 => Value::Unset,
        1 => Value::Bool(Codec::take(from)?),
        2 => Value::Int(Codec::take(from)?),
        3 => Value::Count(Codec::take(from)?),
        4 => Value::Double(Codec::take(from)?),
        5 => Value::Time(Codec::take(from)?),
        6 => Value::Interval(Codec::take(from)?),
        7 => Value::Enum(Codec::take(from)?, Codec::take(from)?),
        8 => Value::Port(Codec::take(from)?),
        9 => Value::addr(from.array()?),
        10 => {
            let net: crate::literal::Subnet = Codec::take(from)?;
            Value::subnet(net.prefix, net.width)
        }
        11 => Value::Type(Codec::take(from)?),
        12 => Value::string(from.block()?),
        13 => {
            let (exact, anywhere) = (from.block()?, from.block()?);
            Value::Pattern(Rc::new(Pattern::valid(exact, anywhere)))
        }
        14 if depth < DEEPEST => {
            let ty = TypeId::take(from)?;
            let len = from.len()?;
            let mut items = Vec::with_capacity(len.min(64));
            for _ in 0..len {
                items.push(take_value(objects, from, depth + 1)?);
            }
            Value::List(Rc::new(List { ty, items }))
        }
        15 => {
            let number = u32::take(from)?;
            objects.get(number as usize).cloned().ok_or(Damaged)?
        }
        _ => return Err(Damaged),
    })
}
