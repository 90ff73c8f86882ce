//! Conversion of packed arguments to script values.

use std::cell::RefCell;
use std::rc::Rc;

use gannet_base::{ConnId, LinkState, Proto};
use gannet_event::{Param, Raised, Reader, Type};

use super::conn_plan::ConnPlan;
use super::repeated::{self, LastRecord};
use super::state::States;
use super::traffic::Certificate;
use super::used::UsedParts;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::literal::{Port, Protocol};
use crate::types::{self, Tag};
use crate::value::{List, OpaqueValue, Record, Table, Value, Vector};
use crate::vm::Vm;

/// How a packed value is converted to a script value; built once for each event.
pub(super) enum Plan {
    /// The value is skipped: no handler reads it, or the script declares another type. Its packed length if that is constant.
    Skip(Option<usize>),
    /// An atomic value that has the same representation in scripts.
    Same(Tag),
    /// An atomic value that is converted to this type.
    Atom(TypeId, Tag),
    /// An enumerator of this type.
    Enum(TypeId),
    /// An opaque value.
    Opaque(TypeId),
    /// A vector of this type.
    Vector(TypeId, Box<Plan>),
    /// A set of this type.
    Set(TypeId, Box<Plan>),
    /// A table of this type.
    Table(TypeId, Box<Plan>, Box<Plan>),
    /// A key of several parts, given as the fields of a record.
    Key(TypeId, Vec<Plan>),
    /// A record of this type: the offset of its last field that is set, and for each packed field its offset and plan.
    Record(TypeId, u32, Vec<(Option<u32>, Plan)>),
    /// A record that consecutive events share.
    Repeated(Rc<RefCell<LastRecord>>, Box<Plan>),
    /// `connection`
    Connection(TypeId),
    /// A `connection` whose record lives for one event, unless scripts have one already.
    Temporary(TypeId, Rc<ConnPlan>),
    /// `conn_id`
    ConnId(IdPlan),
    /// `fa_file`
    File(TypeId),
}

/// Whether a packed atomic type has the representation of the script type with this tag.
fn is_same(from: &Type, to: Tag) -> bool {
    matches!(
        (from, to),
        (Type::Bool, Tag::Bool)
            | (Type::Int, Tag::Int)
            | (Type::Count, Tag::Count)
            | (Type::Double, Tag::Double)
            | (Type::Time, Tag::Time)
            | (Type::Interval, Tag::Interval)
            | (Type::String, Tag::String)
            | (Type::Port, Tag::Port)
            | (Type::Addr, Tag::Addr)
    )
}

/// Reads a packed value of a type that satisfies [`is_same`].
#[inline]
fn read_same(tag: Tag, vm: &Vm<'_>, from: &mut Reader<'_>) -> Option<Value> {
    Some(match tag {
        Tag::Bool => Value::Bool(from.bool()?),
        Tag::Int => Value::Int(from.int()?),
        Tag::Count => Value::Count(from.count()?),
        Tag::Double => Value::Double(from.double()?),
        Tag::Time => Value::Time(nanos_to_seconds(from.nanos()?)),
        Tag::Interval => Value::Interval(from.double()?),
        Tag::String => vm.m.state.traffic.string_arg(from.bytes()?),
        Tag::Port => {
            let (number, proto) = from.port()?;
            port(number, proto)
        }
        Tag::Addr => Value::addr(from.addr()?),
        _ => return None,
    })
}

impl Plan {
    pub(super) fn new(vm: &Vm<'_>, from: &Type, to: TypeId) -> Self {
        let to = if to == TypeId::ANY { default_type(vm, from) } else { to };
        match (from, vm.p.types.get(to)) {
            (Type::Vector(of) | Type::VectorFromOne(of), types::Type::Vector(element)) => {
                Self::Vector(to, Box::new(Self::new(vm, of, *element)))
            }
            (Type::Set(of), types::Type::Table(table)) if table.value.is_none() => {
                Self::Set(to, Box::new(Self::key(vm, of, table)))
            }
            (Type::Table(key, of), types::Type::Table(table)) => match table.value {
                Some(value) => Self::Table(
                    to,
                    Box::new(Self::key(vm, key, table)),
                    Box::new(Self::new(vm, of, value)),
                ),
                None => Self::skip(from),
            },
            (Type::Record(record), types::Type::Record(fields)) => {
                let plan = |param: &Param| {
                    let offset = vm.p.names.find(param.name).and_then(|name| fields.offset(name));
                    let field = offset.and_then(|offset| fields.fields.get(offset));
                    match (offset, field) {
                        (Some(offset), Some(field)) => {
                            (u32::try_from(offset).ok(), Self::new(vm, &param.ty, field.ty))
                        }
                        _ => (None, Self::skip(&param.ty)),
                    }
                };
                Self::record(to, record.fields.iter().map(plan).collect())
            }
            (Type::Connection, types::Type::Record(_)) => Self::Connection(to),
            (Type::ConnId, types::Type::Record(_)) => Self::ConnId(IdPlan::new(vm, to)),
            (Type::File, types::Type::Record(_)) => Self::File(to),
            (Type::Enum(_), types::Type::Enum(_)) => Self::Enum(to),
            (Type::Opaque(_), _) => Self::Opaque(to),
            (
                Type::Bool
                | Type::Int
                | Type::Count
                | Type::Double
                | Type::Time
                | Type::Interval
                | Type::String
                | Type::Port
                | Type::Addr
                | Type::Subnet,
                _,
            ) => {
                let tag = vm.p.types.tag(to);
                if is_same(from, tag) { Self::Same(tag) } else { Self::Atom(to, tag) }
            }
            _ => Self::skip(from),
        }
    }

    /// The plan of a record of this type with these fields.
    fn record(to: TypeId, fields: Vec<(Option<u32>, Self)>) -> Self {
        let last = fields.iter().filter_map(|(offset, _)| *offset).max();
        Self::Record(to, last.unwrap_or_default(), fields)
    }

    /// The plan of a parameter that handlers read: [`Self::Repeated`] if events share its value.
    pub(super) fn repeated(self, vm: &Vm<'_>, from: &Type, to: TypeId) -> Self {
        match &self {
            Self::Record(ty, ..) => match repeated::shared(vm, *ty) {
                // Other events may read more of its fields.
                Some(last) => Self::Repeated(last, Box::new(Self::new(vm, from, to))),
                None => self,
            },
            _ => self,
        }
    }

    /// The plan that skips values of this type.
    pub(super) fn skip(from: &Type) -> Self {
        Self::Skip(from.packed_len())
    }

    /// Replaces the plans of unused parts with [`Self::Skip`].
    pub(super) fn narrowed(self, used: &UsedParts, from: &Type) -> Self {
        match (self, used, from) {
            // The record of a file is created at its first event.
            (plan @ Self::File(_), ..) | (plan, UsedParts::All, _) => plan,
            (_, UsedParts::Nothing, _) => Self::skip(from),
            (Self::Record(to, _, plans), UsedParts::Fields(fields), Type::Record(record)) => {
                let narrow = |((offset, plan), param): ((Option<u32>, Self), &Param)| match offset
                    .and_then(|offset| Some((offset, fields.get(&offset)?)))
                {
                    Some((offset, used)) => (Some(offset), plan.narrowed(used, &param.ty)),
                    None => (None, Self::skip(&param.ty)),
                };
                let plans = plans.into_iter().zip(record.fields).map(narrow).collect();
                Self::record(to, plans)
            }
            (plan, UsedParts::Fields(_), _) => plan,
        }
    }

    /// The plan of a key.
    fn key(vm: &Vm<'_>, from: &Type, table: &types::TableType) -> Self {
        match (&*table.index, from) {
            ([one], _) => Self::new(vm, from, *one),
            (parts, Type::Record(record)) if parts.len() == record.fields.len() => {
                let plans = record.fields.iter().zip(parts);
                Self::Key(table.list, plans.map(|(f, part)| Self::new(vm, &f.ty, *part)).collect())
            }
            _ => Self::skip(from),
        }
    }

    /// Reads a parameter or field; [`Value::Unset`] if it is unset.
    pub(super) fn param(
        &self,
        vm: &mut Vm<'_>,
        states: &mut States,
        event: &Raised<'_>,
        from: &mut Reader<'_>,
        param: &Param,
    ) -> Result<Value, Stop> {
        match (self, from.is_set(param)) {
            (_, None | Some(false)) => Ok(Value::Unset),
            (Self::Skip(len), _) => {
                // The reader ends with the arguments: unreadable ones need not be skipped.
                let _ = match len {
                    Some(len) => from.advance(*len),
                    None => from.skip(&param.ty),
                };
                Ok(Value::Unset)
            }
            _ => self.read(vm, states, event, from, &param.ty),
        }
    }

    #[inline]
    fn read(
        &self,
        vm: &mut Vm<'_>,
        states: &mut States,
        event: &Raised<'_>,
        from: &mut Reader<'_>,
        ty: &Type,
    ) -> Result<Value, Stop> {
        if let Self::Same(tag) = self {
            return Ok(read_same(*tag, vm, from).unwrap_or_default());
        }
        if let (Self::Connection(to), Type::Connection) = (self, ty) {
            let found = from.index().and_then(|index| Some((index, event.connection(index)?)));
            return match found {
                Some((index, state)) => {
                    states.connection_at(vm, *to, (event.version(), index), state)
                }
                None => Ok(Value::Unset),
            };
        }
        if let (Self::Temporary(to, plan), Type::Connection) = (self, ty) {
            let found = from.index().and_then(|index| Some((index, event.connection(index)?)));
            return match found {
                Some((index, state)) if states.needs_stored_record(vm, plan, state) => {
                    states.connection_at(vm, *to, (event.version(), index), state)
                }
                Some((_, state)) => plan.temporary(vm, state),
                None => Ok(Value::Unset),
            };
        }
        if let Self::Repeated(last, plan) = self {
            let again = last.borrow().get_if_equal(from);
            return match again {
                Some(value) => Ok(value),
                None => {
                    let begin = from.clone();
                    let value = plan.read(vm, states, event, from, ty)?;
                    last.borrow_mut().set(&begin, from, &value);
                    Ok(value)
                }
            };
        }
        match from.value(ty) {
            Some(head) => self.read_rest(vm, states, event, from, ty, &head),
            None => Ok(Value::Unset),
        }
    }

    /// Reads the rest of a value after its head.
    fn read_rest(
        &self,
        vm: &mut Vm<'_>,
        states: &mut States,
        event: &Raised<'_>,
        from: &mut Reader<'_>,
        ty: &Type,
        head: &gannet_event::Value<'_>,
    ) -> Result<Value, Stop> {
        use gannet_event::Value as Head;
        Ok(match (self, head, ty) {
            (Self::Atom(to, tag), _, _) => atom(head, *to, *tag),
            // The number has no enumerator in the script's type.
            (Self::Enum(to), Head::Enum("<undefined>"), _) => Value::Enum(*to, -1),
            (Self::Enum(_), Head::Enum(name), _) => vm.enum_named(name),
            (Self::Opaque(to), Head::Opaque(_, data), _) => {
                Value::Opaque(OpaqueValue::new(*to, Certificate(data.to_vec())))
            }
            (Self::Vector(to, plan), Head::Vector(n), Type::Vector(of)) => {
                let mut items = Vec::with_capacity(*n);
                for _ in 0..*n {
                    items.push(plan.read(vm, states, event, from, of)?);
                }
                Value::Vector(Vector::new(*to, items))
            }
            (Self::Vector(to, plan), Head::Vector(n), Type::VectorFromOne(of)) => {
                let mut items = Vec::with_capacity(n + 1);
                if *n > 0 {
                    items.push(Value::Unset);
                }
                for _ in 0..*n {
                    items.push(plan.read(vm, states, event, from, of)?);
                }
                Value::Vector(Vector::new(*to, items))
            }
            (Self::Set(to, plan), Head::Set(n), Type::Set(of)) => {
                let table = vm.new_table(*to, None);
                for _ in 0..*n {
                    let key = plan.read(vm, states, event, from, of)?;
                    insert(vm, table.table(), key, Value::Unset);
                }
                table
            }
            (Self::Table(to, keys, values), Head::Table(n), Type::Table(key, of)) => {
                let table = vm.new_table(*to, None);
                for _ in 0..*n {
                    let key = keys.read(vm, states, event, from, key)?;
                    let value = values.read(vm, states, event, from, of)?;
                    insert(vm, table.table(), key, value);
                }
                table
            }
            (Self::Key(list, plans), Head::Record, Type::Record(record)) => {
                let mut items = Vec::with_capacity(plans.len());
                for (plan, param) in plans.iter().zip(record.fields) {
                    items.push(plan.param(vm, states, event, from, param)?);
                }
                Value::List(Rc::new(List { ty: *list, items }))
            }
            (Self::Record(to, last, plans), Head::Record, Type::Record(record)) => vm
                .new_record_with(*to, *last, |vm, fields| {
                    for ((offset, plan), param) in plans.iter().zip(record.fields) {
                        let value = plan.param(vm, states, event, from, param)?;
                        if let Some(offset) = offset
                            && let Some(field) = fields.get_mut(*offset as usize)
                            && value.is_set()
                        {
                            Value::put(field, value);
                        }
                    }
                    Ok(())
                })?,
            (Self::Connection(to), Head::Connection(index), _) => match event.connection(*index) {
                Some(state) => states.connection_at(vm, *to, (event.version(), *index), state)?,
                None => Value::Unset,
            },
            (Self::ConnId(plan), Head::ConnId(id, proto, number), _) => {
                plan.value(vm, id, *proto, *number)?
            }
            (Self::File(to), Head::File(index), _) => match event.file(*index) {
                Some(state) => states.file(vm, *to, state, event)?,
                None => Value::Unset,
            },
            _ => {
                skip(from, ty, head);
                Value::Unset
            }
        })
    }
}

/// Removes skipped values at the end of an event, or of a record that is its last value: nothing after them
/// is read.
pub(super) fn trim<P>(plans: &mut Vec<(P, Plan)>) {
    while plans.pop_if(|(_, plan)| matches!(plan, Plan::Skip(_))).is_some() {}
    if let Some((_, Plan::Record(_, _, fields))) = plans.last_mut() {
        trim(fields);
    }
}

/// Skips the rest of a value after its head.
fn skip(from: &mut Reader<'_>, ty: &Type, head: &gannet_event::Value<'_>) {
    use gannet_event::Value as Head;
    // The reader ends with the arguments: unreadable ones need not be skipped.
    let _ = match (head, ty) {
        (Head::Vector(n), Type::Vector(of) | Type::VectorFromOne(of))
        | (Head::Set(n), Type::Set(of)) => (0..*n).try_for_each(|_| from.skip(of)),
        (Head::Table(n), Type::Table(key, of)) => (0..*n).try_for_each(|_| {
            from.skip(key)?;
            from.skip(of)
        }),
        (Head::Record, Type::Record(record)) => {
            record.fields.iter().try_for_each(|field| from.skip_param(field))
        }
        _ => Some(()),
    };
}

fn insert(vm: &Vm<'_>, table: Option<&Rc<Table>>, key: Value, value: Value) {
    if let Some(table) = table
        && key.is_set()
    {
        table.insert(key, value, vm.m.now);
    }
}

/// The script type of a value that is passed as `any`.
fn default_type(vm: &Vm<'_>, from: &Type) -> TypeId {
    match from {
        Type::Bool => TypeId::BOOL,
        Type::Int => TypeId::INT,
        Type::Count => TypeId::COUNT,
        Type::Double => TypeId::DOUBLE,
        Type::Time => TypeId::TIME,
        Type::Interval => TypeId::INTERVAL,
        Type::String => TypeId::STRING,
        Type::Port => TypeId::PORT,
        Type::Addr => TypeId::ADDR,
        Type::Subnet => TypeId::SUBNET,
        Type::Enum(name) => vm.type_named(name).unwrap_or(TypeId::ANY),
        Type::Record(record) => vm.type_named(record.name).unwrap_or(TypeId::ANY),
        Type::Connection => vm.type_named("connection").unwrap_or(TypeId::ANY),
        Type::ConnId => vm.type_named("conn_id").unwrap_or(TypeId::ANY),
        Type::File => vm.type_named("fa_file").unwrap_or(TypeId::ANY),
        Type::Opaque(_)
        | Type::Vector(_)
        | Type::VectorFromOne(_)
        | Type::Set(_)
        | Type::Table(..) => TypeId::ANY,
    }
}

/// An atomic value, converted to the script type `to`.
fn atom(head: &gannet_event::Value<'_>, to: TypeId, tag: Tag) -> Value {
    use gannet_event::Value as Head;
    let value = match head {
        Head::Bool(value) => Value::Bool(*value),
        Head::Int(value) => Value::Int(*value),
        Head::Count(value) => Value::Count(*value),
        Head::Double(value) => Value::Double(*value),
        Head::Time(value) => Value::Time(nanos_to_seconds(value.as_nanos())),
        Head::Interval(value) => Value::Interval(*value),
        Head::String(text) => Value::string(text),
        Head::Port(number, protocol) => port(*number, *protocol),
        Head::Addr(addr) => Value::addr(addr.octets()),
        Head::Subnet(net) => Value::subnet(net.base().octets(), net.bits()),
        _ => Value::Unset,
    };
    match (tag, &value) {
        (Tag::Int, Value::Count(_)) => Value::Int(value.int()),
        (Tag::Count, Value::Int(_)) => Value::Count(value.count()),
        (Tag::Double, Value::Int(_) | Value::Count(_)) => Value::Double(value.double()),
        (Tag::Interval, Value::Int(_) | Value::Count(_) | Value::Double(_)) => {
            Value::Interval(value.double())
        }
        (Tag::Time, Value::Int(_) | Value::Count(_) | Value::Double(_)) => {
            Value::Time(value.double())
        }
        (Tag::Enum, Value::Int(_) | Value::Count(_)) => Value::Enum(to, value.int()),
        _ => value,
    }
}

/// Nanoseconds as seconds. The minimum stands for the year 1601, the epoch of Windows timestamps.
fn nanos_to_seconds(nanos: i64) -> f64 {
    if nanos == i64::MIN {
        return -11_644_473_600.0;
    }
    (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9
}

/// Nanoseconds as seconds with the precision of microseconds, computed as `tv_sec + tv_usec / 1e6`.
pub(super) fn seconds(nanos: i64) -> f64 {
    let micros = nanos / 1_000;
    (micros / 1_000_000) as f64 + (micros % 1_000_000) as f64 / 1e6
}

pub(super) fn port(number: u16, proto: Proto) -> Value {
    let protocol = match proto {
        Proto::Tcp => Protocol::Tcp,
        Proto::Udp => Protocol::Udp,
        Proto::Icmp => Protocol::Icmp,
        _ => Protocol::Unknown,
    };
    Value::Port(Port { number, protocol })
}

/// The offsets of the fields of these names; `None` for fields that do not exist.
pub(super) fn field_offsets<const N: usize>(
    vm: &Vm<'_>,
    ty: TypeId,
    names: [&str; N],
) -> [Option<usize>; N] {
    let record = vm.p.types.record(ty);
    names.map(|name| record?.offset(vm.p.names.find(name)?))
}

/// Creates `conn_id` records.
pub(super) struct IdPlan {
    ty: TypeId,
    offsets: [Option<usize>; 5],
    /// The largest of these offsets.
    last: u32,
    /// Offset of `ctx` and those of its `vlan` and `inner_vlan`, if these distinguish connections.
    tags: Option<(usize, [usize; 2])>,
}

/// Whether the field at an offset is used.
pub(super) fn is_used(offset: usize, used: &UsedParts) -> bool {
    *used_at(offset, used) != UsedParts::Nothing
}

/// Removes the offsets of unused fields.
pub(super) fn narrow<const N: usize>(offsets: &mut [Option<usize>; N], used: &UsedParts) {
    for offset in offsets {
        *offset = offset.filter(|offset| is_used(*offset, used));
    }
}

/// The used parts of the field at an offset.
pub(super) fn used_at(offset: usize, used: &UsedParts) -> &UsedParts {
    match (used, u32::try_from(offset)) {
        (UsedParts::Fields(fields), Ok(offset)) => {
            fields.get(&offset).unwrap_or(&UsedParts::Nothing)
        }
        _ => used,
    }
}

/// The largest of these offsets, 0 if there are none.
pub(super) fn last_of(offsets: impl IntoIterator<Item = Option<usize>>) -> u32 {
    let last = offsets.into_iter().flatten().max();
    last.map_or(0, |last| u32::try_from(last).unwrap_or(u32::MAX))
}

impl IdPlan {
    /// Removes fields that are not used.
    pub(super) fn narrowed(mut self, used: &UsedParts) -> Self {
        narrow(&mut self.offsets, used);
        self.last = last_of(self.offsets);
        if self.tags.is_some_and(|(ctx, _)| !is_used(ctx, used)) {
            self.tags = None;
        }
        self
    }

    pub(super) fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let names = ["orig_h", "orig_p", "resp_h", "resp_p", "proto"];
        let [ctx] = field_offsets(vm, ty, ["ctx"]);
        let tags = ctx.and_then(|ctx| {
            let field = vm.p.types.record(ty)?.fields.get(ctx)?.ty;
            let [vlan, inner_vlan] = field_offsets(vm, field, ["vlan", "inner_vlan"]);
            let fields = &vm.p.types.record(field)?.fields;
            let is_int = |offset: &usize| fields.get(*offset).is_some_and(|f| f.ty == TypeId::INT);
            Some((ctx, [vlan.filter(is_int)?, inner_vlan.filter(is_int)?]))
        });
        let offsets = field_offsets(vm, ty, names);
        Self { ty, last: last_of(offsets), offsets, tags }
    }

    pub(super) fn value(
        &self,
        vm: &mut Vm<'_>,
        id: &ConnId,
        proto: Proto,
        number: u8,
    ) -> Result<Value, Stop> {
        vm.new_record_with(self.ty, self.last, |_, fields| {
            for (offset, value) in self.offsets.iter().zip(Self::values(id, proto, number)) {
                if let Some(field) = offset.and_then(|offset| fields.get_mut(offset)) {
                    *field = value;
                }
            }
            Ok(())
        })
    }

    /// Sets the fields of a `conn_id`.
    pub(super) fn fill(&self, record: &Record, id: &ConnId, proto: Proto, number: u8) {
        for (offset, value) in self.offsets.iter().zip(Self::values(id, proto, number)) {
            if let Some(offset) = offset {
                record.set(*offset, value);
            }
        }
    }

    /// Values of `orig_h`, `orig_p`, `resp_h`, `resp_p` and `proto`.
    fn values(id: &ConnId, proto: Proto, number: u8) -> [Value; 5] {
        [
            Value::addr(id.orig_h.octets()),
            port(id.orig_p, proto),
            Value::addr(id.resp_h.octets()),
            port(id.resp_p, proto),
            Value::Count(u64::from(number)),
        ]
    }

    /// The plan of a record type, cached.
    pub(super) fn cached(vm: &Vm<'_>, ty: TypeId) -> Rc<Self> {
        let mut known = vm.m.state.traffic.id_plan.borrow_mut();
        match &*known {
            Some(plan) if plan.ty == ty => Rc::clone(plan),
            _ => {
                let plan = Rc::new(Self::new(vm, ty));
                *known = Some(Rc::clone(&plan));
                plan
            }
        }
    }

    /// The fields `orig_h`, `orig_p`, `resp_h`, `resp_p` and `proto` of a `conn_id`.
    pub(super) fn fields(&self, record: &Record) -> [Value; 5] {
        self.offsets.map(|offset| offset.map_or(Value::Unset, |offset| record.get(offset)))
    }

    /// Whether VLAN tags distinguish connections.
    pub(super) fn is_tagged(&self) -> bool {
        self.tags.is_some()
    }

    /// Sets the VLAN tags of a `conn_id`.
    pub(super) fn set_tags(&self, id: &Value, tags: [Option<u16>; 2]) {
        let Some((ctx, offsets)) = self.tags else { return };
        let Some(ctx) = id.record().map(|id| id.get(ctx)) else { return };
        let Some(ctx) = ctx.record() else { return };
        for (offset, tag) in offsets.into_iter().zip(tags) {
            if let Some(tag) = tag {
                ctx.set(offset, Value::Int(i64::from(tag)));
            }
        }
    }

    /// The VLAN tags of a `conn_id`, packed into one number.
    pub(super) fn tags(&self, id: &Record) -> u32 {
        let Some((ctx, [vlan, inner_vlan])) = self.tags else { return 0 };
        let ctx = id.get(ctx);
        let Some(ctx) = ctx.record() else { return 0 };
        let tag = |offset| match ctx.get(offset) {
            Value::Int(tag) => u16::try_from(tag).ok(),
            _ => None,
        };
        let (vlan, inner_vlan) = (tag(vlan), tag(inner_vlan));
        LinkState { vlan, inner_vlan, ..LinkState::default() }.tags()
    }

    /// Whether a `conn_id` has this originator address and port.
    pub(super) fn is_of(&self, record: &Record, id: &ConnId) -> bool {
        let [Some(host), Some(port), ..] = self.offsets else { return true };
        let cells = record.stored();
        cells.get(host).and_then(Value::addr_bytes) == Some(id.orig_h.octets())
            && matches!(cells.get(port), Some(Value::Port(port)) if port.number == id.orig_p)
    }
}
