//! Script options that configure the analysis.

use gannet_event::Command;

use super::{interest, natives, packets};
use crate::value::Value;
use crate::vm::Vm;

/// Passes the options to the analysis, before the first packet.
pub(super) fn pass(vm: &mut Vm<'_>) {
    detect(vm);
    settings(vm);
    likely_ports(vm);
    tunnel_ports(vm);
    upgrades(vm);
    pipe_names(vm);
    packet_thresholds(vm);
    skipped_bytes(vm);
    // The option exists only with Zeek's scripts.
    if vm.find_global("Weird::sampling_threshold").is_some() {
        crate::bif::pass_sampling(vm);
    }
    if interest::looks_connections_up(vm) {
        vm.m.state.traffic.commands.push(Command::WatchAll);
    }
    let unchecked = packets::nets(&vm.global_named("ignore_checksums_nets"));
    if !unchecked.is_empty() {
        vm.m.state.traffic.commands.push(Command::Unchecked(unchecked));
    }
}

/// Directories of Zeek's scripts whose `dpd.sig` detects a protocol, with its analyzers.
const DETECTED: &[(&str, &[&str])] = &[
    ("dce-rpc", &["DCE_RPC"]),
    ("dhcp", &["DHCP"]),
    ("dnp3", &["DNP3_TCP", "DNP3_UDP"]),
    ("ftp", &["FTP"]),
    ("http", &["HTTP"]),
    ("irc", &["IRC"]),
    ("krb", &["KRB", "KRB_TCP"]),
    ("ldap", &["LDAP_TCP", "LDAP_UDP"]),
    ("mqtt", &["MQTT"]),
    ("pop3", &["POP3"]),
    ("postgresql", &["POSTGRESQL"]),
    ("quic", &["QUIC"]),
    ("rdp", &["RDP", "RDPEUDP"]),
    ("redis", &["REDIS"]),
    ("rfb", &["RFB"]),
    ("sip", &["SIP"]),
    ("smb", &["SMB"]),
    ("smtp", &["SMTP"]),
    ("socks", &["SOCKS"]),
    ("ssh", &["SSH"]),
    ("ssl", &["SSL", "DTLS"]),
    ("xmpp", &["XMPP"]),
];

/// Ports of likely servers (`likely_server_ports`).
fn likely_ports(vm: &mut Vm<'_>) {
    if let Value::Table(table) = vm.global_named("likely_server_ports") {
        let port = |key: Value| match crate::value::table::parts(&key).first() {
            Some(Value::Port(port)) => Some((natives::protocol(port.protocol), port.number)),
            _ => None,
        };
        let ports = table.keys().into_iter().filter_map(port).collect();
        vm.m.state.traffic.commands.push(Command::LikelyPorts(ports));
    }
}

/// Link types whose packets `PacketAnalyzer::SKIP` analyzes after their first bytes.
fn skipped_bytes(vm: &mut Vm<'_>) {
    let [root, skip] =
        ["ROOT", "SKIP"].map(|name| vm.enum_named(&format!("{PACKET_PREFIX}{name}")));
    if !skip.is_set() {
        return;
    }
    let bytes = vm.global_named("PacketAnalyzer::SKIP::skip_bytes").count();
    let default = natives::tag_name(vm, &vm.global_named("PacketAnalyzer::SKIP::default_analyzer"));
    let mapped = vm.m.state.packet_analyzers.iter();
    let skipping = mapped.filter(|(_, child)| child.int() == skip.int());
    let mut parents: Vec<_> = skipping.map(|((parent, number), _)| (*parent, *number)).collect();
    parents.sort_unstable();
    for (parent, number) in parents {
        match u32::try_from(number) {
            Ok(link_type) if parent == root.int() && default == format!("{PACKET_PREFIX}IP") => {
                vm.m.state.traffic.skips_bytes = true;
                vm.m.state.traffic.commands.push(Command::SkipBytes { link_type, bytes });
            }
            _ => {
                let text = "ANALYZER_SKIP has an effect only for links (ANALYZER_ROOT) that carry ANALYZER_IP";
                vm.report(crate::diagnostics::Severity::Warning, text);
            }
        }
    }
}

/// Prefix of the names of packet analyzers.
const PACKET_PREFIX: &str = "PacketAnalyzer::ANALYZER_";

/// Packet counts at which connections are reported, if scripts handle that.
fn packet_thresholds(vm: &mut Vm<'_>) {
    let name = "conn_generic_packet_threshold_crossed";
    if let Value::Table(table) = vm.global_named("ConnThreshold::generic_packet_thresholds")
        && vm.function_named(name).is_some_and(|func| interest::is_handled(vm, func))
    {
        let number = |key: Value| crate::value::table::parts(&key).first().map(Value::count);
        let mut all: Vec<_> = table.keys().into_iter().filter_map(number).collect();
        all.retain(|number| *number > 0);
        all.sort_unstable();
        vm.m.state.traffic.commands.push(Command::PacketThresholds(all));
    }
}

/// UDP ports of tunnels with their packet analyzers, if they differ from the defaults.
fn tunnel_ports(vm: &mut Vm<'_>) {
    let udp = vm.enum_named("PacketAnalyzer::ANALYZER_UDP");
    let mapped = vm.m.state.packet_analyzers.iter();
    let of_udp = mapped.filter(|((parent, _), _)| udp.is_set() && *parent == udp.int());
    let port = |((_, number), analyzer): (&(i64, u64), &Value)| {
        Some((u16::try_from(*number).ok()?, natives::tag_name(vm, analyzer)))
    };
    let mut ports: Vec<_> = of_udp.filter_map(port).collect();
    ports.sort_unstable();
    let usual =
        DEFAULT_TUNNELS.map(|(port, name)| (port, format!("PacketAnalyzer::ANALYZER_{name}")));
    if !ports.is_empty() && ports != usual {
        vm.m.state.traffic.has_other_tunnels = true;
        vm.m.state.traffic.commands.push(Command::TunnelPorts(ports));
    }
}

/// The UDP ports of tunnels that Zeek's scripts register, sorted.
const DEFAULT_TUNNELS: [(u16, &str); 7] = [
    (2123, "GTPV1"),
    (2152, "GTPV1"),
    (3544, "TEREDO"),
    (4754, "GRE"),
    (4789, "VXLAN"),
    (5072, "AYIYA"),
    (6081, "GENEVE"),
];

/// Analyzers of protocols to which HTTP connections are upgraded.
fn upgrades(vm: &mut Vm<'_>) {
    let entries = match vm.global_named("HTTP::upgrade_analyzers") {
        Value::Table(table) => table.entries(),
        _ => Vec::new(),
    };
    let analyzer = |(key, tag): (Value, Value)| {
        let protocol = crate::value::table::parts(&key).first()?.str_bytes().to_vec();
        Some((protocol, natives::tag_name(vm, &tag)))
    };
    let all = entries.into_iter().filter_map(analyzer).collect();
    vm.m.state.traffic.commands.push(Command::Upgrades(all));
}

/// Names of SMB pipes (files that only pipe trees have).
fn pipe_names(vm: &mut Vm<'_>) {
    if let Value::Table(table) = vm.global_named("SMB::pipe_filenames") {
        let name =
            |key: Value| Some(crate::value::table::parts(&key).first()?.str_bytes().to_vec());
        let names = table.keys().into_iter().filter_map(name).collect();
        vm.m.state.traffic.commands.push(Command::PipeNames(names));
    }
}

/// Script options that configure analyzers.
const SETTINGS: &[&str] = &[
    "DCE_RPC::max_cmd_reassembly",
    "DCE_RPC::max_frag_data",
    "FTP::max_command_length",
    "Files::enable_reassembler",
    "Files::reassembly_buffer_size",
    "Gnutella::max_header_length",
    "Gnutella::max_line_length",
    "MIME::max_depth",
    "MIME::max_header_bytes",
    "MQTT::max_payload_size",
    "NCP::max_frame_size",
    "NFS3::return_data",
    "NFS3::return_data_first_only",
    "NFS3::return_data_max",
    "POP3::max_pending_commands",
    "POP3::max_unknown_client_commands",
    "SMB::max_andx_depth",
    "SMB::max_dce_rpc_analyzers",
    "SMB::max_pending_messages",
    "SMTP::bdat_max_line_length",
    "SMTP::enable_rfc822_msg_file_analysis",
    "SSH::max_kexinit_compression_algorithms",
    "SSH::max_kexinit_encryption_algorithms",
    "SSH::max_kexinit_hostkey_algorithms",
    "SSH::max_kexinit_kex_algorithms",
    "SSH::max_kexinit_languages",
    "SSH::max_kexinit_mac_algorithms",
    "SSH::max_packet_length",
    "SSH::max_string_length",
    "SSL::dtls_max_reported_version_errors",
    "SSL::dtls_max_version_errors",
    "SSL::max_alerts_per_record",
    "Tunnel::delay_gtp_confirmation",
    "Tunnel::delay_teredo_confirmation",
    "Tunnel::ip_tunnel_timeout",
    "Tunnel::max_changes_per_connection",
    "Tunnel::max_depth",
    "Tunnel::validate_vxlan_checksums",
    "UnknownProtocol::first_bytes_count",
    "UnknownProtocol::sampling_duration",
    "UnknownProtocol::sampling_rate",
    "UnknownProtocol::sampling_threshold",
    "WebSocket::max_control_frame_size",
    "WebSocket::payload_chunk_size",
    "default_file_bof_buffer_size",
    "default_file_timeout_interval",
    "dns_max_compression_chain_depth",
    "dns_max_queries",
    "dns_skip_all_addl",
    "dns_skip_all_auth",
    "dpd_buffer_size",
    "dpd_ignore_ports",
    "dpd_max_packets",
    "frag_timeout",
    "http_entity_data_delivery_size",
    "max_analyzer_violations",
    "mime_segment_length",
    "mime_segment_overlap_length",
    "rpc_max_pending_calls",
    "skip_http_data",
    "truncate_http_URI",
];

/// Inactivity timeouts of connections and their defaults, in seconds; 0 disables them.
const TIMEOUTS: &[(&str, f64)] = &[
    ("tcp_inactivity_timeout", 300.0),
    ("udp_inactivity_timeout", 60.0),
    ("icmp_inactivity_timeout", 60.0),
    ("unknown_ip_inactivity_timeout", 60.0),
];

/// Timeouts of UDP sessions of protocols and their defaults, in seconds.
const SESSIONS: &[(&str, f64)] =
    &[("dns_session_timeout", 10.0), ("netbios_ssn_session_timeout", 15.0), ("rpc_timeout", 24.0)];

/// Options of the TCP analyzer with their defaults: intervals in seconds, booleans as 0 or 1.
const TCP: &[(&str, f64)] = &[
    ("partial_connection_ok", 1.0),
    ("report_gaps_for_partial", 0.0),
    ("tcp_SYN_ack_ok", 1.0),
    ("tcp_SYN_timeout", 5.0),
    ("tcp_attempt_delay", 5.0),
    ("tcp_close_delay", 5.0),
    ("tcp_connection_linger", 5.0),
    ("tcp_excessive_data_without_further_acks", 10_485_760.0),
    ("tcp_max_above_hole_without_any_acks", 16_384.0),
    ("tcp_max_initial_window", 16_384.0),
    ("tcp_partial_close_delay", 3.0),
    ("tcp_reset_delay", 5.0),
    ("tcp_session_timer", 6.0),
    ("tcp_storm_interarrival_thresh", 1.0),
    ("tcp_storm_thresh", 1_000.0),
];

/// Options of Zeek's analysis that have no effect here, with their defaults: intervals in seconds, booleans as 0 or 1.
const WITHOUT_EFFECT: &[(&str, f64)] = &[
    ("PacketAnalyzer::max_depth", 25.0),
    ("bits_per_uid", 96.0),
    ("detect_filtered_trace", 0.0),
    ("dpd_reassemble_first_packets", 1.0),
    ("ignore_keep_alive_rexmit", 0.0),
    ("non_analyzed_lifetime", 0.0),
    ("tcp_match_undelivered", 1.0),
];

/// File names that have no effect here; the default is empty.
const FILES_WITHOUT_EFFECT: &[&str] = &["KRB::keytab"];

/// Warns of changed options that have no effect.
fn warn_of_options(vm: &mut Vm<'_>) {
    let numbers = WITHOUT_EFFECT.iter().map(|(name, usual)| (*name, is_changed(vm, name, *usual)));
    let mut changed: Vec<_> = numbers.collect();
    let is_named = |name: &str| vm.global_named(name).bytes().is_some_and(|file| !file.is_empty());
    changed.extend(FILES_WITHOUT_EFFECT.iter().map(|name| (*name, is_named(name))));
    for (name, _) in changed.into_iter().filter(|(_, is_changed)| *is_changed) {
        let text = format!("{name} has no effect in gannet");
        vm.report(crate::diagnostics::Severity::Warning, text);
    }
}

/// Whether an option differs from its default.
fn is_changed(vm: &Vm<'_>, name: &str, usual: f64) -> bool {
    match vm.global_named(name) {
        Value::Count(value) => value as f64 != usual,
        Value::Int(value) => value as f64 != usual,
        Value::Bool(value) => f64::from(u8::from(value)) != usual,
        Value::Double(value) | Value::Interval(value) => value != usual,
        _ => false,
    }
}

/// Passes the values of options to the analysis.
fn settings(vm: &mut Vm<'_>) {
    for name in SETTINGS {
        pass_setting(vm, name);
    }
    // The analysis has limits of its own while the script options have their defaults.
    for (name, usual) in TCP {
        if is_changed(vm, name, *usual) {
            pass_setting(vm, name);
        }
    }
    warn_of_options(vm);
    // The analysis has the same defaults.
    let timeouts = TIMEOUTS.iter().map(|(name, default)| (name, default, u64::MAX));
    for (name, default, zero) in timeouts.chain(SESSIONS.iter().map(|(n, d)| (n, d, 1))) {
        let seconds = vm.global_named(name);
        if !is_changed(vm, name, *default) || !seconds.is_set() {
            continue;
        }
        // Rounded up to whole seconds.
        let seconds = seconds.double().ceil();
        let value = if seconds <= 0.0 { zero } else { seconds as u64 };
        vm.m.state.traffic.commands.push(Command::Setting { name, value });
    }
    let factory = natives::tag_name(vm, &vm.global_named("ConnKey::factory"));
    let value = u64::from(factory == "ConnKey::CONNKEY_VLAN_FIVETUPLE");
    let command = Command::Setting { name: "ConnKey::factory", value };
    vm.m.state.traffic.commands.push(command);
}

/// Passes the value of an option to the analysis, if that depends on it.
pub(crate) fn setting_changed(vm: &mut Vm<'_>, name: &str) {
    if let Some(name) = SETTINGS.iter().find(|setting| **setting == name) {
        pass_setting(vm, name);
    }
}

fn pass_setting(vm: &mut Vm<'_>, name: &'static str) {
    let value = match vm.global_named(name) {
        Value::Count(value) => value,
        Value::Bool(value) => u64::from(value),
        // A negative number stands for no limit.
        Value::Int(value) => u64::try_from(value).unwrap_or(u64::MAX),
        // Nanoseconds.
        Value::Interval(value) => (value * 1e9) as u64,
        _ => return,
    };
    vm.m.state.traffic.commands.push(Command::Setting { name, value });
}

/// Enables detection of protocols whose signatures scripts loaded.
fn detect(vm: &mut Vm<'_>) {
    for file in vm.p.command_signatures.iter().chain(&vm.p.signature_files) {
        if !crate::command::signatures::is_native_for(vm, file) {
            continue;
        }
        let Some(folder) = file.strip_suffix("/dpd.sig").and_then(|path| path.rsplit('/').next())
        else {
            continue;
        };
        let found = DETECTED.iter().filter(|(name, _)| *name == folder).flat_map(|(_, all)| *all);
        for name in found {
            let analyzer = format!("Analyzer::ANALYZER_{name}");
            vm.m.state.traffic.commands.push(Command::Detect { analyzer, on: true });
        }
    }
}
