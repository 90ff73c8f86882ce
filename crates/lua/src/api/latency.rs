//! Measurement of response times, by pairing queries and responses without copying messages.

use std::collections::HashMap;
use std::collections::VecDeque;

use foldhash::fast::RandomState;
use gannet_pipeline::fingerprint::Fingerprint;
use hdrhistogram::Histogram;

/// Maximum number of pending queries; beyond it, the oldest counts as unanswered.
const MAX_WAITING: usize = 1 << 20;

/// Maximum value of the histogram in nanoseconds, a day; longer times count as that.
const MAX_TIME: u64 = 86_400_000_000_000;

/// The fields of a message that are needed here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// Number of its packet.
    pub(crate) number: u64,
    pub(crate) key: Fingerprint,
    pub(crate) is_response: bool,
}

/// Pairs messages like [`Join`](super::join::Join), but stores only times.
pub(crate) struct Latencies {
    timeout: i64,
    waiting: HashMap<Fingerprint, Waiting, RandomState>,
    /// Every query in order of time, answered or not.
    order: VecDeque<(i64, Fingerprint)>,
    histogram: Histogram<u64>,
    queries: u64,
    answered: u64,
    sum: u64,
}

/// The pending queries with one key: their times, the oldest first.
struct Waiting {
    first: i64,
    more: VecDeque<i64>,
}

/// Statistics of the queries; times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Summary {
    pub(crate) queries: u64,
    pub(crate) answered: u64,
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Latencies {
    /// `timeout` is the maximum response time in nanoseconds. `None` if there is no memory for the
    /// histogram.
    pub(crate) fn new(timeout: i64) -> Option<Self> {
        Some(Self {
            timeout,
            waiting: HashMap::default(),
            order: VecDeque::new(),
            histogram: Histogram::new_with_bounds(1, MAX_TIME, 3).ok()?,
            queries: 0,
            answered: 0,
            sum: 0,
        })
    }

    pub(crate) fn add(&mut self, record: &Sent) {
        while let Some((time, key)) =
            self.order.pop_front_if(|(time, _)| time.saturating_add(self.timeout) < record.time)
        {
            self.expire(time, key);
        }
        let key = record.key;
        if !record.is_response {
            self.queries += 1;
            if self.order.len() >= MAX_WAITING
                && let Some((time, key)) = self.order.pop_front()
            {
                self.expire(time, key);
            }
            self.order.push_back((record.time, key));
            self.waiting
                .entry(key)
                .and_modify(|w| w.more.push_back(record.time))
                .or_insert_with(|| Waiting { first: record.time, more: VecDeque::new() });
            return;
        }
        if let Some(sent) = self.take(key) {
            let took = record.time.saturating_sub(sent).max(0) as u64;
            self.answered += 1;
            self.sum += took;
            self.histogram.saturating_record(took);
        }
    }

    /// Removes the oldest pending query with a key; returns its time.
    fn take(&mut self, key: Fingerprint) -> Option<i64> {
        let waiting = self.waiting.get_mut(&key)?;
        let first = waiting.first;
        match waiting.more.pop_front() {
            Some(next) => waiting.first = next,
            None => {
                self.waiting.remove(&key);
            }
        }
        Some(first)
    }

    /// Removes the query with this time and key, if it is pending.
    fn expire(&mut self, time: i64, key: Fingerprint) {
        if self.waiting.get(&key).is_some_and(|w| w.first <= time) {
            self.take(key);
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        let at = |q: f64| self.histogram.value_at_quantile(q) as f64;
        Summary {
            queries: self.queries,
            answered: self.answered,
            mean: self.sum as f64 / self.answered.max(1) as f64,
            min: self.histogram.min() as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.histogram.max() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(time: i64, id: u64, is_response: bool) -> Sent {
        Sent { time, number: 0, key: Fingerprint { first: id, second: 7 }, is_response }
    }

    #[test]
    fn each_response_answers_the_oldest_query_in_time() {
        let mut l = Latencies::new(1000).unwrap();
        for (time, id, is_response) in [
            (0, 1, false),
            (10, 1, false),
            (20, 2, false),
            (100, 1, true),
            (110, 1, true),
            (120, 1, true),
            (1500, 2, true),
            (1600, 3, false),
        ] {
            l.add(&message(time, id, is_response));
        }
        l.add(&message(1700, 4, true));
        let s = l.summary();
        assert_eq!((s.queries, s.answered, s.min, s.max), (4, 2, 100.0, 100.0));
        assert_eq!(s.mean, 100.0);
        assert!(l.waiting.len() == 1 && l.order.len() == 1);
    }
}
