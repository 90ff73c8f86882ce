//! Built-in functions that read the traffic or steer its analysis. Without packets they return what the functions
//! of [`passive`](crate::bif) return.

use gannet_base::{Addr, ConnId, Interval, Proto};
use gannet_event::{Command, ConnCommand, FileCommand};

use super::known::Known;
use super::plan::IdPlan;
use super::traffic::Certificate;
use crate::ast::ExprKind;
use crate::bif::{Table, arg};
use crate::evaluate::Stop;
use crate::ids::{BodyId, ExprId, FuncId, Id as _, TypeId};
use crate::literal::Protocol;
use crate::symbols::GlobalKind;
use crate::value::{OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;
use crate::walk;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table = &[
    ("Analyzer::__register_for_port", register_for_port),
    ("Analyzer::__enable_analyzer", |vm, a| enable(vm, a, true)),
    ("Analyzer::__disable_analyzer", |vm, a| enable(vm, a, false)),
    ("Analyzer::__disable_all_analyzers", |vm, _| {
        vm.m.state.traffic.without_sizes = true;
        vm.m.state.traffic.commands.push(Command::Enable { analyzer: None, on: false });
        Ok(Value::Unset)
    }),
    ("PacketAnalyzer::__enable_analyzer", |vm, a| enable(vm, a, true)),
    ("PacketAnalyzer::__disable_analyzer", |vm, a| {
        let analyzer = tag_name(vm, arg(a, 0));
        if !SWITCHABLE.iter().any(|name| analyzer.ends_with(&format!("::ANALYZER_{name}"))) {
            let text = format!("{analyzer} cannot be disabled");
            vm.report(crate::diagnostics::Severity::Warning, text);
            return Ok(Value::Bool(false));
        }
        enable(vm, a, false)
    }),
    ("Files::__enable_analyzer", |vm, a| {
        let analyzer = tag_name(vm, arg(a, 0));
        vm.m.state.traffic.disabled_file_analyzers.remove(&analyzer);
        enable(vm, a, true)
    }),
    ("Files::__disable_analyzer", |vm, a| {
        let analyzer = tag_name(vm, arg(a, 0));
        vm.m.state.traffic.disabled_file_analyzers.insert(analyzer);
        enable(vm, a, false)
    }),
    ("Files::__analyzer_enabled", |vm, a| {
        let analyzer = tag_name(vm, arg(a, 0));
        Ok(Value::Bool(!vm.m.state.traffic.disabled_file_analyzers.contains(&analyzer)))
    }),
    ("Analyzer::__schedule_analyzer", schedule_analyzer),
    ("connection_exists", |vm, a| Ok(Value::Bool(known(vm, arg(a, 0)).is_some()))),
    ("lookup_connection", lookup_connection),
    ("lookup_connection_analyzer_id", lookup_analyzer_id),
    ("disable_analyzer", disable_analyzer),
    ("WebSocket::__configure_analyzer", configure_websocket),
    ("set_secret", |vm, a| {
        let secret = arg(a, 1).str_bytes().to_vec();
        send_tls_command(vm, a, ConnCommand::Decrypt { secret, is_key_block: false })
    }),
    ("set_keys", |vm, a| {
        let secret = arg(a, 1).str_bytes().to_vec();
        send_tls_command(vm, a, ConnCommand::Decrypt { secret, is_key_block: true })
    }),
    ("set_ssl_established", |vm, a| send_tls_command(vm, a, ConnCommand::Establish)),
    ("PacketAnalyzer::GTPV1::remove_gtpv1_connection", forget_tunnel),
    ("PacketAnalyzer::TEREDO::remove_teredo_connection", forget_tunnel),
    ("skip_further_processing", |vm, a| send_command(vm, a, |_| ConnCommand::Skip)),
    ("set_inactivity_timeout", set_inactivity_timeout),
    ("set_record_packets", |vm, a| with_known(vm, a, |_, _| true).map(Value::Bool)),
    ("set_current_conn_bytes_threshold", |vm, a| set_threshold(vm, a, false)),
    ("set_current_conn_packets_threshold", |vm, a| set_threshold(vm, a, true)),
    ("set_current_conn_duration_threshold", set_duration_threshold),
    ("get_current_conn_bytes_threshold", |vm, a| threshold(vm, a, false)),
    ("get_current_conn_packets_threshold", |vm, a| threshold(vm, a, true)),
    ("get_current_conn_duration_threshold", |vm, a| {
        if !has_sizes(vm, a) {
            return Ok(Value::Interval(0.0));
        }
        with_known(vm, a, |known, _| known.facts().map_or(0.0, |facts| facts.duration))
            .map(Value::Interval)
    }),
    ("get_conn_transport_proto", transport),
    ("get_current_packet", current_packet),
    ("get_current_packet_ts", |vm, _| {
        let nanos = vm.m.state.traffic.packet.as_ref().map_or(0, |packet| packet.nanos);
        Ok(Value::Time(super::plan::seconds(nanos)))
    }),
    ("get_current_packet_header", current_header),
    ("TCP::raw_options", tcp_options),
    ("PacketAnalyzer::Geneve::get_options", geneve_options),
    ("PacketAnalyzer::PPPoE::session_id", |vm, _| {
        Ok(Value::Count(vm.m.state.traffic.pppoe_session.unwrap_or(0xffff_ffff)))
    }),
    ("set_file_handle", |vm, a| {
        let handle = arg(a, 0).str_bytes();
        if let Some(names) = &mut vm.m.state.traffic.names
            && !handle.is_empty()
        {
            names.handle = Some(handle.to_vec());
        }
        Ok(Value::Unset)
    }),
    ("x509_check_cert_hostname", check_hostname),
    ("decode_base64_conn", decode_base64),
    ("Files::__file_exists", |vm, a| {
        Ok(Value::Bool(vm.m.state.traffic.files.contains_key(arg(a, 0).str_bytes())))
    }),
    ("Files::__lookup_file", lookup_file),
    ("Files::__add_analyzer", add_file_analyzer),
    ("Files::__remove_analyzer", |vm, a| {
        let analyzer = tag_name(vm, arg(a, 1));
        let traffic = &mut vm.m.state.traffic;
        let Some((fuid, _)) = traffic.files.get(arg(a, 0).str_bytes()) else {
            return Ok(Value::Bool(false));
        };
        let fuid = *fuid;
        traffic.file_contents.remove(fuid, &analyzer);
        let found = traffic.file_analyzers.remove(fuid, &analyzer, arg(a, 2));
        send_file_command(vm, a, FileCommand::Remove(analyzer))?;
        Ok(Value::Bool(found))
    }),
    ("Files::__stop", |vm, a| {
        let traffic = &mut vm.m.state.traffic;
        if let Some((fuid, _)) = traffic.files.get(arg(a, 0).str_bytes()) {
            traffic.stopped.insert(*fuid);
        }
        send_file_command(vm, a, FileCommand::Stop)
    }),
    ("get_net_stats", |vm, _| {
        let (number, bytes) = (vm.m.state.traffic.number, vm.m.state.traffic.bytes);
        let fields =
            vec![("pkts_recvd", Value::Count(number)), ("bytes_recvd", Value::Count(bytes))];
        record_of(vm, fields)
    }),
    ("Files::__set_timeout_interval", |vm, a| {
        let time = interval(arg(a, 1).double());
        send_file_command(vm, a, FileCommand::Timeout(time))
    }),
    ("Files::__enable_reassembly", |vm, a| {
        let is_usual = vm.global_named("Files::enable_reassembler").truth();
        reassemble(vm, a, FileCommand::Reassemble(true), is_usual)
    }),
    ("Files::__disable_reassembly", |vm, a| {
        reassemble(vm, a, FileCommand::Reassemble(false), false)
    }),
    ("Files::__set_reassembly_buffer", |vm, a| {
        let most = arg(a, 1).count();
        let usual = vm.global_named("Files::reassembly_buffer_size");
        let is_usual = usual.is_set() && usual.count() == most;
        reassemble(vm, a, FileCommand::Buffer(most), is_usual)
    }),
    ("FileExtract::__set_limit", |vm, a| {
        let limit = arg(a, 2).count();
        send_file_command(vm, a, FileCommand::Limit(limit))
    }),
    ("x509_get_certificate_string", certificate_string),
    ("x509_from_der", |vm, a| {
        let der = arg(a, 0).str_bytes().to_vec();
        Ok(Value::Opaque(OpaqueValue::new(vm.result_type(), Certificate(der))))
    }),
];

/// Packet analyzers that the analysis can disable.
const SWITCHABLE: [&str; 6] =
    ["AYIYA", "GENEVE", "GTPV1", "TEREDO", "UNKNOWN_IP_TRANSPORT", "VXLAN"];

/// The name of an enumerator.
pub(super) fn tag_name(vm: &Vm<'_>, value: &Value) -> String {
    match value {
        Value::Enum(ty, number) => crate::value::describe::enum_name(vm.p, *ty, *number),
        _ => String::new(),
    }
}

pub(super) fn protocol(protocol: Protocol) -> Proto {
    match protocol {
        Protocol::Tcp => Proto::Tcp,
        Protocol::Udp => Proto::Udp,
        Protocol::Icmp => Proto::Icmp,
        Protocol::Unknown => Proto::Unknown,
    }
}

fn interval(seconds: f64) -> Interval {
    Interval::from_nanos((seconds * 1e9) as i64)
}

fn address(value: &Value) -> Option<Addr> {
    let bytes = value.addr_bytes()?;
    Some(match bytes {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Addr::v4([a, b, c, d]),
        other => Addr::v6(other),
    })
}

const INVALID: &str = "invalid connection ID record encountered";

/// The endpoints and VLAN tags in a `conn_id`; reports an error if it is incomplete.
pub(super) fn conn_id(vm: &mut Vm<'_>, value: &Value) -> Option<(ConnId, u32)> {
    let found = endpoints(vm, value);
    if let Err(text) = &found {
        vm.builtin_error(text);
    }
    found.ok()
}

fn endpoints(vm: &Vm<'_>, value: &Value) -> std::result::Result<(ConnId, u32), String> {
    let record = value.record().ok_or(INVALID)?;
    let plan = IdPlan::cached(vm, record.ty());
    let [orig_h, orig_p, resp_h, resp_p, proto] = plan.fields(record);
    let (Value::Port(orig_p), Value::Port(resp_p)) = (orig_p, resp_p) else {
        return Err(INVALID.to_owned());
    };
    let (Some(orig_h), Some(resp_h)) = (address(&orig_h), address(&resp_h)) else {
        return Err(INVALID.to_owned());
    };
    if matches!(proto, Value::Count(65_535)) {
        let hint = "the proto field has the \"unknown\" 65535 value. Did you forget to set it?";
        return Err(format!("{INVALID}: {hint}"));
    }
    let vlans = plan.tags(record);
    Ok((ConnId { orig_h, orig_p: orig_p.number, resp_h, resp_p: resp_p.number }, vlans))
}

fn known<'a>(vm: &'a mut Vm<'_>, cid: &Value) -> Option<&'a Known> {
    let id = conn_id(vm, cid)?;
    vm.m.state.traffic.conns.get(&id).map(|known| &**known)
}

/// The record of the connection with this `conn_id`.
fn record_of_id(vm: &mut Vm<'_>, cid: &Value) -> Option<std::rc::Rc<Record>> {
    let id = conn_id(vm, cid)?;
    super::state::record_of(vm, &id)
}

/// Calls `f` with the connection whose `conn_id` is the first argument; returns the default value if it is not stored.
fn with_known<R: Default>(
    vm: &mut Vm<'_>,
    args: &[Value],
    f: impl FnOnce(&mut Known, ConnId) -> R,
) -> Result<R> {
    let id = conn_id(vm, arg(args, 0));
    match id.and_then(|id| Some((vm.m.state.traffic.conns.get_mut(&id)?, id))) {
        Some((known, (id, _))) => Ok(f(known, id)),
        None => Ok(R::default()),
    }
}

/// Sends a command for the connection whose `conn_id` is the first argument. Returns whether it is stored.
pub(super) fn send_command(
    vm: &mut Vm<'_>,
    args: &[Value],
    what: impl FnOnce(&mut Known) -> ConnCommand,
) -> Result<Value> {
    let stored = with_known(vm, args, |known, id| {
        let what = what(known);
        let command = Command::Connection { uid: known.uid, id, ip_proto: known.ip_proto, what };
        // After the end of the capture the analysis carries out no commands.
        Some((!known.is_over).then_some(command))
    })?;
    let found = stored.is_some();
    vm.m.state.traffic.commands.extend(stored.flatten());
    Ok(Value::Bool(found))
}

/// Records in the history of a connection that a limit of scripts was reached.
pub(crate) fn record_limit_in_history(vm: &mut Vm<'_>, id: &Value) {
    // A connection that has ended has no history.
    let _ = send_command(vm, std::slice::from_ref(id), |_| ConnCommand::Limit);
}

/// Whether analyzers can be registered for a port: TCP and UDP only.
fn has_analyzers(port: &Value) -> bool {
    matches!(port, Value::Port(port) if matches!(port.protocol, Protocol::Tcp | Protocol::Udp))
}

fn register_for_port(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let analyzer = tag_name(vm, arg(args, 0));
    if let Value::Port(port) = arg(args, 1) {
        let (proto, port) = (protocol(port.protocol), port.number);
        vm.m.state.traffic.commands.push(Command::Port { analyzer, proto, port, on: true });
    }
    Ok(Value::Bool(has_analyzers(arg(args, 1))))
}

fn enable(vm: &mut Vm<'_>, args: &[Value], on: bool) -> Result<Value> {
    let analyzer = Some(tag_name(vm, arg(args, 0)));
    if analyzer.as_deref() == Some("Analyzer::ANALYZER_CONNSIZE") {
        vm.m.state.traffic.without_sizes = !on;
    }
    vm.m.state.traffic.commands.push(Command::Enable { analyzer, on });
    Ok(Value::Bool(true))
}

fn schedule_analyzer(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let orig = address(arg(args, 0)).filter(|addr| addr.octets() != [0; 16]);
    let orig = orig.filter(|addr| *addr != Addr::v4([0; 4]));
    if let (Some(resp), Value::Port(port)) = (address(arg(args, 1)), arg(args, 2)) {
        let (proto, port) = (protocol(port.protocol), port.number);
        let (analyzer, timeout) = (tag_name(vm, arg(args, 3)), interval(arg(args, 4).double()));
        let command = Command::Schedule { orig, resp, port, proto, analyzer, timeout };
        vm.m.state.traffic.commands.push(command);
    }
    Ok(Value::Bool(true))
}

/// Watches the connections among the arguments of a scheduled event, and those of its `conn_id`s: when its
/// handlers look them up, they get their state at that time.
pub(crate) fn watch(vm: &mut Vm<'_>, args: &[Value]) {
    if !vm.m.state.traffic.reads_capture {
        return;
    }
    let types = ["connection", "conn_id"].map(|name| vm.type_named(name));
    for value in args {
        let Some(record) = value.record() else { continue };
        let id = match Some(record.ty()) {
            ty if ty == types[0] => {
                let [id] = super::plan::field_offsets(vm, record.ty(), ["id"]);
                id.map_or(Value::Unset, |id| record.get(id))
            }
            ty if ty == types[1] => value.clone(),
            _ => continue,
        };
        let Ok(id) = endpoints(vm, &id) else { continue };
        let traffic = &mut vm.m.state.traffic;
        let found = traffic.conns.get_mut(&id).map(|known| (id.0, &mut **known));
        watch_known(&mut traffic.commands, found);
    }
}

/// The event that reports the status of a connection at intervals.
const STATUS: &str = "connection_status_update";

/// Whether scripts handle [`STATUS`].
pub(super) fn reports_status(vm: &Vm<'_>) -> bool {
    vm.function_named(STATUS).is_some_and(|func| !vm.p.functions[func].bodies.is_empty())
}

/// Schedules the first `connection_status_update` of a connection, if scripts set an interval.
pub(super) fn begin_status(
    vm: &mut Vm<'_>,
    states: &mut super::state::States,
    event: &gannet_event::Raised<'_>,
) -> Result<()> {
    let interval = vm.global_named("connection_status_update_interval").double();
    let (Some(state), Some(ty)) =
        (super::state::first_connection(event), vm.type_named("connection"))
    else {
        return Ok(());
    };
    if interval > 0.0 {
        states.connection(vm, ty, state)?;
        let key = states.store(vm, ty, state)?;
        let due = vm.m.now + interval;
        vm.add_timer(due, crate::vm::events::TimerAction::Status(state.uid, key));
        let traffic = &mut vm.m.state.traffic;
        let found = traffic.conns.get_mut(&key).map(|known| (key.0, &mut **known));
        watch_known(&mut traffic.commands, found);
    }
    Ok(())
}

/// Raises `connection_status_update` of a connection that still exists.
pub(crate) fn status_due(vm: &mut Vm<'_>, uid: gannet_base::Uid, key: (ConnId, u32)) {
    if vm.m.state.traffic.conns.get(&key).is_none_or(|known| known.uid != uid || known.is_over) {
        return;
    }
    let Some(record) = super::state::record_of(vm, &key) else { return };
    vm.queue_named(STATUS, vec![Value::Record(record)]);
    let interval = vm.global_named("connection_status_update_interval").double();
    let due = vm.m.now + interval;
    vm.add_timer(due, crate::vm::events::TimerAction::Status(uid, key));
}

/// Requests the state of a connection after each packet, once.
fn watch_known(commands: &mut Vec<Command>, known: Option<(ConnId, &mut Known)>) {
    if let Some((id, known)) = known
        && !known.is_over
        && !std::mem::replace(&mut known.is_watched, true)
    {
        let (uid, ip_proto, what) = (known.uid, known.ip_proto, ConnCommand::Watch);
        commands.push(Command::Connection { uid, id, ip_proto, what });
    }
}

fn lookup_connection(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if let Ok(id) = endpoints(vm, arg(args, 0)) {
        let traffic = &mut vm.m.state.traffic;
        let found = traffic.conns.get_mut(&id).map(|known| (id.0, &mut **known));
        watch_known(&mut traffic.commands, found);
    }
    let uid = with_known(vm, args, |known, _| Some(known.uid))?;
    if uid.is_none() {
        vm.builtin_error_with("connection ID not a known connection", arg(args, 0));
    }
    match uid.and_then(|uid| Some((uid, record_of_id(vm, arg(args, 0))?))) {
        Some((uid, record)) => {
            let offset = vm.m.state.traffic.conn_plan.as_ref().and_then(|plan| plan.name());
            super::state::ensure_named(vm, &record, uid, offset);
            Ok(Value::Record(record))
        }
        None => {
            let ty = vm.result_type();
            let empty = vm.empty_value(ty, None)?;
            crate::bif::unknown_ends(vm, &empty);
            let names = ["start_time", "duration", "history"];
            let values = [Value::Time(vm.m.now), Value::Interval(0.0), Value::string("")];
            if let Some(record) = empty.record() {
                let offsets = super::plan::field_offsets(vm, record.ty(), names);
                for (offset, value) in offsets.into_iter().zip(values) {
                    if let Some(offset) = offset {
                        record.set(offset, value);
                    }
                }
                let [id] = super::plan::field_offsets(vm, record.ty(), ["id"]);
                if let Some(Value::Record(id)) = id.map(|id| record.get(id)) {
                    let none = Value::addr(Addr::v4([0; 4]).octets());
                    let port = super::plan::port(0, Proto::Udp);
                    let names = ["orig_h", "orig_p", "resp_h", "resp_p"];
                    let offsets = super::plan::field_offsets(vm, id.ty(), names);
                    for (offset, value) in
                        offsets.into_iter().zip([none.clone(), port.clone(), none, port])
                    {
                        if let Some(offset) = offset {
                            id.set(offset, value);
                        }
                    }
                }
            }
            Ok(empty)
        }
    }
}

/// Removes a tunnel of a connection, if it exists; returns whether the `conn_id` is valid.
fn forget_tunnel(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let Some(id) = conn_id(vm, arg(args, 0)) else { return Ok(Value::Bool(false)) };
    if let Some(known) = vm.m.state.traffic.conns.get(&id).filter(|known| !known.is_over) {
        let (uid, ip_proto, what) = (known.uid, known.ip_proto, ConnCommand::ForgetTunnel);
        let command = Command::Connection { uid, id: id.0, ip_proto, what };
        vm.m.state.traffic.commands.push(command);
    }
    Ok(Value::Bool(true))
}

fn lookup_analyzer_id(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let tag = tag_name(vm, arg(args, 1));
    let Some(known) = known(vm, arg(args, 0)) else {
        vm.builtin_error_with("connection ID not a known connection", arg(args, 0));
        return Ok(Value::Count(0));
    };
    let is_over = known.is_over;
    let found = known.analyzers.clone().into_iter().filter(|known| !known.is_disabled && !is_over);
    let found =
        found.filter(|known| tag_name(vm, &known.tag) == tag).map(|known| known.number).next();
    Ok(Value::Count(found.unwrap_or_default()))
}

fn disable_analyzer(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let aid = arg(args, 1).count();
    let complains = !matches!(arg(args, 2), Value::Bool(false));
    let Some(known) = known(vm, arg(args, 0)) else {
        vm.builtin_error_with("connection ID not a known connection", arg(args, 0));
        return Ok(Value::Bool(false));
    };
    match known.transport_analyzers.filter(|_| !known.is_over) {
        Some([transport, _]) if transport == aid => {
            let name = match known.proto {
                Proto::Tcp => "TCP",
                Proto::Udp => "UDP",
                Proto::Icmp => "ICMP",
                _ => "UNKNOWN_IP_TRANSPORT",
            };
            vm.builtin_error(format!("root analyzer {name} cannot be removed"));
            return Ok(Value::Bool(false));
        }
        Some([_, sizes]) if sizes == aid => {
            return send_command(vm, args, |_| ConnCommand::Uncounted);
        }
        _ => {}
    }
    let found = known.analyzers.iter().find(|known| known.number == aid);
    if aid == 0 || known.is_over || found.is_some_and(|known| known.is_disabled) {
        if complains {
            vm.builtin_error("connection does not have analyzer specified to disable");
        }
        return Ok(Value::Bool(false));
    }
    let tag = found.map(|known| known.tag.clone());
    if let (Some(tag), Some(hook)) = (tag, vm.function_named("Analyzer::disabling_analyzer"))
        && !vm.p.functions[hook].bodies.is_empty()
    {
        // The record is refreshed only if the hook has handlers.
        let record = record_of_id(vm, arg(args, 0)).map_or(Value::Unset, Value::Record);
        let asked = vm.call_func(hook, &[record, tag, Value::Count(aid)])?;
        if matches!(asked, Value::Bool(false)) {
            return Ok(Value::Bool(false));
        }
    }
    let prevent = arg(args, 3).truth();
    send_command(vm, args, |known| {
        if let Some(known) = known.analyzers.iter_mut().find(|known| known.number == aid) {
            known.is_disabled = true;
        }
        ConnCommand::Disable { aid, prevent }
    })
}

/// The `id` of a connection.
fn id_of(vm: &Vm<'_>, connection: &Value) -> Value {
    let Some(record) = connection.record() else { return Value::Unset };
    let [id] = super::plan::field_offsets(vm, record.ty(), ["id"]);
    id.map_or(Value::Unset, |id| record.get(id))
}

/// Sends a command for the TLS session of the connection in the first argument. Returns whether it has one.
fn send_tls_command(vm: &mut Vm<'_>, args: &[Value], what: ConnCommand) -> Result<Value> {
    let id = id_of(vm, arg(args, 0));
    let analyzers = known(vm, &id).map(|known| known.analyzers.clone()).unwrap_or_default();
    if !analyzers.iter().any(|known| tag_name(vm, &known.tag) == "Analyzer::ANALYZER_SSL") {
        return Ok(Value::Bool(false));
    }
    send_command(vm, &[id], |_| what)
}

/// Sets the payload analyzer of WebSocket.
fn configure_websocket(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (id, Some(config)) = (id_of(vm, arg(args, 0)), arg(args, 2).record()) else {
        return Ok(Value::Bool(false));
    };
    let [analyzer, detects] = super::plan::field_offsets(vm, config.ty(), ["analyzer", "use_dpd"])
        .map(|offset| offset.map_or(Value::Unset, |offset| config.get(offset)));
    let payload = analyzer.is_set().then(|| tag_name(vm, &analyzer));
    let detects = detects.truth();
    send_command(vm, &[id], |_| ConnCommand::Configure { payload, detects })
}

/// Whether scripts disable an analyzer by an id that comes from no event or connection, and so may be that of an analyzer of
/// no protocol: an expression that is neither a field nor a local named `aid`, as event parameters are.
pub(super) fn disables_by_number(vm: &Vm<'_>) -> bool {
    let Some(func) = vm.function_named("disable_analyzer") else { return false };
    vm.p.exprs.iter().any(|(_, expr)| {
        let number = call_of(vm, func, &expr.kind).and_then(|args| args.get(1));
        number.is_some_and(|number| match vm.p.exprs[*number].kind {
            ExprKind::Field(..) => false,
            // Names of locals have the prefix of their module.
            ExprKind::Local(_, name) => vm.p.name(name).rsplit("::").next() != Some("aid"),
            _ => true,
        })
    })
}

/// Whether scripts query ids of analyzers that no event has delivered before. Handlers of confirmations and violations that
/// query the id of the analyzer of the event have it from the event.
pub(super) fn queries_planned(vm: &Vm<'_>) -> bool {
    const NAME: &str = "lookup_connection_analyzer_id";
    let Some(lookup) = vm.function_named(NAME) else { return false };
    let about = ["analyzer_confirmation_info", "analyzer_violation_info"];
    let handlers = about.into_iter().filter_map(|name| vm.function_named(name));
    let bodies = handlers.flat_map(|handler| &vm.p.functions[handler].bodies);
    let known: usize = bodies.map(|body| calls_with_first_parameter(vm, *body, lookup)).sum();
    vm.find_global(NAME).is_some_and(|global| vm.p.globals[global].uses as usize > known)
}

/// Number of calls of a function in a body with the body's first parameter as second argument; 0 if the body changes the parameter.
fn calls_with_first_parameter(vm: &Vm<'_>, body: BodyId, func: FuncId) -> usize {
    let body = &vm.p.bodies[body];
    let (mut open, mut exprs) = (vec![body.stmt], Vec::new());
    while let Some(stmt) = open.pop() {
        walk::substatements(vm.p, stmt, &mut open);
        walk::stmt_expressions(vm.p, stmt, &mut exprs);
    }
    let is_first = |expr: ExprId| match vm.p.exprs[expr].kind {
        ExprKind::Local(local, _) => body.params.get(local.index()) == Some(&0),
        _ => false,
    };
    let (mut found, mut changes) = (0, false);
    while let Some(expr) = exprs.pop() {
        let kind = &vm.p.exprs[expr].kind;
        let args = call_of(vm, func, kind);
        found +=
            usize::from(args.is_some_and(|args| args.get(1).is_some_and(|arg| is_first(*arg))));
        changes |= matches!(kind, ExprKind::Assign(left, _) if is_first(*left));
        walk::operands(vm.p, expr, &mut exprs);
    }
    if changes { 0 } else { found }
}

/// The arguments of a direct call of a function.
fn call_of<'p>(vm: &Vm<'p>, func: FuncId, kind: &'p ExprKind) -> Option<&'p [ExprId]> {
    let ExprKind::Call(call) = kind else { return None };
    let ExprKind::Global(global) = vm.p.exprs[call.callee].kind else { return None };
    match vm.p.globals[global].kind {
        GlobalKind::Function(found) if found == func => Some(&call.args),
        _ => None,
    }
}

fn set_inactivity_timeout(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let seconds = arg(args, 1).double();
    let mut before = None;
    let mut proto = Proto::Unknown;
    send_command(vm, args, |known| {
        before = known.facts_mut().timeout.replace(seconds);
        proto = known.proto;
        ConnCommand::Timeout(interval(seconds))
    })?;
    let option = match proto {
        Proto::Tcp => "tcp_inactivity_timeout",
        Proto::Udp => "udp_inactivity_timeout",
        Proto::Icmp => "icmp_inactivity_timeout",
        _ => "unknown_ip_inactivity_timeout",
    };
    let default = vm.global_named(option).double();
    Ok(Value::Interval(before.unwrap_or(if proto == Proto::Unknown { 0.0 } else { default })))
}

/// Whether the sizes of a connection are counted; reports an error otherwise.
fn has_sizes(vm: &mut Vm<'_>, args: &[Value]) -> bool {
    let without = vm.m.state.traffic.without_sizes;
    let Some(known) = known(vm, arg(args, 0)) else { return false };
    let has = !known.is_over && !without;
    if !has {
        vm.report(
            crate::diagnostics::Severity::Error,
            "connection does not have ConnSize analyzer",
        );
    }
    has
}

fn set_threshold(vm: &mut Vm<'_>, args: &[Value], packets: bool) -> Result<Value> {
    if !has_sizes(vm, args) {
        return Ok(Value::Bool(false));
    }
    let (threshold, is_orig) = (arg(args, 1).count(), arg(args, 2).truth());
    send_command(vm, args, |known| {
        known.facts_mut().thresholds[threshold_index(packets, is_orig)] = threshold;
        if packets {
            ConnCommand::Packets { threshold, is_orig }
        } else {
            ConnCommand::Bytes { threshold, is_orig }
        }
    })
}

fn threshold_index(packets: bool, is_orig: bool) -> usize {
    usize::from(!is_orig) * 2 + usize::from(packets)
}

fn threshold(vm: &mut Vm<'_>, args: &[Value], packets: bool) -> Result<Value> {
    if !has_sizes(vm, args) {
        return Ok(Value::Count(0));
    }
    let is_orig = arg(args, 1).truth();
    let at = threshold_index(packets, is_orig);
    with_known(vm, args, |known, _| known.facts().map_or(0, |facts| facts.thresholds[at]))
        .map(Value::Count)
}

fn set_duration_threshold(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if !has_sizes(vm, args) {
        return Ok(Value::Bool(false));
    }
    let seconds = arg(args, 1).double();
    send_command(vm, args, |known| {
        known.facts_mut().duration = seconds;
        ConnCommand::Duration(interval(seconds))
    })
}

fn transport(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let proto = with_known(vm, args, |known, _| Some(known.proto))?;
    if proto.is_none() {
        let text = "unknown connection id in get_conn_transport_proto()";
        vm.builtin_error_with(text, arg(args, 0));
    }
    Ok(vm.enum_named(match proto {
        Some(Proto::Tcp) => "tcp",
        Some(Proto::Udp) => "udp",
        Some(Proto::Icmp) => "icmp",
        _ => "unknown_transport",
    }))
}

/// A record of the function's result with fields of these names.
pub(super) fn record_of(vm: &mut Vm<'_>, fields: Vec<(&str, Value)>) -> Result<Value> {
    let ty: TypeId = vm.result_type();
    let value = vm.new_record(ty, &[], Vec::new())?;
    if let Some(record) = value.record() {
        for (name, value) in fields {
            if let [Some(offset)] = super::plan::field_offsets(vm, ty, [name]) {
                record.set(offset, value);
            }
        }
    }
    Ok(value)
}

fn current_packet(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let none = super::traffic::Packet { nanos: 0, data: Vec::new(), len: 0, link_type: 0 };
    let packet = vm.m.state.traffic.packet.as_ref().unwrap_or(&none);
    let unsigned = |n: i64| u64::try_from(n).unwrap_or_default();
    let fields = vec![
        ("ts_sec", Value::Count(unsigned(packet.nanos / 1_000_000_000))),
        ("ts_usec", Value::Count(unsigned(packet.nanos % 1_000_000_000 / 1_000))),
        ("caplen", Value::Count(packet.data.len() as u64)),
        ("len", Value::Count(packet.len)),
        ("data", Value::string(&packet.data)),
    ];
    let link = if packet.link_type == 1 { "LINK_ETHERNET" } else { "LINK_UNKNOWN" };
    let mut fields = fields;
    fields.push(("link_type", vm.enum_named(link)));
    record_of(vm, fields)
}

fn current_header(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let header = vm.m.state.traffic.header.clone();
    if header.is_set() {
        return Ok(header);
    }
    let ty = vm.result_type();
    vm.empty_value(ty, None)
}

/// `decode_base64_conn`: errors in the text are weirds of the connection.
fn decode_base64(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let Some(record) = record_of_id(vm, arg(args, 0)) else {
        vm.builtin_error_with("connection ID not a known connection", arg(args, 0));
        return Ok(Value::string(""));
    };
    let alphabet = arg(args, 2).str_bytes().try_into().ok();
    let text = arg(args, 1).str_bytes();
    let (decoded, messages) = crate::support::text::base64::decode(text, alphabet);
    for message in messages {
        let name = Value::string("base64_illegal_encoding");
        let args =
            vec![name, Value::Record(record.clone()), Value::string(message), Value::string("")];
        vm.queue_named("conn_weird", args);
    }
    if decoded.is_none() {
        vm.report(
            crate::diagnostics::Severity::Error,
            [b"error in decoding string ", text].concat(),
        );
    }
    Ok(Value::string_owned(decoded.unwrap_or_default()))
}

/// `TCP::raw_options`: all options of the current segment, up to the end of the option list if that is requested.
fn tcp_options(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let crate::types::Type::Vector(element) = *vm.p.types.get(ty) else { return Ok(Value::Unset) };
    let stops = !matches!(arg(args, 0), Value::Bool(false));
    let mut items = Vec::new();
    let all = vm.m.state.traffic.tcp_options.clone();
    let mut rest = &*all;
    while let Some((&kind, after)) = rest.split_first() {
        let mut data: &[u8] = &[];
        rest = after;
        if kind > 1 {
            let Some(len) = after.first().map(|len| usize::from(*len)) else { break };
            // The length includes kind and length bytes.
            let Some(end) = len.checked_sub(1).filter(|end| *end >= 1) else { break };
            let (Some(found), Some(next)) = (after.get(1..end), after.get(end..)) else { break };
            (data, rest) = (found, next);
        }
        let record = Record::new(element, vec![Value::Count(u64::from(kind)), Value::string(data)]);
        items.push(Value::Record(record));
        if kind == 0 && stops {
            break;
        }
    }
    Ok(Value::Vector(Vector::new(ty, items)))
}

/// `PacketAnalyzer::Geneve::get_options`: the options of each Geneve header of the packet, the outermost first.
fn geneve_options(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let element = |vm: &Vm<'_>, ty| match *vm.p.types.get(ty) {
        crate::types::Type::Vector(element) => Some(element),
        _ => None,
    };
    let Some(list) = element(vm, ty) else { return Ok(Value::Unset) };
    let Some(option) = element(vm, list) else { return Ok(Value::Unset) };
    let mut layers = Vec::new();
    for raw in &vm.m.state.traffic.geneve_options {
        let (mut items, mut rest) = (Vec::new(), &raw[..]);
        while let Some(([class @ .., kind, len], after)) = rest.split_first_chunk::<4>()
            && let Some((data, next)) = after.split_at_checked(usize::from(len & 0x1f) * 4)
        {
            rest = next;
            let fields = vec![
                Value::Count(u64::from(u16::from_be_bytes(*class))),
                Value::Bool(kind & 0x80 != 0),
                Value::Count(u64::from(kind & 0x7f)),
                Value::string(data),
            ];
            items.push(Value::Record(Record::new(option, fields)));
        }
        layers.push(Value::Vector(Vector::new(list, items)));
    }
    Ok(Value::Vector(Vector::new(ty, layers)))
}

/// Changes the reassembly of a file. The default value, which Zeek's scripts set for each file, is ignored
/// until a script sets another one.
fn reassemble(vm: &mut Vm<'_>, args: &[Value], what: FileCommand, is_usual: bool) -> Result<Value> {
    let traffic = &mut vm.m.state.traffic;
    if is_usual && !traffic.changed_reassembly {
        return Ok(Value::Bool(traffic.files.contains_key(arg(args, 0).str_bytes())));
    }
    traffic.changed_reassembly = true;
    send_file_command(vm, args, what)
}

fn lookup_file(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).str_bytes();
    match vm.m.state.traffic.files.get(id) {
        Some((_, record)) => Ok(Value::Record(record.clone())),
        None => {
            let text = format!("file ID {} not a known file", String::from_utf8_lossy(id));
            vm.report(crate::diagnostics::Severity::Error, &text);
            Ok(Value::Unset)
        }
    }
}

/// Sends a command for the file in the first argument. Returns whether the file exists.
fn send_file_command(vm: &mut Vm<'_>, args: &[Value], what: FileCommand) -> Result<Value> {
    let traffic = &mut vm.m.state.traffic;
    let found = traffic.files.get(arg(args, 0).str_bytes()).map(|(fuid, _)| *fuid);
    if let Some(fuid) = found {
        traffic.commands.push(Command::File { fuid, what });
    }
    Ok(Value::Bool(found.is_some()))
}

fn add_file_analyzer(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let analyzer = tag_name(vm, arg(args, 1));
    // The script chooses the name of the file.
    if analyzer == "Files::ANALYZER_EXTRACT"
        && crate::bif::refused_in_sandbox(vm, "the extraction of files")
    {
        return Ok(Value::Bool(false));
    }
    let (mut path, mut limit, mut counts_gaps) = (None, 0, true);
    if let Some(record) = arg(args, 2).record().filter(|_| analyzer == "Files::ANALYZER_EXTRACT") {
        let field = |vm: &Vm<'_>, record: &Record, name| {
            let [offset] = super::plan::field_offsets(vm, record.ty(), [name]);
            offset.map_or(Value::Unset, |offset| record.get(offset))
        };
        path = Some(field(vm, record, "extract_filename").text());
        limit = field(vm, record, "extract_limit").count();
        let counts = field(vm, record, "extract_limit_includes_missing");
        counts_gaps = !matches!(counts, Value::Bool(false));
        if let Some((fuid, _)) = vm.m.state.traffic.files.get(arg(args, 0).str_bytes()) {
            let fuid = *fuid;
            vm.m.state.traffic.file_contents.extract(fuid, arg(args, 2).clone());
        }
    }
    if vm.m.state.traffic.disabled_file_analyzers.contains(&analyzer) {
        return Ok(Value::Bool(false));
    }
    if gannet_files::reads_contents(&analyzer)
        && let Some((fuid, _)) = vm.m.state.traffic.files.get(arg(args, 0).str_bytes())
        && let Some(record) = arg(args, 2).record()
    {
        let fuid = *fuid;
        let events = super::plan::field_offsets(vm, record.ty(), ["chunk_event", "stream_event"]);
        let events = events.map(|offset| Some(record.get(offset?).func()?.func));
        vm.m.state.traffic.file_contents.add(fuid, &analyzer, events);
    }
    if let Some((fuid, _)) = vm.m.state.traffic.files.get(arg(args, 0).str_bytes()) {
        let fuid = *fuid;
        vm.m.state.traffic.file_analyzers.add(fuid, &analyzer, arg(args, 2));
    }
    send_file_command(vm, args, FileCommand::Add { analyzer, path, limit, counts_gaps })
}

fn certificate_string(_: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let der = arg(args, 0).opaque().and_then(|o| o.with(|c: &mut Certificate| c.0.clone()));
    let Some(der) = der else { return Ok(Value::string("")) };
    let der = gannet_files::x509::encoded(&der).unwrap_or(der);
    if !arg(args, 1).truth() {
        return Ok(Value::string_owned(der));
    }
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let digits = crate::support::text::base64::encode(&der, None);
    for line in digits.chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    Ok(Value::string(text))
}

/// The name of a certificate that matches a host (RFC 6125), "" if none does.
fn check_hostname(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let der = arg(args, 0).opaque().and_then(|o| o.with(|c: &mut Certificate| c.0.clone()));
    let Some(certificate) = der.and_then(|der| gannet_files::x509::parse(&der).ok()) else {
        vm.builtin_error("No certificate in opaque");
        return Ok(Value::string(""));
    };
    if certificate.has_broken_names() {
        vm.builtin_error("Could not get names from SAN ext");
    }
    let name = certificate.name_of_host(arg(args, 1).str_bytes());
    Ok(Value::string(name.as_deref().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether scripts query planned analyzers, and whether they disable analyzers by id. `body` is that of a handler of
    /// `analyzer_violation_info`.
    fn scripts_query(body: &str, more: &str) -> (bool, bool) {
        let code = format!(
            "type ID: record {{ n: count; }};
            global lookup_connection_analyzer_id: function(cid: ID, atype: count): count;
            global disable_analyzer: function(cid: ID, aid: count): bool;
            global analyzer_violation_info: event(atype: count, cid: ID, number: count);
            module M;
            event analyzer_violation_info(atype: count, cid: ID, number: count) {{ {body} }}
            {more}"
        );
        let mut program = crate::program::Program::default();
        let mut machine = crate::vm::Machine::new();
        let input =
            crate::parse::Input::Text { name: "test".to_owned(), code: code.clone().into_bytes() };
        let parsed = crate::parse::Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
        assert!(parsed.is_ok() && program.diagnostics.errors == 0, "{code}");
        let vm = machine.with(&mut program);
        (queries_planned(&vm), disables_by_number(&vm))
    }

    #[test]
    fn handlers_of_violations_have_the_id_of_their_analyzer() {
        let lookup = "lookup_connection_analyzer_id(cid, atype)";
        assert_eq!(scripts_query("", ""), (false, false));
        assert_eq!(scripts_query(&format!("print {lookup};"), ""), (false, false));
        let body = format!("local aid = {lookup}; disable_analyzer(cid, aid);");
        assert_eq!(scripts_query(&body, ""), (false, false));
        for (body, more) in [
            ("print lookup_connection_analyzer_id(cid, 7);", String::new()),
            ("print lookup_connection_analyzer_id(cid, number);", String::new()),
            ("local f = lookup_connection_analyzer_id; print f(cid, atype);", String::new()),
            (&*format!("atype = 7; print {lookup};"), String::new()),
            ("", format!("event other(atype: count, cid: ID) {{ print {lookup}; }}")),
            ("", format!("function other(atype: count, cid: ID) {{ print {lookup}; }}")),
        ] {
            assert!(scripts_query(body, &more).0, "{body} {more}");
        }
        assert!(scripts_query("disable_analyzer(cid, number);", "").1);
        assert!(scripts_query("disable_analyzer(cid, 3);", "").1);
    }
}
