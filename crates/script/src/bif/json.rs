//! `to_json` and `from_json`.

use std::rc::Rc;

use super::strings::bytes;
use super::{Table, arg};
use crate::describe;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::literal::{Port, Protocol};
use crate::support::format::json::{self, Json};
use crate::support::pattern::{Modes, Pattern};
use crate::support::text::convert;
use crate::types::{AttrKind, RecordType, TableType, Tag, Type, find_attr};
use crate::value::describe::{cat, enum_name};
use crate::value::table::make_key;
use crate::value::{FuncValue, Record, Value, Vector};
use crate::vm::Vm;

/// The functions of this file.
pub(super) const TABLE: Table = &[("to_json", to_json), ("from_json", from_json)];

/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 500;

fn to_json(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value, Stop> {
    let writer = Writer {
        only_log: arg(args, 1).truth(),
        prefix: arg(args, 2).pattern().cloned(),
        interval_as_double: arg(args, 3).truth(),
    };
    let mut out = Vec::new();
    writer.value(vm, &mut out, arg(args, 0), 0);
    Ok(Value::string_owned(out))
}

/// Writes values as JSON.
pub(super) struct Writer {
    /// Whether only fields with `&log` are written.
    pub only_log: bool,
    /// Prefix to remove from field names.
    pub prefix: Option<Rc<Pattern>>,
    /// Whether intervals are numbers.
    pub interval_as_double: bool,
}

impl Writer {
    /// Appends a value.
    pub(super) fn value(&self, vm: &Vm<'_>, out: &mut Vec<u8>, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            out.extend_from_slice(b"null");
            return;
        }
        match value {
            Value::Unset => out.extend_from_slice(b"null"),
            Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::Int(value) => out.extend(value.to_string().into_bytes()),
            Value::Count(value) => out.extend(value.to_string().into_bytes()),
            Value::Time(value) | Value::Double(value) => json::number(out, *value),
            Value::Interval(value) if self.interval_as_double => json::number(out, *value),
            Value::Port(port) => {
                let protocol = crate::value::describe::port(*port);
                let protocol = protocol.split_once('/').map_or("unknown", |(_, name)| name);
                out.extend(
                    format!("{{\"port\":{},\"proto\":\"{protocol}\"}}", port.number).into_bytes(),
                );
            }
            Value::Short(_) | Value::Long(_) => json::string(out, value.str_bytes()),
            Value::Func(_) => {
                let form = crate::value::describe::Form::Print;
                json::string(out, &crate::value::describe::describe(vm.p, value, form));
            }
            Value::Vector(vector) => {
                let items = vector.items().clone();
                self.array(vm, out, &items, depth);
            }
            Value::List(list) => self.array(vm, out, &list.items, depth),
            Value::Record(record) => self.record(vm, out, record, depth),
            Value::Table(table) => {
                if vm.p.types.is_set(table.ty()) {
                    let keys = table.keys();
                    self.array(vm, out, &keys, depth);
                    return;
                }
                out.push(b'{');
                for (index, (key, value)) in table.entries().iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    // As in Zeek, characters that are escaped in the JSON of a key are escaped again.
                    let mut name = Vec::new();
                    self.value(vm, &mut name, key, depth + 1);
                    if let [b'"', inner @ .., b'"'] = name.as_slice() {
                        name = inner.to_vec();
                    }
                    json::quoted(out, &name);
                    out.push(b':');
                    self.value(vm, out, value, depth + 1);
                }
                out.push(b'}');
            }
            Value::Opaque(opaque) => {
                let name = match vm.p.types.get(opaque.ty) {
                    Type::Opaque(name) => vm.p.name(*name).to_owned(),
                    _ => String::new(),
                };
                out.extend(format!("{{\"opaque_type\":\"{}\"}}", opaque_name(&name)).into_bytes());
            }
            other => json::string(out, &cat(vm.p, other)),
        }
    }

    fn array(&self, vm: &Vm<'_>, out: &mut Vec<u8>, items: &[Value], depth: usize) {
        out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.value(vm, out, item, depth + 1);
        }
        out.push(b']');
    }

    fn record(&self, vm: &Vm<'_>, out: &mut Vec<u8>, record: &Record, depth: usize) {
        let fields = vm.p.types.record(record.ty()).map_or(&[][..], |ty| &ty.fields);
        out.push(b'{');
        let mut first = true;
        for (index, field) in fields.iter().enumerate() {
            let value = record.get(index);
            if !value.is_set() || self.only_log && find_attr(&field.attrs, AttrKind::Log).is_none()
            {
                continue;
            }
            if !first {
                out.push(b',');
            }
            first = false;
            let name = vm.p.name(field.name).as_bytes();
            let cut = self
                .prefix
                .as_ref()
                .and_then(|prefix| prefix.longest_prefix(name, true, true))
                .unwrap_or(0);
            json::string(out, name.get(cut..).unwrap_or(name));
            out.push(b':');
            self.value(vm, out, &value, depth + 1);
        }
        out.push(b'}');
    }
}

/// The displayed name of an opaque type, which in Zeek differs from the name in scripts.
pub(crate) fn opaque_name(name: &str) -> &str {
    match name {
        "topk" => "TopkVal",
        "bloomfilter" => "BloomFilterVal",
        "cardinality" => "CardinalityVal",
        "md5" => "MD5Val",
        "sha1" => "SHA1Val",
        "sha224" => "SHA224Val",
        "sha256" => "SHA256Val",
        "sha384" => "SHA384Val",
        "sha512" => "SHA512Val",
        "entropy" => "EntropyVal",
        "paraglob" => "ParaglobVal",
        "x509" => "X509Val",
        "counter_metric" => "CounterMetricVal",
        "counter_metric_family" => "CounterMetricFamilyVal",
        "gauge_metric" => "GaugeMetricVal",
        "gauge_metric_family" => "GaugeMetricFamilyVal",
        "histogram_metric" => "HistogramMetricVal",
        "histogram_metric_family" => "HistogramMetricFamilyVal",
        "LogDelayToken" => "LogDelayTokenVal",
        "Storage::BackendHandle" => "BackendHandleVal",
        other => other,
    }
}

fn from_json(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value, Stop> {
    let result = vm.result_type();
    let answer = |value: Value, valid: bool, error: Value| {
        Ok(Value::Record(Record::new(result, vec![value, Value::Bool(valid), error])))
    };
    let Value::Type(ty) = arg(args, 1) else {
        vm.builtin_error("from_json() requires a type argument");
        return answer(Value::Unset, false, Value::Unset);
    };
    let parsed = match json::parse(bytes(args, 0)) {
        Ok(parsed) => parsed,
        Err(error) => {
            return answer(Value::Unset, false, Value::string(error.to_string()));
        }
    };
    let mapper = arg(args, 2).func().cloned();
    match read(vm, &parsed, *ty, mapper.as_ref(), 0) {
        Ok(value) => answer(value, true, Value::Unset),
        Err(Failed::Text(text)) => answer(Value::Unset, false, Value::string(text)),
        Err(Failed::Stop(stop)) => Err(stop),
    }
}

/// Why JSON cannot be converted to a type.
pub(super) enum Failed {
    /// Zeek's error message.
    Text(String),
    /// A called function stopped.
    Stop(Stop),
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

fn fail<T>(text: impl Into<String>) -> Result<T, Failed> {
    Err(Failed::Text(text.into()))
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Count(_) | Json::Int(_) | Json::Double(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Converts JSON to a value of a type.
pub(super) fn read(
    vm: &mut Vm<'_>,
    value: &Json,
    ty: TypeId,
    mapper: Option<&Rc<FuncValue>>,
    depth: usize,
) -> Result<Value, Failed> {
    if depth > MAX_DEPTH {
        return fail("JSON is nested too deeply");
    }
    let structure = vm.p.types.get(ty).clone();
    let mismatch = |vm: &Vm<'_>| {
        fail(format!(
            "cannot convert JSON type '{}' to Zeek type '{}'",
            kind(value),
            describe::tag_name(vm.p.types.get(ty))
        ))
    };
    Ok(match (&structure, value) {
        (_, Json::Null) => Value::Unset,
        (Type::Bool, Json::Bool(value)) => Value::Bool(*value),
        (Type::Int, Json::Count(value)) => match i64::try_from(*value) {
            Ok(value) => Value::Int(value),
            Err(_) => return mismatch(vm),
        },
        (Type::Int, Json::Int(value)) => Value::Int(*value),
        (Type::Count, Json::Count(value)) => Value::Count(*value),
        (Type::Double, Json::Count(_) | Json::Int(_) | Json::Double(_)) => {
            Value::Double(number(value))
        }
        (Type::Time, Json::Count(_) | Json::Int(_) | Json::Double(_)) => Value::Time(number(value)),
        (Type::Interval, Json::String(text)) => match interval(text) {
            Some(value) => Value::Interval(value),
            None => return fail("wrong interval format, must be 'number unit[s]'"),
        },
        (Type::Interval, Json::Count(_) | Json::Int(_) | Json::Double(_)) => {
            Value::Interval(number(value))
        }
        (Type::Port, Json::String(text)) => port_of(text)?,
        (Type::Port, Json::Object(members)) => port_of_members(members)?,
        (Type::Pattern, Json::String(text)) => pattern_of(vm, text)?,
        (Type::Addr, Json::String(text)) => match crate::vm::parse_addr(&text_of(text)) {
            Some(addr) => addr,
            None => return fail(format!("invalid value for addr: '{}'", text_of(text))),
        },
        (Type::Subnet, Json::String(text)) => {
            let mut plain = text_of(text);
            plain.retain(|c| c != '[' && c != ']');
            match crate::vm::parse_subnet(&plain) {
                Some(net) => net,
                None => return fail(format!("invalid value for subnet: '{}'", text_of(text))),
            }
        }
        (Type::Enum(values), Json::String(text)) => {
            let name = text_of(text);
            let found = vm.p.names.find(&name).and_then(|name| values.value(name));
            match found {
                Some(number) => Value::Enum(ty, number),
                None => {
                    let type_name = describe::type_text(vm.p, ty).replace("enum ", "");
                    return fail(format!("'{name}' is not a valid enum for '{type_name}'."));
                }
            }
        }
        (Type::String, Json::String(text)) => Value::string(text),
        (Type::Table(table), Json::Array(items)) if table.value.is_none() => {
            let result = vm.new_table(ty, None);
            for item in items.iter().filter(|item| !matches!(item, Json::Null)) {
                let key = read_key(vm, item, &table.index, mapper, depth)?;
                if let Value::Table(set) = &result {
                    set.insert(make_key(&key, table.list), Value::Unset, vm.m.now);
                }
            }
            result
        }
        (Type::Table(table), Json::Object(members)) if let Some(value_type) = table.value => {
            table_of(vm, members, (ty, table, value_type), mapper, depth)?
        }
        (Type::Vector(element), Json::Array(items)) => {
            let mut read_items = Vec::with_capacity(items.len());
            for item in items {
                if matches!(item, Json::Null) {
                    continue;
                }
                read_items.push(read(vm, item, *element, mapper, depth + 1)?);
            }
            Value::Vector(Vector::new(ty, read_items))
        }
        (Type::Record(record), Json::Object(members)) => {
            record_of(vm, members, (ty, record), mapper, depth)?
        }
        _ => return mismatch(vm),
    })
}

/// A port like `80/tcp`.
fn port_of(text: &[u8]) -> Result<Value, Failed> {
    match convert::port(text) {
        Some((number, transport)) if (0..=65_535).contains(&number) => {
            Ok(Value::Port(Port { number: number as u16, protocol: protocol(transport) }))
        }
        _ => fail("wrong port format, string must be /[0-9]{1,5}\\/(tcp|udp|icmp|unknown)/"),
    }
}

/// A port from its members `port` and `proto`.
fn port_of_members(members: &[(Vec<u8>, Json)]) -> Result<Value, Failed> {
    let find =
        |name: &[u8]| members.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let (Some(Json::Count(number)), Some(Json::String(proto))) = (find(b"port"), find(b"proto"))
    else {
        return fail("wrong port format, object must have 'port' and 'proto' members");
    };
    match crate::vm::parse_port(&format!("{number}/{}", text_of(proto))) {
        Some(port) => Ok(port),
        None => fail(format!("invalid port protocol '{}'", text_of(proto))),
    }
}

/// A pattern, with or without the delimiters that Zeek prints.
fn pattern_of(vm: &mut Vm<'_>, text: &[u8]) -> Result<Value, Failed> {
    let text = text.strip_prefix(b"/").and_then(|text| text.strip_suffix(b"/")).unwrap_or(text);
    let inner =
        text.strip_prefix(b"^?(").and_then(|text| text.strip_suffix(b")$?")).unwrap_or(text);
    let pattern = Pattern::new(inner, Modes::default());
    if !pattern.errors().is_empty() || !pattern.is_valid() {
        for error in pattern.errors() {
            vm.report(crate::diagnostics::Severity::Error, error);
        }
        return fail("error compiling pattern");
    }
    Ok(Value::Pattern(Rc::new(pattern)))
}

/// A table of the type `ty` with values of the type `of`: member names are its keys, as strings or as JSON.
fn table_of(
    vm: &mut Vm<'_>,
    members: &[(Vec<u8>, Json)],
    (ty, table, value_type): (TypeId, &TableType, TypeId),
    mapper: Option<&Rc<FuncValue>>,
    depth: usize,
) -> Result<Value, Failed> {
    let result = vm.new_table(ty, None);
    for (name, member) in members {
        let key = if let [one] = &*table.index
            && vm.p.types.tag(*one) == Tag::String
        {
            vec![Value::string(name)]
        } else {
            let parsed = json::parse(name).unwrap_or_else(|_| Json::String(name.clone()));
            read_key(vm, &parsed, &table.index, mapper, depth)?
        };
        let value = read(vm, member, value_type, mapper, depth + 1)?;
        if let Value::Table(into) = &result {
            into.insert(make_key(&key, table.list), value, vm.m.now);
        }
    }
    Ok(result)
}

/// A record; `mapper` maps member names to field names.
fn record_of(
    vm: &mut Vm<'_>,
    members: &[(Vec<u8>, Json)],
    (ty, record): (TypeId, &RecordType),
    mapper: Option<&Rc<FuncValue>>,
    depth: usize,
) -> Result<Value, Failed> {
    let mut mapped: Vec<(Vec<u8>, &Json)> = Vec::with_capacity(members.len());
    for (name, member) in members {
        let name = match mapper {
            Some(func) => vm.call(func, &[Value::string(name)])?.str_bytes().to_vec(),
            None => name.clone(),
        };
        mapped.push((name, member));
    }
    let type_name = describe::type_text(vm.p, ty);
    let mut offsets = Vec::new();
    let mut given = Vec::new();
    for (offset, field) in record.fields.iter().enumerate() {
        let name = vm.p.name(field.name).to_owned();
        let member = mapped.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, m)| *m);
        let optional = find_attr(&field.attrs, AttrKind::Optional).is_some()
            || find_attr(&field.attrs, AttrKind::Default).is_some();
        match member {
            None if optional => (),
            None => {
                return fail(format!("required field {type_name}${name} is missing in JSON"));
            }
            Some(Json::Null) if optional => (),
            Some(Json::Null) => {
                return fail(format!("required field {type_name}${name} is null in JSON"));
            }
            Some(member) => {
                given.push(read(vm, member, field.ty, mapper, depth + 1)?);
                offsets.push(offset as u32);
            }
        }
    }
    Ok(vm.new_record(ty, &offsets, given)?)
}

/// The number of seconds in a text like `2.0 days 3.0 mins`.
fn interval(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace();
    let mut sum = 0.0;
    let mut any = false;
    while let Some(amount) = words.next() {
        let amount: f64 = amount.parse().ok()?;
        let size = match words.next()?.trim_end_matches('s') {
            "day" => 86_400.0,
            "hr" => 3_600.0,
            "min" => 60.0,
            "sec" => 1.0,
            "msec" => 1e-3,
            "usec" => 1e-6,
            _ => return None,
        };
        sum += amount * size;
        any = true;
    }
    any.then_some(sum)
}

fn read_key(
    vm: &mut Vm<'_>,
    value: &Json,
    index: &[TypeId],
    mapper: Option<&Rc<FuncValue>>,
    depth: usize,
) -> Result<Vec<Value>, Failed> {
    match (index, value) {
        ([one], value) => match read(vm, value, *one, mapper, depth + 1)? {
            Value::Unset => fail("index type doesn't match"),
            key => Ok(vec![key]),
        },
        (several, Json::Array(items)) if items.len() == several.len() => {
            let mut key = Vec::with_capacity(items.len());
            for (item, ty) in items.iter().zip(several) {
                key.push(read(vm, item, *ty, mapper, depth + 1)?);
            }
            Ok(key)
        }
        _ => fail("index type doesn't match"),
    }
}

fn number(value: &Json) -> f64 {
    match value {
        Json::Count(value) => *value as f64,
        Json::Int(value) => *value as f64,
        Json::Double(value) => *value,
        _ => 0.0,
    }
}

fn protocol(transport: convert::Transport) -> Protocol {
    match transport {
        convert::Transport::Tcp => Protocol::Tcp,
        convert::Transport::Udp => Protocol::Udp,
        convert::Transport::Icmp => Protocol::Icmp,
    }
}

/// The name of an enum value.
#[must_use]
pub(super) fn name_of(vm: &Vm<'_>, value: &Value) -> String {
    match value {
        Value::Enum(ty, number) => enum_name(vm.p, *ty, *number),
        _ => String::new(),
    }
}
