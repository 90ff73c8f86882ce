//! The counts of a run, and the table at its end.

use std::fmt;
use std::time::Duration;

use gannet_engine::State;
use gannet_engine::Statistics;
use gannet_log::StreamCount;
use indicatif::HumanCount;

/// Sums over all streams of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    statistics: Statistics,
    /// Rows by log, in order of their first rows.
    rows: Vec<(&'static str, u64)>,
    elapsed: Duration,
    /// Folder of the logs.
    folder: Option<String>,
}

impl Tally {
    /// Adds the counts of one engine.
    pub(crate) fn add(&mut self, statistics: Statistics, counts: &[StreamCount]) {
        let sum = &mut self.statistics;
        sum.packets += statistics.packets;
        sum.bytes += statistics.bytes;
        sum.filtered += statistics.filtered;
        sum.connections += statistics.connections;
        sum.state.add(&statistics.state);
        for count in counts.iter().filter(|c| c.rows > 0) {
            match self.rows.iter_mut().find(|(path, _)| *path == count.path) {
                Some((_, rows)) => *rows += count.rows,
                None => self.rows.push((count.path, count.rows)),
            }
        }
    }

    /// Number of packets read.
    pub(crate) fn packets(&self) -> u64 {
        self.statistics.packets
    }

    /// Peak sizes of the analysis state.
    pub(crate) fn state(&self) -> &State {
        &self.statistics.state
    }

    /// Sets the folder of the logs.
    pub(crate) fn set_folder(&mut self, folder: String) {
        self.folder = Some(folder);
    }

    /// Sets the duration of the run.
    pub(crate) fn set_elapsed(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { statistics, rows, elapsed, folder } = self;
        let seconds = elapsed.as_secs_f64();
        let mut line = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:<13}{value}");
        line("packets", &HumanCount(statistics.packets))?;
        if statistics.filtered > 0 {
            line("filtered out", &HumanCount(statistics.filtered))?;
        }
        line("connections", &HumanCount(statistics.connections))?;
        let given_up = [
            ("ended early", statistics.state.ended()),
            ("holes", statistics.state.holes_given_up),
            ("fragments", statistics.state.fragments_given_up),
            ("files", statistics.state.files_given_up),
        ];
        for (name, count) in given_up.iter().filter(|(_, count)| *count > 0) {
            line(name, &format_args!("{} discarded because of a limit", HumanCount(*count)))?;
        }
        let mut rows = rows.clone();
        rows.sort_by_key(|(path, rows)| (std::cmp::Reverse(*rows), *path));
        let rows: Vec<_> =
            rows.iter().map(|(path, rows)| format!("{path} {}", HumanCount(*rows))).collect();
        line("rows", &if rows.is_empty() { "none".into() } else { rows.join(", ") })?;
        let rate = statistics.bytes as f64 * 8e-9 / seconds.max(1e-9);
        line("time", &format_args!("{seconds:.3} s, {rate:.2} Gbit/s"))?;
        if let Some(folder) = folder {
            line("logs in", folder)?;
        }
        if let Some(bytes) = peak_memory() {
            line("peak memory", &format_args!("{:.1} MB", bytes as f64 / 1e6))?;
        }
        Ok(())
    }
}

/// Peak memory of the process in bytes, if the system reports it (Linux).
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_prints() {
        let mut tally = Tally::default();
        let one = Statistics {
            packets: 1_000,
            bytes: 125_000_000,
            connections: 2,
            ..Statistics::default()
        };
        let rows = |path, rows| StreamCount { path, rows, bytes: 0 };
        tally.add(one, &[rows("conn", 2), rows("weird", 0)]);
        tally.add(one, &[rows("dns", 7), rows("conn", 2)]);
        tally.set_elapsed(Duration::from_secs(2));
        tally.set_folder("logs/".into());
        let text = tally.to_string();
        let (table, memory) = text.split_at(text.find("peak").unwrap_or(text.len()));
        assert_eq!(
            table,
            "packets      2,000\nconnections  4\nrows         dns 7, conn 4\n\
             time         2.000 s, 1.00 Gbit/s\nlogs in      logs/\n"
        );
        assert!(memory.is_empty() || memory.ends_with(" MB\n"), "{memory}");
    }
}
