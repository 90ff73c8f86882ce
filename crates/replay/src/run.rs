//! A run: its options, its threads, its report.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use crate::Error;
use crate::Input;
use crate::Policy;
use crate::Report;
use crate::Rewrite;
use crate::Timing;
use crate::Tls;
use crate::Transport;
use crate::compare::Observer;
use crate::feed::Feed;
use crate::paced_queue::AHEAD;
use crate::paced_queue::GO;
use crate::paced_queue::PacedQueue;
use crate::paced_queue::Start;
use crate::sender;
use crate::sender::Part;
use crate::stats::Stats;
use crate::streams;
use crate::sys;
use crate::target::Range;

/// What to send, where, when and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where queries come from.
    pub input: Input,
    /// Where they go.
    pub target: SocketAddr,
    /// How they are changed before.
    pub rewrite: Rewrite,
    /// What carries them.
    pub transport: Transport,
    /// How long connections are kept.
    pub policy: Policy,
    /// How sessions begin, for the transports that have them ([`Transport::is_secure`]).
    pub tls: Option<Tls>,
    /// Path of requests, for [`Transport::Https`].
    pub path: String,
    /// When.
    pub timing: Timing,
    /// Clients, with a socket or a connection each; none: one a source address, or one a thread for lists.
    pub clients: Option<u32>,
    /// Threads that send.
    pub threads: usize,
    /// Source addresses that clients take in turn; any, if empty.
    pub bind: Option<Range>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How often a query is sent again that was not answered in time.
    pub retries: u8,
    /// How often the input is sent; 0: until something else ends it.
    pub loops: u64,
    /// Queries at the most.
    pub limit: Option<u64>,
    /// How long queries are sent at the most.
    pub duration: Option<Duration>,
    /// How much of the start is left out of the report's totals.
    pub warm_up: Duration,
    /// Queries that wait for answers at once with [`Timing::Max`], over all threads.
    pub in_flight: usize,
    /// Whether answers are looked for.
    pub answers: bool,
    /// Length of the report's intervals.
    pub interval: Duration,
    /// Whether the kernel takes several queries of one length in one piece (UDP GSO).
    pub segmentation: bool,
    /// Whether senders that have a schedule run before other programs on a busy machine, where the
    /// kernel lets them (CAP_SYS_NICE).
    pub realtime: bool,
}

impl Options {
    /// Sends `input` to `target` as it was captured, once.
    pub fn new(input: Input, target: SocketAddr) -> Self {
        Self {
            input,
            target,
            rewrite: Rewrite::default(),
            transport: Transport::Udp,
            policy: Policy::default(),
            tls: None,
            path: "/dns-query".to_owned(),
            timing: Timing::Original { speed: 1.0 },
            clients: None,
            threads: 1,
            bind: None,
            timeout: Duration::from_secs(5),
            retries: 0,
            loops: 1,
            limit: None,
            duration: None,
            warm_up: Duration::ZERO,
            in_flight: 512,
            answers: true,
            interval: Duration::from_secs(1),
            segmentation: true,
            realtime: true,
        }
    }
}

/// Progress of a run, for display.
#[derive(Debug, Default)]
pub struct Live {
    /// Queries sent.
    pub sent: AtomicU64,
    /// Queries answered.
    pub answered: AtomicU64,
    /// Queries lost.
    pub lost: AtomicU64,
}

/// Sends all queries, waits for the last answers, and reports. `stop` ends it early, with a report
/// nevertheless.
///
/// # Errors
/// Where the input cannot be read or holds no query, and where no client socket can be made.
pub fn run(options: &Options, stop: &AtomicBool, live: &Live) -> Result<Report, Error> {
    observed(options, stop, live, None, None)
}

/// As [`run`]; `observer` receives each answer that completes a query, `capture` each answer in the
/// input to a sent query.
pub(crate) fn observed(
    options: &Options,
    stop: &AtomicBool,
    live: &Live,
    observer: Option<&Observer>,
    capture: Option<&Observer>,
) -> Result<Report, Error> {
    if options.transport.is_secure() && options.tls.is_none() {
        return Err(Error::Tls("nothing says whom to trust".to_owned()));
    }
    let mut feed = Feed::open(options, capture)?;
    feed.prepare()?;
    let threads = options.threads.max(1);
    let start = Start::of(threads);
    // Set when a sender fails, to stop the others.
    let failed = AtomicBool::new(false);
    let stopped = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let parts = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        let mut channels = Vec::new();
        for number in 0..threads {
            let (to, blocks) = mpsc::sync_channel(AHEAD);
            channels.push(to);
            let (failed, stopped, start) = (&failed, &stopped, &start);
            workers.push(scope.spawn(move || {
                let due = PacedQueue::new(options, start, blocks);
                let part = send(options, number, due, (live, observer), stopped);
                if part.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                part
            }));
        }
        let fed = feed.run(channels, &stopped);
        let parts: Vec<_> = workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        fed.map(|()| parts)
    })?;
    let began = start.began();
    let elapsed = began.at.elapsed();
    let mut stats = Stats::of(options);
    let mut clients = 0;
    for part in parts {
        let part = part?;
        clients += part.clients;
        stats.merge(part.stats);
    }
    let feed = feed.finish();
    Ok(Report {
        input: options.input.name(),
        target: options.target,
        transport: options.transport,
        timing: options.timing,
        threads,
        clients,
        sources: feed.sources,
        asked: feed.asked,
        scheduled: Duration::from_nanos(feed.last_due),
        elapsed,
        began: began.wall,
        timeout: options.timeout,
        stopped: stop.load(Ordering::Relaxed),
        seen: feed.seen,
        unchanged: feed.unchanged,
        forgotten: feed.forgotten,
        total: stats.total(),
        stats,
    })
}

/// The loop of one thread.
fn send(
    options: &Options,
    number: usize,
    due: PacedQueue<'_>,
    watchers: (&Live, Option<&Observer>),
    stopped: &dyn Fn() -> bool,
) -> Result<Part, Error> {
    // The kernel may otherwise round a sleep up by 50 microseconds. Not vital.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap_or_default();
    // Nor may a sender whose query is due wait until another program's time slice ends.
    sys::run_in_short_goes(GO);
    if options.transport.is_stream() {
        streams::Worker::new(options, number, due, watchers)?.run(stopped)
    } else {
        sender::Worker::new(options, number, due, watchers)?.run(stopped)
    }
}
