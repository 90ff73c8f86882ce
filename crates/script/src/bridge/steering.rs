//! Whether scripts steer the analysis while packets are read. Scripts that do not may run in a thread of their own, which lags
//! behind the threads that analyze.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::Write as _;

use gannet_event::{Decl, Interest, ThreadAffinity};

use super::conn_id_flow::{ConnIds, Flow, Locals};
use super::interest::calls;
use super::{Source, counts};
use crate::ast::{EventCall, ExprKind, StmtKind};
use crate::command::Options;
use crate::ids::{BodyId, ExprId, FuncId, TypeId};
use crate::program::Program;
use crate::symbols::GlobalKind;
use crate::types::{Attrs, Flavor, Type};
use crate::vm::Vm;
use crate::walk;

/// Built-in functions that send requests to the analysis, or whose result depends on its current state.
const STEERING: &[&str] = &[
    "Analyzer::__disable_all_analyzers",
    "Analyzer::__disable_analyzer",
    "Analyzer::__enable_analyzer",
    "Analyzer::__register_for_port",
    "Analyzer::__schedule_analyzer",
    "FileExtract::__set_limit",
    "Files::__add_analyzer",
    "Files::__disable_analyzer",
    "Files::__disable_reassembly",
    "Files::__enable_analyzer",
    "Files::__enable_reassembly",
    "Files::__remove_analyzer",
    "Files::__set_reassembly_buffer",
    "Files::__set_timeout_interval",
    "Files::__stop",
    "Option::set",
    "PacketAnalyzer::GTPV1::remove_gtpv1_connection",
    "PacketAnalyzer::TEREDO::remove_teredo_connection",
    "PacketAnalyzer::__disable_analyzer",
    "PacketAnalyzer::__enable_analyzer",
    "PacketAnalyzer::__set_ignore_checksums_nets",
    "Pcap::install_pcap_filter",
    "Reporter::limit_reached_weird",
    "Reporter::set_weird_sampling_duration",
    "Reporter::set_weird_sampling_global_list",
    "Reporter::set_weird_sampling_rate",
    "Reporter::set_weird_sampling_threshold",
    "Reporter::set_weird_sampling_whitelist",
    "WebSocket::__configure_analyzer",
    "disable_analyzer",
    "lookup_connection",
    "set_contents_file",
    "set_current_conn_bytes_threshold",
    "set_current_conn_duration_threshold",
    "set_current_conn_packets_threshold",
    "set_inactivity_timeout",
    "set_keys",
    "set_login_state",
    "set_secret",
    "set_ssl_established",
    "skip_further_processing",
    "skip_http_entity_data",
    "skip_smtp_data",
    "terminate",
];

/// Built-in functions that Zeek's scripts call through a wrapper for each file, with the value of an option: built-in
/// function, wrapper and option.
const DEFAULT_CALLS: &[(&str, &str, &str)] = &[
    ("Files::__enable_reassembly", "Files::enable_reassembly", "Files::enable_reassembler"),
    (
        "Files::__set_reassembly_buffer",
        "Files::set_reassembly_buffer_size",
        "Files::reassembly_buffer_size",
    ),
];

/// Built-in functions that remove the tunnels of a connection, each with the hook in which Zeek's scripts call it. The hook runs
/// when the connection has ended, and its tunnels have ended with it: the call does not steer the analysis.
const END_HOOKS: &[(&str, &str)] = &[
    ("PacketAnalyzer::GTPV1::remove_gtpv1_connection", "PacketAnalyzer::GTPV1::finalize_gtpv1"),
    ("PacketAnalyzer::TEREDO::remove_teredo_connection", "PacketAnalyzer::TEREDO::finalize_teredo"),
];

/// Events that built-in functions and the run itself raise by name. All others are raised by the analysis or by scripts.
const RAISED_BY_NAME: &[&str] = &[
    "Input::end_of_data",
    "Pcap::file_done",
    "Storage::backend_opened",
    "conn_weird",
    "contents_file_write_failure",
    "expired_conn_weird",
    "file_entropy",
    "file_hash",
    "file_opened",
    "file_weird",
    "flow_weird",
    "net_weird",
    "network_time_init",
    "protocol_late_match",
    "reporter_error",
    "reporter_info",
    "reporter_warning",
    "signature_match",
    "zeek_done",
    "zeek_init",
];

/// Describes how scripts steer the analysis; `None` if they do not. `raises` returns whether the analysis raises an
/// event.
pub(super) fn steering_reason(vm: &Vm<'_>, raises: &dyn Fn(&str) -> bool) -> Option<String> {
    let handled = |name: &str| {
        vm.function_named(name).is_some_and(|func| !vm.p.functions[func].bodies.is_empty())
    };
    if handled("connection_status_update") {
        return Some("connection_status_update has a handler".to_owned());
    }
    let uses = |name: &str| vm.find_global(name).map_or(0, |global| vm.p.globals[global].uses);
    // Zeek's scripts call these for each file with the default value, which changes nothing.
    let is_usual = |name: &str| {
        let usual = DEFAULT_CALLS.iter().find(|(native, ..)| *native == name);
        usual.is_some_and(|(native, wrapper, option)| {
            let is_there = vm.global_named(option).is_set();
            is_there && uses(native) <= 1 && uses(wrapper) <= 1
        })
    };
    let has_ended = |name: &str| {
        let ended = END_HOOKS.iter().find(|(native, _)| *native == name);
        ended.is_some_and(|(native, hook)| uses(native) <= 1 && uses(hook) <= 1)
    };
    let is_request = |name: &&&str| !is_usual(name) && !has_ended(name);
    let natives = STEERING.iter().filter(is_request).filter_map(|name| {
        let func = vm.function_named(name)?;
        vm.p.functions[func].bodies.is_empty().then_some((func, *name))
    });
    let mut search = Search::new(vm.p);
    search.natives = natives.collect();
    let conns = ["connection", "conn_id"].map(|name| vm.type_named(name));
    search.conns = conns.into_iter().flatten().collect();
    search.visit(raises)
}

/// Reason for a single analyzer thread if scripts read statistics.
const STATISTICS: &str = "scripts read statistics of the analysis";

/// Selects the thread of the handlers: that of the analysis, or one that receives the events of several analyzer threads.
pub(super) fn affinity(
    vm: &Vm<'_>,
    options: &Options,
    interest: &Interest,
    source: &dyn Source,
) -> ThreadAffinity {
    if options.threads <= 1 {
        return ThreadAffinity::Analysis;
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
    } else if traffic.has_other_tunnels {
        Some("scripts choose the ports of tunnels".to_owned())
    } else if traffic.names.is_some() {
        Some("seeds give connections Zeek's names, in the order of their packets".to_owned())
    } else {
        let catalogue = source.catalogue();
        let raises = |name: &str| catalogue.iter().any(|decl| decl.name == name);
        steering_reason(vm, &raises).or_else(whole).or_else(counts)
    };
    if options.verbose {
        // A closed standard error is ignored.
        let _ = match &why {
            Some(why) => writeln!(std::io::stderr(), "analyzing with one thread: {why}"),
            None => writeln!(std::io::stderr(), "analyzing with {} threads", options.threads),
        };
    }
    if why.is_some() { ThreadAffinity::Analysis } else { ThreadAffinity::Caller }
}

/// Functions that the run itself calls by name, or that log filters refer to by name.
const CALLED_BY_NAME: &[&str] = &[
    "Cluster::hrw_topic",
    "Cluster::rr_topic",
    "Log::__default_rotation_postprocessor",
    "discarder_check_icmp",
    "discarder_check_ip",
    "discarder_check_tcp",
    "discarder_check_udp",
];

/// The built-in function that looks up globals, functions among them, by name.
const LOOKUP_ID: &str = "lookup_ID";

/// What scripts can reach while they run.
pub(crate) struct Reached {
    /// The functions that they may call, including built-in ones.
    pub(super) functions: HashSet<FuncId>,
    /// Types of records whose fields they may change.
    pub(super) assigned: HashSet<TypeId>,
    /// Whether they may look up connections that they have no record of.
    pub(super) looks_up_any: bool,
}

/// What scripts can reach; `None` if that cannot be determined. `raises` returns whether the analysis raises an event.
pub(super) fn reached(vm: &Vm<'_>, raises: &dyn Fn(&str) -> bool) -> Option<Reached> {
    let mut search = Search::new(vm.p);
    let raised = vm.p.functions.iter().filter(|(_, function)| {
        let name = vm.p.name(function.name);
        RAISED_BY_NAME.contains(&name) || raises(name)
    });
    search.ends = ConnIds::new(vm, raised.map(|(func, _)| func).collect());
    let called = CALLED_BY_NAME.iter().filter_map(|name| vm.function_named(name));
    called.for_each(|func| search.note_late(func, None));
    // Rotation postprocessors have this type; log streams may refer to them by name.
    let rotation = vm.type_named("Log::RotationInfo");
    for (func, function) in vm.p.functions.iter() {
        let is_hit = function.flavor == Flavor::Function
            && !function.bodies.is_empty()
            && matches!(vm.p.types.params(function.ty), [one] if Some(one.ty) == rotation);
        if is_hit {
            search.note_late(func, None);
        }
    }
    // Without natives to find, the search visits all reachable functions.
    search.visit(&|_| true);
    let Search { late, early, found, ends, .. } = search;
    let functions: HashSet<FuncId> = late.into_keys().chain(early).collect();
    let BodyEffects { assigned, flow, makes_functions } = found;
    let looks_up_any = ends.looks_up_any(vm.p, &flow);
    // A function that `lookup_ID` returns is called only after a cast to a function type.
    let finds = vm.function_named(LOOKUP_ID).is_some_and(|func| functions.contains(&func));
    let is_known = !(finds && makes_functions);
    is_known.then_some(Reached { functions, assigned, looks_up_any })
}

/// A search, from the event handlers, for the functions that they may call.
struct Search<'a> {
    program: &'a Program,
    natives: HashMap<FuncId, &'static str>,
    /// The types `connection` and `conn_id`.
    conns: HashSet<TypeId>,
    /// Functions that may run while packets are read, each with the function that names it.
    late: HashMap<FuncId, Option<FuncId>>,
    /// Functions that run before the first packet.
    early: HashSet<FuncId>,
    /// Functions to visit, and whether they are late.
    open: Vec<(FuncId, bool)>,
    /// Sources of the `conn_id`s that are passed to functions.
    ends: ConnIds,
    /// Other findings.
    found: BodyEffects,
}

/// Effects of the functions that scripts may call.
#[derive(Default)]
struct BodyEffects {
    assigned: HashSet<TypeId>,
    flow: Flow,
    makes_functions: bool,
}

/// What a body refers to.
#[derive(Default)]
struct References {
    /// Functions that it calls.
    called: Vec<FuncId>,
    /// Functions that it uses as values: others may call them later.
    passed: Vec<FuncId>,
    /// Whether it schedules an event with a connection argument, whose record must be current when the handlers run.
    schedules: bool,
    /// Types of records whose fields it changes.
    assigned: Vec<TypeId>,
    /// How it passes on `conn_id`s.
    flow: Flow,
    /// Whether it casts values to functions.
    makes_functions: bool,
}

impl<'a> Search<'a> {
    /// A search for all reachable functions.
    fn new(program: &'a Program) -> Self {
        Self {
            program,
            natives: HashMap::new(),
            conns: HashSet::new(),
            late: HashMap::new(),
            early: HashSet::new(),
            open: Vec::new(),
            ends: ConnIds::default(),
            found: BodyEffects::default(),
        }
    }

    /// Visits all functions that may be called, up to the first that steers the analysis; returns a description of that.
    fn visit(&mut self, raises: &dyn Fn(&str) -> bool) -> Option<String> {
        let program = self.program;
        for (func, function) in program.functions.iter() {
            let name = program.name(function.name);
            match function.flavor {
                _ if function.bodies.is_empty() => {}
                Flavor::Event if name == "zeek_init" => self.note_early(func),
                // Other events are raised by scripts that name them.
                Flavor::Event if RAISED_BY_NAME.contains(&name) || raises(name) => {
                    self.note_late(func, None);
                }
                Flavor::Hook => self.note_late(func, None),
                Flavor::Event | Flavor::Function => {}
            }
        }
        let mut attributes: Vec<ExprId> = Vec::new();
        let exprs = |attrs: &Attrs| attrs.iter().filter_map(|attr| attr.expr).collect::<Vec<_>>();
        for (_, global) in program.globals.arena.iter() {
            attributes.extend(exprs(&global.attrs));
        }
        for (_, data) in program.types.arena().iter() {
            if let Type::Record(record) = &data.ty {
                attributes.extend(record.fields.iter().flat_map(|field| exprs(&field.attrs)));
            }
        }
        for (_, body) in program.bodies.iter() {
            attributes.extend(body.locals.iter().flat_map(|(_, local)| exprs(&local.attrs)));
        }
        for expr in attributes {
            let mut named = References::default();
            self.expression(expr, &Locals::default(), &mut named);
            self.note_all(None, named, false);
        }
        for (body, of) in program.bodies.iter() {
            if of.func.is_none() {
                let named = self.body(body);
                self.note_all(None, named, true);
            }
        }
        while let Some((func, is_late)) = self.open.pop() {
            if is_late && let Some(native) = self.natives.get(&func) {
                let by = self.late.get(&func).copied().flatten();
                let by = by.map_or("an attribute", |by| program.name(program.functions[by].name));
                return Some(format!("{by} calls {native}"));
            }
            for body in &program.functions[func].bodies {
                let named = self.body(*body);
                if is_late && named.schedules {
                    let by = program.name(program.functions[func].name);
                    return Some(format!("{by} schedules an event with a connection"));
                }
                self.note_all(Some(func), named, !is_late);
            }
        }
        None
    }

    fn note_all(&mut self, by: Option<FuncId>, named: References, early: bool) {
        for func in named.called {
            if early { self.note_early(func) } else { self.note_late(func, by) }
        }
        for func in named.passed {
            self.note_late(func, by);
        }
        self.found.assigned.extend(named.assigned);
        self.found.flow.append(named.flow);
        self.found.makes_functions |= named.makes_functions;
    }

    fn note_early(&mut self, func: FuncId) {
        if self.early.insert(func) {
            self.open.push((func, false));
        }
    }

    fn note_late(&mut self, func: FuncId, by: Option<FuncId>) {
        if let Entry::Vacant(entry) = self.late.entry(func) {
            entry.insert(by);
            self.open.push((func, true));
        }
    }

    fn body(&self, body: BodyId) -> References {
        let program = self.program;
        let mut named = References::default();
        let locals = Locals::new(program, body);
        let (mut open, mut tops) = (vec![program.bodies[body].stmt], Vec::new());
        let mut waits = false;
        while let Some(stmt) = open.pop() {
            match &program.stmts[stmt].kind {
                StmtKind::When(_) => waits = true,
                StmtKind::Event(event) => self.event(event, &locals, &mut named),
                _ => {}
            }
            walk::substatements(program, stmt, &mut open);
            walk::stmt_expressions(program, stmt, &mut tops);
        }
        for top in tops {
            self.expression(top, &locals, &mut named);
        }
        if waits {
            // The body of a `when` runs later than its condition.
            named.passed.append(&mut named.called);
        }
        named
    }

    fn expression(&self, top: ExprId, locals: &Locals, named: &mut References) {
        let program = self.program;
        let mut callees = HashSet::new();
        walk::expressions(program, top, &mut |expr| match &program.exprs[expr].kind {
            ExprKind::Call(call) => {
                if let Some(func) = self.function(call.callee) {
                    callees.insert(call.callee);
                    named.called.push(func);
                    self.ends.call(program, locals, (func, &call.args), &mut named.flow);
                }
            }
            ExprKind::Global(_) if !callees.contains(&expr) => {
                if let Some(func) = self.function(expr) {
                    named.flow.value(func);
                    named.passed.push(func);
                }
            }
            ExprKind::Lambda(lambda) => named.passed.push(lambda.func),
            ExprKind::Event(event) => self.event(event, locals, named),
            ExprKind::Schedule(_, event) => {
                self.event(event, locals, named);
                let is_conn = |arg: &ExprId| self.conns.contains(&program.exprs[*arg].ty);
                named.schedules |= event.args.iter().any(is_conn);
            }
            ExprKind::Cast(_) => {
                let is_function =
                    matches!(program.types.get(program.exprs[expr].ty), Type::Func(_));
                named.makes_functions |= is_function;
            }
            _ => {
                let changed = walk::changed_record(program, expr);
                named.assigned.extend(changed.map(|of| program.exprs[of].ty));
            }
        });
    }

    /// The function that an expression names.
    fn function(&self, expr: ExprId) -> Option<FuncId> {
        let ExprKind::Global(global) = self.program.exprs[expr].kind else { return None };
        match self.program.globals[global].kind {
            GlobalKind::Function(func) => Some(func),
            _ => None,
        }
    }

    /// An event that a script raises: its handlers may run later, even those of `zeek_init`.
    fn event(&self, event: &EventCall, locals: &Locals, named: &mut References) {
        self.ends.event(self.program, locals, event, &mut named.flow);
        if let GlobalKind::Function(func) = self.program.globals[event.event].kind {
            named.passed.push(func);
        }
    }
}
