//! Decisions that scripts make while a packet is parsed: which packets are discarded, and which connections stay open.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_event::{Command, Raised};

use super::plan::{Plan, field_offsets};
use super::state::{States, first_connection};
use crate::bif::{Table, arg};
use crate::evaluate::Stop;
use crate::ids::FuncId;
use crate::support::pattern::{Modes, Pattern};
use crate::value::{Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table = &[
    ("install_src_addr_filter", |vm, a| install(vm, a, 0)),
    ("install_src_net_filter", |vm, a| install(vm, a, 0)),
    ("install_dst_addr_filter", |vm, a| install(vm, a, 1)),
    ("install_dst_net_filter", |vm, a| install(vm, a, 1)),
    ("uninstall_src_addr_filter", |vm, a| uninstall(vm, a, 0)),
    ("uninstall_src_net_filter", |vm, a| uninstall(vm, a, 0)),
    ("uninstall_dst_addr_filter", |vm, a| uninstall(vm, a, 1)),
    ("uninstall_dst_net_filter", |vm, a| uninstall(vm, a, 1)),
];

/// Script functions that discard packets.
pub(super) const DISCARDERS: [&str; 4] =
    ["discarder_check_ip", "discarder_check_tcp", "discarder_check_udp", "discarder_check_icmp"];

/// Functions that install address filters.
pub(super) const INSTALLERS: [&str; 4] = [
    "install_src_addr_filter",
    "install_src_net_filter",
    "install_dst_addr_filter",
    "install_dst_net_filter",
];

/// Login events, which depend on text lists of scripts.
pub(super) const LOGINS: [&str; 7] = [
    "authentication_skipped",
    "login_confused",
    "login_confused_text",
    "login_failure",
    "login_input_line",
    "login_output_line",
    "login_success",
];

/// Text lists of scripts by name, each as of its first use.
#[derive(Default)]
pub(crate) struct LoginTexts(HashMap<Vec<u8>, Option<Pattern>>);

/// Whether a line contains a text of a list. As in Zeek, an empty list matches any line.
fn has_login_text(vm: &mut Vm<'_>, question: &Raised<'_>) -> bool {
    let [list, line] = question.decl.params else { return false };
    let mut reader = question.args();
    let mut text = |param| match reader.param(param) {
        Some(gannet_event::Value::String(text)) => text,
        _ => &[],
    };
    let (list, line) = (text(list), text(line));
    if !vm.m.state.traffic.login_texts.0.contains_key(list) {
        let pattern = login_texts(vm, list);
        vm.m.state.traffic.login_texts.0.insert(list.to_vec(), pattern);
    }
    match vm.m.state.traffic.login_texts.0.get(list) {
        Some(Some(pattern)) => pattern.is_in(line),
        _ => true,
    }
}

/// The texts of a list as one pattern; `None` if the list is empty.
fn login_texts(vm: &Vm<'_>, list: &[u8]) -> Option<Pattern> {
    let Value::Table(table) = vm.global_named(std::str::from_utf8(list).ok()?) else { return None };
    let mut texts: Option<Vec<u8>> = None;
    for key in table.keys() {
        let parts = crate::value::table::parts(&key);
        let Some(text) = parts.first().and_then(Value::bytes) else { continue };
        let all = texts.get_or_insert_default();
        if !all.is_empty() {
            all.push(b'|');
        }
        all.extend([b"(", text, b")"].concat());
    }
    Some(Pattern::new(&texts?, Modes::default()))
}

/// Address filters that scripts install: by source, then by destination.
#[derive(Default)]
pub(crate) struct AddressFilters([Vec<AddressFilter>; 2]);

/// Drops packets of a network, except TCP packets with any of these flags.
struct AddressFilter {
    prefix: [u8; 16],
    /// Prefix length in bits, of 128.
    width: u8,
    flags: u64,
    probability: f64,
}

impl AddressFilter {
    fn contains(&self, addr: [u8; 16]) -> bool {
        let shift = 128_u32.saturating_sub(u32::from(self.width));
        let cut = |bytes| u128::from_be_bytes(bytes).checked_shr(shift).unwrap_or(0);
        cut(self.prefix) == cut(addr)
    }
}

/// An address or a network, as prefix and prefix length.
fn network(value: &Value) -> Option<([u8; 16], u8)> {
    match value.as_subnet() {
        Some(net) => Some((net.prefix, net.width)),
        None => value.addr_bytes().map(|bytes| (bytes, 128)),
    }
}

fn install(vm: &mut Vm<'_>, args: &[Value], side: usize) -> Result<Value> {
    if let Some((prefix, width)) = network(arg(args, 0)) {
        let (flags, probability) = (arg(args, 1).count(), arg(args, 2).double());
        let all = &mut vm.m.state.traffic.address_filters.0[side];
        all.retain(|filter| (filter.prefix, filter.width) != (prefix, width));
        all.push(AddressFilter { prefix, width, flags, probability });
        vm.m.state.traffic.commands.push(Command::AskToDiscard);
    }
    Ok(Value::Bool(true))
}

fn uninstall(vm: &mut Vm<'_>, args: &[Value], side: usize) -> Result<Value> {
    let all = &mut vm.m.state.traffic.address_filters.0[side];
    let before = all.len();
    if let Some(net) = network(arg(args, 0)) {
        all.retain(|filter| (filter.prefix, filter.width) != net);
    }
    Ok(Value::Bool(all.len() < before))
}

/// Answers a question: whether a packet is discarded, or a connection stays open.
pub(super) fn answer(vm: &mut Vm<'_>, states: &mut States, question: &Raised<'_>) -> Result<bool> {
    match question.decl.name {
        "gannet::discard_packet" => discards(vm, states, question),
        "gannet::login_text" => Ok(has_login_text(vm, question)),
        "gannet::connection_timing_out" => {
            let Some(hook) = vm.function_named("connection_timing_out") else { return Ok(false) };
            let Some(ty) = vm.type_named("connection") else { return Ok(false) };
            let Some(state) = first_connection(question) else { return Ok(false) };
            let c = states.connection(vm, ty, state)?;
            let goes = vm.call_func(hook, &[c]);
            Ok(matches!(goes, Ok(Value::Bool(false))))
        }
        _ => Ok(false),
    }
}

fn discards(vm: &mut Vm<'_>, states: &mut States, question: &Raised<'_>) -> Result<bool> {
    // Filters can be removed: the header record is created only while filters exist.
    let has_filters = vm.m.state.traffic.address_filters.0.iter().any(|all| !all.is_empty());
    if !has_filters && !has_discarders(vm) {
        return Ok(false);
    }
    let [hdr, protocol, data, ..] = question.decl.params else { return Ok(false) };
    let Some(ty) = vm.type_named("pkt_hdr") else { return Ok(false) };
    let plan = Plan::new(vm, &hdr.ty, ty);
    let mut reader = question.args();
    let header = plan.param(vm, states, question, &mut reader, hdr)?;
    let number = match reader.param(protocol) {
        Some(gannet_event::Value::Count(number)) => number,
        _ => 0,
    };
    let data = match reader.param(data) {
        Some(gannet_event::Value::String(data)) => data,
        _ => &[],
    };
    if is_filtered(vm, &header) {
        return Ok(true);
    }
    let longest =
        usize::try_from(vm.global_named("discarder_maxlen").count()).unwrap_or(usize::MAX);
    let data = Value::string(data.get(..longest).unwrap_or(data));
    if check(vm, "discarder_check_ip", std::slice::from_ref(&header))? {
        return Ok(true);
    }
    match number {
        6 => check(vm, "discarder_check_tcp", &[header, data]),
        17 => check(vm, "discarder_check_udp", &[header, data]),
        1 => check(vm, "discarder_check_icmp", &[header]),
        _ => Ok(false),
    }
}

/// Whether a script function returns true; an error counts as false.
fn check(vm: &mut Vm<'_>, name: &str, args: &[Value]) -> Result<bool> {
    let Some(func) = body(vm, name) else { return Ok(false) };
    match vm.call_func(func, args) {
        Ok(answer) => Ok(answer.truth()),
        Err(Stop::Error) => Ok(false),
        Err(stop) => Err(stop),
    }
}

/// Whether scripts define functions that discard packets.
pub(super) fn has_discarders(vm: &Vm<'_>) -> bool {
    let found = &vm.m.state.traffic.has_discarders;
    *found.get_or_init(|| DISCARDERS.iter().any(|name| body(vm, name).is_some()))
}

/// A script function that has a body.
fn body(vm: &Vm<'_>, name: &str) -> Option<FuncId> {
    vm.function_named(name).filter(|func| !vm.p.functions[*func].bodies.is_empty())
}

/// Whether an address filter drops a packet: the longest prefix that matches its source, else the longest that matches its
/// destination.
fn is_filtered(vm: &mut Vm<'_>, header: &Value) -> bool {
    let Some(all) = header.record() else { return false };
    let filters = std::mem::take(&mut vm.m.state.traffic.address_filters);
    let ip = ["ip", "ip6"].into_iter().find_map(|name| part(vm, all, name));
    let flags = part(vm, all, "tcp").map_or(0, |tcp| field(vm, &tcp, "flags").count());
    let found = ip.and_then(|ip| {
        ["src", "dst"].into_iter().zip(&filters.0).find_map(|(name, filters)| {
            let addr = field(vm, &ip, name).addr_bytes()?;
            let fitting = filters.iter().filter(|filter| filter.contains(addr));
            fitting.max_by_key(|filter| filter.width)
        })
    });
    let drops = found.is_some_and(|filter| {
        let below = |vm: &mut Vm<'_>| vm.m.state.random.below(1 << 30) as f64 / f64::from(1 << 30);
        flags & filter.flags == 0 && (filter.probability >= 1.0 || below(vm) < filter.probability)
    });
    vm.m.state.traffic.address_filters = filters;
    drops
}

fn part(vm: &Vm<'_>, record: &Rc<Record>, name: &str) -> Option<Rc<Record>> {
    field(vm, record, name).record().cloned()
}

fn field(vm: &Vm<'_>, record: &Rc<Record>, name: &str) -> Value {
    let [offset] = field_offsets(vm, record.ty(), [name]);
    offset.map_or(Value::Unset, |offset| record.get(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_addresses_with_their_prefix() {
        let mut prefix = [0; 16];
        prefix[10..14].copy_from_slice(&[0xff, 0xff, 192, 0]);
        let mut filter = AddressFilter { prefix, width: 112, flags: 0, probability: 1.0 };
        let mut addr = prefix;
        addr[15] = 7;
        assert!(filter.contains(addr));
        addr[13] = 1;
        assert!(!filter.contains(addr));
        filter.width = 0;
        assert!(filter.contains([0xff; 16]));
        filter.width = 128;
        assert!(filter.contains(prefix) && !filter.contains(addr));
    }
}
