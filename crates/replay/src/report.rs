//! The report of a run.

use std::net::SocketAddr;
use std::time::Duration;
use std::time::SystemTime;

use crate::Counts;
use crate::Interval;
use crate::Timing;
use crate::Transport;
use crate::json;
use crate::plot;
use crate::source::Seen;
use crate::stats::Stats;
use crate::table;

/// The report of a run. Its counts are consistent: [`Counts::adds_up`].
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the input.
    pub input: String,
    /// Address of the server.
    pub target: SocketAddr,
    /// Transport of the queries.
    pub transport: Transport,
    /// Timing of the queries.
    pub timing: Timing,
    /// Number of sender threads.
    pub threads: usize,
    /// Number of clients, or of sockets if clients shared them.
    pub clients: usize,
    /// Number of source addresses in the input; 0 for lists.
    pub sources: usize,
    /// Queries per second that the schedule requested.
    pub requested_rate: Option<f64>,
    /// Due time of the last query.
    pub scheduled: Duration,
    /// Duration of the run, including the wait for the last answers.
    pub elapsed: Duration,
    /// Start time of the run.
    pub began: SystemTime,
    /// Maximum time to wait for an answer.
    pub timeout: Duration,
    /// Whether it was stopped early.
    pub stopped: bool,
    /// Counts of the input.
    pub seen: Seen,
    /// Number of queries that [`Options::rewrite`](crate::Options::rewrite) could not change, which
    /// were sent unchanged, and the reason for the first.
    pub unchanged: Option<(u64, String)>,
    /// Number of queries that were forgotten, because too many followed, before their answer was
    /// found in the input.
    pub forgotten: u64,
    pub(crate) total: Interval,
    pub(crate) stats: Stats,
}

impl Report {
    /// Counts of the run after the warm-up.
    pub fn counts(&self) -> &Counts {
        &self.total.counts
    }

    /// Counts and latencies of each interval, and the length of an interval.
    pub fn intervals(&self) -> (&[Interval], Duration) {
        (&self.stats.intervals, Duration::from_nanos(self.stats.interval_length))
    }

    /// Time from the start of the run to the last query.
    pub fn sending(&self) -> Duration {
        Duration::from_nanos(self.stats.last_sent)
    }

    /// Queries per second sent after the warm-up, without retries.
    pub fn achieved_rate(&self) -> f64 {
        let seconds = self.stats.last_sent.saturating_sub(self.stats.warm_up) as f64 / 1e9;
        // The time spans the gaps between queries, one less than queries.
        let gaps = self.counts().sent.saturating_sub(1) as f64;
        if seconds > 0.0 { gaps / seconds } else { 0.0 }
    }

    /// Delay of queries after their due times: median, 99th percentile and maximum. `None` without
    /// a schedule, or if nothing was sent.
    pub fn lag(&self) -> Option<[Duration; 3]> {
        let lag = &self.stats.lag;
        if self.counts().sent == 0 {
            return None;
        }
        let at = |q| Duration::from_nanos(lag.value_at_quantile(q));
        (!lag.is_empty()).then(|| [at(0.5), at(0.99), Duration::from_nanos(lag.max())])
    }

    /// Total time for which senders had to wait for a processor at wake-up: on a busy machine this
    /// is a part of the lag.
    pub fn cpu_wait(&self) -> Duration {
        Duration::from_nanos(self.stats.cpu_wait)
    }

    /// Latency at a quantile from 0 to 1.
    pub fn latency(&self, quantile: f64) -> Option<Duration> {
        let latency = &self.total.latency;
        (!latency.is_empty()).then(|| Duration::from_nanos(latency.value_at_quantile(quantile)))
    }

    /// Mean latency of the answers.
    pub fn mean_latency(&self) -> Option<Duration> {
        let latency = &self.total.latency;
        (!latency.is_empty()).then(|| Duration::from_nanos(latency.mean() as u64))
    }

    /// Time from the start of a connection until queries could be sent: median, 99th percentile and
    /// maximum.
    pub fn handshake(&self) -> Option<[Duration; 3]> {
        let times = &self.stats.handshake;
        let at = |q| Duration::from_nanos(times.value_at_quantile(q));
        (!times.is_empty()).then(|| [at(0.5), at(0.99), Duration::from_nanos(times.max())])
    }

    /// The first reason why a connection failed or a query could not be sent.
    pub fn first_error(&self) -> Option<&str> {
        self.stats.first_error.as_deref()
    }

    /// Whether all queries were sent during the warm-up, so that the totals are empty.
    pub fn is_all_warm_up(&self) -> bool {
        self.counts().sent == 0 && self.stats.excluded.counts.sent > 0
    }

    /// A table for the terminal.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// Lines of JSON objects by the schema of DNS-OARC's dns-metrics.
    pub fn json(&self, params: &[String]) -> String {
        json::render(self, params)
    }

    /// An SVG image of rates and latencies over time.
    pub fn svg(&self) -> String {
        plot::render(self)
    }
}
