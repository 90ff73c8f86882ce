//! Events of packets for scripts: what analyzers raise becomes calls of script handlers.
//!
//! ```text
//! analyzers ──Raised──▶ Handlers (a Listener) ──plan of the event──▶ values ──▶ event queue of the Vm
//!                 packet done ─────────────────────────────────────────────────▶ drain
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `certificate_cache` | certificates that scripts know already |
//! | `certificates` | checks of certificates |
//! | `counts` | what statistics count |
//! | `decide` | which packets scripts discard, and which connections they keep |
//! | `plan` | how the packed arguments of an event become script values |
//! | `signatures` | what signatures find in the traffic |
//! | `steering` | whether scripts ask something of the analysis while packets are read |
//! | `state` | the records of connections and files, which live as long as these |
//! | `traffic` | what built-in functions know of connections, files and the packet |
//! | `used` | what handlers read of the arguments of an event |
//! | `requests` | functions that skip contents, set states of logins, match signatures, show sequence numbers |
//! | `natives` | built-in functions that look at the traffic or steer its analysis |
//!
//! What scripts ask of the analysis (`disable_analyzer`, `Files::add_analyzer`, …) becomes a
//! [`Command`], which the analysis carries out once the events that wait were handled.
//!
//! A [`Source`] reads the packets: this crate knows events only. Values of scripts are not shared with other threads, so
//! the run is kept in the thread that reads the packets, and [`Handlers`] finds it there. Analyzers run on this thread as
//! well, or, for scripts that do not [steer](steering) them, on several.

mod certificate_cache;
mod certificates;
mod counts;
mod decide;
mod listening;
mod natives;
mod packets;
mod plan;
mod recordings;
mod repeated;
mod requests;
pub(crate) mod signatures;
mod state;
mod steering;
mod traffic;
mod used;

use std::cell::RefCell;
use std::io::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gannet_base::Time;
use gannet_event::{Command, Decl, Interest, Listener, Place, Raised, Value as Head};

use crate::command::Options;
use crate::evaluate::Stop;
use crate::ids::{FuncId, TypeId};
use crate::program::Program;
use crate::types::Flavor;
use crate::value::Value;
use crate::vm::{Machine, Vm};

pub(crate) use certificate_cache::TABLE as CERTIFICATE_CACHE;
pub(crate) use certificates::TABLE as CERTIFICATES;
pub(crate) use counts::TABLE as COUNTS;
pub(crate) use decide::TABLE as DECISIONS;
pub(crate) use natives::TABLE as NATIVES;
pub(crate) use natives::{note_limit, status_due, watch};
pub use packets::FilterCheck;
pub(crate) use packets::TABLE as PACKET_NATIVES;
use plan::Plan;
pub(crate) use recordings::TABLE as RECORDINGS;
pub(crate) use requests::TABLE as REQUESTS;
use signatures::Matching;
use state::States;
pub use traffic::Traffic;
use traffic::{Names, Numbered, Packet};
use used::Used;

/// Where packets come from: what turns them into events.
pub trait Source: Send {
    /// All events that there are.
    fn catalogue(&self) -> Vec<&'static Decl>;

    /// Opens the capture or the interface that the options name, or neither: then there are no packets, but files that
    /// scripts read.
    ///
    /// # Errors
    /// The error, in a line.
    fn open(&mut self, options: &Options) -> Result<(), String>;

    /// The type of the link of the capture by its number, where it is known before the first packet.
    fn link_type(&self, options: &Options) -> Option<u64>;

    /// How capture filters are checked.
    fn filter_check(&self) -> FilterCheck;

    /// Reads all packets on the calling thread, those of an interface until a signal comes, and delivers the events of
    /// `interest` to `listener`. Ends early once [`stops`] holds. Without packets, time advances while [`stays`] holds,
    /// until a signal comes.
    ///
    /// # Errors
    /// The error, in a line; packets read before it count.
    fn run(&mut self, start: Start, listener: Box<dyn Listener>) -> Result<(), String>;
}

/// With what packets are read.
pub struct Start {
    /// Events that have a handler.
    pub interest: Interest,
    /// Whether scripts say which analyzers start: no other ones do.
    pub scripted: bool,
    /// Whether connections that are open at the end are removed in the order of their ends, as Zeek does under
    /// seeds.
    pub in_key_order: bool,
    /// Whether scripts say that checksums are not verified.
    pub ignore_checksums: bool,
    /// Whether time follows the clock where there are no packets.
    pub follows_clock: bool,
}

/// Whether scripts want the run to go on without packets.
#[must_use]
pub fn stays() -> bool {
    RUN.with_borrow_mut(|run| {
        let Some(run) = run else { return false };
        let vm = run.machine.with(&mut run.program);
        vm.global_named("exit_only_after_terminate").truth()
    })
}

/// Whether scripts pass files to the analyzers of files themselves, which needs an analysis even without packets.
pub(crate) fn reads_files(vm: &Vm<'_>) -> bool {
    calls(vm, &["Input::add_analysis"])
}

/// Whether scripts ended the run: no more packets are read.
#[must_use]
pub fn stops() -> bool {
    RUN.with_borrow(|run| {
        run.as_ref().is_some_and(|run| run.stop.is_some() || run.machine.stop_requested)
    })
}

/// Whether the scripts ended in an error, or with `exit`: connections that are open are not ended either.
#[must_use]
pub fn failed() -> bool {
    RUN.with_borrow(|run| run.as_ref().is_some_and(|run| run.stop.is_some()))
}

/// Runs a program over the packets of `source`, from `zeek_init` to `zeek_done`. Returns the exit status.
pub fn run(
    mut program: Program,
    mut machine: Machine,
    options: &Options,
    source: &mut dyn Source,
) -> i32 {
    let is_live = options.interface.is_some();
    let has_packets = is_live || options.capture.is_some();
    machine.state.packetless = !has_packets;
    let traffic = &mut machine.state.traffic;
    traffic.reads = has_packets && !is_live;
    traffic.is_live = is_live;
    traffic.capture =
        options.capture.as_ref().or(options.interface.as_ref()).cloned().unwrap_or_default();
    traffic.filters.check = Some(source.filter_check());
    traffic.write.clone_from(&options.write);
    traffic.link_type = source.link_type(options);
    traffic.pace = options.pseudo_realtime.then(|| (Instant::now(), 0.0));
    let follows_clock = machine.with(&mut program).time_goes_on();
    let is_now = is_live || !has_packets && follows_clock;
    let now = if is_now { crate::vm::events::wall_clock() } else { 0.0 };
    machine.state.first_packet = now;
    let mut is_cut = false;
    let mut result = machine.with(&mut program).begin(now, is_live || !has_packets);
    if result.is_ok() && !machine.stop_requested {
        let mut interest = interest(&machine.with(&mut program), source);
        let scripted =
            machine.with(&mut program).function_named("Analyzer::__register_for_port").is_some();
        let in_key_order = machine.state.uids.is_deterministic();
        let salt = machine.with(&mut program).global_named("digest_salt");
        let traffic = &mut machine.state.traffic;
        traffic.names = in_key_order.then(|| Names::new(salt.str_bytes()));
        detect(&mut machine.with(&mut program));
        settings(&mut machine.with(&mut program));
        likely_ports(&mut machine.with(&mut program));
        tunnel_ports(&mut machine.with(&mut program));
        upgrades(&mut machine.with(&mut program));
        pipe_names(&mut machine.with(&mut program));
        packet_thresholds(&mut machine.with(&mut program));
        skipped_bytes(&mut machine.with(&mut program));
        let unchecked =
            packets::nets(&machine.with(&mut program).global_named("ignore_checksums_nets"));
        if !unchecked.is_empty() {
            machine.state.traffic.commands.push(Command::Unchecked(unchecked));
        }
        let ignore_checksums = machine.with(&mut program).global_named("ignore_checksums").truth();
        let states = States::default();
        let matching = machine.state.signatures.clone();
        let matching = matching.map(|all| Matching::new(&machine.with(&mut program), all));
        let names_analyzers = calls(&machine.with(&mut program), &["current_analyzer"]);
        let place = place(&machine.with(&mut program), options, &interest, source);
        if !decide::has_discarders(&machine.with(&mut program)) {
            // Until a filter of addresses is installed, no packet is discarded.
            let catalogue = source.catalogue();
            let question = catalogue.iter().find(|decl| decl.name == "gannet::discard_packet");
            question.into_iter().for_each(|decl| interest.remove(decl.id));
        }
        let run = Run {
            program,
            machine,
            ways: Vec::new(),
            states,
            names_analyzers,
            matching,
            over: false,
            drained: false,
            flushed: is_live.then(Instant::now),
            // Over live traffic, packets are rare at first.
            has_begun: !has_packets || is_live,
            has_time: false,
            stop: None,
        };
        RUN.set(Some(Box::new(run)));
        let read = source.run(
            Start { interest, scripted, in_key_order, ignore_checksums, follows_clock },
            Box::new(Handlers { place }),
        );
        let goes_on = !has_packets && !stops() && stays();
        let Some(mut run) = RUN.take() else { return 1 };
        for (path, error) in run.machine.state.traffic.dumps.finish() {
            run.machine.out.has_failed(&path, error);
        }
        let Run { program: p, machine: m, stop, .. } = *run;
        (program, machine) = (p, m);
        is_cut = read.is_err();
        if let Err(message) = read {
            let mut vm = machine.with(&mut program);
            vm.m.out.flush();
            vm.report(crate::diagnostics::Severity::Error, &message);
        }
        // A signal ended a run that goes on by itself.
        machine.state.terminated |= is_live || goes_on;
        machine.stop_requested |= is_live || goes_on;
        result = match stop {
            Some(stop) => Err(stop),
            None => machine.with(&mut program).after_packets(),
        };
    }
    let mut vm = machine.with(&mut program);
    let status = vm.end(result);
    let status = vm.end_output(status);
    if is_cut && status == 0 { 1 } else { status }
}

/// Rows and output of live traffic are in their files after this time at the latest.
const FLUSH: Duration = Duration::from_millis(500);

/// The life of a run by themselves: no event of an analyzer.
const OWN: [&str; 2] = ["zeek_init", "zeek_done"];

/// Events that scripts handle, and those that the records of connections and files need.
fn interest(vm: &Vm<'_>, source: &dyn Source) -> Interest {
    let handled = |name: &str| vm.function_named(name).is_some_and(|func| is_handled(vm, func));
    let mut interest = Interest::of(source.catalogue().into_iter(), |decl| {
        !OWN.contains(&decl.name) && !decl.scripted && handled(decl.name)
    });
    let signatures = vm.m.state.signatures.as_ref();
    let by_number = natives::disables_by_number(vm);
    // Also where scripts handle none of the events: time advances with packets, and timers are due.
    for decl in source.catalogue() {
        let needed = match decl.name {
            name if signatures.is_some_and(|all| all.needs(name)) => true,
            "new_connection"
            | "connection_state_remove"
            | "file_new"
            | "file_state_remove"
            | "net_done" => true,
            "get_file_handle" | "conn_weird" => vm.m.state.uids.is_deterministic(),
            "gannet::packet_bytes" => needs_bytes(vm),
            "gannet::packet_seen" => {
                !needs_bytes(vm)
                    && (calls(vm, &["get_current_packet_ts", "get_net_stats"])
                        || calls(vm, &counts::READERS))
            }
            "gannet::analyzer_planned" => {
                calls(vm, &["current_analyzer"]) || by_number || natives::asks_for_planned(vm)
            }
            "gannet::analyzers_numbered" => by_number,
            "gannet::tcp_options" => calls(vm, &["TCP::raw_options"]),
            "gannet::tcp_sequences" => calls(vm, &requests::OF_SEQUENCES),
            "gannet::login_state" => calls(vm, &requests::OF_LOGINS),
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
            "connection_timeout" => calls(vm, &counts::READERS),
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
    interest
}

/// Whether scripts or the command line want the bytes of packets.
fn needs_bytes(vm: &Vm<'_>) -> bool {
    calls(vm, &["get_current_packet", "dump_current_packet"]) || vm.m.state.traffic.write.is_some()
}

/// Whether a function has a body, enabled or not, or is an event and all events are raised.
fn is_handled(vm: &Vm<'_>, func: FuncId) -> bool {
    let function = &vm.p.functions[func];
    !function.bodies.is_empty() || (vm.m.generate_all && function.flavor == Flavor::Event)
}

/// Whether scripts call one of these functions.
fn calls(vm: &Vm<'_>, names: &[&str]) -> bool {
    let is_called =
        |name: &&str| vm.find_global(name).is_some_and(|global| vm.p.globals[global].uses > 0);
    names.iter().any(is_called)
}

/// Folders of Zeek's scripts whose `dpd.sig` says what a protocol begins with, and its analyzers.
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
    ("rdp", &["RDP"]),
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

/// Ports that scripts say servers are likely to have.
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

/// Links whose packets scripts read from behind their first bytes on.
fn skipped_bytes(vm: &mut Vm<'_>) {
    let [root, skip] = ["ROOT", "SKIP"].map(|name| vm.enum_named(&format!("{PACKET}{name}")));
    if !skip.is_set() {
        return;
    }
    let bytes = vm.global_named("PacketAnalyzer::SKIP::skip_bytes").count();
    let default = natives::tag_name(vm, &vm.global_named("PacketAnalyzer::SKIP::default_analyzer"));
    let mapped = vm.m.state.packet_analyzers.iter();
    let skipping = mapped.filter(|(_, child)| child.int() == skip.int());
    let mut places: Vec<_> = skipping.map(|((parent, number), _)| (*parent, *number)).collect();
    places.sort_unstable();
    for (parent, number) in places {
        match u32::try_from(number) {
            Ok(link_type) if parent == root.int() && default == format!("{PACKET}IP") => {
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

/// What names of packet analyzers begin with.
const PACKET: &str = "PacketAnalyzer::ANALYZER_";

/// Numbers of packets at which connections are reported, where scripts handle that.
fn packet_thresholds(vm: &mut Vm<'_>) {
    let name = "conn_generic_packet_threshold_crossed";
    if let Value::Table(table) = vm.global_named("ConnThreshold::generic_packet_thresholds")
        && vm.function_named(name).is_some_and(|func| is_handled(vm, func))
    {
        let number = |key: Value| crate::value::table::parts(&key).first().map(Value::count);
        let mut all: Vec<_> = table.keys().into_iter().filter_map(number).collect();
        all.retain(|number| *number > 0);
        all.sort_unstable();
        vm.m.state.traffic.commands.push(Command::PacketThresholds(all));
    }
}

/// UDP ports of tunnels, with the packet analyzer of each, where scripts have others than usual.
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
        USUAL_TUNNELS.map(|(port, name)| (port, format!("PacketAnalyzer::ANALYZER_{name}")));
    if !ports.is_empty() && ports != usual {
        vm.m.state.traffic.has_own_tunnels = true;
        vm.m.state.traffic.commands.push(Command::TunnelPorts(ports));
    }
}

/// The UDP ports of tunnels that Zeek's scripts register, in order.
const USUAL_TUNNELS: [(u16, &str); 7] = [
    (2123, "GTPV1"),
    (2152, "GTPV1"),
    (3544, "TEREDO"),
    (4754, "GRE"),
    (4789, "VXLAN"),
    (5072, "AYIYA"),
    (6081, "GENEVE"),
];

/// Analyzers of what HTTP connections are upgraded to, as scripts say.
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

/// Names of files that only trees of pipes have, as scripts say.
fn pipe_names(vm: &mut Vm<'_>) {
    if let Value::Table(table) = vm.global_named("SMB::pipe_filenames") {
        let name =
            |key: Value| Some(crate::value::table::parts(&key).first()?.str_bytes().to_vec());
        let names = table.keys().into_iter().filter_map(name).collect();
        vm.m.state.traffic.commands.push(Command::PipeNames(names));
    }
}

/// Options of scripts that steer analyzers.
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
    "dns_max_compression_chain_depth",
    "dns_max_queries",
    "dns_skip_all_addl",
    "dns_skip_all_auth",
    "dpd_buffer_size",
    "frag_timeout",
    "http_entity_data_delivery_size",
    "max_analyzer_violations",
    "mime_segment_length",
    "mime_segment_overlap_length",
    "rpc_max_pending_calls",
    "skip_http_data",
    "truncate_http_URI",
];

/// Silence after which connections end, or how long these last, and how long that is by default, in seconds.
const TIMEOUTS: &[(&str, f64)] = &[
    ("tcp_inactivity_timeout", 300.0),
    ("udp_inactivity_timeout", 60.0),
    ("icmp_inactivity_timeout", 60.0),
    ("dns_session_timeout", 10.0),
    ("netbios_ssn_session_timeout", 15.0),
    ("rpc_timeout", 24.0),
];

/// How TCP connections are followed, with the usual values: intervals are in seconds, switches 0 or 1.
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

/// Options of Zeek's analysis that have no effect here, with their usual values: intervals are in seconds, switches 0 or 1.
const WITHOUT_EFFECT: &[(&str, f64)] = &[
    ("dpd_reassemble_first_packets", 1.0),
    ("ignore_keep_alive_rexmit", 0.0),
    ("non_analyzed_lifetime", 0.0),
    ("tcp_match_undelivered", 1.0),
];

/// Names of files that have no effect here; empty ones are usual.
const FILES_WITHOUT_EFFECT: &[&str] = &["KRB::keytab"];

/// Warns of options that scripts have changed without effect.
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

/// Whether an option has another value than usual.
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
    // The analysis has limits of its own where scripts have the usual ones.
    for (name, usual) in TCP {
        if is_changed(vm, name, *usual) {
            pass_setting(vm, name);
        }
    }
    warn_of_options(vm);
    // As the analysis has them, these need no mention.
    for (name, default) in TIMEOUTS {
        let seconds = vm.global_named(name).double();
        if seconds > 0.0 && seconds != *default {
            let command = Command::Setting { name, value: seconds as u64 };
            vm.m.state.traffic.commands.push(command);
        }
    }
    let factory = natives::tag_name(vm, &vm.global_named("ConnKey::factory"));
    let value = u64::from(factory == "ConnKey::CONNKEY_VLAN_FIVETUPLE");
    let command = Command::Setting { name: "ConnKey::factory", value };
    vm.m.state.traffic.commands.push(command);
}

/// Passes the value of an option to the analysis, where that goes by it.
pub(crate) fn setting_changed(vm: &mut Vm<'_>, name: &str) {
    if let Some(name) = SETTINGS.iter().find(|setting| **setting == name) {
        pass_setting(vm, name);
    }
}

fn pass_setting(vm: &mut Vm<'_>, name: &'static str) {
    let value = match vm.global_named(name) {
        Value::Count(value) => value,
        Value::Bool(value) => u64::from(value),
        // A negative number, of what has no limit, is the largest one.
        Value::Int(value) => u64::try_from(value).unwrap_or(u64::MAX),
        // In nanoseconds.
        Value::Interval(value) => (value * 1e9) as u64,
        _ => return,
    };
    vm.m.state.traffic.commands.push(Command::Setting { name, value });
}

/// Analyzers whose signatures scripts loaded may start for what a connection begins with.
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

/// A run that is going on.
struct Run {
    program: Program,
    machine: Machine,
    /// How events reach scripts, each at its number.
    ways: Vec<Option<Rc<Way>>>,
    states: States,
    /// Whether scripts ask which analyzer raised an event.
    names_analyzers: bool,
    matching: Option<Matching>,
    /// The input ended: what is scheduled is due with the next drain.
    over: bool,
    /// Events of the current packet were drained.
    drained: bool,
    /// When logs and output were last flushed, of live traffic.
    flushed: Option<Instant>,
    /// The main loop has begun.
    has_begun: bool,
    /// The analysis reported that time begins.
    has_time: bool,
    /// How the scripts ended before the packets did.
    stop: Option<Stop>,
}

/// How an event reaches scripts.
struct Way {
    kind: Kind,
    /// Whether statistics count it.
    is_counted: bool,
    /// Whether connections or files begin or end with it, or are known from it on, even if no script handles it.
    is_noted: bool,
    /// How it is converted, if scripts handle it.
    plan: Option<EventPlan>,
}

/// What happens with an event besides its handlers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Other,
    /// A connection begins whose status is reported at intervals.
    ConnectionBegins,
    ConnectionRemoved,
    FileBegins,
    FileSniff,
    FileData,
    StreamContents,
    FileLimit,
    FileViolation,
    FileRemoved,
    Certificate,
    AnalyzerInfo,
    AnalyzerPlanned,
    AnalyzersNumbered,
    /// Sequence numbers, or the state of a login.
    ConnectionNoted,
    WebSocketBegins,
    RawPacket,
    PacketBytes,
    PacketSeen,
    TcpOptions,
    GeneveOptions,
    PppoeSession,
    /// The contents of a transport of this name.
    Contents(&'static str),
    InputEnds,
    /// Time begins with a packet, as long as that of packets is zero.
    TimeBegins,
}

impl Kind {
    fn of(vm: &Vm<'_>, name: &str) -> Self {
        match name {
            "new_connection" if natives::reports_status(vm) => Self::ConnectionBegins,
            "connection_state_remove" => Self::ConnectionRemoved,
            "file_new" | "file_over_new_connection" => Self::FileBegins,
            "file_sniff" => Self::FileSniff,
            "gannet::file_data" => Self::FileData,
            "gannet::file_violation" => Self::FileViolation,
            "gannet::stream_contents" => Self::StreamContents,
            "gannet::file_extraction_limit" => Self::FileLimit,
            "file_state_remove" => Self::FileRemoved,
            "analyzer_confirmation_info" | "analyzer_violation_info" => Self::AnalyzerInfo,
            "websocket_established" => Self::WebSocketBegins,
            "gannet::analyzer_planned" => Self::AnalyzerPlanned,
            "gannet::analyzers_numbered" => Self::AnalyzersNumbered,
            "gannet::tcp_sequences" | "gannet::login_state" => Self::ConnectionNoted,
            "raw_packet" => Self::RawPacket,
            "gannet::packet_bytes" => Self::PacketBytes,
            "gannet::packet_seen" => Self::PacketSeen,
            "gannet::tcp_options" => Self::TcpOptions,
            "gannet::geneve_options" => Self::GeneveOptions,
            "gannet::pppoe_session" => Self::PppoeSession,
            "udp_contents" => Self::Contents("udp"),
            "tcp_contents" => Self::Contents("tcp"),
            "net_done" => Self::InputEnds,
            "network_time_init" => Self::TimeBegins,
            name if name.starts_with("x509_") => Self::Certificate,
            _ => Self::Other,
        }
    }
}

impl Way {
    fn new(vm: &Vm<'_>, decl: &'static Decl) -> Self {
        let is_counted = matches!(
            decl.name,
            "new_connection"
                | "connection_state_remove"
                | "connection_timeout"
                | "file_new"
                | "file_state_remove"
                | "gannet::packet_done"
                | "gannet::weird_seen"
                | "net_done"
        );
        let is_noted = matches!(
            decl.name,
            "new_connection"
                | "connection_state_remove"
                | "file_state_remove"
                | "gannet::watched_connection"
                | "conn_weird"
        );
        let kind = Kind::of(vm, decl.name);
        // What happens with other ones looks at their arguments.
        let is_handled_only =
            matches!(kind, Kind::Other | Kind::ConnectionBegins | Kind::ConnectionRemoved);
        Self { kind, is_counted, is_noted, plan: plan_of(vm, decl, is_handled_only) }
    }
}

/// How an event becomes one of scripts.
struct EventPlan {
    func: FuncId,
    /// For each parameter of the declaration: the script's parameter, and how it is converted.
    params: Vec<(Option<usize>, Plan)>,
    /// How many parameters the script's event has.
    count: usize,
    /// Where no handler reads the connection that the event is about: its type, and whether scripts may look it up, so that
    /// it is known as it is at this event.
    skipped: Option<(TypeId, bool)>,
}

thread_local! {
    static RUN: RefCell<Option<Box<Run>>> = const { RefCell::new(None) };
}

/// Why one thread analyzes where scripts read statistics.
const STATISTICS: &str = "scripts read statistics of the analysis";

/// Where handlers run: in the thread of the analysis, or behind one of several threads.
fn place(vm: &Vm<'_>, options: &Options, interest: &Interest, source: &dyn Source) -> Place {
    if options.threads <= 1 {
        return Place::Analysis;
    }
    let whole = || {
        let catalogue = source.catalogue();
        let needs = |decl: &&&Decl| decl.one_thread && interest.has(decl.id);
        catalogue.iter().find(needs).map(|decl| match decl.name {
            "gannet::signature_data" => "signatures look at the traffic".to_owned(),
            "gannet::discard_packet" => "scripts may discard packets".to_owned(),
            "gannet::login_text" => "scripts list texts of logins".to_owned(),
            "gannet::packet_done" | "gannet::weird_seen" => STATISTICS.to_owned(),
            name => format!("handlers of {}", name.trim_start_matches("gannet::")),
        })
    };
    let counts = || calls(vm, &counts::READERS).then(|| STATISTICS.to_owned());
    let traffic = &vm.m.state.traffic;
    let why = if traffic.is_live {
        Some("the traffic is live".to_owned())
    } else if traffic.pace.is_some() {
        Some("packets are read as fast as they were captured".to_owned())
    } else if traffic.skips_bytes {
        Some("scripts skip the first bytes of packets".to_owned())
    } else if traffic.has_own_tunnels {
        Some("scripts choose the ports of tunnels".to_owned())
    } else if traffic.names.is_some() {
        Some("seeds give connections Zeek's names, in the order of their packets".to_owned())
    } else {
        let catalogue = source.catalogue();
        let raises = |name: &str| catalogue.iter().any(|decl| decl.name == name);
        steering::decider(vm, &raises).or_else(whole).or_else(counts)
    };
    if options.verbose {
        // Without a reader of messages there is none to say it to.
        let _ = match &why {
            Some(why) => writeln!(std::io::stderr(), "one thread analyzes: {why}"),
            None => writeln!(std::io::stderr(), "{} threads analyze", options.threads),
        };
    }
    if why.is_some() { Place::Analysis } else { Place::Caller }
}

/// The listener of the run of this thread.
struct Handlers {
    place: Place,
}

impl Handlers {
    fn with(f: impl FnOnce(&mut Run) -> Result<(), Stop>) {
        RUN.with_borrow_mut(|run| {
            if let Some(run) = run
                && run.stop.is_none()
                && let Err(stop) = f(run)
                && stop != Stop::Error
            {
                run.stop = Some(stop);
            }
        });
    }
}

impl Listener for Handlers {
    fn place(&self) -> Place {
        self.place
    }

    fn event(&mut self, event: &Raised<'_>) {
        Self::with(|run| run.event(event));
    }

    fn packet(&mut self, time: Time, number: u64) {
        Self::with(|run| {
            run.machine.state.traffic.number = number;
            run.packet(plan::seconds(time.as_nanos()))
        });
    }

    fn commands(&mut self, to: &mut Vec<Command>) {
        RUN.with_borrow_mut(|run| {
            let Some(run) = run else { return };
            to.append(&mut run.machine.state.traffic.commands);
            if run.stop.is_some() || run.machine.stop_requested {
                to.push(Command::Stop);
            }
        });
    }

    fn drained(&mut self) {
        Self::with(Run::drained);
    }

    fn decide(&mut self, question: &Raised<'_>) -> bool {
        let mut answer = false;
        Self::with(|run| {
            let mut vm = run.machine.with(&mut run.program);
            answer = decide::answer(&mut vm, &mut run.states, question)?;
            Ok(())
        });
        answer
    }
}

impl Run {
    fn event(&mut self, event: &Raised<'_>) -> Result<(), Stop> {
        let way = self.way(event.decl);
        if way.kind == Kind::InputEnds {
            self.loop_drains()?;
        }
        let mut vm = self.machine.with(&mut self.program);
        if way.is_counted {
            let state = &mut vm.m.state;
            state.traffic.counts.event(&mut state.metrics, event);
        }
        match way.kind {
            Kind::PacketBytes => return packet_bytes(&mut vm, event),
            Kind::PacketSeen => {
                packet_seen(&mut vm.m.state.traffic, event);
                return Ok(());
            }
            Kind::TcpOptions => {
                let mut reader = event.args();
                let options = event.decl.params.first().and_then(|param| reader.param(param));
                if let Some(Head::String(options)) = options {
                    vm.m.state.traffic.tcp_options = options.to_vec();
                }
                return Ok(());
            }
            Kind::GeneveOptions => {
                if let Some(options) = event.args().bytes() {
                    vm.m.state.traffic.geneve_options.insert(0, options.to_vec());
                }
                return Ok(());
            }
            Kind::PppoeSession => {
                vm.m.state.traffic.pppoe_session = event.args().count();
                return Ok(());
            }
            Kind::ConnectionNoted => {
                requests::note(&mut vm.m.state.traffic, event);
                return Ok(());
            }
            Kind::FileData => return listening::data(&mut vm, &mut self.states, event),
            Kind::StreamContents => {
                recordings::write(&mut vm, event);
                return Ok(());
            }
            Kind::FileViolation => return listening::violation(&mut vm, &mut self.states, event),
            Kind::FileLimit => return listening::limit(&mut vm, &mut self.states, event),
            _ => {}
        }
        if let Some(matching) = &mut self.matching
            && matching.event(&mut vm, &mut self.states, event)?
        {
            return Ok(());
        }
        match way.kind {
            Kind::InputEnds => {
                self.over = true;
                vm.m.state.traffic.packet = None;
                if vm.m.state.traffic.reads {
                    let path = Value::string(&vm.m.state.traffic.capture);
                    vm.queue_named("Pcap::file_done", vec![path]);
                }
            }
            // The first comes before the timers that are due with the packet.
            Kind::TimeBegins if !std::mem::replace(&mut self.has_time, true) => return Ok(()),
            Kind::AnalyzerPlanned => return self.states.plan(&mut vm, event),
            Kind::AnalyzersNumbered => return self.states.number(&mut vm, event),
            _ => {}
        }
        let stopped = &mut vm.m.state.traffic.stopped;
        if !stopped.is_empty()
            && let Some(file) = state::first_file(event)
            && stopped.contains(&file.fuid)
        {
            if way.kind == Kind::FileRemoved {
                stopped.remove(&file.fuid);
            }
            self.states.over(&vm.m.state.traffic, event);
            return Ok(());
        }
        if way.kind == Kind::Certificate
            && certificate_cache::holds(&mut vm, &mut self.states, event)?
        {
            return Ok(());
        }
        if way.kind == Kind::ConnectionBegins {
            natives::begin_status(&mut vm, &mut self.states, event)?;
        }
        let Some(plan) = &way.plan else {
            return if way.is_noted { self.states.note(&mut vm, event) } else { Ok(()) };
        };
        let mut args = vm.m.spare_args();
        args.reserve_exact(plan.count);
        args.extend(std::iter::repeat_n(Value::Unset, plan.count));
        let mut reader = event.args();
        for ((slot, plan), param) in plan.params.iter().zip(event.decl.params) {
            let value = plan.param(&mut vm, &mut self.states, event, &mut reader, param)?;
            if let Some(arg) = slot.and_then(|slot| args.get_mut(slot)) {
                *arg = value;
            }
        }
        let mut uid = None;
        if let Some((ty, is_looked_up)) = plan.skipped {
            let state = state::first_connection(event);
            uid = state.map(|state| state.uid);
            if way.is_noted {
                self.states.note(&mut vm, event)?;
            }
            if let (Some(state), true) = (state, is_looked_up) {
                self.states.mention(&mut vm, ty, state)?;
            }
        } else if matches!(way.kind, Kind::ConnectionRemoved | Kind::FileRemoved) {
            self.states.over(&vm.m.state.traffic, event);
        }
        match way.kind {
            Kind::RawPacket => {
                vm.m.state.traffic.header = args.first().cloned().unwrap_or_default();
            }
            Kind::AnalyzerInfo => note_analyzer(&mut vm, &args),
            Kind::WebSocketBegins => note_websocket(&mut vm, &args),
            Kind::FileRemoved => {
                vm.m.state.traffic.certificate_cache.forget(event);
                listening::end(&mut vm, event, args.first());
            }
            Kind::FileSniff => {
                if let Some(matching) = &self.matching {
                    matching.sniff(&mut vm, event, &args)?;
                }
            }
            Kind::Contents(transport) if !delivers(&vm, transport, &args) => return Ok(()),
            _ => {}
        }
        let analyzer = if self.names_analyzers { analyzer_of(&vm, event) } else { 0 };
        vm.queue_event_of(plan.func, args, uid, analyzer);
        if way.kind == Kind::FileBegins {
            // Their handlers decide what is reported next.
            vm.drain()?;
            self.states.refresh_again();
        }
        Ok(())
    }

    /// How an event reaches scripts, which is found once.
    fn way(&mut self, decl: &'static Decl) -> Rc<Way> {
        let index = usize::from(decl.id.get());
        if let Some(Some(way)) = self.ways.get(index) {
            return Rc::clone(way);
        }
        let vm = self.machine.with(&mut self.program);
        let way = Rc::new(Way::new(&vm, decl));
        if self.ways.len() <= index {
            self.ways.resize(index + 1, None);
        }
        if let Some(slot) = self.ways.get_mut(index) {
            *slot = Some(Rc::clone(&way));
        }
        way
    }

    /// The previous packet is over: its events that are left, as far as the main loop gets with them.
    fn loop_drains(&mut self) -> Result<(), Stop> {
        let mut vm = self.machine.with(&mut self.program);
        if !std::mem::take(&mut self.drained) {
            vm.drain()?;
        }
        vm.drain()?;
        vm.before_packet()
    }

    /// Another packet begins: timers are due.
    fn packet(&mut self, now: f64) -> Result<(), Stop> {
        if std::mem::replace(&mut self.has_begun, true) {
            self.loop_drains()?;
        } else {
            // The main loop begins with the first packet: what `zeek_init` left is handled with its events.
            let mut vm = self.machine.with(&mut self.program);
            vm.fire_timers(vm.m.now)?;
            vm.before_packet()?;
        }
        if self.machine.stop_requested {
            // It is the time of the last packet still.
            return Ok(());
        }
        let mut vm = self.machine.with(&mut self.program);
        if vm.m.state.suspended > 0 {
            vm.wait_while_suspended()?;
        }
        let is_first = vm.m.state.first_packet == 0.0 && now > 0.0;
        if is_first {
            vm.m.state.first_packet = now;
        }
        if let Some(pace) = &mut vm.m.state.traffic.pace {
            if is_first {
                *pace = (Instant::now(), now);
            }
            // Packets come as far apart as they were captured.
            let (began, first) = *pace;
            let wait = now - first - began.elapsed().as_secs_f64();
            if let Ok(wait) = Duration::try_from_secs_f64(wait) {
                std::thread::sleep(wait);
            }
        }
        vm.m.state.traffic.tcp_options.clear();
        vm.m.state.traffic.geneve_options.clear();
        vm.m.state.traffic.pppoe_session = None;
        vm.m.now = vm.m.now.max(now);
        let now = vm.m.now;
        vm.p.diagnostics.now.set(now);
        if let Some(flushed) = &mut self.flushed
            && flushed.elapsed() >= FLUSH
        {
            *flushed = Instant::now();
            crate::bif::log::flush_all(&mut vm);
            vm.m.out.flush_all();
        }
        if is_first {
            vm.queue_named("network_time_init", Vec::new());
            // Answers that wait for the first packet come before the timeouts of those who asked.
            vm.run_triggers()?;
        }
        vm.fire_timers(now)?;
        Ok(())
    }

    /// Events that waited are queued: at the end of a packet, or before it where their handlers run at once.
    fn drained(&mut self) -> Result<(), Stop> {
        self.states.forget(&mut self.machine.state.traffic);
        self.drained = true;
        let mut vm = self.machine.with(&mut self.program);
        vm.drain()?;
        if !vm.m.state.traffic.matches.is_empty() {
            if let Some(matching) = &mut self.matching {
                matching.by_scripts(&mut vm, &mut self.states)?;
            }
            vm.drain()?;
        }
        if std::mem::take(&mut self.over) {
            vm.m.terminating = true;
            vm.fire_timers(f64::INFINITY)?;
            vm.drain()?;
            vm.drain()?;
        }
        Ok(())
    }
}

/// The number of the analyzer that raised an event: that of the protocol after which it is named, the confirmed one
/// where it is not named after any.
fn analyzer_of(vm: &Vm<'_>, event: &Raised<'_>) -> u64 {
    let conns = &vm.m.state.traffic.conns;
    let known = state::first_connection(event)
        .and_then(|state| conns.get(&(state.id, 0)).filter(|known| known.uid == state.uid));
    let Some(known) = known else { return 0 };
    if let (true, Some([_, sizes])) = (OF_SIZES.contains(&event.decl.name), known.of_no_protocol) {
        return sizes;
    }
    let is_named = |prefix: &str| {
        event.decl.name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'))
    };
    let named = known.analyzers.iter().find(|known| is_named(&known.prefix));
    named.map_or(0, |known| known.number)
}

/// Events of the analyzer that counts packets and bytes.
const OF_SIZES: [&str; 4] = [
    "conn_bytes_threshold_crossed",
    "conn_duration_threshold_crossed",
    "conn_generic_packet_threshold_crossed",
    "conn_packets_threshold_crossed",
];

/// Built-in functions that show connections which no argument is.
const LOOKUPS: [&str; 2] = ["lookup_connection", "lookup_connection_analyzer_id"];

/// How an event becomes the one of scripts that has its name: parameters by their names, or by their places where scripts name them otherwise.
/// What no handler reads is left out if `is_handled_only` says that only handlers see the arguments.
fn plan_of(vm: &Vm<'_>, decl: &'static Decl, is_handled_only: bool) -> Option<EventPlan> {
    let func = vm.function_named(decl.name)?;
    if !is_handled(vm, func) && decl.name != "raw_packet" {
        return None;
    }
    let wanted = vm.p.types.params(vm.p.functions[func].ty);
    let named = |name: &str| wanted.iter().position(|field| vm.p.name(field.name) == name);
    let by_name = wanted
        .iter()
        .all(|field| decl.params.iter().any(|param| param.name == vm.p.name(field.name)));
    let sees_all = !is_handled_only
        || vm.m.generate_all
        || vm.m.observer.is_some()
        || vm.m.state.traffic.names.is_some()
        || calls(vm, &["backtrace"]);
    let used = if sees_all { Vec::new() } else { used::of(vm.p, func, wanted.len()) };
    let mut skipped = None;
    let mut params: Vec<_> = decl
        .params
        .iter()
        .enumerate()
        .map(|(place, param)| {
            let slot = if by_name { named(param.name) } else { Some(place) };
            let field = slot.and_then(|slot| wanted.get(slot));
            let plan = match field {
                Some(field) => Plan::new(vm, &param.ty, field.ty),
                None => Plan::skip(&param.ty),
            };
            let plan = match slot.and_then(|slot| used.get(slot)) {
                Some(used) => {
                    if let (Plan::Connection(ty), Used::Nothing) = (&plan, used) {
                        skipped = Some((*ty, calls(vm, &LOOKUPS)));
                    }
                    plan.narrowed(used, &param.ty)
                }
                None => plan,
            };
            (slot, plan.repeated(vm, &param.ty, field.map_or(TypeId::ANY, |field| field.ty)))
        })
        .collect();
    plan::trim(&mut params);
    Some(EventPlan { func, params, count: wanted.len(), skipped })
}

/// Another packet: scripts may ask for it, and the command line to write it.
fn packet_bytes(vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<(), Stop> {
    vm.m.state.traffic.packet = packet_of(event);
    let traffic = &mut vm.m.state.traffic;
    traffic.bytes += traffic.packet.as_ref().map_or(0, |packet| packet.len);
    traffic.link_type = traffic.packet.as_ref().map(|packet| packet.link_type);
    if let (Some(path), Some(packet)) = (&traffic.write, &traffic.packet)
        && let Err(error) = traffic.dumps.write(path, packet)
    {
        let text = format!("can't write packets to '{path}': {error}");
        vm.report(crate::diagnostics::Severity::Fatal, text);
        return Err(Stop::Fatal);
    }
    Ok(())
}

/// Another packet whose bytes scripts do not ask for.
fn packet_seen(traffic: &mut Traffic, event: &Raised<'_>) {
    let mut args = event.args();
    if let (Some(nanos), Some(len), Some(link_type)) = (args.nanos(), args.count(), args.count()) {
        traffic.bytes += len;
        traffic.link_type = Some(link_type);
        traffic.packet = Some(Packet { nanos, data: Vec::new(), len, link_type });
    }
}

/// The packet that an event carries.
fn packet_of(event: &Raised<'_>) -> Option<Packet> {
    let mut args = event.args();
    let mut values = event.decl.params.iter().map(|param| args.param(param));
    let (ts, data) = (values.next()??, values.next()??);
    let (len, link_type) = (values.next()??, values.next()??);
    match (ts, data, len, link_type) {
        (Head::Time(ts), Head::String(data), Head::Count(len), Head::Count(link_type)) => {
            Some(Packet { nanos: ts.as_nanos(), data: data.to_vec(), len, link_type })
        }
        _ => None,
    }
}

/// Notes the number that an event has for an analyzer of a connection.
fn note_analyzer(vm: &mut Vm<'_>, args: &[Value]) {
    let (Some(tag), Some(info)) = (args.first(), args.get(1).and_then(Value::record)) else {
        return;
    };
    let [c, aid] = plan::places(vm, info.ty(), ["c", "aid"]);
    let (Some(c), Some(aid)) = (c.map(|c| info.get(c)), aid.map(|aid| info.get(aid))) else {
        return;
    };
    note_number(vm, tag, &c, &aid);
}

/// The same of an analyzer of WebSocket that begins.
fn note_websocket(vm: &mut Vm<'_>, args: &[Value]) {
    if let [c, aid, ..] = args {
        let tag = vm.enum_named("Analyzer::ANALYZER_WEBSOCKET");
        note_number(vm, &tag, c, aid);
    }
}

fn note_number(vm: &mut Vm<'_>, tag: &Value, c: &Value, aid: &Value) {
    let (Some(record), true) = (c.record(), aid.is_set()) else { return };
    let number = aid.count();
    let [id] = plan::places(vm, record.ty(), ["id"]);
    let Some(key) = id.and_then(|id| natives::conn_id(vm, &record.get(id))) else { return };
    let prefix = state::prefix(vm, tag);
    if let Some(known) = vm.m.state.traffic.conns.get_mut(&key)
        && known.record.as_ref().is_some_and(|known| Rc::ptr_eq(known, record))
        && !known.analyzers.iter().any(|known| known.number == number)
    {
        known.analyzers.push(Numbered { tag: tag.clone(), number, prefix });
    }
}

/// Whether scripts want the contents that an event of a transport carries.
fn delivers(vm: &Vm<'_>, transport: &str, args: &[Value]) -> bool {
    let is_orig = args.get(1).is_some_and(Value::truth);
    let side = if is_orig { "orig" } else { "resp" };
    if vm.global_named(&format!("{transport}_content_deliver_all_{side}")).truth() {
        return true;
    }
    let has = |name: &str, port: &Value| {
        let table = vm.global_named(name);
        let found = table.table().and_then(|table| table.get(std::slice::from_ref(port)));
        found.is_some_and(|found| !matches!(found, Value::Bool(false)))
    };
    let Some(record) = args.first().and_then(Value::record) else { return false };
    let [id] = plan::places(vm, record.ty(), ["id"]);
    let Some(id) = id.map(|id| record.get(id)) else { return false };
    let Some(id) = id.record() else { return false };
    let by_responder = vm.global_named("udp_content_delivery_ports_use_resp").truth();
    let [orig, resp] = plan::places(vm, id.ty(), ["orig_p", "resp_p"]);
    let port = |place: Option<usize>| place.map_or(Value::Unset, |place| id.get(place));
    let (orig, resp) = (port(orig), port(resp));
    if transport == "udp" && (has("udp_content_ports", &orig) || has("udp_content_ports", &resp)) {
        return true;
    }
    let port = if transport == "tcp" || is_orig || by_responder { resp } else { orig };
    has(&format!("{transport}_content_delivery_ports_{side}"), &port)
}
