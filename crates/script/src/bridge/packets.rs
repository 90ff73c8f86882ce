//! Built-in functions about packets (capture filters, packets that scripts write, contents of transports), and
//! the current packet.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};

use gannet_base::{Addr, Subnet};
use gannet_event::{Command, Raised, Value as Head};

use super::plan;
use super::traffic::{Packet, Traffic};
use crate::bif::{Table, arg, refused_in_sandbox};
use crate::evaluate::Stop;
use crate::value::{Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table = &[
    ("Pcap::precompile_pcap_filter", precompile),
    ("Pcap::install_pcap_filter", install),
    ("Pcap::error", |vm, _| {
        let error = &vm.m.state.traffic.filters.error;
        Ok(Value::string(error.as_deref().unwrap_or("no error")))
    }),
    ("Pcap::get_filter_state", |vm, a| {
        let id = arg(a, 0).int();
        let is_wrong = matches!(vm.m.state.traffic.filters.compiled.get(&id), Some(Err(_)));
        Ok(vm.enum_named(if is_wrong { "Pcap::fatal" } else { "Pcap::ok" }))
    }),
    ("Pcap::get_filter_state_string", |vm, a| {
        let id = arg(a, 0).int();
        Ok(match vm.m.state.traffic.filters.compiled.get(&id) {
            Some(Err(error)) => Value::string(error),
            Some(Ok(_)) => Value::string(""),
            None => Value::string("<unknown>"),
        })
    }),
    ("packet_source", packet_source),
    ("dump_current_packet", |vm, a| {
        if refused_in_sandbox(vm, "dump_current_packet") {
            return Ok(Value::Bool(false));
        }
        let path = arg(a, 0).text();
        let traffic = &mut vm.m.state.traffic;
        let Some(packet) = traffic.packet.as_ref() else { return Ok(Value::Bool(false)) };
        let result = traffic.dumps.write(&path, packet);
        Ok(report(vm, &path, &result))
    }),
    ("dump_packet", dump_packet),
    ("current_analyzer", |vm, _| Ok(Value::Count(vm.m.state.analyzer))),
    ("PacketAnalyzer::__set_ignore_checksums_nets", |vm, a| {
        vm.m.state.traffic.commands.push(Command::Unchecked(nets(arg(a, 0))));
        Ok(Value::Bool(true))
    }),
];

/// Checks a capture filter; the error is one line.
pub type FilterCheck = fn(&str) -> std::result::Result<(), String>;

/// The capture filters of scripts.
#[derive(Default)]
pub(crate) struct Filters {
    /// Checks filters; `None` if the run has no capture.
    pub(crate) check: Option<FilterCheck>,
    /// Compiled filters by number, or the error of the compilation.
    compiled: HashMap<i64, std::result::Result<String, String>>,
    error: Option<String>,
}

/// Captures that scripts write.
#[derive(Default)]
pub(crate) struct Dumps {
    open: HashMap<String, Dump>,
    /// Number of packets written.
    written: u64,
    /// Captures that are incomplete because of an error.
    failed: Vec<(String, std::io::Error)>,
}

struct Dump {
    file: BufWriter<File>,
    /// The number of the last packet written to it.
    last: u64,
}

/// Maximum number of open captures. Beyond it, the capture that was written to least recently is closed, and opened again for
/// its next packet.
const MAX_OPEN: usize = 64;
/// The snapshot length in the header of captures.
const SNAPLEN: u32 = 9_216;

/// The header of a capture: version 2.4, local time zone and precision not stated (pcap-savefile(5)).
fn write_header(file: &mut impl std::io::Write, link_type: u32) -> std::io::Result<()> {
    file.write_all(&0xa1b2_c3d4_u32.to_le_bytes())?;
    file.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
    file.write_all(&SNAPLEN.to_le_bytes())?;
    file.write_all(&link_type.to_le_bytes())
}

/// Link type of a capture without packets.
const ETHERNET: u32 = 1;

/// Creates the capture of `-w` if no packet was written to it.
pub(crate) fn end_capture(path: &str) -> std::io::Result<()> {
    if std::fs::metadata(path)?.len() == 0 {
        write_header(&mut OpenOptions::new().append(true).open(path)?, ETHERNET)?;
    }
    Ok(())
}

impl Dumps {
    /// Appends a packet to a capture, which is created if it does not exist.
    pub(crate) fn write(&mut self, path: &str, packet: &Packet) -> std::io::Result<()> {
        if !self.open.contains_key(path) {
            if self.open.len() >= MAX_OPEN {
                let oldest = self.open.iter().min_by_key(|(_, dump)| dump.last);
                if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                    self.close(oldest);
                }
            }
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let is_new = file.metadata()?.len() == 0;
            let mut file = BufWriter::new(file);
            if is_new {
                write_header(&mut file, packet.link_type as u32)?;
            }
            self.open.insert(path.to_owned(), Dump { file, last: 0 });
        }
        let Some(Dump { file, last }) = self.open.get_mut(path) else { return Ok(()) };
        self.written += 1;
        *last = self.written;
        let seconds = packet.nanos.div_euclid(1_000_000_000) as u32;
        let micros = (packet.nanos.rem_euclid(1_000_000_000) / 1_000) as u32;
        for word in [seconds, micros, packet.data.len() as u32, packet.len as u32] {
            file.write_all(&word.to_le_bytes())?;
        }
        file.write_all(&packet.data)
    }

    fn close(&mut self, path: String) {
        if let Some(mut dump) = self.open.remove(&path)
            && let Err(error) = dump.file.flush()
        {
            self.failed.push((path, error));
        }
    }

    /// Flushes all captures, and returns those that are incomplete because of an error.
    pub(crate) fn finish(&mut self) -> Vec<(String, std::io::Error)> {
        let mut open: Vec<String> = self.open.keys().cloned().collect();
        open.sort();
        for path in open {
            self.close(path);
        }
        std::mem::take(&mut self.failed)
    }
}

fn report(vm: &mut Vm<'_>, path: &str, result: &std::io::Result<()>) -> Value {
    if let Err(error) = result {
        let text = format!("can't write packets to '{path}': {error}");
        vm.report(crate::diagnostics::Severity::Error, text);
    }
    Value::Bool(result.is_ok())
}

fn dump_packet(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if refused_in_sandbox(vm, "dump_packet") {
        return Ok(Value::Bool(false));
    }
    let path = arg(args, 1).text();
    let Some(record) = arg(args, 0).record() else { return Ok(Value::Bool(false)) };
    let names = ["ts_sec", "ts_usec", "len", "data"];
    let [seconds, micros, len, data] = plan::field_offsets(vm, record.ty(), names)
        .map(|offset| offset.map_or(Value::Unset, |offset| record.get(offset)));
    let nanos = |count: u64, unit| i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(unit);
    let seconds = nanos(seconds.count(), 1_000_000_000);
    let nanos = seconds.saturating_add(nanos(micros.count(), 1_000));
    let link_type = vm.m.state.traffic.link_type.unwrap_or(1);
    let data = data.str_bytes().to_vec();
    let packet = Packet { nanos, data, len: len.count(), link_type };
    let result = vm.m.state.traffic.dumps.write(&path, &packet);
    Ok(report(vm, &path, &result))
}

fn precompile(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (id, text) = (arg(args, 0).int(), arg(args, 1).text());
    let filters = &mut vm.m.state.traffic.filters;
    let Some(check) = filters.check else { return Ok(Value::Bool(true)) };
    let checked = check(&text);
    filters.error = checked.as_ref().err().cloned();
    let is_good = checked.is_ok();
    filters.compiled.insert(id, checked.map(|()| text));
    Ok(Value::Bool(is_good))
}

fn install(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let traffic = &mut vm.m.state.traffic;
    if traffic.filters.check.is_none() {
        return Ok(Value::Bool(true));
    }
    let Some(Ok(text)) = traffic.filters.compiled.get(&arg(args, 0).int()) else {
        return Ok(Value::Bool(false));
    };
    // All packets.
    let is_open = matches!(text.trim(), "" | "ip or not ip");
    let filter = (!is_open).then(|| text.clone());
    traffic.commands.push(Command::Filter(filter));
    Ok(Value::Bool(true))
}

fn packet_source(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    /// The netmask of a capture file is unknown.
    const NO_NETMASK: u64 = 0xffff_ffff;
    let traffic = &vm.m.state.traffic;
    let mut fields = vec![Value::Bool(traffic.is_live)];
    if traffic.reads_capture || traffic.is_live {
        let link_type = traffic.link_type.map_or(Value::Unset, |link| Value::Int(link as i64));
        fields.extend([Value::string(&traffic.capture), link_type, Value::Count(NO_NETMASK)]);
    }
    let record: Vec<Value> = fields;
    Ok(Value::Record(Record::new(vm.result_type(), record)))
}

/// The elements of a set of subnets.
pub(super) fn nets(set: &Value) -> Vec<Subnet> {
    let net = |key: Value| {
        let net = crate::value::table::parts(&key).first()?.as_subnet()?;
        let addr = Addr::v6(net.prefix);
        match net.prefix {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] if net.width >= 96 => {
                Subnet::new(Addr::v4([a, b, c, d]), net.width - 96)
            }
            _ => Subnet::new(addr, net.width),
        }
    };
    set.table().map_or(Vec::new(), |table| table.keys().into_iter().filter_map(net).collect())
}

/// Handles a packet with its bytes, which scripts may read, and the command line may write.
pub(super) fn bytes(vm: &mut Vm<'_>, event: &Raised<'_>) -> Result<()> {
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

/// Handles a packet whose bytes scripts do not read.
pub(super) fn seen(traffic: &mut Traffic, event: &Raised<'_>) {
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

/// Whether scripts requested the contents that an event of a transport carries.
pub(super) fn delivers(vm: &Vm<'_>, transport: &str, args: &[Value]) -> bool {
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
    let [id] = plan::field_offsets(vm, record.ty(), ["id"]);
    let Some(id) = id.map(|id| record.get(id)) else { return false };
    let Some(id) = id.record() else { return false };
    let by_responder = vm.global_named("udp_content_delivery_ports_use_resp").truth();
    let [orig, resp] = plan::field_offsets(vm, id.ty(), ["orig_p", "resp_p"]);
    let port = |offset: Option<usize>| offset.map_or(Value::Unset, |offset| id.get(offset));
    let (orig, resp) = (port(orig), port(resp));
    if transport == "udp" && (has("udp_content_ports", &orig) || has("udp_content_ports", &resp)) {
        return true;
    }
    let port = if transport == "tcp" || is_orig || by_responder { resp } else { orig };
    has(&format!("{transport}_content_delivery_ports_{side}"), &port)
}
