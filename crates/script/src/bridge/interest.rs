//! Which events scripts need, and what their functions may do.

use gannet_event::{Interest, Type};

use super::steering::{self, Reached};
use super::{Source, counts, decide, natives, requests, stored_conns};
use crate::ast::ExprKind;
use crate::ids::{ExprId, FuncId};
use crate::symbols::GlobalKind;
use crate::types::Flavor;
use crate::vm::Vm;
use crate::walk;

/// Events that the run itself raises.
const RUN_EVENTS: [&str; 2] = ["zeek_init", "zeek_done"];

/// Events that scripts handle, and those that the records of connections and files need; and whether all connections are
/// stored.
pub(super) fn select(vm: &Vm<'_>, source: &dyn Source) -> (Interest, bool) {
    let handled = |name: &str| vm.function_named(name).is_some_and(|func| is_handled(vm, func));
    let catalogue = source.catalogue();
    let mut interest = Interest::of(catalogue.iter().copied(), |decl| {
        !RUN_EVENTS.contains(&decl.name) && !decl.scripted && handled(decl.name)
    });
    let mut of_files = catalogue.iter().filter(|decl| interest.has(decl.id));
    let handles_files = of_files.any(|decl| {
        decl.params.iter().any(|param| stored_conns::contains_type(&param.ty, &Type::File))
    });
    let stores_all = stored_conns::stores_all(vm, handled, handles_files);
    let are_counted = calls(vm, &counts::READERS);
    let signatures = vm.m.state.signatures.as_ref();
    let by_number = natives::disables_by_number(vm);
    // These are needed even if scripts handle no event: time advances with packets, and timers expire.
    for decl in catalogue {
        let needed = match decl.name {
            name if signatures.is_some_and(|all| all.needs(name)) => true,
            "new_connection" => stores_all || are_counted,
            "connection_state_remove" | "file_new" | "file_state_remove" | "net_done" => true,
            "get_file_handle" | "conn_weird" => vm.m.state.uids.is_deterministic(),
            "gannet::packet_bytes" => needs_bytes(vm),
            "gannet::packet_seen" => {
                !needs_bytes(vm)
                    && (are_counted || calls(vm, &["get_current_packet_ts", "get_net_stats"]))
            }
            "gannet::analyzer_planned" => {
                calls(vm, &["current_analyzer"]) || by_number || natives::queries_planned(vm)
            }
            "gannet::analyzers_numbered" => by_number,
            "gannet::tcp_options" => calls(vm, &["TCP::raw_options"]),
            "gannet::tcp_sequences" => calls(vm, &requests::SEQUENCE_READERS),
            "gannet::login_state" => calls(vm, &requests::LOGIN_FUNCTIONS),
            "gannet::geneve_options" => calls(vm, &["PacketAnalyzer::Geneve::get_options"]),
            "gannet::pppoe_session" => calls(vm, &["PacketAnalyzer::PPPoE::session_id"]),
            "gannet::file_data" => calls(vm, &["Files::__add_analyzer"]),
            "gannet::file_extraction_limit" => handled("file_extraction_limit"),
            "gannet::file_violation" => handled("analyzer_violation_info"),
            "raw_packet" => calls(vm, &["get_current_packet_header"]),
            "gannet::discard_packet" => {
                decide::has_discarders(vm) || calls(vm, &decide::INSTALLERS)
            }
            "gannet::packet_done" => calls(vm, &counts::READERS_OF_PACKETS),
            "gannet::weird_seen" => calls(vm, &["get_reporter_stats"]),
            "gannet::connection_inactive" => are_counted,
            "gannet::watched_connection" => {
                calls(vm, &["lookup_connection"]) || handled("connection_status_update")
            }
            "gannet::connection_timing_out" => handled("connection_timing_out"),
            "gannet::login_text" => decide::LOGINS.iter().any(|name| handled(name)),
            _ => false,
        };
        if needed {
            interest.add(decl.id);
        }
    }
    (interest, stores_all)
}

/// Whether scripts or the command line need the bytes of packets.
fn needs_bytes(vm: &Vm<'_>) -> bool {
    calls(vm, &["get_current_packet", "dump_current_packet"]) || vm.m.state.traffic.write.is_some()
}

/// Whether a function has a body, enabled or not, or is an event while all events are raised.
pub(super) fn is_handled(vm: &Vm<'_>, func: FuncId) -> bool {
    let function = &vm.p.functions[func];
    !function.bodies.is_empty() || (vm.m.generate_all && function.flavor == Flavor::Event)
}

/// Whether scripts may call one of these functions; code that never runs may also refer to it.
pub(super) fn calls(vm: &Vm<'_>, names: &[&str]) -> bool {
    let reached = reached(vm).map(|reached| &reached.functions);
    let is_called = |name: &&str| match reached {
        Some(reached) => vm.function_named(name).is_some_and(|func| reached.contains(&func)),
        None => vm.find_global(name).is_some_and(|global| vm.p.globals[global].uses > 0),
    };
    names.iter().any(is_called)
}

/// Whether a script calls `lookup_connection`, so that the records of connections are refreshed after each packet.
///
/// Zeek's scripts of tunnels and of polling do not count: they look up single connections, which are then watched.
pub(super) fn looks_connections_up(vm: &Vm<'_>) -> bool {
    let Some(lookup) = vm.function_named("lookup_connection") else { return false };
    let reached = reached(vm);
    let may_run = |func| reached.is_none_or(|reached| reached.functions.contains(&func));
    let is_lookup = |expr: ExprId| match vm.p.exprs[expr].kind {
        ExprKind::Global(global) => {
            matches!(vm.p.globals[global].kind, GlobalKind::Function(func) if func == lookup)
        }
        _ => false,
    };
    vm.p.bodies.iter().any(|(_, body)| {
        if matches!(vm.p.name(body.module), "Tunnel" | "ConnPolling")
            || !body.func.is_none_or(may_run)
        {
            return false;
        }
        let (mut open, mut tops, mut found) = (vec![body.stmt], Vec::new(), false);
        while let Some(stmt) = open.pop() {
            walk::substatements(vm.p, stmt, &mut open);
            walk::stmt_expressions(vm.p, stmt, &mut tops);
        }
        for top in tops {
            walk::expressions(vm.p, top, &mut |expr| found |= is_lookup(expr));
        }
        found
    })
}

/// What scripts can reach; `None` if that cannot be determined.
pub(super) fn reached<'v>(vm: &'v Vm<'_>) -> Option<&'v Reached> {
    // Conditions of signatures are not part of the program.
    let is_known = vm.m.state.signatures.is_none();
    let traffic = &vm.m.state.traffic;
    let raises = |name: &str| traffic.raised.contains(name);
    is_known.then(|| traffic.reached.get_or_init(|| steering::reached(vm, &raises)).as_ref())?
}

/// Whether other code than handlers reads the arguments of events, or handlers read those of their callers.
pub(super) fn sees_all(vm: &Vm<'_>) -> bool {
    vm.m.generate_all
        || vm.m.event_trace.is_some()
        || vm.m.observer.is_some()
        || vm.m.state.traffic.names.is_some()
        || calls(vm, &["backtrace"])
}
