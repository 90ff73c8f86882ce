//! Zeek's order of tables: the serialized keys and their hashes under the seeds of a run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::table::parts;
use super::{Table, Value};
use crate::ids::{IdMap, TypeId};
use crate::support::order::{Hashes, KeyBytes, key};

thread_local! {
    static HASHES: Cell<Option<Hashes>> = const { Cell::new(None) };
    static OPTIONAL: RefCell<IdMap<TypeId, Rc<[bool]>>> = RefCell::default();
    static FUNCTIONS: RefCell<IdMap<u32, u32>> = RefCell::default();
}

/// Sets the order of new tables of this thread: Zeek's order under these hashes, or the order of insertion for `None`.
pub fn set_hashes(hashes: Option<Hashes>) {
    HASHES.set(hashes);
}

/// The hashes by which tables are ordered; `None` for the order of insertion.
#[must_use]
pub fn hashes() -> Option<Hashes> {
    HASHES.get()
}

/// Registers which fields of a record type are `&optional`.
pub fn set_optional(ty: TypeId, optional: Rc<[bool]>) {
    OPTIONAL.with_borrow_mut(|known| known.insert(ty, optional));
}

/// Clears the registered `&optional` fields.
pub fn clear_optional() {
    OPTIONAL.with_borrow_mut(IdMap::clear);
}

/// The hash of a key; `None` if tables are in the order of insertion.
#[must_use]
pub fn hash(value: &Value) -> Option<u64> {
    let hashes = HASHES.get()?;
    Some(hashes.key(bytes(value)))
}

/// The serialized form of a key.
#[must_use]
pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(value) => key::int(i64::from(*value)).to_vec(),
        Value::Int(value) | Value::Enum(_, value) => key::int(*value).to_vec(),
        Value::Count(value) => key::count(*value).to_vec(),
        Value::Port(port) => {
            key::count(u64::from(port.number) | (port.protocol as u64) << 16).to_vec()
        }
        Value::Double(value) | Value::Time(value) | Value::Interval(value) => {
            key::double(*value).to_vec()
        }
        Value::Short(_) | Value::Long(_) => value.str_bytes().to_vec(),
        Value::Addr4(_) | Value::Addr6(_) => {
            key::addr(value.addr_bytes().unwrap_or_default()).into()
        }
        Value::Net4(bytes, width) => key::subnet(super::v4(*bytes), u32::from(*width)).to_vec(),
        Value::Net6(net) => key::subnet(net.prefix, u32::from(net.width)).to_vec(),
        Value::Pattern(pattern) => key::pattern(pattern.text(), pattern.anywhere_text()),
        Value::Func(func) => key::function(function_number(func.func.0)).to_vec(),
        _ => {
            let mut writer = KeyBytes::new();
            match value {
                Value::List(list) => {
                    list.items.iter().for_each(|item| write_value(&mut writer, item));
                }
                one => write_value(&mut writer, one),
            }
            writer.finish()
        }
    }
}

fn function_number(func: u32) -> u32 {
    FUNCTIONS.with_borrow_mut(|known| {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        *known.entry(func).or_insert(next)
    })
}

fn write_value(writer: &mut KeyBytes, value: &Value) {
    match value {
        Value::Bool(value) => writer.int(i64::from(*value)),
        Value::Int(value) | Value::Enum(_, value) => writer.int(*value),
        Value::Count(value) => writer.count(*value),
        Value::Port(port) => writer.count(u64::from(port.number) | (port.protocol as u64) << 16),
        Value::Double(value) | Value::Time(value) | Value::Interval(value) => {
            writer.double(*value);
        }
        Value::Short(_) | Value::Long(_) => writer.string(value.str_bytes()),
        Value::Addr4(_) | Value::Addr6(_) => writer.addr(value.addr_bytes().unwrap_or_default()),
        Value::Net4(bytes, width) => writer.subnet(super::v4(*bytes), u32::from(*width)),
        Value::Net6(net) => writer.subnet(net.prefix, u32::from(net.width)),
        Value::Pattern(pattern) => writer.pattern(pattern.text(), pattern.anywhere_text()),
        Value::Func(func) => writer.function(function_number(func.func.0)),
        Value::Record(record) => {
            let optional = OPTIONAL.with_borrow(|known| known.get(&record.ty()).cloned());
            for (index, field) in record.fields().iter().enumerate() {
                let may_be_missing = optional
                    .as_ref()
                    .and_then(|optional| optional.get(index).copied())
                    .unwrap_or(false);
                if may_be_missing {
                    writer.presence(field.is_set());
                    if !field.is_set() {
                        continue;
                    }
                }
                write_value(writer, field);
            }
        }
        Value::Vector(vector) => {
            let items = vector.items();
            writer.size(items.len() as u32);
            for (index, item) in items.iter().enumerate() {
                writer.element(index as u32, item.is_set());
                if item.is_set() {
                    write_value(writer, item);
                }
            }
        }
        Value::List(list) => {
            writer.size(list.items.len() as u32);
            list.items.iter().for_each(|item| write_value(writer, item));
        }
        Value::Table(table) => write_table(writer, table),
        _ => (),
    }
}

fn write_table(writer: &mut KeyBytes, table: &Table) {
    let mut entries: Vec<(u64, Vec<u8>, Value, Value)> = table
        .entries()
        .into_iter()
        .map(|(key, value)| (hash(&key).unwrap_or(0), bytes(&key), key, value))
        .collect();
    key::sort_elements(&mut entries, |entry| (entry.0, entry.1.as_slice()));
    writer.size(entries.len() as u32);
    for (_, _, key, value) in &entries {
        writer.size(parts(key).len() as u32);
        parts(key).iter().for_each(|part| write_value(writer, part));
        if value.is_set() {
            write_value(writer, value);
        }
    }
}
