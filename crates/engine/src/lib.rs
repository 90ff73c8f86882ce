//! The engine: combines the stages; packets in, rows out.
//!
//! [`Engine`] receives batches of packets. Its shard parses each packet through the layers (link,
//! IP, fragments, tunnels, transport), finds the connection, updates its TCP state, runs its
//! analyzers, and writes the rows of connections that end. Time is packet time: a due timer fires
//! before the first packet that is not older, so that rows do not depend on batch sizes.

mod block;
mod community_id;
mod conn_log;
mod dispatcher;
mod dissect;
mod dissect_transport;
mod dissect_tunnel;
mod gauge;
mod igmp;
mod index_reporter;
mod limits;
mod lookahead;
mod merge;
mod options;
mod packet_events;
mod packet_filter;
mod reassembled;
mod role;
mod route;
mod scheduler;
mod shard;
mod shard_task;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod tunnel_events;
mod tunnels;
mod weirds;

use std::io;

use gannet_base::Time;
use gannet_capture::Batch;
use gannet_event::Decl;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::ThreadAffinity;
use gannet_filter::Filter;
use gannet_log::Logs;
use gannet_log::StreamCount;

pub use community_id::community_id_of;
pub use gannet_files::Contents;
pub use gannet_files::Extract;
pub use gannet_files::Extractable;
pub use gannet_files::Extracted;
pub use gannet_protocols::policy::Assets;
pub use gauge::Gauge;
pub use index_reporter::ConnectionObserver;
pub use index_reporter::PacketIndex;
pub use index_reporter::ShardIndex;
pub use limits::Limit;
pub use limits::Limits;
pub use options::Options;
pub use options::Statistics;
pub use state::Memory;
pub use state::State;
pub use stats::StatsRow;

use dispatcher::Dispatcher;
use packet_filter::PacketFilter;
use role::Role;
use shard::Shard;

/// The schemas of all logs that an analysis can write, by name.
pub fn schemas() -> Vec<gannet_log::Schema> {
    let mut all = vec![
        gannet_log::Schema::of::<conn_log::ConnRow<'_>>(),
        gannet_log::Schema::of::<StatsRow<'_>>(),
    ];
    all.extend(gannet_files::schemas());
    all.extend(gannet_protocols::schemas());
    all.sort_by_key(|s| s.path);
    all
}

/// The declarations of all events that an analysis can raise.
pub fn events() -> impl Iterator<Item = &'static Decl> {
    gannet_protocols::events::all()
}

/// The protocol analyzers: the name in analyzer.log, and the name of the tag in Zeek's scripts.
pub fn analyzers() -> impl Iterator<Item = (&'static str, &'static str)> {
    gannet_protocols::Tag::ALL.iter().map(|tag| (tag.name(), tag.zeek_name()))
}

/// The analysis of one stream of packets.
pub struct Engine {
    work: Work,
    filter: Option<Filter>,
    statistics: Statistics,
}

/// How an analysis is executed.
enum Work {
    /// In the caller's thread.
    Alone(Box<Shard>),
    /// In several threads.
    Split(Box<Dispatcher>),
}

impl Engine {
    /// A new analysis.
    pub fn new(options: Options) -> Self {
        Self {
            filter: options.filter.clone(),
            work: Work::of(options),
            statistics: Statistics::default(),
        }
    }

    /// A new analysis that passes events of `interest` to `listener`, in packet order. It uses
    /// several threads if the listener's [thread affinity](Listener::affinity) and the events allow
    /// that.
    pub fn with_listener(
        options: Options,
        interest: Interest,
        listener: Box<dyn Listener>,
    ) -> Self {
        let filter = options.filter.clone();
        let work = Work::listening(options, interest, listener);
        Self { filter, work, statistics: Statistics::default() }
    }

    /// Analyzes the next packets.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn batch(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        let mut packet_filter = PacketFilter::new(self.filter.as_ref());
        let done = match &mut self.work {
            Work::Split(dispatcher) => dispatcher.batch(batch, &mut packet_filter),
            Work::Alone(shard) => alone(shard, batch, &mut packet_filter),
        };
        self.statistics.packets += batch.len() as u64;
        self.statistics.bytes += batch.wire_bytes();
        self.statistics.filtered += packet_filter.rejected;
        done
    }

    /// Analyzes all packets received so far and writes all complete rows to their files, however
    /// few: for slow input.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.work {
            Work::Split(dispatcher) => dispatcher.flush(),
            Work::Alone(shard) => {
                shard.env.logs.write_out();
                shard.check()
            }
        }
    }

    /// Start of the earliest open connection, [`Time::MAX`] if none is open; `None` if several
    /// threads hold connections. Takes time proportional to the number of connections.
    pub fn earliest_open(&self) -> Option<Time> {
        match &self.work {
            Work::Alone(shard) => Some(shard.earliest_open()),
            Work::Split(_) => None,
        }
    }

    /// Advances time to `time` without a packet and runs due timers. `number` is a packet number
    /// greater than that of any packet so far.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn advance(&mut self, number: u64, time: Time) -> io::Result<()> {
        match &mut self.work {
            Work::Split(dispatcher) => dispatcher.advance(number, time),
            Work::Alone(shard) => {
                shard.idle(number, time);
                shard.check()
            }
        }
    }

    /// Analyzes all packets received so far, then calls `work` with the logs.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn with_logs<T>(&mut self, work: impl FnOnce(&mut Logs) -> T) -> io::Result<Option<T>> {
        match &mut self.work {
            Work::Split(dispatcher) => dispatcher.with_logs(work),
            Work::Alone(shard) => {
                let done = work(&mut shard.env.logs);
                shard.check().map(|()| Some(done))
            }
        }
    }

    /// Analyzes all packets received so far, then returns the current amounts of state.
    pub fn gauge(&mut self) -> Gauge {
        match &mut self.work {
            Work::Split(dispatcher) => dispatcher.gauge(),
            Work::Alone(shard) => Gauge::measure(shard),
        }
    }

    /// Packet counts so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Raises the event for the end of a capture, if events have a listener.
    pub fn end_capture(&mut self, path: &str) {
        match &mut self.work {
            Work::Alone(shard) => shard.raise_capture_end(path),
            Work::Split(dispatcher) => dispatcher.end_capture(path),
        }
    }

    /// Ends the input: logs every open connection and closes the logs. Returns the statistics.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn finish(mut self) -> io::Result<(Statistics, Vec<StreamCount>)> {
        let (connections, state, counts) = match self.work {
            Work::Alone(mut shard) => {
                let counts = shard.finish()?;
                (shard.connections(), shard.evictor.report, counts)
            }
            Work::Split(dispatcher) => dispatcher.finish()?,
        };
        self.statistics.connections = connections;
        self.statistics.state = state;
        Ok((self.statistics, counts))
    }
}

/// Analyzes the packets of a batch that pass the filter, in one thread.
fn alone(
    shard: &mut Shard,
    batch: &Batch<'_>,
    packet_filter: &mut PacketFilter<'_>,
) -> io::Result<()> {
    // The shard stays unobserved for the whole batch.
    if shard.is_unobserved() {
        each::<false>(shard, batch, packet_filter);
    } else {
        each::<true>(shard, batch, packet_filter);
    }
    shard.check()
}

/// Analyzes each packet of a batch that passes the filter. `EVENTS`: an event may have a listener.
#[inline]
fn each<const EVENTS: bool>(
    shard: &mut Shard,
    batch: &Batch<'_>,
    packet_filter: &mut PacketFilter<'_>,
) {
    let is_far = shard.is_table_far();
    for (at, packet) in batch.iter().enumerate() {
        let next = at + lookahead::AHEAD;
        if !is_far {
            batch.prefetch(next);
        } else if let Some(key) = batch.get(next).as_ref().and_then(lookahead::key) {
            shard.prefetch(&key);
        }
        if EVENTS && shard.stopped {
            break;
        }
        if packet_filter.passes(&packet) && (!EVENTS || shard.passes(&packet)) {
            shard.packet::<EVENTS>(&packet);
        }
    }
}

impl Work {
    fn of(options: Options) -> Self {
        if may_split(&options)
            && let Ok(dispatcher) = Dispatcher::new(&options, options.threads)
        {
            return Self::Split(Box::new(dispatcher));
        }
        Self::Alone(Box::new(Shard::new(options, Role::Whole)))
    }

    fn listening(options: Options, interest: Interest, listener: Box<dyn Listener>) -> Self {
        let is_behind = listener.affinity() != ThreadAffinity::Analysis && !options.in_key_order;
        let in_one_thread = |decl: &Decl| decl.one_thread && interest.has(decl.id);
        if is_behind && may_split(&options) && !events().any(in_one_thread) {
            let threads = options.threads;
            let dispatcher = Dispatcher::with_listener(&options, threads, &interest, listener);
            return Self::Split(Box::new(dispatcher));
        }
        let mut shard = Shard::new(options, Role::Whole);
        shard.listen(interest, listener);
        Self::Alone(Box::new(shard))
    }
}

/// Why these options require a single thread, without listeners for events; `None` if they do not.
pub fn why_one_thread(options: &Options) -> Option<String> {
    // Which connections are evicted depends on all other connections.
    let limits = &options.limits;
    if options.threads <= 1 {
        return Some("the capture is small, or it was asked for".to_owned());
    }
    if limits.connections != Limits::NONE || limits.state != Limits::NONE {
        return Some("a limit of connections or of the whole state is set".to_owned());
    }
    let opt_in = |s: &gannet_log::Schema| s.opt_in && options.logs.selection.has(s.path, true);
    let log = schemas().into_iter().find(opt_in)?;
    Some(format!("{}.log is about the whole traffic", log.path))
}

/// Whether these options allow several threads.
fn may_split(options: &Options) -> bool {
    why_one_thread(options).is_none()
}
