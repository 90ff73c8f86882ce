//! Which connections the bridge stores for scripts: those that a built-in function may look up by their `conn_id`, and those
//! whose `connection` record a handler may keep. Other handlers get a record that lives for one event.

use std::collections::HashSet;
use std::rc::Rc;

use gannet_event::Type;

use super::conn_plan::ConnPlan;
use super::interest::{calls, reached};
use super::plan::Plan;
use super::steering::Reached;
use super::used::{self, FreshRecords, UsedParts};
use super::{natives, requests};
use crate::ast::ExprKind;
use crate::ids::{ExprId, FuncId, TypeId};
use crate::types::AttrKind;
use crate::vm::Vm;
use crate::walk;

/// Built-in functions that look up the connection of their first argument, a `connection` or a `conn_id`.
pub(super) const CONN_LOOKUPS: &[&str] = &[
    "PacketAnalyzer::GTPV1::remove_gtpv1_connection",
    "PacketAnalyzer::TEREDO::remove_teredo_connection",
    "WebSocket::__configure_analyzer",
    "connection_exists",
    "decode_base64_conn",
    "disable_analyzer",
    "get_conn_transport_proto",
    "get_contents_file",
    "get_current_conn_bytes_threshold",
    "get_current_conn_duration_threshold",
    "get_current_conn_packets_threshold",
    "lookup_connection",
    "lookup_connection_analyzer_id",
    "set_contents_file",
    "set_current_conn_bytes_threshold",
    "set_current_conn_duration_threshold",
    "set_current_conn_packets_threshold",
    "set_inactivity_timeout",
    "set_keys",
    "set_record_packets",
    "set_secret",
    "set_ssl_established",
    "skip_further_processing",
    "skip_http_entity_data",
    "skip_smtp_data",
];

/// Built-in functions that may look up any connection.
const ANY_CONN_LOOKUPS: &[&str] = &["Reporter::limit_reached_weird", "match_signatures"];

/// Whether the bridge stores every connection from its first packet on. Otherwise it stores a connection once an event passes it
/// to a handler that may keep it. `handled` returns whether an event has handlers, `handles_files` whether any file event has.
pub(super) fn stores_all(vm: &Vm<'_>, handled: impl Fn(&str) -> bool, handles_files: bool) -> bool {
    let Some(Reached { looks_up_any, .. }) = reached(vm) else { return true };
    // `fa_file` lists connections. These events carry them, so that the bridge can store them then.
    let shows_files = ["file_new", "file_over_new_connection"].into_iter().all(&handled);
    *looks_up_any
        || vm.m.state.uids.is_deterministic()
        || natives::reports_status(vm)
        || calls(vm, ANY_CONN_LOOKUPS)
        || calls(vm, &requests::SEQUENCE_READERS)
        || calls(vm, &requests::LOGIN_FUNCTIONS)
        || !shows_files && (handles_files || calls(vm, &["Files::__lookup_file"]))
}

/// Whether a type is `wanted` or contains it.
pub(super) fn contains_type(ty: &Type, wanted: &Type) -> bool {
    match ty {
        _ if ty == wanted => true,
        Type::Vector(of) | Type::VectorFromOne(of) | Type::Set(of) => contains_type(of, wanted),
        Type::Table(key, of) => contains_type(key, wanted) || contains_type(of, wanted),
        Type::Record(record) => record.fields.iter().any(|field| contains_type(&field.ty, wanted)),
        _ => false,
    }
}

/// The plan of the `connection` parameter `index` of an event; `used` are the parts that handlers read.
pub(super) fn connection(
    vm: &Vm<'_>,
    ty: TypeId,
    (func, index): (FuncId, usize),
    used: &UsedParts,
    stores_all: bool,
) -> Plan {
    if *used == UsedParts::Nothing {
        return Plan::skip(&Type::Connection);
    }
    let plan = ConnPlan::new(vm, ty);
    match temporary(vm, &plan, (func, index), stores_all) {
        Some(used) => Plan::Temporary(ty, Rc::new(plan.narrowed(&used))),
        None => Plan::Connection(ty),
    }
}

/// The fields that handlers read of a connection that is not stored; `None` where they may keep or change its record. Fields
/// that only scripts set are unset in such a record.
fn temporary(
    vm: &Vm<'_>,
    plan: &ConnPlan,
    (func, index): (FuncId, usize),
    stores_all: bool,
) -> Option<UsedParts> {
    let Reached { assigned, functions, .. } = reached(vm)?;
    let params = vm.p.types.params(vm.p.functions[func].ty);
    let fresh = FreshRecords { ty: plan.ty(), unset: plan.unset(vm) };
    let mut uses = used::uses(vm.p, func, params.len(), Some(&fresh));
    let mut lookups = CONN_LOOKUPS.iter().filter_map(|name| vm.function_named(name));
    let uses_lookups = !stores_all && lookups.any(|func| functions.contains(&func));
    let record_use = RecordUse { vm, changed: &uses.changed, assigned, uses_lookups };
    let used = uses.read.get(index)?;
    record_use.is_immutable(plan.ty(), used, 0).then(|| uses.read.swap_remove(index))
}

/// How handlers use the records of connections.
struct RecordUse<'v, 'p> {
    vm: &'v Vm<'p>,
    /// Types of records whose fields these handlers change.
    changed: &'v [TypeId],
    /// Types of records whose fields any function changes.
    assigned: &'v HashSet<TypeId>,
    /// Whether built-in functions look up stored connections by the `conn_id` of a record.
    uses_lookups: bool,
}

/// The type of a record inside `connection` that handlers may keep even if the connection is not stored: only scripts change it.
const IMMUTABLE_RECORD: &str = "conn_id";

/// Maximum nesting depth of records in a `connection` record.
const MAX_DEPTH: usize = 3;

impl RecordUse<'_, '_> {
    /// Whether the parts of a record that handlers read are atomic values, or records that no script changes.
    fn is_immutable(&self, ty: TypeId, used: &UsedParts, depth: usize) -> bool {
        let types = &self.vm.p.types;
        let Some(record) = types.record(ty) else { return false };
        // Other default expressions may have another value at each event.
        let mut attrs = record.fields.iter().flat_map(|field| field.attrs.iter());
        let has_plain_defaults = attrs.all(|attr| {
            attr.kind != AttrKind::Default
                || attr.expr.is_some_and(|expr| is_constant(self.vm, expr))
        });
        if !has_plain_defaults || self.changed.contains(&ty) || depth > MAX_DEPTH {
            return false;
        }
        let fields = match used {
            UsedParts::Nothing => return true,
            UsedParts::Fields(fields) => fields,
            UsedParts::All => {
                let name = types.data(ty).name.map(|name| self.vm.p.name(name));
                return name == Some(IMMUTABLE_RECORD)
                    && !self.assigned.contains(&ty)
                    && !self.uses_lookups;
            }
        };
        fields.iter().all(|(offset, used)| {
            let Some(field) = record.fields.get(*offset as usize) else { return false };
            match used {
                UsedParts::Nothing => true,
                UsedParts::Fields(inner) if inner.is_empty() => true,
                UsedParts::All if types.tag(field.ty).is_atomic() => true,
                _ => self.is_immutable(field.ty, used, depth + 1),
            }
        })
    }
}

/// Whether an expression consists of constants.
fn is_constant(vm: &Vm<'_>, expr: ExprId) -> bool {
    let mut all = true;
    walk::expressions(vm.p, expr, &mut |expr| {
        all &= matches!(
            vm.p.exprs[expr].kind,
            ExprKind::Literal(_)
                | ExprKind::TypeValue(_)
                | ExprKind::Record(_)
                | ExprKind::Table(_)
                | ExprKind::Set(_)
                | ExprKind::Vector(_)
                | ExprKind::List(_)
                | ExprKind::Coerce(..)
                | ExprKind::FieldAssign(..)
        );
    });
    all
}
