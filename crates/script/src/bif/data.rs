//! Broker data: the form of values outside of the process, and the functions of the Broker framework that create, change and
//! read such data.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::literal::{Port, Protocol};
use crate::source::Span;
use crate::support::format;
use crate::types::{Flavor, Tag, Type};
use crate::value::table::make_key;
use crate::value::{FuncValue, OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// Maximum nesting depth of containers.
const MAX_DEPTH: usize = 200;

/// A Broker value. Sets and tables are ordered by their elements, as in messages.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Data {
    Nil,
    Bool(bool),
    Count(u64),
    Int(i64),
    Real(Number),
    String(Vec<u8>),
    Addr([u8; 16]),
    Subnet([u8; 16], u8),
    Port(u16, u8),
    Time(Number),
    Interval(Number),
    Enum(Box<str>),
    Set(BTreeSet<Self>),
    Table(BTreeMap<Self, Self>),
    Vector(Vec<Self>),
    Opaque(Opaque),
}

/// A copy of an opaque value, whose content is not serialized.
#[derive(Clone)]
pub(crate) struct Opaque(Rc<OpaqueValue>);

impl std::fmt::Debug for Opaque {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Opaque").field(&self.0.ty).finish()
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Opaque {}

impl PartialOrd for Opaque {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Opaque {
    fn cmp(&self, other: &Self) -> Ordering {
        Rc::as_ptr(&self.0).cmp(&Rc::as_ptr(&other.0))
    }
}

/// Copies an opaque value; `None` if its type cannot be copied.
fn duplicate(opaque: &OpaqueValue) -> Option<Rc<OpaqueValue>> {
    let data = (**opaque.data.borrow()).duplicate()?;
    Some(Rc::new(OpaqueValue { ty: opaque.ty, data: std::cell::RefCell::new(data) }))
}

/// Whether messages and stores can contain opaque values of this type.
fn is_serializable(name: &str) -> bool {
    super::json::opaque_name(name) != name
}

/// A floating-point number with a total order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(f64);

impl Number {
    pub(super) fn get(self) -> f64 {
        self.0
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Data {
    /// Converts a value; `None` for files, opaque values that cannot be copied, and containers nested too deep.
    pub(crate) fn from_value(vm: &Vm<'_>, value: &Value) -> Option<Self> {
        Self::at_depth(vm, value, 0)
    }

    fn at_depth(vm: &Vm<'_>, value: &Value, depth: usize) -> Option<Self> {
        if depth > MAX_DEPTH {
            return None;
        }
        let inner = |value: &Value| {
            if value.is_set() { Self::at_depth(vm, value, depth + 1) } else { Some(Self::Nil) }
        };
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Count(value) => Self::Count(*value),
            Value::Double(value) => Self::Real(Number(*value)),
            Value::Time(value) => Self::Time(Number(*value)),
            Value::Interval(value) => Self::Interval(Number(*value)),
            Value::Enum(ty, number) => {
                Self::Enum(crate::value::describe::enum_name(vm.p, *ty, *number).into())
            }
            Value::Port(port) => Self::Port(port.number, port.protocol as u8),
            Value::Addr4(_) | Value::Addr6(_) => Self::Addr(value.addr_bytes()?),
            Value::Net4(..) | Value::Net6(_) => {
                let net = value.as_subnet()?;
                Self::Subnet(net.prefix, net.width)
            }
            Value::Short(_) | Value::Long(_) => Self::String(value.str_bytes().to_vec()),
            Value::Pattern(pattern) => Self::Vector(vec![
                Self::String(pattern.text().to_vec()),
                Self::String(pattern.anywhere_text().to_vec()),
            ]),
            Value::Record(record) if is_data(vm, record) => data_of(record)?,
            Value::Record(record) => {
                Self::Vector(record.fields().iter().map(inner).collect::<Option<_>>()?)
            }
            Value::Vector(vector) => {
                Self::Vector(vector.items().iter().map(inner).collect::<Option<_>>()?)
            }
            Value::List(list) => Self::Vector(list.items.iter().map(inner).collect::<Option<_>>()?),
            Value::Table(table) if vm.p.types.is_set(table.ty()) => {
                Self::Set(table.keys().iter().map(inner).collect::<Option<_>>()?)
            }
            Value::Table(table) => {
                let pair = |(key, value): &(Value, Value)| Some((inner(key)?, inner(value)?));
                Self::Table(table.entries().iter().map(pair).collect::<Option<_>>()?)
            }
            Value::Func(func) if func.captures.borrow().is_empty() => {
                Self::Vector(vec![Self::String(vm.function_name(func.func).into_bytes())])
            }
            Value::Opaque(opaque) => match vm.p.types.get(opaque.ty) {
                Type::Opaque(name) if is_serializable(vm.p.name(*name)) => {
                    Self::Opaque(Opaque(duplicate(opaque)?))
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Converts the data to a value of type `ty`; `None` if it does not fit.
    pub(crate) fn value(&self, vm: &mut Vm<'_>, ty: TypeId) -> Option<Value> {
        let structure = vm.p.types.get(ty).clone();
        Some(match (self, structure) {
            (data, Type::Any) => wrap(vm, data.clone())?,
            (Self::Bool(value), Type::Bool) => Value::Bool(*value),
            (Self::Int(value), Type::Int) => Value::Int(*value),
            (Self::Count(value), Type::Count) => Value::Count(*value),
            (Self::Real(value), Type::Double) => Value::Double(value.0),
            (Self::Time(value), Type::Time) => Value::Time(value.0),
            (Self::Interval(value), Type::Interval) => Value::Interval(value.0),
            (Self::String(text), Type::String) => Value::string(text),
            (Self::Opaque(Opaque(opaque)), Type::Opaque(_)) if vm.p.same_type(opaque.ty, ty) => {
                Value::Opaque(duplicate(opaque)?)
            }
            (Self::Addr(bytes), Type::Addr) => Value::addr(*bytes),
            (Self::Subnet(prefix, width), Type::Subnet) => Value::subnet(*prefix, *width),
            (Self::Port(number, protocol), Type::Port) => {
                let protocols = [Protocol::Unknown, Protocol::Tcp, Protocol::Udp, Protocol::Icmp];
                let protocol = protocols.into_iter().find(|known| *known as u8 == *protocol)?;
                Value::Port(Port { number: *number, protocol })
            }
            (Self::Enum(name), Type::Enum(values)) => {
                Value::Enum(ty, values.value(vm.p.names.find(name)?)?)
            }
            (Self::Vector(texts), Type::Pattern) => match texts.as_slice() {
                [Self::String(exact), Self::String(anywhere)] => Value::Pattern(Rc::new(
                    crate::support::pattern::Pattern::from_texts(exact, anywhere),
                )),
                _ => return None,
            },
            (Self::Vector(parts), Type::Func(_)) => match parts.as_slice() {
                [Self::String(name)] => {
                    let func = vm.function_named(&String::from_utf8_lossy(name))?;
                    Value::Func(FuncValue::new(func, vm.p.functions[func].ty))
                }
                _ => return None,
            },
            (Self::Vector(items), Type::Vector(element)) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    values.push(match item {
                        Self::Nil => Value::Unset,
                        item => item.value(vm, element)?,
                    });
                }
                Value::Vector(Vector::new(ty, values))
            }
            (Self::Vector(items), Type::Record(record)) => {
                if items.len() > record.fields.len() {
                    return None;
                }
                let mut values = Vec::with_capacity(record.fields.len());
                for (position, field) in record.fields.iter().enumerate() {
                    values.push(match items.get(position) {
                        None | Some(Self::Nil) => {
                            let missing = crate::compare::may_be_missing(&field.attrs);
                            missing.then_some(Value::Unset)?
                        }
                        Some(item) => item.value(vm, field.ty)?,
                    });
                }
                Value::Record(Record::new(ty, values))
            }
            (Self::Set(keys), Type::Table(table)) if table.value.is_none() => {
                let made = vm.new_table(ty, None);
                for key in keys {
                    let key = key.key(vm, &table.index, table.list)?;
                    made.table()?.insert(key, Value::Unset, vm.m.now);
                }
                made
            }
            (Self::Table(entries), Type::Table(table)) => {
                let made = vm.new_table(ty, None);
                for (key, value) in entries {
                    let key = key.key(vm, &table.index, table.list)?;
                    let value = value.value(vm, table.value?)?;
                    made.table()?.insert(key, value, vm.m.now);
                }
                made
            }
            _ => return None,
        })
    }

    /// A table key: a key of several parts is a vector.
    fn key(&self, vm: &mut Vm<'_>, index: &[TypeId], list: TypeId) -> Option<Value> {
        if let [one] = index {
            return self.value(vm, *one);
        }
        let Self::Vector(items) = self else { return None };
        if items.len() != index.len() {
            return None;
        }
        let mut values = Vec::with_capacity(items.len());
        for (item, ty) in items.iter().zip(index) {
            values.push(item.value(vm, *ty)?);
        }
        Some(make_key(&values, list))
    }

    /// The name of its type in error messages.
    fn tag(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::Count(_) => "uint64_t",
            Self::Int(_) => "int64_t",
            Self::Real(_) => "double",
            Self::String(_) => "string",
            Self::Addr(_) => "address",
            Self::Subnet(..) => "subnet",
            Self::Port(..) => "port",
            Self::Time(_) => "time",
            Self::Interval(_) => "interval",
            Self::Enum(_) => "enum",
            Self::Set(_) => "set",
            Self::Table(_) => "table",
            Self::Vector(_) | Self::Opaque(_) => "vector",
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "NONE",
            Self::Bool(_) => "BOOL",
            Self::Count(_) => "COUNT",
            Self::Int(_) => "INT",
            Self::Real(_) => "DOUBLE",
            Self::String(_) => "STRING",
            Self::Addr(_) => "ADDR",
            Self::Subnet(..) => "SUBNET",
            Self::Port(..) => "PORT",
            Self::Time(_) => "TIME",
            Self::Interval(_) => "INTERVAL",
            Self::Enum(_) => "ENUM",
            Self::Set(_) => "SET",
            Self::Table(_) => "TABLE",
            Self::Vector(_) | Self::Opaque(_) => "VECTOR",
        }
    }

    /// Adds to a number, inserts into a set, or appends to a vector; returns false if the types do not fit.
    pub(crate) fn add(&mut self, amount: Self) -> bool {
        match (self, amount) {
            (Self::Count(to), Self::Count(n)) => *to = to.wrapping_add(n),
            (Self::Count(to), Self::Int(n)) => *to = to.wrapping_add_signed(n),
            (Self::Int(to), Self::Int(n)) => *to = to.wrapping_add(n),
            (Self::Int(to), Self::Count(n)) => *to = to.wrapping_add_unsigned(n),
            (Self::Real(to), Self::Real(n)) => to.0 += n.0,
            (Self::Time(to), Self::Interval(n)) => to.0 += n.0,
            (Self::Interval(to), Self::Interval(n)) => to.0 += n.0,
            (Self::String(to), Self::String(more)) => to.extend(more),
            (Self::Set(to), element) => {
                to.insert(element);
            }
            (Self::Vector(to), element) => to.push(element),
            _ => return false,
        }
        true
    }

    /// Subtracts from a number, removes an element or entry, or pops the last value of a vector; returns false if the types do not fit.
    pub(crate) fn remove(&mut self, amount: &Self) -> bool {
        match (self, amount) {
            (Self::Count(to), Self::Count(n)) => *to = to.wrapping_sub(*n),
            (Self::Int(to), Self::Int(n)) => *to = to.wrapping_sub(*n),
            (Self::Int(to), Self::Count(n)) => *to = to.wrapping_sub_unsigned(*n),
            (Self::Real(to), Self::Real(n)) => to.0 -= n.0,
            (Self::Time(to) | Self::Interval(to), Self::Interval(n)) => to.0 -= n.0,
            (Self::Set(to), element) => {
                to.remove(element);
            }
            (Self::Table(to), key) => {
                to.remove(key);
            }
            (Self::Vector(to), _) => {
                to.pop();
            }
            _ => return false,
        }
        true
    }
}

/// Appends the text of data, in the format of the Broker library.
fn write(out: &mut Vec<u8>, data: &Data) {
    let nanoseconds = |out: &mut Vec<u8>, seconds: &Number| {
        out.extend(format!("{}ns", (seconds.get() * 1e9) as i64).into_bytes());
    };
    match data {
        Data::Nil => out.extend(b"nil"),
        Data::Bool(value) => out.push(if *value { b'T' } else { b'F' }),
        Data::Count(number) => out.extend(number.to_string().into_bytes()),
        Data::Int(number) => out.extend(number.to_string().into_bytes()),
        Data::Real(number) => out.extend(format!("{:.6}", number.get()).into_bytes()),
        Data::String(text) => out.extend(text),
        Data::Addr(address) => format::addr(out, *address),
        Data::Subnet(address, width) => {
            format::addr(out, *address);
            let is_4 = address.starts_with(&crate::value::V4_PREFIX);
            let width = if is_4 { width.saturating_sub(96) } else { *width };
            out.extend(format!("/{width}").into_bytes());
        }
        Data::Port(number, protocol) => {
            let name = ["?", "tcp", "udp", "icmp"].get(usize::from(*protocol)).unwrap_or(&"?");
            out.extend(format!("{number}/{name}").into_bytes());
        }
        Data::Time(seconds) | Data::Interval(seconds) => nanoseconds(out, seconds),
        Data::Enum(name) => out.extend(name.as_bytes()),
        Data::Set(items) => write_all(out, b"{}", items, write),
        Data::Table(items) => write_all(out, b"{}", items, |out, (key, value)| {
            write(out, key);
            out.extend(b" -> ");
            write(out, value);
        }),
        Data::Vector(items) => write_all(out, b"()", items, write),
        Data::Opaque(_) => out.extend(b"(opaque)"),
    }
}

fn write_all<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    items: impl IntoIterator<Item = T>,
    each: impl Fn(&mut Vec<u8>, T),
) {
    out.push(brackets[0]);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.extend(b", ");
        }
        each(out, item);
    }
    out.push(brackets[1]);
}

/// The text of an opaque value that holds Broker data; `None` for other opaque values.
pub(crate) fn text(opaque: &OpaqueValue) -> Option<Vec<u8>> {
    opaque.with(|data: &mut Data| {
        let mut out = b"broker::data{".to_vec();
        write(&mut out, data);
        out.push(b'}');
        out
    })
}

fn is_data(vm: &Vm<'_>, record: &Record) -> bool {
    let name = vm.p.types.data(record.ty()).name.map(|name| vm.p.name(name));
    name == Some("Broker::Data")
}

fn data_of(record: &Record) -> Option<Data> {
    match record.get(0) {
        Value::Opaque(opaque) => opaque.with(|data: &mut Data| data.clone()),
        _ => None,
    }
}

/// The data in a `Broker::Data` record.
pub(crate) fn unwrap(vm: &Vm<'_>, value: &Value) -> Option<Data> {
    value.record().filter(|record| is_data(vm, record)).and_then(|record| data_of(record))
}

/// A `Broker::Data` record with this data.
pub(crate) fn wrap(vm: &Vm<'_>, data: Data) -> Option<Value> {
    let ty = vm.type_named("Broker::Data")?;
    let field = vm.p.types.record(ty)?.fields.first()?.ty;
    let opaque = Value::Opaque(OpaqueValue::new(field, data));
    Some(Value::Record(Record::new(ty, vec![opaque])))
}

/// An empty `Broker::Data` record.
pub(crate) fn nothing(vm: &Vm<'_>) -> Value {
    let ty = vm.type_named("Broker::Data").unwrap_or(TypeId::VOID);
    Value::Record(Record::new(ty, vec![Value::Unset]))
}

fn wrapped(vm: &Vm<'_>, data: Option<Data>) -> Result<Value> {
    Ok(data.and_then(|data| wrap(vm, data)).unwrap_or_else(|| nothing(vm)))
}

/// The data of an argument; reports an error with the argument's name if it cannot be converted.
fn converted(vm: &mut Vm<'_>, value: &Value, name: &str) -> Option<Data> {
    let data = Data::from_value(vm, value);
    if data.is_none() {
        vm.builtin_error(format!("invalid Broker data conversion for {name} argument"));
    }
    data
}

/// Calls `f` with the data in the first argument, if that has the right kind.
///
/// # Errors
/// Ends the calling body otherwise.
fn with_data<R>(
    vm: &mut Vm<'_>,
    args: &[Value],
    expected: &str,
    f: impl FnOnce(&mut Data) -> Option<R>,
) -> Result<R> {
    let opaque = match arg(args, 0) {
        Value::Record(record) => record.get(0),
        other => other.clone(),
    };
    let Some(opaque) = opaque.opaque() else {
        let text = "Broker::Data's opaque field is not set".to_owned();
        return Err(vm.runtime_error(None, text));
    };
    let mut tag = "nil";
    let found = opaque.with(|data: &mut Data| {
        tag = data.tag();
        f(data)
    });
    match found.flatten() {
        Some(result) => Ok(result),
        None => {
            let text = format!("data is of type '{tag}' not of type '{expected}'");
            Err(vm.runtime_error(None, text))
        }
    }
}

fn with_set<R>(
    vm: &mut Vm<'_>,
    args: &[Value],
    f: impl FnOnce(&mut BTreeSet<Data>) -> R,
) -> Result<R> {
    with_data(vm, args, "table", |data| match data {
        Data::Set(set) => Some(f(set)),
        _ => None,
    })
}

fn with_table<R>(
    vm: &mut Vm<'_>,
    args: &[Value],
    f: impl FnOnce(&mut BTreeMap<Data, Data>) -> R,
) -> Result<R> {
    with_data(vm, args, "table", |data| match data {
        Data::Table(table) => Some(f(table)),
        _ => None,
    })
}

fn with_vector<R>(
    vm: &mut Vm<'_>,
    args: &[Value],
    expected: &str,
    f: impl FnOnce(&mut Vec<Data>) -> R,
) -> Result<R> {
    with_data(vm, args, expected, |data| match data {
        Data::Vector(vector) => Some(f(vector)),
        _ => None,
    })
}

/// An iterator over the elements of a set, table, vector or record, as they were when it was created.
#[derive(Clone)]
struct ElementIterator {
    items: Vec<(Data, Data)>,
    at: usize,
}

fn new_iterator(vm: &Vm<'_>, items: Vec<(Data, Data)>) -> Result<Value> {
    Ok(Value::Opaque(OpaqueValue::new(vm.result_type(), ElementIterator { items, at: 0 })))
}

fn with_iterator<R: Default>(args: &[Value], f: impl FnOnce(&mut ElementIterator) -> R) -> R {
    arg(args, 0).opaque().and_then(|opaque| opaque.with(f)).unwrap_or_default()
}

fn iterator_last(_: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    Ok(Value::Bool(with_iterator(args, |iterator| iterator.at >= iterator.items.len())))
}

fn iterator_next(_: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    Ok(Value::Bool(with_iterator(args, |iterator| {
        iterator.at = (iterator.at + 1).min(iterator.items.len());
        iterator.at < iterator.items.len()
    })))
}

fn iterator_value(vm: &mut Vm<'_>, args: &[Value], container: &str) -> Result<Value> {
    let item = with_iterator(args, |iterator| iterator.items.get(iterator.at).cloned());
    if item.is_none() {
        vm.builtin_error(format!("attempt to retrieve value of invalid {container} iterator"));
    }
    // An unset field of a record yields no data.
    let item =
        item.map(|(item, _)| item).filter(|item| container != "record" || *item != Data::Nil);
    wrapped(vm, item)
}

/// An iterator item without a value.
fn item_without_value(data: &Data) -> (Data, Data) {
    (data.clone(), Data::Nil)
}

/// The functions of Broker data.
pub(super) const TABLE: Table = &[
    ("Broker::__data", |vm, a| {
        let data = Data::from_value(vm, arg(a, 0));
        wrapped(vm, data)
    }),
    ("Broker::__data_type", |vm, a| {
        let kind = match arg(a, 0) {
            Value::Record(record) => data_of(record).map_or("NONE", |data| data.kind()),
            _ => "NONE",
        };
        Ok(vm.enum_named(&format!("Broker::{kind}")))
    }),
    ("Broker::__opaque_clone_through_serialization", |vm, a| {
        let copy = match arg(a, 0) {
            Value::Opaque(opaque) => {
                let data = (**opaque.data.borrow()).duplicate();
                data.map(|data| OpaqueValue { ty: opaque.ty, data: data.into() })
            }
            _ => None,
        };
        match copy {
            Some(copy) => Ok(Value::Opaque(Rc::new(copy))),
            None => {
                vm.builtin_error("cannot serialize object to clone");
                Ok(Value::Bool(false))
            }
        }
    }),
    ("Broker::__set_create", |vm, _| wrapped(vm, Some(Data::Set(BTreeSet::new())))),
    ("Broker::__set_clear", |vm, a| with_set(vm, a, BTreeSet::clear).map(|()| Value::Bool(true))),
    ("Broker::__set_size", |vm, a| with_set(vm, a, |set| Value::from(set.len()))),
    ("Broker::__set_contains", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(Value::Bool(false)) };
        with_set(vm, a, |set| Value::Bool(set.contains(&key)))
    }),
    ("Broker::__set_insert", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(Value::Bool(false)) };
        with_set(vm, a, |set| Value::Bool(set.insert(key)))
    }),
    ("Broker::__set_remove", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(Value::Bool(false)) };
        with_set(vm, a, |set| Value::Bool(set.remove(&key)))
    }),
    ("Broker::__set_iterator", |vm, a| {
        let items = with_set(vm, a, |set| set.iter().map(item_without_value).collect())?;
        new_iterator(vm, items)
    }),
    ("Broker::__set_iterator_last", iterator_last),
    ("Broker::__set_iterator_next", iterator_next),
    ("Broker::__set_iterator_value", |vm, a| iterator_value(vm, a, "set")),
    ("Broker::__table_create", |vm, _| wrapped(vm, Some(Data::Table(BTreeMap::new())))),
    ("Broker::__table_clear", |vm, a| {
        with_table(vm, a, BTreeMap::clear).map(|()| Value::Bool(true))
    }),
    ("Broker::__table_size", |vm, a| with_table(vm, a, |table| Value::from(table.len()))),
    ("Broker::__table_contains", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(Value::Bool(false)) };
        with_table(vm, a, |table| Value::Bool(table.contains_key(&key)))
    }),
    ("Broker::__table_insert", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(nothing(vm)) };
        let Some(value) = converted(vm, arg(a, 2), "value") else { return Ok(nothing(vm)) };
        let old = with_table(vm, a, |table| table.insert(key, value))?;
        wrapped(vm, old)
    }),
    ("Broker::__table_remove", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(nothing(vm)) };
        let old = with_table(vm, a, |table| table.remove(&key))?;
        wrapped(vm, old)
    }),
    ("Broker::__table_lookup", |vm, a| {
        let Some(key) = converted(vm, arg(a, 1), "key") else { return Ok(nothing(vm)) };
        let found = with_table(vm, a, |table| table.get(&key).cloned())?;
        wrapped(vm, found)
    }),
    ("Broker::__table_iterator", |vm, a| {
        let items = with_table(vm, a, |table| {
            table.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        })?;
        new_iterator(vm, items)
    }),
    ("Broker::__table_iterator_last", iterator_last),
    ("Broker::__table_iterator_next", iterator_next),
    ("Broker::__table_iterator_value", |vm, a| {
        let item = with_iterator(a, |iterator| iterator.items.get(iterator.at).cloned());
        if item.is_none() {
            vm.builtin_error("attempt to retrieve value of invalid table iterator");
        }
        let (key, value) = item.unzip();
        let fields = vec![wrapped(vm, key)?, wrapped(vm, value)?];
        Ok(Value::Record(Record::new(vm.result_type(), fields)))
    }),
    ("Broker::__vector_create", |vm, _| wrapped(vm, Some(Data::Vector(Vec::new())))),
    ("Broker::__vector_clear", |vm, a| {
        with_vector(vm, a, "vector", Vec::clear).map(|()| Value::Bool(true))
    }),
    ("Broker::__vector_size", |vm, a| {
        with_vector(vm, a, "vector", |vector| Value::from(vector.len()))
    }),
    ("Broker::__vector_insert", |vm, a| {
        let Some(item) = converted(vm, arg(a, 2), "item") else { return Ok(Value::Bool(false)) };
        with_vector(vm, a, "vector", |vector| {
            vector.insert(index_arg(arg(a, 1)).min(vector.len()), item);
            Value::Bool(true)
        })
    }),
    ("Broker::__vector_replace", |vm, a| {
        let Some(item) = converted(vm, arg(a, 2), "item") else { return Ok(nothing(vm)) };
        let old = with_vector(vm, a, "vector", |vector| {
            vector.get_mut(index_arg(arg(a, 1))).map(|slot| std::mem::replace(slot, item))
        })?;
        wrapped(vm, old)
    }),
    ("Broker::__vector_remove", |vm, a| {
        let old = with_vector(vm, a, "vector", |vector| {
            let index = index_arg(arg(a, 1));
            (index < vector.len()).then(|| vector.remove(index))
        })?;
        wrapped(vm, old)
    }),
    ("Broker::__vector_lookup", |vm, a| {
        let found =
            with_vector(vm, a, "vector", |vector| vector.get(index_arg(arg(a, 1))).cloned())?;
        wrapped(vm, found)
    }),
    ("Broker::__vector_iterator", |vm, a| {
        let items =
            with_vector(vm, a, "vector", |vector| vector.iter().map(item_without_value).collect())?;
        new_iterator(vm, items)
    }),
    ("Broker::__vector_iterator_last", iterator_last),
    ("Broker::__vector_iterator_next", iterator_next),
    ("Broker::__vector_iterator_value", |vm, a| iterator_value(vm, a, "vector")),
    ("Broker::__record_create", |vm, a| {
        let fields = index_arg(arg(a, 0)).min(1 << 16);
        wrapped(vm, Some(Data::Vector(vec![Data::Nil; fields])))
    }),
    ("Broker::__record_size", |vm, a| {
        with_vector(vm, a, "record", |vector| Value::from(vector.len()))
    }),
    ("Broker::__record_assign", |vm, a| {
        let Some(item) = converted(vm, arg(a, 2), "item") else { return Ok(Value::Bool(false)) };
        with_vector(vm, a, "record", |vector| match vector.get_mut(index_arg(arg(a, 1))) {
            Some(slot) => {
                *slot = item;
                Value::Bool(true)
            }
            None => Value::Bool(false),
        })
    }),
    ("Broker::__record_lookup", |vm, a| {
        let found =
            with_vector(vm, a, "record", |vector| vector.get(index_arg(arg(a, 1))).cloned())?;
        wrapped(vm, found.filter(|found| *found != Data::Nil))
    }),
    ("Broker::__record_iterator", |vm, a| {
        let items =
            with_vector(vm, a, "record", |vector| vector.iter().map(item_without_value).collect())?;
        new_iterator(vm, items)
    }),
    ("Broker::__record_iterator_last", iterator_last),
    ("Broker::__record_iterator_next", iterator_next),
    ("Broker::__record_iterator_value", |vm, a| iterator_value(vm, a, "record")),
    ("Broker::make_event", broker_event),
    ("Cluster::make_event", cluster_event),
    ("Broker::publish", broker_publish),
    ("Cluster::publish", publish),
];

fn index_arg(value: &Value) -> usize {
    usize::try_from(value.count()).unwrap_or(usize::MAX)
}

/// Creates an event with arguments for `Broker::publish`.
fn broker_event(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let ty = vm.type_named("Broker::Event").unwrap_or_else(|| vm.result_type());
    let data = vm.type_named("Broker::Data").unwrap_or(TypeId::VOID);
    let items_ty = vm.vector_of(data);
    let items = Vector::new(items_ty, Vec::new());
    let event = Record::new(ty, vec![Value::Unset, Value::Vector(Rc::clone(&items))]);
    let result = Value::Record(Rc::clone(&event));
    let [first, rest @ ..] = args else { return Ok(result) };
    let Value::Func(func) = first else {
        let shown = super::strings::short(vm, first);
        vm.builtin_error(format!("attempt to convert non-event into an event type ({shown})"));
        return Ok(result);
    };
    if vm.p.functions[func.func].flavor != Flavor::Event {
        vm.builtin_error("attempt to convert non-event into an event type");
        return Ok(result);
    }
    let expected: Vec<TypeId> = vm.p.types.params(func.ty).iter().map(|param| param.ty).collect();
    if expected.len() != rest.len() {
        let (got, expect) = (rest.len(), expected.len());
        vm.builtin_error(format!("bad # of arguments: got {got}, expect {expect}"));
        return Ok(result);
    }
    event.set(0, Value::string(vm.function_name(func.func)));
    for (index, (value, expected)) in rest.iter().zip(expected).enumerate() {
        let Some(value) = convert_argument(vm, value, expected) else {
            event.set(0, Value::Unset);
            let (got, expect) = (type_text(vm, value.ty()), type_text(vm, expected));
            let number = index + 1;
            vm.builtin_error(format!(
                "event parameter #{number} type mismatch, got {got}, expect {expect}"
            ));
            return Ok(result);
        };
        match Data::from_value(vm, &value).and_then(|data| wrap(vm, data)) {
            Some(data) => items.items_mut().push(data),
            None => {
                event.set(0, Value::Unset);
                let tag = crate::describe::tag_name(vm.p.types.get(value.ty()));
                let number = index + 1;
                vm.builtin_error(format!(
                    "failed to convert param #{number} of type {tag} to broker data"
                ));
                return Ok(result);
            }
        }
    }
    Ok(result)
}

/// Creates an event with arguments for `Cluster::publish`.
fn cluster_event(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let any = vm.type_named("any_vec").unwrap_or(TypeId::UNSPECIFIED_VECTOR);
    let none = Value::Vector(Vector::new(any, Vec::new()));
    let event = Record::new(ty, vec![Value::Unset, none]);
    let result = Value::Record(Rc::clone(&event));
    let [first, rest @ ..] = args else {
        vm.builtin_error("not enough arguments");
        return Ok(result);
    };
    let Value::Func(func) = first else {
        let shown = type_text(vm, first.ty());
        vm.builtin_error(format!("got non-event type '{shown}'"));
        return Ok(result);
    };
    if let Some(items) = checked(vm, func, rest) {
        event.set(0, first.clone());
        event.set(1, Value::Vector(Vector::new(any, items)));
    }
    Ok(result)
}

/// Checks and converts the arguments of an event that is published; reports an error if they do not fit.
fn checked(vm: &mut Vm<'_>, func: &Rc<FuncValue>, args: &[Value]) -> Option<Vec<Value>> {
    let name = vm.function_name(func.func);
    let flavor = vm.p.functions[func.func].flavor;
    if flavor != Flavor::Event {
        let flavor = if flavor == Flavor::Hook { "hook" } else { "function" };
        let text = format!("unexpected function type for {name}: {flavor}");
        report_here(vm, Severity::Error, text);
        return None;
    }
    let expected: Vec<TypeId> = vm.p.types.params(func.ty).iter().map(|param| param.ty).collect();
    if expected.len() != args.len() {
        let (got, expect) = (args.len(), expected.len());
        let text = format!("bad number of arguments for {name}: got {got}, expect {expect}");
        report_here(vm, Severity::Error, text);
        return None;
    }
    let mut items = Vec::with_capacity(args.len());
    for (index, (value, expected)) in args.iter().zip(expected).enumerate() {
        match convert_argument(vm, value, expected) {
            Some(value) => items.push(value),
            None => {
                let (got, expect) = (type_text(vm, value.ty()), type_text(vm, expected));
                let number = index + 1;
                let text = format!(
                    "event parameter #{number} type mismatch, got {got}, expecting {expect}"
                );
                report_here(vm, Severity::Error, text);
                return None;
            }
        }
    }
    Some(items)
}

/// Reports a message with the location of the current call.
fn report_here(vm: &mut Vm<'_>, severity: Severity, text: impl Into<Vec<u8>>) {
    let span = vm.p.exprs.find(vm.call_site()).map_or(Span::NOWHERE, |call| call.span);
    vm.emit(severity, span, text.into());
}

/// Converts a value to an argument of type `expected`; `None` if it has another type.
fn convert_argument(vm: &mut Vm<'_>, value: &Value, expected: TypeId) -> Option<Value> {
    let actual = value.ty();
    if expected == TypeId::ANY || vm.p.same_type(expected, actual) {
        return Some(value.clone());
    }
    let unspecified =
        vm.p.types.tag(actual) == Tag::Table && vm.p.fits_unspecified(expected, actual);
    if unspecified { vm.convert(value, expected).ok() } else { None }
}

fn type_text(vm: &Vm<'_>, ty: TypeId) -> String {
    crate::describe::type_text(vm.p, ty)
}

/// `Broker::publish`: this process has no peers, so publishing any event succeeds, even one that could not be created.
fn broker_publish(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if !has_topic(vm, args) {
        return Ok(Value::Unset);
    }
    if is_broker_idle(vm) {
        let text = "Non-broker cluster backend configured and Broker manager inactive. Did you mean to use Cluster::publish() instead of Broker::publish()?";
        report_here(vm, Severity::Warning, text);
    }
    match args {
        [_, Value::Record(record), ..] => {
            let is_event = vm.type_named("Broker::Event") == Some(record.ty());
            if !is_event {
                let shown = type_text(vm, record.ty());
                vm.builtin_error(format!("expected Broker::Event, got {shown}"));
            }
            Ok(Value::Bool(is_event))
        }
        [_, event @ ..] if !event.is_empty() => {
            broker_event(vm, event)?;
            Ok(Value::Bool(true))
        }
        _ => publish(vm, args),
    }
}

/// Whether the first argument is a topic; reports an error otherwise.
fn has_topic(vm: &mut Vm<'_>, args: &[Value]) -> bool {
    let Some(topic) = args.first().filter(|topic| topic.bytes().is_none()) else { return true };
    let actual = crate::describe::tag_name(vm.p.types.get(topic.ty()));
    vm.builtin_error(format!("expected type string for topic, got {actual}"));
    false
}

/// Whether another cluster backend than Broker is configured.
fn is_broker_idle(vm: &mut Vm<'_>) -> bool {
    let backend = super::json::name_of(vm, &vm.global_named("Cluster::backend"));
    backend != "Cluster::CLUSTER_BACKEND_BROKER"
}

/// `Cluster::publish`: this process has no receivers, but the event is checked. The topic is the first argument.
pub(super) fn publish(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let [_, rest @ ..] = args else { return Ok(Value::Bool(false)) };
    if !has_topic(vm, args) {
        return Ok(Value::Unset);
    }
    let published = match rest {
        [] => {
            vm.builtin_error("no event arguments given");
            false
        }
        [Value::Func(func), args @ ..] => checked(vm, func, args).is_some(),
        [Value::Record(record), ..] => {
            let name = vm.p.types.data(record.ty()).name.map(|name| vm.p.name(name).to_owned());
            match name.as_deref() {
                Some("Broker::Event") if is_broker_idle(vm) => {
                    let text = "Publish of Broker::Event record instance with type 'Broker::Event' to a non-Broker backend";
                    vm.builtin_error(text);
                    false
                }
                Some("Cluster::Event" | "Broker::Event") => record.get(0).is_set(),
                _ => {
                    let shown = type_text(vm, record.ty());
                    vm.builtin_error(format!("Publish of unknown record type '{shown}'"));
                    false
                }
            }
        }
        [other, ..] => {
            let shown = type_text(vm, other.ty());
            vm.builtin_error(format!("expected function or record as first argument, got {shown}"));
            false
        }
    };
    Ok(Value::Bool(published))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_total_order() {
        let set: BTreeSet<Data> =
            [2.5, f64::NAN, -1.0, f64::NAN].map(|n| Data::Real(Number(n))).into_iter().collect();
        assert_eq!(set.len(), 3);
        assert_eq!(set.first(), Some(&Data::Real(Number(-1.0))));
    }

    #[test]
    fn elements_are_added_and_removed() {
        let mut set = Data::Set(BTreeSet::new());
        assert!(set.add(Data::Count(3)) && set.add(Data::Count(3)));
        assert_eq!(set, Data::Set([Data::Count(3)].into_iter().collect()));
        assert!(set.remove(&Data::Count(3)));
        assert_eq!(set, Data::Set(BTreeSet::new()));
        let mut count = Data::Count(3);
        assert!(count.add(Data::Int(-1)));
        assert_eq!(count, Data::Count(2));
        assert!(!count.add(Data::Bool(true)));
    }
}
