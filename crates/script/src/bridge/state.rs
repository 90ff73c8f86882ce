//! Records of connections and files: one for the lifetime of each, so that scripts find their added
//! fields again.

use std::cell::RefCell;
use std::rc::Rc;

use gannet_base::{ConnId, LinkState, Proto, Uid};
use gannet_event::{ConnState, EndpointState, FileState, Raised, Type, Value as Head};
use hashbrown::HashMap;

use super::plan::{IdPlan, last_of, narrow, places, seconds, used_at};
use super::traffic::{Known, Numbered, Traffic};
use super::used::Used;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::order::UidPools;
use crate::types::AttrKind;
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

/// Records of live connections and files.
#[derive(Default)]
pub(super) struct States {
    /// Records of connections whose ends a later connection has: all others are in [`Traffic::conns`].
    displaced: HashMap<Uid, Rc<Record>>,
    files: HashMap<Uid, Rc<Record>>,
    file_plan: Option<FilePlan>,
    /// What ends with this drain.
    gone: Vec<Gone>,
    /// Records that are up to date with events of this version, each at the index of its connection.
    shown: (u64, Vec<Option<Rc<Record>>>),
}

enum Gone {
    /// Also with its ends before they were exchanged.
    Connection(Uid, (ConnId, u32), Option<(ConnId, u32)>),
    File(Uid),
}

/// Places of the fields of `connection`.
pub(super) struct ConnPlan {
    ty: TypeId,
    id: Option<(usize, IdPlan)>,
    ends: [Option<(usize, EndPlan)>; 2],
    /// `start_time`, `duration`, `service`, `history`, `uid`, `vlan`, `inner_vlan`.
    places: [Option<usize>; 7],
    service: Option<TypeId>,
    /// Scripts keep `service` themselves.
    scripted_services: bool,
    /// Texts of link-layer addresses: those of a network are few.
    l2: RefCell<HashMap<[u8; 6], Value>>,
    /// `tunnel`, with the places of `cid`, `tunnel_type` and `uid` in its elements.
    tunnel: Option<TunnelPlan>,
    /// The place of the last field that every connection has.
    last: u32,
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
    /// The place of the last of them.
    last: u32,
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
    /// An analyzer of a port or of an announcement has a number: `gannet::analyzer_planned`.
    pub(super) fn plan(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        let Some(state) = first_connection(event) else { return Ok(()) };
        // An analyzer alone does not name its connection.
        let key = self.mention(vm, ty, state)?;
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
                // Most connections have one.
                known.analyzers.reserve_exact(1);
                known.analyzers.push(Numbered { tag, number, prefix });
            }
        }
        Ok(())
    }

    /// Analyzers that are of no protocol have numbers: `gannet::analyzers_numbered`.
    pub(super) fn number(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        let Some(ty) = vm.type_named("connection") else { return Ok(()) };
        let Some(state) = first_connection(event) else { return Ok(()) };
        let key = self.mention(vm, ty, state)?;
        let mut reader = event.args();
        let mut args = event.decl.params.iter().map(|param| reader.param(param));
        if let (_, Some(Some(Head::Count(transport))), Some(Some(Head::Count(sizes)))) =
            (args.next(), args.next(), args.next())
            && let Some(known) = vm.m.state.traffic.conns.get_mut(&key)
        {
            known.of_no_protocol = Some([transport, sizes]);
        }
        Ok(())
    }

    /// An event that no script handles: its connections are known from now on.
    pub(super) fn note(&mut self, vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
        self.over(&vm.m.state.traffic, event);
        let known = vm.m.state.traffic.conn_plan.as_ref().map(|plan| plan.ty);
        let Some(ty) = known.or_else(|| vm.type_named("connection")) else { return Ok(()) };
        match (event.decl.name, first_connection(event)) {
            ("new_connection", Some(state)) => {
                self.mention(vm, ty, state)?;
            }
            // Scripts look at it again: it is up to date from then on.
            ("gannet::watched_connection", Some(state)) => {
                let key = plan_of(vm, ty).key(state);
                let conns = &mut vm.m.state.traffic.conns;
                match conns.get_mut(&key).filter(|known| known.uid == state.uid) {
                    Some(known) if known.record.is_some() => match &mut known.latest {
                        Some(latest) => ConnState::clone_from(latest, state),
                        None => known.latest = Some(Box::new(state.clone())),
                    },
                    _ => {
                        self.mention(vm, ty, state)?;
                    }
                }
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
    pub(super) fn over(&mut self, traffic: &Traffic, event: &Raised<'_>) {
        match event.decl.name {
            "connection_state_remove" => {
                if let Some(state) = first_connection(event) {
                    let key = key(traffic, state);
                    self.gone.push(Gone::Connection(state.uid, key, before(&key, state)));
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
        self.refresh_again();
        for gone in self.gone.drain(..) {
            match gone {
                Gone::Connection(uid, id, before) => {
                    self.displaced.remove(&uid);
                    traffic.recordings.forget(uid);
                    // The same addresses and ports may have another connection by now.
                    for id in [Some(id), before].into_iter().flatten() {
                        if traffic.conns.get(&id).is_some_and(|known| known.uid == uid) {
                            traffic.conns.remove(&id);
                        }
                    }
                }
                Gone::File(uid) => {
                    traffic.listening.forget(uid);
                    let name = self.files.remove(&uid).and_then(|record| {
                        let place = self.file_plan.as_ref()?.places[0]?;
                        Some(record.get(place))
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
            || self.entry(&mut vm.m.state.traffic.conns, &key, state).is_some()
    }

    /// Whether the record of a connection is more than what an event alone says: scripts may have it, or it has tunnels.
    pub(super) fn is_more(&self, vm: &Vm<'_>, plan: &ConnPlan, state: &ConnState) -> bool {
        if !state.tunnels.is_empty() {
            return true;
        }
        let conns = &vm.m.state.traffic.conns;
        if conns.is_empty() && self.displaced.is_empty() {
            return false;
        }
        let key = plan.key(state);
        let has = |key: &(ConnId, u32)| {
            conns.get(key).is_some_and(|known| known.uid == state.uid && known.record.is_some())
        };
        has(&key)
            || before(&key, state).is_some_and(|before| has(&before))
            || self.displaced.contains_key(&state.uid)
    }

    /// The record of a connection that scripts see from now on, as its state is now.
    pub(super) fn connection(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<Value, Stop> {
        let plan = plan_of(vm, ty);
        let record = self.known(vm, &plan, state)?;
        name_it(vm, &record, state.uid, plan.name());
        Ok(Value::Record(record))
    }

    /// The same of the connection with this index in events of a version, which show the same of it.
    pub(super) fn shown(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        (version, index): (u64, usize),
        state: &ConnState,
    ) -> Result<Value, Stop> {
        let (of, shown) = &mut self.shown;
        if *of != version {
            *of = version;
            shown.clear();
        }
        if let Some(Some(record)) = shown.get(index) {
            return Ok(Value::Record(Rc::clone(record)));
        }
        let value = self.connection(vm, ty, state)?;
        if let Value::Record(record) = &value {
            let shown = &mut self.shown.1;
            if shown.len() <= index {
                shown.resize(index + 1, None);
            }
            shown[index] = Some(Rc::clone(record));
        }
        Ok(value)
    }

    /// Handlers ran, which may have changed records: the next event refreshes its connection.
    pub(super) fn refresh_again(&mut self) {
        self.shown.1.clear();
    }

    /// A connection that no script sees yet is known from now on, as its state is now. Most connections end before a script sees them, and
    /// records are large: it gets its record when a script may look at it. Under seeds names are drawn in the order of records.
    pub(super) fn mention(
        &mut self,
        vm: &mut Vm<'_>,
        ty: TypeId,
        state: &ConnState,
    ) -> Result<(ConnId, u32), Stop> {
        let plan = plan_of(vm, ty);
        let key = plan.key(state);
        let is_named = vm.m.state.traffic.names.is_some();
        let is_displaced = self.displaced.contains_key(&state.uid);
        match self.entry(&mut vm.m.state.traffic.conns, &key, state) {
            _ if is_named || is_displaced => {
                self.known(vm, &plan, state)?;
            }
            Some(known) if known.record.is_some() => {
                self.known(vm, &plan, state)?;
            }
            Some(known) => match &mut known.state {
                Some(last) => ConnState::clone_from(last, state),
                None => known.state = Some(Box::new(state.clone())),
            },
            None => {
                let known = Known::new(state, None, Some(Box::new(state.clone())));
                self.put(&mut vm.m.state.traffic.conns, key, known);
            }
        }
        Ok(key)
    }

    /// What is known of a connection, which may have been kept by its ends as they were before originator and responder
    /// were exchanged.
    fn entry<'k>(
        &mut self,
        conns: &'k mut HashMap<(ConnId, u32), Box<Known>>,
        key: &(ConnId, u32),
        state: &ConnState,
    ) -> Option<&'k mut Known> {
        if conns.get(key).is_none_or(|known| known.uid != state.uid) {
            let before = before(key, state)?;
            conns.get(&before).filter(|known| known.uid == state.uid)?;
            let known = conns.remove(&before)?;
            self.put(conns, *key, *known);
        }
        conns.get_mut(key).map(|known| &mut **known)
    }

    /// Keeps what is known of a connection. Another connection that had these ends keeps its record.
    fn put(
        &mut self,
        conns: &mut HashMap<(ConnId, u32), Box<Known>>,
        key: (ConnId, u32),
        known: Known,
    ) {
        let uid = known.uid;
        if let Some(Known { uid: of, record: Some(record), .. }) =
            conns.insert(key, Box::new(known)).map(|earlier| *earlier)
            && of != uid
        {
            self.displaced.insert(of, record);
        }
    }

    /// The record of a connection, where scripts do not see it yet: it has no name.
    fn known(
        &mut self,
        vm: &mut Vm<'_>,
        plan: &ConnPlan,
        state: &ConnState,
    ) -> Result<Rc<Record>, Stop> {
        let key = plan.key(state);
        let known = self.entry(&mut vm.m.state.traffic.conns, &key, state);
        let record = match known.and_then(|known| {
            known.latest = None;
            known.record.clone()
        }) {
            Some(record) => record,
            None => {
                let record = match self.displaced.remove(&state.uid) {
                    Some(record) => record,
                    None => plan.create(vm, state)?,
                };
                let conns = &mut vm.m.state.traffic.conns;
                match self.entry(conns, &key, state) {
                    Some(known) => {
                        known.record = Some(Rc::clone(&record));
                        known.state = None;
                    }
                    None => {
                        let known = Known::new(state, Some(Rc::clone(&record)), None);
                        self.put(conns, key, known);
                    }
                }
                record
            }
        };
        plan.refresh(vm, &record, state)?;
        Ok(record)
    }

    /// The connections of a file are stored, as the event shows them: the file lists them.
    fn show_connections(
        &mut self,
        vm: &mut Vm<'_>,
        state: &FileState,
        event: &Raised<'_>,
    ) -> Result<(), Stop> {
        let known = vm.m.state.traffic.conn_plan.as_ref().map(|plan| plan.ty);
        let Some(ty) = known.or_else(|| vm.type_named("connection")) else { return Ok(()) };
        for (id, proto) in &state.conns {
            let is_it = |conn: &&ConnState| conn.id == *id && conn.proto == *proto;
            let mut shown = (0..).map_while(|index| event.connection(index));
            if let Some(conn) = shown.find(is_it) {
                let key = plan_of(vm, ty).key(conn);
                if self.entry(&mut vm.m.state.traffic.conns, &key, conn).is_none() {
                    self.connection(vm, ty, conn)?;
                }
            }
        }
        Ok(())
    }

    /// The record of a file, as its state is now.
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

impl Known {
    fn new(state: &ConnState, record: Option<Rc<Record>>, last: Option<Box<ConnState>>) -> Self {
        Self {
            record,
            state: last,
            latest: None,
            uid: state.uid,
            proto: state.proto,
            ip_proto: state.ip_proto,
            timeout: None,
            thresholds: [0; 4],
            duration: 0.0,
            analyzers: Vec::new(),
            seqs: [0; 2],
            login: None,
            is_watched: false,
            of_no_protocol: None,
        }
    }
}

/// The ends as they were before originator and responder were exchanged, where the history says that they were.
fn before((id, vlans): &(ConnId, u32), state: &ConnState) -> Option<(ConnId, u32)> {
    state.history.contains(&b'^').then(|| (id.flipped(), *vlans))
}

/// How records of connections are made.
fn plan_of(vm: &mut Vm<'_>, ty: TypeId) -> Rc<ConnPlan> {
    match &vm.m.state.traffic.conn_plan {
        Some(plan) if plan.ty == ty => Rc::clone(plan),
        _ => {
            let plan = Rc::new(ConnPlan::new(vm, ty));
            vm.m.state.traffic.conn_plan = Some(Rc::clone(&plan));
            plan
        }
    }
}

/// What names of events begin with that come from an analyzer of this tag: its own name in small letters.
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

/// The ends of a connection, and the VLAN tags that distinguish it.
pub(super) fn key(traffic: &Traffic, state: &ConnState) -> (ConnId, u32) {
    traffic.conn_plan.as_ref().map_or((state.id, 0), |plan| plan.key(state))
}

/// The record of a known connection, which may get it only now.
pub(super) fn record_of(vm: &mut Vm<'_>, key: &(ConnId, u32)) -> Option<Rc<Record>> {
    let known = vm.m.state.traffic.conns.get_mut(key)?;
    if let Some(record) = &known.record {
        let record = Rc::clone(record);
        if let Some(latest) = known.latest.take()
            && let Some(plan) = vm.m.state.traffic.conn_plan.clone()
        {
            plan.refresh(vm, &record, &latest).ok()?;
        }
        return Some(record);
    }
    let (uid, state) = (known.uid, known.state.take()?);
    let plan = vm.m.state.traffic.conn_plan.clone()?;
    let record = plan.create(vm, &state).ok()?;
    plan.refresh(vm, &record, &state).ok()?;
    if let Some(known) = vm.m.state.traffic.conns.get_mut(key).filter(|known| known.uid == uid) {
        known.record = Some(Rc::clone(&record));
    }
    Some(record)
}

/// A known connection for signatures: its record, and of its state what rules look at.
pub(super) fn known_to_rules(
    vm: &mut Vm<'_>,
    key: &(ConnId, u32),
) -> Option<(Rc<Record>, ConnState)> {
    let record = record_of(vm, key)?;
    let known = vm.m.state.traffic.conns.get(key)?;
    let (uid, proto, ip_proto) = (known.uid, known.proto, known.ip_proto);
    let plan = vm.m.state.traffic.conn_plan.clone()?;
    let end = |side: usize| {
        let (place, plan) = plan.ends[side].as_ref()?;
        let state = record.get(*place).record()?.get(plan.places[1]?);
        u8::try_from(state.count()).ok()
    };
    let ends =
        [0, 1].map(|side| EndpointState { state: end(side).unwrap_or(0), ..Default::default() });
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
    match first(event, &Type::Connection)? {
        Head::Connection(index) => event.connection(index),
        _ => None,
    }
}

pub(super) fn first_file<'a>(event: &Raised<'a>) -> Option<&'a FileState> {
    match first(event, &Type::File)? {
        Head::File(index) => event.file(index),
        _ => None,
    }
}

/// The first argument of a type, behind the arguments before it.
fn first<'a>(event: &Raised<'a>, ty: &Type) -> Option<Head<'a>> {
    let mut reader = event.args();
    for param in event.decl.params {
        if param.ty == *ty {
            return reader.param(param);
        }
        reader.skip_param(param)?;
    }
    None
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
    pub(super) fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
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
        let scripted_services = vm
            .function_named("analyzer_confirmation_info")
            .is_some_and(|func| !vm.p.functions[func].bodies.is_empty());
        let [tunnel] = self::places(vm, ty, ["tunnel"]);
        let tunnel = with_type(tunnel).and_then(|(at, list)| {
            let crate::types::Type::Vector(element) = vm.p.types.get(list) else { return None };
            let fields = self::places(vm, *element, ["cid", "tunnel_type", "uid"]);
            let id = field_type(vm, *element, fields[0]?)?;
            Some(TunnelPlan { place: at, list, element: *element, id: IdPlan::new(vm, id), fields })
        });
        let of_all = [id, orig, resp].into_iter().chain(places[..5].iter().copied());
        Self {
            ty,
            id: with_type(id).map(|(at, ty)| (at, IdPlan::new(vm, ty))),
            ends: [end(orig), end(resp)],
            last: last_of(of_all),
            places,
            service,
            scripted_services,
            l2: RefCell::default(),
            tunnel,
        }
    }

    /// The same for the fields that are used alone.
    pub(super) fn narrowed(mut self, used: &Used) -> Self {
        let is_used = |place: usize| *used_at(place, used) != Used::Nothing;
        narrow(&mut self.places, used);
        let id = self.id.filter(|(place, _)| is_used(*place));
        self.id = id.map(|(place, plan)| (place, plan.narrowed(used_at(place, used))));
        self.ends = self.ends.map(|end| {
            let (place, plan) = end.filter(|(place, _)| is_used(*place))?;
            Some((place, plan.narrowed(used_at(place, used))))
        });
        self.tunnel = self.tunnel.filter(|tunnel| is_used(tunnel.place));
        self.service = self.service.filter(|_| self.places[2].is_some());
        let of_all = [self.id.as_ref().map(|(place, _)| *place)].into_iter();
        let of_all =
            of_all.chain(self.ends.iter().map(|end| end.as_ref().map(|(place, _)| *place)));
        self.last = last_of(of_all.chain(self.places));
        self
    }

    /// The type of the records.
    pub(super) fn ty(&self) -> TypeId {
        self.ty
    }

    /// The places of fields that only scripts set, and of the tunnels of a connection that is in none.
    pub(super) fn unset(&self, vm: &Vm<'_>) -> hashbrown::HashSet<u32> {
        let Some(record) = vm.p.types.record(self.ty) else { return hashbrown::HashSet::new() };
        let filled = |place: usize| self.places.contains(&Some(place));
        let has = |field: &crate::types::Field, kind| field.attrs.iter().any(|a| a.kind == kind);
        let all = record.fields.iter().enumerate();
        let unset = all.filter(|(place, field)| {
            has(field, AttrKind::Optional) && !has(field, AttrKind::Default) && !filled(*place)
        });
        unset.filter_map(|(place, _)| u32::try_from(place).ok()).collect()
    }

    /// The record of a connection for an event alone.
    pub(super) fn brief(&self, vm: &mut Vm<'_>, state: &ConnState) -> Result<Value, Stop> {
        let record = self.create(vm, state)?;
        self.refresh(vm, &record, state)?;
        name_it(vm, &record, state.uid, self.name());
        Ok(Value::Record(record))
    }

    /// The place of the time of its first packet.
    fn start(&self) -> Option<usize> {
        self.places[0]
    }

    /// The place of its name.
    pub(super) fn name(&self) -> Option<usize> {
        self.places[4]
    }

    fn key(&self, state: &ConnState) -> (ConnId, u32) {
        (state.id, self.vlans(state))
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
        let id = match &self.id {
            Some((place, plan)) => {
                let id = plan.value(vm, &state.id, state.proto, state.ip_proto)?;
                plan.set_tags(&id, [state.vlan, state.inner_vlan]);
                Some((*place, id))
            }
            None => None,
        };
        let mut ends = [const { None }; 2];
        for (end, plan) in ends.iter_mut().zip(&self.ends) {
            if let Some((place, plan)) = plan {
                *end = Some((*place, plan.create(vm)?));
            }
        }
        // With the cells that are filled for each connection.
        let record = vm.new_record_with(self.ty, self.last, |_, fields| {
            for (place, value) in id.into_iter().chain(ends.into_iter().flatten()) {
                if let Some(field) = fields.get_mut(place) {
                    *field = value;
                }
            }
            Ok(())
        })?;
        let Value::Record(record) = record else { return Err(Stop::Error) };
        // Those of tunnels are drawn first.
        for uid in state.tunnels.iter().filter_map(|tunnel| tunnel.uid) {
            conn_name(vm, uid);
        }
        Ok(record)
    }

    /// Whether `service` of a record has the services of a connection. It is empty until it is first read.
    fn shows_services(&self, record: &Record, state: &ConnState) -> bool {
        let cells = record.stored();
        match self.places[2].and_then(|place| cells.get(place)) {
            Some(Value::Table(set)) => {
                set.len() == state.services.len()
                    && state.services.iter().all(|name| set.get(&[Value::string(name)]).is_some())
            }
            _ => state.services.is_empty(),
        }
    }

    fn refresh(&self, vm: &mut Vm<'_>, record: &Record, state: &ConnState) -> Result<(), Stop> {
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
        let cells = record.stored();
        for (end, plan) in state.ends.iter().zip(&self.ends) {
            if let Some((place, plan)) = plan
                && let Some(Value::Record(record)) = cells.get(*place)
            {
                plan.refresh(record, end, &self.l2);
            }
        }
        drop(cells);
        let service = match self.service {
            Some(ty) if !self.scripted_services && !self.shows_services(record, state) => {
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
        let [start, duration, services, history, _, vlan, inner_vlan] = &self.places;
        let began = seconds(state.start.as_nanos());
        // As times of floating point differ.
        let ended = seconds(state.start.as_nanos() + state.duration.as_nanos());
        record.change(|fields| {
            fields.set(*start, Value::Time(began));
            fields.set(*duration, Value::Interval(ended - began));
            fields.set(*services, service);
            if fields.get(*history).and_then(Value::bytes) != Some(&*state.history) {
                fields.set(*history, Value::string(&state.history));
            }
            fields.set(*vlan, tag(state.vlan));
            fields.set(*inner_vlan, tag(state.inner_vlan));
        });
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
        let is_off = matches!(vm.global_named("use_conn_size_analyzer"), Value::Bool(false));
        if is_off || vm.m.state.traffic.without_sizes {
            (places[2], places[3]) = (None, None);
        }
        Self { ty, places, last: last_of(places) }
    }

    /// The same for the fields that are used alone.
    fn narrowed(mut self, used: &Used) -> Self {
        narrow(&mut self.places, used);
        self.last = last_of(self.places);
        self
    }

    fn create(&self, vm: &mut Vm<'_>) -> Result<Value, Stop> {
        vm.new_record_with(self.ty, self.last, |_, _| Ok(()))
    }

    fn refresh(
        &self,
        record: &Record,
        state: &EndpointState,
        texts: &RefCell<HashMap<[u8; 6], Value>>,
    ) {
        let [size, number, packets, ip_bytes, flow_label, l2] = &self.places;
        record.change(|fields| {
            fields.set(*size, Value::Count(state.size));
            fields.set(*number, Value::Count(u64::from(state.state)));
            fields.set(*packets, Value::Count(state.packets));
            fields.set(*ip_bytes, Value::Count(state.ip_bytes));
            fields.set(*flow_label, Value::Count(u64::from(state.flow_label)));
            if let Some(address) = state.l2
                && !fields.get(*l2).is_some_and(|text| is_l2_text(text.str_bytes(), address))
            {
                fields.set(*l2, l2_text(texts, address));
            }
        });
    }
}

/// Whether a text is that of a link-layer address.
fn is_l2_text(text: &[u8], address: [u8; 6]) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut wanted = *b"00:00:00:00:00:00";
    for (place, octet) in wanted.chunks_mut(3).zip(address) {
        if let [high, low, ..] = place {
            *high = DIGITS[usize::from(octet >> 4)];
            *low = DIGITS[usize::from(octet & 0xf)];
        }
    }
    text == wanted
}

/// Most texts of link-layer addresses that are stored.
const L2_TEXTS: usize = 4_096;

/// The text of a link-layer address.
fn l2_text(texts: &RefCell<HashMap<[u8; 6], Value>>, address: [u8; 6]) -> Value {
    let mut texts = texts.borrow_mut();
    if let Some(text) = texts.get(&address) {
        return text.clone();
    }
    let [a, b, c, d, e, f] = address;
    let text = Value::string(format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"));
    if texts.len() >= L2_TEXTS {
        texts.clear();
    }
    texts.insert(address, text.clone());
    text
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
    let place = vm.m.state.traffic.conn_plan.as_ref().and_then(|plan| plan.start());
    let first = state.conns.first().map(|(id, _)| (*id, 0));
    let start = match (first, place) {
        (Some(key), Some(place)) => record_of(vm, &key).map(|record| record.get(place).double()),
        _ => None,
    };
    let traffic = &mut vm.m.state.traffic;
    let named = traffic.names.as_mut().and_then(|names| names.file(state, start));
    named.unwrap_or_else(|| {
        let (text, len) = state.fuid.text();
        Value::string(text.get(..len).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_link_layer_addresses_are_known_again() {
        let address = [0, 0x1f, 0xe2, 9, 0xab, 0xff];
        let text = l2_text(&RefCell::default(), address);
        assert_eq!(text.str_bytes(), b"00:1f:e2:09:ab:ff");
        assert!(is_l2_text(text.str_bytes(), address));
        for other in
            [b"00:1f:e2:09:ab:fe".as_slice(), b"00:1f:e2:09:ab-ff", b"00:1f:e2:09:ab:ff0", b""]
        {
            assert!(!is_l2_text(other, address));
        }
    }
}
