//! Counters of queries and answers.

use std::io;

use hdrhistogram::Histogram;

use crate::Options;
use crate::paced_queue::PREEMPTED_GAP;
use crate::paced_queue::nanoseconds;
use crate::socket;

/// Significant digits of histograms: values are accurate to one percent.
const DIGITS: u8 = 2;
/// Maximum value of a histogram: ten minutes in nanoseconds.
const MAX_TIME: u64 = 600_000_000_000;
/// Maximum number of intervals; beyond it, pairs of intervals are merged.
const MAX_INTERVALS: usize = 1024;

/// Counts of one run, or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Queries that the kernel accepted, without retries.
    pub sent: u64,
    /// Queries that were answered in time.
    pub answered: u64,
    /// Queries without an answer in time, after all retries.
    pub lost: u64,
    /// Queries that waited for their answer when the run was stopped.
    pub open: u64,
    /// Queries that were sent without looking for answers.
    pub unwatched: u64,
    /// Number of retries.
    pub retries: u64,
    /// Answers that arrived after their query was counted as lost.
    pub late: u64,
    /// Second answers to the same query.
    pub duplicates: u64,
    /// Answers whose id fits a waiting query but whose question does not.
    pub mismatched: u64,
    /// Answers without a matching query.
    pub unexpected: u64,
    /// Messages that are not DNS responses.
    pub garbage: u64,
    /// Number of reports of a closed port (ICMP port unreachable, connection refused).
    pub refused: u64,
    /// Number of reports that no route leads to the server.
    pub unreachable: u64,
    /// Other socket errors; their queries were not sent.
    pub errors: u64,
    /// Queries that could not be sent: an error, or too long for the transport.
    pub unsent: u64,
    /// Bytes of queries, including retries.
    pub sent_bytes: u64,
    /// Bytes of answers, of any kind.
    pub received_bytes: u64,
    /// Messages sent, including retries.
    pub messages_sent: u64,
    /// Messages received, of any kind.
    pub messages_received: u64,
    /// Connections that were established.
    pub connections: u64,
    /// Connections that could not be established: refused, or not ready in time.
    pub connections_failed: u64,
    /// Connections that the server closed, or that were closed because they made no progress.
    pub connections_broken: u64,
    /// Connections that resumed an earlier TLS session, without a full handshake.
    pub resumed: u64,
    /// Answers in time, by response code.
    pub rcodes: [u64; 16],
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add);
    }

    /// Subtracts the counts of a part.
    fn subtract(&mut self, part: &Self) {
        self.combine(part, u64::saturating_sub);
    }

    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        let mut other = *other;
        for (mine, theirs) in self.fields().into_iter().zip(other.fields()) {
            *mine = with(*mine, *theirs);
        }
        for (mine, theirs) in self.rcodes.iter_mut().zip(other.rcodes) {
            *mine = with(*mine, theirs);
        }
    }

    /// All counts except the response codes.
    fn fields(&mut self) -> [&mut u64; 23] {
        // Destructured, so that a new field cannot be forgotten.
        let Self {
            sent,
            answered,
            lost,
            open,
            unwatched,
            retries,
            late,
            duplicates,
            mismatched,
            unexpected,
            garbage,
            refused,
            unreachable,
            errors,
            unsent,
            sent_bytes,
            received_bytes,
            messages_sent,
            messages_received,
            connections,
            connections_failed,
            connections_broken,
            resumed,
            rcodes: _,
        } = self;
        [
            sent,
            answered,
            lost,
            open,
            unwatched,
            retries,
            late,
            duplicates,
            mismatched,
            unexpected,
            garbage,
            refused,
            unreachable,
            errors,
            unsent,
            sent_bytes,
            received_bytes,
            messages_sent,
            messages_received,
            connections,
            connections_failed,
            connections_broken,
            resumed,
        ]
    }

    /// Whether every query that was sent is accounted for.
    pub fn adds_up(&self) -> bool {
        self.sent == self.answered + self.lost + self.open + self.unwatched
            && self.rcodes.iter().sum::<u64>() == self.answered
    }
}

/// Counts and latencies of an interval of the run.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Queries sent, answered and lost in it: an answer counts when it arrives, a loss when the
    /// query times out.
    pub counts: Counts,
    /// Latencies of the answers.
    pub latency: Times,
}

impl Default for Interval {
    fn default() -> Self {
        Self { counts: Counts::default(), latency: Times::new() }
    }
}

/// A histogram of times in nanoseconds, with the exact maximum, of which the histogram knows only
/// the upper bound of its bucket.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    longest: u64,
}

impl Times {
    /// An empty histogram, which grows as needed up to ten minutes.
    fn new() -> Self {
        let mut histogram = match Histogram::new(DIGITS) {
            Ok(histogram) => histogram,
            // Two digits are valid for the crate.
            Err(_) => unreachable!("{DIGITS} digits"),
        };
        histogram.auto(true);
        Self { histogram, longest: 0 }
    }

    /// Records a time; times longer than ten minutes count as ten minutes.
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        let nanoseconds = nanoseconds.min(MAX_TIME);
        self.histogram.record(nanoseconds).unwrap_or_default();
        self.longest = self.longest.max(nanoseconds);
    }

    fn add(&mut self, other: &Self) {
        // Histograms that resize automatically accept every value.
        self.histogram.add(&other.histogram).unwrap_or_default();
        self.longest = self.longest.max(other.longest);
    }

    /// Subtracts times that were added before.
    fn subtract(&mut self, part: &Self) {
        self.histogram.subtract(&part.histogram).unwrap_or_default();
        if part.longest == self.longest {
            // Only the bucket of the remaining maximum is known.
            self.longest = self.histogram.max().min(self.longest);
        }
    }

    /// The longest time.
    pub fn max(&self) -> u64 {
        self.longest
    }

    /// The time at a quantile from 0 to 1.
    pub fn value_at_quantile(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.longest)
    }
}

impl std::ops::Deref for Times {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Self::Target {
        &self.histogram
    }
}

/// The counts of one sender, or of all of them.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    /// Length of an interval in nanoseconds.
    pub(crate) interval_length: u64,
    /// In order from the start of the run.
    pub(crate) intervals: Vec<Interval>,
    /// Times from the due time of a query until it was sent.
    pub(crate) lag: Times,
    /// Times from the start of a connection until queries could be sent.
    pub(crate) handshake: Times,
    /// Queries sent before this time, and their results, are excluded from the totals.
    pub(crate) warm_up: u64,
    /// The excluded counts and latencies, which the intervals include.
    pub(crate) excluded: Box<Interval>,
    /// The first reason why a connection failed or a query could not be sent.
    pub(crate) first_error: Option<String>,
    /// Time at which the last query was first sent, in nanoseconds from the start of the run.
    pub(crate) last_sent: u64,
    /// Total time that senders waited for a processor at wake-up, in nanoseconds.
    pub(crate) cpu_wait: u64,
}

impl Stats {
    /// Empty statistics of a run with these options.
    pub(crate) fn of(options: &Options) -> Self {
        Self::new(nanoseconds(options.interval), nanoseconds(options.warm_up))
    }

    fn new(interval_length: u64, warm_up: u64) -> Self {
        Self {
            interval_length: interval_length.max(1_000_000),
            intervals: Vec::new(),
            lag: Times::new(),
            handshake: Times::new(),
            warm_up,
            excluded: Box::default(),
            first_error: None,
            last_sent: 0,
            cpu_wait: 0,
        }
    }

    /// Counts the result at `now` of a query that was first sent at `first_sent`.
    pub(crate) fn record_result(
        &mut self,
        now: u64,
        first_sent: u64,
        count: impl Fn(&mut Interval),
    ) {
        count(self.at(now));
        if first_sent < self.warm_up {
            count(&mut self.excluded);
        }
    }

    /// The interval that contains a time of the run.
    pub(crate) fn at(&mut self, time: u64) -> &mut Interval {
        while time / self.interval_length >= MAX_INTERVALS as u64 {
            self.halve();
        }
        let index = (time / self.interval_length) as usize;
        if self.intervals.len() <= index {
            self.intervals.resize_with(index + 1, Interval::default);
        }
        &mut self.intervals[index]
    }

    /// Merges pairs of intervals.
    fn halve(&mut self) {
        let mut intervals = std::mem::take(&mut self.intervals).into_iter();
        while let Some(mut first) = intervals.next() {
            if let Some(second) = intervals.next() {
                join(&mut first, &second);
            }
            self.intervals.push(first);
        }
        self.interval_length *= 2;
    }

    /// Adds the statistics of another sender of the same run.
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.interval_length < other.interval_length {
            self.halve();
        }
        while other.interval_length < self.interval_length {
            other.halve();
        }
        for (index, interval) in other.intervals.iter().enumerate() {
            let interval_length = self.interval_length;
            join(self.at(index as u64 * interval_length), interval);
        }
        join(&mut self.excluded, &other.excluded);
        self.lag.add(&other.lag);
        self.handshake.add(&other.handshake);
        self.first_error = self.first_error.take().or(other.first_error);
        self.last_sent = self.last_sent.max(other.last_sent);
        self.cpu_wait += other.cpu_wait;
    }

    /// Counts a socket error.
    pub(crate) fn failed(&mut self, error: &io::Error, now: u64) {
        let counts = &mut self.at(now).counts;
        if socket::is_refusal(error) {
            counts.refused += 1;
        } else if socket::is_unreachable(error) {
            counts.unreachable += 1;
        } else {
            counts.errors += 1;
        }
    }

    /// Records how much longer than the requested maximum of `requested` nanoseconds a sleep took.
    pub(crate) fn record_sleep(&mut self, requested: u64, took: u64) {
        let longer = took.saturating_sub(requested);
        if longer > PREEMPTED_GAP {
            self.cpu_wait += longer;
        }
    }

    /// Queries sent after the warm-up, and their results.
    pub(crate) fn total(&self) -> Interval {
        let mut total = Interval::default();
        for interval in &self.intervals {
            join(&mut total, interval);
        }
        total.counts.subtract(&self.excluded.counts);
        // The intervals include everything that is excluded.
        total.latency.subtract(&self.excluded.latency);
        total
    }
}

fn join(into: &mut Interval, other: &Interval) {
    into.counts.add(&other.counts);
    into.latency.add(&other.latency);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_join_when_there_would_be_too_many() {
        let mut stats = Stats::new(1_000_000, 0);
        stats.at(0).counts.sent += 1;
        stats.at(5_000_000).counts.sent += 2;
        stats.at(2_000_000 * MAX_INTERVALS as u64).counts.sent += 4;
        assert_eq!(stats.interval_length, 4_000_000);
        let sent: Vec<_> =
            stats.intervals.iter().map(|i| i.counts.sent).filter(|n| *n > 0).collect();
        assert_eq!(sent, [1, 2, 4]);
        assert_eq!(stats.total().counts.sent, 7);
    }

    #[test]
    fn senders_with_different_intervals_merge() {
        let mut a = Stats::new(1_000_000, 0);
        let mut b = Stats::new(1_000_000, 0);
        a.at(7_000_000).counts.lost += 1;
        b.at(3_000_000_000).counts.lost += 1;
        b.lag.record(500);
        b.lag.record(u64::MAX);
        a.merge(b);
        assert_eq!(a.total().counts.lost, 2);
        assert_eq!(a.lag.len(), 2);
        assert_eq!(a.lag.max(), MAX_TIME);
    }

    #[test]
    fn the_warm_up_is_excluded() {
        let mut stats = Stats::new(1_000_000, 2_500_000);
        for at in [0, 1_000_000, 2_600_000, 3_000_000] {
            stats.record_result(at, at, |i| i.counts.sent += 1);
            // Its answer arrives after the warm-up.
            stats.record_result(4_000_000, at, |i| i.latency.record(at));
        }
        let total = stats.total();
        assert_eq!((total.counts.sent, total.latency.len()), (2, 2));
        assert!(total.latency.value_at_quantile(0.0) > 2_000_000);
        assert_eq!(stats.intervals[4].latency.len(), 4);
        assert_eq!(total.latency.max(), 3_000_000);
    }

    #[test]
    fn the_longest_time_is_exact() {
        let mut times = Times::new();
        times.record(1_234_567);
        times.record(7_654_321);
        assert_eq!((times.max(), times.value_at_quantile(1.0)), (7_654_321, 7_654_321));
        let mut warm_up = Times::new();
        warm_up.record(7_654_321);
        times.subtract(&warm_up);
        assert!((1_234_567..1_250_000).contains(&times.max()), "{}", times.max());
    }

    #[test]
    fn errors_of_the_network_are_counted_by_their_reason() {
        let mut stats = Stats::new(1_000_000, 0);
        for code in [libc::ECONNREFUSED, libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EPERM] {
            stats.failed(&io::Error::from_raw_os_error(code), 0);
        }
        let c = stats.total().counts;
        assert_eq!((c.refused, c.unreachable, c.errors), (1, 2, 1));
    }
}
