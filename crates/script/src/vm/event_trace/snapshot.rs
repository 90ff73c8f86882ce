//! Snapshots of values with all their parts.

use std::collections::HashMap;
use std::rc::Rc;

use crate::ids::Id as _;
use crate::value::equal::{equal, hash_key};
use crate::value::table::parts;
use crate::value::{Record, Table, Value, Vector};

/// An object, identified by its address. Snapshots keep objects alive, so addresses are not reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Object(usize);

impl Object {
    /// The object of a value; `None` for values without identity.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            // Records without fields cannot change: all of a type count as one object. Addresses are even, so this number is odd.
            Value::Record(record) if record.fields().is_empty() => {
                Some(Self(record.ty().index() * 2 + 1))
            }
            Value::Record(_) | Value::Table(_) | Value::Vector(_) | Value::Opaque(_) => {
                value.address().map(Self)
            }
            Value::File(file) => Some(Self(Rc::as_ptr(file) as usize)),
            _ => None,
        }
    }
}

/// Maximum depth of nested values in a snapshot.
pub(super) const MAX_DEPTH: usize = 400;

/// A value with its parts at the time of the snapshot.
pub(super) struct Snapshot {
    pub(super) value: Value,
    /// Fields, elements, or the values of a table's entries.
    parts: Vec<Option<Rc<Self>>>,
    /// Keys of a table or set.
    keys: Vec<Value>,
}

/// A difference between two snapshots of an object.
pub(super) enum Delta {
    /// A new object.
    Create(Value),
    /// Field, new value.
    SetField(Rc<Record>, usize, Value),
    RemoveField(Rc<Record>, usize),
    /// Key, new value: unset for sets.
    SetEntry(Rc<Table>, Value, Value),
    RemoveEntry(Rc<Table>, Value),
    /// Index, new value.
    SetElement(Rc<Vector>, usize, Value),
}

impl Snapshot {
    /// A snapshot of a value. Omits values nested deeper than [`MAX_DEPTH`], and sets `is_cut` if there are any.
    pub(super) fn new(value: &Value, is_cut: &mut bool) -> Rc<Self> {
        Self::within(value, &mut Vec::new(), is_cut)
    }

    /// Like [`new`](Self::new), for a part of the objects `open`, which are not visited again.
    fn within(value: &Value, open: &mut Vec<Object>, is_cut: &mut bool) -> Rc<Self> {
        let mut snapshot = Self { value: value.clone(), parts: Vec::new(), keys: Vec::new() };
        let Some(object) = Object::from_value(value) else { return Rc::new(snapshot) };
        let is_too_deep = open.len() >= MAX_DEPTH;
        *is_cut |= is_too_deep;
        if is_too_deep || open.contains(&object) {
            return Rc::new(snapshot);
        }
        open.push(object);
        let mut part = |value: &Value| value.is_set().then(|| Self::within(value, open, is_cut));
        match value {
            Value::Record(record) => snapshot.parts = record.fields().iter().map(part).collect(),
            Value::Vector(vector) => snapshot.parts = vector.items().iter().map(part).collect(),
            Value::Table(table) => {
                for (key, value) in table.entries() {
                    snapshot.parts.push(part(&value));
                    snapshot.keys.push(key);
                }
            }
            _ => {}
        }
        open.pop();
        Rc::new(snapshot)
    }

    /// Appends the differences from an earlier snapshot of the same object.
    pub(super) fn compare(&self, before: &Self, deltas: &mut Vec<Delta>) {
        match &self.value {
            Value::Record(record) => self.compare_record(before, record, deltas),
            Value::Table(table) => self.compare_table(before, table, deltas),
            Value::Vector(vector) => self.compare_vector(before, vector, deltas),
            _ => {}
        }
    }

    fn compare_record(&self, before: &Self, record: &Rc<Record>, deltas: &mut Vec<Delta>) {
        for (index, part) in self.parts.iter().enumerate() {
            match (part, before.parts.get(index).and_then(Option::as_ref)) {
                (Some(part), Some(before)) if part.continues(before) => {
                    part.compare(before, deltas);
                }
                (Some(part), _) => {
                    deltas.push(Delta::SetField(Rc::clone(record), index, part.value.clone()));
                }
                (None, Some(_)) => deltas.push(Delta::RemoveField(Rc::clone(record), index)),
                (None, None) => {}
            }
        }
    }

    fn compare_table(&self, before: &Self, table: &Rc<Table>, deltas: &mut Vec<Delta>) {
        let earlier = Keys::new(&before.keys);
        let mut stays = vec![false; before.keys.len()];
        let mut changes = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            let part = self.parts.get(index).and_then(Option::as_ref);
            let value = || part.map_or(Value::Unset, |part| part.value.clone());
            let Some(found) = earlier.find(key) else {
                deltas.push(Delta::SetEntry(Rc::clone(table), key.clone(), value()));
                continue;
            };
            if let Some(stays) = stays.get_mut(found) {
                *stays = true;
            }
            match (part, before.parts.get(found).and_then(Option::as_ref)) {
                (Some(part), Some(before)) if part.continues(before) => {
                    part.compare(before, &mut changes);
                }
                (None, None) => {}
                _ => changes.push(Delta::SetEntry(Rc::clone(table), key.clone(), value())),
            }
        }
        for (key, stays) in before.keys.iter().zip(stays) {
            if !stays {
                deltas.push(Delta::RemoveEntry(Rc::clone(table), key.clone()));
            }
        }
        deltas.append(&mut changes);
    }

    fn compare_vector(&self, before: &Self, vector: &Rc<Vector>, deltas: &mut Vec<Delta>) {
        let has_new_hole = self.parts.iter().enumerate().any(|(index, part)| {
            part.is_none() && before.parts.get(index).is_some_and(Option::is_some)
        });
        if self.parts.len() < before.parts.len() || has_new_hole {
            return deltas.push(Delta::Create(self.value.clone()));
        }
        for (index, part) in self.parts.iter().enumerate() {
            let Some(part) = part else { continue };
            match before.parts.get(index).and_then(Option::as_ref) {
                Some(before) if part.continues(before) => part.compare(before, deltas),
                _ => deltas.push(Delta::SetElement(Rc::clone(vector), index, part.value.clone())),
            }
        }
    }

    /// Whether this is the same object as in `before`, or an equal value without identity.
    fn continues(&self, before: &Self) -> bool {
        match (Object::from_value(&self.value), Object::from_value(&before.value)) {
            (None, None) => equal(&self.value, &before.value),
            (one, other) => one == other,
        }
    }
}

/// An index of the keys of a table.
struct Keys<'s> {
    all: &'s [Value],
    indexes: HashMap<u64, Vec<usize>>,
}

impl<'s> Keys<'s> {
    fn new(all: &'s [Value]) -> Self {
        let mut indexes = HashMap::<u64, Vec<usize>>::new();
        for (index, key) in all.iter().enumerate() {
            indexes.entry(hash_key(parts(key))).or_default().push(index);
        }
        Self { all, indexes }
    }

    fn find(&self, key: &Value) -> Option<usize> {
        let indexes = self.indexes.get(&hash_key(parts(key)))?;
        let is_match =
            |index: &&usize| self.all.get(**index).is_some_and(|other| equal(key, other));
        indexes.iter().find(is_match).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TypeId;

    #[test]
    fn snapshots_end_at_the_maximum_depth() {
        for (levels, visited) in [(10, 10), (MAX_DEPTH, MAX_DEPTH), (1_000, MAX_DEPTH)] {
            let mut value = Value::Count(1);
            for _ in 0..levels {
                value = Value::Vector(Vector::new(TypeId::ANY, vec![value]));
            }
            let mut is_cut = false;
            let mut snapshot = Snapshot::new(&value, &mut is_cut);
            let mut depth = 0;
            while let Some(Some(inner)) = snapshot.parts.first() {
                snapshot = Rc::clone(inner);
                depth += 1;
            }
            assert_eq!((depth, is_cut), (visited, levels > MAX_DEPTH), "{levels} levels");
        }
    }
}
