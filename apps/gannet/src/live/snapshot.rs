//! A snapshot of a sensor's counters: for metrics, for stats.log, and for the table at its end.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_engine::Gauge;
use gannet_engine::StatsRow;
use gannet_live::Ledger;
use gannet_live::LinkCounters;
use indicatif::HumanCount;
use serde_json::Value;
use serde_json::json;

use super::sinks::SinkCounts;

/// All counters since the start of the sensor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) time: Time,
    pub(crate) ledger: Ledger,
    pub(crate) gauge: Gauge,
    /// Number of packets analysed, and of their bytes.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Number of packets that the filter rejected.
    pub(crate) filtered: u64,
    /// Number of rows written, by log.
    pub(crate) rows: Vec<(&'static str, u64)>,
    /// Number of rows that could not be written, by log.
    pub(crate) discarded: Vec<(&'static str, u64)>,
    /// Counters of each sink.
    pub(crate) sinks: Vec<SinkCounts>,
    /// Seconds between the capture of the last packet and its analysis.
    pub(crate) lag: f64,
    /// Resident memory in bytes.
    pub(crate) memory: u64,
    /// The hosts and services with the most traffic, while `gannet top` requests them.
    pub(crate) talkers: Value,
}

/// The latest snapshot, for other threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest(Arc<Mutex<(Snapshot, Option<Instant>)>>);

/// How long talkers are counted after a request.
const WATCH_TIME: Duration = Duration::from_secs(5);

impl Latest {
    fn lock(&self) -> MutexGuard<'_, (Snapshot, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, snapshot: &Snapshot) {
        self.lock().0.clone_from(snapshot);
    }

    pub(crate) fn get(&self) -> Snapshot {
        self.lock().0.clone()
    }

    /// Requests talkers in the next snapshots.
    pub(crate) fn watch(&self) {
        self.lock().1 = Some(Instant::now());
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.lock().1.is_some_and(|asked| asked.elapsed() < WATCH_TIME)
    }
}

impl Snapshot {
    fn rows_written(&self) -> u64 {
        self.rows.iter().map(|(_, rows)| rows).sum()
    }

    fn received(&self) -> u64 {
        self.ledger.links.values().map(|link| link.received).sum()
    }

    /// The snapshot as JSON, for `gannet top` and other programs.
    pub(crate) fn json(&self) -> Value {
        let by_log = |rows: &[(&'static str, u64)]| {
            rows.iter()
                .map(|(log, rows)| ((*log).to_owned(), Value::from(*rows)))
                .collect::<Value>()
        };
        let [tcp, udp, icmp] = self.gauge.active;
        let links = self.ledger.links.keys().cloned().collect::<Value>();
        let sinks = self.sinks.iter().map(|sink| {
            json!({
                "name": sink.name, "sent": sink.sent, "queued": sink.queued, "spooled": sink.spooled,
                "dropped": sink.dropped,
            })
        });
        json!({
            "time": self.time.as_secs_f64(),
            "version": env!("CARGO_PKG_VERSION"),
            "interfaces": links,
            "packets": self.packets,
            "bytes": self.bytes,
            "dropped": self.ledger.lost(),
            "filtered": self.filtered,
            "lag": self.lag,
            "memory": self.memory,
            "connections": self.gauge.connections,
            "active": { "tcp": tcp, "udp": udp, "icmp": icmp },
            "rows": by_log(&self.rows),
            "discarded": by_log(&self.discarded),
            "sinks": sinks.collect::<Value>(),
            "talkers": self.talkers,
        })
    }

    /// The row of stats.log for the time since the snapshot `before`.
    pub(crate) fn row<'a>(&self, before: &Self, peer: &'a str) -> StatsRow<'a> {
        let [tcp, udp, icmp] = self.gauge.active;
        StatsRow {
            ts: self.time,
            peer,
            mem: self.memory >> 20,
            pkts_proc: self.packets - before.packets,
            bytes_recv: self.bytes - before.bytes,
            pkts_dropped: Some(self.ledger.lost().saturating_sub(before.ledger.lost())),
            pkts_link: Some(self.received().saturating_sub(before.received())),
            pkt_lag: Some(Interval::from_secs_f64(self.lag)),
            pkts_filtered: Some(self.filtered - before.filtered),
            events_proc: self.rows_written().saturating_sub(before.rows_written()),
            events_queued: self.sinks.iter().map(|sink| sink.queued).sum(),
            active_tcp_conns: tcp,
            active_udp_conns: udp,
            active_icmp_conns: icmp,
            tcp_conns: self.gauge.connections.saturating_sub(before.gauge.connections),
            udp_conns: None,
            icmp_conns: None,
            timers: None,
            active_timers: self.gauge.timers,
            files: None,
            active_files: self.gauge.files,
            dns_requests: 0,
            active_dns_requests: 0,
            reassem_tcp_size: self.gauge.reassembly,
            reassem_file_size: None,
            reassem_frag_size: self.gauge.fragments,
            reassem_unknown_size: 0,
        }
    }
}

impl Snapshot {
    /// Reports the losses as messages, for sensors without a table at the end.
    pub(crate) fn report_losses(&self) {
        let packets = self.ledger.lost();
        if packets > 0 {
            tracing::error!(
                packets,
                "{} packets were lost before the analysis",
                HumanCount(packets)
            );
        }
        for SinkCounts { name, dropped, .. } in self.sinks.iter().filter(|sink| sink.dropped > 0) {
            let count = HumanCount(*dropped);
            tracing::error!(sink = %name, rows = *dropped, "{name}: {count} rows were dropped without being sent");
        }
        for (log, rows) in &self.discarded {
            let count = HumanCount(*rows);
            tracing::error!(rows = *rows, "{count} rows of {log} could not be written");
        }
    }
}

/// The losses, for the table at the end. Packets read and dropped are always shown, other lines only if something was lost.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rings = &self.ledger.rings;
        let mut line = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:<13}{value}");
        line("read", &HumanCount(rings.read))?;
        line("dropped", &format_args!("{} at the capture ring", HumanCount(rings.dropped)))?;
        let of = |count: fn(&LinkCounters) -> u64| self.ledger.links.values().map(count).sum();
        let others: [(u64, &str); 8] = [
            (rings.freezes, "times the ring was full"),
            (rings.truncated, "packets truncated: longer than a block of the ring"),
            (rings.duplicates, "duplicate loopback packets ignored"),
            (of(|link| link.missed), "packets missed by the network card"),
            (of(|link| link.dropped), "packets dropped by the driver or the kernel"),
            (of(|link| link.errors), "damaged frames"),
            (self.ledger.backlog_drops, "packets dropped in the kernel's backlog (all interfaces)"),
            (rings.downs, "times an interface was down"),
        ];
        for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
            line("", &format_args!("{} {what}", HumanCount(*count)))?;
        }
        for SinkCounts { name, sent, spooled, dropped, .. } in &self.sinks {
            let (sent, dropped) = (HumanCount(*sent), HumanCount(*dropped));
            line("sent", &format_args!("{sent} rows to {name}, {dropped} dropped"))?;
            if *spooled > 0 {
                let spooled = HumanCount(*spooled);
                line("", &format_args!("{spooled} rows in the spool of {name}"))?;
            }
        }
        for (log, rows) in &self.discarded {
            line(
                "discarded",
                &format_args!("{} rows of {log} could not be written", HumanCount(*rows)),
            )?;
        }
        Ok(())
    }
}

/// Resident memory of this process in bytes.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = status.split_whitespace().nth(1).and_then(|p| p.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
