//! Counts of received and lost packets.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::RingCounters;
use crate::interface::folder;

/// Counts of packets since the start of the capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Sums over all rings.
    pub rings: RingCounters,
    /// Interface name and counters of each ring.
    pub by_ring: Vec<(String, RingCounters)>,
    /// Counters of network cards and drivers, by interface.
    pub links: BTreeMap<String, LinkCounters>,
    /// Packets of all interfaces of this machine that the kernel dropped because its backlog was full.
    pub backlog_drops: u64,
}

impl Ledger {
    /// Packets that passed the filter in the kernel: read, duplicates, and dropped because the ring was full.
    pub fn seen(&self) -> u64 {
        self.rings.read + self.rings.duplicates + self.rings.dropped
    }

    /// All packets known to be lost.
    pub fn lost(&self) -> u64 {
        let links: u64 = self.links.values().map(LinkCounters::lost).sum();
        self.rings.dropped + links + self.backlog_drops
    }
}

/// Packets that an interface received, and those that it lost before they reached a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received.
    pub received: u64,
    /// Packets lost because buffers of the network card were full.
    pub missed: u64,
    /// Packets dropped by the driver.
    pub dropped: u64,
    /// Damaged frames.
    pub errors: u64,
}

impl LinkCounters {
    /// Packets lost.
    pub fn lost(&self) -> u64 {
        self.missed + self.dropped + self.errors
    }

    /// Reads the counters of an interface since its creation.
    pub fn of(name: &str) -> Self {
        let folder = folder(name).join("statistics");
        let count = |file: &str| number(&folder.join(file));
        Self {
            received: count("rx_packets"),
            missed: count("rx_missed_errors"),
            dropped: count("rx_dropped"),
            errors: count("rx_errors"),
        }
    }

    /// Differences from `before`. A counter that has decreased belongs to an interface that was removed and created
    /// again.
    pub fn since(&self, before: &Self) -> Self {
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self {
            received: since(self.received, before.received),
            missed: since(self.missed, before.missed),
            dropped: since(self.dropped, before.dropped),
            errors: since(self.errors, before.errors),
        }
    }
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Packets that the kernel has dropped because the backlog of a CPU was full, since it started.
pub fn kernel_backlog_drops() -> u64 {
    backlog(&fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default())
}

/// Sums the drops in `softnet_stat`: it has a line per CPU, whose second number counts drops.
fn backlog(text: &str) -> u64 {
    let drops = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(drops).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_all_cpus_are_summed() {
        assert_eq!(backlog("0000ffff 00000010 00000000\n00000001 0000000a 0\nx\n\n"), 26);
    }

    #[test]
    fn restarted_counters_count_from_zero() {
        let counters =
            |received, missed| LinkCounters { received, missed, ..LinkCounters::default() };
        assert_eq!(counters(10, 3).since(&counters(4, 1)), counters(6, 2));
        assert_eq!(counters(10, 3).since(&counters(40, 1)), counters(10, 2));
    }
}
