//! The storage framework: key-value stores in databases.
//!
//! A backend is a table of an SQLite database; keys and values are JSON with the format's name as prefix. Operations return a record with
//! a code, a text and a value. Asynchronous functions do the same work; the `when` that calls them receives the result in the next drain.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Table, arg};
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::value::{OpaqueValue, Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("Storage::Sync::__open_backend", open),
    ("Storage::Sync::__close_backend", close),
    ("Storage::Sync::__put", put),
    ("Storage::Sync::__get", get),
    ("Storage::Sync::__erase", erase),
    ("Storage::Async::__open_backend", |vm, a| run_async(vm, a, open)),
    ("Storage::Async::__close_backend", |vm, a| run_async(vm, a, close)),
    ("Storage::Async::__put", |vm, a| run_async(vm, a, put)),
    ("Storage::Async::__get", |vm, a| run_async(vm, a, get)),
    ("Storage::Async::__erase", |vm, a| run_async(vm, a, erase)),
    ("Storage::is_open", |_, a| {
        let open = backend(a).is_some_and(|backend| backend.borrow().store.is_some());
        Ok(Value::Bool(open))
    }),
    ("Storage::is_forced_sync", |_, a| {
        Ok(Value::Bool(backend(a).is_some_and(|backend| backend.borrow().forced_sync)))
    }),
];

/// Name of the format, stored as prefix of keys and values.
const FORMAT: &[u8] = b"JSONv1;";

/// The open backends of a run.
#[derive(Default)]
pub struct Backends(Vec<Rc<RefCell<Backend>>>);

struct Backend {
    /// `None` after the backend was closed.
    store: Option<store::Store>,
    key_type: TypeId,
    value_type: TypeId,
    forced_sync: bool,
    counters: Option<Rc<Counters>>,
    /// Network time of the last purge of expired entries.
    purged: f64,
}

/// Metrics of a backend.
#[derive(Clone)]
struct Counters {
    /// By operation (put, get, erase), then by result (success, fail, error).
    results: [[usize; 3]; 3],
    read: usize,
    written: usize,
    expired: usize,
    page_size: usize,
    pages: usize,
}

/// An operation with a metric.
#[derive(Clone, Copy)]
enum Operation {
    Put,
    Get,
    Erase,
}

/// The opaque value of a backend.
#[derive(Clone)]
struct Handle(Rc<RefCell<Backend>>);

fn backend(args: &[Value]) -> Option<Rc<RefCell<Backend>>> {
    arg(args, 0).opaque()?.with(|handle: &mut Handle| Rc::clone(&handle.0))
}

impl Backends {
    /// Drops closed backends, and closes those that no script refers to.
    fn retain_open(&mut self) {
        self.0.retain(|backend| Rc::strong_count(backend) > 1 && backend.borrow().store.is_some());
    }
}

/// Runs an operation whose result a `when` waits for.
fn run_async(
    vm: &mut Vm<'_>,
    args: &[Value],
    operation: fn(&mut Vm<'_>, &[Value]) -> Result<Value>,
) -> Result<Value> {
    let complaint = match vm.timeout_of_condition() {
        None => Some("Asynchronous storage operations must be called via a when-condition"),
        Some(false) => Some("Asynchronous storage operations must specify a timeout block"),
        Some(true) => None,
    };
    if let Some(complaint) = complaint {
        vm.builtin_error(complaint);
        return Ok(Value::Unset);
    }
    let result = operation(vm, args)?;
    vm.answer_later(result)
}

fn operation_result(vm: &Vm<'_>, code: &str, text: Option<&str>, value: Value) -> Result<Value> {
    let code = vm.enum_named(&format!("Storage::{code}"));
    let text = text.map_or(Value::Unset, Value::string);
    Ok(Value::Record(Record::new(vm.result_type(), vec![code, text, value])))
}

/// The result of an operation; updates its metric.
fn counted(
    vm: &mut Vm<'_>,
    counters: Option<&Counters>,
    operation: Operation,
    (code, text): (&str, Option<&str>),
    value: Value,
) -> Result<Value> {
    let result = match code {
        "SUCCESS" => 0,
        "KEY_NOT_FOUND" | "KEY_EXISTS" => 1,
        _ => 2,
    };
    let counter =
        counters.and_then(|counters| counters.results.get(operation as usize)?.get(result));
    if let Some(counter) = counter {
        vm.m.state.metrics.add(*counter, 1.0);
    }
    operation_result(vm, code, text, value)
}

fn open(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let options = arg(args, 1).clone();
    let (Value::Type(key_type), Value::Type(value_type)) = (arg(args, 2), arg(args, 3)) else {
        vm.builtin_error("key and value types of a storage backend must be types");
        return operation_result(vm, "OPERATION_FAILED", None, Value::Unset);
    };
    let tag = super::json::name_of(vm, arg(args, 0));
    let forced_sync = super::log::field(vm, &options, "forced_sync").truth();
    let sqlite = super::log::field(vm, &options, "sqlite");
    let mut code = "OPERATION_FAILED";
    let opened = if super::system::refused_in_sandbox(vm, "a database") {
        Err("a sandbox has no databases".to_owned())
    } else if tag != "Storage::STORAGE_BACKEND_SQLITE" {
        Err("this backend is not built in".to_owned())
    } else if sqlite.is_set() {
        let table = super::log::field(vm, &sqlite, "table_name").text();
        let path = super::log::field(vm, &sqlite, "database_path").text();
        let busy = super::log::field(vm, &sqlite, "busy_timeout").double();
        let pragmas: Vec<(String, String)> = super::log::field(vm, &sqlite, "pragma_commands")
            .table()
            .map(|table| table.entries())
            .unwrap_or_default()
            .iter()
            .map(|(name, value)| (name.text(), value.text()))
            .collect();
        store::Store::open(&path, &table, busy, &pragmas)
            .map(|store| (store, format!("{path}-{table}")))
    } else {
        code = "INITIALIZATION_FAILED";
        Err("sqlite backend options not provided".to_owned())
    };
    let (store, config, error) = match opened {
        Ok((store, config)) => (Some(store), config, None),
        Err(error) => (None, String::new(), Some(error)),
    };
    let counters = error.is_none().then(|| Rc::new(make_counters(vm, &tag, &config)));
    let backend = Rc::new(RefCell::new(Backend {
        store,
        key_type: *key_type,
        value_type: *value_type,
        forced_sync,
        counters,
        purged: f64::NEG_INFINITY,
    }));
    vm.m.state.storage.0.push(Rc::clone(&backend));
    vm.m.state.storage.retain_open();
    let handle_type = vm.type_named("Storage::BackendHandle").unwrap_or_else(|| handle_type(vm));
    let handle = Value::Opaque(OpaqueValue::new(handle_type, Handle(backend)));
    if let Some(error) = error {
        let text = format!("Failed to open backend {tag}: {error}");
        return operation_result(vm, code, Some(&text), handle);
    }
    vm.queue_named("Storage::backend_opened", vec![arg(args, 0).clone(), options]);
    operation_result(vm, "SUCCESS", None, handle)
}

/// The type of backend handles, from the parameter of `Storage::is_open`.
fn handle_type(vm: &Vm<'_>) -> TypeId {
    vm.function_named("Storage::is_open")
        .and_then(|func| vm.p.functions.find(func))
        .and_then(|func| vm.p.types.params(func.ty).first().map(|param| param.ty))
        .unwrap_or(TypeId::ANY)
}

fn make_counters(vm: &mut Vm<'_>, tag: &str, config: &str) -> Counters {
    use super::telemetry::Kind;
    let metrics = &mut vm.m.state.metrics;
    let family = |metrics: &mut super::telemetry::Metrics, kind, name: &str, help: &str| {
        metrics.family(kind, b"zeek", name.as_bytes(), b"", help.as_bytes(), Vec::new())
    };
    let labels = |more: &[(&str, &str)]| -> Vec<(Vec<u8>, Vec<u8>)> {
        more.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    };
    let opened =
        family(metrics, Kind::Counter, "storage_backends_opened", "Number of backends opened");
    let opened = metrics.metric(opened, Vec::new());
    metrics.add(opened, 1.0);
    let own = labels(&[("config", config)]);
    let both = labels(&[("config", config), ("type", tag)]);
    let size = "storage_sqlite_database_size_bytes";
    let size = family(metrics, Kind::Gauge, size, "Storage sqlite backend size of pages");
    let page_size = metrics.metric(size, own.clone());
    let pages = "storage_sqlite_database_size_pages";
    let pages = family(metrics, Kind::Gauge, pages, "Storage sqlite backend number of pages");
    let pages = metrics.metric(pages, own);
    let read = "storage_backend_data_read_bytes";
    let read = family(metrics, Kind::Counter, read, "Bytes read from storage");
    let read = metrics.metric(read, both.clone());
    let expired = "storage_backend_expired_entries";
    let expired = family(metrics, Kind::Counter, expired, "Number of expired storage entries");
    let expired = metrics.metric(expired, both.clone());
    let results = "storage_backend_operation_results";
    let results = family(metrics, Kind::Counter, results, "Storage operation results");
    let by_result = ["put", "get", "erase"].map(|operation| {
        let [success, fail, error, _] = ["success", "fail", "error", "timeout"].map(|result| {
            let all =
                [("config", config), ("operation", operation), ("result", result), ("type", tag)];
            metrics.metric(results, labels(&all))
        });
        [success, fail, error]
    });
    let written = "storage_backend_data_written_bytes";
    let written = family(metrics, Kind::Counter, written, "Bytes written to storage");
    let written = metrics.metric(written, both);
    Counters { results: by_result, read, written, expired, page_size, pages }
}

/// Updates the metrics of backends.
pub(super) fn update_metrics(vm: &mut Vm<'_>) {
    vm.m.state.storage.retain_open();
    for backend in &vm.m.state.storage.0 {
        let backend = backend.borrow();
        if let (Some(store), Some(counters)) = (&backend.store, &backend.counters) {
            let (size, pages) = store.size();
            vm.m.state.metrics.set(counters.page_size, size);
            vm.m.state.metrics.set(counters.pages, pages);
        }
    }
}

fn close(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let store = backend(args).and_then(|backend| backend.borrow_mut().store.take());
    vm.m.state.storage.retain_open();
    match store {
        Some(_) => operation_result(vm, "SUCCESS", None, Value::Unset),
        _ => operation_result(vm, "NOT_CONNECTED", Some("Backend is closed"), Value::Unset),
    }
}

/// The text of a key or value as stored in the database.
fn encoded(vm: &Vm<'_>, value: &Value) -> Vec<u8> {
    let writer = super::json::Writer { only_log: false, prefix: None, interval_as_double: true };
    let mut text = FORMAT.to_vec();
    writer.value(vm, &mut text, value, 0);
    text
}

/// An operation's backend, with its arguments in the form of the database.
struct Opened {
    value_type: TypeId,
    key: Vec<u8>,
    counters: Option<Rc<Counters>>,
}

/// The metrics of a backend that refuses an operation, and the code and text of the error.
type Refused = (Option<Rc<Counters>>, &'static str, Option<&'static str>);

/// The backend and converted key of an operation, or the code and text of an error.
fn prepare(vm: &mut Vm<'_>, args: &[Value]) -> std::result::Result<Opened, Refused> {
    let Some(found) = backend(args) else {
        return Err((None, "OPERATION_FAILED", Some("Invalid storage handle")));
    };
    let found = found.borrow();
    let (key_type, value_type) = (found.key_type, found.value_type);
    let counters = found.counters.clone();
    if found.store.is_none() {
        return Err((counters, "NOT_CONNECTED", Some("Backend is closed")));
    }
    if !vm.is_type(arg(args, 1), key_type) {
        return Err((counters, "KEY_TYPE_MISMATCH", None));
    }
    let key = encoded(vm, arg(args, 1));
    Ok(Opened { value_type, key, counters })
}

fn put(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let opened = match prepare(vm, args) {
        Ok(opened) => opened,
        Err((counters, code, text)) => {
            let result = (code, text);
            return counted(vm, counters.as_deref(), Operation::Put, result, Value::Unset);
        }
    };
    let counters = opened.counters.as_deref();
    if !vm.is_type(arg(args, 2), opened.value_type) {
        let result = ("VAL_TYPE_MISMATCH", None);
        return counted(vm, counters, Operation::Put, result, Value::Unset);
    }
    let value = encoded(vm, arg(args, 2));
    let overwrite = arg(args, 3).truth();
    let now = vm.m.now;
    let lifetime = arg(args, 4).double();
    let expires = if lifetime > 0.0 { now + lifetime } else { 0.0 };
    let expired = purge(vm, args);
    if let (Some(counters), Ok(expired)) = (counters, &expired) {
        vm.m.state.metrics.add(counters.expired, *expired as f64);
    }
    let done = backend(args).map_or(Ok(false), |backend| match &backend.borrow().store {
        Some(_) if expired.is_err() => expired.map(|_| false),
        Some(store) => store.put(&opened.key, &value, overwrite, expires, now),
        None => Ok(false),
    });
    let error;
    let result = match done {
        Ok(true) => {
            if let Some(counters) = counters {
                vm.m.state.metrics.add(counters.written, value.len() as f64);
            }
            ("SUCCESS", None)
        }
        Ok(false) => ("KEY_EXISTS", None),
        Err(text) => {
            error = text;
            ("OPERATION_FAILED", Some(error.as_str()))
        }
    };
    counted(vm, counters, Operation::Put, result, Value::Unset)
}

/// Deletes expired entries, at most once per `Storage::expire_interval` of network time; returns their number. Only `put`
/// calls this, since only it makes a database grow.
fn purge(vm: &mut Vm<'_>, args: &[Value]) -> std::result::Result<usize, String> {
    let now = vm.m.now;
    let interval = vm.global_named("Storage::expire_interval").double();
    let Some(found) = backend(args) else { return Ok(0) };
    let mut found = found.borrow_mut();
    let Backend { store: Some(store), purged, .. } = &mut *found else { return Ok(0) };
    if now < *purged + interval {
        return Ok(0);
    }
    *purged = now;
    store.purge(now)
}

fn get(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let opened = match prepare(vm, args) {
        Ok(opened) => opened,
        Err((counters, code, text)) => {
            let result = (code, text);
            return counted(vm, counters.as_deref(), Operation::Get, result, Value::Unset);
        }
    };
    let counters = opened.counters.as_deref();
    let now = vm.m.now;
    let get = |store: &store::Store| store.get(&opened.key, now);
    let found = backend(args)
        .map_or(Ok(None), |backend| backend.borrow().store.as_ref().map_or(Ok(None), get));
    let text = match found {
        Ok(Some(text)) => text,
        Ok(None) => {
            let result = ("KEY_NOT_FOUND", None);
            return counted(vm, counters, Operation::Get, result, Value::Unset);
        }
        Err(error) => {
            let result = ("OPERATION_FAILED", Some(error.as_str()));
            return counted(vm, counters, Operation::Get, result, Value::Unset);
        }
    };
    if let Some(counters) = counters {
        vm.m.state.metrics.add(counters.read, text.len() as f64);
    }
    let json =
        text.strip_prefix(FORMAT).ok_or_else(|| "Version doesn't match".to_owned()).and_then(
            |text| crate::support::format::json::parse(text).map_err(|error| error.to_string()),
        );
    let value = match json {
        Ok(json) => match super::json::read(vm, &json, opened.value_type, None, 0) {
            Ok(value) => Ok(value),
            Err(super::json::Failed::Text(text)) => Err(text),
            Err(super::json::Failed::Stop(stop)) => return Err(stop),
        },
        Err(error) => Err(error),
    };
    match value {
        Ok(value) => counted(vm, counters, Operation::Get, ("SUCCESS", None), value),
        Err(error) => {
            let result = ("OPERATION_FAILED", Some(error.as_str()));
            counted(vm, counters, Operation::Get, result, Value::Unset)
        }
    }
}

fn erase(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let opened = match prepare(vm, args) {
        Ok(opened) => opened,
        Err((counters, code, text)) => {
            let result = (code, text);
            return counted(vm, counters.as_deref(), Operation::Erase, result, Value::Unset);
        }
    };
    let counters = opened.counters.as_deref();
    let erase = |store: &store::Store| store.erase(&opened.key);
    let done = backend(args)
        .map_or(Ok(()), |backend| backend.borrow().store.as_ref().map_or(Ok(()), erase));
    let error = done.err();
    let result = match &error {
        None => ("SUCCESS", None),
        Some(error) => ("OPERATION_FAILED", Some(error.as_str())),
    };
    counted(vm, counters, Operation::Erase, result, Value::Unset)
}

#[cfg(feature = "sqlite")]
mod store {
    //! A table of an SQLite database.

    use rusqlite::{Connection, OptionalExtension, params};

    /// An open table.
    pub(super) struct Store {
        connection: Connection,
        table: String,
    }

    fn failed(error: &rusqlite::Error) -> String {
        let text = match error {
            rusqlite::Error::SqliteFailure(_, Some(text)) => {
                text.split(": ").next().unwrap_or(text).to_owned()
            }
            rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
            other => other.to_string(),
        };
        format!("SQLite call failed: {text}")
    }

    impl Store {
        /// Opens the database and creates the table if it does not exist.
        pub(super) fn open(
            path: &str,
            table: &str,
            busy: f64,
            pragmas: &[(String, String)],
        ) -> Result<Self, String> {
            let table = table.replace('"', "\"\"");
            let connection = Connection::open(path).map_err(|error| failed(&error))?;
            let busy = std::time::Duration::try_from_secs_f64(busy).unwrap_or_default();
            connection.busy_timeout(busy).map_err(|error| failed(&error))?;
            let mut commands = String::new();
            for (name, value) in pragmas {
                let equals = if value.is_empty() { "" } else { "=" };
                commands.push_str(&format!("pragma {name}{equals}{value};"));
            }
            commands.push_str(&format!(
                "create table if not exists \"{table}\" (key_str text primary key, \
                 value_str text not null, expire_time real);\
                 create index if not exists \"{table}_expire_time\" on \"{table}\" (expire_time);\
                 create table if not exists zeek_storage_expiry_runs (ts real);"
            ));
            connection.execute_batch(&commands).map_err(|error| failed(&error))?;
            Ok(Self { connection, table })
        }

        /// Stores a value; returns false if `overwrite` is false and the key has an entry that has not expired.
        pub(super) fn put(
            &self,
            key: &[u8],
            value: &[u8],
            overwrite: bool,
            expires: f64,
            now: f64,
        ) -> Result<bool, String> {
            if !overwrite && self.get(key, now)?.is_some() {
                return Ok(false);
            }
            let command = format!("insert or replace into \"{}\" values (?, ?, ?)", self.table);
            let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            self.connection
                .execute(&command, params![key, value, expires])
                .map_err(|error| failed(&error))?;
            Ok(true)
        }

        /// The value of a key, if it exists and has not expired.
        pub(super) fn get(&self, key: &[u8], now: f64) -> Result<Option<Vec<u8>>, String> {
            let command = format!(
                "select value_str from \"{}\" where key_str = ? and (expire_time <= 0 or expire_time > ?)",
                self.table
            );
            let key = String::from_utf8_lossy(key);
            self.connection
                .query_row(&command, params![key, now], |row| {
                    Ok(row.get_ref(0)?.as_bytes().unwrap_or_default().to_vec())
                })
                .optional()
                .map_err(|error| failed(&error))
        }

        /// Deletes expired entries; returns their number.
        pub(super) fn purge(&self, now: f64) -> Result<usize, String> {
            let command = format!(
                "delete from \"{}\" where expire_time > 0 and expire_time <= ?",
                self.table
            );
            self.connection.execute(&command, params![now]).map_err(|error| failed(&error))
        }

        /// Deletes a key.
        pub(super) fn erase(&self, key: &[u8]) -> Result<(), String> {
            let command = format!("delete from \"{}\" where key_str = ?", self.table);
            let key = String::from_utf8_lossy(key);
            self.connection
                .execute(&command, params![key])
                .map(|_| ())
                .map_err(|error| failed(&error))
        }

        /// The page size in bytes and the number of pages.
        pub(super) fn size(&self) -> (f64, f64) {
            let number = |name: &str| {
                self.connection
                    .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                    .unwrap_or(0) as f64
            };
            (number("page_size"), number("page_count"))
        }
    }
}

#[cfg(not(feature = "sqlite"))]
mod store {
    //! Stub for builds without SQLite: opening always fails.

    /// Has no values.
    pub(super) enum Store {}

    impl Store {
        /// Returns an error that names the missing feature.
        pub(super) fn open(
            _: &str,
            _: &str,
            _: f64,
            _: &[(String, String)],
        ) -> Result<Self, String> {
            Err("this build has no SQLite".to_owned())
        }

        pub(super) fn put(
            &self,
            _: &[u8],
            _: &[u8],
            _: bool,
            _: f64,
            _: f64,
        ) -> Result<bool, String> {
            match *self {}
        }

        pub(super) fn get(&self, _: &[u8], _: f64) -> Result<Option<Vec<u8>>, String> {
            match *self {}
        }

        pub(super) fn purge(&self, _: f64) -> Result<usize, String> {
            match *self {}
        }

        pub(super) fn erase(&self, _: &[u8]) -> Result<(), String> {
            match *self {}
        }

        pub(super) fn size(&self) -> (f64, f64) {
            match *self {}
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn closed_and_dropped_backends_are_removed() {
        let store = || store::Store::open(":memory:", "t", 0.0, &[]).ok();
        let made = |store| {
            Rc::new(RefCell::new(Backend {
                store,
                key_type: TypeId::COUNT,
                value_type: TypeId::COUNT,
                forced_sync: false,
                counters: None,
                purged: 0.0,
            }))
        };
        let mut all = Backends::default();
        let mut handles = Vec::new();
        for _ in 0..3 {
            let backend = made(store());
            all.0.push(Rc::clone(&backend));
            handles.push(backend);
        }
        all.retain_open();
        assert_eq!(all.0.len(), 3);
        drop(handles[0].borrow_mut().store.take());
        handles.remove(1);
        all.retain_open();
        assert_eq!(all.0.len(), 1);
    }
}
