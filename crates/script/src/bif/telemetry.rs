//! Metrics: counters, gauges and histograms in families, by labels.
//!
//! Scripts make families and metrics through the functions of this file; frameworks of the engine use [`Metrics`] directly.

use std::rc::Rc;

use super::strings::bytes;
use super::{Table, arg};
use crate::cache::{Codec, Read, Reader, Writer, fields};
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

/// A metric: a family with values of its labels.
#[derive(Clone, Debug)]
struct MetricData {
    family: usize,
    /// Names of labels with their values, by name.
    labels: Vec<(Vec<u8>, Vec<u8>)>,
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
    pub fn metric(&mut self, family: usize, mut labels: Vec<(Vec<u8>, Vec<u8>)>) -> usize {
        labels.sort();
        let known = self
            .metrics
            .iter()
            .position(|metric| metric.family == family && metric.labels == labels);
        if let Some(known) = known {
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
    Metrics { families, metrics, syncing }
}

impl Codec for Kind {
    fn put(&self, to: &mut Writer) {
        to.byte(*self as u8);
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
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
    let metrics = &mut vm.m.state.metrics;
    let index = metrics.family(kind, bytes(args, 0), bytes(args, 1), unit, help, bounds);
    opaque(vm, Family(index))
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
    for (number, family) in metrics.families.iter().enumerate() {
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
        let mut own: Vec<&MetricData> =
            metrics.metrics.iter().filter(|metric| metric.family == number).collect();
        own.sort_by(|a, b| a.labels.cmp(&b.labels));
        for metric in own {
            let names = metric.labels.iter().map(|(name, _)| Value::string(name)).collect();
            let values = metric.labels.iter().map(|(_, value)| Value::string(value)).collect();
            let mut fields = vec![opts.clone(), vector(strings, names), vector(strings, values)];
            if histograms {
                let buckets = metric.buckets.iter().copied().map(Value::Double).collect();
                fields.push(vector(doubles, buckets));
                fields.push(Value::Double(metric.buckets.iter().sum()));
            }
            fields.push(Value::Double(metric.value));
            items.push(Value::Record(Record::new(ty, fields)));
        }
    }
    Ok(Value::Vector(Vector::new(result_ty, items)))
}
