//! What an analysis has at one moment: for statistics while it goes on.

use gannet_base::Proto;

use crate::shard::Shard;
use crate::state::State;

/// What an analysis has at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Connections so far.
    pub connections: u64,
    /// Connections at the moment: TCP, UDP, ICMP.
    pub active: [u64; 3],
    /// Timers.
    pub timers: u64,
    /// Files in transit.
    pub files: u64,
    /// Bytes of TCP streams that wait above holes.
    pub reassembly: u64,
    /// Bytes of fragments.
    pub fragments: u64,
    /// What was kept at the most, and given up for a limit.
    pub state: State,
}

impl Gauge {
    pub(crate) fn of(shard: &mut Shard) -> Self {
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
            reassembly: shard.evictor.held() as u64,
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
