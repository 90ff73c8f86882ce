//! Encoding of the values of globals, with all objects that they refer to.
//!
//! Objects are numbered in order of discovery. First the kinds and types of all objects are written, so that
//! the reader can create each object before the first reference to it; then their contents. Table entries are
//! inserted last, when records that may be their keys are complete. A state that contains a value without an
//! encoding, such as an open file, is not cached.

use std::collections::HashMap;
use std::rc::{Rc, Weak};

use super::codec::{Codec, Damaged, DecodeResult, Reader, Writer, fields, variants};
use crate::bif::telemetry::{self, Metrics};
use crate::ids::{FuncId, TypeId};
use crate::program::Program;
use crate::support::pattern::Pattern;
use crate::types::{AttrKind, find_attr};
use crate::value::table::{ExpireKind, TableAttrs, parts};
use crate::value::{FuncValue, List, OpaqueValue, Record, Table, Value, Vector};
use crate::vm::Machine;

/// Maximum nesting depth of lists.
const MAX_DEPTH: usize = 32;

fields! {
    TableAttrs { default, default_insert, expire, expire_func, on_change, ordered }
}

variants! {
    ExpireKind { 0 = Create, 1 = Read, 2 = Write }
}

/// Encodes the state of a machine that has evaluated only initializers. `None` if a value has no encoding.
pub(super) fn encode(machine: &Machine, to: &mut Writer) -> Option<()> {
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
    while let Some(object) = found.objects.get(found.scanned).cloned() {
        found.scanned += 1;
        found.add_content(&object)?;
    }
    to.number(found.objects.len() as u64);
    for object in &found.objects {
        encode_empty(object, to)?;
    }
    for object in &found.objects {
        found.encode_content(object, to)?;
    }
    to.number(machine.globals.len() as u64);
    for value in &machine.globals {
        found.encode(value, to, 0)?;
    }
    to.number(timers.len() as u64);
    for (time, table) in timers {
        time.encode(to);
        found.encode(&table.map_or(Value::Unset, Value::Table), to, 0)?;
    }
    machine.vectors.encode(to);
    machine.sets.encode(to);
    machine.instantiated.encode(to);
    machine.state.metrics.encode(to);
    Some(())
}

/// Decodes a state into a new machine.
pub(super) fn decode(
    machine: &mut Machine,
    program: &Program,
    from: &mut Reader<'_>,
) -> DecodeResult<()> {
    let len = from.len()?;
    let mut objects = Vec::with_capacity(len);
    for _ in 0..len {
        objects.push(decode_empty(from)?);
    }
    let mut tables = Vec::new();
    for object in &objects {
        decode_content(object, &objects, &mut tables, from)?;
    }
    for (table, entries) in tables {
        for (key, value, time) in entries {
            table.insert(key, value, time);
        }
    }
    let globals = from.len()?;
    for _ in 0..globals {
        machine.globals.push(decode_value(&objects, from, 0)?);
    }
    let timers = from.len()?;
    for _ in 0..timers {
        let time = f64::decode(from)?;
        let table = match decode_value(&objects, from, 0)? {
            Value::Table(table) => Rc::downgrade(&table),
            _ => Weak::new(),
        };
        machine.queue.add_expiry(time, table);
    }
    machine.vectors = Codec::decode(from)?;
    machine.sets = Codec::decode(from)?;
    machine.instantiated = Codec::decode(from)?;
    machine.state.metrics = Metrics::decode(from)?;
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
    scanned: usize,
}

impl FoundObjects {
    /// Adds the objects that a value refers to directly.
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

    fn encode_content(&self, object: &Value, to: &mut Writer) -> Option<()> {
        match object {
            Value::Record(record) => self.encode_all(&record.fields(), to),
            Value::Vector(vector) => self.encode_all(&vector.items(), to),
            Value::Func(func) => self.encode_all(&func.captures.borrow(), to),
            Value::Table(table) => {
                let default = table.default_cache.borrow();
                to.byte(u8::from(default.is_some()));
                if let Some(value) = &*default {
                    self.encode(value, to, 0)?;
                }
                let entries = table.entries_with_times();
                to.number(entries.len() as u64);
                for (key, value, time) in entries {
                    self.encode(&key, to, 0)?;
                    self.encode(&value, to, 0)?;
                    time.encode(to);
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn encode_all(&self, values: &[Value], to: &mut Writer) -> Option<()> {
        to.number(values.len() as u64);
        values.iter().try_for_each(|value| self.encode(value, to, 0))
    }

    fn encode(&self, value: &Value, to: &mut Writer, depth: usize) -> Option<()> {
        match value {
            Value::Unset => to.byte(0),
            Value::Bool(value) => {
                to.byte(1);
                value.encode(to);
            }
            Value::Int(value) => {
                to.byte(2);
                value.encode(to);
            }
            Value::Count(value) => {
                to.byte(3);
                value.encode(to);
            }
            Value::Double(value) => {
                to.byte(4);
                value.encode(to);
            }
            Value::Time(value) => {
                to.byte(5);
                value.encode(to);
            }
            Value::Interval(value) => {
                to.byte(6);
                value.encode(to);
            }
            Value::Enum(ty, value) => {
                to.byte(7);
                ty.encode(to);
                value.encode(to);
            }
            Value::Port(port) => {
                to.byte(8);
                port.encode(to);
            }
            Value::Addr4(_) | Value::Addr6(_) => {
                to.byte(9);
                value.addr_bytes()?.encode(to);
            }
            Value::Net4(..) | Value::Net6(_) => {
                to.byte(10);
                value.as_subnet()?.encode(to);
            }
            Value::Type(ty) => {
                to.byte(11);
                ty.encode(to);
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
            Value::List(list) if depth < MAX_DEPTH => {
                to.byte(14);
                list.ty.encode(to);
                to.number(list.items.len() as u64);
                for item in &list.items {
                    self.encode(item, to, depth + 1)?;
                }
            }
            Value::Record(_)
            | Value::Table(_)
            | Value::Vector(_)
            | Value::Func(_)
            | Value::Opaque(_) => {
                to.byte(15);
                self.numbers.get(&value.address()?)?.encode(to);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether the hash of a key depends only on values that are stored inline, not on other objects.
fn is_plain_key(part: &Value, depth: usize) -> bool {
    match part {
        Value::Record(record) => {
            depth < MAX_DEPTH && record.fields().iter().all(|field| is_plain_key(field, depth + 1))
        }
        Value::List(list) => {
            depth < MAX_DEPTH && list.items.iter().all(|item| is_plain_key(item, depth + 1))
        }
        Value::Table(_) | Value::Vector(_) | Value::Opaque(_) | Value::File(_) => false,
        _ => true,
    }
}

fn encode_empty(object: &Value, to: &mut Writer) -> Option<()> {
    match object {
        Value::Record(record) => {
            to.byte(0);
            record.ty().encode(to);
        }
        Value::Table(table) => {
            to.byte(1);
            table.ty().encode(to);
            table.is_single().encode(to);
            table.attrs().encode(to);
            table.expiring.get().encode(to);
        }
        Value::Vector(vector) => {
            to.byte(2);
            vector.ty().encode(to);
        }
        Value::Func(func) => {
            to.byte(3);
            func.func.encode(to);
            func.ty.encode(to);
        }
        Value::Opaque(opaque) => {
            let (is_metric, number) = telemetry::handle(opaque)?;
            to.byte(4);
            opaque.ty.encode(to);
            is_metric.encode(to);
            number.encode(to);
        }
        _ => return None,
    }
    Some(())
}

fn decode_empty(from: &mut Reader<'_>) -> DecodeResult<Value> {
    Ok(match from.byte()? {
        0 => Value::Record(Record::new(TypeId::decode(from)?, Vec::new())),
        1 => {
            let (ty, single) = (TypeId::decode(from)?, bool::decode(from)?);
            let attrs: Option<Rc<TableAttrs>> = Codec::decode(from)?;
            let table = Table::new(ty, single, attrs);
            table.expiring.set(bool::decode(from)?);
            Value::Table(table)
        }
        2 => Value::Vector(Vector::new(TypeId::decode(from)?, Vec::new())),
        3 => Value::Func(FuncValue::new(FuncId::decode(from)?, TypeId::decode(from)?)),
        4 => {
            let (ty, is_metric) = (TypeId::decode(from)?, bool::decode(from)?);
            let opaque: Rc<OpaqueValue> =
                telemetry::from_handle(ty, is_metric, Codec::decode(from)?);
            Value::Opaque(opaque)
        }
        _ => return Err(Damaged),
    })
}

/// Entries of a table: key, value and time.
type Entries = Vec<(Value, Value, f64)>;

fn decode_content(
    object: &Value,
    objects: &[Value],
    tables: &mut Vec<(Rc<Table>, Entries)>,
    from: &mut Reader<'_>,
) -> DecodeResult<()> {
    match object {
        Value::Record(record) => *record.fields_mut() = decode_all(objects, from)?,
        Value::Vector(vector) => *vector.items_mut() = decode_all(objects, from)?,
        Value::Func(func) => *func.captures.borrow_mut() = decode_all(objects, from)?,
        Value::Table(table) => {
            if bool::decode(from)? {
                *table.default_cache.borrow_mut() = Some(decode_value(objects, from, 0)?);
            }
            let len = from.len()?;
            let mut entries = Vec::with_capacity(len.min(1 << 16));
            for _ in 0..len {
                let key = decode_value(objects, from, 0)?;
                let value = decode_value(objects, from, 0)?;
                entries.push((key, value, f64::decode(from)?));
            }
            tables.push((Rc::clone(table), entries));
        }
        _ => {}
    }
    Ok(())
}

fn decode_all(objects: &[Value], from: &mut Reader<'_>) -> DecodeResult<Vec<Value>> {
    let len = from.len()?;
    let mut values = Vec::with_capacity(len.min(1 << 16));
    for _ in 0..len {
        values.push(decode_value(objects, from, 0)?);
    }
    Ok(values)
}

fn decode_value(objects: &[Value], from: &mut Reader<'_>, depth: usize) -> DecodeResult<Value> {
    Ok(match from.byte()? {
        0 => Value::Unset,
        1 => Value::Bool(Codec::decode(from)?),
        2 => Value::Int(Codec::decode(from)?),
        3 => Value::Count(Codec::decode(from)?),
        4 => Value::Double(Codec::decode(from)?),
        5 => Value::Time(Codec::decode(from)?),
        6 => Value::Interval(Codec::decode(from)?),
        7 => Value::Enum(Codec::decode(from)?, Codec::decode(from)?),
        8 => Value::Port(Codec::decode(from)?),
        9 => Value::addr(from.array()?),
        10 => {
            let net: crate::literal::Subnet = Codec::decode(from)?;
            Value::subnet(net.prefix, net.width)
        }
        11 => Value::Type(Codec::decode(from)?),
        12 => Value::string(from.block()?),
        13 => {
            let (exact, anywhere) = (from.block()?, from.block()?);
            Value::Pattern(Rc::new(Pattern::valid(exact, anywhere)))
        }
        14 if depth < MAX_DEPTH => {
            let ty = TypeId::decode(from)?;
            let len = from.len()?;
            let mut items = Vec::with_capacity(len.min(64));
            for _ in 0..len {
                items.push(decode_value(objects, from, depth + 1)?);
            }
            Value::List(Rc::new(List { ty, items }))
        }
        15 => {
            let number = u32::decode(from)?;
            objects.get(number as usize).cloned().ok_or(Damaged)?
        }
        _ => return Err(Damaged),
    })
}
