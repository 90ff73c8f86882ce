//! Metrics: counters, gauges and histograms in families, by labels.
//!
//! Scripts make families and metrics through the functions of this file; frameworks of the engine use [`Metrics`] directly.

use std::collections::HashMap;
use std::rc::Rc;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::strings::bytes;
use super::{Table, arg};
use crate::cache::{Codec, DecodeResult, Reader, Writer, fields};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::opaque::Globs;
use crate::value::table::parts;
use crate::value::{OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("Telemetry::__counter_family", |vm, a| family(vm, a, Kind::Counter)),
    ("Telemetry::__gauge_family", |vm, a| family(vm, a, Kind::Gauge)),
    ("Telemetry::__histogram_family", |vm, a| family(vm, a, Kind::Histogram)),
    ("Telemetry::__counter_metric_get_or_add", metric),
    ("Telemetry::__gauge_metric_get_or_add", metric),
    ("Telemetry::__histogram_metric_get_or_add", metric),
    ("Telemetry::__counter_inc", |vm, a| change(vm, a, 1.0)),
    ("Telemetry::__gauge_inc", |vm, a| change(vm, a, 1.0)),
    ("Telemetry::__gauge_dec", |vm, a| change(vm, a, -1.0)),
    ("Telemetry::__histogram_observe", |vm, a| {
        let metric = metric_of(a);
        let value = arg(a, 1).double();
        Ok(Value::Bool(metric.is_some_and(|metric| vm.m.state.metrics.observe(metric, value))))
    }),
    ("Telemetry::__counter_value", value_of),
    ("Telemetry::__gauge_value", value_of),
    ("Telemetry::__histogram_sum", value_of),
    ("get_event_handler_stats", handler_stats),
    ("Telemetry::__collect_metrics", |vm, a| collect(vm, a, false)),
    ("Telemetry::__collect_histogram_metrics", |vm, a| collect(vm, a, true)),
];

/// What a family measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// What only grows.
    Counter,
    /// What grows and shrinks.
    Gauge,
    /// Observations by size.
    Histogram,
}

/// Metrics of one name.
#[derive(Clone, Debug)]
struct FamilyData {
    kind: Kind,
    prefix: Vec<u8>,
    /// Its name without prefix and unit, which patterns match.
    name: Vec<u8>,
    /// Prefix, name, unit, and `_total` of counters.
    full: Vec<u8>,
    help: Vec<u8>,
    bounds: Vec<f64>,
}

/// Names of labels with their values.
pub(crate) type Labels = Vec<(Vec<u8>, Vec<u8>)>;

/// A metric: a family with values of its labels.
#[derive(Clone, Debug)]
struct MetricData {
    family: usize,
    /// Names of labels with their values, by name.
    labels: Labels,
    /// The value, or the sum of observations.
    value: f64,
    /// How many observations each bucket has, the last one those beyond all bounds.
    buckets: Vec<f64>,
}

/// All metrics of a run.
#[derive(Default)]
pub struct Metrics {
    families: Vec<FamilyData>,
    metrics: Vec<MetricData>,
    /// The metric of each family and labels.
    known: HashMap<(usize, Labels), usize>,
    /// Whether hooks are bringing metrics up to date.
    syncing: bool,
}

impl Metrics {
    /// The family of this prefix and name; it is made where it does not exist.
    pub fn family(
        &mut self,
        kind: Kind,
        prefix: &[u8],
        name: &[u8],
        unit: &[u8],
        help: &[u8],
        bounds: Vec<f64>,
    ) -> usize {
        // Names may be written with dashes and the like.
        let plain = |text: &[u8]| -> Vec<u8> {
            text.iter().map(|b| if b.is_ascii_alphanumeric() { *b } else { b'_' }).collect()
        };
        let (prefix, name) = (&*plain(prefix), &*plain(name));
        let mut full = [prefix, b"_", name].concat();
        if !unit.is_empty() && unit != b"1" {
            full = [&full, b"_".as_slice(), unit].concat();
        }
        if kind == Kind::Counter {
            full.extend_from_slice(b"_total");
        }
        if let Some(known) = self.families.iter().position(|family| family.full == full) {
            return known;
        }
        self.families.push(FamilyData {
            kind,
            prefix: prefix.to_vec(),
            name: name.to_vec(),
            full,
            help: help.to_vec(),
            bounds,
        });
        self.families.len() - 1
    }

    /// The metric of a family with these labels; it is made where it does not exist.
    pub fn metric(&mut self, family: usize, mut labels: Labels) -> usize {
        labels.sort();
        let next = self.metrics.len();
        let known = *self.known.entry((family, labels.clone())).or_insert(next);
        if known < next {
            return known;
        }
        let buckets = self.families.get(family).map_or(0, |family| family.bounds.len() + 1);
        self.metrics.push(MetricData { family, labels, value: 0.0, buckets: vec![0.0; buckets] });
        self.metrics.len() - 1
    }

    /// Adds to a counter or gauge; whether it exists.
    pub fn add(&mut self, metric: usize, amount: f64) -> bool {
        self.metrics.get_mut(metric).map(|metric| metric.value += amount).is_some()
    }

    /// Sets a gauge.
    pub fn set(&mut self, metric: usize, value: f64) {
        if let Some(metric) = self.metrics.get_mut(metric) {
            metric.value = value;
        }
    }

    /// The value of a metric.
    #[must_use]
    pub fn value(&self, metric: usize) -> f64 {
        self.metrics.get(metric).map_or(0.0, |metric| metric.value)
    }

    /// Counts an observation of a histogram; whether it exists.
    pub fn observe(&mut self, metric: usize, value: f64) -> bool {
        let Some(metric) = self.metrics.get_mut(metric) else { return false };
        let bounds = self.families.get(metric.family).map_or(&[][..], |family| &family.bounds);
        let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        if let Some(count) = metric.buckets.get_mut(bucket) {
            *count += 1.0;
        }
        metric.value += value;
        true
    }
}

fields! {
    FamilyData { kind, prefix, name, full, help, bounds }
    MetricData { family, labels, value, buckets }
    Metrics { families, metrics, known, syncing }
}

impl Codec for Kind {
    fn encode(&self, to: &mut Writer) {
        to.byte(*self as u8);
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        match from.byte()? {
            0 => Ok(Self::Counter),
            1 => Ok(Self::Gauge),
            2 => Ok(Self::Histogram),
            _ => Err(crate::cache::Damaged),
        }
    }
}

/// Whether an opaque value is a metric or a family, and its number; `None` where it is neither.
pub(crate) fn handle(value: &OpaqueValue) -> Option<(bool, usize)> {
    let family = value.with(|family: &mut Family| (false, family.0));
    family.or_else(|| value.with(|metric: &mut Metric| (true, metric.0)))
}

/// The opaque value of a metric or a family.
pub(crate) fn from_handle(ty: TypeId, is_metric: bool, number: usize) -> Rc<OpaqueValue> {
    if is_metric {
        OpaqueValue::new(ty, Metric(number))
    } else {
        OpaqueValue::new(ty, Family(number))
    }
}

#[derive(Clone)]
struct Family(usize);

#[derive(Clone)]
struct Metric(usize);

fn opaque<T: Clone + 'static>(vm: &Vm<'_>, data: T) -> Result<Value> {
    Ok(Value::Opaque(OpaqueValue::new(vm.result_type(), data)))
}

fn family(vm: &mut Vm<'_>, args: &[Value], kind: Kind) -> Result<Value> {
    let histogram = usize::from(kind == Kind::Histogram);
    let bounds = match arg(args, 3) {
        Value::Vector(bounds) if histogram == 1 => {
            bounds.items().iter().map(Value::double).collect()
        }
        _ => Vec::new(),
    };
    let (help, unit) = (bytes(args, 3 + histogram), bytes(args, 4 + histogram));
    if let Some(fault) = fault_of_name(bytes(args, 0), bytes(args, 1), unit) {
        vm.report(Severity::Fatal, fault);
        return Err(Stop::Fatal);
    }
    let metrics = &mut vm.m.state.metrics;
    let index = metrics.family(kind, bytes(args, 0), bytes(args, 1), unit, help, bounds);
    opaque(vm, Family(index))
}

/// What is wrong with the name of a family: the end of Prometheus' sums is reserved.
fn fault_of_name(prefix: &[u8], name: &[u8], unit: &[u8]) -> Option<&'static str> {
    let is_sum = |text: &[u8]| text.ends_with(b"_total");
    if prefix.is_empty() || name.is_empty() {
        return Some("Telemetry metric families must have a non-zero-length prefix and name");
    }
    if name == b"total" || is_sum(name) {
        return Some("Metric names cannot end with '_total'");
    }
    (unit == b"total" || is_sum(unit)).then_some("Metric units cannot end with '_total'")
}

fn metric(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let family =
        arg(args, 0).opaque().and_then(|opaque| opaque.with(|family: &mut Family| family.0));
    let Some(family) = family else { return Ok(Value::Unset) };
    let labels = arg(args, 1).table().map(|table| table.entries()).unwrap_or_default();
    let labels = labels
        .iter()
        .map(|(key, value)| {
            let key = parts(key).first().map(|key| key.str_bytes().to_vec());
            (key.unwrap_or_default(), value.str_bytes().to_vec())
        })
        .collect();
    let index = vm.m.state.metrics.metric(family, labels);
    opaque(vm, Metric(index))
}

fn metric_of(args: &[Value]) -> Option<usize> {
    arg(args, 0).opaque()?.with(|metric: &mut Metric| metric.0)
}

fn change(vm: &mut Vm<'_>, args: &[Value], sign: f64) -> Result<Value> {
    let amount = arg(args, 1).double() * sign;
    let metric = metric_of(args);
    Ok(Value::Bool(metric.is_some_and(|metric| vm.m.state.metrics.add(metric, amount))))
}

fn value_of(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let metric = metric_of(args);
    Ok(Value::Double(metric.map_or(0.0, |metric| vm.m.state.metrics.value(metric))))
}

/// Calls the hook that brings metrics up to date.
fn sync(vm: &mut Vm<'_>) -> Result<()> {
    if vm.m.state.metrics.syncing {
        vm.report(Severity::Warning, "Telemetry::sync() hook invoked recursively");
        return Ok(());
    }
    super::storage::update_metrics(vm);
    update_own(vm);
    let Some(hook) = vm.function_named("Telemetry::sync").filter(|hook| vm.has_bodies(*hook))
    else {
        return Ok(());
    };
    vm.m.state.metrics.syncing = true;
    let result = vm.call_func(hook, &[]);
    vm.m.state.metrics.syncing = false;
    if !result?.truth() {
        let text = "Telemetry::sync() implementations skipped due to 'break' usage";
        vm.report(Severity::Warning, text);
    }
    Ok(())
}

/// Events that were handled, by name, with how often.
fn handled(vm: &Vm<'_>) -> Vec<(String, u64)> {
    let calls = vm.m.state.invocations.iter().enumerate().filter(|(_, count)| **count > 0);
    let named = calls.filter_map(|(func, count)| {
        let func = crate::ids::FuncId(u32::try_from(func).ok()?);
        Some((vm.function_name(func).to_owned(), *count))
    });
    let mut all: Vec<_> = named.collect();
    all.sort();
    all
}

/// `get_event_handler_stats`
fn handler_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let crate::types::Type::Vector(element) = *vm.p.types.get(ty) else { return Ok(Value::Unset) };
    let items = handled(vm).into_iter().map(|(name, count)| {
        Value::Record(Record::new(element, vec![Value::string(name), Value::Count(count)]))
    });
    Ok(Value::Vector(Vector::new(ty, items.collect())))
}

/// Brings the metrics of the run itself up to date.
fn update_own(vm: &mut Vm<'_>) {
    let handled = handled(vm);
    let state = &mut vm.m.state;
    let metrics = &mut state.metrics;
    let help = b"Number of times the given event handler was called";
    let family =
        metrics.family(Kind::Counter, b"zeek", b"event_handler_invocations", b"", help, Vec::new());
    for (name, count) in handled {
        let metric = metrics.metric(family, vec![(b"name".to_vec(), name.into_bytes())]);
        metrics.set(metric, count as f64);
    }
    let mut one = |kind, prefix: &str, name: &str, unit: &str, help: &str, value: f64| {
        let (prefix, name) = (prefix.as_bytes(), name.as_bytes());
        let family =
            metrics.family(kind, prefix, name, unit.as_bytes(), help.as_bytes(), Vec::new());
        let metric = metrics.metric(family, Vec::new());
        metrics.set(metric, value);
    };
    if let Some(process) = Process::own() {
        let help = "Total user CPU usage in seconds";
        one(Kind::Counter, "process", "cpu_user", "seconds", help, process.user);
        let help = "Total system CPU usage in seconds";
        one(Kind::Counter, "process", "cpu_system", "seconds", help, process.system);
        let help = "Resident memory size";
        one(Kind::Gauge, "process", "resident_memory", "bytes", help, process.resident);
        let help = "Virtual memory size";
        one(Kind::Gauge, "process", "virtual_memory", "bytes", help, process.virtual_size);
        let help = "Number of open file descriptors";
        one(Kind::Gauge, "process", "open_fds", "", help, process.files);
        let help = "Start time of the process since unix epoch in seconds";
        one(Kind::Gauge, "process", "start_time", "seconds", help, process.started);
    }
    // There is no Broker: nothing is connected, and no message passes.
    one(Kind::Gauge, "broker", "connections", "", "Number of active network connections", 0.0);
    let help = b"Total number of processed messages";
    let family =
        metrics.family(Kind::Counter, b"broker", b"processed_messages", b"", help, Vec::new());
    for kind in ["data", "command", "routing-update", "ping", "pong"] {
        metrics.metric(family, vec![(b"type".to_vec(), kind.into())]);
    }
    state.traffic.counts.update(metrics);
}

/// What the system says of this process.
struct Process {
    /// Seconds of processor time.
    user: f64,
    system: f64,
    /// Bytes of memory.
    resident: f64,
    virtual_size: f64,
    /// Open files.
    files: f64,
    /// When it began.
    started: f64,
}

impl Process {
    /// Of this process; `None` where the system has no such files (proc(5)).
    fn own() -> Option<Self> {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let page = rustix::param::page_size() as f64;
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name in brackets may hold anything.
        let fields: Vec<f64> = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .skip(1)
            .map(|field| field.parse().unwrap_or_default())
            .collect();
        let boot = std::fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?;
        let files = std::fs::read_dir("/proc/self/fd").ok()?.count();
        // Finer than the units of those files, in which a short run takes no time at all.
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
        Some(Self {
            user: seconds(usage.user_time()),
            system: seconds(usage.system_time()),
            started: boot.trim().parse::<f64>().ok()? + fields.get(18)? / ticks,
            virtual_size: *fields.get(19)?,
            resident: fields.get(20)? * page,
            files: files as f64,
        })
    }
}

/// Sorts metrics as Zeek does for tests. Its order is not one of all: names of the same length are in order only where
/// one comes first, so that the result depends on how few are sorted.
fn sort_for_tests(items: &mut [Sortable]) {
    /// As many as are inserted one by one.
    const FEW: usize = 16;
    if items.len() > FEW {
        items.sort_by(|a, b| {
            (a.name.len(), &a.name, &a.values).cmp(&(b.name.len(), &b.name, &b.values))
        });
        return;
    }
    for at in 1..items.len() {
        let to = match (items.first(), items.get(at)) {
            (Some(first), Some(one)) if one.comes_before(first) => 0,
            (_, Some(one)) => {
                let before = items[..at].iter().rposition(|other| !one.comes_before(other));
                before.map_or(0, |before| before + 1)
            }
            _ => at,
        };
        items[to..=at].rotate_right(1);
    }
}

/// A metric that is sorted.
struct Sortable {
    name: Vec<u8>,
    values: Vec<Vec<u8>>,
    record: Value,
}

impl Sortable {
    fn comes_before(&self, other: &Self) -> bool {
        match self.name.len().cmp(&other.name.len()) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => self.name < other.name || self.values < other.values,
        }
    }
}

/// Metrics whose prefix and name match the patterns, as records.
fn collect(vm: &mut Vm<'_>, args: &[Value], histograms: bool) -> Result<Value> {
    sync(vm)?;
    let result_ty = vm.result_type();
    let record = if histograms { "Telemetry::HistogramMetric" } else { "Telemetry::Metric" };
    let (Some(ty), Some(opts_ty), Some(strings), Some(doubles)) = (
        vm.type_named(record),
        vm.type_named("Telemetry::MetricOpts"),
        vm.type_named("string_vec"),
        vm.type_named("double_vec"),
    ) else {
        return Ok(Value::Vector(Vector::new(result_ty, Vec::new())));
    };
    let matches =
        |pattern: &[u8], text: &[u8]| !Globs::new(&[pattern.to_vec()]).matching(text).is_empty();
    let vector = |ty, items| Value::Vector(Vector::new(ty, items));
    let metrics = &vm.m.state.metrics;
    let mut items = Vec::new();
    // Counters come before gauges.
    let mut families: Vec<_> = metrics.families.iter().enumerate().collect();
    families.sort_by_key(|(_, family)| family.kind == Kind::Gauge);
    for (number, family) in families {
        if (family.kind == Kind::Histogram) != histograms
            || !matches(bytes(args, 0), &family.prefix)
            || !matches(bytes(args, 1), &family.name)
        {
            continue;
        }
        let kind = vm.enum_named(match family.kind {
            Kind::Counter => "Telemetry::COUNTER",
            Kind::Gauge => "Telemetry::GAUGE",
            Kind::Histogram => "Telemetry::HISTOGRAM",
        });
        let bounds: Vec<Value> =
            family.bounds.iter().copied().chain([f64::INFINITY]).map(Value::Double).collect();
        let opts = Value::Record(Record::new(
            opts_ty,
            vec![
                Value::string(&family.prefix),
                Value::string(&family.full),
                Value::Unset,
                Value::string(&family.help),
                vector(strings, Vec::new()),
                Value::Bool(family.kind == Kind::Counter),
                if histograms { vector(doubles, bounds) } else { Value::Unset },
                kind,
            ],
        ));
        let own = metrics.metrics.iter().filter(|metric| metric.family == number);
        for metric in own.rev() {
            let names = metric.labels.iter().map(|(name, _)| Value::string(name)).collect();
            let values = metric.labels.iter().map(|(_, value)| Value::string(value)).collect();
            let mut fields = vec![opts.clone(), vector(strings, names), vector(strings, values)];
            if histograms {
                let buckets = metric.buckets.iter().copied().map(Value::Double).collect();
                fields.push(vector(doubles, buckets));
                fields.push(Value::Double(metric.buckets.iter().sum()));
            }
            fields.push(Value::Double(metric.value));
            items.push(Sortable {
                name: family.full.clone(),
                values: metric.labels.iter().map(|(_, value)| value.clone()).collect(),
                record: Value::Record(Record::new(ty, fields)),
            });
        }
    }
    if vm.global_named("running_under_test").truth() {
        sort_for_tests(&mut items);
    }
    let items = items.into_iter().map(|item| item.record).collect();
    Ok(Value::Vector(Vector::new(result_ty, items)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, value: &str) -> Sortable {
        Sortable { name: name.into(), values: vec![value.into()], record: Value::Unset }
    }

    #[test]
    fn few_metrics_are_inserted_one_by_one() {
        let all = [("a", "y"), ("a", "x"), ("b", "y"), ("b", "x"), ("c", "x"), ("long", "w")];
        let mut all = all.map(|(name, value)| metric(name, value));
        sort_for_tests(&mut all);
        let names: Vec<_> = all.iter().map(|m| (&*m.name, &*m.values[0])).collect();
        let expected = [("a", "x"), ("b", "x"), ("c", "x"), ("a", "y"), ("b", "y"), ("long", "w")];
        assert_eq!(names, expected.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    }

    #[test]
    fn the_process_uses_memory() {
        if let Some(own) = Process::own() {
            assert!(own.resident > 0.0 && own.virtual_size >= own.resident && own.files > 0.0);
        }
    }
}
