//! weird_stats.log: number of weirds, including those that sampling and suppression exclude from
//! weird.log.

use std::collections::BTreeMap;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::Logs;

gannet_log::row! {
    /// Number of occurrences of each weird, every 15 minutes.
    pub struct StatsRow<'a> = "weird_stats", opt_in {
        /// Time of the summary.
        ts: Time = "ts",
        /// The weird.
        name: &'a str = "name",
        /// Number of occurrences since the last row.
        num_seen: u64 = "num_seen",
    }
}

const EPOCH: Interval = Interval::from_secs(900);

/// Counts of an epoch.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// By name, and by whether the connection is within a tunnel.
    counts: BTreeMap<(&'static str, bool), u64>,
    due: Option<Time>,
}

impl Stats {
    pub(crate) fn seen(&mut self, name: &'static str, in_tunnel: bool) {
        *self.counts.entry((name, in_tunnel)).or_default() += 1;
    }

    /// Advances to the time of the next packet.
    pub(crate) fn arrive(&mut self, logs: &mut Logs, packet: Time) {
        let due = *self.due.get_or_insert(packet + EPOCH);
        if packet >= due {
            self.log_counts(logs, packet);
            self.due = Some(packet + EPOCH);
        }
    }

    /// Logs the counts since the last call.
    pub(crate) fn log_counts(&mut self, logs: &mut Logs, ts: Time) {
        for ((name, in_tunnel), num_seen) in std::mem::take(&mut self.counts) {
            let long = in_tunnel.then(|| format!("{name}_in_tunnel"));
            logs.write(&StatsRow { ts, name: long.as_deref().unwrap_or(name), num_seen });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_log::Options;
    use gannet_log::Selection;

    #[test]
    fn each_epoch_counts_for_itself() {
        let selection = Selection::of(["weird_stats"]);
        let mut logs = Logs::new(Options { selection, ..Options::default() });
        let mut stats = Stats::default();
        let at = Time::from_secs;
        stats.arrive(&mut logs, at(100));
        stats.seen("truncated_IP", true);
        stats.seen("active_connection_reuse", false);
        stats.seen("active_connection_reuse", false);
        stats.arrive(&mut logs, at(999));
        stats.arrive(&mut logs, at(1003));
        stats.seen("truncated_IP", false);
        stats.arrive(&mut logs, at(1902));
        stats.log_counts(&mut logs, at(1902));
        let text = String::from_utf8_lossy(logs.pending("weird_stats")).into_owned();
        let expected = "1003.000000\tactive_connection_reuse\t2\n\
                        1003.000000\ttruncated_IP_in_tunnel\t1\n\
                        1902.000000\ttruncated_IP\t1\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
