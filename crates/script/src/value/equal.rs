//! Equality, order and hashes of values, for table keys and operators.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

use super::{Table, Value};

/// Whether two values are equal: by content; functions by their id; opaque values and files by identity.
#[must_use]
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Count(a), Value::Count(b)) => a == b,
        (Value::Int(a), Value::Count(b)) | (Value::Count(b), Value::Int(a)) => {
            u64::try_from(*a) == Ok(*b)
        }
        (Value::Enum(_, a), Value::Enum(_, b)) => a == b,
        (
            Value::Double(a) | Value::Time(a) | Value::Interval(a),
            Value::Double(b) | Value::Time(b) | Value::Interval(b),
        ) => a == b,
        (Value::Port(a), Value::Port(b)) => a == b,
        (Value::Addr4(a), Value::Addr4(b)) => a == b,
        (Value::Addr6(a), Value::Addr6(b)) => a == b,
        (Value::Net4(a, v), Value::Net4(b, w)) => a == b && v == w,
        (Value::Net6(a), Value::Net6(b)) => a == b,
        (Value::Short(a), Value::Short(b)) => a.bytes() == b.bytes(),
        (Value::Long(a), Value::Long(b)) => a == b,
        (Value::Pattern(a), Value::Pattern(b)) => a.text() == b.text(),
        (Value::Record(a), Value::Record(b)) => {
            Rc::ptr_eq(a, b) || same_key(&a.fields(), &b.fields())
        }
        (Value::Vector(a), Value::Vector(b)) => {
            Rc::ptr_eq(a, b) || same_key(&a.items(), &b.items())
        }
        (Value::List(a), Value::List(b)) => same_key(&a.items, &b.items),
        (Value::Table(a), Value::Table(b)) => Rc::ptr_eq(a, b) || same_table(a, b),
        (Value::Func(a), Value::Func(b)) => a.func == b.func,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Unset, Value::Unset) => true,
        _ => one.same_object(other),
    }
}

/// Whether two keys, given in parts, are the same.
#[must_use]
pub fn same_key(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_part(a, b))
}

/// Whether two parts of keys are the same: like [`equal`], but doubles are compared by their bits, so 0.0 and -0.0 are two keys.
#[inline]
#[must_use]
pub fn same_part(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (
            Value::Double(a) | Value::Time(a) | Value::Interval(a),
            Value::Double(b) | Value::Time(b) | Value::Interval(b),
        ) => a.to_bits() == b.to_bits(),
        _ => equal(one, other),
    }
}

fn same_table(one: &Table, other: &Table) -> bool {
    one.len() == other.len()
        && one.entries().iter().all(|(key, value)| {
            other.get(super::table::parts(key)).is_some_and(|found| equal(&found, value))
        })
}

/// Whether all keys of `one` are in `other`.
#[must_use]
pub fn subset(one: &Table, other: &Table) -> bool {
    one.len() <= other.len()
        && one.keys().iter().all(|key| other.find(super::table::parts(key)).is_some())
}

/// The order of two values of an atomic type; `None` for other types and for NaN.
#[must_use]
pub fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    Some(match (one, other) {
        (Value::Int(a), Value::Int(b)) | (Value::Enum(_, a), Value::Enum(_, b)) => a.cmp(b),
        (Value::Count(a), Value::Count(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (
            Value::Double(a) | Value::Time(a) | Value::Interval(a),
            Value::Double(b) | Value::Time(b) | Value::Interval(b),
        ) => return a.partial_cmp(b),
        (Value::Port(a), Value::Port(b)) => {
            (a.protocol as u8, a.number).cmp(&(b.protocol as u8, b.number))
        }
        (Value::Short(_) | Value::Long(_), Value::Short(_) | Value::Long(_)) => {
            one.str_bytes().cmp(other.str_bytes())
        }
        (Value::Addr4(_) | Value::Addr6(_), Value::Addr4(_) | Value::Addr6(_)) => {
            one.addr_bytes().cmp(&other.addr_bytes())
        }
        (Value::Net4(..) | Value::Net6(_), Value::Net4(..) | Value::Net6(_)) => {
            let (a, b) = (one.as_subnet()?, other.as_subnet()?);
            (a.prefix, a.width).cmp(&(b.prefix, b.width))
        }
        _ => return None,
    })
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    static SEED: Cell<u64> = Cell::new(random_seed());
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8) | 1
}

#[inline]
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(MULTIPLIER ^ state.rotate_left(32));
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of a key that is given in parts.
#[inline]
#[must_use]
pub fn hash_key(key: &[Value]) -> u64 {
    let mut state = SEED.get();
    for part in key {
        state = hash_value(state, part);
    }
    // The hash table takes its tag from the high bits and the bucket from the low ones.
    state ^ (state >> 29)
}

/// The hash of a key that is an IPv4 network.
#[inline]
pub(super) fn hash_net4(prefix: [u8; 4], width: u8) -> u64 {
    let state = mix_net4(SEED.get(), prefix, width);
    state ^ (state >> 29)
}

#[inline]
fn mix_net4(state: u64, prefix: [u8; 4], width: u8) -> u64 {
    mix(state, u64::from(u32::from_be_bytes(prefix)) | u64::from(width) << 32)
}

fn hash_bytes(mut state: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = mix(state, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (slot, byte) in last.iter_mut().zip(rest) {
        *slot = *byte;
    }
    mix(mix(state, u64::from_le_bytes(last)), bytes.len() as u64)
}

fn hash_value(state: u64, value: &Value) -> u64 {
    match value {
        Value::Bool(value) => mix(state, u64::from(*value)),
        Value::Int(value) | Value::Enum(_, value) => mix(state, *value as u64),
        Value::Count(value) => mix(state, *value),
        Value::Double(value) | Value::Time(value) | Value::Interval(value) => {
            mix(state, value.to_bits())
        }
        Value::Port(port) => mix(state, u64::from(port.number) | (port.protocol as u64) << 16),
        Value::Addr4(bytes) => mix(state, u64::from(u32::from_be_bytes(*bytes))),
        Value::Addr6(bytes) => hash_bytes(state, &**bytes),
        Value::Net4(bytes, width) => mix_net4(state, *bytes, *width),
        Value::Net6(net) => mix(hash_bytes(state, &net.prefix), u64::from(net.width)),
        Value::Short(text) => hash_bytes(state, text.bytes()),
        Value::Long(text) => hash_bytes(state, text),
        Value::Pattern(pattern) => hash_bytes(state, pattern.text()),
        Value::Record(record) => record.fields().iter().fold(mix(state, 1), hash_value),
        Value::Vector(vector) => vector.items().iter().fold(mix(state, 2), hash_value),
        Value::List(list) => list.items.iter().fold(state, hash_value),
        Value::Table(table) => {
            // The order of entries does not matter.
            let sum = table.entries().iter().fold(0_u64, |sum, (key, value)| {
                sum.wrapping_add(hash_value(hash_value(MULTIPLIER, key), value))
            });
            mix(state, sum)
        }
        Value::Func(func) => mix(state, u64::from(func.func.0)),
        Value::Type(ty) => mix(state, u64::from(ty.0)),
        Value::Unset | Value::Iter(_) => mix(state, 7),
        Value::File(_) | Value::Opaque(_) => mix(state, 8),
    }
}
