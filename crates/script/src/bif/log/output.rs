//! Writers of log filters: one for each path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::Addr;

use super::super::arg;
use super::{Filter, field, until_rotation};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::program::Program;
use crate::support::field::{Column, Field, Kind, Protocol};
use crate::support::format;
use crate::support::logs::{AsciiConfig, AsciiWriter, LogFile, TextRow};
use crate::types::Type;
use crate::value::describe::{cat, enum_text};
use crate::value::{FuncValue, Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// A log writer with one path.
pub(super) struct Writer {
    kind: Value,
    path: String,
    columns: Vec<Column>,
    /// The database table that it writes to.
    table: Option<String>,
    stream: i64,
    filter: String,
    /// The path of its filter, which differs from `path` if that was in use.
    requested: String,
    sink: Sink,
    interval: f64,
    opened: f64,
    postprocessor: Option<Rc<FuncValue>>,
    /// Metrics: truncated strings and containers, discarded writes, writes.
    metrics: [usize; 4],
}

/// Default maximum number of open log files.
const MAX_OPEN: usize = 512;

/// All writers, in the order in which they were opened.
pub(super) struct Writers {
    all: Vec<Writer>,
    /// The latest writer by kind, stream, filter and requested path.
    requested: HashMap<(i64, i64, String, String), usize>,
    /// The writers by kind and actual path: several if they write to tables of a database.
    by_path: HashMap<(i64, String), Vec<usize>>,
    /// Writers whose files are open, most recently used first.
    open: RecentlyUsed,
    /// Maximum number of open files.
    max_open: usize,
    /// Whether a file was closed because of this limit.
    has_evicted: bool,
}

impl Default for Writers {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            requested: HashMap::new(),
            by_path: HashMap::new(),
            open: RecentlyUsed::default(),
            max_open: MAX_OPEN,
            has_evicted: false,
        }
    }
}

/// Indexes in the order of their latest use: a doubly linked list in an array.
#[derive(Default)]
struct RecentlyUsed {
    /// The neighbours of each index in the list, the more recently used first; its own index at the ends.
    links: Vec<Option<[usize; 2]>>,
    latest: usize,
    oldest: usize,
    len: usize,
}

impl RecentlyUsed {
    /// Moves an index to the front. Returns whether it was added to the list.
    #[inline]
    fn touch(&mut self, number: usize) -> bool {
        if self.len > 0 && self.latest == number {
            return false;
        }
        self.move_to_front(number)
    }

    fn move_to_front(&mut self, number: usize) -> bool {
        let is_new = !self.remove(number);
        if self.links.len() <= number {
            self.links.resize(number + 1, None);
        }
        let older = if self.len == 0 { number } else { self.latest };
        if self.len == 0 {
            self.oldest = number;
        } else if let Some(Some([later, _])) = self.links.get_mut(older) {
            *later = number;
        }
        if let Some(links) = self.links.get_mut(number) {
            *links = Some([number, older]);
        }
        self.latest = number;
        self.len += 1;
        is_new
    }

    /// Removes the least recently used index.
    fn pop(&mut self) -> Option<usize> {
        let oldest = (self.len > 0).then_some(self.oldest)?;
        self.remove(oldest);
        Some(oldest)
    }

    fn remove(&mut self, number: usize) -> bool {
        let Some([later, older]) = self.links.get_mut(number).and_then(Option::take) else {
            return false;
        };
        let (is_latest, is_oldest) = (later == number, older == number);
        if let Some(Some([_, link])) = self.links.get_mut(later) {
            *link = if is_oldest { later } else { older };
        }
        if let Some(Some([link, _])) = self.links.get_mut(older) {
            *link = if is_latest { older } else { later };
        }
        if is_latest {
            self.latest = older;
        }
        if is_oldest {
            self.oldest = later;
        }
        self.len -= 1;
        true
    }
}

impl Writers {
    /// Sets the maximum number of open files.
    pub(super) fn set_max_open(&mut self, max_open: usize) {
        self.max_open = max_open.max(1);
    }

    /// Marks a writer as used. Returns the writer whose file must be closed: the least recently used one.
    #[inline]
    fn mark_used(&mut self, index: usize) -> Option<usize> {
        if !self.open.touch(index) {
            return None;
        }
        let can_park =
            |writer: &Writer| matches!(&writer.sink, Sink::Ascii(sink) if sink.can_park());
        if !self.get(index).is_some_and(can_park) {
            self.open.remove(index);
        }
        if self.open.len > self.max_open { self.open.pop() } else { None }
    }

    fn get(&self, index: usize) -> Option<&Writer> {
        self.all.get(index)
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut Writer> {
        self.all.get_mut(index)
    }

    /// The writer of a filter for this path. A writer with other columns, left by a replaced filter or stream, is
    /// ignored.
    fn find(&self, stream: i64, filter: &Filter, path: &str) -> Option<usize> {
        if let Some(last) = filter.last_writer.get()
            && self.get(last).is_some_and(|writer| writer.requested == path)
        {
            return Some(last);
        }
        let key = (filter.writer.int(), stream, filter.name.clone(), path.to_owned());
        let found = *self.requested.get(&key)?;
        self.get(found).filter(|writer| writer.columns == filter.columns)?;
        Some(found)
    }

    /// The writer that uses a path already. Two tables of one database do not conflict.
    fn holder(&self, kind: i64, table: Option<&String>, path: &str) -> Option<&Writer> {
        let mut holders =
            self.by_path.get(&(kind, path.to_owned()))?.iter().filter_map(|at| self.get(*at));
        holders.find(|writer| table.is_none() || writer.table.as_ref() == table)
    }

    fn push(&mut self, writer: Writer) -> usize {
        let index = self.all.len();
        let kind = writer.kind.int();
        let requested = (kind, writer.stream, writer.filter.clone(), writer.requested.clone());
        self.requested.insert(requested, index);
        self.by_path.entry((kind, writer.path.clone())).or_default().push(index);
        self.all.push(writer);
        index
    }
}

enum Sink {
    Ascii(Box<AsciiWriter>),
    #[cfg(feature = "sqlite")]
    Sqlite(Box<crate::support::logs::SqliteWriter>),
    /// The `none` writer.
    None,
    /// A write failed: rows are discarded.
    Failed,
}

/// The column type of a script type; `None` if logs do not support it.
pub(in crate::bif) fn kind_of(vm: &Vm<'_>, ty: TypeId) -> Option<Kind> {
    Some(match vm.p.types.get(ty) {
        Type::Bool => Kind::Bool,
        Type::Int => Kind::Int,
        Type::Count => Kind::Count,
        Type::Double => Kind::Double,
        Type::Time => Kind::Time,
        Type::Interval => Kind::Interval,
        Type::String => Kind::String,
        Type::Pattern => Kind::Pattern,
        Type::Port => Kind::Port,
        Type::Addr => Kind::Addr,
        Type::Subnet => Kind::Subnet,
        Type::Enum(_) => Kind::Enum,
        Type::File => Kind::File,
        Type::Func(_) => Kind::Func,
        Type::Table(table) if table.value.is_none() && table.index.len() == 1 => {
            let element = *table.index.first()?;
            Kind::Set(Box::new(scalar(vm, element)?))
        }
        Type::Vector(element) => Kind::Vector(Box::new(scalar(vm, *element)?)),
        _ => return None,
    })
}

fn scalar(vm: &Vm<'_>, ty: TypeId) -> Option<Kind> {
    kind_of(vm, ty).filter(|kind| !matches!(kind, Kind::Set(_) | Kind::Vector(_)))
}

/// Converts a value to a field of a row.
fn to_field<'v>(program: &'v Program, value: &'v Value) -> Field<'v> {
    let owned = |bytes: Vec<u8>| Cow::Owned(bytes);
    match value {
        Value::Bool(value) => Field::Bool(*value),
        Value::Int(value) => Field::Int(*value),
        Value::Count(value) => Field::Count(*value),
        Value::Double(value) => Field::Double(*value),
        Value::Time(value) => Field::Time(*value),
        Value::Interval(value) => Field::Interval(*value),
        Value::Enum(ty, value) => {
            Field::Enum(Cow::Borrowed(enum_text(program, *ty, *value).as_bytes()))
        }
        Value::Port(port) => Field::Port(
            u32::from(port.number),
            match port.protocol {
                crate::literal::Protocol::Tcp => Protocol::Tcp,
                crate::literal::Protocol::Udp => Protocol::Udp,
                crate::literal::Protocol::Icmp => Protocol::Icmp,
                crate::literal::Protocol::Unknown => Protocol::Unknown,
            },
        ),
        Value::Addr4(_) | Value::Addr6(_) => Field::Addr(value.addr_bytes().unwrap_or_default()),
        Value::Net4(bytes, width) => Field::Subnet(crate::value::v4(*bytes), *width),
        Value::Net6(net) => Field::Subnet(net.prefix, net.width),
        Value::Short(_) | Value::Long(_) => Field::String(Cow::Borrowed(value.str_bytes())),
        Value::Pattern(pattern) => Field::Pattern(Cow::Borrowed(pattern.text()), false, false),
        Value::File(file) => Field::File(owned(file.name.clone().into_bytes())),
        Value::Func(_) => Field::Func(owned(cat(program, value))),
        Value::Table(table) => {
            Field::Set(table.keys().iter().map(|key| to_field(program, key).into_owned()).collect())
        }
        Value::Vector(vector) => {
            let items = vector.items();
            Field::Vector(items.iter().map(|item| to_field(program, item).into_owned()).collect())
        }
        _ => Field::Unset,
    }
}

/// The remaining limits of a record, and the number of truncated values.
struct Budget {
    limits: super::Limits,
    strings: usize,
    containers: usize,
}

impl Budget {
    /// Truncates a field to the remaining limits.
    #[inline]
    fn apply(&mut self, field: &mut Field<'_>) {
        if matches!(field, Field::String(_) | Field::Set(_) | Field::Vector(_)) {
            self.cut(field);
        }
    }

    fn cut(&mut self, field: &mut Field<'_>) {
        match field {
            Field::String(text) => {
                let allowed = self.limits.field_bytes.min(self.limits.total_bytes);
                if text.len() > allowed {
                    self.strings += 1;
                    text.to_mut().truncate(allowed);
                }
                self.limits.total_bytes -= text.len();
            }
            Field::Set(items) | Field::Vector(items) => {
                let allowed = self.limits.field_elements.min(self.limits.total_elements);
                if items.len() > allowed {
                    self.containers += 1;
                    items.truncate(allowed);
                }
                self.limits.total_elements -= items.len();
                for item in items {
                    self.apply(item);
                }
            }
            _ => (),
        }
    }
}

/// Appends a value in TSV format directly to a row. Returns false for types that are rare in logs, for
/// strings that exceed a limit, and for text that looks like an unset or empty value.
#[inline]
fn append_tsv(
    program: &Program,
    row: &mut TextRow,
    value: &Value,
    budget: &mut Option<Budget>,
) -> bool {
    let is_special = |text: &[u8]| matches!(text, b"" | b"-" | b"(empty)");
    match value {
        Value::Unset => row.add_unescaped(|out| out.push(b'-')),
        Value::Bool(value) => row.add_unescaped(|out| out.push(if *value { b'T' } else { b'F' })),
        Value::Count(value) => row.add_unescaped(|out| gannet_log::write_count(out, *value)),
        Value::Port(port) => {
            row.add_unescaped(|out| gannet_log::write_count(out, u64::from(port.number)));
        }
        Value::Time(value) | Value::Interval(value) => {
            row.add_unescaped(|out| format::seconds_of_log(out, *value));
        }
        Value::Addr4(address) => {
            row.add_unescaped(|out| gannet_log::write_addr(out, Addr::v4(*address)));
        }
        Value::Enum(ty, value) => {
            let text = enum_text(program, *ty, *value).as_bytes();
            if is_special(text) {
                return false;
            }
            row.add_unescaped(|out| format::escape::log_text(out, text, false));
        }
        Value::Short(_) | Value::Long(_) => {
            let text = value.str_bytes();
            if is_special(text) {
                return false;
            }
            if let Some(Budget { limits, .. }) = budget {
                if text.len() > limits.field_bytes.min(limits.total_bytes) {
                    return false;
                }
                limits.total_bytes -= text.len();
            }
            row.add_unescaped(|out| format::escape::log_text(out, text, false));
        }
        _ => return false,
    }
    true
}

/// Closes the file of a writer until its next row, because too many are open. Warns at the first one.
fn close_until_next_row(vm: &mut Vm<'_>, index: usize) {
    let writers = &mut vm.m.state.log.writers;
    let is_first = !std::mem::replace(&mut writers.has_evicted, true);
    let max_open = writers.max_open;
    if let Some(Sink::Ascii(sink)) = writers.get_mut(index).map(|writer| &mut writer.sink)
        && let Err(message) = sink.park()
    {
        fail(vm, index, &message);
    }
    if is_first {
        let text = format!(
            "more than {max_open} logs are open (--max-open-logs): those whose latest row is longest ago are closed until \
             their next row"
        );
        vm.report(Severity::Warning, text);
    }
}

/// Writes a record to a path.
pub(super) fn write(
    vm: &mut Vm<'_>,
    id: &Value,
    filter: &Rc<Filter>,
    path: &str,
    record: &Value,
) -> Result<()> {
    let Some(index) = writer_for(vm, id, filter, path)? else { return Ok(()) };
    if let Some(evicted) = vm.m.state.log.writers.mark_used(index) {
        close_until_next_row(vm, evicted);
    }
    let extension = match &filter.ext_func {
        Some(func) => {
            let shown = vm.m.state.log.writers.get(index).map(|writer| writer.path.clone());
            match vm.call(func, &[Value::string(shown.unwrap_or_default())]) {
                Ok(value) => value,
                Err(Stop::Error) => Value::Unset,
                Err(stop) => return Err(stop),
            }
        }
        None => Value::Unset,
    };
    let limits = vm.m.state.log.streams.get(&id.int()).map(|stream| stream.limits);
    let mut budget = limits.map(|limits| Budget { limits, strings: 0, containers: 0 });
    let row = match vm.m.state.log.writers.get_mut(index).map(|writer| &mut writer.sink) {
        Some(Sink::Ascii(writer)) => writer.begin_row(),
        _ => None,
    };
    let result = match row {
        Some(mut row) => {
            if let Some(Sink::Ascii(writer)) = vm.m.state.log.writers.get(index).map(|w| &w.sink) {
                for (from_extension, offsets) in &filter.sources {
                    let root = if *from_extension { &extension } else { record };
                    with_field(root, offsets, |value| {
                        if row.is_default_format() && append_tsv(vm.p, &mut row, value, &mut budget)
                        {
                            return;
                        }
                        let mut field = to_field(vm.p, value);
                        if let Some(budget) = &mut budget {
                            budget.apply(&mut field);
                        }
                        writer.add(&mut row, &field);
                    });
                }
            }
            match vm.m.state.log.writers.get_mut(index).map(|writer| &mut writer.sink) {
                Some(Sink::Ascii(writer)) => writer.end_row(row),
                _ => Ok(()),
            }
        }
        None => {
            let root = |from_extension| if from_extension { &extension } else { record };
            let values: Vec<Value> = filter
                .sources
                .iter()
                .map(|(of, offsets)| with_field(root(*of), offsets, Value::clone))
                .collect();
            let mut fields = Vec::with_capacity(values.len());
            for value in &values {
                let mut field = to_field(vm.p, value);
                if let Some(budget) = &mut budget {
                    budget.apply(&mut field);
                }
                fields.push(field);
            }
            match vm.m.state.log.writers.get_mut(index).map(|writer| &mut writer.sink) {
                Some(Sink::Ascii(writer)) => writer.write(&fields),
                #[cfg(feature = "sqlite")]
                Some(Sink::Sqlite(writer)) => writer.write(&fields),
                _ => Ok(()),
            }
        }
    };
    if let Some(budget) = &budget {
        report_cuts(vm, id, index, budget);
    }
    if let Err(message) = result {
        fail(vm, index, &message);
    }
    if let Some(writer) = vm.m.state.log.writers.get(index) {
        let [.., discarded, writes] = writer.metrics;
        let counter = if matches!(writer.sink, Sink::Failed) { discarded } else { writes };
        vm.m.state.metrics.add(counter, 1.0);
    }
    Ok(())
}

/// Calls `f` with a field of a record or of a nested record.
fn with_field<R>(root: &Value, offsets: &[usize], f: impl FnOnce(&Value) -> R) -> R {
    match (offsets, root) {
        ([], _) => f(root),
        ([offset], Value::Record(record)) => record.show(*offset, f),
        ([outer, inner], Value::Record(record)) => record.show(*outer, |value| match value {
            Value::Record(record) => record.show(*inner, f),
            _ => f(&Value::Unset),
        }),
        ([offset, rest @ ..], Value::Record(record)) => with_field(&record.get(*offset), rest, f),
        _ => f(&Value::Unset),
    }
}

/// Counts and reports values that the limits of a stream truncated.
fn report_cuts(vm: &mut Vm<'_>, id: &Value, index: usize, budget: &Budget) {
    if budget.strings + budget.containers == 0 {
        return;
    }
    let Some(counters) = vm.m.state.log.writers.get(index).map(|writer| writer.metrics) else {
        return;
    };
    let names = ["log_string_field_truncated", "log_container_field_truncated"];
    let cuts = [budget.strings, budget.containers];
    for ((counter, cuts), name) in counters.into_iter().zip(cuts).zip(names) {
        if cuts > 0 {
            vm.m.state.metrics.add(counter, cuts as f64);
            let stream = super::super::json::name_of(vm, id);
            let args = vec![Value::string(name), Value::string(stream), Value::string("")];
            vm.queue_named("net_weird", args);
        }
    }
}

/// The metrics of a writer.
fn counters(vm: &mut Vm<'_>, stream: &Value, filter: &Filter, path: &str) -> [usize; 4] {
    let stream = super::super::json::name_of(vm, stream);
    let module = stream.split_once("::").map_or("GLOBAL", |(module, _)| module).to_owned();
    let writer = super::super::json::name_of(vm, &filter.writer);
    let labels: Vec<(Vec<u8>, Vec<u8>)> = [
        ("filter_name", filter.name.as_str()),
        ("module", &module),
        ("path", path),
        ("stream", &stream),
        ("writer", &writer),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    let metrics = &mut vm.m.state.metrics;
    [
        ("log_writer_truncated_string_fields", "Number of log string fields truncated"),
        ("log_writer_truncated_containers", "Number of log container fields truncated"),
        ("log_writer_discarded_writes", "Total number of log writes discarded"),
        ("log_writer_writes", "Total number of log writes"),
    ]
    .map(|(name, help)| {
        let kind = super::super::telemetry::Kind::Counter;
        let family =
            metrics.family(kind, b"zeek", name.as_bytes(), b"", help.as_bytes(), Vec::new());
        metrics.metric(family, labels.clone())
    })
}

/// The value of an SQLite pragma that an option sets; `None` for the default.
#[cfg(feature = "sqlite")]
fn pragma(vm: &Vm<'_>, option: &str, prefix: &str) -> Option<&'static str> {
    const VALUES: [&str; 9] =
        ["OFF", "NORMAL", "FULL", "EXTRA", "DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL"];
    let name = super::super::json::name_of(vm, &vm.global_named(option));
    let value = name.rsplit("::").next()?.strip_prefix(prefix)?.to_owned();
    VALUES.into_iter().find(|known| *known == value)
}

fn fail(vm: &mut Vm<'_>, index: usize, message: &str) {
    let Some(writer) = vm.m.state.log.writers.get_mut(index) else { return };
    writer.sink = Sink::Failed;
    let kind = writer.kind.clone();
    let path = writer.path.clone();
    let name = super::super::json::name_of(vm, &kind);
    // As in Zeek, only lost rows of the ASCII writer affect the exit status.
    vm.m.out.rows_lost |= name == "Log::WRITER_ASCII";
    vm.m.state.log.failures.push(format!("{path}/{name}: {message}"));
    vm.m.state.log.failures.push(format!("{path}/{name}: terminating thread"));
    if vm.m.state.initialized {
        report_failures(vm);
    }
}

/// Reports errors that occurred during initialization; they do not fail the initialization.
pub(crate) fn report_failures(vm: &mut Vm<'_>) {
    for text in std::mem::take(&mut vm.m.state.log.failures) {
        vm.report(Severity::Error, text);
    }
}

/// The writer of a path, opened if needed.
fn writer_for(
    vm: &mut Vm<'_>,
    id: &Value,
    filter: &Rc<Filter>,
    path: &str,
) -> Result<Option<usize>> {
    let stream = id.int();
    let kind = filter.writer.int();
    let writers = &vm.m.state.log.writers;
    if let Some(index) = writers.find(stream, filter, path) {
        filter.last_writer.set(Some(index));
        return Ok(Some(index));
    }
    let table = filter.config.iter().find(|(name, _)| name == "tablename").map(|(_, table)| table);
    let mut actual = path.to_owned();
    let mut warning = None;
    if let Some(other) = writers.holder(kind, table, path) {
        let holder = other.filter.clone();
        let mut number = 2;
        while writers.holder(kind, table, &actual).is_some() {
            actual = format!("{path}-{number}");
            number += 1;
        }
        warning = Some(format!(
            "Write using filter '{}' on path '{path}' changed to use new path '{actual}' to avoid conflict with filter '{holder}'",
            filter.name
        ));
    }
    if let Some(text) = warning {
        vm.report(Severity::Warning, text);
    }
    let name = super::super::json::name_of(vm, &filter.writer);
    let postprocessor =
        filter.postprocessor.as_ref().map(|func| vm.function_name(func.func)).unwrap_or_default();
    let file = LogFile { path: actual.clone(), rotation_interval: filter.interval, postprocessor };
    let sink = match name.as_str() {
        "Log::WRITER_ASCII" => {
            let mut config = ascii_config(vm);
            let options = filter.config.iter().map(|(name, value)| (&**name, &**value));
            let opened = config
                .apply(options)
                .and_then(|()| AsciiWriter::open(file, config, filter.columns.clone()));
            opened.map(|writer| Sink::Ascii(Box::new(writer)))
        }
        #[cfg(feature = "sqlite")]
        "Log::WRITER_SQLITE" => {
            if !filter.config.iter().any(|(name, _)| name == "tablename") {
                let text = format!(
                    "{actual}/Log::WRITER_SQLITE: tablename configuration option not found. Defaulting to path {actual}"
                );
                vm.report(Severity::Info, text);
            }
            let synchronous = pragma(vm, "LogSQLite::synchronous", "SQLITE_SYNCHRONOUS_");
            let journal_mode = pragma(vm, "LogSQLite::journal_mode", "SQLITE_JOURNAL_MODE_");
            let config = crate::support::logs::SqliteConfig {
                synchronous,
                journal_mode,
                table: filter
                    .config
                    .iter()
                    .find(|(name, _)| name == "tablename")
                    .map(|(_, value)| value.clone()),
                log_dir: vm.global_named("Log::default_logdir").text(),
                ..crate::support::logs::SqliteConfig::default()
            };
            crate::support::logs::SqliteWriter::open(&file, config, &filter.columns)
                .map(|writer| Sink::Sqlite(Box::new(writer)))
        }
        "Log::WRITER_NONE" => {
            if vm.global_named("LogNone::debug").truth() {
                describe_none(vm, filter, &actual);
            }
            Ok(Sink::None)
        }
        #[cfg(not(feature = "sqlite"))]
        "Log::WRITER_SQLITE" => Err("this build has no SQLite (feature 'sqlite')".to_owned()),
        other => Err(format!("there is no writer {other}")),
    };
    let (sink, message) = match sink {
        Ok(sink) => (sink, None),
        Err(message) => (Sink::Failed, Some(message)),
    };
    let now = vm.m.now;
    let metrics = counters(vm, id, filter, &actual);
    let index = vm.m.state.log.writers.push(Writer {
        metrics,
        columns: filter.columns.clone(),
        table: filter
            .config
            .iter()
            .find(|(name, _)| name == "tablename")
            .map(|(_, table)| table.clone()),
        kind: filter.writer.clone(),
        path: actual,
        stream,
        filter: filter.name.clone(),
        requested: path.to_owned(),
        sink,
        interval: filter.interval,
        opened: now,
        postprocessor: filter.postprocessor.clone(),
    });
    filter.last_writer.set(Some(index));
    if let Some(message) = message {
        fail(vm, index, &message);
    }
    schedule_rotation(vm, index);
    Ok(Some(index))
}

/// Prints the configuration of a `none` writer.
fn describe_none(vm: &mut Vm<'_>, filter: &Filter, path: &str) {
    let base = super::rotation_base(vm).unwrap_or(-1.0);
    let mut text = format!(
        "[logging::writer::None]\n  path={path}\n  rotation_interval={}\n  rotation_base={}\n",
        filter.interval, base
    );
    let mut config: Vec<_> = filter.config.iter().collect();
    config.sort();
    for (name, value) in config {
        text.push_str(&format!("  config[{name}] = {value}\n"));
    }
    for column in &filter.columns {
        text.push_str(&format!("  field {}: {}\n", column.name, column.kind));
    }
    text.push('\n');
    vm.m.out.write(text.as_bytes());
}

fn ascii_config(vm: &mut Vm<'_>) -> AsciiConfig {
    let mut config = AsciiConfig::default();
    let text = |vm: &Vm<'_>, name: &str| vm.global_named(name).bytes().map(<[u8]>::to_vec);
    for (name, slot) in [
        ("LogAscii::separator", &mut config.text.separator),
        ("LogAscii::set_separator", &mut config.text.set_separator),
        ("LogAscii::empty_field", &mut config.text.empty_field),
        ("LogAscii::unset_field", &mut config.text.unset_field),
        ("LogAscii::meta_prefix", &mut config.meta_prefix),
    ] {
        if let Some(value) = text(vm, name) {
            *slot = value;
        }
    }
    for (name, slot) in [
        ("LogAscii::enable_utf_8", &mut config.text.utf8),
        ("LogAscii::output_to_stdout", &mut config.to_stdout),
        ("LogAscii::include_meta", &mut config.include_meta),
        ("LogAscii::enable_leftover_log_rotation", &mut config.leftover_rotation),
        ("LogAscii::json_include_unset_fields", &mut config.json_format.include_unset),
    ] {
        if let Value::Bool(value) = vm.global_named(name) {
            *slot = value;
        }
    }
    if let Value::Count(level) = vm.global_named("LogAscii::gzip_level") {
        config.gzip_level = level as u32;
    }
    if let Some(extension) = text(vm, "LogAscii::gzip_file_extension") {
        config.gzip_extension = String::from_utf8_lossy(&extension).into_owned();
    }
    config.log_dir = vm.global_named("Log::default_logdir").text();
    if let Ok(suffix) = std::env::var("ZEEK_LOG_SUFFIX") {
        config.extension = suffix;
    }
    let mut options = Vec::new();
    for (global, name) in [
        ("LogAscii::json_timestamps", "json_timestamps"),
        ("LogAscii::json_string_escape_policy", "json_string_escape_policy"),
    ] {
        let value = vm.global_named(global);
        if value.is_set() {
            options.push((name, super::super::json::name_of(vm, &value)));
        }
    }
    if vm.global_named("LogAscii::use_json").truth() {
        options.push(("use_json", "T".to_owned()));
    }
    // Enumerators that are not formats leave the defaults.
    drop(config.apply(options.iter().map(|(name, value)| (*name, &**value))));
    config
}

/// `Log::set_buf`.
pub(super) fn set_buf(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).int();
    let buffered = arg(args, 1).truth();
    let known = vm.m.state.log.streams.contains_key(&id);
    for writer in &mut vm.m.state.log.writers.all {
        if let Sink::Ascii(sink) = &mut writer.sink
            && writer.stream == id
        {
            sink.set_buffered(buffered);
        }
    }
    Ok(Value::Bool(known))
}

/// `Log::flush`.
pub(super) fn flush(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).int();
    let known = vm.m.state.log.streams.contains_key(&id);
    flush_if(vm, |writer| writer.stream == id);
    Ok(Value::Bool(known))
}

/// Flushes all log files.
pub(crate) fn flush_all(vm: &mut Vm<'_>) {
    flush_if(vm, |_| true);
}

fn flush_if(vm: &mut Vm<'_>, wanted: impl Fn(&Writer) -> bool) {
    for index in 0..vm.m.state.log.writers.all.len() {
        let Some(writer) = vm.m.state.log.writers.get_mut(index) else { continue };
        if wanted(writer)
            && let Sink::Ascii(sink) = &mut writer.sink
            && let Err(message) = sink.flush()
        {
            fail(vm, index, &message);
        }
    }
}

/// Schedules the next rotation of a writer, if it rotates. Before network time is known, only the interval is started.
fn schedule_rotation(vm: &mut Vm<'_>, index: usize) {
    let interval = vm.m.state.log.writers.get(index).map_or(0.0, |writer| writer.interval);
    if interval <= 0.0 || vm.m.terminating {
        return;
    }
    let now = vm.m.now;
    let base = super::rotation_base(vm);
    let due = if now == 0.0 { 1.0 } else { now + until_rotation(now, interval, base) };
    vm.add_timer(due, crate::vm::events::TimerAction::Rotate(index as u64));
}

/// Handles the timer of a rotation, or the end of the run.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn rotate_due(vm: &mut Vm<'_>, index: u64) -> Result<()> {
    let index = index as usize;
    let now = vm.m.now;
    let Some(writer) = vm.m.state.log.writers.get_mut(index) else { return Ok(()) };
    if writer.opened == 0.0 {
        writer.opened = now;
    } else {
        rotate(vm, index, vm.m.terminating)?;
    }
    schedule_rotation(vm, index);
    Ok(())
}

/// A rotated log whose postprocessor has not run yet: the function and its argument.
pub(super) type Rotation = (Rc<FuncValue>, Value);

/// Runs the postprocessors of rotated logs. While a capture is read, they run at every hundredth packet, as Zeek polls
/// its writer threads at that interval.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn poll_rotations(vm: &mut Vm<'_>) -> Result<()> {
    if vm.m.state.log.rotated.is_empty() {
        return Ok(());
    }
    let reads = vm.m.state.traffic.reads_capture && !vm.m.terminating;
    if reads && !vm.m.state.log.polls.is_multiple_of(PACKETS_PER_POLL) {
        return Ok(());
    }
    run_postprocessors(vm)
}

fn run_postprocessors(vm: &mut Vm<'_>) -> Result<()> {
    for (func, info) in std::mem::take(&mut vm.m.state.log.rotated) {
        match vm.call(&func, &[info]) {
            Ok(_) | Err(Stop::Error) => (),
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// Number of packets of a capture between two polls.
const PACKETS_PER_POLL: u64 = 100;

fn rotate(vm: &mut Vm<'_>, index: usize, terminating: bool) -> Result<()> {
    let Some(writer) = vm.m.state.log.writers.get_mut(index) else { return Ok(()) };
    let (kind, path, opened, now) =
        (writer.kind.clone(), writer.path.clone(), writer.opened, vm.m.now);
    writer.opened = now;
    let postprocessor = writer
        .postprocessor
        .clone()
        .map(Value::Func)
        .or_else(|| vm.func_value("Log::__default_rotation_postprocessor").map(Value::Func));
    let (Some(info_ty), Some(func)) =
        (vm.type_named("Log::RotationFmtInfo"), vm.func_value("Log::rotation_format_func"))
    else {
        return Ok(());
    };
    let info = Value::Record(Record::new(
        info_ty,
        vec![
            kind.clone(),
            Value::string(&path),
            Value::Time(opened),
            Value::Time(now),
            Value::Bool(terminating),
            postprocessor.clone().unwrap_or_default(),
        ],
    ));
    let rotation = match vm.call(&func, &[info]) {
        Ok(value) => value,
        Err(Stop::Error) => Value::Unset,
        Err(stop) => return Err(stop),
    };
    let target = if rotation.is_set() {
        let base = field(vm, &rotation, "file_basename").text();
        let mut folder = field(vm, &rotation, "dir").text();
        if folder.is_empty() {
            folder = vm.global_named("Log::default_logdir").text();
        }
        if folder.is_empty() {
            base
        } else if let Err(error) = std::fs::create_dir_all(&folder) {
            let text = format!(
                "Failed to create dir '{folder}' returned by Log::rotation_format_func for path {path}: {error}"
            );
            vm.report(Severity::Error, text);
            base
        } else {
            format!("{folder}/{base}")
        }
    } else {
        let opened = format::time::strftime(b"%y-%m-%d_%H.%M.%S", opened);
        let target = format!("{path}-{}", String::from_utf8_lossy(&opened));
        let text = format!(
            "Failed to call Log::rotation_format_func for path {path} continuing with rotation to: ./{target}"
        );
        vm.report(Severity::Error, text);
        target
    };
    let result = match vm.m.state.log.writers.get_mut(index).map(|writer| &mut writer.sink) {
        Some(Sink::Ascii(writer)) => writer.rotate(&target),
        _ => Ok(None),
    };
    match result {
        Ok(Some(rotated)) => {
            if let (Some(Value::Func(func)), Some(ty)) =
                (postprocessor, vm.type_named("Log::RotationInfo"))
            {
                let info = Value::Record(Record::new(
                    ty,
                    vec![
                        kind,
                        Value::string(rotated.new_name),
                        Value::string(path),
                        Value::Time(opened),
                        Value::Time(now),
                        Value::Bool(terminating),
                    ],
                ));
                vm.m.state.log.rotated.push((func, info));
            }
        }
        Ok(None) => (),
        Err(message) => fail(vm, index, &message),
    }
    Ok(())
}

/// Rotates logs that an earlier run left, if `LogAscii::enable_leftover_log_rotation` is set.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn rotate_leftovers(vm: &mut Vm<'_>) -> Result<()> {
    if !vm.global_named("LogAscii::enable_leftover_log_rotation").truth() {
        return Ok(());
    }
    let config = ascii_config(vm);
    let folder = if config.log_dir.is_empty() { "." } else { &*config.log_dir };
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
    let (found, problems) = match crate::support::logs::leftover_logs(&folder, &config) {
        Ok(found) => found,
        Err(error) => (Vec::new(), vec![error]),
    };
    for problem in problems {
        vm.report(Severity::Error, problem);
    }
    for log in found {
        rotate_leftover(vm, &folder, &log)?;
    }
    Ok(())
}

fn rotate_leftover(
    vm: &mut Vm<'_>,
    folder: &std::path::Path,
    log: &crate::support::logs::UnrotatedLog,
) -> Result<()> {
    let file = log.file.display().to_string();
    let own = vm.function_named(&log.postprocessor).filter(|func| processes_rotation(vm, *func));
    if own.is_none() && !log.postprocessor.is_empty() {
        let text = format!(
            "Could not postprocess log '{file}' with intended postprocessor function '{}', proceeding  with the default function",
            log.postprocessor
        );
        vm.report(Severity::Warning, text);
    }
    let own = own.map(|func| FuncValue::new(func, vm.p.functions[func].ty));
    let func = own.or_else(|| vm.func_value("Log::__default_rotation_postprocessor"));
    let postprocessor = func.clone().map_or(Value::Unset, Value::Func);
    let writer = vm.enum_named("Log::WRITER_ASCII");
    let (opened, closed) = (Value::Time(log.opened), Value::Time(log.closed));
    let (Some(fmt_ty), Some(format), Some(info_ty)) = (
        vm.type_named("Log::RotationFmtInfo"),
        vm.func_value("Log::rotation_format_func"),
        vm.type_named("Log::RotationInfo"),
    ) else {
        return Ok(());
    };
    let path = Value::string(&log.path);
    let info = vec![
        writer.clone(),
        path.clone(),
        opened.clone(),
        closed.clone(),
        Value::Bool(false),
        postprocessor,
    ];
    let rotation = match vm.call(&format, &[Value::Record(Record::new(fmt_ty, info))]) {
        Ok(rotation) => rotation,
        Err(Stop::Error) => return Ok(()),
        Err(stop) => return Err(stop),
    };
    let base = field(vm, &rotation, "file_basename").text();
    let name = format!("{base}{}", log.extension);
    let wanted = field(vm, &rotation, "dir").text();
    let target =
        if wanted.is_empty() { folder.join(&name) } else { format!("{wanted}/{name}").into() };
    if let Err(error) = std::fs::rename(&log.file, &target) {
        let reason = crate::support::logs::reason(&error);
        let text = format!("failed to process leftover log '{file}': {reason}");
        vm.report(Severity::Error, text);
        return Ok(());
    }
    drop(std::fs::remove_file(&log.shadow));
    let shown = if wanted.is_empty() { name } else { target.display().to_string() };
    if let Some(func) = func {
        let logdir = vm.global_named("Log::default_logdir").text();
        let known = if logdir.is_empty() { shown.clone() } else { format!("{logdir}/{shown}") };
        let info = vec![writer, Value::string(known), path, opened, closed, Value::Bool(false)];
        match vm.call(&func, &[Value::Record(Record::new(info_ty, info))]) {
            Ok(_) | Err(Stop::Error) => (),
            Err(stop) => return Err(stop),
        }
    }
    let text = format!("Rotated/postprocessed leftover log '{file}' -> '{shown}' ");
    vm.report(Severity::Info, text);
    Ok(())
}

/// Whether a function has the parameters of a postprocessor.
fn processes_rotation(vm: &Vm<'_>, func: crate::ids::FuncId) -> bool {
    let ty = vm.p.functions[func].ty;
    let params = vm.p.types.params(ty);
    let wanted = vm.type_named("Log::RotationInfo");
    params.len() == 1
        && params
            .first()
            .zip(wanted)
            .is_some_and(|(param, wanted)| vm.p.same_type(param.ty, wanted))
}

/// Closes all logs.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn close_all(vm: &mut Vm<'_>) -> Result<()> {
    super::write::release_all(vm)?;
    run_postprocessors(vm)?;
    for writer in std::mem::take(&mut vm.m.state.log.writers).all {
        if let Sink::Ascii(sink) = writer.sink
            && let Err(message) = sink.finish()
        {
            vm.m.out.rows_lost = true;
            vm.report(Severity::Error, message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_index_is_evicted() {
        let mut recent = RecentlyUsed::default();
        assert_eq!(recent.pop(), None);
        assert!([3, 0, 7, 5].into_iter().all(|number| recent.touch(number)));
        assert!(!recent.touch(0) && !recent.touch(3) && !recent.touch(3) && !recent.touch(7));
        assert!(recent.remove(3) && !recent.remove(3) && !recent.remove(9));
        let all: Vec<_> = std::iter::from_fn(|| recent.pop()).collect();
        assert_eq!((all, recent.len), (vec![5, 0, 7], 0));
        assert!(recent.touch(5) && !recent.touch(5));
        assert_eq!([recent.pop(), recent.pop()], [Some(5), None]);
        // The reference: a plain list.
        let (mut list, mut random) = (Vec::new(), 1_u64);
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (random >> 33) as usize % 40;
            if random >> 60 == 0 {
                let oldest = (!list.is_empty()).then(|| list.remove(0));
                assert_eq!(recent.pop(), oldest);
            } else {
                let known = list.iter().position(|known| *known == number);
                known.map(|at| list.remove(at));
                list.push(number);
                assert_eq!(recent.touch(number), known.is_none());
            }
            assert_eq!(recent.len, list.len());
        }
    }
}
