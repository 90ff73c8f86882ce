//! The Input framework: tables and events from files and commands.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_event::Command;

use super::input_checks::{self, is_readable};
use super::log::{field, kind_of};
use super::{Table, arg, json};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{FuncId, Name, TypeId};
use crate::literal::{Port, Protocol};
use crate::support::field::{Column, Field, Kind, Protocol as FieldProtocol};
use crate::support::input::{
    AsciiOptions, BenchmarkOptions, BinaryOptions, ConfigOptions, InputStream, Message, Mode,
    OptionType, RawOptions, ReaderMessage, Source, ValueFormat,
};
use crate::symbols::GlobalKind;
use crate::types::{AttrKind, Tag, Type, attr_expr, find_attr};
use crate::value::table::{make_key, parts};
use crate::value::{FuncValue, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("Input::__create_table_stream", create_table),
    ("Input::__create_event_stream", create_event),
    ("Input::__create_analysis_stream", |vm, a| {
        let description = arg(a, 0);
        let name = field(vm, description, "name").text();
        let bytes = vec![Column::new("bytestream", Kind::String)];
        open(vm, description, name, bytes, Target::Analysis)
    }),
    ("Input::__remove_stream", |vm, a| {
        let name = arg(a, 0).text();
        // The stream is removed at the next poll, after rows that were read have been processed.
        let streams = &mut vm.m.state.inputs.streams;
        let Some(at) = streams.iter().rposition(|stream| stream.name == name) else {
            return Ok(Value::Bool(false));
        };
        if std::mem::replace(&mut streams[at].removed, true) {
            let text = format!("Stream {name} is already queued for removal. Ignoring remove.");
            vm.report(Severity::Warning, text);
        }
        Ok(Value::Bool(true))
    }),
    ("Input::__force_update", |vm, a| {
        let name = arg(a, 0).text();
        let streams = &mut vm.m.state.inputs.streams;
        let Some(stream) = streams.iter_mut().rfind(|stream| stream.name == name) else {
            vm.report(Severity::Error, format!("Stream {name} not found"));
            return Ok(Value::Bool(false));
        };
        if stream.removed {
            let text =
                format!("Stream {name} is already queued for removal. Ignoring force update.");
            vm.report(Severity::Error, text);
            return Ok(Value::Bool(false));
        }
        stream.update = true;
        Ok(Value::Bool(true))
    }),
];

/// Input streams.
#[derive(Default)]
pub struct Inputs {
    streams: Vec<Stream>,
    next_heartbeat: f64,
    next_id: u64,
    /// Names and sources of files that were read completely and passed to file analyzers: their end is reported at the next poll,
    /// after the events of the analyzers.
    analyzed: Vec<(String, String)>,
}

impl Inputs {
    /// Whether streams or ends of files are pending.
    pub(super) fn is_read(&self) -> bool {
        !self.streams.is_empty() || !self.analyzed.is_empty()
    }
}

struct Stream {
    id: u64,
    name: String,
    source: String,
    description: Value,
    reader: InputStream,
    /// Messages that were read and not yet processed.
    pending: Vec<Message>,
    update: bool,
    /// Set when it was removed: the stream is dropped after its rows were processed.
    removed: bool,
    target: Rc<Target>,
    /// Keys of a table in the last pass over the source, and in the current one.
    previous: HashMap<Vec<u8>, (Value, Value)>,
    current: HashMap<Vec<u8>, (Value, Value)>,
    error_event: Option<FuncId>,
}

/// The destination of rows.
enum Target {
    Table {
        table: Value,
        index: TypeId,
        value: Option<TypeId>,
        index_columns: usize,
        want_record: bool,
        predicate: Option<Rc<FuncValue>>,
        event: Option<FuncId>,
    },
    Event {
        fields: TypeId,
        want_record: bool,
        event: FuncId,
    },
    /// File analyzers: each row is the next chunk of a file.
    Analysis,
}

/// The columns of a record type, including fields of nested records; and whether all its fields can be read. Errors are reported;
/// `lenient` streams omit optional fields that cannot be read.
pub(super) fn columns(
    vm: &mut Vm<'_>,
    ty: TypeId,
    prefix: &str,
    lenient: bool,
    out: &mut Vec<Column>,
) -> bool {
    let fields = vm.p.types.record(ty).map(|record| record.fields.clone()).unwrap_or_default();
    for one in &fields {
        let own = vm.p.name(one.name).to_owned();
        let name = format!("{prefix}{own}");
        let optional = find_attr(&one.attrs, AttrKind::Optional).is_some();
        if !is_readable(vm, one.ty, false) {
            if input_checks::leaves_out(vm, one.ty, &name, optional, lenient) {
                continue;
            }
            return false;
        }
        if let Some(inner) = vm.p.types.record(one.ty) {
            if optional && !inner.fields.is_empty() {
                let text = format!(
                    "The input framework does not support optional record fields: \"{own}\""
                );
                vm.report(Severity::Info, text);
                return false;
            }
            if !columns(vm, one.ty, &format!("{name}."), lenient, out) {
                return false;
            }
            continue;
        }
        let Some(kind) = kind_of(vm, one.ty) else { return false };
        let mut column = Column::new(name, kind);
        column.optional = optional;
        if let Some(expr) = attr_expr(&one.attrs, AttrKind::TypeColumn)
            && let crate::ast::ExprKind::Literal(crate::literal::Literal::String(text)) =
                &vm.p.exprs[expr].kind
        {
            column.secondary = Some(String::from_utf8_lossy(text).into_owned());
        }
        out.push(column);
    }
    true
}

/// Reports why a stream is not created.
fn report_refusal(vm: &mut Vm<'_>, name: &str, why: &str) -> Result<Value> {
    vm.report(Severity::Error, format!("Input stream {name}: {why}"));
    Ok(Value::Bool(false))
}

fn create_table(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let description = arg(args, 0);
    let name = field(vm, description, "name").text();
    let checked = match input_checks::table_stream(vm, description) {
        Ok(checked) => checked,
        Err(why) => return report_refusal(vm, &name, &why),
    };
    let target = Target::Table {
        table: field(vm, description, "destination"),
        index: checked.index,
        value: checked.value,
        index_columns: checked.index_columns,
        want_record: checked.want_record,
        predicate: field(vm, description, "pred").func().cloned(),
        event: field(vm, description, "ev").func().map(|func| func.func),
    };
    open(vm, description, name, checked.columns, target)
}

fn create_event(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let description = arg(args, 0);
    let name = field(vm, description, "name").text();
    let (fields, all, want_record) = match input_checks::event_stream(vm, description) {
        Ok(checked) => checked,
        Err(why) => return report_refusal(vm, &name, &why),
    };
    let Value::Func(event) = field(vm, description, "ev") else {
        return report_refusal(vm, &name, "'ev' field is not an event");
    };
    let target = Target::Event { fields, want_record, event: event.func };
    open(vm, description, name, all, target)
}

fn value_format(vm: &Vm<'_>, module: &str, config: &HashMap<String, String>) -> ValueFormat {
    let mut format = ValueFormat::default();
    for (name, slot) in [
        ("set_separator", &mut format.set_separator),
        ("empty_field", &mut format.empty_field),
        ("unset_field", &mut format.unset_field),
    ] {
        if let Some(text) = vm.global_named(&format!("{module}::{name}")).bytes() {
            *slot = text.to_vec();
        }
        if let Some(text) = config.get(name) {
            *slot = text.clone().into_bytes();
        }
    }
    format
}

fn open(
    vm: &mut Vm<'_>,
    description: &Value,
    name: String,
    columns: Vec<Column>,
    target: Target,
) -> Result<Value> {
    if vm.m.state.inputs.streams.iter().any(|stream| stream.name == name && !stream.removed) {
        vm.report(Severity::Error, format!("Trying create already existing input stream {name}"));
        return Ok(Value::Bool(false));
    }
    let source = field(vm, description, "source").text();
    let mode = match field(vm, description, "mode").int() {
        1 => Mode::Reread,
        2 => Mode::Stream,
        _ => Mode::Manual,
    };
    let mut reader_source = Source::new(&name, &source, mode);
    if let Some(table) = field(vm, description, "config").table() {
        reader_source.config =
            table.entries().iter().map(|(key, value)| (key.text(), value.text())).collect();
    }
    let flag = |vm: &Vm<'_>, name: &str| vm.global_named(name).truth();
    let reader = field(vm, description, "reader");
    let (reader, messages) = match json::name_of(vm, &reader).as_str() {
        "Input::READER_RAW"
            if reader_source.source.ends_with('|')
                && super::system::refused_in_sandbox(vm, "exec") =>
        {
            return Ok(Value::Bool(false));
        }
        "Input::READER_RAW" => {
            let mut options = RawOptions::default();
            if let Some(text) = vm.global_named("InputRaw::record_separator").bytes() {
                options.record_separator = text.to_vec();
            }
            InputStream::raw(reader_source, columns, options)
        }
        "Input::READER_CONFIG" => {
            let options = ConfigOptions {
                values: value_format(vm, "InputConfig", &reader_source.config),
                fail_on_file_problem: flag(vm, "InputConfig::fail_on_file_problem"),
                options: config_options(vm),
            };
            InputStream::config(reader_source, options)
        }
        "Input::READER_BINARY" => {
            let size = vm.global_named("InputBinary::chunk_size").count();
            let options = BinaryOptions {
                chunk_size: usize::try_from(size).unwrap_or(usize::MAX),
                path_prefix: vm.global_named("InputBinary::path_prefix").text(),
            };
            InputStream::binary(reader_source, columns, &options)
        }
        "Input::READER_BENCHMARK" => {
            InputStream::benchmark(reader_source, columns, BenchmarkOptions::default())
        }
        #[cfg(feature = "sqlite")]
        "Input::READER_SQLITE" => {
            let format = value_format(vm, "InputSQLite", &reader_source.config);
            InputStream::sqlite(reader_source, columns, format)
        }
        _ => {
            let mut options = AsciiOptions {
                values: value_format(vm, "InputAscii", &reader_source.config),
                fail_on_invalid_lines: flag(vm, "InputAscii::fail_on_invalid_lines"),
                fail_on_file_problem: flag(vm, "InputAscii::fail_on_file_problem"),
                path_prefix: vm.global_named("InputAscii::path_prefix").text(),
                ..AsciiOptions::default()
            };
            if let Some(text) = vm.global_named("InputAscii::separator").bytes() {
                options.separator = text.to_vec();
            }
            InputStream::ascii(reader_source, columns, options)
        }
    };
    vm.m.state.inputs.next_id += 1;
    let id = vm.m.state.inputs.next_id;
    let error_event = field(vm, description, "error_ev").func().map(|func| func.func);
    vm.m.state.inputs.streams.push(Stream {
        id,
        name,
        source,
        description: description.clone(),
        reader,
        pending: messages,
        removed: false,
        update: false,
        target: Rc::new(target),
        previous: HashMap::new(),
        current: HashMap::new(),
        error_event,
    });
    Ok(Value::Bool(true))
}

fn config_options(vm: &Vm<'_>) -> HashMap<String, OptionType> {
    let mut options = HashMap::new();
    for (_, global) in vm.p.globals.arena.iter() {
        if global.kind == GlobalKind::Option {
            let ty = kind_of(vm, global.ty).map_or_else(
                || OptionType::Unsupported(crate::describe::type_text(vm.p, global.ty)),
                OptionType::Known,
            );
            options.insert(vm.p.name(global.name).to_owned(), ty);
        }
    }
    options
}

/// Processes the messages of all readers; returns whether any was pending.
///
/// # Errors
/// [`Stop`] where the program stops.
pub(super) fn poll(vm: &mut Vm<'_>) -> Result<bool> {
    for (name, source) in std::mem::take(&mut vm.m.state.inputs.analyzed) {
        end_of_data(vm, name, source);
    }
    if vm.m.state.inputs.streams.is_empty() {
        return Ok(false);
    }
    let now = crate::vm::events::wall_clock();
    let beat = now >= vm.m.state.inputs.next_heartbeat;
    if beat {
        vm.m.state.inputs.next_heartbeat = now + 0.1;
    }
    let mut busy = false;
    let ids: Vec<u64> = vm.m.state.inputs.streams.iter().map(|stream| stream.id).collect();
    for id in ids {
        let Some(stream) = vm.m.state.inputs.streams.iter_mut().find(|stream| stream.id == id)
        else {
            continue;
        };
        let mut messages = std::mem::take(&mut stream.pending);
        if stream.removed {
            // Its reader is not polled.
        } else if std::mem::take(&mut stream.update) {
            messages.extend(stream.reader.update());
        } else if beat && messages.is_empty() {
            messages.extend(stream.reader.heartbeat());
        }
        busy |= !messages.is_empty();
        for message in messages {
            process(vm, id, message)?;
        }
    }
    vm.m.state.inputs.streams.retain(|stream| !stream.removed);
    Ok(busy)
}

fn find<'a>(vm: &'a mut Vm<'_>, id: u64) -> Option<&'a mut Stream> {
    vm.m.state.inputs.streams.iter_mut().find(|stream| stream.id == id)
}

fn process(vm: &mut Vm<'_>, id: u64, message: Message) -> Result<()> {
    let Some(stream) = find(vm, id) else { return Ok(()) };
    let (name, source) = (stream.name.clone(), stream.source.clone());
    let target = Rc::clone(&stream.target);
    let description = stream.description.clone();
    match message {
        Message::Put { fields, line } => {
            row(
                vm,
                &RowPosition { id, name, source, line },
                &target,
                &description,
                &fields,
                false,
            )?;
        }
        Message::Entry { fields, line } => {
            row(vm, &RowPosition { id, name, source, line }, &target, &description, &fields, true)?;
        }
        Message::EndOfSend => {
            match &*target {
                Target::Table { .. } => remove_missing(vm, id, &target, &description)?,
                Target::Analysis => {
                    analyze(vm, &name, Vec::new(), true);
                    vm.m.state.inputs.analyzed.push((name, source));
                    return Ok(());
                }
                Target::Event { .. } => {}
            }
            end_of_data(vm, name, source);
        }
        Message::Event(event, fields) => {
            if let Some(func) = vm.function_named(event) {
                let params: Vec<TypeId> =
                    vm.p.types
                        .params(vm.p.functions[func].ty)
                        .iter()
                        .map(|param| param.ty)
                        .collect();
                // The value has the type of the option; the event declares it as `any`.
                let option = match fields.get(2) {
                    Some(Field::String(name)) => vm.find_global(&String::from_utf8_lossy(name)),
                    _ => None,
                };
                let option_ty = option.map_or(TypeId::ANY, |option| vm.p.globals[option].ty);
                let mut args = Vec::new();
                for (field, ty) in fields.iter().zip(params) {
                    let ty = if ty == TypeId::ANY { option_ty } else { ty };
                    if let Some(name) = unknown_enum(vm, field, ty) {
                        warn_of_enum(vm, &source, &description, field, &name);
                        vm.report(Severity::Error, format!("SendEvent for event {event} failed"));
                        return Ok(());
                    }
                    args.push(to_value(vm, field, ty));
                }
                vm.queue_event(func, args);
            }
        }
        Message::Warning(note) => notify(vm, id, Severity::Warning, "Reporter::WARNING", &note),
        Message::Error(note) => notify(vm, id, Severity::Error, "Reporter::ERROR", &note),
        Message::Disabled => (),
    }
    Ok(())
}

fn notify(vm: &mut Vm<'_>, id: u64, severity: Severity, level: &str, note: &ReaderMessage) {
    let Some(stream) = find(vm, id) else { return };
    let (source, description, event) =
        (stream.source.clone(), stream.description.clone(), stream.error_event);
    let reader = field(vm, &description, "reader");
    let reader = json::name_of(vm, &reader);
    vm.report(severity, format!("{source}/{reader}: {note}"));
    if let Some(event) = event {
        let level = vm.enum_named(level);
        vm.queue_event(event, vec![description, Value::string(note.text.as_str()), level]);
    }
}

/// The stream, file and line of a row.
struct RowPosition {
    id: u64,
    name: String,
    source: String,
    line: Option<u64>,
}

impl RowPosition {
    /// Warns that a row is skipped, because a value that is not optional is missing.
    fn warn_missing(&self, vm: &mut Vm<'_>, part: &str, name: Name) {
        let name = vm.p.name(name);
        let text = format!("Skipping input with missing non-optional value ({part} field {name})");
        let text = match self.line {
            Some(line) => format!("{}:{line}: {text}", self.source),
            None => text,
        };
        self.warn(vm, &text);
    }

    fn warn(&self, vm: &mut Vm<'_>, text: &str) {
        let Some(stream) = find(vm, self.id) else { return };
        let (description, event) = (stream.description.clone(), stream.error_event);
        if let Some(event) = event {
            let level = vm.enum_named("Reporter::WARNING");
            vm.queue_event(event, vec![description, Value::string(text), level]);
        }
        vm.report(Severity::Warning, text);
    }

    /// Converts a field to a value of a type; warns and returns `None` if it is an unknown enumerator.
    fn value(&self, vm: &mut Vm<'_>, field: &Field<'_>, ty: TypeId) -> Option<Value> {
        let Some(name) = unknown_enum(vm, field, ty) else { return Some(to_value(vm, field, ty)) };
        let text = format!("Value '{name}' for stream '{}' is not a valid enum.", self.name);
        let text = match self.line {
            Some(line) => format!("{}, line {line}: {text}", self.source),
            None => text,
        };
        self.warn(vm, &text);
        None
    }

    /// Fills a record with fields, in the order of [`columns`]; warns and returns `None` if the row is skipped.
    fn fill(
        &self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        fields: &mut std::slice::Iter<'_, Field<'static>>,
        needs: Needs,
    ) -> Result<Option<Value>> {
        let record = vm.p.types.record(ty);
        let columns: Vec<(Name, TypeId, bool)> = record.map_or_else(Vec::new, |record| {
            let optional = |attrs| find_attr(attrs, AttrKind::Optional).is_some();
            record.fields.iter().map(|f| (f.name, f.ty, optional(&f.attrs))).collect()
        });
        let mut offsets = Vec::new();
        let mut given = Vec::new();
        for (offset, (name, ty, optional)) in columns.into_iter().enumerate() {
            let value = if vm.p.types.tag(ty) == Tag::Record {
                self.fill(vm, ty, fields, Needs::Fields)?
            } else if !is_readable(vm, ty, false) {
                // A field without a column.
                Some(Value::Unset)
            } else {
                let field = fields.next().unwrap_or(&Field::Unset);
                match (field, needs) {
                    (Field::Unset, Needs::Fields) if !optional => {
                        self.warn_missing(vm, "record", name);
                        None
                    }
                    (Field::Unset, Needs::Index) => {
                        self.warn_missing(vm, "index", name);
                        None
                    }
                    _ => self.value(vm, field, ty),
                }
            };
            let Some(value) = value else { return Ok(None) };
            if value.is_set() {
                offsets.push(offset as u32);
                given.push(value);
            }
        }
        vm.new_record(ty, &offsets, given).map(Some)
    }
}

/// Which fields of a record must be set in a row; nested records always need all fields that are not optional.
#[derive(Clone, Copy)]
enum Needs {
    /// All fields that are not optional.
    Fields,
    /// All fields: they are the index of a table.
    Index,
    /// No field.
    Nothing,
}

/// The name of an enumerator that the enum type does not have.
fn unknown_enum(vm: &Vm<'_>, field: &Field<'_>, ty: TypeId) -> Option<String> {
    match field {
        Field::Enum(name) => {
            let name = String::from_utf8_lossy(name).into_owned();
            let known = vm.p.names.find(&name).and_then(|n| vm.p.types.enumeration(ty)?.value(n));
            known.is_none().then_some(name)
        }
        Field::Set(items) => {
            let Type::Table(table) = vm.p.types.get(ty) else { return None };
            let element = *table.index.first()?;
            items.iter().find_map(|item| unknown_enum(vm, item, element))
        }
        Field::Vector(items) => {
            let element = vm.p.types.element(ty)?;
            items.iter().find_map(|item| unknown_enum(vm, item, element))
        }
        _ => None,
    }
}

/// Warns about an unknown enumerator in an event of a reader.
fn warn_of_enum(vm: &mut Vm<'_>, source: &str, description: &Value, field: &Field<'_>, name: &str) {
    let first = match field {
        Field::Set(items) | Field::Vector(items) => items.first(),
        _ => None,
    };
    // As in Zeek, the wording depends on the first element of a container.
    let is_first = matches!(first, Some(Field::Enum(first)) if **first == *name.as_bytes());
    let word = if is_first { "of" } else { "for" };
    let reader = json::name_of(vm, &super::log::field(vm, description, "reader"));
    let text =
        format!("Value '{name}' {word} source 'thread {source}/{reader}' is not a valid enum.");
    vm.report(Severity::Warning, text);
}

/// The values of a record's fields, as separate arguments.
fn spread(value: &Value) -> Vec<Value> {
    value.record().map(|record| record.fields().clone()).unwrap_or_default()
}

fn end_of_data(vm: &mut Vm<'_>, name: String, source: String) {
    vm.queue_named("Input::end_of_data", vec![Value::string(name), Value::string(source)]);
}

/// Passes the next chunk of a file to its analyzers.
fn analyze(vm: &mut Vm<'_>, name: &str, data: Vec<u8>, ends: bool) {
    let source = name.to_owned();
    vm.m.state.traffic.commands.push(Command::Contents { source, data, ends });
}

fn row(
    vm: &mut Vm<'_>,
    position: &RowPosition,
    target: &Target,
    description: &Value,
    fields: &[Field<'static>],
    complete: bool,
) -> Result<()> {
    let id = position.id;
    match target {
        Target::Event { fields: ty, want_record, event } => {
            let needs = if *want_record { Needs::Fields } else { Needs::Nothing };
            let Some(record) = position.fill(vm, *ty, &mut fields.iter(), needs)? else {
                return Ok(());
            };
            let kind = vm.enum_named("Input::EVENT_NEW");
            let mut args = vec![description.clone(), kind];
            if *want_record {
                args.push(record);
            } else {
                args.extend(spread(&record));
            }
            vm.queue_event(*event, args);
        }
        Target::Analysis => {
            if let Some(Field::String(data)) = fields.first() {
                let name = field(vm, description, "name").text();
                analyze(vm, &name, data.to_vec(), false);
            }
        }
        Target::Table { table, index, value, index_columns, want_record, predicate, event } => {
            let Value::Table(table) = table else { return Ok(()) };
            let (left, right) = fields.split_at((*index_columns).min(fields.len()));
            if !left.is_empty() && left.iter().all(|field| matches!(field, Field::Unset)) {
                position.warn(vm, "Could not hash line. Ignoring");
                return Ok(());
            }
            let value_record = match value {
                Some(ty) => {
                    let single = right.len() == 1 && !*want_record;
                    let needs = if single { Needs::Nothing } else { Needs::Fields };
                    position.fill(vm, *ty, &mut right.iter(), needs)?
                }
                None => Some(Value::Unset),
            };
            let Some(value_record) = value_record else { return Ok(()) };
            let needs = if predicate.is_some() { Needs::Fields } else { Needs::Index };
            let Some(key_record) = position.fill(vm, *index, &mut left.iter(), needs)? else {
                return Ok(());
            };
            let list = vm.p.types.table(table.ty()).map_or(TypeId::EMPTY_LIST, |t| t.list);
            let single_record =
                vm.p.types
                    .table(table.ty())
                    .and_then(|t| t.index.first())
                    .is_some_and(|ty| vm.p.types.tag(*ty) == Tag::Record)
                    && table.is_single();
            let key = if single_record {
                key_record.clone()
            } else {
                make_key(&spread(&key_record), list)
            };
            let stored = match value {
                Some(_) if *want_record => value_record.clone(),
                Some(_) => spread(&value_record).into_iter().next().unwrap_or_default(),
                None => Value::Unset,
            };
            let name = crate::value::order::bytes(&key);
            let old;
            if complete && let Some(stream) = find(vm, id) {
                old = stream.previous.remove(&name);
                stream.current.insert(name, (key.clone(), stored.clone()));
                if let Some((_, before)) = &old
                    && crate::value::equal::equal(before, &stored)
                {
                    return Ok(());
                }
            } else {
                old = table.get(parts(&key)).map(|before| (key.clone(), before));
            }
            let kind = vm.enum_named(if old.is_some() {
                "Input::EVENT_CHANGED"
            } else {
                "Input::EVENT_NEW"
            });
            if let Some(predicate) = predicate {
                let mut args = vec![kind.clone(), key_record.clone()];
                if value.is_some() {
                    args.push(stored.clone());
                }
                if !vm.call(predicate, &args)?.truth() {
                    return Ok(());
                }
            }
            vm.insert(table, parts(&key), stored.clone())?;
            if let Some(event) = event {
                let mut args = vec![description.clone(), kind, key_record];
                if value.is_some() {
                    args.push(old.map_or(stored, |(_, before)| before));
                }
                vm.queue_event(*event, args);
            }
        }
    }
    Ok(())
}

/// Removes the rows that the last pass did not contain.
fn remove_missing(vm: &mut Vm<'_>, id: u64, target: &Target, description: &Value) -> Result<()> {
    let Target::Table { table, index, predicate, event, value, .. } = target else {
        return Ok(());
    };
    let Value::Table(table) = table else { return Ok(()) };
    let Some(stream) = find(vm, id) else { return Ok(()) };
    let missing = std::mem::take(&mut stream.previous);
    stream.previous = std::mem::take(&mut stream.current);
    let kind = vm.enum_named("Input::EVENT_REMOVED");
    for (name, (key, before)) in missing {
        let key_record = match &key {
            Value::Record(_) => key.clone(),
            other => {
                let given = parts(other).to_vec();
                let offsets: Vec<u32> = (0..given.len() as u32).collect();
                vm.new_record(*index, &offsets, given)?
            }
        };
        if let Some(predicate) = predicate {
            let mut args = vec![kind.clone(), key_record.clone()];
            if value.is_some() {
                args.push(before.clone());
            }
            if !vm.call(predicate, &args)?.truth() {
                if let Some(stream) = find(vm, id) {
                    stream.previous.insert(name, (key, before));
                }
                continue;
            }
        }
        vm.remove(table, parts(&key))?;
        if let Some(event) = event {
            let mut args = vec![description.clone(), kind.clone(), key_record];
            if value.is_some() {
                args.push(before);
            }
            vm.queue_event(*event, args);
        }
    }
    Ok(())
}

/// Converts a field to a value of a type.
pub(super) fn to_value(vm: &mut Vm<'_>, field: &Field<'_>, ty: TypeId) -> Value {
    match field {
        Field::Unset => Value::Unset,
        Field::Bool(value) => Value::Bool(*value),
        Field::Int(value) => Value::Int(*value),
        Field::Count(value) => Value::Count(*value),
        Field::Port(number, protocol) => {
            let valid = u16::try_from(*number);
            if valid.is_err() {
                vm.report(Severity::Warning, format!("bad port number {number}"));
            }
            Value::Port(Port {
                number: valid.unwrap_or(0),
                protocol: match protocol {
                    FieldProtocol::Tcp => Protocol::Tcp,
                    FieldProtocol::Udp => Protocol::Udp,
                    FieldProtocol::Icmp => Protocol::Icmp,
                    FieldProtocol::Unknown => Protocol::Unknown,
                },
            })
        }
        Field::Subnet(address, width) => {
            let four = address.starts_with(&crate::value::V4_PREFIX) && *width <= 32;
            Value::subnet(*address, if four { width + 96 } else { *width })
        }
        Field::Addr(address) => Value::addr(*address),
        Field::Double(value) => Value::Double(*value),
        Field::Interval(value) => Value::Interval(*value),
        Field::Time(value) => Value::Time(*value),
        Field::String(text) | Field::File(text) | Field::Func(text) => Value::string(text),
        Field::Enum(name) => {
            let name = String::from_utf8_lossy(name).into_owned();
            let number =
                vm.p.names
                    .find(&name)
                    .and_then(|name| vm.p.types.enumeration(ty).and_then(|e| e.value(name)));
            match number {
                Some(number) => Value::Enum(ty, number),
                None => {
                    vm.report(
                        Severity::Warning,
                        format!("Value '{name}' for source is not a valid enum."),
                    );
                    Value::Unset
                }
            }
        }
        Field::Pattern(text, ignore_case, single_line) => {
            let modes = crate::support::pattern::Modes {
                ignore_case: *ignore_case,
                single_line: *single_line,
            };
            Value::Pattern(Rc::new(crate::support::pattern::Pattern::new(text, modes)))
        }
        Field::Set(items) => {
            let element = match vm.p.types.get(ty) {
                Type::Table(table) => table.index.first().copied().unwrap_or(TypeId::ANY),
                _ => TypeId::ANY,
            };
            let table = vm.new_table(ty, None);
            for item in items {
                let key = to_value(vm, item, element);
                if let Value::Table(table) = &table {
                    table.insert(key, Value::Unset, vm.m.now);
                }
            }
            table
        }
        Field::Vector(items) => {
            let element = vm.p.types.element(ty).unwrap_or(TypeId::ANY);
            let items = items.iter().map(|item| to_value(vm, item, element)).collect();
            Value::Vector(Vector::new(ty, items))
        }
    }
}
