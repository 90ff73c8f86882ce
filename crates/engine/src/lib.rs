//! Puts the stages together: packets in, rows out.
//!
//! [`Engine`] takes batches of packets. Its shard walks each packet through the layers (link, IP,
//! fragments, tunnels, transport), finds the connection, drives its TCP state and its analyzers,
//! and writes the rows of connections that end. Time is packet time: timers fire when they are
//! due, before the first packet that is not older, so that the rows do not depend on how packets
//! were batched.

mod block;
mod community_id;
mod conn_log;
mod cores;
mod front;
mod glance;
mod limits;
mod merge;
mod notes;
mod options;
mod part;
mod plan;
mod shard;
mod sieve;
mod state;
mod steer;
#[cfg(test)]
mod tests;
mod tunnels;
mod walk;
mod walk_transport;
mod walk_tunnel;

use std::io;

use gannet_base::Time;
use gannet_capture::Batch;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_filter::Filter;
use gannet_log::StreamCount;

pub use community_id::community_id_of;
pub use gannet_files::Contents;
pub use gannet_files::Extract;
pub use gannet_files::Extractable;
pub use gannet_files::Extracted;
pub use gannet_protocols::policy::Assets;
pub use limits::Limit;
pub use limits::Limits;
pub use notes::PacketIndex;
pub use notes::PacketNotes;
pub use options::Options;
pub use options::Statistics;
pub use state::Memory;
pub use state::State;

use front::Front;
use shard::Shard;
use sieve::Sieve;
use steer::Role;

/// The schemas of all logs that an analysis can make, by name.
pub fn schemas() -> Vec<gannet_log::Schema> {
    let mut all = vec![gannet_log::Schema::of::<conn_log::ConnRow<'_>>()];
    all.extend(gannet_files::schemas());
    all.extend(gannet_protocols::schemas());
    all.sort_by_key(|s| s.path);
    all
}

/// The declarations of all events that an analysis can raise.
pub fn events() -> impl Iterator<Item = &'static gannet_event::Decl> {
    gannet_protocols::events::all()
}

/// The analysis of one stream of packets.
pub struct Engine {
    work: Work,
    filter: Option<Filter>,
    statistics: Statistics,
}

/// Who does it.
enum Work {
    /// The caller's thread.
    Alone(Box<Shard>),
    /// Several threads.
    Split(Box<Front>),
}

impl Engine {
    /// A fresh analysis.
    pub fn new(options: Options) -> Self {
        Self {
            filter: options.filter.clone(),
            work: Work::of(options),
            statistics: Statistics::default(),
        }
    }

    /// A fresh analysis whose events of `interest` go to `listener`, in the order of packets.
    pub fn with_listener(
        options: Options,
        interest: Interest,
        listener: Box<dyn Listener>,
    ) -> Self {
        let filter = options.filter.clone();
        let mut shard = Shard::new(options, Role::Whole);
        shard.listen(interest, listener);
        Self { filter, work: Work::Alone(Box::new(shard)), statistics: Statistics::default() }
    }

    /// The next packets.
    ///
    /// # Errors
    /// When a log could not be written.
    pub fn batch(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        let mut sieve = Sieve::new(self.filter.as_ref());
        let done = match &mut self.work {
            Work::Split(front) => front.batch(batch, &mut sieve),
            Work::Alone(shard) => alone(shard, batch, &mut sieve),
        };
        self.statistics.packets += batch.len() as u64;
        self.statistics.bytes += batch.wire_bytes();
        self.statistics.filtered += sieve.held_back;
        done
    }

    /// Rows that are complete go to their files now, and not only once there are many: for input that
    /// comes slowly. What was added is analysed first.
    ///
    /// # Errors
    /// When a log could not be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.work {
            Work::Split(front) => front.flush(),
            Work::Alone(shard) => {
                shard.env.logs.write_out();
                shard.check()
            }
        }
    }

    /// Start of the earliest connection that is open, [`Time::MAX`] if there is none; `None` where several threads have
    /// them. Looks at every connection.
    pub fn earliest_open(&self) -> Option<Time> {
        match &self.work {
            Work::Alone(shard) => Some(shard.earliest_open()),
            Work::Split(_) => None,
        }
    }

    /// The end of input: every connection still open is logged, and the logs are closed. Returns
    /// what was done.
    ///
    /// # Errors
    /// When a log could not be written.
    pub fn finish(mut self) -> io::Result<(Statistics, Vec<StreamCount>)> {
        let (connections, state, counts) = match self.work {
            Work::Alone(mut shard) => {
                let counts = shard.finish()?;
                (shard.connections(), shard.keeper.report, counts)
            }
            Work::Split(front) => front.finish()?,
        };
        self.statistics.connections = connections;
        self.statistics.state = state;
        Ok((self.statistics, counts))
    }
}

/// The packets of a batch that pass, in one thread.
fn alone(shard: &mut Shard, batch: &Batch<'_>, sieve: &mut Sieve<'_>) -> io::Result<()> {
    let is_far = shard.is_table_far();
    for (at, packet) in batch.iter().enumerate() {
        let next = at + glance::AHEAD;
        if !is_far {
            batch.expect_soon(next);
        } else if let Some(key) = batch.get(next).as_ref().and_then(glance::key) {
            shard.expect_soon(&key);
        }
        if sieve.passes(&packet) {
            shard.packet(&packet);
        }
    }
    shard.check()
}

impl Work {
    fn of(options: Options) -> Self {
        // What is only logged where it is asked for is about all of the traffic at once.
        let opt_in = |s: &gannet_log::Schema| s.opt_in && options.logs.selection.has(s.path, true);
        // So are these limits: which connections end early depends on all others.
        let has_all_at_once =
            |limits: &Limits| limits.connections != Limits::NONE || limits.state != Limits::NONE;
        if options.threads > 1
            && !has_all_at_once(&options.limits)
            && !schemas().iter().any(opt_in)
            && let Ok(front) = Front::new(&options, options.threads)
        {
            return Self::Split(Box::new(front));
        }
        Self::Alone(Box::new(Shard::new(options, Role::Whole)))
    }
}
