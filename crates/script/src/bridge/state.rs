//! Records of connections and files: one for the lifetime of each, so that scripts find their added
//! fields again.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::{ConnId, Proto, Uid};
use gannet_event::{ConnState, EndpointState, FileState, LinkState, Raised, Type, Value as Head};

use super::plan::{IdPlan, places, seconds};
use super::traffic::{Known, Traffic};
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::order::UidPools;
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

/// Records of live connections and files.
#[derive(Default)]
pub(super) struct States {
    conns: HashMap<Uid, Rc<Record>>,
    files: HashMap<Uid, Rc<Record>>,
    conn_plan: Option<ConnPlan>,
    file_plan: Option<FilePlan>,
    /// Scripts keep `service` themselves.
    scripted_services: bool,
    /// What ends with this drain.
    gone: Vec<Gone>,
}

enum Gone {
    Connection(Uid, (ConnId, u32)),
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
    /// `tunnel`, with the places of `cid`, `tunnel_type` and `uid` in its elements.
    tunnel: Option<TunnelPlan>,
}

/// How `tunnel` of a connection is made.
struct TunnelPlan {
    place: usize,
    list: TypeId,
    element: TypeId,
    id: IdPlan,
    fields: [Option<usize>; 3],
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

    /// An analyzer of a port or of an announcement has a number: `gannet::analyzer_planned`.
    pub(super) fn plan(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        let Some(state) = first_connection(event) else { return Ok(()) };
        self.connection(vm, ty, state)?;
        let mut reader = event.args();
        let mut args = event.decl.params.iter().map(|param| reader.param(param));
        if let (_, Some(Some(Head::Enum(name))), Some(Some(Head::Count(number)))) =
            (args.next(), args.next(), args.next())
        {
            let tag = vm.enum_named(name);
            let key = (state.id, self.vlans(state));
            if let Some(known) = vm.m.state.traffic.conns.get_mut(&key)
                && !known.analyzers.iter().any(|(_, id)| *id == number)
            {
                known.analyzers.push((tag, number));
            }
        }
        Ok(())
    }

    /// An event that no script handles: its connections are known from now on.
    pub(super) fn note(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        self.over(event);
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        match (event.decl.name, first_connection(event)) {
            ("new_connection", Some(state)) => {
                self.known(vm, ty, state)?;
            }
            // It is named by weirds, even where no script handles them.
            ("conn_weird", Some(state)) => {
                self.connection(vm, ty, state)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes the end of a connection or file: its record goes after the drain.
    pub(super) fn over(&mut self, event: &Raised<'_>) {
        match event.decl.name {
            "connection_state_remove" => {
                if let Some(state) = first_connection(event) {
                    let vlans = self.vlans(state);
                    self.gone.push(Gone::Connection(state.uid, (state.id, vlans)));
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
    pub(super) fn forget(&mut self, traffic: &mut Traffic) {
        for gone in self.gone.drain(..) {
            match gone {
                Gone::Connection(uid, id) => {
                    self.conns.remove(&uid);
                    // The same addresses and ports may have another connection by now.
                    if traffic.conns.get(&id).is_some_and(|known| known.uid == uid) {
                        traffic.conns.remove(&id);
                    }
                }
                Gone::File(uid) => {
                    self.files.remove(&uid);
                    traffic.files.retain(|_, (fuid, _)| *fuid != uid);
                }
            }
        }
    }

    /// The record of a connection that scripts see from now on, as its state is now.
    pub(super) fn connection(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<Value, Stop> {
        let record = self.known(vm, ty, state)?;
        let key = (state.id, self.vlans(state));
        if let Some(known) = vm.m.state.traffic.conns.get(&key) {
            let (uid, place) = (known.uid, known.name);
            name_it(vm, &record, uid, place);
        }
        Ok(Value::Record(record))
    }

    /// The same, where scripts do not see it yet: it has no name.
    fn known(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<Rc<Record>, Stop> {
        if self.conn_plan.as_ref().is_none_or(|plan| plan.ty != ty) {
            self.conn_plan = Some(ConnPlan::new(vm, ty));
        }
        let Some(plan) = &self.conn_plan else { return Err(Stop::Error) };
        let record = match self.conns.get(&state.uid) {
            Some(record) => Rc::clone(record),
            None => {
                let record = plan.create(vm, state)?;
                self.conns.insert(state.uid, Rc::clone(&record));
                record
            }
        };
        let vlans = plan.vlans(state);
        let traffic = &mut vm.m.state.traffic;
        let key = (state.id, vlans);
        if traffic.conns.get(&key).is_none_or(|known| known.uid != state.uid) {
            let known = Known {
                record: Rc::clone(&record),
                uid: state.uid,
                proto: state.proto,
                ip_proto: state.ip_proto,
                timeout: None,
                thresholds: [0; 4],
                duration: 0.0,
                start: plan.places[0],
                name: plan.places[4],
                analyzers: Vec::new(),
            };
            traffic.conns.insert(key, known);
        }
        plan.refresh(vm, &record, state, self.scripted_services)?;
        Ok(record)
    }

    /// The VLAN tags that distinguish a connection.
    fn vlans(&self, state: &ConnState) -> u32 {
        self.conn_plan.as_ref().map_or(0, |plan| plan.vlans(state))
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
                let name = file_name(vm, state);
                vm.m.state
                    .traffic
                    .files
                    .insert(name.str_bytes().to_vec(), (state.fuid, Rc::clone(&record)));
                if let Some(place) = plan.places[0] {
                    record.set(place, name);
                }
                record
            }
        };
        plan.refresh(vm, &record, state)?;
        Ok(Value::Record(record))
    }
}

pub(super) fn first_connection<'a>(event: &Raised<'a>) -> Option<&'a ConnState> {
    let mut reader = event.args();
    let param = event.decl.params.iter().find(|param| param.ty == Type::Connection)?;
    match reader.param(param)? {
        gannet_event::Value::Connection(index) => event.connection(index),
        _ => None,
    }
}

pub(super) fn first_file<'a>(event: &Raised<'a>) -> Option<&'a FileState> {
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
        let [tunnel] = self::places(vm, ty, ["tunnel"]);
        let tunnel = with_type(tunnel).and_then(|(at, list)| {
            let crate::types::Type::Vector(element) = vm.p.types.get(list) else { return None };
            let fields = self::places(vm, *element, ["cid", "tunnel_type", "uid"]);
            let id = field_type(vm, *element, fields[0]?)?;
            Some(TunnelPlan { place: at, list, element: *element, id: IdPlan::new(vm, id), fields })
        });
        Self {
            ty,
            id: with_type(id).map(|(at, ty)| (at, IdPlan::new(vm, ty))),
            ends: [end(orig), end(resp)],
            places,
            service,
            tunnel,
        }
    }

    /// The VLAN tags that distinguish a connection, 0 where they do not.
    fn vlans(&self, state: &ConnState) -> u32 {
        match &self.id {
            Some((_, plan)) if plan.is_tagged() => {
                let (vlan, inner_vlan) = (state.vlan, state.inner_vlan);
                LinkState { vlan, inner_vlan, ..LinkState::default() }.tags()
            }
            _ => 0,
        }
    }

    fn create(&self, vm: &mut Vm<'_>, state: &ConnState) -> Result<Rc<Record>, Stop> {
        let record = fresh(vm, self.ty)?;
        if let Some((place, plan)) = &self.id {
            let id = plan.value(vm, &state.id, state.proto, state.ip_proto)?;
            plan.set_tags(&id, [state.vlan, state.inner_vlan]);
            record.set(*place, id);
        }
        for (place, plan) in self.ends.iter().flatten() {
            let end = fresh(vm, plan.ty)?;
            record.set(*place, Value::Record(end));
        }
        // Those of tunnels are drawn first.
        for uid in state.tunnels.iter().filter_map(|tunnel| tunnel.uid) {
            conn_name(vm, uid);
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
        if let Some((place, plan)) = &self.id
            && let Value::Record(id) = record.get(*place)
            && !plan.is_of(&id, &state.id)
        {
            // Originator and responder were exchanged.
            plan.fill(&id, &state.id, state.proto, state.ip_proto);
            if let [Some((orig, _)), Some((resp, _))] = &self.ends {
                let (one, other) = (record.get(*orig), record.get(*resp));
                record.set(*orig, other);
                record.set(*resp, one);
            }
        }
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
        let tag = |tag: Option<u16>| tag.map_or(Value::Unset, |tag| Value::Int(i64::from(tag)));
        let values = [
            Value::Time(seconds(state.start.as_nanos())),
            // As times of floating point differ.
            Value::Interval(
                seconds(state.start.as_nanos() + state.duration.as_nanos())
                    - seconds(state.start.as_nanos()),
            ),
            service,
            Value::string(&state.history),
            Value::Unset,
            tag(state.vlan),
            tag(state.inner_vlan),
        ];
        set(record, &self.places, values);
        if let Some(TunnelPlan { place, list, element, id, fields }) = &self.tunnel
            && !state.tunnels.is_empty()
        {
            let mut items = Vec::with_capacity(state.tunnels.len());
            for tunnel in &state.tunnels {
                let cid = id.value(vm, &tunnel.id, tunnel.proto, tunnel.ip_proto)?;
                let uid = tunnel.uid.map_or(Value::Unset, |uid| conn_name(vm, uid));
                let kind = vm.enum_named(tunnel.kind);
                let item = fresh(vm, *element)?;
                set(&item, fields, [cid, kind, uid]);
                items.push(Value::Record(item));
            }
            record.set(*place, Value::Vector(Vector::new(*list, items)));
        }
        Ok(())
    }
}

impl EndPlan {
    fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let names = ["size", "state", "num_pkts", "num_bytes_ip", "flow_label", "l2_addr"];
        let mut places = places(vm, ty, names);
        if matches!(vm.global_named("use_conn_size_analyzer"), Value::Bool(false)) {
            (places[2], places[3]) = (None, None);
        }
        Self { ty, places }
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

    fn refresh(&self, vm: &mut Vm<'_>, record: &Record, state: &FileState) -> Result<(), Stop> {
        let uid = |uid: Uid| {
            let (text, len) = uid.text();
            Value::string(text.get(..len).unwrap_or_default())
        };
        let values = [
            Value::Unset,
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
            let conn =
                vm.m.state.traffic.conns.get(&(*id, 0)).map(|known| Rc::clone(&known.record));
            if let Some(conn) = conn {
                let number = match proto {
                    Proto::Tcp => 6,
                    Proto::Udp => 17,
                    Proto::Icmp => 1,
                    _ => 0,
                };
                let key = key.value(vm, id, *proto, number)?;
                table.insert(key, Value::Record(conn), vm.m.now);
            }
        }
        Ok(())
    }
}

/// Names a connection that a script sees for the first time: numbers are drawn in this order.
pub(super) fn name_it(vm: &mut Vm<'_>, record: &Record, uid: Uid, place: Option<usize>) {
    if let Some(place) = place
        && !record.get(place).is_set()
    {
        let name = conn_name(vm, uid);
        record.set(place, name);
    }
}

/// The name of a connection: Zeek's under seeds, in the order in which scripts first see connections.
fn conn_name(vm: &mut Vm<'_>, uid: Uid) -> Value {
    let state = &mut vm.m.state;
    let Some(names) = &mut state.traffic.names else {
        let (text, len) = uid.text();
        return Value::string(text.get(..len).unwrap_or_default());
    };
    let uids = &mut state.uids;
    let fresh = || Value::string(uids.uid(UidPools::CONNECTIONS, b"C", 96));
    names.conns.entry(uid).or_insert_with(fresh).clone()
}

/// The name of a file: Zeek's under seeds.
fn file_name(vm: &mut Vm<'_>, state: &FileState) -> Value {
    let traffic = &mut vm.m.state.traffic;
    let start =
        state.conns.first().and_then(|(id, _)| traffic.conns.get(&(*id, 0))).and_then(|known| {
            let start = known.start?;
            Some(known.record.get(start).double())
        });
    let named = traffic.names.as_mut().and_then(|names| names.file(state, start));
    named.unwrap_or_else(|| {
        let (text, len) = state.fuid.text();
        Value::string(text.get(..len).unwrap_or_default())
    })
}
