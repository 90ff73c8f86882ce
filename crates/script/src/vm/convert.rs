//! Conversions of values: coercions that the compiler inserts, `as` and `is`.

use std::rc::Rc;

use super::Vm;
use crate::ast::{Coercion, ExprKind};
use crate::code::convert_number;
use crate::describe;
use crate::evaluate::Stop;
use crate::ids::{ExprId, TypeId};
use crate::literal::{Port, Protocol};
use crate::source::Span;
use crate::support::text;
use crate::types::{Tag, Type};
use crate::value::{Value, Vector};

impl Vm<'_> {
    /// Applies the coercion expression at `site` to a value.
    pub(crate) fn coerce(&mut self, site: ExprId, value: &Value) -> Result<Value, Stop> {
        let (kind, ty) = match &self.p.exprs[site] {
            crate::ast::Expr { kind: ExprKind::Coerce(kind, _), ty, .. } => (*kind, *ty),
            _ => return Ok(value.clone()),
        };
        if !value.is_set() {
            return Ok(Value::Unset);
        }
        match kind {
            Coercion::Arithmetic => self.number(site, value, ty),
            Coercion::ArithmeticVector => {
                let (Value::Vector(vector), Some(element)) = (value, self.p.types.element(ty))
                else {
                    return Ok(value.clone());
                };
                let source = vector.items().clone();
                let mut items = Vec::with_capacity(source.len());
                for item in &source {
                    // An overflow leaves a hole.
                    items.push(if item.is_set() {
                        self.number(site, item, element).unwrap_or_default()
                    } else {
                        Value::Unset
                    });
                }
                Ok(Value::Vector(Vector::new(ty, items)))
            }
            Coercion::FromAny => {
                if self.is_compatible(value, ty) {
                    return Ok(value.clone());
                }
                let from = self.type_of_text(value);
                let to = describe::type_text(self.p, ty);
                Err(self.error_at(site, format!("incompatible \"any\" type ({from} vs. {to})")))
            }
            _ => self.convert_at(value, ty, Some(site)),
        }
    }

    fn number(&mut self, site: ExprId, value: &Value, ty: TypeId) -> Result<Value, Stop> {
        let tag = self.p.types.tag(ty);
        if let Some(value) = convert_number(value, tag) {
            return Ok(value);
        }
        if tag == Tag::Enum {
            return Ok(Value::Enum(ty, value.int()));
        }
        let text = match tag {
            Tag::Int => "overflow promoting from unsigned/double to signed arithmetic value",
            Tag::Count => "overflow promoting from signed/double to unsigned arithmetic value",
            _ => return Err(self.error_at(site, "bad coercion")),
        };
        // The message names the type and the value.
        let span = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        let name = describe::tag_name(self.p.types.get(ty));
        let location = format!("{name} and {}", self.p.sources.location(span));
        let value =
            crate::value::describe::describe(self.p, value, crate::value::describe::Form::Short);
        let line = format!("{text} ({name} and {})", String::from_utf8_lossy(&value));
        self.emit_located(crate::diagnostics::Severity::Error, span, location, line.into_bytes());
        self.m.overflowed = true;
        Err(Stop::Error)
    }

    /// Converts a value to the type `ty`, which the type checker found compatible: records field by field, empty
    /// containers, elements of vectors.
    ///
    /// # Errors
    /// Returns [`Stop`] if the default of a field failed.
    pub fn convert(&mut self, value: &Value, ty: TypeId) -> Result<Value, Stop> {
        self.convert_at(value, ty, None)
    }

    /// Like [`convert`](Self::convert), for the coercion at `site`; reports fields of nested records that the target type is_missing.
    fn convert_at(
        &mut self,
        value: &Value,
        ty: TypeId,
        site: Option<ExprId>,
    ) -> Result<Value, Stop> {
        match (value, self.p.types.tag(ty)) {
            (Value::Record(record), Tag::Record) => {
                let from = record.ty();
                if from == ty {
                    return Ok(value.clone());
                }
                let plan = self.conversion(from, ty);
                let last = plan.iter().rposition(Option::is_some).unwrap_or_default();
                let last = u32::try_from(last).unwrap_or(u32::MAX);
                self.new_record_with(ty, last, |vm, fields| {
                    for (offset, (field, source)) in fields.iter_mut().zip(plan.iter()).enumerate()
                    {
                        let Some(source) = source else { continue };
                        let given = record.get(*source);
                        if !given.is_set() {
                            continue;
                        }
                        let target = vm.p.types.record(ty).and_then(|ty| ty.fields.get(offset));
                        let value = match target.map(|field| field.ty) {
                            Some(ty) => {
                                vm.report_orphan(&given, ty, site);
                                vm.convert(&given, ty)?
                            }
                            None => given,
                        };
                        if value.is_set() {
                            *field = value;
                        }
                    }
                    Ok(())
                })
            }
            (Value::Table(table), Tag::Table) => {
                let unspecified =
                    self.p.types.table(table.ty()).is_none_or(|table| table.index.is_empty());
                if unspecified && table.is_empty() {
                    let made = self.new_table(ty, table.attrs());
                    // A default function keeps its captures.
                    if let (Some(default @ Value::Func(_)), Value::Table(made)) =
                        (table.default_cache.borrow().clone(), &made)
                    {
                        *made.default_cache.borrow_mut() = Some(default);
                    }
                    return Ok(made);
                }
                Ok(value.clone())
            }
            (Value::Vector(vector), Tag::Vector) => {
                let Some(element) = self.p.types.element(ty) else { return Ok(value.clone()) };
                let from = self.p.types.element(vector.ty()).unwrap_or(TypeId::VOID);
                if vector.is_empty() && from != element {
                    return Ok(Value::Vector(Vector::new(ty, Vec::new())));
                }
                let target = self.p.types.tag(element);
                if matches!(target, Tag::Record | Tag::Table | Tag::Vector) && from != element
                    || matches!(target, Tag::Int | Tag::Count | Tag::Double)
                        && self.p.types.tag(from) != target
                        && from != TypeId::ANY
                {
                    let source = vector.items().clone();
                    let mut items = Vec::with_capacity(source.len());
                    for item in &source {
                        items.push(self.convert(item, element)?);
                    }
                    return Ok(Value::Vector(Vector::new(ty, items)));
                }
                Ok(value.clone())
            }
            (
                Value::Count(_) | Value::Int(_) | Value::Double(_),
                tag @ (Tag::Count | Tag::Int | Tag::Double | Tag::Time | Tag::Interval),
            ) => Ok(convert_number(value, tag).unwrap_or_else(|| {
                // An overflow is reported and leaves the value unset.
                let none = self.number(self.current_site(), value, ty).unwrap_or_default();
                self.m.overflowed = false;
                none
            })),
            _ => Ok(value.clone()),
        }
    }

    /// Reports the first field of a record that the record type `ty` is_missing.
    fn report_orphan(&mut self, value: &Value, ty: TypeId, site: Option<ExprId>) {
        let (Value::Record(record), Some(site)) = (value, site) else { return };
        let from = record.ty();
        let (Some(given), Some(target)) = (self.p.types.record(from), self.p.types.record(ty))
        else {
            return;
        };
        let is_missing = |name| target.offset(name).is_none();
        let orphan = given.fields.iter().map(|field| field.name).find(|name| is_missing(*name));
        let Some(orphan) = orphan.filter(|_| from != ty) else { return };
        let name = self.p.name(orphan).to_owned();
        let span = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        // Zeek knows the location only while it parses.
        let location = match self.m.running {
            true => "<no location>".to_owned(),
            false => self.p.sources.location(span),
        };
        let form = crate::value::describe::Form::Compact;
        let shown = crate::value::describe::describe(self.p, value, form);
        let mut line = format!("orphan field \"{name}\" in initialization (").into_bytes();
        crate::value::describe::escape_into(&mut line, &shown);
        line.push(b')');
        self.emit_located(crate::diagnostics::Severity::Error, span, location, line);
    }

    /// For each field of `to`, the offset of the field of the same name in `from`.
    fn conversion(&mut self, from: TypeId, to: TypeId) -> Rc<Vec<Option<usize>>> {
        if let Some(plan) = self.m.conversions.get(&(from, to)) {
            return Rc::clone(plan);
        }
        let plan = match (self.p.types.record(from), self.p.types.record(to)) {
            (Some(from), Some(to)) => {
                to.fields.iter().map(|field| from.offset(field.name)).collect()
            }
            _ => Vec::new(),
        };
        let plan = Rc::new(plan);
        self.m.conversions.insert((from, to), Rc::clone(&plan));
        plan
    }

    /// Whether a value has a type: compared by structure, enums by name.
    #[must_use]
    pub fn is_type(&self, value: &Value, ty: TypeId) -> bool {
        match value {
            Value::Unset => false,
            Value::Type(_) => matches!(self.p.types.get(ty), Type::Type(_)),
            other => {
                let own = other.ty();
                own == ty || ty == TypeId::ANY || self.is_same_type(own, ty)
            }
        }
    }

    fn is_same_type(&self, own: TypeId, ty: TypeId) -> bool {
        self.p.types.tag(own) == self.p.types.tag(ty) && self.p.same_type(ty, own)
    }

    /// Whether a value is accepted for a type without a cast.
    fn is_compatible(&self, value: &Value, ty: TypeId) -> bool {
        ty == TypeId::ANY
            || self.p.types.tag(value.ty()) == self.p.types.tag(ty)
            || matches!(self.p.types.get(ty), Type::List(_))
            || self.is_type(value, ty)
    }

    /// The text of the dynamic type of a value.
    #[must_use]
    pub fn type_of_text(&self, value: &Value) -> String {
        match value {
            Value::Type(ty) => format!("type {}", describe::type_text(self.p, *ty)),
            other => describe::type_in(self.p, other.ty(), describe::Style::LONG),
        }
    }

    /// `e as T`.
    pub(crate) fn cast(&mut self, site: ExprId, value: &Value) -> Result<Value, Stop> {
        let ty = self.p.exprs[site].ty;
        if !value.is_set() {
            return Err(self.error_at(site, "value used but not set"));
        }
        if let Some(result) = self.cast_value(value, ty) {
            self.report_omitted(site, value, ty);
            return Ok(result);
        }
        if let Some(text) = failed_cast(value, self.p.types.tag(ty)) {
            crate::bif::has_nul(self, value.str_bytes());
            self.conversion_error(text, value);
        }
        let name = self.p.types.data(value.ty()).name.map_or("", |name| self.p.name(name));
        // For `Broker::Data` the message has only the name.
        let is_data = name == "Broker::Data";
        let from = if is_data { name.to_owned() } else { self.type_of_text(value) };
        let nil = value.record().is_some_and(|record| is_data && !record.get(0).is_set());
        let nil = if nil { " (nil $data field)" } else { "" };
        let to = describe::type_in(self.p, ty, describe::Style::LONG);
        let text = format!("invalid cast of value with type '{from}' to type '{to}'{nil}");
        Err(self.error_at(site, text))
    }

    /// `e ?as T`.
    #[must_use]
    pub fn can_cast(&mut self, value: &Value, ty: TypeId) -> bool {
        value.is_set() && self.cast_value(value, ty).is_some()
    }

    /// The element type of a set type with a single index type.
    fn element_of_set(&self, ty: TypeId) -> Option<TypeId> {
        let table = self.p.types.table(ty).filter(|_| self.p.types.is_set(ty))?;
        if let [element] = &*table.index { Some(*element) } else { None }
    }

    /// Converts an item to the element type `ty` of a set. As in Zeek, numbers of types with the same representation are accepted.
    fn element_of(&self, item: Value, ty: TypeId) -> Option<Value> {
        if self.is_type(&item, ty) {
            return Some(item);
        }
        Some(match (item, self.p.types.tag(ty)) {
            (Value::Bool(v), Tag::Int) => Value::Int(i64::from(v)),
            (Value::Enum(_, v), Tag::Int) => Value::Int(v),
            (Value::Bool(v), Tag::Enum) => Value::Enum(ty, i64::from(v)),
            (Value::Int(v) | Value::Enum(_, v), Tag::Enum) => Value::Enum(ty, v),
            (Value::Int(v) | Value::Enum(_, v), Tag::Bool) => Value::Bool(v != 0),
            (Value::Time(v) | Value::Interval(v), Tag::Double) => Value::Double(v),
            (Value::Double(v) | Value::Interval(v), Tag::Time) => Value::Time(v),
            (Value::Double(v) | Value::Time(v), Tag::Interval) => Value::Interval(v),
            _ => return None,
        })
    }

    /// Reports the elements of a vector that a cast to a set omits.
    fn report_omitted(&mut self, site: ExprId, value: &Value, ty: TypeId) {
        let (Value::Vector(vector), Some(element)) = (value, self.element_of_set(ty)) else {
            return;
        };
        let mut items = vector.items().clone();
        items.retain(|item| self.element_of(item.clone(), element).is_none());
        for item in &items {
            let list = describe::type_in(self.p, element, describe::Style::LONG);
            let list = format!("list of {list}");
            self.error_with_type(site, "index type doesn't match table", item, &list);
        }
    }

    /// The result of `as`; `None` if the cast is invalid.
    pub fn cast_value(&mut self, value: &Value, ty: TypeId) -> Option<Value> {
        if self.is_type(value, ty) {
            return Some(value.clone());
        }
        if let Some(result) = crate::bif::cast_data(self, value, ty) {
            return Some(result);
        }
        let tag = self.p.types.tag(ty);
        match (value, tag) {
            (Value::Vector(_), Tag::Vector) if value.ty() == TypeId::UNSPECIFIED_VECTOR => {
                self.convert(value, ty).ok()
            }
            (Value::Count(_) | Value::Int(_), Tag::Count | Tag::Int | Tag::Double) => {
                convert_number(value, tag)
            }
            (Value::Double(_) | Value::Int(_) | Value::Count(_), Tag::Time | Tag::Interval) => {
                convert_number(value, tag)
            }
            (Value::Double(number), Tag::Count) if *number >= 0.0 => {
                Some(Value::Count(text::convert::rounded(*number) as u64))
            }
            (Value::Double(number), Tag::Int) => Some(Value::Int(text::convert::rounded(*number))),
            (Value::Time(_) | Value::Interval(_), Tag::Double) => {
                Some(Value::Double(value.double()))
            }
            (Value::Enum(_, number), Tag::Count) => Some(Value::Count(*number as u64)),
            (Value::Enum(_, number), Tag::Int) => Some(Value::Int(*number)),
            (Value::Port(port), Tag::Count) => Some(Value::Count(u64::from(port.number))),
            (Value::Addr4(_), Tag::Subnet) => value.addr_bytes().map(|a| Value::subnet(a, 128)),
            (Value::Addr6(_), Tag::Subnet) => value.addr_bytes().map(|a| Value::subnet(a, 128)),
            (Value::Net4(..) | Value::Net6(_), Tag::Addr) => {
                value.as_subnet().map(|net| Value::addr(net.prefix))
            }
            (Value::Net4(_, width), Tag::Count) => Some(Value::Count(u64::from(*width))),
            (Value::Net6(net), Tag::Count) => Some(Value::Count(u64::from(net.width))),
            (Value::Count(number), Tag::Addr) => {
                Some(Value::Addr4(u32::try_from(*number).ok()?.to_be_bytes()))
            }
            (Value::Addr4(_) | Value::Addr6(_), Tag::Vector)
                if self.p.types.element(ty).map(|ty| self.p.types.tag(ty)) == Some(Tag::Count) =>
            {
                let items = match value {
                    Value::Addr4(bytes) => {
                        vec![Value::Count(u64::from(u32::from_be_bytes(*bytes)))]
                    }
                    _ => value
                        .addr_bytes()?
                        .as_chunks::<4>()
                        .0
                        .iter()
                        .map(|word| Value::Count(u64::from(u32::from_be_bytes(*word))))
                        .collect(),
                };
                Some(Value::Vector(Vector::new(ty, items)))
            }
            // Elements of another type are omitted, as in Zeek.
            (Value::Table(table), Tag::Vector) if self.element_of_set(table.ty()).is_some() => {
                let element = self.p.types.element(ty)?;
                let mut keys = table.keys();
                keys.retain(|key| self.is_type(key, element));
                Some(Value::Vector(Vector::new(ty, keys)))
            }
            (Value::Vector(vector), Tag::Table) => {
                let element = self.element_of_set(ty)?;
                let items = vector.items().clone();
                let Value::Table(table) = self.new_table(ty, None) else { return None };
                for item in items {
                    if let Some(item) = self.element_of(item, element) {
                        table.insert(item, Value::Unset, self.m.now);
                    }
                }
                Some(Value::Table(table))
            }
            (Value::Short(_) | Value::Long(_), _) => parse(&value.text(), tag),
            _ => None,
        }
    }
}

/// The separate message for an invalid cast, if there is one.
fn failed_cast(value: &Value, tag: Tag) -> Option<&'static str> {
    Some(match (value, tag) {
        (Value::Short(_) | Value::Long(_), Tag::Double) => "bad conversion to double",
        (Value::Short(_) | Value::Long(_), Tag::Int) => "bad conversion to integer",
        (Value::Short(_) | Value::Long(_), Tag::Addr) => "failed converting string to IP address",
        (Value::Short(_) | Value::Long(_) | Value::Int(_) | Value::Double(_), Tag::Count) => {
            "bad conversion to count"
        }
        (Value::Count(_), Tag::Int) => "overflow converting count to int",
        (Value::Count(_), Tag::Addr) => "conversion of non-IPv4 count to addr",
        _ => return None,
    })
}

fn parse(text: &str, tag: Tag) -> Option<Value> {
    let bytes = text.as_bytes();
    if bytes.contains(&0) {
        return None;
    }
    Some(match tag {
        Tag::Int => Value::Int(text::convert::int(bytes, 10)?),
        Tag::Count => Value::Count(text::convert::count(bytes, 10)?),
        Tag::Double => Value::Double(text::convert::double(bytes)?),
        Tag::Addr => parse_addr(text)?,
        Tag::Subnet => parse_subnet(text)?,
        Tag::Port => {
            let (number, transport) = text::convert::port(bytes)?;
            let number = u16::try_from(number).ok()?;
            Value::Port(Port { number, protocol: transport.into() })
        }
        _ => return None,
    })
}

/// Parses an address.
#[must_use]
pub fn parse_addr(text: &str) -> Option<Value> {
    let text = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if let Some(four) = parse_dotted(text) {
        return Some(Value::Addr4(four));
    }
    text.parse::<std::net::Ipv6Addr>().ok().map(|six| Value::addr(six.octets()))
}

/// Parses a dotted IPv4 address; leading zeros are allowed.
fn parse_dotted(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let digits = parts.next()?;
        if digits.len() > 3 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = digits.parse().ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// Parses a network.
#[must_use]
pub fn parse_subnet(text: &str) -> Option<Value> {
    let (written, width) = text.split_once('/')?;
    let addr = parse_addr(written)?;
    let width: u8 = width.parse().ok()?;
    let bytes = addr.addr_bytes()?;
    match addr {
        Value::Addr4(_) if !written.contains(':') => {
            (width <= 32).then(|| Value::subnet(bytes, width + 96))
        }
        _ => (width <= 128).then(|| Value::subnet(bytes, width)),
    }
}

/// Parses a port.
#[must_use]
pub fn parse_port(text: &str) -> Option<Value> {
    let (number, protocol) = text.split_once('/')?;
    let protocol = match protocol.to_ascii_lowercase().as_str() {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "icmp" => Protocol::Icmp,
        "unknown" => Protocol::Unknown,
        _ => return None,
    };
    Some(Value::Port(Port { number: number.parse().ok()?, protocol }))
}
