//! The current amounts of state of an analysis, for periodic statistics.

use gannet_base::Proto;

use crate::shard::Shard;
use crate::state::State;

/// The current amounts of state of an analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Number of connections since the start.
    pub connections: u64,
    /// Open connections: TCP, UDP, ICMP.
    pub active: [u64; 3],
    /// Pending timers.
    pub timers: u64,
    /// Open files.
    pub files: u64,
    /// Bytes buffered for TCP reassembly.
    pub reassembly: u64,
    /// Bytes of buffered IP fragments.
    pub fragments: u64,
    /// Maxima since the start, and what was discarded at limits.
    pub state: State,
}

impl Gauge {
    pub(crate) fn measure(shard: &mut Shard) -> Self {
        let mut active = [0; 3];
        for (_, slot) in shard.table.iter() {
            let of = match slot.conn.proto {
                Proto::Tcp => 0,
                Proto::Udp => 1,
                _ => 2,
            };
            active[of] += 1;
        }
        shard.sample_usage();
        Self {
            connections: shard.connections(),
            active,
            timers: shard.timers.len() as u64,
            files: shard.env.files.len() as u64,
            reassembly: shard.evictor.buffered() as u64,
            fragments: shard.fragments.bytes() as u64,
            state: shard.evictor.report,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        for (sum, more) in self.active.iter_mut().zip(other.active) {
            *sum += more;
        }
        self.timers += other.timers;
        self.files += other.files;
        self.reassembly += other.reassembly;
        self.fragments += other.fragments;
        self.state.add(&other.state);
    }
}
