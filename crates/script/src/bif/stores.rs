//! Key-value stores of the Broker framework, without peers.
//!
//! All entries are held in memory. A store with a database also writes them there, and reads them when the
//! store is opened. Changes within a second are one transaction; closing the store and the end of the run commit it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::data::{Data, wrap};
use super::store_database::{self, Database, Entry};
use super::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::value::{OpaqueValue, Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The content of a store.
#[derive(Debug, Default)]
struct Store {
    name: String,
    entries: BTreeMap<Data, Entry>,
    closed: bool,
    database: Option<Database>,
    /// The error after which the database is no longer used, until it is reported.
    failure: Option<String>,
}

/// A shared reference to a store, as an opaque value.
#[derive(Clone, Debug)]
struct Handle(Rc<RefCell<Store>>);

/// All stores by name.
#[derive(Default)]
pub struct Stores(BTreeMap<String, Value>);

impl Stores {
    /// Whether any store exists.
    pub(super) fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Commits changes that are due, or all. Returns the stores whose databases failed.
    fn commit(&mut self, all: bool) -> Vec<Rc<RefCell<Store>>> {
        let mut failed = Vec::new();
        for value in self.0.values() {
            let Value::Opaque(store) = value else { continue };
            store.with(|handle: &mut Handle| {
                let mut store = handle.0.borrow_mut();
                store.commit(all);
                if store.failure.is_some() {
                    failed.push(Rc::clone(&handle.0));
                }
            });
        }
        failed
    }
}

impl Store {
    /// The value of a key that has not expired.
    fn get(&mut self, key: &Data, now: f64) -> Option<&mut Entry> {
        let over = self.entries.get(key)?.expires.is_some_and(|expires| expires <= now);
        if over {
            self.entries.remove(key);
            self.save(key);
        }
        self.entries.get_mut(key)
    }

    /// Writes the entry of a key to the database, or removes it if the key has no entry.
    fn save(&mut self, key: &Data) {
        let entry = self.entries.get(key);
        let done = self.database.as_mut().map(|database| database.save(key, entry));
        self.check(done);
    }

    /// Removes all entries.
    fn clear(&mut self) {
        self.entries.clear();
        let done = self.database.as_mut().map(Database::clear);
        self.check(done);
    }

    fn commit(&mut self, all: bool) {
        let done = self.database.as_mut().map(|database| database.commit(all));
        self.check(done);
    }

    /// Closes the database after an operation that failed.
    fn check(&mut self, done: Option<std::result::Result<(), String>>) {
        if let Some(Err(error)) = done {
            self.database = None;
            self.failure = Some(error);
        }
    }

    /// The entry of a key, for changes; created with the value `first` if it does not exist.
    fn entry_or_insert(&mut self, key: Data, first: Data, now: f64) -> &mut Entry {
        let _ = self.get(&key, now);
        self.entries.entry(key).or_insert(Entry { data: first, expires: None })
    }
}

/// The functions of stores.
pub(super) const TABLE: Table = &[
    // Without peers, only the number of stores is nonzero.
    ("get_broker_stats", |vm, _| {
        let mut counts = [0; 9];
        counts[1] = vm.m.state.stores.0.len() as u64;
        let values = counts.map(Value::Count).into();
        Ok(Value::Record(Record::new(vm.result_type(), values)))
    }),
    ("Broker::__create_master", |vm, a| {
        let name = arg(a, 0).text();
        if let Some(known) = vm.m.state.stores.0.get(&name) {
            return Ok(known.clone());
        }
        let memory = vm.enum_named("Broker::MEMORY");
        let mut store = Store { name: name.clone(), ..Store::default() };
        if !crate::value::equal::equal(&memory, arg(a, 1)) {
            match open(vm, &name, arg(a, 2)) {
                Ok((database, entries)) => {
                    (store.database, store.entries) = (Some(database), entries);
                }
                Err(error) => {
                    if let Some(error) = error {
                        let text = format!("Failed to attach master store {name}: {error}");
                        vm.report(Severity::Error, text);
                        vm.builtin_error(format!("Could not create Broker master store '{name}'"));
                    }
                    store.closed = true;
                    let handle = Handle(Rc::new(RefCell::new(store)));
                    return Ok(Value::Opaque(OpaqueValue::new(vm.result_type(), handle)));
                }
            }
        }
        let handle = Handle(Rc::new(RefCell::new(store)));
        let value = Value::Opaque(OpaqueValue::new(vm.result_type(), handle));
        vm.m.state.stores.0.insert(name, value.clone());
        Ok(value)
    }),
    ("Broker::__create_clone", |vm, a| {
        let name = arg(a, 0).text();
        if let Some(known) = vm.m.state.stores.0.get(&name) {
            return Ok(known.clone());
        }
        // A clone needs a master on another node, and this process has no peers.
        vm.builtin_error(format!("Could not create clone of Broker store '{name}'"));
        let store = Store { name, closed: true, ..Store::default() };
        let handle = Handle(Rc::new(RefCell::new(store)));
        Ok(Value::Opaque(OpaqueValue::new(vm.result_type(), handle)))
    }),
    ("Broker::__is_closed", |vm, a| match handle(a) {
        Some(store) => Ok(Value::Bool(store.borrow().closed)),
        None => Err(vm.builtin_exception("invalid Broker store handle")),
    }),
    ("Broker::__close", |vm, a| {
        let Some(store) = opened(vm, a) else { return Ok(Value::Bool(false)) };
        store.borrow_mut().commit(true);
        report_failure(vm, &store);
        let mut closed = store.borrow_mut();
        (closed.closed, closed.database) = (true, None);
        vm.m.state.stores.0.remove(&closed.name);
        Ok(Value::Bool(true))
    }),
    ("Broker::__store_name", |vm, a| match handle(a) {
        Some(store) => Ok(Value::string(&store.borrow().name)),
        None => Err(vm.builtin_exception("invalid Broker store handle")),
    }),
    ("Broker::__exists", |vm, a| {
        query(vm, a, &["key"], |store, operands, now| {
            let [key] = operands else { return None };
            Some(Data::Bool(store.get(key, now).is_some()))
        })
    }),
    ("Broker::__get", |vm, a| {
        query(vm, a, &["key"], |store, operands, now| {
            let [key] = operands else { return None };
            store.get(key, now).map(|entry| entry.data.clone())
        })
    }),
    ("Broker::__put_unique", |vm, a| {
        let expires = expiry(vm, arg(a, 3));
        query(vm, a, &["key", "value"], |store, operands, now| {
            let [key, value] = operands else { return None };
            let is_new = store.get(key, now).is_none();
            if is_new {
                store.entries.insert(key.clone(), Entry { data: value.clone(), expires });
                store.save(key);
            }
            Some(Data::Bool(is_new))
        })
    }),
    ("Broker::__get_index_from_value", |vm, a| {
        query(vm, a, &["key", "index"], |store, operands, now| {
            let [key, index] = operands else { return None };
            match &store.get(key, now)?.data {
                Data::Set(set) => Some(Data::Bool(set.contains(index))),
                Data::Table(table) => table.get(index).cloned(),
                Data::Vector(vector) => match index {
                    Data::Count(at) => vector.get(usize::try_from(*at).ok()?).cloned(),
                    _ => None,
                },
                _ => None,
            }
        })
    }),
    ("Broker::__keys", |vm, a| {
        let mut over = Vec::new();
        query(vm, a, &[], |store, _, now| {
            let is_over = |entry: &Entry| entry.expires.is_some_and(|expires| expires <= now);
            for (key, _) in store.entries.extract_if(.., |_, entry| is_over(entry)) {
                over.push(key);
            }
            over.iter().for_each(|key| store.save(key));
            Some(Data::Set(store.entries.keys().cloned().collect()))
        })
    }),
    ("Broker::__put", |vm, a| {
        let expires = expiry(vm, arg(a, 3));
        change(vm, a, &["key", "value"], |store, operands, _| {
            if let [key, value] = operands {
                store.entries.insert(key.clone(), Entry { data: value.clone(), expires });
            }
        })
    }),
    ("Broker::__erase", |vm, a| {
        change(vm, a, &["key"], |store, operands, _| {
            if let [key] = operands {
                store.entries.remove(key);
            }
        })
    }),
    ("Broker::__increment", |vm, a| {
        let zero = zero_of(vm, arg(a, 2));
        update(vm, a, &["key", "amount"], zero, |data, operands| match operands {
            [amount] => data.add(amount.clone()),
            _ => false,
        })
    }),
    ("Broker::__decrement", |vm, a| {
        let zero = zero_of(vm, arg(a, 2));
        update(vm, a, &["key", "amount"], zero, |data, operands| match operands {
            [amount] => data.remove(amount),
            _ => false,
        })
    }),
    ("Broker::__append", |vm, a| {
        let empty = Data::String(Vec::new());
        update(vm, a, &["key", "value"], empty, |data, operands| match (data, operands) {
            (Data::String(text), [Data::String(more)]) => {
                text.extend_from_slice(more);
                true
            }
            _ => false,
        })
    }),
    ("Broker::__insert_into_set", |vm, a| {
        let empty = Data::Set(std::collections::BTreeSet::new());
        update(vm, a, &["key", "value"], empty, |data, operands| match (data, operands) {
            (Data::Set(set), [element]) => {
                set.insert(element.clone());
                true
            }
            _ => false,
        })
    }),
    ("Broker::__insert_into_table", |vm, a| {
        let empty = Data::Table(BTreeMap::new());
        update(vm, a, &["key", "index", "value"], empty, |data, operands| match (data, operands) {
            (Data::Table(table), [index, value]) => {
                table.insert(index.clone(), value.clone());
                true
            }
            _ => false,
        })
    }),
    ("Broker::__remove_from", |vm, a| {
        update(vm, a, &["key", "index"], Data::Nil, |data, operands| match operands {
            [index] if matches!(data, Data::Set(_) | Data::Table(_)) => data.remove(index),
            _ => false,
        })
    }),
    ("Broker::__push", |vm, a| {
        let empty = Data::Vector(Vec::new());
        update(vm, a, &["key", "value"], empty, |data, operands| match (data, operands) {
            (Data::Vector(vector), [value]) => {
                vector.push(value.clone());
                true
            }
            _ => false,
        })
    }),
    ("Broker::__pop", |vm, a| {
        update(vm, a, &["key"], Data::Nil, |data, _| match data {
            Data::Vector(vector) => vector.pop().is_some(),
            _ => false,
        })
    }),
    ("Broker::__clear", |vm, a| change(vm, a, &[], |store, _, _| store.clear())),
];

fn handle(args: &[Value]) -> Option<Rc<RefCell<Store>>> {
    arg(args, 0).opaque()?.with(|handle: &mut Handle| Rc::clone(&handle.0))
}

/// The store in the first argument; reports an error if it is not open.
fn opened(vm: &mut Vm<'_>, args: &[Value]) -> Option<Rc<RefCell<Store>>> {
    let store = handle(args).filter(|store| !store.borrow().closed);
    if store.is_none() {
        vm.builtin_error_with("invalid Broker store handle", arg(args, 0));
    }
    store
}

/// The data of the arguments after the store; reports an error if one cannot be converted.
fn operands(vm: &mut Vm<'_>, args: &[Value], names: &[&str]) -> Option<Vec<Data>> {
    let mut all = Vec::with_capacity(names.len());
    for (position, name) in names.iter().enumerate() {
        let value = arg(args, position + 1);
        match Data::from_value(vm, value) {
            Some(data) => all.push(data),
            None => {
                let text = format!("invalid Broker data conversion for {name} argument");
                vm.builtin_error_with(&text, value);
                return None;
            }
        }
    }
    Some(all)
}

/// The expiration time of a value that is stored now with this interval.
fn expiry(vm: &Vm<'_>, interval: &Value) -> Option<f64> {
    let seconds = interval.double();
    (seconds > 0.0).then_some(vm.m.now + seconds)
}

fn zero_of(vm: &Vm<'_>, amount: &Value) -> Data {
    match Data::from_value(vm, amount) {
        Some(Data::Int(_)) => Data::Int(0),
        Some(Data::Count(_)) | None => Data::Count(0),
        Some(other) => {
            // A zero of the same kind: the value subtracted from itself.
            let mut zero = other.clone();
            zero.remove(&other);
            zero
        }
    }
}

/// Returns the result of a query, which is only allowed in the condition of a `when` with a timeout.
fn query(
    vm: &mut Vm<'_>,
    args: &[Value],
    names: &[&str],
    f: impl FnOnce(&mut Store, &[Data], f64) -> Option<Data>,
) -> Result<Value> {
    let failed = |vm: &Vm<'_>| result(vm, None);
    let Some(store) = opened(vm, args) else { return Ok(failed(vm)) };
    let Some(operands) = operands(vm, args, names) else { return Ok(failed(vm)) };
    if !vm.m.whens.is_evaluating() {
        vm.builtin_error("Broker queries can only be called inside when-condition");
        return Ok(failed(vm));
    }
    let now = vm.m.now;
    let found = f(&mut store.borrow_mut(), &operands, now);
    report_failure(vm, &store);
    Ok(result(vm, found))
}

fn change(
    vm: &mut Vm<'_>,
    args: &[Value],
    names: &[&str],
    f: impl FnOnce(&mut Store, &[Data], f64),
) -> Result<Value> {
    let Some(store) = opened(vm, args) else { return Ok(Value::Bool(false)) };
    let Some(operands) = operands(vm, args, names) else { return Ok(Value::Bool(false)) };
    let now = vm.m.now;
    f(&mut store.borrow_mut(), &operands, now);
    if let [key, ..] = operands.as_slice() {
        store.borrow_mut().save(key);
    }
    report_failure(vm, &store);
    Ok(Value::Bool(true))
}

/// Reports an error after which a store continues without its database.
fn report_failure(vm: &mut Vm<'_>, store: &RefCell<Store>) {
    let failure = store.borrow_mut().failure.take();
    if let Some(error) = failure {
        let name = store.borrow().name.clone();
        let text = format!("Broker store '{name}' is only in memory from now on: {error}");
        vm.report(Severity::Error, text);
    }
}

/// Commits changes that are due, or all changes; reports errors of databases.
pub(super) fn commit(vm: &mut Vm<'_>, all: bool) {
    for store in vm.m.state.stores.commit(all) {
        report_failure(vm, &store);
    }
}

/// Opens the database of a new store and reads its entries; `None` if an error was reported.
fn open(
    vm: &mut Vm<'_>,
    name: &str,
    options: &Value,
) -> std::result::Result<(Database, BTreeMap<Data, Entry>), Option<String>> {
    if super::system::refused_in_sandbox(vm, "a database") {
        return Err(None);
    }
    let options = super::log::field(vm, options, "sqlite");
    let path = super::log::field(vm, &options, "path").text();
    let pragma = |vm: &Vm<'_>, field: &str, prefix: &str| {
        let value = super::log::field(vm, &options, field);
        let name = value.is_set().then(|| super::json::name_of(vm, &value));
        name.and_then(|name| name.rsplit_once(prefix).map(|(_, value)| value.to_owned()))
    };
    let failure_mode = super::log::field(vm, &options, "failure_mode");
    let deletes = failure_mode.is_set()
        && super::json::name_of(vm, &failure_mode).ends_with("SQLITE_FAILURE_MODE_DELETE");
    let config = store_database::Config {
        path: if path.is_empty() { format!("{name}.sqlite") } else { path },
        synchronous: pragma(vm, "synchronous", "SQLITE_SYNCHRONOUS_"),
        journal_mode: pragma(vm, "journal_mode", "SQLITE_JOURNAL_MODE_"),
        is_checked: super::log::field(vm, &options, "integrity_check").truth(),
        deletes_corrupt: deletes,
    };
    Database::open(&config).map_err(Some)
}

/// Changes the value of a key, which starts with `first`; a change that does not fit has no effect.
fn update(
    vm: &mut Vm<'_>,
    args: &[Value],
    names: &[&str],
    first: Data,
    f: impl FnOnce(&mut Data, &[Data]) -> bool,
) -> Result<Value> {
    let expires = expiry(vm, arg(args, names.len() + 1));
    change(vm, args, names, |store, operands, now| {
        let [key, rest @ ..] = operands else { return };
        if first == Data::Nil && store.get(key, now).is_none() {
            return;
        }
        let entry = store.entry_or_insert(key.clone(), first, now);
        let mut data = entry.data.clone();
        if f(&mut data, rest) {
            entry.data = data;
            entry.expires = expires.or(entry.expires);
        }
    })
}

/// A `Broker::QueryResult`: success with the data, or failure.
fn result(vm: &Vm<'_>, found: Option<Data>) -> Value {
    let status = if found.is_some() { "Broker::SUCCESS" } else { "Broker::FAILURE" };
    let ty = vm.type_named("Broker::QueryResult").unwrap_or(TypeId::VOID);
    let data = found.and_then(|data| wrap(vm, data)).unwrap_or_else(|| super::data::nothing(vm));
    Value::Record(Record::new(ty, vec![vm.enum_named(status), data]))
}
