//! Ids of the analyzers of connections (`aid`).

use std::rc::Rc;

use gannet_event::Raised;

use super::known::KnownAnalyzer;
use super::{natives, plan, state};
use crate::value::Value;
use crate::vm::Vm;

/// The id of the analyzer that raised an event: that of the protocol after which the event is named, or else the confirmed
/// one.
pub(super) fn analyzer_id(vm: &Vm<'_>, event: &Raised<'_>) -> u64 {
    let conns = &vm.m.state.traffic.conns;
    let known = state::first_connection(event)
        .and_then(|state| conns.get(&(state.id, 0)).filter(|known| known.uid == state.uid));
    let Some(known) = known else { return 0 };
    if let (true, Some([_, sizes])) =
        (SIZE_EVENTS.contains(&event.decl.name), known.transport_analyzers)
    {
        return sizes;
    }
    let is_named = |prefix: &str| {
        event.decl.name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'))
    };
    let named = known.analyzers.iter().find(|known| is_named(&known.prefix));
    named.map_or(0, |known| known.number)
}

/// Events of the analyzer that counts packets and bytes.
const SIZE_EVENTS: [&str; 4] = [
    "conn_bytes_threshold_crossed",
    "conn_duration_threshold_crossed",
    "conn_generic_packet_threshold_crossed",
    "conn_packets_threshold_crossed",
];

/// Stores the id that an event carries for an analyzer of a connection.
pub(super) fn note(vm: &mut Vm<'_>, args: &[Value]) {
    let (Some(tag), Some(info)) = (args.first(), args.get(1).and_then(Value::record)) else {
        return;
    };
    let [c, aid] = plan::field_offsets(vm, info.ty(), ["c", "aid"]);
    let (Some(c), Some(aid)) = (c.map(|c| info.get(c)), aid.map(|aid| info.get(aid))) else {
        return;
    };
    note_number(vm, tag, &c, &aid);
}

/// Like [`note`], for a WebSocket analyzer that begins.
pub(super) fn note_websocket(vm: &mut Vm<'_>, args: &[Value]) {
    if let [c, aid, ..] = args {
        let tag = vm.enum_named("Analyzer::ANALYZER_WEBSOCKET");
        note_number(vm, &tag, c, aid);
    }
}

fn note_number(vm: &mut Vm<'_>, tag: &Value, c: &Value, aid: &Value) {
    let (Some(record), true) = (c.record(), aid.is_set()) else { return };
    let number = aid.count();
    let [id] = plan::field_offsets(vm, record.ty(), ["id"]);
    let Some(key) = id.and_then(|id| natives::conn_id(vm, &record.get(id))) else { return };
    let prefix = state::prefix(vm, tag);
    if let Some(known) = vm.m.state.traffic.conns.get_mut(&key)
        && known.record.as_ref().is_some_and(|known| Rc::ptr_eq(known, record))
        && !known.analyzers.iter().any(|known| known.number == number)
    {
        known.analyzers.push(KnownAnalyzer {
            tag: tag.clone(),
            number,
            prefix,
            is_disabled: false,
        });
    }
}
