//! Built-in functions that skip contents, set login states, match signatures, and return sequence numbers.

use gannet_base::{ConnId, Proto};
use gannet_event::{ConnCommand, Raised, Value as Head};

use super::known::Known;
use super::natives::{conn_id, send_command};
use super::state::{first_connection, key};
use super::traffic::Traffic;
use crate::bif::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::signature::Kind;
use crate::value::Value;
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table = &[
    ("skip_http_entity_data", |vm, a| {
        let is_orig = arg(a, 1).truth();
        if !skip(vm, a, ConnCommand::SkipEntity { is_orig })? {
            let text = "could not find analyzer for skip_http_entity_data";
            vm.report(Severity::Error, text);
        }
        Ok(Value::Unset)
    }),
    ("skip_smtp_data", |vm, a| {
        skip(vm, a, ConnCommand::SkipMail)?;
        Ok(Value::Unset)
    }),
    ("get_orig_seq", |vm, a| Ok(last_seq(vm, a, 0))),
    ("get_resp_seq", |vm, a| Ok(last_seq(vm, a, 1))),
    ("get_login_state", |vm, a| {
        let state = known(vm, a).and_then(|known| known.facts()?.login);
        Ok(Value::Count(state.map_or(0, u64::from)))
    }),
    ("set_login_state", set_login_state),
    ("match_signatures", match_signatures),
];

/// Functions that return sequence numbers.
pub(super) const SEQUENCE_READERS: [&str; 2] = ["get_orig_seq", "get_resp_seq"];

/// Functions that read or set login states.
pub(super) const LOGIN_FUNCTIONS: [&str; 2] = ["get_login_state", "set_login_state"];

/// Data that a script matches against signatures.
pub(crate) struct MatchRequest {
    /// The connection.
    pub(super) key: (ConnId, u32),
    pub(super) kind: Kind,
    pub(super) data: Vec<u8>,
    pub(super) begins: bool,
    pub(super) ends: bool,
    pub(super) is_orig: bool,
    pub(super) fresh: bool,
}

/// Stores the sequence numbers of a connection, or the state of its login.
pub(super) fn note(traffic: &mut Traffic, event: &Raised<'_>) {
    let Some(state) = first_connection(event) else { return };
    let key = key(traffic, state);
    let known = traffic.conns.get_mut(&key).filter(|known| known.uid == state.uid);
    let Some(known) = known else { return };
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let numbers = [args.nth(1), args.next()].map(|arg| match arg {
        Some(Some(Head::Count(number))) => Some(number),
        _ => None,
    });
    match numbers {
        [Some(orig), Some(resp)] => {
            known.facts_mut().seqs = [orig, resp].map(|seq| seq as u32);
        }
        [Some(state), None] => known.facts_mut().login = Some(state as u8),
        _ => {}
    }
}

/// The `id` of the connection in the first argument.
fn id(vm: &Vm<'_>, args: &[Value]) -> Value {
    let Some(c) = arg(args, 0).record() else { return Value::Unset };
    let [id] = super::plan::field_offsets(vm, c.ty(), ["id"]);
    id.map_or(Value::Unset, |id| c.get(id))
}

/// The stored connection whose `id` is in the first argument.
fn known<'a>(vm: &'a mut Vm<'_>, args: &[Value]) -> Option<&'a mut Known> {
    let key = conn_id(vm, arg(args, 0))?;
    vm.m.state.traffic.conns.get_mut(&key).map(|known| &mut **known)
}

/// Sends a command for the connection in the first argument. Returns whether it is stored.
fn skip(vm: &mut Vm<'_>, args: &[Value], what: ConnCommand) -> Result<bool> {
    let id = id(vm, args);
    match conn_id(vm, &id) {
        Some(key) if vm.m.state.traffic.conns.contains_key(&key) => {
            send_command(vm, &[id], |_| what).map(|found| found.truth())
        }
        _ => Ok(false),
    }
}

/// The next sequence number of a side; 0 if no such TCP connection exists.
fn last_seq(vm: &mut Vm<'_>, args: &[Value], side: usize) -> Value {
    let Some(known) = known(vm, args).filter(|known| known.proto == Proto::Tcp) else {
        return Value::Count(0);
    };
    if known.is_over {
        let text = "connection does not have TCP analyzer";
        vm.report(Severity::Error, text);
        return Value::Count(0);
    }
    let seq = known.facts().and_then(|facts| facts.seqs.get(side).copied());
    Value::Count(seq.map_or(0, u64::from))
}

fn set_login_state(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    // Zeek stores it in 8 bits.
    let number = arg(args, 1).count() as u8;
    let found = known(vm, args).and_then(|known| known.facts_mut().login.as_mut());
    let Some(state) = found else { return Ok(Value::Bool(false)) };
    *state = number;
    send_command(vm, args, |_| ConnCommand::Login { state: u64::from(number) })
}

/// The match runs after the queued events were handled.
fn match_signatures(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if vm.m.state.signatures.is_none() {
        return Ok(Value::Bool(false));
    }
    let id = id(vm, args);
    let kind = usize::try_from(arg(args, 1).int()).ok().and_then(|at| Kind::ALL.get(at).copied());
    if let (Some(key), Some(kind)) = (conn_id(vm, &id), kind) {
        let [begins, ends, is_orig, fresh] = [3, 4, 5, 6].map(|at| arg(args, at).truth());
        let data = arg(args, 2).str_bytes().to_vec();
        let request = MatchRequest { key, kind, data, begins, ends, is_orig, fresh };
        vm.m.state.traffic.matches.push(request);
    }
    Ok(Value::Bool(true))
}
