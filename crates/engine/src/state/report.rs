//! Maximum amounts of state.

use std::fmt;

use gannet_flow::SIZE_CLASSES;

use super::RANKS;

/// Maximum amounts of state during an analysis, and what was discarded at limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Maximum number of simultaneous connections.
    pub connections: u64,
    /// Bytes of connection slots.
    pub slots: u64,
    /// Bytes of the hash table of connections.
    pub index: u64,
    /// Bytes of timers and of the evictor's ranks.
    pub timers: u64,
    /// Maximum number of bytes buffered for TCP reassembly.
    pub reassembly: u64,
    /// Bytes of buffered IP fragments.
    pub fragments: u64,
    /// Maximum number of simultaneously open files.
    pub files: u64,
    /// Maximum of the sampled memory usage, in bytes.
    pub all: u64,
    /// Number of evicted connections: half-open, established.
    pub ended_early: [u64; RANKS],
    /// Number of stream holes that were skipped at the limit of reassembly.
    pub holes_given_up: u64,
    /// Number of incomplete datagrams that were discarded.
    pub fragments_given_up: u64,
    /// Number of files that were discarded.
    pub files_given_up: u64,
    /// Number of packets with a wrong TCP, UDP or ICMP checksum, which were not analyzed.
    pub wrong_checksums: u64,
    /// Number of connections by the maximum size of their analyzers' tables, in [size
    /// classes](gannet_flow::size_class).
    pub tables: [u64; SIZE_CLASSES],
}

impl State {
    /// Adds the report of another shard of the same analysis.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.slots += other.slots;
        self.index += other.index;
        self.timers += other.timers;
        self.reassembly += other.reassembly;
        self.fragments += other.fragments;
        self.files += other.files;
        self.all = self.all.max(other.all);
        for (sum, more) in self.ended_early.iter_mut().zip(other.ended_early) {
            *sum += more;
        }
        self.holes_given_up += other.holes_given_up;
        self.fragments_given_up += other.fragments_given_up;
        self.files_given_up += other.files_given_up;
        self.wrong_checksums += other.wrong_checksums;
        for (sum, more) in self.tables.iter_mut().zip(other.tables) {
            *sum += more;
        }
    }

    /// Writes the distribution of table sizes.
    fn write_tables(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.tables.iter().sum();
        writeln!(f, "{:<20} {:>14} {:>20}", "largest table", "connections", "cumulative share")?;
        let mut sum = 0;
        for (class, count) in self.tables.iter().enumerate().filter(|(_, count)| **count > 0) {
            sum += count;
            let entries = match class {
                0..4 => format!("{class} entries"),
                _ if class + 1 == SIZE_CLASSES => format!("{} or more", 1 << (class - 2)),
                _ => format!("{} to {}", 1 << (class - 2), (1 << (class - 1)) - 1),
            };
            let share = 100.0 * sum as f64 / all as f64;
            writeln!(f, "{entries:<20} {count:>14} {share:>18.2} %")?;
        }
        Ok(())
    }

    /// Number of evicted connections.
    pub fn ended(&self) -> u64 {
        self.ended_early.iter().sum()
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |bytes: u64| bytes as f64 / self.connections.max(1) as f64;
        let named = self.slots + self.index + self.timers + self.reassembly + self.fragments;
        writeln!(f, "peak live connections         {}", self.connections)?;
        writeln!(f, "{:<20} {:>14} {:>20}", "memory", "bytes", "per live connection")?;
        let mut line =
            |name: &str, bytes: u64| writeln!(f, "{name:<20} {bytes:>14} {:>20.1}", each(bytes));
        line("connections", self.slots)?;
        line("their index", self.index)?;
        line("timers", self.timers)?;
        line("reassembly", self.reassembly)?;
        line("fragments", self.fragments)?;
        if self.all > 0 {
            line("analyzers and other", self.all.saturating_sub(named))?;
            line("total", self.all)?;
        }
        writeln!(f, "peak files in transit         {}", self.files)?;
        self.write_tables(f)?;
        let [half_open, established] = self.ended_early;
        let given_up = [
            ("half-open connections", half_open),
            ("established connections", established),
            ("holes in streams", self.holes_given_up),
            ("fragments", self.fragments_given_up),
            ("files", self.files_given_up),
        ];
        for (name, count) in given_up.into_iter().filter(|(_, count)| *count > 0) {
            writeln!(f, "discarded early: {name} {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_flow::size_class;

    #[test]
    fn tables_are_reported_by_their_size() {
        let mut state = State::default();
        for size in [0, 0, 0, 1, 3, 4, 7, 8, 1 << 13, 1 << 20] {
            state.tables[size_class(size)] += 1;
        }
        let text = state.to_string();
        let rows: Vec<_> = text.lines().filter(|l| l.ends_with('%')).collect();
        let rows: Vec<_> = rows.iter().map(|l| l.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(rows[0], ["0", "entries", "3", "30.00", "%"]);
        assert_eq!(rows[3], ["4", "to", "7", "2", "70.00", "%"]);
        assert_eq!(rows[4], ["8", "to", "15", "1", "80.00", "%"]);
        assert_eq!(rows[5], ["8192", "or", "more", "2", "100.00", "%"]);
    }
}
