//! Statements that construct or change values.

use std::rc::Rc;

use super::constant::{Kind, expression};
use super::snapshot::{Delta, MAX_DEPTH, Object, Snapshot};
use super::{Change, Deferred, EventTrace};
use crate::describe::type_text;
use crate::ids::TypeId;
use crate::program::Program;
use crate::types::Type;
use crate::value::table::parts;
use crate::value::{Record, Table, Value};

impl EventTrace {
    /// Records an argument: adds the statements that construct it, or its changes since the last snapshot.
    pub(super) fn record_argument(&mut self, program: &Program, value: &Value) {
        let Some(object) = Object::from_value(value).filter(|_| !is_untyped(program, value)) else {
            return;
        };
        let Some(before) = self.snapshots.get(&object).cloned() else {
            return self.create_object(program, object, value);
        };
        let now = Snapshot::new(value, &mut self.is_cut);
        let mut deltas = Vec::new();
        now.compare(&before, &mut deltas);
        self.add_deltas(program, deltas);
        self.used(object);
        self.snapshots.insert(object, now);
    }

    fn create_object(&mut self, program: &Program, object: Object, value: &Value) {
        self.fresh.push(object);
        // The snapshot keeps the object alive, so that its address is not reused.
        let snapshot = Snapshot::new(value, &mut self.is_cut);
        self.snapshots.insert(object, snapshot);
        self.open.push(object);
        self.add_deltas(program, vec![Delta::Create(value.clone())]);
        self.open.pop();
        self.used(object);
        if self.open.is_empty() {
            for Deferred { owner, accessor, value } in std::mem::take(&mut self.deferred) {
                let (Some(owner), Some(name)) =
                    (Object::from_value(&owner), self.name(program, &value))
                else {
                    continue;
                };
                let text = format!("{accessor} = {name}");
                self.add(Change { object: owner, text, has_left_side: true, declares: None });
            }
        }
    }

    /// Marks an object as used. If an earlier step created it, its variable becomes global.
    fn used(&mut self, object: Object) {
        if self.known.contains(&object) {
            self.shared.insert(object);
        }
    }

    /// An expression for a value; `None` for an object whose construction has not finished.
    pub(super) fn name(&mut self, program: &Program, value: &Value) -> Option<String> {
        if let Some(object) = Object::from_value(value).filter(|_| !is_untyped(program, value)) {
            if !self.names.contains_key(&object) {
                if self.open.contains(&object) {
                    return None;
                }
                if self.open.len() >= MAX_DEPTH
                    || matches!(value, Value::File(_) | Value::Opaque(_))
                {
                    self.unsupported += 1;
                    return Some("UNSUPPORTED".to_owned());
                }
                self.create_object(program, object, value);
            }
            self.used(object);
            return self.names.get(&object).cloned();
        }
        Some(match value {
            Value::List(list) => {
                let items = list.items.iter().filter_map(|item| self.name(program, item));
                items.collect::<Vec<_>>().join(", ")
            }
            Value::Time(time) => {
                let text = self.time(*time);
                if *time > 0.0 && !text.contains("__base_time") {
                    self.constants.entry(Kind::Time).or_default().insert(text.clone());
                }
                text
            }
            _ => {
                let text = expression(program, value);
                if let Some(kind) = Kind::from_value(value) {
                    self.constants.entry(kind).or_default().insert(text.clone());
                }
                text
            }
        })
    }

    fn add_deltas(&mut self, program: &Program, deltas: Vec<Delta>) {
        let mut added = Vec::new();
        for delta in deltas {
            let Some((object, text, has_left_side)) = self.statement(program, &delta) else {
                continue;
            };
            let mut declares = None;
            if let Delta::Create(value) = &delta
                && !self.names.contains_key(&object)
            {
                let is_made = !matches!(value, Value::File(_) | Value::Opaque(_));
                let kind = if is_made { "val" } else { "UNSUPPORTED" };
                self.names.insert(object, format!("__{kind}{}", self.names.len()));
                declares = Some(type_text(program, value.ty()));
            }
            // Two parts of a value may be the same object.
            let whole = (object, text);
            if !added.contains(&whole) {
                self.used(object);
                let text = whole.1.clone();
                self.add(Change { object, text, has_left_side, declares });
                added.push(whole);
            }
        }
    }

    /// The object that a delta changes, the text of the change, and whether the object's name precedes it.
    fn statement(&mut self, program: &Program, delta: &Delta) -> Option<(Object, String, bool)> {
        match delta {
            Delta::Create(value) => {
                let text = self.constructor(program, value);
                Some((Object::from_value(value)?, format!(" = {text}"), true))
            }
            Delta::SetField(record, index, value) => {
                let field = field_name(program, record, *index);
                let object = Object::from_value(&Value::Record(Rc::clone(record)))?;
                Some((object, format!("${field} = {}", self.name(program, value)?), true))
            }
            Delta::RemoveField(record, index) => {
                let value = Value::Record(Rc::clone(record));
                let field = field_name(program, record, *index);
                let text = format!("delete {}${field}", self.name(program, &value)?);
                Some((Object::from_value(&value)?, text, false))
            }
            Delta::SetEntry(table, key, value) => {
                let owner = Value::Table(Rc::clone(table));
                let key = self.name(program, key)?;
                if value.is_set() {
                    let text = format!("[{key}] = {}", self.name(program, value)?);
                    return Some((Object::from_value(&owner)?, text, true));
                }
                let text = format!("add {}[{key}]", self.name(program, &owner)?);
                Some((Object::from_value(&owner)?, text, false))
            }
            Delta::RemoveEntry(table, key) => {
                let owner = Value::Table(Rc::clone(table));
                let key = self.name(program, key)?;
                let text = format!("delete {}[{key}]", self.name(program, &owner)?);
                Some((Object::from_value(&owner)?, text, false))
            }
            Delta::SetElement(vector, index, value) => {
                let object = Object::from_value(&Value::Vector(Rc::clone(vector)))?;
                Some((object, format!("[{index}] = {}", self.name(program, value)?), true))
            }
        }
    }

    /// The expression that constructs an object. Parts whose construction has not finished are deferred.
    fn constructor(&mut self, program: &Program, value: &Value) -> String {
        match value {
            Value::Record(record) => self.record(program, value, record),
            Value::Table(table) => self.table(program, value, table),
            Value::Vector(vector) => {
                let mut items = Vec::new();
                let mut is_plain = true;
                for (index, item) in
                    vector.items().iter().enumerate().filter(|(_, item)| item.is_set())
                {
                    is_plain &= items.len() == index;
                    match self.name(program, item) {
                        Some(name) if is_plain => items.push(name),
                        _ => {
                            is_plain = false;
                            self.defer(value, format!("[{index}]"), item);
                        }
                    }
                }
                format!("vector({})", items.join(", "))
            }
            _ => {
                self.unsupported += 1;
                format!("UNSUPPORTED {}", type_text(program, value.ty()))
            }
        }
    }

    fn record(&mut self, program: &Program, value: &Value, record: &Record) -> String {
        let mut fields = Vec::new();
        for (index, part) in record.fields().iter().enumerate().filter(|(_, part)| part.is_set()) {
            let field = field_name(program, record, index);
            match self.name(program, part) {
                Some(name) => fields.push(format!("${field}={name}")),
                None => self.defer(value, format!("${field}"), part),
            }
        }
        let name = type_name(program, record.ty(), "record");
        format!("{name}({})", fields.join(", "))
    }

    fn table(&mut self, program: &Program, value: &Value, table: &Table) -> String {
        let is_set = program.types.is_set(table.ty());
        let mut entries = Vec::new();
        for (key, part) in table.entries() {
            let Some(index) = self.name(program, &key) else { continue };
            if is_set {
                let is_single = parts(&key).len() == 1;
                entries.push(if is_single { index } else { format!("[{index}]") });
                continue;
            }
            match self.name(program, &part) {
                Some(name) => entries.push(format!("[{index}] = {name}")),
                None => self.defer(value, format!("[{index}]"), &part),
            }
        }
        let name = type_name(program, table.ty(), if is_set { "set" } else { "table" });
        format!("{name}({})", entries.join(", "))
    }

    fn defer(&mut self, owner: &Value, accessor: String, value: &Value) {
        self.deferred.push(Deferred { owner: owner.clone(), accessor, value: value.clone() });
    }
}

fn field_name<'p>(program: &'p Program, record: &Record, index: usize) -> &'p str {
    let field = program.types.record(record.ty()).and_then(|ty| ty.fields.get(index));
    field.map_or("", |field| program.name(field.name))
}

fn type_name<'p>(program: &'p Program, ty: TypeId, without: &'p str) -> &'p str {
    program.types.data(ty).name.map_or(without, |name| program.name(name))
}

/// Whether a value is an empty container of an unspecified type.
fn is_untyped(program: &Program, value: &Value) -> bool {
    match (value, program.types.get(value.ty())) {
        (Value::Table(_), Type::Table(table)) => table.index.is_empty(),
        (Value::Vector(_), Type::Vector(element)) => *element == TypeId::VOID,
        _ => false,
    }
}
