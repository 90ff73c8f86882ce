//! An account of packets: how many there were, and where those were lost that were not read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::RingCounters;
use crate::interface::folder;

/// What became of the packets of all rings since capturing began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Of all rings together.
    pub rings: RingCounters,
    /// By ring: name of its interface, and what became of its packets.
    pub by_ring: Vec<(String, RingCounters)>,
    /// By interface, packets that the network card or its driver lost.
    pub links: BTreeMap<String, LinkCounters>,
    /// Packets of all interfaces of this machine that the kernel lost because its backlog was full.
    pub backlog_drops: u64,
}

impl Ledger {
    /// Packets that passed the filter in the kernel: read, and dropped at the ring.
    pub fn seen(&self) -> u64 {
        self.rings.read + self.rings.doubles + self.rings.dropped
    }

    /// All packets known to be lost.
    pub fn lost(&self) -> u64 {
        let links: u64 = self.links.values().map(LinkCounters::lost).sum();
        self.rings.dropped + links + self.backlog_drops
    }
}

/// Packets that an interface lost before they reached a ring, and all that it received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received.
    pub received: u64,
    /// No room in the network card.
    pub missed: u64,
    /// No room in the driver.
    pub dropped: u64,
    /// Damaged frames.
    pub errors: u64,
}

impl LinkCounters {
    /// Packets lost.
    pub fn lost(&self) -> u64 {
        self.missed + self.dropped + self.errors
    }

    /// What the system says of an interface since it exists.
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

    /// What was counted since `before`. A counter that became smaller belongs to an interface that was removed and made again.
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

/// Packets that the kernel of this machine has lost because the backlog of a processor was full, since it started.
pub fn kernel_backlog_drops() -> u64 {
    backlog(&fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default())
}

/// A line a processor; the second number counts its drops.
fn backlog(text: &str) -> u64 {
    let drops = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(drops).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlogs_of_all_processors_count() {
        assert_eq!(backlog("0000ffff 00000010 00000000\n00000001 0000000a 0\nx\n\n"), 26);
    }

    #[test]
    fn counters_that_began_again_count_from_zero() {
        let of = |received, missed| LinkCounters { received, missed, ..LinkCounters::default() };
        assert_eq!(of(10, 3).since(&of(4, 1)), of(6, 2));
        assert_eq!(of(10, 3).since(&of(40, 1)), of(10, 2));
    }
}
