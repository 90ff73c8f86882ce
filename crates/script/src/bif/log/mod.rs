//! The logging framework: streams and their filters.

mod output;
mod write;

use std::cell::OnceCell;
use std::rc::Rc;

use hashbrown::HashMap;

use super::{Table, arg};
use crate::describe;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{FuncId, TypeId};
use crate::support::field::Column;
use crate::types::{AttrKind, Tag, Type, find_attr};
use crate::value::{FuncValue, Value};
use crate::vm::Vm;

pub(super) use output::kind_of;
pub use output::{close_all, poll_rotations, rotate_due, rotate_leftovers};
pub(crate) use output::{flush_all, report_failures};
pub use write::{delay_due, write_print};

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub const TABLE: Table = &[
    ("Log::__create_stream", create_stream),
    ("Log::__remove_stream", |vm, a| {
        let id = arg(a, 0).int();
        // Delayed writes are written while the stream still has its filters.
        write::release(vm, id)?;
        let found = vm.m.state.log.streams.remove(&id).is_some();
        Ok(Value::Bool(found))
    }),
    ("Log::__enable_stream", |vm, a| enable(vm, a, true)),
    ("Log::__disable_stream", |vm, a| enable(vm, a, false)),
    ("Log::__add_filter", add_filter),
    ("Log::__remove_filter", |vm, a| {
        let name = arg(a, 1).text();
        let id = arg(a, 0).clone();
        match vm.m.state.log.streams.get_mut(&id.int()) {
            Some(stream) => {
                Rc::make_mut(&mut stream.filters).retain(|filter| filter.name != name);
                Ok(Value::Bool(true))
            }
            None => Ok(Value::Bool(false)),
        }
    }),
    ("Log::__write", |vm, a| write::write(vm, arg(a, 0), arg(a, 1))),
    ("Log::__set_buf", output::set_buf),
    ("Log::__flush", output::flush),
    ("Log::flush_all", |vm, _| {
        flush_all(vm);
        Ok(Value::Unset)
    }),
    ("Log::__delay", write::delay),
    ("Log::__delay_finish", write::delay_finish),
    ("Log::__set_max_delay_interval", |vm, a| {
        let seconds = arg(a, 1).double();
        Ok(Value::Bool(match vm.m.state.log.streams.get_mut(&arg(a, 0).int()) {
            Some(stream) => {
                stream.max_delay = seconds;
                true
            }
            None => false,
        }))
    }),
    ("Log::__set_max_delay_queue_size", |vm, a| {
        let size = arg(a, 1).count() as usize;
        let found = match vm.m.state.log.streams.get_mut(&arg(a, 0).int()) {
            Some(stream) => {
                stream.max_delay_queue = size;
                true
            }
            None => false,
        };
        write::evict_excess(vm, arg(a, 0).int())?;
        Ok(Value::Bool(found))
    }),
    ("Log::__get_delay_queue_size", |vm, a| {
        Ok(Value::Int(match vm.m.state.log.streams.get(&arg(a, 0).int()) {
            Some(stream) => stream.delayed.len() as i64,
            None => -1,
        }))
    }),
];

/// Log streams and writers.
#[derive(Default)]
pub struct Logs {
    pub(super) streams: HashMap<i64, Stream>,
    writers: output::Writers,
    /// Rotated logs whose postprocessors have not run yet.
    rotated: Vec<output::Rotation>,
    /// Error messages that are not yet reported.
    failures: Vec<String>,
    /// Number of polls by the main loop.
    pub(super) polls: u64,
    /// Writes whose stream policy is running: `Log::delay` applies to the last.
    writing: Vec<write::Writing>,
    tokens: u64,
    /// `Log::log_stream_policy`, looked up at the first write.
    policy: OnceCell<Option<FuncId>>,
}

impl Logs {
    /// Sets the maximum number of open log files.
    pub(crate) fn set_max_open(&mut self, max_open: usize) {
        self.writers.set_max_open(max_open);
    }

    /// Whether postprocessors of rotated logs are pending.
    pub(super) fn is_rotating(&self) -> bool {
        !self.rotated.is_empty()
    }
}

/// A log stream.
pub(super) struct Stream {
    id: Value,
    name: String,
    columns: TypeId,
    event: Option<FuncId>,
    policy: Option<Rc<FuncValue>>,
    enabled: bool,
    filters: Rc<Vec<Rc<Filter>>>,
    limits: Limits,
    max_delay: f64,
    max_delay_queue: usize,
    delayed: write::Queue,
    /// The metric of its writes; `None` before the first.
    writes: Option<usize>,
    /// Set while writes beyond the limit of delayed writes are released.
    evicts: bool,
}

/// Limits for the size of a written record.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum length of a string, in bytes.
    field_bytes: usize,
    /// Maximum length of all strings of a record, in bytes.
    total_bytes: usize,
    /// Maximum number of elements of a set or vector.
    field_elements: usize,
    /// Maximum number of elements of all sets and vectors of a record.
    total_elements: usize,
}

/// A filter of a log stream.
struct Filter {
    value: Value,
    name: String,
    writer: Value,
    /// The path, once it is determined.
    path: std::cell::RefCell<Option<Rc<str>>>,
    /// The writer of its last row; `None` before the first.
    last_writer: std::cell::Cell<Option<usize>>,
    path_func: Option<Rc<FuncValue>>,
    policy: Option<Rc<FuncValue>>,
    local: bool,
    ext_func: Option<Rc<FuncValue>>,
    columns: Vec<Column>,
    /// Source of each column: whether it is an extension, and the offsets of the nested fields.
    sources: Vec<(bool, Vec<usize>)>,
    interval: f64,
    postprocessor: Option<Rc<FuncValue>>,
    config: Vec<(String, String)>,
}

/// The field of a record with this name.
pub(crate) fn field(vm: &Vm<'_>, value: &Value, name: &str) -> Value {
    let Value::Record(record) = value else { return Value::Unset };
    let offset =
        vm.p.names
            .find(name)
            .and_then(|name| vm.p.types.record(record.ty()).and_then(|ty| ty.offset(name)));
    offset.map(|offset| record.get(offset)).unwrap_or_default()
}

fn create_stream(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (id, stream) = (arg(args, 0), arg(args, 1));
    let name = super::json::name_of(vm, id);
    let Value::Type(columns) = field(vm, stream, "columns") else {
        vm.report(Severity::Error, "logging columns must be a record type");
        return Ok(Value::Bool(false));
    };
    if vm.p.types.tag(columns) != Tag::Record {
        vm.report(Severity::Error, "logging columns must be a record");
        return Ok(Value::Bool(false));
    }
    let fields = vm.p.types.record(columns).map(|record| record.fields.clone()).unwrap_or_default();
    for one in &fields {
        if find_attr(&one.attrs, AttrKind::Log).is_none() {
            continue;
        }
        if kind_of(vm, one.ty).is_none() && vm.p.types.tag(one.ty) != Tag::Record {
            let field_name = vm.p.name(one.name).to_owned();
            vm.report(
                Severity::Error,
                format!("type of field '{field_name}' is not support for logging output"),
            );
            return Ok(Value::Bool(false));
        }
    }
    let event = match field(vm, stream, "ev") {
        Value::Func(func) => {
            let params = vm.p.types.params(func.ty);
            let flavor = vm.p.types.func(func.ty).map(|func| func.flavor);
            if flavor != Some(crate::types::Flavor::Event) {
                vm.report(Severity::Error, "stream event is a function, not an event");
                return Ok(Value::Bool(false));
            }
            if params.len() != 1 {
                vm.report(Severity::Error, "stream event must take a single argument");
                return Ok(Value::Bool(false));
            }
            if params.first().is_none_or(|param| !vm.p.same_type(param.ty, columns)) {
                let text = "stream event's argument type does not match column record type";
                vm.report(Severity::Error, text);
                return Ok(Value::Bool(false));
            }
            Some(func.func)
        }
        _ => None,
    };
    let policy = field(vm, stream, "policy").func().cloned();
    let new = Stream {
        id: id.clone(),
        name,
        columns,
        event,
        policy,
        enabled: true,
        limits: Limits {
            field_bytes: limit(vm, stream, "max_field_string_bytes"),
            total_bytes: limit(vm, stream, "max_total_string_bytes"),
            field_elements: limit(vm, stream, "max_field_container_elements"),
            total_elements: limit(vm, stream, "max_total_container_elements"),
        },
        filters: Rc::default(),
        max_delay: field(vm, stream, "max_delay_interval").double(),
        max_delay_queue: field(vm, stream, "max_delay_queue_size").count() as usize,
        delayed: write::Queue::default(),
        writes: None,
        evicts: false,
    };
    vm.m.state.log.streams.insert(id.int(), new);
    Ok(Value::Bool(true))
}

/// A limit of a stream; `None` if it is 0 or the scripts do not declare it.
fn limit(vm: &Vm<'_>, stream: &Value, name: &str) -> usize {
    match field(vm, stream, name) {
        Value::Count(0) | Value::Unset => usize::MAX,
        limit => usize::try_from(limit.count()).unwrap_or(usize::MAX),
    }
}

fn enable(vm: &mut Vm<'_>, args: &[Value], on: bool) -> Result<Value> {
    match vm.m.state.log.streams.get_mut(&arg(args, 0).int()) {
        Some(stream) => {
            stream.enabled = on;
            Ok(Value::Bool(true))
        }
        None => Ok(Value::Bool(false)),
    }
}

fn add_filter(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (id, value) = (arg(args, 0), arg(args, 1));
    let stream = vm.m.state.log.streams.get(&id.int());
    let Some((columns, stream_policy)) =
        stream.map(|stream| (stream.columns, stream.policy.clone()))
    else {
        return Ok(Value::Bool(false));
    };
    let name = field(vm, value, "name").text();
    let policy = match field(vm, value, "policy") {
        Value::Func(func) => Some(func),
        _ => stream_policy,
    };
    let strings = |value: Value| -> Option<Vec<String>> {
        value.table().map(|table| table.keys().iter().map(Value::text).collect())
    };
    let map = |value: Value| -> Vec<(String, String)> {
        value
            .table()
            .map(|table| {
                table.entries().iter().map(|(key, value)| (key.text(), value.text())).collect()
            })
            .unwrap_or_default()
    };
    let ext_func = field(vm, value, "ext_func").func().cloned();
    let mut plan = Plan {
        include: strings(field(vm, value, "include")),
        exclude: strings(field(vm, value, "exclude")),
        separator: field(vm, value, "scope_sep").text(),
        names: map(field(vm, value, "field_name_map")),
        columns: Vec::new(),
        sources: Vec::new(),
    };
    let ext_type = ext_func
        .as_ref()
        .and_then(|func| ext_record(vm, func))
        .filter(|ty| vm.p.types.tag(*ty) == Tag::Record);
    if let Some(ty) = ext_type {
        let prefix = field(vm, value, "ext_prefix").text();
        if !plan.traverse(vm, ty, &prefix, &mut Vec::new(), true, false, true) {
            return Ok(Value::Bool(false));
        }
    }
    if !plan.traverse(vm, columns, "", &mut Vec::new(), false, false, false) {
        return Ok(Value::Bool(false));
    }
    let path = match field(vm, value, "path") {
        Value::Unset => None,
        path => Some(path.text().into()),
    };
    let interval = field(vm, value, "interv").double();
    let filter = Filter {
        value: value.clone(),
        name: name.clone(),
        writer: field(vm, value, "writer"),
        path: std::cell::RefCell::new(path),
        last_writer: std::cell::Cell::default(),
        path_func: field(vm, value, "path_func").func().cloned(),
        policy,
        local: !matches!(field(vm, value, "log_local"), Value::Bool(false)),
        ext_func: ext_type.and(ext_func),
        columns: plan.columns,
        sources: plan.sources,
        interval,
        postprocessor: field(vm, value, "postprocessor").func().cloned(),
        config: map(field(vm, value, "config")),
    };
    if let Some(stream) = vm.m.state.log.streams.get_mut(&id.int()) {
        Rc::make_mut(&mut stream.filters).retain(|other| other.name != name);
        Rc::make_mut(&mut stream.filters).push(Rc::new(filter));
    }
    Ok(Value::Bool(true))
}

/// The record type that an extension function returns: the declared type, or that of the first value that its body returns.
fn ext_record(vm: &Vm<'_>, func: &FuncValue) -> Option<TypeId> {
    let ty = vm.p.functions.find(func.func).map_or(func.ty, |function| function.ty);
    let result = vm.p.types.func(ty)?.result;
    (result != TypeId::ANY && result != TypeId::VOID).then_some(result)
}

/// Collects the columns of a filter.
struct Plan {
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
    separator: String,
    names: Vec<(String, String)>,
    columns: Vec<Column>,
    sources: Vec<(bool, Vec<usize>)>,
}

impl Plan {
    #[expect(clippy::too_many_arguments, reason = "the state of a walk")]
    fn traverse(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        prefix: &str,
        offsets: &mut Vec<usize>,
        extension: bool,
        optional: bool,
        glue: bool,
    ) -> bool {
        if offsets.len() > 64 {
            return true;
        }
        let fields = vm.p.types.record(ty).map(|record| record.fields.clone()).unwrap_or_default();
        for (offset, one) in fields.iter().enumerate() {
            if find_attr(&one.attrs, AttrKind::Log).is_none() {
                continue;
            }
            let own = vm.p.name(one.name).to_owned();
            let name = if prefix.is_empty() || glue {
                format!("{prefix}{own}")
            } else {
                format!("{prefix}{}{own}", self.separator)
            };
            let optional = optional || find_attr(&one.attrs, AttrKind::Optional).is_some();
            offsets.push(offset);
            if matches!(vm.p.types.get(one.ty), Type::Record(_)) {
                let good = self.traverse(vm, one.ty, &name, offsets, extension, optional, false);
                offsets.pop();
                if !good {
                    return false;
                }
                continue;
            }
            // `include` and `exclude` do not apply to extensions.
            let wanted = extension
                || self.include.as_ref().is_none_or(|set| set.contains(&name))
                    && !self.exclude.as_ref().is_some_and(|set| set.contains(&name));
            if wanted {
                let Some(kind) = kind_of(vm, one.ty) else {
                    vm.report(
                        Severity::Error,
                        format!(
                            "unsupported field type for log column '{name}' of type {}",
                            describe::type_text(vm.p, one.ty)
                        ),
                    );
                    return false;
                };
                let shown = self
                    .names
                    .iter()
                    .find(|(from, _)| *from == name)
                    .map_or_else(|| name.clone(), |(_, to)| to.clone());
                let mut column = Column::new(shown, kind);
                column.optional = optional;
                self.columns.push(column);
                self.sources.push((extension, offsets.clone()));
            }
            offsets.pop();
        }
        true
    }
}

/// Seconds until a log is rotated next: at multiples of the interval since the base time of the day, or since 1970 without a base.
#[must_use]
pub fn until_rotation(now: f64, interval: f64, base: Option<f64>) -> f64 {
    let Some(base) = base else {
        return (now / interval).floor() * interval + interval - now;
    };
    let day = now - now.rem_euclid(86_400.0) + base;
    let left = day + ((now - day) / interval).ceil() * interval - now;
    if left > 0.0 { left } else { interval }
}

/// The base time of rotations, in seconds of the day (`log_rotate_base_time`); `None` if it is not set.
pub fn rotation_base(vm: &mut Vm<'_>) -> Option<f64> {
    let text = vm.global_named("log_rotate_base_time").text();
    if text.is_empty() {
        return None;
    }
    let number = |text: &str, max| text.parse::<u32>().ok().filter(|number| *number <= max);
    let base = text.split_once(':');
    let base = base.and_then(|(hours, minutes)| {
        Some(f64::from(number(hours, 23)? * 3600 + number(minutes, 59)? * 60))
    });
    if base.is_none() {
        vm.report(Severity::Error, "calc_next_rotate(): can't parse rotation base time");
    }
    base
}

#[cfg(test)]
mod tests {
    use super::until_rotation;

    #[test]
    fn logs_rotate_at_multiples_of_the_interval() {
        let (hour, day) = (3_600.0, 86_400.0);
        let noon = 10.0 * day + 12.0 * hour;
        assert_eq!(until_rotation(noon + 1.0, hour, Some(0.0)), hour - 1.0);
        assert_eq!(until_rotation(noon, hour, Some(0.0)), hour);
        // The base is later in the day.
        assert_eq!(until_rotation(noon, day, Some(13.0 * hour)), hour);
        assert_eq!(until_rotation(noon, 7.0 * hour, Some(0.0)), 2.0 * hour);
        assert_eq!(until_rotation(noon, 7.0 * hour, None), 7.0 * hour);
        assert_eq!(until_rotation(noon, -5.0, Some(0.0)), -5.0);
    }
}
