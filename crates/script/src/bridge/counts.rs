//! What statistics of scripts count: connections, fragments, packets.

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
pub(crate) const TABLE: Table = &[("get_conn_stats", conn_stats)];

/// Functions that ask for these counts.
pub(super) const READERS: [&str; 3] =
    [READER_OF_PACKETS, "Telemetry::__collect_metrics", "Telemetry::collect_metrics"];

/// The one of them that asks for counts of packets and fragments.
pub(super) const READER_OF_PACKETS: &str = "get_conn_stats";

/// Transports whose connections are counted, by the names that metrics have for them.
const PROTOCOLS: [(Proto, &str); 3] =
    [(Proto::Tcp, "tcp"), (Proto::Udp, "udp"), (Proto::Icmp, "icmp")];

/// Connections of one transport.
#[derive(Clone, Copy, Default)]
struct Sessions {
    active: u64,
    total: u64,
    /// The most at a time.
    most: u64,
}

/// The counts of a run.
#[derive(Default)]
pub(crate) struct Counts {
    sessions: [Sessions; 3],
    /// Connections of all transports.
    all: Sessions,
    /// Metrics of connections, once there are some.
    metrics: [Option<[usize; 2]>; 3],
    inactive: u64,
    /// The input ended: connections that are removed from now on count as active, as in Zeek.
    is_over: bool,
    packets: u64,
    unprocessed: u64,
    fragments: u64,
    most_fragments: u64,
}

impl Counts {
    /// Takes what an event says.
    pub(super) fn event(&mut self, metrics: &mut Metrics, event: &Raised<'_>) {
        match event.decl.name {
            "new_connection" => {
                if let Some(state) = first_connection(event) {
                    self.all.began();
                    if let Some(place) = place(state.proto) {
                        self.sessions[place].began();
                        self.metrics_of(metrics, place);
                    }
                }
            }
            "net_done" => self.is_over = true,
            "connection_state_remove" if !self.is_over => {
                if let Some(state) = first_connection(event) {
                    self.all.ended();
                    if let Some(place) = place(state.proto) {
                        self.sessions[place].ended();
                    }
                }
            }
            "connection_timeout" => self.inactive += 1,
            "gannet::packet_done" => {
                let mut reader = event.args();
                let mut args = event.decl.params.iter().map(|param| reader.param(param));
                if let (
                    Some(Some(Head::Bool(processed))),
                    Some(Some(Head::Count(fragments))),
                    Some(Some(Head::Count(most))),
                ) = (args.next(), args.next(), args.next())
                {
                    self.packets += 1;
                    self.unprocessed += u64::from(!processed);
                    (self.fragments, self.most_fragments) = (fragments, most);
                }
            }
            _ => {}
        }
    }

    /// The metrics of a transport, which are made with its first connection.
    fn metrics_of(&mut self, metrics: &mut Metrics, place: usize) -> [usize; 2] {
        if self.metrics.iter().all(Option::is_none) {
            Self::ended(metrics);
        }
        *self.metrics[place].get_or_insert_with(|| {
            let label = vec![(b"protocol".to_vec(), PROTOCOLS[place].1.as_bytes().to_vec())];
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

    /// Brings metrics up to date.
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

    /// The metric of connections that ended by silence.
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
        self.most = self.most.max(self.active);
    }

    fn ended(&mut self) {
        self.active = self.active.saturating_sub(1);
    }
}

fn place(proto: Proto) -> Option<usize> {
    PROTOCOLS.iter().position(|(known, _)| *known == proto)
}

/// `get_conn_stats`
fn conn_stats(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let _ = arg(args, 0);
    let state = &mut vm.m.state;
    for place in 0..PROTOCOLS.len() {
        state.traffic.counts.metrics_of(&mut state.metrics, place);
    }
    let counts = &state.traffic.counts;
    let mut all = vec![counts.all.total, counts.all.active, counts.all.active];
    all.extend([counts.packets, counts.fragments, counts.most_fragments]);
    all.extend(counts.sessions.iter().flat_map(|s| [s.active, s.most, s.total]));
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
        assert_eq!(counts.sessions[1].most, 2);
    }
}
