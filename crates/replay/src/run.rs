//! Execution of a run: its options, threads and report.

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
use crate::paced_queue::PacedQueue;
use crate::paced_queue::QUEUED_BLOCKS;
use crate::paced_queue::Start;
use crate::paced_queue::TIME_SLICE;
use crate::sender;
use crate::sender::SenderResult;
use crate::stats::Stats;
use crate::streams;
use crate::sys;
use crate::target::Range;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of queries.
    pub input: Input,
    /// Address of the server.
    pub target: SocketAddr,
    /// Changes to queries before they are sent.
    pub rewrite: Rewrite,
    /// Transport of the queries.
    pub transport: Transport,
    /// Lifetime of connections.
    pub policy: Policy,
    /// TLS settings, for encrypted transports ([`Transport::is_secure`]).
    pub tls: Option<Tls>,
    /// Path of requests, for [`Transport::Https`].
    pub path: String,
    /// Timing of the queries.
    pub timing: Timing,
    /// Number of clients, each with a socket or a connection; `None`: one per source address, or
    /// one per thread for lists.
    pub clients: Option<u32>,
    /// Number of sender threads.
    pub threads: usize,
    /// Source addresses, assigned to clients in turn; `None` leaves the choice to the system.
    pub bind: Option<Range>,
    /// Maximum time to wait for an answer.
    pub timeout: Duration,
    /// Number of retries of a query that is not answered in time.
    pub retries: u8,
    /// Number of times the input is sent; 0: until another limit ends the run.
    pub loops: u64,
    /// Maximum number of queries.
    pub limit: Option<u64>,
    /// Maximum time during which queries are sent.
    pub duration: Option<Duration>,
    /// Time from the start that is excluded from the report's totals.
    pub warm_up: Duration,
    /// Maximum number of queries waiting for answers with [`Timing::Max`], over all threads.
    pub in_flight: usize,
    /// Whether to receive and match answers.
    pub answers: bool,
    /// Length of the report's intervals.
    pub interval: Duration,
    /// Whether queries of equal length are passed to the kernel in one message (UDP GSO).
    pub segmentation: bool,
    /// Whether senders with a schedule use real-time priority on a busy machine, if the kernel
    /// permits it (CAP_SYS_NICE).
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

/// Sends all queries, waits for the last answers, and returns a report. `stop` ends the run early;
/// the report is returned as well.
///
/// # Errors
/// If the input cannot be read or holds no query, and if no client socket can be created.
pub fn run(options: &Options, stop: &AtomicBool, live: &Live) -> Result<Report, Error> {
    observed(options, stop, live, None, None)
}

/// Like [`run`]; `observer` receives each answer that completes a query, `capture` each answer in
/// the input to a sent query.
pub(crate) fn observed(
    options: &Options,
    stop: &AtomicBool,
    live: &Live,
    observer: Option<&Observer>,
    capture: Option<&Observer>,
) -> Result<Report, Error> {
    if options.transport.is_secure() && options.tls.is_none() {
        return Err(Error::Tls("no certificates to trust are given".to_owned()));
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
            let (to, blocks) = mpsc::sync_channel(QUEUED_BLOCKS);
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
    let began = start.started_at();
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
        requested_rate: feed.requested_rate,
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

/// Runs one sender thread.
fn send(
    options: &Options,
    number: usize,
    due: PacedQueue<'_>,
    watchers: (&Live, Option<&Observer>),
    stopped: &dyn Fn() -> bool,
) -> Result<SenderResult, Error> {
    // The kernel may otherwise round a sleep up by 50 microseconds. Errors are ignored.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap_or_default();
    // A short time slice keeps a sender with a due query from waiting for another program's time
    // slice to end.
    sys::set_short_time_slice(TIME_SLICE);
    if options.transport.is_stream() {
        streams::Worker::new(options, number, due, watchers)?.run(stopped)
    } else {
        sender::Worker::new(options, number, due, watchers)?.run(stopped)
    }
}
