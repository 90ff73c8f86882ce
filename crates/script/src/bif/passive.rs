//! Functions that need packets, connections, files or a cluster: their results without these.

use super::strings::bytes;
use super::{Table, arg};
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::pattern::PatternStats;
use crate::types::Tag;
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

fn yes(_: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Bool(true))
}

fn no(_: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Bool(false))
}

fn nothing(_: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Unset)
}

fn zero(_: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Count(0))
}

/// The default value of the result type: a record, an empty container or `""`.
fn empty(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    vm.empty_value(ty, None)
}

/// A record whose numeric fields are zero.
fn zeros(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let fields: Vec<(TypeId, bool)> =
        vm.p.types
            .record(ty)
            .map(|record| {
                record
                    .fields
                    .iter()
                    .map(|field| {
                        let attrs = &field.attrs;
                        (field.ty, crate::compare::may_be_missing(attrs))
                    })
                    .collect()
            })
            .unwrap_or_default();
    let (mut offsets, mut given) = (Vec::new(), Vec::new());
    for (offset, (ty, optional)) in fields.into_iter().enumerate() {
        let value = match vm.p.types.tag(ty) {
            Tag::Count => Value::Count(0),
            Tag::Int => Value::Int(0),
            Tag::Double => Value::Double(0.0),
            Tag::Interval => Value::Interval(0.0),
            Tag::Time => Value::Time(0.0),
            Tag::Bool => Value::Bool(false),
            _ => continue,
        };
        if !optional {
            offsets.push(offset as u32);
            given.push(value);
        }
    }
    vm.new_record(ty, &offsets, given)
}

const NO_ZEROMQ: &str = "gannet has no backend of ZeroMQ: a cluster of it needs Zeek";
const NO_SUPERVISOR: &str = "supervisor mode not enabled";

fn unsupervised(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    vm.builtin_error(NO_SUPERVISOR);
    Ok(Value::Bool(false))
}

/// A `MatcherStats` record.
fn matcher_stats(vm: &mut Vm<'_>, matchers: u64, stats: &PatternStats) -> Result<Value> {
    let states = stats.dfa_states as u64;
    let fields = [matchers, stats.nfa_states as u64, states, states, stats.bytes as u64, 0, states];
    let fields = fields.map(Value::Count).to_vec();
    Ok(Value::Record(Record::new(vm.result_type(), fields)))
}

/// The number of automata of signatures and their statistics. Signatures that are replaced by analyzers have none.
fn signature_stats(vm: &Vm<'_>) -> (u64, PatternStats) {
    let mut all = PatternStats::default();
    let Some(loaded) = &vm.m.state.signatures else {
        return (u64::from(!vm.p.signature_files.is_empty()), all);
    };
    let mut matchers = 0;
    for (_, _, stats) in loaded.signatures.automata() {
        matchers += 1;
        all.nfa_states += stats.nfa_states;
        all.dfa_states += stats.dfa_states;
        all.bytes += stats.bytes;
    }
    (matchers, all)
}

/// Writes the size of each automaton to a file, with the signatures that it contains.
fn dump_rule_stats(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let Value::File(file) = arg(args, 0) else { return Ok(Value::Bool(false)) };
    let (matchers, all) = signature_stats(vm);
    let PatternStats { nfa_states, dfa_states, bytes } = all;
    let now = vm.m.now;
    let mut text = format!(
        "{now:.6} matchers = {matchers}; NFA states = {nfa_states}; DFA states = {dfa_states}; mem = {bytes}\n"
    );
    let loaded = vm.m.state.signatures.clone();
    for (kind, names, stats) in loaded.iter().flat_map(|loaded| loaded.signatures.automata()) {
        let (states, names) = (stats.dfa_states, names.join(" "));
        text.push_str(&format!("{now:.6} {states} DFA states in {kind:?} of {names}\n"));
    }
    vm.m.out.write_file(file, text.as_bytes());
    Ok(Value::Bool(true))
}

/// Reports that a connection is not known.
fn unknown_connection(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    vm.builtin_error_with("connection ID not a known connection", arg(args, 0));
    Ok(Value::Bool(false))
}

fn unknown_connection_count(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    vm.builtin_error_with("connection ID not a known connection", arg(args, 0));
    Ok(Value::Count(0))
}

/// Sets the sizes and states of the endpoints of an unknown connection.
pub(crate) fn unknown_ends(vm: &Vm<'_>, connection: &Value) {
    let place = |record: &Record, name: &str| {
        let fields = &vm.p.types.record(record.ty())?.fields;
        fields.iter().position(|field| vm.p.name(field.name) == name)
    };
    let Some(connection) = connection.record() else { return };
    for end in ["orig", "resp"] {
        let Some(end) = place(connection, end).map(|place| connection.get(place)) else { continue };
        let Some(end) = end.record() else { continue };
        for name in ["size", "state"] {
            if let Some(place) = place(end, name) {
                end.set(place, Value::Count(0));
            }
        }
    }
}

/// The functions of this file.
pub(super) const TABLE: Table = &[
    // The packet reader registers and looks up packet analyzers.
    ("PacketAnalyzer::register_packet_analyzer", |vm, a| {
        if vm.m.state.initialized {
            let text = "Packet protocols cannot be registered after zeek_init has finished.";
            vm.report(crate::diagnostics::Severity::Fatal, text);
            return Err(Stop::Fatal);
        }
        map_packet_analyzer(vm, arg(a, 0), arg(a, 1).count(), arg(a, 2));
        Ok(Value::Bool(true))
    }),
    ("PacketAnalyzer::try_register_packet_analyzer_by_name", |vm, a| {
        let named = |vm: &Vm<'_>, at| {
            vm.enum_named(&format!("PacketAnalyzer::ANALYZER_{}", arg(a, at).text().to_uppercase()))
        };
        let (parent, child) = (named(vm, 0), named(vm, 2));
        let is_known = parent.is_set() && child.is_set() && !vm.m.state.initialized;
        if is_known {
            map_packet_analyzer(vm, &parent, arg(a, 1).count(), &child);
        }
        Ok(Value::Bool(is_known))
    }),
    ("PacketAnalyzer::register_protocol_detection", yes),
    ("PacketAnalyzer::__set_ignore_checksums_nets", yes),
    ("PacketAnalyzer::__disable_analyzer", yes),
    ("PacketAnalyzer::__enable_analyzer", yes),
    ("PacketAnalyzer::GTPV1::remove_gtpv1_connection", yes),
    ("PacketAnalyzer::TEREDO::remove_teredo_connection", yes),
    ("Analyzer::__enable_analyzer", yes),
    ("Analyzer::__disable_analyzer", yes),
    ("Analyzer::__disable_all_analyzers", nothing),
    ("Analyzer::__register_for_port", yes),
    ("Analyzer::__schedule_analyzer", yes),
    ("Analyzer::__name", |vm, a| Ok(Value::string(analyzer_name(vm, arg(a, 0))))),
    ("Files::__analyzer_name", |vm, a| Ok(Value::string(analyzer_name(vm, arg(a, 0))))),
    ("Analyzer::__tag", |vm, a| Ok(tag(vm, &arg(a, 0).text()))),
    ("Analyzer::__has_tag", |vm, a| {
        let found = known_tag(vm, &arg(a, 0).text());
        Ok(Value::Bool(found.is_set()))
    }),
    ("is_protocol_analyzer", |vm, a| Ok(Value::Bool(kind(vm, arg(a, 0)) == "Analyzer"))),
    ("is_packet_analyzer", |vm, a| Ok(Value::Bool(kind(vm, arg(a, 0)) == "PacketAnalyzer"))),
    ("is_file_analyzer", |vm, a| Ok(Value::Bool(kind(vm, arg(a, 0)) == "Files"))),
    // Files that are analyzed.
    ("Files::__set_timeout_interval", no),
    ("Files::__enable_reassembly", no),
    ("Files::__disable_reassembly", no),
    ("Files::__set_reassembly_buffer", no),
    ("Files::__enable_analyzer", yes),
    ("Files::__disable_analyzer", yes),
    ("Files::__analyzer_enabled", yes),
    ("Files::__add_analyzer", no),
    ("Files::__remove_analyzer", no),
    ("Files::__stop", no),
    ("Files::__file_exists", no),
    ("Files::__lookup_file", |vm, a| {
        let text = format!("file ID {} not a known file", String::from_utf8_lossy(bytes(a, 0)));
        vm.report(crate::diagnostics::Severity::Error, &text);
        Ok(Value::Unset)
    }),
    ("FileExtract::__set_limit", no),
    ("set_file_handle", nothing),
    // Connections.
    ("connection_exists", no),
    ("lookup_connection", |vm, a| {
        vm.builtin_error_with("connection ID not a known connection", arg(a, 0));
        let ty = vm.result_type();
        let empty = vm.empty_value(ty, None)?;
        unknown_ends(vm, &empty);
        Ok(empty)
    }),
    ("lookup_connection_analyzer_id", unknown_connection_count),
    ("disable_analyzer", unknown_connection),
    ("skip_further_processing", no),
    ("set_record_packets", no),
    ("set_contents_file", no),
    ("set_inactivity_timeout", |_, _| Ok(Value::Interval(0.0))),
    ("set_current_conn_bytes_threshold", no),
    ("set_current_conn_packets_threshold", no),
    ("set_current_conn_duration_threshold", no),
    ("get_current_conn_bytes_threshold", zero),
    ("get_current_conn_packets_threshold", zero),
    ("get_current_conn_duration_threshold", |_, _| Ok(Value::Interval(0.0))),
    ("get_orig_seq", zero),
    ("get_resp_seq", zero),
    ("get_conn_transport_proto", |vm, a| {
        let text = "unknown connection id in get_conn_transport_proto()";
        vm.builtin_error_with(text, arg(a, 0));
        Ok(vm.enum_named("unknown_transport"))
    }),
    ("current_analyzer", zero),
    ("get_current_packet_ts", |_, _| Ok(Value::Time(0.0))),
    ("dump_current_packet", no),
    ("dump_packet", no),
    ("skip_smtp_data", nothing),
    ("skip_http_entity_data", nothing),
    ("set_ssl_established", no),
    ("set_secret", no),
    ("set_keys", no),
    ("match_signatures", no),
    ("TCP::raw_options", empty),
    ("WebSocket::__configure_analyzer", no),
    ("load_CPP", nothing),
    // Filters of captures.
    ("Pcap::precompile_pcap_filter", yes),
    ("Pcap::install_pcap_filter", yes),
    ("Pcap::error", |_, _| Ok(Value::string("no error"))),
    ("Pcap::findalldevs", empty),
    ("Pcap::get_filter_state", |vm, _| Ok(vm.enum_named("Pcap::uninitialized"))),
    ("Pcap::get_filter_state_string", |_, _| Ok(Value::string("uninitialized"))),
    // Statistics.
    ("get_net_stats", zeros),
    ("get_dns_stats", zeros),
    ("get_file_analysis_stats", zeros),
    ("get_gap_stats", zeros),
    ("get_matcher_stats", |vm, _| {
        let (matchers, stats) = signature_stats(vm);
        matcher_stats(vm, matchers, &stats)
    }),
    ("x509_check_hostname", |_, a| Ok(Value::Bool(fits_host(bytes(a, 0), bytes(a, 1))))),
    ("get_reassembler_stats", zeros),
    ("get_reporter_stats", zeros),
    ("get_thread_stats", zeros),
    ("get_timer_stats", zeros),
    ("get_plugin_components", components),
    // Clusters: this process runs alone.
    ("Supervisor::__is_supervised", no),
    ("Supervisor::__is_supervisor", no),
    ("Supervisor::__status", empty),
    ("Supervisor::__node", empty),
    ("Supervisor::__stem_pid", |_, _| Ok(Value::Int(-1))),
    ("Supervisor::__create", |vm, _| {
        vm.builtin_error(NO_SUPERVISOR);
        Ok(Value::string(NO_SUPERVISOR))
    }),
    ("Supervisor::__destroy", unsupervised),
    ("Supervisor::__restart", unsupervised),
    ("Cluster::Backend::ZeroMQ::spawn_zmq_proxy_thread", |vm, _| {
        vm.builtin_error(NO_ZEROMQ);
        Ok(Value::Bool(false))
    }),
    ("Cluster::Backend::ZeroMQ::generate_keypair", |vm, a| {
        vm.builtin_error(NO_ZEROMQ);
        empty(vm, a)
    }),
    ("Cluster::__publish_table", |vm, a| {
        let text = if arg(a, 1).table().is_some() {
            "__publish_table: missing PublishOnChange state for table!".to_owned()
        } else {
            let ty = crate::describe::type_text(vm.p, arg(a, 1).ty());
            format!("__publish_table: {ty} not a table type")
        };
        vm.report(crate::diagnostics::Severity::Error, text);
        Ok(Value::Bool(false))
    }),
    ("Cluster::apply_table_change_infos", |vm, a| {
        // Changes come from other nodes, and this process has none, so no table waits for them.
        let name = match arg(a, 0) {
            Value::Record(header) => header.get(0).text(),
            _ => String::new(),
        };
        let what = match vm.find_global(&name).map(|global| vm.global(global)) {
            None => format!("no such identifier {name}"),
            Some(Value::Table(_)) => format!("{name} has no PublishOnChange state!"),
            Some(_) => format!("{name} not a table!"),
        };
        let text = format!("apply_table_change_infos: {what}");
        vm.report(crate::diagnostics::Severity::Warning, text);
        Ok(Value::Bool(false))
    }),
    ("Cluster::set_table_change_infos_forward_topic", nothing),
    ("Broker::__peering_stats", empty),
    ("get_login_state", zero),
    ("set_login_state", no),
    ("get_contents_file", |vm, a| {
        vm.builtin_error_with("unknown connection id in get_contents_file()", arg(a, 0));
        Ok(Value::File(vm.m.out.standard_error(vm.m.now)))
    }),
    ("dump_rule_stats", dump_rule_stats),
    ("PacketAnalyzer::PPPoE::session_id", |_, _| Ok(Value::Count(0xffff_ffff))),
    ("PacketAnalyzer::Geneve::get_options", empty),
    // No code is compiled ahead of time and profiled.
    ("ZAM::Prof::set_module_profiling", zero),
    ("ZAM::Prof::get_module_profile", zeros),
    ("ZAM::Prof::estimated_profiling_overhead", |_, _| Ok(Value::Interval(0.0))),
    ("table_pattern_matcher_stats", |vm, a| {
        let Some(table) = arg(a, 0).table().cloned() else {
            vm.builtin_error("pattern-table_stats() requires a table argument");
            return Ok(Value::Unset);
        };
        let index = vm.p.types.table(table.ty()).map(|ty| ty.index.clone()).unwrap_or_default();
        if !matches!(*index, [one] if vm.p.types.tag(one) == Tag::Pattern) {
            let text = "pattern_table_stats() requires a single index of type pattern";
            vm.builtin_error(text);
            return Ok(Value::Unset);
        }
        matcher_stats(vm, 1, &table.pattern_stats())
    }),
    ("Cluster::Backend::__init", |vm, _| {
        let chosen = vm.global_named("Cluster::backend");
        let zeromq = vm.enum_named("Cluster::CLUSTER_BACKEND_ZEROMQ");
        let has_backend = !zeromq.is_set() || chosen.int() != zeromq.int();
        if !has_backend {
            vm.builtin_error(NO_ZEROMQ);
        }
        Ok(Value::Bool(has_backend))
    }),
    ("Cluster::__init", yes),
    ("Cluster::publish_rr", |vm, a| publish_to_pool(vm, a, "Cluster::rr_topic")),
    ("Cluster::publish_hrw", |vm, a| publish_to_pool(vm, a, "Cluster::hrw_topic")),
    ("Cluster::__subscribe", yes),
    ("Cluster::__unsubscribe", yes),
    ("Cluster::__listen_websocket", no),
    ("Broker::__set_metrics_export_interval", yes),
    ("Broker::__set_metrics_export_topic", yes),
    ("Broker::__set_metrics_import_topics", yes),
    ("Broker::__set_metrics_export_endpoint_name", yes),
    ("Broker::__set_metrics_export_prefixes", yes),
    ("Broker::__subscribe", yes),
    ("Broker::__unsubscribe", yes),
    ("Broker::__forward", yes),
    ("Broker::__peer", yes),
    ("Broker::__peer_no_retry", yes),
    ("Broker::__unpeer", yes),
    ("Broker::__is_outbound_peering", no),
    ("Broker::__peers", empty),
    ("Broker::__node_id", |_, _| Ok(Value::string(""))),
    ("Broker::__flush_logs", zero),
    ("Broker::__publish_id", yes),
    ("Broker::__publish", yes),
    ("Broker::__listen", |_, _| {
        Ok(Value::Port(crate::literal::Port { number: 0, protocol: crate::literal::Protocol::Tcp }))
    }),
    ("Telemetry::listen_prometheus", yes),
    ("Spicy::__toggle_analyzer", no),
    ("Spicy::__resource_usage", empty),
    ("EventMetadata::current_all", |vm, _| {
        let items = match (event_time(vm), vm.type_named("EventMetadata::Entry")) {
            (Some(time), Some(ty)) => {
                let id = vm.enum_named(NETWORK_TIMESTAMP);
                vec![Value::Record(Record::new(ty, vec![id, Value::Time(time)]))]
            }
            _ => Vec::new(),
        };
        Ok(Value::Vector(Vector::new(vm.result_type(), items)))
    }),
    ("EventMetadata::current", |vm, a| {
        let is_time = split_name(vm, arg(a, 0)) == NETWORK_TIMESTAMP.split_once("::");
        let time = event_time(vm).filter(|_| is_time).map(Value::Time);
        Ok(Value::Vector(Vector::new(vm.result_type(), time.into_iter().collect())))
    }),
    ("current_event_time", |vm, _| Ok(Value::Time(event_time(vm).unwrap_or(-1.0)))),
    ("EventMetadata::register", |vm, a| {
        let Value::Type(ty) = arg(a, 1) else {
            vm.builtin_error("register_event_metadata() expects type");
            return Ok(Value::Bool(false));
        };
        let known = vm.m.state.event_metadata.get(&arg(a, 0).int()).copied();
        if known.is_none() && !has_any(vm, *ty, 0) {
            vm.m.state.event_metadata.insert(arg(a, 0).int(), *ty);
            return Ok(Value::Bool(true));
        }
        Ok(Value::Bool(known.is_some_and(|known| vm.p.same_type(known, *ty))))
    }),
];

const NETWORK_TIMESTAMP: &str = "EventMetadata::NETWORK_TIMESTAMP";

/// The timestamp in the metadata of the current event, if events carry metadata.
fn event_time(vm: &Vm<'_>) -> Option<f64> {
    let is_added = vm.global_named("EventMetadata::add_network_timestamp").truth();
    Some(vm.m.event_time).filter(|time| is_added && *time >= 0.0)
}

/// Registers a packet analyzer for an identifier of its parent; warns if it replaces another one.
fn map_packet_analyzer(vm: &mut Vm<'_>, parent: &Value, identifier: u64, child: &Value) {
    let key = (parent.int(), identifier);
    let before = vm.m.state.packet_analyzers.insert(key, child.clone());
    if let Some(before) = before.filter(|before| before.int() != child.int()) {
        let (before, after) = (analyzer_name(vm, &before), analyzer_name(vm, child));
        let number = format!("{identifier:#x}");
        let text =
            format!("Overwriting packet analyzer mapping {number:>8} => {before} with {after}");
        vm.report(crate::diagnostics::Severity::Info, text);
    }
}

/// The part of a tag's name before `::ANALYZER_`.
fn kind<'v>(vm: &'v Vm<'_>, value: &Value) -> &'v str {
    split_name(vm, value).map_or("", |(kind, _)| kind)
}

/// The full name of a tag, split before its name within the module.
fn split_name<'v>(vm: &'v Vm<'_>, value: &Value) -> Option<(&'v str, &'v str)> {
    let Value::Enum(ty, number) = value else { return None };
    let name = crate::value::describe::enum_text(vm.p, *ty, *number);
    let end = name.bytes().position(|byte| byte == b':')?;
    Some((name.get(..end)?, name.get(end..)?.strip_prefix("::")?))
}

fn analyzer_name<'v>(vm: &'v Vm<'_>, value: &Value) -> &'v str {
    split_name(vm, value).and_then(|(_, name)| name.strip_prefix("ANALYZER_")).unwrap_or("<error>")
}

fn known_tag(vm: &Vm<'_>, name: &str) -> Value {
    let name = name.to_uppercase();
    for kind in ["Analyzer", "PacketAnalyzer", "Files"] {
        let tag = vm.enum_named(&format!("{kind}::ANALYZER_{name}"));
        if tag.is_set() {
            return tag;
        }
    }
    Value::Unset
}

fn tag(vm: &Vm<'_>, name: &str) -> Value {
    let found = known_tag(vm, name);
    if found.is_set() { found } else { vm.enum_named("AllAnalyzers::ANALYZER_ERROR") }
}

/// Publishes to the node of a pool that the script function `topic` chooses; does nothing if the pool is empty.
fn publish_to_pool(vm: &mut Vm<'_>, args: &[Value], topic: &str) -> Result<Value> {
    let ty = arg(args, 0).record().map(|record| record.ty());
    let name = ty.and_then(|ty| vm.p.types.data(ty).name).map(|name| vm.p.name(name));
    let is_pool = name == Some("Cluster::Pool");
    if !is_pool {
        vm.builtin_error("expected type Cluster::Pool for pool");
        return Ok(Value::Bool(false));
    }
    if topic == "Cluster::rr_topic" && arg(args, 1).bytes().is_none() {
        let given = crate::describe::tag_name(vm.p.types.get(arg(args, 1).ty()));
        vm.builtin_error(format!("expected type string for key, got {given}"));
        return Ok(Value::Unset);
    }
    let Some(func) = vm.function_named(topic) else { return Ok(Value::Bool(false)) };
    let topic = vm.call_func(func, &[arg(args, 0).clone(), arg(args, 1).clone()])?;
    if topic.str_bytes().is_empty() {
        return Ok(Value::Bool(false));
    }
    let rest = args.get(2..).unwrap_or(&[]);
    super::data::publish(vm, &[&[topic], rest].concat())
}

/// Components of a kind: `get_plugin_components`.
fn components(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let category = arg(args, 0).text();
    let (ty, prefix) = match category.as_str() {
        "READER" => ("Input::Reader", "Input::READER_"),
        "WRITER" => ("Log::Writer", "Log::WRITER_"),
        "ANALYZER" => ("Analyzer::Tag", "Analyzer::ANALYZER_"),
        "PACKET_ANALYZER" => ("PacketAnalyzer::Tag", "PacketAnalyzer::ANALYZER_"),
        "FILE_ANALYZER" => ("Files::Tag", "Files::ANALYZER_"),
        "CLUSTER_BACKEND" => ("Cluster::BackendTag", "Cluster::CLUSTER_BACKEND_"),
        "EVENT_SERIALIZER" => ("Cluster::EventSerializerTag", "Cluster::EVENT_SERIALIZER_"),
        "LOG_SERIALIZER" => ("Cluster::LogSerializerTag", "Cluster::LOG_SERIALIZER_"),
        "STORAGE_BACKEND" => ("Storage::Backend", "Storage::STORAGE_BACKEND_"),
        "STORAGE_SERIALIZER" => ("Storage::Serializer", "Storage::STORAGE_SERIALIZER_"),
        "IOSOURCE" | "PKTSRC" | "PKTDUMPER" | "SESSION_ADAPTER" => ("", ""),
        _ => {
            let text = format!("Unknown category type: {category}");
            vm.report(crate::diagnostics::Severity::Error, text);
            return Ok(Value::Unset);
        }
    };
    let values = vm
        .type_named(ty)
        .and_then(|ty| vm.p.types.enumeration(ty))
        .map(|values| values.values.clone())
        .unwrap_or_default();
    let element = vm.type_named("PluginComponent").unwrap_or(TypeId::VOID);
    let mut items = Vec::new();
    for value in values {
        let Some(name) = vm.p.name(value.name).strip_prefix(prefix) else { continue };
        let fields = vec![
            Value::string(name),
            Value::string(name),
            Value::string(format!("{category}_{name}")),
            Value::Bool(true),
        ];
        items.push(Value::Record(Record::new(element, fields)));
    }
    Ok(Value::Vector(Vector::new(vm.result_type(), items)))
}

/// Whether a host name matches the name in a certificate, whose first label may contain one `*`.
fn fits_host(host: &[u8], name: &[u8]) -> bool {
    if host.contains(&0) {
        return false;
    }
    let split = |text: &[u8]| -> Option<(Vec<u8>, Vec<u8>)> {
        let dot = text.iter().position(|byte| *byte == b'.')?;
        Some((text[..dot].to_ascii_lowercase(), text[dot..].to_ascii_lowercase()))
    };
    if host.eq_ignore_ascii_case(name) {
        return true;
    }
    let (Some((label, domain)), Some((wanted, rest))) = (split(host), split(name)) else {
        return false;
    };
    // A wildcard is permitted only if at least two labels follow.
    if domain != rest || rest.iter().filter(|byte| **byte == b'.').count() < 2 {
        return false;
    }
    let Some(star) = wanted.iter().position(|byte| *byte == b'*') else { return false };
    let (front, back) = (&wanted[..star], &wanted[star + 1..]);
    !back.contains(&b'*')
        && label.len() >= front.len() + back.len()
        && label.starts_with(front)
        && label.ends_with(back)
}

/// Whether the type contains types that messages cannot carry.
fn has_any(vm: &Vm<'_>, ty: TypeId, depth: usize) -> bool {
    use crate::types::Type;
    if depth > 100 {
        return false;
    }
    match vm.p.types.get(ty) {
        Type::Any | Type::File | Type::Func(_) | Type::Opaque(_) => true,
        Type::Vector(element) => has_any(vm, *element, depth + 1),
        Type::Table(table) => {
            table.index.iter().chain(table.value.as_ref()).any(|part| has_any(vm, *part, depth + 1))
        }
        Type::Record(record) => record.fields.iter().any(|field| has_any(vm, field.ty, depth + 1)),
        _ => false,
    }
}
