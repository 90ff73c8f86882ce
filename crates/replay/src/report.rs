//! What came of a run.

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

/// What came of a run. It adds up: [`Counts::adds_up`].
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the input.
    pub input: String,
    /// Where.
    pub target: SocketAddr,
    /// Over what.
    pub transport: Transport,
    /// When.
    pub timing: Timing,
    /// Threads that sent.
    pub threads: usize,
    /// Clients that sent, or sockets that they shared.
    pub clients: usize,
    /// Source addresses in the input; 0 for lists.
    pub sources: usize,
    /// Queries a second that the schedule asked for.
    pub asked: Option<f64>,
    /// When the last query was due.
    pub scheduled: Duration,
    /// How long it took, waiting for the last answers included.
    pub elapsed: Duration,
    /// When it began.
    pub began: SystemTime,
    /// How long an answer could take.
    pub timeout: Duration,
    /// Whether it was stopped early.
    pub stopped: bool,
    /// Counts of the input.
    pub seen: Seen,
    /// Queries that could not be changed as [`Options::rewrite`](crate::Options::rewrite) asks, and were sent as they are;
    /// and why the first of them.
    pub unchanged: Option<(u64, String)>,
    /// Queries that were forgotten, as too many followed, before their answer was found in the input.
    pub forgotten: u64,
    pub(crate) total: Interval,
    pub(crate) stats: Stats,
}

impl Report {
    /// Counts of all that came after the warm-up.
    pub fn counts(&self) -> &Counts {
        &self.total.counts
    }

    /// Counts and latencies of each interval, and how long one is.
    pub fn intervals(&self) -> (&[Interval], Duration) {
        (&self.stats.intervals, Duration::from_nanos(self.stats.every))
    }

    /// When the last query was sent.
    pub fn sending(&self) -> Duration {
        Duration::from_nanos(self.stats.last_sent)
    }

    /// Queries a second that were sent, after the warm-up, each counted once: retries are apart.
    pub fn reached(&self) -> f64 {
        let seconds = self.stats.last_sent.saturating_sub(self.stats.warm_up) as f64 / 1e9;
        // The first query opens the time, it takes none.
        let gaps = self.counts().sent.saturating_sub(1) as f64;
        if seconds > 0.0 { gaps / seconds } else { 0.0 }
    }

    /// How late queries were sent: the median, the 99th percentile and the most. `None` where no
    /// schedule said when, or nothing was sent.
    pub fn lag(&self) -> Option<[Duration; 3]> {
        let lag = &self.stats.lag;
        if self.counts().sent == 0 {
            return None;
        }
        let at = |q| Duration::from_nanos(lag.value_at_quantile(q));
        (!lag.is_empty()).then(|| [at(0.5), at(0.99), Duration::from_nanos(lag.max())])
    }

    /// Total time for which senders that were due had no processor: on a busy machine this is a
    /// part of the lag.
    pub fn held_up(&self) -> Duration {
        Duration::from_nanos(self.stats.held_up)
    }

    /// Latency at a share of the answers, 0 to 1.
    pub fn latency(&self, quantile: f64) -> Option<Duration> {
        let latency = &self.total.latency;
        (!latency.is_empty()).then(|| Duration::from_nanos(latency.value_at_quantile(quantile)))
    }

    /// Mean latency of the answers.
    pub fn mean_latency(&self) -> Option<Duration> {
        let latency = &self.total.latency;
        (!latency.is_empty()).then(|| Duration::from_nanos(latency.mean() as u64))
    }

    /// How long connections took until queries could go over them: the median, the 99th percentile
    /// and the most.
    pub fn handshake(&self) -> Option<[Duration; 3]> {
        let times = &self.stats.handshake;
        let at = |q| Duration::from_nanos(times.value_at_quantile(q));
        (!times.is_empty()).then(|| [at(0.5), at(0.99), Duration::from_nanos(times.max())])
    }

    /// Why connections failed or queries could not be sent: the first reason.
    pub fn trouble(&self) -> Option<&str> {
        self.stats.trouble.as_deref()
    }

    /// Whether everything that was sent was sent in the warm-up, so that the totals have nothing.
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

    /// A picture of rates and latencies over time.
    pub fn svg(&self) -> String {
        plot::render(self)
    }
}
