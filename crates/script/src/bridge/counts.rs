//! Counters of connections, fragments and packets for statistics functions.

use std::collections::BTreeMap;

use gannet_base::Proto;
use gannet_event::{Raised, Value as Head};

use super::state::first_connection;
use crate::bif::telemetry::{Kind, Metrics};
use crate::bif::{Table, arg};
use crate::evaluate::Stop;
use crate::value::{Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table = &[
    ("get_conn_stats", conn_stats),
    ("get_file_analysis_stats", file_stats),
    ("get_gap_stats", gap_stats),
    ("get_reporter_stats", reporter_stats),
    ("get_reassembler_stats", reassembler_stats),
    ("get_timer_stats", timer_stats),
];

/// Functions that return these counts.
pub(super) const READERS: [&str; 8] = [
    "Telemetry::__collect_metrics",
    "Telemetry::collect_metrics",
    "get_conn_stats",
    "get_file_analysis_stats",
    "get_gap_stats",
    "get_reassembler_stats",
    "get_reporter_stats",
    "get_timer_stats",
];

/// Those that return counts of packets, fragments, acknowledgements, timers and reassembly.
pub(super) const READERS_OF_PACKETS: [&str; 4] =
    ["get_conn_stats", "get_gap_stats", "get_reassembler_stats", "get_timer_stats"];

/// Transports whose connections are counted, with their label in metrics.
const PROTOCOLS: [(Proto, &str); 3] =
    [(Proto::Tcp, "tcp"), (Proto::Udp, "udp"), (Proto::Icmp, "icmp")];

/// Connections of one transport.
#[derive(Clone, Copy, Default)]
struct Sessions {
    active: u64,
    total: u64,
    /// Maximum number at a time.
    max: u64,
}

/// The counts of a run.
#[derive(Default)]
pub(crate) struct Counts {
    sessions: [Sessions; 3],
    /// Connections of all transports.
    all: Sessions,
    /// Metrics of each transport; `None` before its first connection.
    metrics: [Option<[usize; 2]>; 3],
    inactive: u64,
    /// The input ended: connections that are removed from now on count as active, as in Zeek.
    is_over: bool,
    packets: u64,
    unprocessed: u64,
    fragments: u64,
    max_fragments: u64,
    files: Sessions,
    /// Number of weirds by name.
    weirds: BTreeMap<Vec<u8>, u64>,
    /// Acknowledgements and their bytes; acknowledgements with gaps, and the bytes of these.
    acks: [u64; 4],
    /// Timers of the analysis, and their maximum number after a packet.
    timers: [u64; 2],
    /// Bytes in reassembly buffers: of TCP streams and of fragments.
    buffered: [u64; 2],
}

impl Counts {
    /// Counts an event.
    pub(super) fn event(&mut self, metrics: &mut Metrics, event: &Raised<'_>) {
        match event.decl.name {
            "new_connection" => {
                if let Some(state) = first_connection(event) {
                    self.all.began();
                    if let Some(index) = protocol_index(state.proto) {
                        self.sessions[index].began();
                        self.metrics_of(metrics, index);
                    }
                }
            }
            "net_done" => self.is_over = true,
            "connection_state_remove" if !self.is_over => {
                if let Some(state) = first_connection(event) {
                    self.all.ended();
                    if let Some(index) = protocol_index(state.proto) {
                        self.sessions[index].ended();
                    }
                }
            }
            "gannet::connection_inactive" => self.inactive += 1,
            "gannet::weird_seen" => {
                if let Some(name) = event.args().bytes() {
                    self.weird(name);
                }
            }
            "file_new" => self.files.began(),
            "file_state_remove" => self.files.ended(),
            "gannet::packet_done" => {
                let mut reader = event.args();
                let mut args = event.decl.params.iter().map(|param| reader.param(param));
                let Some(Some(Head::Bool(processed))) = args.next() else { return };
                self.packets += 1;
                self.unprocessed += u64::from(!processed);
                let mut counts = [0; 9];
                for (arg, count) in args.zip(&mut counts) {
                    if let Some(Head::Count(n)) = arg {
                        *count = n;
                    }
                }
                let [fragments, max_fragments, acks @ .., timers, streams, buffered] = counts;
                (self.fragments, self.max_fragments, self.acks) = (fragments, max_fragments, acks);
                self.timers = [timers, timers.max(self.timers[1])];
                self.buffered = [streams, buffered];
            }
            _ => {}
        }
    }

    /// Counts a weird before sampling.
    pub(crate) fn weird(&mut self, name: &[u8]) {
        match self.weirds.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.weirds.insert(name.to_vec(), 1);
            }
        }
    }

    /// The metrics of a transport, created with its first connection.
    fn metrics_of(&mut self, metrics: &mut Metrics, index: usize) -> [usize; 2] {
        if self.metrics.iter().all(Option::is_none) {
            Self::ended(metrics);
        }
        *self.metrics[index].get_or_insert_with(|| {
            let label = vec![(b"protocol".to_vec(), PROTOCOLS[index].1.as_bytes().to_vec())];
            [
                (Kind::Gauge, "active_sessions", "Active Zeek Sessions"),
                (Kind::Counter, "total_sessions", "Total number of sessions"),
            ]
            .map(|(kind, name, help)| {
                let (name, help) = (name.as_bytes(), help.as_bytes());
                let family = metrics.family(kind, b"zeek", name, b"", help, Vec::new());
                metrics.metric(family, label.clone())
            })
        })
    }

    /// Updates metrics.
    pub(crate) fn update(&self, metrics: &mut Metrics) {
        for (own, counts) in self.metrics.iter().zip(&self.sessions) {
            if let Some([active, total]) = own {
                metrics.set(*active, counts.active as f64);
                metrics.set(*total, counts.total as f64);
            }
        }
        let ended = Self::ended(metrics);
        metrics.set(ended, self.inactive as f64);
    }

    /// The metric of connections that ended by inactivity timeout.
    fn ended(metrics: &mut Metrics) -> usize {
        let help = b"Number of sessions ended for specific reasons";
        let kind = Kind::Counter;
        let family = metrics.family(kind, b"zeek", b"ended_sessions", b"", help, Vec::new());
        metrics.metric(family, vec![(b"reason".to_vec(), b"inactivity".to_vec())])
    }
}

impl Sessions {
    fn began(&mut self) {
        self.active += 1;
        self.total += 1;
        self.max = self.max.max(self.active);
    }

    fn ended(&mut self) {
        self.active = self.active.saturating_sub(1);
    }
}

fn protocol_index(proto: Proto) -> Option<usize> {
    PROTOCOLS.iter().position(|(known, _)| *known == proto)
}

/// `get_file_analysis_stats`
fn file_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let Sessions { active, total, max } = vm.m.state.traffic.counts.files;
    let values = [active, max, total].map(Value::Count);
    Ok(Value::Record(Record::new(vm.result_type(), values.into())))
}

/// `get_reporter_stats`
fn reporter_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let by_type = vm.p.types.record(ty).and_then(|record| record.fields.get(1));
    let Some(by_type) = by_type.map(|field| field.ty) else { return Ok(Value::Unset) };
    let by_type = vm.new_table(by_type, None);
    let weirds = &vm.m.state.traffic.counts.weirds;
    if let Value::Table(table) = &by_type {
        for (name, count) in weirds {
            table.insert(Value::string(name.as_slice()), Value::Count(*count), vm.m.now);
        }
    }
    let all = Value::Count(weirds.values().sum());
    Ok(Value::Record(Record::new(ty, vec![all, by_type])))
}

/// `get_gap_stats`: acknowledgements and gaps. As in Zeek, which drops acknowledged bytes before it counts them, those are 0.
fn gap_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let [acks, _, gaps, bytes] = vm.m.state.traffic.counts.acks;
    let values = [acks, 0, gaps, bytes].map(Value::Count);
    Ok(Value::Record(Record::new(vm.result_type(), values.into())))
}

/// `get_reassembler_stats`: buffered bytes of files, fragments and TCP streams; those of files are not counted.
fn reassembler_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let [streams, fragments] = vm.m.state.traffic.counts.buffered;
    let values = [0, fragments, streams, 0].map(Value::Count);
    Ok(Value::Record(Record::new(vm.result_type(), values.into())))
}

/// `get_timer_stats`: timers of the analysis and of scripts. The cumulative count includes only those of scripts.
fn timer_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let [current, max] = vm.m.state.traffic.counts.timers;
    let own = vm.m.queue.timer_counts();
    let values = [current + own.current, max + own.peak, own.total].map(Value::Count);
    Ok(Value::Record(Record::new(vm.result_type(), values.into())))
}

/// `get_conn_stats`
fn conn_stats(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let _ = arg(args, 0);
    let state = &mut vm.m.state;
    for index in 0..PROTOCOLS.len() {
        state.traffic.counts.metrics_of(&mut state.metrics, index);
    }
    let counts = &state.traffic.counts;
    let mut all = vec![counts.all.total, counts.all.active, counts.all.active];
    all.extend([counts.packets, counts.fragments, counts.max_fragments]);
    all.extend(counts.sessions.iter().flat_map(|s| [s.active, s.max, s.total]));
    all.extend([counts.unprocessed, counts.inactive]);
    let values = all.into_iter().map(Value::Count).collect();
    Ok(Value::Record(Record::new(vm.result_type(), values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_connections() {
        let mut counts = Counts::default();
        let mut metrics = Metrics::default();
        counts.sessions[1].began();
        counts.sessions[1].began();
        counts.sessions[1].ended();
        counts.sessions[1].ended();
        counts.sessions[1].ended();
        let [active, total] = counts.metrics_of(&mut metrics, 1);
        counts.update(&mut metrics);
        assert_eq!((metrics.value(active), metrics.value(total)), (0.0, 2.0));
        assert_eq!(counts.sessions[1].max, 2);
    }
}
