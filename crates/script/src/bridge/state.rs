//! Records of connections and files: one for the lifetime of each, so that scripts find their added
//! fields again.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::{ConnId, Uid};
use gannet_event::{ConnState, EndpointState, FileState, Raised, Type};

use super::plan::{IdPlan, places, seconds};
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::value::{Record, Value};
use crate::vm::Vm;

/// Records of live connections and files.
#[derive(Default)]
pub(super) struct States {
    conns: HashMap<Uid, Rc<Record>>,
    by_id: HashMap<ConnId, Rc<Record>>,
    files: HashMap<Uid, Rc<Record>>,
    conn_plan: Option<ConnPlan>,
    file_plan: Option<FilePlan>,
    /// Scripts keep `service` themselves.
    scripted_services: bool,
    /// What ends with this drain.
    gone: Vec<Gone>,
}

enum Gone {
    Connection(Uid, ConnId),
    File(Uid),
}

/// Places of the fields of `connection`.
struct ConnPlan {
    ty: TypeId,
    id: Option<(usize, IdPlan)>,
    ends: [Option<(usize, EndPlan)>; 2],
    /// `start_time`, `duration`, `service`, `history`, `uid`, `vlan`, `inner_vlan`.
    places: [Option<usize>; 7],
    service: Option<TypeId>,
}

/// Places of the fields of `endpoint`.
struct EndPlan {
    ty: TypeId,
    /// `size`, `state`, `num_pkts`, `num_bytes_ip`, `flow_label`, `l2_addr`.
    places: [Option<usize>; 6],
}

/// Places of the fields of `fa_file`.
struct FilePlan {
    ty: TypeId,
    /// `id`, `parent_id`, `source`, `is_orig`, `last_active`, `seen_bytes`, `total_bytes`, `missing_bytes`,
    /// `overflow_bytes`, `timeout_interval`, `bof_buffer`.
    places: [Option<usize>; 11],
    conns: Option<(usize, TypeId, IdPlan)>,
}

impl States {
    pub(super) fn new(vm: &Vm<'_>) -> Self {
        let scripted_services = vm
            .function_named("analyzer_confirmation_info")
            .is_some_and(|func| !vm.p.functions[func].bodies.is_empty());
        Self { scripted_services, ..Self::default() }
    }

    /// An event that no script handles: its connections are known from now on.
    pub(super) fn note(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        self.over(event);
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        if event.decl.name == "new_connection"
            && let Some(state) = first_connection(event)
        {
            self.connection(vm, ty, state)?;
        }
        Ok(())
    }

    /// Notes the end of a connection or file: its record goes after the drain.
    pub(super) fn over(&mut self, event: &Raised<'_>) {
        match event.decl.name {
            "connection_state_remove" => {
                if let Some(state) = first_connection(event) {
                    self.gone.push(Gone::Connection(state.uid, state.id));
                }
            }
            "file_state_remove" => {
                if let Some(state) = first_file(event) {
                    self.gone.push(Gone::File(state.fuid));
                }
            }
            _ => (),
        }
    }

    /// Drops records of what ended.
    pub(super) fn forget(&mut self) {
        for gone in self.gone.drain(..) {
            match gone {
                Gone::Connection(uid, id) => {
                    let record = self.conns.remove(&uid);
                    // The same addresses and ports may have another connection by now.
                    if let (Some(old), Some(new)) = (record, self.by_id.get(&id))
                        && Rc::ptr_eq(&old, new)
                    {
                        self.by_id.remove(&id);
                    }
                }
                Gone::File(uid) => {
                    self.files.remove(&uid);
                }
            }
        }
    }

    /// The record of a connection, as its state is now.
    pub(super) fn connection(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<Value, Stop> {
        if self.conn_plan.as_ref().is_none_or(|plan| plan.ty != ty) {
            self.conn_plan = Some(ConnPlan::new(vm, ty));
        }
        let Some(plan) = &self.conn_plan else { return Ok(Value::Unset) };
        let record = match self.conns.get(&state.uid) {
            Some(record) => Rc::clone(record),
            None => {
                let record = plan.create(vm, state)?;
                self.conns.insert(state.uid, Rc::clone(&record));
                self.by_id.insert(state.id, Rc::clone(&record));
                record
            }
        };
        plan.refresh(vm, &record, state, self.scripted_services)?;
        Ok(Value::Record(record))
    }

    /// The record of a file, as its state is now.
    pub(super) fn file(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &FileState,
    ) -> Result<Value, Stop> {
        if self.file_plan.as_ref().is_none_or(|plan| plan.ty != ty) {
            self.file_plan = Some(FilePlan::new(vm, ty));
        }
        let Some(plan) = &self.file_plan else { return Ok(Value::Unset) };
        let record = match self.files.get(&state.fuid) {
            Some(record) => Rc::clone(record),
            None => {
                let record = fresh(vm, ty)?;
                self.files.insert(state.fuid, Rc::clone(&record));
                record
            }
        };
        plan.refresh(vm, &record, state, &self.by_id)?;
        Ok(Value::Record(record))
    }
}

fn first_connection<'a>(event: &Raised<'a>) -> Option<&'a ConnState> {
    let mut reader = event.args();
    let param = event.decl.params.iter().find(|param| param.ty == Type::Connection)?;
    match reader.param(param)? {
        gannet_event::Value::Connection(index) => event.connection(index),
        _ => None,
    }
}

fn first_file<'a>(event: &Raised<'a>) -> Option<&'a FileState> {
    let mut reader = event.args();
    let param = event.decl.params.iter().find(|param| param.ty == Type::File)?;
    match reader.param(param)? {
        gannet_event::Value::File(index) => event.file(index),
        _ => None,
    }
}

/// A record with the first values of its fields.
fn fresh(vm: &mut Vm<'_>, ty: TypeId) -> Result<Rc<Record>, Stop> {
    match vm.new_record(ty, &[], Vec::new())? {
        Value::Record(record) => Ok(record),
        _ => Err(Stop::Error),
    }
}

fn set<const N: usize>(record: &Record, places: &[Option<usize>; N], values: [Value; N]) {
    for (place, value) in places.iter().zip(values) {
        if let Some(place) = place
            && value.is_set()
        {
            record.set(*place, value);
        }
    }
}

fn field_type(vm: &Vm<'_>, ty: TypeId, place: usize) -> Option<TypeId> {
    Some(vm.p.types.record(ty)?.fields.get(place)?.ty)
}

impl ConnPlan {
    fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let [id, orig, resp] = places(vm, ty, ["id", "orig", "resp"]);
        let with_type =
            |place: Option<usize>| place.and_then(|at| Some((at, field_type(vm, ty, at)?)));
        let end = |place| with_type(place).map(|(at, ty)| (at, EndPlan::new(vm, ty)));
        let places = places(
            vm,
            ty,
            ["start_time", "duration", "service", "history", "uid", "vlan", "inner_vlan"],
        );
        let service = with_type(places[2]).map(|(_, ty)| ty);
        Self {
            ty,
            id: with_type(id).map(|(at, ty)| (at, IdPlan::new(vm, ty))),
            ends: [end(orig), end(resp)],
            places,
            service,
        }
    }

    fn create(&self, vm: &mut Vm<'_>, state: &ConnState) -> Result<Rc<Record>, Stop> {
        let record = fresh(vm, self.ty)?;
        if let Some((place, plan)) = &self.id {
            record.set(*place, plan.value(vm, &state.id, state.proto, state.ip_proto)?);
        }
        for (place, plan) in self.ends.iter().flatten() {
            let end = fresh(vm, plan.ty)?;
            record.set(*place, Value::Record(end));
        }
        Ok(record)
    }

    fn refresh(
        &self,
        vm: &mut Vm<'_>,
        record: &Record,
        state: &ConnState,
        scripted_services: bool,
    ) -> Result<(), Stop> {
        for (end, plan) in state.ends.iter().zip(&self.ends) {
            if let Some((place, plan)) = plan
                && let Value::Record(record) = record.get(*place)
            {
                plan.refresh(&record, end);
            }
        }
        let service = match self.service {
            Some(ty) if !scripted_services => {
                let table = vm.new_table(ty, None);
                if let Some(set) = table.table() {
                    for name in &state.services {
                        set.insert(Value::string(name), Value::Unset, vm.m.now);
                    }
                }
                table
            }
            _ => Value::Unset,
        };
        let (uid, len) = state.uid.text();
        let tag = |tag: Option<u16>| tag.map_or(Value::Unset, |tag| Value::Int(i64::from(tag)));
        let values = [
            Value::Time(seconds(state.start.as_nanos())),
            Value::Interval(seconds(state.duration.as_nanos())),
            service,
            Value::string(&state.history),
            Value::string(uid.get(..len).unwrap_or_default()),
            tag(state.vlan),
            tag(state.inner_vlan),
        ];
        set(record, &self.places, values);
        Ok(())
    }
}

impl EndPlan {
    fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let names = ["size", "state", "num_pkts", "num_bytes_ip", "flow_label", "l2_addr"];
        Self { ty, places: places(vm, ty, names) }
    }

    fn refresh(&self, record: &Record, state: &EndpointState) {
        let l2 = state.l2.map_or(Value::Unset, |[a, b, c, d, e, f]| {
            Value::string(format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"))
        });
        let values = [
            Value::Count(state.size),
            Value::Count(u64::from(state.state)),
            Value::Count(state.packets),
            Value::Count(state.ip_bytes),
            Value::Count(u64::from(state.flow_label)),
            l2,
        ];
        set(record, &self.places, values);
    }
}

impl FilePlan {
    fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let places_of = places(
            vm,
            ty,
            [
                "id",
                "parent_id",
                "source",
                "is_orig",
                "last_active",
                "seen_bytes",
                "total_bytes",
                "missing_bytes",
                "overflow_bytes",
                "timeout_interval",
                "bof_buffer",
            ],
        );
        let [conns] = places(vm, ty, ["conns"]);
        let conns = conns.and_then(|place| {
            let table = field_type(vm, ty, place)?;
            let key = *vm.p.types.table(table)?.index.first()?;
            Some((place, table, IdPlan::new(vm, key)))
        });
        Self { ty, places: places_of, conns }
    }

    fn refresh(
        &self,
        vm: &mut Vm<'_>,
        record: &Record,
        state: &FileState,
        by_id: &HashMap<ConnId, Rc<Record>>,
    ) -> Result<(), Stop> {
        let uid = |uid: Uid| {
            let (text, len) = uid.text();
            Value::string(text.get(..len).unwrap_or_default())
        };
        let values = [
            uid(state.fuid),
            state.parent.map_or(Value::Unset, uid),
            Value::string(state.source.as_bytes()),
            state.is_orig.map_or(Value::Unset, Value::Bool),
            Value::Time(seconds(state.last_active.as_nanos())),
            Value::Count(state.seen_bytes),
            state.total_bytes.map_or(Value::Unset, Value::Count),
            Value::Count(state.missing_bytes),
            Value::Count(state.overflow_bytes),
            Value::Interval(seconds(state.timeout.as_nanos())),
            state.bof.as_ref().map_or(Value::Unset, Value::string),
        ];
        set(record, &self.places, values);
        let Some((place, ty, key)) = &self.conns else { return Ok(()) };
        if state.conns.is_empty() {
            return Ok(());
        }
        let known = record.get(*place);
        let value = if known.is_set() { known } else { vm.new_table(*ty, None) };
        record.set(*place, value.clone());
        let Some(table) = value.table() else { return Ok(()) };
        if table.len() >= state.conns.len() {
            return Ok(());
        }
        for (id, proto) in &state.conns {
            if let Some(conn) = by_id.get(id) {
                let number = match proto {
                    gannet_base::Proto::Tcp => 6,
                    gannet_base::Proto::Udp => 17,
                    gannet_base::Proto::Icmp => 1,
                    _ => 0,
                };
                let key = key.value(vm, id, *proto, number)?;
                table.insert(key, Value::Record(Rc::clone(conn)), vm.m.now);
            }
        }
        Ok(())
    }
}
