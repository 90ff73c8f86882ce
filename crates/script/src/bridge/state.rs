//! Records of connections and files. Each has one record for its lifetime, so that fields set by scripts
//! persist.

use std::rc::Rc;

use gannet_base::{Proto, Uid};
use gannet_event::{ConnState, EndpointState, FileState, Raised, Type, Value as Head};
use hashbrown::HashMap;

use super::conn_plan::ConnPlan;
use super::known::{Key, Known, KnownAnalyzer};
use super::plan::{IdPlan, field_offsets, seconds};
use super::traffic::Traffic;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::order::UidPools;
use crate::value::{Record, Value};
use crate::vm::Vm;

/// Records of live connections and files.
#[derive(Default)]
pub(super) struct States {
    /// Records of connections whose endpoints a later connection reuses; all others are in [`Traffic::conns`].
    displaced: HashMap<Uid, Rc<Record>>,
    files: HashMap<Uid, Rc<Record>>,
    file_plan: Option<FilePlan>,
    /// Connections and files whose records are dropped at the end of this drain.
    removed: Vec<Removed>,
    /// Set when the capture has ended: as in Zeek, connections that end later are stored until the end of the run.
    pub(super) is_over: bool,
    /// Version of events and, by connection index, the records that are current for this version.
    current: (u64, Vec<Option<Rc<Record>>>),
}

enum Removed {
    /// With its endpoints, those before originator and responder were exchanged, and whether a timer of its own ends it.
    Connection(Uid, Key, Option<Key>, bool),
    File(Uid),
}

/// Offsets of the fields of `fa_file`.
struct FilePlan {
    ty: TypeId,
    /// `id`, `parent_id`, `source`, `is_orig`, `last_active`, `seen_bytes`, `total_bytes`, `missing_bytes`,
    /// `overflow_bytes`, `timeout_interval`, `bof_buffer`.
    offsets: [Option<usize>; 11],
    conns: Option<(usize, TypeId, IdPlan)>,
}

impl States {
    /// Handles `gannet::analyzer_planned`: stores the id of an analyzer that is started by port or schedule.
    pub(super) fn analyzer_planned(
        &mut self,
        vm: &mut Vm<'_>,
        event: &Raised<'_>,
    ) -> Result<(), Stop> {
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        let Some(state) = first_connection(event) else { return Ok(()) };
        // An analyzer alone does not show the connection to scripts, so it gets no name.
        let key = self.store(vm, ty, state)?;
        let mut reader = event.args();
        let mut args = event.decl.params.iter().map(|param| reader.param(param));
        if let (_, Some(Some(Head::Enum(name))), Some(Some(Head::Count(number)))) =
            (args.next(), args.next(), args.next())
        {
            let tag = vm.enum_named(name);
            let prefix = prefix(vm, &tag);
            if let Some(known) = vm.m.state.traffic.conns.get_mut(&key)
                && !known.analyzers.iter().any(|known| known.number == number)
            {
                // Most connections have a single analyzer.
                known.analyzers.reserve_exact(1);
                known.analyzers.push(KnownAnalyzer { tag, number, prefix, is_disabled: false });
            }
        }
        Ok(())
    }

    /// Handles `gannet::analyzers_numbered`: stores the ids of analyzers that belong to no protocol.
    pub(super) fn analyzers_numbered(
        &mut self,
        vm: &mut Vm<'_>,
        event: &Raised<'_>,
    ) -> Result<(), Stop> {
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        let Some(state) = first_connection(event) else { return Ok(()) };
        let key = self.store(vm, ty, state)?;
        let mut reader = event.args();
        let mut args = event.decl.params.iter().map(|param| reader.param(param));
        if let (_, Some(Some(Head::Count(transport))), Some(Some(Head::Count(sizes)))) =
            (args.next(), args.next(), args.next())
            && let Some(known) = vm.m.state.traffic.conns.get_mut(&key)
        {
            known.transport_analyzers = Some([transport, sizes]);
        }
        Ok(())
    }

    /// Handles an event that no script handles: stores its connection if needed.
    pub(super) fn note(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        self.mark_ended(&vm.m.state.traffic, event);
        let known = vm.m.state.traffic.conn_plan.as_ref().map(|plan| plan.ty());
        let Some(ty) = known.or_else(|| vm.type_named("connection")) else { return Ok(()) };
        match (event.decl.name, first_connection(event)) {
            ("new_connection", Some(state)) => {
                self.store(vm, ty, state)?;
            }
            // Scripts may look up the connection later: its record is refreshed then.
            ("gannet::watched_connection", Some(state)) => {
                let key = plan_of(vm, ty).key(state);
                let conns = &mut vm.m.state.traffic.conns;
                match conns.get_mut(&key).filter(|known| known.uid == state.uid) {
                    Some(known) if known.record.is_some() => match &mut known.latest {
                        Some(latest) => ConnState::clone_from(latest, state),
                        None => known.latest = Some(Box::new(state.clone())),
                    },
                    _ => {
                        self.store(vm, ty, state)?;
                    }
                }
            }
            // Weirds name their connection, even if no script handles them.
            ("conn_weird", Some(state)) => {
                self.connection(vm, ty, state)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Marks a connection or file as ended: its record is dropped after the drain.
    pub(super) fn mark_ended(&mut self, traffic: &Traffic, event: &Raised<'_>) {
        match event.decl.name {
            "connection_state_remove" => {
                if let Some(state) = first_connection(event) {
                    let key = key(traffic, state);
                    let flipped_key = flipped_key(&key, state);
                    self.removed.push(Removed::Connection(
                        state.uid,
                        key,
                        flipped_key,
                        has_timer(state),
                    ));
                }
            }
            "file_state_remove" => {
                if let Some(state) = first_file(event) {
                    self.removed.push(Removed::File(state.fuid));
                }
            }
            _ => (),
        }
    }

    /// Drops the records of ended connections and files.
    pub(super) fn forget(&mut self, traffic: &mut Traffic) {
        self.invalidate_current();
        for removed in self.removed.drain(..) {
            match removed {
                Removed::Connection(uid, id, flipped_key, has_timer) => {
                    self.displaced.remove(&uid);
                    traffic.recordings.forget(uid);
                    // A later connection may have the same addresses and ports.
                    for id in [Some(id), flipped_key].into_iter().flatten() {
                        if self.is_over && !has_timer {
                            let known = traffic.conns.get_mut(&id);
                            if let Some(known) = known.filter(|known| known.uid == uid) {
                                known.is_over = true;
                            }
                        } else if traffic.conns.get(&id).is_some_and(|known| known.uid == uid) {
                            traffic.conns.remove(&id);
                        }
                    }
                }
                Removed::File(uid) => {
                    traffic.file_contents.forget(uid);
                    traffic.file_analyzers.forget(uid);
                    let name = self.files.remove(&uid).and_then(|record| {
                        let offset = self.file_plan.as_ref()?.offsets[0]?;
                        Some(record.get(offset))
                    });
                    let name = name.as_ref().map_or(&[][..], Value::str_bytes);
                    match traffic.files.get(name) {
                        Some((fuid, _)) if *fuid == uid => {
                            traffic.files.remove(name);
                        }
                        // A script changed the name in the record.
                        _ => traffic.files.retain(|_, (fuid, _)| *fuid != uid),
                    }
                }
            }
        }
    }

    /// Whether a connection is stored.
    pub(super) fn is_stored(&mut self, vm: &mut Vm<'_>, ty: TypeId, state: &ConnState) -> bool {
        if self.displaced.is_empty() && vm.m.state.traffic.conns.is_empty() {
            return false;
        }
        let key = plan_of(vm, ty).key(state);
        self.displaced.contains_key(&state.uid)
            || self.entry(&mut vm.m.state.traffic, &key, state).is_some()
    }

    /// Whether a connection needs its stored record instead of a temporary one: scripts may hold it, or the connection is in tunnels.
    pub(super) fn needs_stored_record(
        &self,
        vm: &Vm<'_>,
        plan: &ConnPlan,
        state: &ConnState,
    ) -> bool {
        if !state.tunnels.is_empty() {
            return true;
        }
        let conns = &vm.m.state.traffic.conns;
        if conns.is_empty() && self.displaced.is_empty() {
            return false;
        }
        let key = plan.key(state);
        let has = |key: &Key| {
            conns.get(key).is_some_and(|known| known.uid == state.uid && known.record.is_some())
        };
        has(&key)
            || flipped_key(&key, state).is_some_and(|flipped_key| has(&flipped_key))
            || self.displaced.contains_key(&state.uid)
    }

    /// The record of a connection, refreshed to `state` and named, for scripts.
    pub(super) fn connection(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<Value, Stop> {
        let plan = plan_of(vm, ty);
        let record = self.refreshed_record(vm, &plan, state)?;
        ensure_named(vm, &record, state.uid, plan.name());
        Ok(Value::Record(record))
    }

    /// Like [`connection`](Self::connection), for the connection with this index in events of a version: all of them show the same state.
    pub(super) fn connection_at(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        (version, index): (u64, usize),
        state: &ConnState,
    ) -> Result<Value, Stop> {
        let (current_version, records) = &mut self.current;
        if *current_version != version {
            *current_version = version;
            records.clear();
        }
        if let Some(Some(record)) = records.get(index) {
            return Ok(Value::Record(Rc::clone(record)));
        }
        let value = self.connection(vm, ty, state)?;
        if let Value::Record(record) = &value {
            let records = &mut self.current.1;
            if records.len() <= index {
                records.resize(index + 1, None);
            }
            records[index] = Some(Rc::clone(record));
        }
        Ok(value)
    }

    /// Called after handlers ran, which may have changed records: the next event refreshes its connection.
    pub(super) fn invalidate_current(&mut self) {
        self.current.1.clear();
    }

    /// Stores a connection and its state before any script sees it. Most connections end before a script sees them, and
    /// records are large: the record is created on its first use. Under seeds names are drawn in the order of records, so it is created here.
    pub(super) fn store(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<Key, Stop> {
        let plan = plan_of(vm, ty);
        let key = plan.key(state);
        let is_named = vm.m.state.traffic.names.is_some();
        let is_displaced = self.displaced.contains_key(&state.uid);
        match self.entry(&mut vm.m.state.traffic, &key, state) {
            _ if is_named || is_displaced => {
                self.refreshed_record(vm, &plan, state)?;
            }
            Some(known) if known.record.is_some() => {
                self.refreshed_record(vm, &plan, state)?;
            }
            Some(known) => match &mut known.latest {
                Some(last) => ConnState::clone_from(last, state),
                None => known.latest = Some(Box::new(state.clone())),
            },
            None => {
                let known = Known::new(state, None, Some(Box::new(state.clone())));
                self.insert_known(&mut vm.m.state.traffic, key, Box::new(known));
            }
        }
        Ok(key)
    }

    /// The entry of a connection, which may be stored under its endpoints as they were before originator and responder
    /// were exchanged.
    fn entry<'k>(
        &mut self,
        traffic: &'k mut Traffic,
        key: &Key,
        state: &ConnState,
    ) -> Option<&'k mut Known> {
        if traffic.conns.get(key).is_none_or(|known| known.uid != state.uid) {
            let flipped_key = flipped_key(key, state)?;
            traffic.conns.get(&flipped_key).filter(|known| known.uid == state.uid)?;
            let known = traffic.conns.remove(&flipped_key)?;
            self.insert_known(traffic, *key, known);
        }
        traffic.conns.get_mut(key).map(|known| &mut **known)
    }

    /// Stores the entry of a connection. Another connection with these endpoints keeps its record in `displaced`.
    fn insert_known(&mut self, traffic: &mut Traffic, key: Key, known: Box<Known>) {
        let uid = known.uid;
        if let Some(earlier) = traffic.conns.insert(key, known)
            && earlier.uid != uid
            && let Some(record) = earlier.record
        {
            self.displaced.insert(earlier.uid, record);
        }
    }

    /// The refreshed record of a connection. It has no name until scripts see it.
    fn refreshed_record(
        &mut self,
        vm: &mut Vm<'_>,
        plan: &ConnPlan,
        state: &ConnState,
    ) -> Result<Rc<Record>, Stop> {
        let key = plan.key(state);
        // The common case.
        let known = vm.m.state.traffic.conns.get_mut(&key);
        let record = match known.filter(|known| known.uid == state.uid && known.record.is_some()) {
            Some(known) => {
                known.latest = None;
                known.record.clone()
            }
            None => None,
        };
        let record = match record {
            Some(record) => record,
            None => self.move_or_create(vm, plan, key, state)?,
        };
        plan.refresh(vm, &record, state)?;
        Ok(record)
    }

    /// The record of a connection that has none under its current endpoints: moves or creates it.
    fn move_or_create(
        &mut self,
        vm: &mut Vm<'_>,
        plan: &ConnPlan,
        key: Key,
        state: &ConnState,
    ) -> Result<Rc<Record>, Stop> {
        let known = self.entry(&mut vm.m.state.traffic, &key, state);
        let is_known = known.is_some();
        if let Some(record) = known.and_then(|known| known.record.clone()) {
            return Ok(record);
        }
        let record = match self.displaced.remove(&state.uid) {
            Some(record) => record,
            None => plan.create(vm, state)?,
        };
        let traffic = &mut vm.m.state.traffic;
        match traffic.conns.get_mut(&key).filter(|_| is_known) {
            Some(known) => {
                known.record = Some(Rc::clone(&record));
                known.latest = None;
            }
            None => {
                let known = Known::new(state, Some(Rc::clone(&record)), None);
                self.insert_known(traffic, key, Box::new(known));
            }
        }
        Ok(record)
    }

    /// Stores the connections of a file that the event carries: `fa_file` lists them.
    fn show_connections(
        &mut self,
        vm: &mut Vm<'_>,
        state: &FileState,
        event: &Raised<'_>,
    ) -> Result<(), Stop> {
        let known = vm.m.state.traffic.conn_plan.as_ref().map(|plan| plan.ty());
        let Some(ty) = known.or_else(|| vm.type_named("connection")) else { return Ok(()) };
        for (id, proto) in &state.conns {
            let is_it = |conn: &&ConnState| conn.id == *id && conn.proto == *proto;
            let mut shown = (0..).map_while(|index| event.connection(index));
            if let Some(conn) = shown.find(is_it) {
                let key = plan_of(vm, ty).key(conn);
                if self.entry(&mut vm.m.state.traffic, &key, conn).is_none() {
                    self.connection(vm, ty, conn)?;
                }
            }
        }
        Ok(())
    }

    /// The record of a file, refreshed to `state`.
    pub(super) fn file(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &FileState,
        event: &Raised<'_>,
    ) -> Result<Value, Stop> {
        self.show_connections(vm, state, event)?;
        if self.file_plan.as_ref().is_none_or(|plan| plan.ty != ty) {
            self.file_plan = Some(FilePlan::new(vm, ty));
        }
        let Some(plan) = &self.file_plan else { return Ok(Value::Unset) };
        let record = match self.files.get(&state.fuid) {
            Some(record) => Rc::clone(record),
            None => {
                let record = default_record(vm, ty)?;
                self.files.insert(state.fuid, Rc::clone(&record));
                let name = file_name(vm, state);
                vm.m.state
                    .traffic
                    .files
                    .insert(name.str_bytes().to_vec(), (state.fuid, Rc::clone(&record)));
                if let Some(offset) = plan.offsets[0] {
                    record.set(offset, name);
                }
                record
            }
        };
        plan.refresh(vm, &record, state)?;
        Ok(Value::Record(record))
    }
}

/// Whether a connection that ends with the capture is ended by a timer of its own, which Zeek fires at the end: DNS,
/// connection attempts and reset connections.
fn has_timer(state: &ConnState) -> bool {
    const DNS: [u16; 4] = [53, 137, 5353, 5355];
    /// Zeek's numbers of endpoint states.
    const INACTIVE: u8 = 0;
    const SYN_SENT: u8 = 1;
    const RESET: u8 = 6;
    let states = [0, 1].map(|side: usize| state.ends[side].state);
    match state.proto {
        Proto::Udp => DNS.contains(&state.id.resp_p) || DNS.contains(&state.id.orig_p),
        Proto::Tcp => states == [SYN_SENT, INACTIVE] || states.contains(&RESET),
        _ => false,
    }
}

/// The endpoints before originator and responder were exchanged, if the history says that they were.
fn flipped_key((id, vlans): &Key, state: &ConnState) -> Option<Key> {
    state.history.contains(&b'^').then(|| (id.flipped(), *vlans))
}

/// The plan for `connection` records, cached.
fn plan_of(vm: &mut Vm<'_>, ty: TypeId) -> Rc<ConnPlan> {
    match &vm.m.state.traffic.conn_plan {
        Some(plan) if plan.ty() == ty => Rc::clone(plan),
        _ => {
            let plan = Rc::new(ConnPlan::new(vm, ty));
            vm.m.state.traffic.conn_plan = Some(Rc::clone(&plan));
            plan
        }
    }
}

/// The prefix of the names of events that the analyzer of this tag raises: its lower-case name.
pub(super) fn prefix(vm: &mut Vm<'_>, tag: &Value) -> Rc<str> {
    let key = (tag.ty(), tag.int());
    if let Some(known) = vm.m.state.traffic.prefixes.get(&key) {
        return Rc::clone(known);
    }
    let name = super::natives::tag_name(vm, tag).to_ascii_lowercase();
    let name = name.rsplit("analyzer_").next().unwrap_or_default();
    let prefix: Rc<str> = name.split('_').next().unwrap_or_default().into();
    vm.m.state.traffic.prefixes.insert(key, Rc::clone(&prefix));
    prefix
}

/// The endpoints of a connection and the VLAN tags that distinguish it.
pub(super) fn key(traffic: &Traffic, state: &ConnState) -> Key {
    traffic.conn_plan.as_ref().map_or((state.id, 0), |plan| plan.key(state))
}

/// The record of a stored connection, created if needed.
pub(super) fn record_of(vm: &mut Vm<'_>, key: &Key) -> Option<Rc<Record>> {
    let known = vm.m.state.traffic.conns.get_mut(key)?;
    let (uid, record, latest) = (known.uid, known.record.clone(), known.latest.take());
    let Some(latest) = latest else { return record };
    let plan = vm.m.state.traffic.conn_plan.clone()?;
    let is_new = record.is_none();
    let record = match record {
        Some(record) => record,
        None => plan.create(vm, &latest).ok()?,
    };
    plan.refresh(vm, &record, &latest).ok()?;
    let known = vm.m.state.traffic.conns.get_mut(key);
    if let Some(known) = known.filter(|known| is_new && known.uid == uid) {
        known.record = Some(Rc::clone(&record));
    }
    Some(record)
}

/// A stored connection for signatures: its record, and the parts of its state that rules test.
pub(super) fn state_for_rules(vm: &mut Vm<'_>, key: &Key) -> Option<(Rc<Record>, ConnState)> {
    let record = record_of(vm, key)?;
    let known = vm.m.state.traffic.conns.get(key)?;
    let (uid, proto, ip_proto) = (known.uid, known.proto, known.ip_proto);
    let plan = vm.m.state.traffic.conn_plan.clone()?;
    let ends = [0, 1].map(|side| {
        let state = plan.side_state(&record, side).unwrap_or(0);
        EndpointState { state, ..Default::default() }
    });
    let (id, tags) = *key;
    let tag = |bits: u32| (bits & 0x8000 != 0).then_some(bits as u16 & 0x7fff);
    let state = ConnState {
        uid,
        id,
        proto,
        ip_proto,
        start: gannet_base::Time::from_nanos(0),
        duration: gannet_base::Interval::from_nanos(0),
        history: Vec::new(),
        services: Vec::new(),
        ends,
        vlan: tag(tags >> 16),
        inner_vlan: tag(tags),
        tunnels: Vec::new(),
    };
    Some((record, state))
}

pub(super) fn first_connection<'a>(event: &Raised<'a>) -> Option<&'a ConnState> {
    match first_arg(event, &Type::Connection)? {
        Head::Connection(index) => event.connection(index),
        _ => None,
    }
}

pub(super) fn first_file<'a>(event: &Raised<'a>) -> Option<&'a FileState> {
    match first_arg(event, &Type::File)? {
        Head::File(index) => event.file(index),
        _ => None,
    }
}

/// The first argument of a type.
fn first_arg<'a>(event: &Raised<'a>, ty: &Type) -> Option<Head<'a>> {
    let mut reader = event.args();
    for param in event.decl.params {
        if param.ty == *ty {
            return reader.param(param);
        }
        reader.skip_param(param)?;
    }
    None
}

/// A record with the default values of its fields.
pub(super) fn default_record(vm: &mut Vm<'_>, ty: TypeId) -> Result<Rc<Record>, Stop> {
    match vm.new_record(ty, &[], Vec::new())? {
        Value::Record(record) => Ok(record),
        _ => Err(Stop::Error),
    }
}

pub(super) fn set<const N: usize>(
    record: &Record,
    offsets: &[Option<usize>; N],
    values: [Value; N],
) {
    for (offset, value) in offsets.iter().zip(values) {
        if let Some(offset) = offset
            && value.is_set()
        {
            record.set(*offset, value);
        }
    }
}

pub(super) fn field_type(vm: &Vm<'_>, ty: TypeId, offset: usize) -> Option<TypeId> {
    Some(vm.p.types.record(ty)?.fields.get(offset)?.ty)
}

impl FilePlan {
    fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let offsets = field_offsets(
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
        let [conns] = field_offsets(vm, ty, ["conns"]);
        let conns = conns.and_then(|offset| {
            let table = field_type(vm, ty, offset)?;
            let key = *vm.p.types.table(table)?.index.first()?;
            Some((offset, table, IdPlan::new(vm, key)))
        });
        Self { ty, offsets, conns }
    }

    fn refresh(&self, vm: &mut Vm<'_>, record: &Record, state: &FileState) -> Result<(), Stop> {
        let names = vm.m.state.traffic.names.as_ref();
        let uid = |uid: Uid| {
            names.and_then(|names| names.known_file(uid)).unwrap_or_else(|| {
                let (text, len) = uid.text();
                Value::string(text.get(..len).unwrap_or_default())
            })
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
        set(record, &self.offsets, values);
        let Some((offset, ty, key)) = &self.conns else { return Ok(()) };
        if state.conns.is_empty() {
            return Ok(());
        }
        let known = record.get(*offset);
        let value = if known.is_set() { known } else { vm.new_table(*ty, None) };
        record.set(*offset, value.clone());
        let Some(table) = value.table() else { return Ok(()) };
        if table.len() >= state.conns.len() {
            return Ok(());
        }
        for (id, proto) in &state.conns {
            if let Some(conn) = record_of(vm, &(*id, 0)) {
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

/// Names a connection that a script sees for the first time; under seeds, names are drawn in this order.
pub(super) fn ensure_named(vm: &mut Vm<'_>, record: &Record, uid: Uid, offset: Option<usize>) {
    if let Some(offset) = offset
        && !record.get(offset).is_set()
    {
        let name = conn_name(vm, uid);
        record.set(offset, name);
    }
}

/// The name of a connection: Zeek's under seeds, in the order in which scripts first see connections.
pub(super) fn conn_name(vm: &mut Vm<'_>, uid: Uid) -> Value {
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
    let offset = vm.m.state.traffic.conn_plan.as_ref().and_then(|plan| plan.start());
    let first = state.conns.first().map(|(id, _)| (*id, 0));
    let start = match (first, offset) {
        (Some(key), Some(offset)) => record_of(vm, &key).map(|record| record.get(offset).double()),
        _ => None,
    };
    let traffic = &mut vm.m.state.traffic;
    let named = traffic.names.as_mut().and_then(|names| names.file(state, start));
    named.unwrap_or_else(|| {
        let (text, len) = state.fuid.text();
        Value::string(text.get(..len).unwrap_or_default())
    })
}
