//! Creates and refreshes `connection` records.

use std::cell::RefCell;
use std::rc::Rc;

use gannet_base::{ConnId, LinkState};
use gannet_event::{ConnState, EndpointState};
use hashbrown::HashMap;

use super::plan::{IdPlan, field_offsets, is_used, last_of, narrow, seconds, used_at};
use super::state::{conn_name, default_record, ensure_named, field_type, set};
use super::used::UsedParts;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::types::AttrKind;
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

/// Offsets of the fields of `connection`.
pub(super) struct ConnPlan {
    ty: TypeId,
    id: Option<(usize, IdPlan)>,
    ends: [Option<(usize, EndPlan)>; 2],
    /// `start_time`, `duration`, `service`, `history`, `uid`, `vlan`, `inner_vlan`.
    offsets: [Option<usize>; 7],
    service: Option<TypeId>,
    /// Whether scripts maintain `service` themselves.
    scripted_services: bool,
    /// Texts of link-layer addresses; a network has few.
    l2: RefCell<HashMap<[u8; 6], Value>>,
    /// `tunnel`, with the offsets of `cid`, `tunnel_type` and `uid` in its elements.
    tunnel: Option<TunnelPlan>,
    /// The largest offset of a field that every connection sets.
    last: u32,
    /// The latest [temporary](Self::temporary) record, for reuse if all its fields are set for every connection.
    spare: RefCell<Option<Rc<Record>>>,
}

/// Creates the `tunnel` field of a connection.
struct TunnelPlan {
    offset: usize,
    list: TypeId,
    element: TypeId,
    id: IdPlan,
    fields: [Option<usize>; 3],
}

/// Offsets of the fields of `endpoint`.
struct EndPlan {
    ty: TypeId,
    /// `size`, `state`, `num_pkts`, `num_bytes_ip`, `flow_label`, `l2_addr`.
    offsets: [Option<usize>; 6],
    /// The largest of these offsets.
    last: u32,
    /// The latest link-layer address and its text: most connections share the address on this side.
    l2: RefCell<([u8; 6], Value)>,
}

impl ConnPlan {
    pub(super) fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let [id, orig, resp] = field_offsets(vm, ty, ["id", "orig", "resp"]);
        let with_type =
            |offset: Option<usize>| offset.and_then(|at| Some((at, field_type(vm, ty, at)?)));
        let end = |offset| with_type(offset).map(|(at, ty)| (at, EndPlan::new(vm, ty)));
        let offsets = field_offsets(
            vm,
            ty,
            ["start_time", "duration", "service", "history", "uid", "vlan", "inner_vlan"],
        );
        let service = with_type(offsets[2]).map(|(_, ty)| ty);
        let scripted_services = vm
            .function_named("analyzer_confirmation_info")
            .is_some_and(|func| !vm.p.functions[func].bodies.is_empty());
        let [tunnel] = field_offsets(vm, ty, ["tunnel"]);
        let tunnel = with_type(tunnel).and_then(|(at, list)| {
            let crate::types::Type::Vector(element) = vm.p.types.get(list) else { return None };
            let fields = field_offsets(vm, *element, ["cid", "tunnel_type", "uid"]);
            let id = field_type(vm, *element, fields[0]?)?;
            Some(TunnelPlan {
                offset: at,
                list,
                element: *element,
                id: IdPlan::new(vm, id),
                fields,
            })
        });
        let of_all = [id, orig, resp].into_iter().chain(offsets[..5].iter().copied());
        Self {
            ty,
            id: with_type(id).map(|(at, ty)| (at, IdPlan::new(vm, ty))),
            ends: [end(orig), end(resp)],
            last: last_of(of_all),
            offsets,
            service,
            scripted_services,
            l2: RefCell::default(),
            tunnel,
            spare: RefCell::default(),
        }
    }

    /// Removes fields that are not used.
    pub(super) fn narrowed(mut self, used: &UsedParts) -> Self {
        narrow(&mut self.offsets, used);
        let id = self.id.filter(|(offset, _)| is_used(*offset, used));
        self.id = id.map(|(offset, plan)| (offset, plan.narrowed(used_at(offset, used))));
        self.ends = self.ends.map(|end| {
            let (offset, plan) = end.filter(|(offset, _)| is_used(*offset, used))?;
            Some((offset, plan.narrowed(used_at(offset, used))))
        });
        self.tunnel = self.tunnel.filter(|tunnel| is_used(tunnel.offset, used));
        self.service = self.service.filter(|_| self.offsets[2].is_some());
        let of_all = [self.id.as_ref().map(|(offset, _)| *offset)].into_iter();
        let of_all =
            of_all.chain(self.ends.iter().map(|end| end.as_ref().map(|(offset, _)| *offset)));
        self.last = last_of(of_all.chain(self.offsets));
        self
    }

    /// The type of the records.
    pub(super) fn ty(&self) -> TypeId {
        self.ty
    }

    /// Offsets of fields that only scripts set, and of the tunnels, which most connections do not have.
    pub(super) fn unset(&self, vm: &Vm<'_>) -> hashbrown::HashSet<u32> {
        let Some(record) = vm.p.types.record(self.ty) else { return hashbrown::HashSet::new() };
        let filled = |offset: usize| self.offsets.contains(&Some(offset));
        let has = |field: &crate::types::Field, kind| field.attrs.iter().any(|a| a.kind == kind);
        let all = record.fields.iter().enumerate();
        let unset = all.filter(|(offset, field)| {
            has(field, AttrKind::Optional) && !has(field, AttrKind::Default) && !filled(*offset)
        });
        unset.filter_map(|(offset, _)| u32::try_from(offset).ok()).collect()
    }

    /// The record of a connection for one event, which scripts only read; reuses the record of an earlier event if nothing refers to it.
    pub(super) fn temporary(&self, vm: &mut Vm<'_>, state: &ConnState) -> Result<Value, Stop> {
        let record = match self.take_spare() {
            Some(record) => {
                self.change_connection(vm, &record, state)?;
                record
            }
            None => self.create(vm, state)?,
        };
        self.refresh(vm, &record, state)?;
        ensure_named(vm, &record, state.uid, self.name());
        if self.is_always_set() {
            self.spare.replace(Some(Rc::clone(&record)));
        }
        Ok(Value::Record(record))
    }

    /// The record of an earlier event, if nothing else refers to it.
    fn take_spare(&self) -> Option<Rc<Record>> {
        self.spare.take().filter(|record| Rc::strong_count(record) == 1)
    }

    /// Whether all fields of the records are set for each connection, so that none keeps the value of another connection.
    fn is_always_set(&self) -> bool {
        let [.., vlan, inner_vlan] = self.offsets;
        let has_address = |end: &Option<(usize, EndPlan)>| {
            end.as_ref().is_some_and(|(_, plan)| plan.offsets[5].is_some())
        };
        let is_tagged = self.id.as_ref().is_some_and(|(_, plan)| plan.is_tagged());
        vlan.or(inner_vlan).is_none() && !is_tagged && !self.ends.iter().any(has_address)
    }

    /// Sets the fields of a reused record, except those that [`refresh`](Self::refresh) sets.
    fn change_connection(
        &self,
        vm: &mut Vm<'_>,
        record: &Record,
        state: &ConnState,
    ) -> Result<(), Stop> {
        if let Some((offset, plan)) = &self.id {
            // Scripts may hold a reference to the `conn_id`.
            let is_changed = record.show(*offset, |id| match id {
                Value::Record(id) if Rc::strong_count(id) == 1 => {
                    plan.fill(id, &state.id, state.proto, state.ip_proto);
                    true
                }
                _ => false,
            });
            if !is_changed {
                let id = plan.value(vm, &state.id, state.proto, state.ip_proto)?;
                record.set(*offset, id);
            }
        }
        if let Some(offset) = self.name() {
            record.set(offset, Value::Unset);
        }
        Ok(())
    }

    /// The offset of the start time.
    pub(super) fn start(&self) -> Option<usize> {
        self.offsets[0]
    }

    /// The offset of the name (`uid`).
    pub(super) fn name(&self) -> Option<usize> {
        self.offsets[4]
    }

    /// The key under which a connection is stored.
    pub(super) fn key(&self, state: &ConnState) -> (ConnId, u32) {
        (state.id, self.vlans(state))
    }

    /// The VLAN tags that distinguish a connection, 0 if they do not.
    fn vlans(&self, state: &ConnState) -> u32 {
        match &self.id {
            Some((_, plan)) if plan.is_tagged() => {
                let (vlan, inner_vlan) = (state.vlan, state.inner_vlan);
                LinkState { vlan, inner_vlan, ..LinkState::default() }.tags()
            }
            _ => 0,
        }
    }

    /// A new record, before its first [`refresh`](Self::refresh).
    pub(super) fn create(&self, vm: &mut Vm<'_>, state: &ConnState) -> Result<Rc<Record>, Stop> {
        let id = match &self.id {
            Some((offset, plan)) => {
                let id = plan.value(vm, &state.id, state.proto, state.ip_proto)?;
                plan.set_tags(&id, [state.vlan, state.inner_vlan]);
                Some((*offset, id))
            }
            None => None,
        };
        let mut ends = [const { None }; 2];
        for (end, plan) in ends.iter_mut().zip(&self.ends) {
            if let Some((offset, plan)) = plan {
                *end = Some((*offset, plan.create(vm)?));
            }
        }
        // Reserves the fields that are set for each connection.
        let record = vm.new_record_with(self.ty, self.last, |_, fields| {
            for (offset, value) in id.into_iter().chain(ends.into_iter().flatten()) {
                if let Some(field) = fields.get_mut(offset) {
                    *field = value;
                }
            }
            Ok(())
        })?;
        let Value::Record(record) = record else { return Err(Stop::Error) };
        self.set_tunnels(vm, &record, state)?;
        Ok(record)
    }

    /// Sets the tunnels of a connection: once, as in Zeek, so that scripts may set others afterwards. Their names are drawn
    /// before that of the connection.
    fn set_tunnels(&self, vm: &mut Vm<'_>, record: &Record, state: &ConnState) -> Result<(), Stop> {
        let names: Vec<_> =
            state.tunnels.iter().map(|tunnel| tunnel.uid.map(|uid| conn_name(vm, uid))).collect();
        if let Some(TunnelPlan { offset, list, element, id, fields }) = &self.tunnel
            && !state.tunnels.is_empty()
        {
            let mut items = Vec::with_capacity(state.tunnels.len());
            for (tunnel, name) in state.tunnels.iter().zip(names) {
                let cid = id.value(vm, &tunnel.id, tunnel.proto, tunnel.ip_proto)?;
                let uid = name.unwrap_or(Value::Unset);
                let kind = vm.enum_named(tunnel.kind);
                let item = default_record(vm, *element)?;
                set(&item, fields, [cid, kind, uid]);
                items.push(Value::Record(item));
            }
            record.set(*offset, Value::Vector(Vector::new(*list, items)));
        }
        Ok(())
    }

    /// The state of a side as stored in a record.
    pub(super) fn side_state(&self, record: &Record, side: usize) -> Option<u8> {
        let (offset, plan) = self.ends.get(side)?.as_ref()?;
        let state = record.get(*offset).record()?.get(plan.offsets[1]?);
        u8::try_from(state.count()).ok()
    }

    /// Whether `service` of a record equals the services of a connection. It is empty until it is first read.
    fn shows_services(&self, record: &Record, state: &ConnState) -> bool {
        let cells = record.stored();
        match self.offsets[2].and_then(|offset| cells.get(offset)) {
            Some(Value::Table(set)) => {
                set.len() == state.services.len()
                    && state.services.iter().all(|name| set.get(&[Value::string(name)]).is_some())
            }
            _ => state.services.is_empty(),
        }
    }

    /// Updates a record to the state of its connection.
    pub(super) fn refresh(
        &self,
        vm: &mut Vm<'_>,
        record: &Record,
        state: &ConnState,
    ) -> Result<(), Stop> {
        if let Some((offset, plan)) = &self.id
            && let Value::Record(id) = record.get(*offset)
            && !plan.is_of(&id, &state.id)
        {
            // Originator and responder may have been exchanged.
            plan.fill(&id, &state.id, state.proto, state.ip_proto);
            if let [Some((orig, _)), Some((resp, _))] = &self.ends {
                let (one, other) = (record.get(*orig), record.get(*resp));
                record.set(*orig, other);
                record.set(*resp, one);
            }
        }
        let cells = record.stored();
        for (end, plan) in state.ends.iter().zip(&self.ends) {
            if let Some((offset, plan)) = plan
                && let Some(Value::Record(record)) = cells.get(*offset)
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
        let [start, duration, services, history, _, vlan, inner_vlan] = &self.offsets;
        let began = seconds(state.start.as_nanos());
        // Computed as Zeek does, by subtraction of floating-point times.
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
        Ok(())
    }
}

impl EndPlan {
    fn new(vm: &Vm<'_>, ty: TypeId) -> Self {
        let names = ["size", "state", "num_pkts", "num_bytes_ip", "flow_label", "l2_addr"];
        let mut offsets = field_offsets(vm, ty, names);
        if vm.m.state.traffic.without_sizes {
            (offsets[2], offsets[3]) = (None, None);
        }
        Self { ty, offsets, last: last_of(offsets), l2: RefCell::default() }
    }

    /// Removes fields that are not used.
    fn narrowed(mut self, used: &UsedParts) -> Self {
        narrow(&mut self.offsets, used);
        self.last = last_of(self.offsets);
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
        let [size, number, packets, ip_bytes, flow_label, l2] = &self.offsets;
        record.change(|fields| {
            fields.set(*size, Value::Count(state.size));
            fields.set(*number, Value::Count(u64::from(state.state)));
            fields.set(*packets, Value::Count(state.packets));
            fields.set(*ip_bytes, Value::Count(state.ip_bytes));
            fields.set(*flow_label, Value::Count(u64::from(state.flow_label)));
            if let Some(address) = state.l2 {
                let mut latest = self.l2.borrow_mut();
                if latest.0 != address || !latest.1.is_set() {
                    *latest = (address, l2_text(texts, address));
                }
                if !fields.get(*l2).is_some_and(|text| text.same_object(&latest.1)) {
                    fields.set(*l2, latest.1.clone());
                }
            }
        });
    }
}

/// Maximum number of cached texts of link-layer addresses.
const MAX_L2_TEXTS: usize = 4_096;

/// The text of a link-layer address.
fn l2_text(texts: &RefCell<HashMap<[u8; 6], Value>>, address: [u8; 6]) -> Value {
    let mut texts = texts.borrow_mut();
    if let Some(text) = texts.get(&address) {
        return text.clone();
    }
    let [a, b, c, d, e, f] = address;
    let text = Value::string(format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"));
    if texts.len() >= MAX_L2_TEXTS {
        texts.clear();
    }
    texts.insert(address, text.clone());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_link_layer_addresses_are_cached() {
        let texts = RefCell::default();
        let address = [0, 0x1f, 0xe2, 9, 0xab, 0xff];
        let text = l2_text(&texts, address);
        assert_eq!(text.str_bytes(), b"00:1f:e2:09:ab:ff");
        assert!(l2_text(&texts, address).same_object(&text));
        assert!(!l2_text(&RefCell::default(), address).same_object(&text));
    }
}
