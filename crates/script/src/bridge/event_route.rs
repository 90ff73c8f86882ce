//! How an event of the analysis reaches scripts.

use gannet_event::{Decl, Type};

use super::interest::{calls, is_handled, sees_all};
use super::plan::{self, Plan};
use super::{natives, stored_conns, used};
use crate::ids::{FuncId, TypeId};
use crate::vm::Vm;

/// How an event reaches scripts.
pub(super) struct EventRoute {
    pub(super) kind: Kind,
    /// Whether statistics count it.
    pub(super) is_counted: bool,
    /// Whether connections or files begin or end with it, or are stored from it on, even if no script handles it.
    pub(super) is_noted: bool,
    /// How its arguments are converted, if scripts handle it.
    pub(super) plan: Option<EventPlan>,
}

/// What happens on an event besides its handlers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No further action.
    Other,
    /// A connection begins whose status scripts request at intervals.
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
    /// Contents of a transport with this name.
    Contents(&'static str),
    InputEnds,
    /// Network time begins.
    TimeBegins,
}

impl Kind {
    /// Whether only handlers read the arguments of such an event.
    pub(super) fn is_handled_only(self) -> bool {
        matches!(self, Self::Other | Self::ConnectionBegins | Self::ConnectionRemoved)
    }

    pub(super) fn from_name(vm: &Vm<'_>, name: &str) -> Self {
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

impl EventRoute {
    pub(super) fn new(vm: &Vm<'_>, decl: &'static Decl, stores_all: bool) -> Self {
        let is_counted = matches!(
            decl.name,
            "new_connection"
                | "connection_state_remove"
                | "gannet::connection_inactive"
                | "file_new"
                | "file_state_remove"
                | "gannet::packet_done"
                | "gannet::weird_seen"
                | "net_done"
        );
        let is_noted = match decl.name {
            "new_connection" => stores_all,
            "connection_state_remove"
            | "file_state_remove"
            | "gannet::watched_connection"
            | "conn_weird" => true,
            _ => false,
        };
        let kind = Kind::from_name(vm, decl.name);
        let plan = plan_of(vm, decl, kind.is_handled_only(), stores_all);
        Self { kind, is_counted, is_noted, plan }
    }
}

/// How the arguments of an event become those of the script event.
pub(super) struct EventPlan {
    pub(super) func: FuncId,
    /// For each parameter of the declaration: the index of the script's parameter, and how it is converted.
    pub(super) params: Vec<(Option<usize>, Plan)>,
    /// Number of parameters of the script's event.
    pub(super) count: usize,
    /// Set if no handler keeps the connection of the event: its type, and whether scripts may look it up, so that its state at
    /// this event is stored.
    pub(super) temporary: Option<(TypeId, bool)>,
}

/// Built-in functions that return connections by `conn_id`.
const LOOKUPS: [&str; 2] = ["lookup_connection", "lookup_connection_analyzer_id"];

/// The plan for the script event of the same name. Parameters are matched by name, or by index if scripts use other names.
/// Values that no handler reads are skipped if `is_handled_only`: then only handlers read the arguments.
fn plan_of(
    vm: &Vm<'_>,
    decl: &'static Decl,
    is_handled_only: bool,
    stores_all: bool,
) -> Option<EventPlan> {
    let func = vm.function_named(decl.name)?;
    if !is_handled(vm, func) && decl.name != "raw_packet" {
        return None;
    }
    let script_params = vm.p.types.params(vm.p.functions[func].ty);
    let named = |name: &str| script_params.iter().position(|field| vm.p.name(field.name) == name);
    let by_name = script_params
        .iter()
        .all(|field| decl.params.iter().any(|param| param.name == vm.p.name(field.name)));
    let used = if !is_handled_only || sees_all(vm) {
        Vec::new()
    } else {
        used::parameter_reads(vm.p, func, script_params.len())
    };
    let mut temporary = None;
    let mut params: Vec<_> = decl
        .params
        .iter()
        .enumerate()
        .map(|(index, param)| {
            let slot = if by_name { named(param.name) } else { Some(index) };
            let field = slot.and_then(|slot| script_params.get(slot));
            let plan = match field {
                Some(field) => Plan::new(vm, &param.ty, field.ty),
                None => Plan::skip(&param.ty),
            };
            let plan = match slot.and_then(|slot| used.get(slot)) {
                Some(used) => {
                    let index = slot.unwrap_or_default();
                    let plan = match plan {
                        Plan::Connection(ty) => {
                            stored_conns::connection(vm, ty, (func, index), used, stores_all)
                        }
                        plan => plan.narrowed(used, &param.ty),
                    };
                    if let (Type::Connection, Some(field), Plan::Skip(_) | Plan::Temporary(..)) =
                        (&param.ty, field, &plan)
                    {
                        temporary = Some((field.ty, calls(vm, &LOOKUPS)));
                    }
                    plan
                }
                None => plan,
            };
            (slot, plan.repeated(vm, &param.ty, field.map_or(TypeId::ANY, |field| field.ty)))
        })
        .collect();
    plan::trim(&mut params);
    Some(EventPlan { func, params, count: script_params.len(), temporary })
}
