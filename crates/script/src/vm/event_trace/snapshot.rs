//! What a value and all that it has were at one time.

use std::collections::HashMap;
use std::rc::Rc;

use crate::ids::Id as _;
use crate::value::equal::{equal, hash_key};
use crate::value::table::parts;
use crate::value::{Record, Table, Value, Vector};

/// An object, known by its place: what the trace knows of it keeps it alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Object(usize);

impl Object {
    /// The object that a value is; `None` for values that have no identity.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            // One of each type is all of them: nothing can be changed. Addresses are even.
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

/// How deep values in values are followed.
pub(super) const DEEPEST: usize = 400;

/// A value as it was.
pub(super) struct Snapshot {
    pub(super) value: Value,
    /// Fields, elements, or the values of a table's entries.
    parts: Vec<Option<Rc<Self>>>,
    /// Keys of a table or set.
    keys: Vec<Value>,
}

/// One difference of an object.
pub(super) enum Delta {
    /// An object that was not there before.
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
    /// The value as it is. Sets `is_cut` if it has values that are nested deeper than [`DEEPEST`], which are left out.
    pub(super) fn new(value: &Value, is_cut: &mut bool) -> Rc<Self> {
        Self::within(value, &mut Vec::new(), is_cut)
    }

    /// The same, inside of objects: what has itself is not followed again.
    fn within(value: &Value, open: &mut Vec<Object>, is_cut: &mut bool) -> Rc<Self> {
        let mut snapshot = Self { value: value.clone(), parts: Vec::new(), keys: Vec::new() };
        let Some(object) = Object::of(value) else { return Rc::new(snapshot) };
        let is_too_deep = open.len() >= DEEPEST;
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

    /// Adds what differs from an earlier snapshot of the same object.
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
        for (place, key) in self.keys.iter().enumerate() {
            let part = self.parts.get(place).and_then(Option::as_ref);
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

    /// Whether this is the same object as before, or an equal value without identity.
    fn continues(&self, before: &Self) -> bool {
        match (Object::of(&self.value), Object::of(&before.value)) {
            (None, None) => equal(&self.value, &before.value),
            (one, other) => one == other,
        }
    }
}

/// Keys with their places.
struct Keys<'s> {
    all: &'s [Value],
    places: HashMap<u64, Vec<usize>>,
}

impl<'s> Keys<'s> {
    fn new(all: &'s [Value]) -> Self {
        let mut places = HashMap::<u64, Vec<usize>>::new();
        for (place, key) in all.iter().enumerate() {
            places.entry(hash_key(parts(key))).or_default().push(place);
        }
        Self { all, places }
    }

    fn find(&self, key: &Value) -> Option<usize> {
        let places = self.places.get(&hash_key(parts(key)))?;
        let is_it = |place: &&usize| self.all.get(**place).is_some_and(|other| equal(key, other));
        places.iter().find(is_it).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TypeId;

    #[test]
    fn values_are_followed_to_the_limit() {
        for (levels, followed) in [(10, 10), (DEEPEST, DEEPEST), (1_000, DEEPEST)] {
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
            assert_eq!((depth, is_cut), (followed, levels > DEEPEST), "{levels} levels");
        }
    }
}
