//! The queue of a sender: queries in the order of their due times, and its clock.

use std::collections::VecDeque;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use crate::Options;
use crate::block::Block;
use crate::block::Item;
use crate::sys;

/// Maximum number of blocks in a sender's channel, and of fetched blocks in its queue: some ten
/// thousand queries, enough time to open the sockets of their clients.
pub(crate) const QUEUED_BLOCKS: usize = 16;
/// Shorter waits, in nanoseconds, poll the clock instead of sleeping.
const SPIN: u64 = 150_000;
/// Maximum wait in nanoseconds, so that a request to stop is noticed.
const MAX_WAIT: u64 = 20_000_000;
/// Interval at which an empty queue polls the feed, in nanoseconds.
const FEED_POLL: u64 = 100_000;
/// Nanoseconds that a late sender continues beyond its duration.
const GRACE: u64 = 1_000_000_000;

/// Time slice of a sender on a busy processor, in nanoseconds.
pub(crate) const TIME_SLICE: u64 = 100_000;
/// Length of short sleeps on busy machines in nanoseconds, and thus the delay of a query: the
/// kernel reschedules a sleeping thread sooner than a spinning one, which it suspends for
/// milliseconds.
const SHORT_SLEEP: u64 = 50_000;
/// A gap of this length between two polls of the clock means that another thread had the processor,
/// in nanoseconds; and the time after that during which short sleeps replace polling.
pub(crate) const PREEMPTED_GAP: u64 = 300_000;
const BUSY_PERIOD: u64 = 1_000_000_000;
/// Number of processors needed in addition to those of the senders to allow polling the clock: for
/// the feed, and for the server if it is on the same machine.
const SPARE: usize = 2;
/// Polls of the clock before a sender serves its sockets again.
const CLOCK_POLLS: u32 = 40;
/// A sender that sleeps regularly has real-time priority, if the kernel permits. It loses the
/// priority after this time without a sleep, and may regain it after the second time, in
/// nanoseconds.
const MAX_WITHOUT_SLEEP: u64 = 20_000_000;
const PRIORITY_PAUSE: u64 = 1_000_000_000;

/// Time between the moment when all senders are ready and the first query.
const START_DELAY: Duration = Duration::from_millis(2);
/// Maximum time that a sender waits for further blocks before it reports that it is ready: a file
/// reader fills the queue in less time, and a slow pipe does not delay the start.
const PREPARATION: Duration = Duration::from_millis(200);
/// Interval at which a sender waiting for the others checks whether the run is stopped.
const STOP_POLL: Duration = Duration::from_millis(20);

/// The start of a run: shortly after all its senders have opened their sockets.
#[derive(Debug)]
pub(crate) struct Start {
    /// Number of senders that are not ready, and the start time once all are.
    state: Mutex<(usize, Option<ClockPair>)>,
    known: Condvar,
}

/// A moment, by two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockPair {
    pub(crate) at: Instant,
    pub(crate) wall: SystemTime,
}

impl ClockPair {
    fn soon() -> Self {
        Self { at: Instant::now() + START_DELAY, wall: SystemTime::now() + START_DELAY }
    }
}

impl Start {
    /// A start that waits for this many senders.
    pub(crate) fn of(senders: usize) -> Self {
        Self { state: Mutex::new((senders, None)), known: Condvar::new() }
    }

    /// Counts a sender that is ready or has failed.
    fn ready(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0.saturating_sub(1);
        if state.0 == 0 && state.1.is_none() {
            state.1 = Some(ClockPair::soon());
            self.known.notify_all();
        }
    }

    /// The start time; if the run has not started, it starts now.
    pub(crate) fn started_at(&self) -> ClockPair {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.1.get_or_insert_with(ClockPair::soon)
    }

    /// Waits until all are ready, or `stopped`.
    fn wait(&self, stopped: &dyn Fn() -> bool) -> Instant {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.1.is_none() && !stopped() {
            let waited = self.known.wait_timeout(state, STOP_POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.started_at().at
    }
}

/// The queries of a sender.
pub(crate) struct PacedQueue<'a> {
    start: &'a Start,
    /// The start time of the run, and whether this sender has reported that it is ready.
    started_at: Option<Instant>,
    is_ready: bool,
    blocks: Receiver<Block>,
    block: Block,
    /// Index of the next item of the block.
    next: usize,
    /// Fetched blocks after the current one.
    fetched: VecDeque<Block>,
    /// The highest client of all blocks fetched so far.
    last_client: Option<u32>,
    /// Time at which sending ends, even if queries remain.
    end: u64,
    /// Whether the feed has ended.
    ended: bool,
    /// Time until which the processors are assumed to be busy with other threads.
    busy_until: u64,
    priority: Priority,
}

/// The real-time priority of this thread.
struct Priority {
    /// Whether it may request the priority: it has a schedule, and no request was refused.
    may: bool,
    is_raised: bool,
    /// Time of the last sleep, and time from which the priority may be requested again.
    last_sleep: u64,
    may_raise_at: u64,
}

impl Priority {
    /// Called before a sleep: requests the priority if allowed.
    fn before_sleep(&mut self, now: u64) {
        self.last_sleep = now;
        if self.may && !self.is_raised && now >= self.may_raise_at {
            self.is_raised = sys::set_realtime_priority(true);
            self.may = self.is_raised;
        }
    }

    /// Called without time to sleep: gives up the priority after too long without a sleep, so that
    /// a sender with this much work does not take the processor from other threads, such as the
    /// reader of its input and possibly the server.
    fn without_sleep(&mut self, now: u64) {
        if self.is_raised && now.saturating_sub(self.last_sleep) > MAX_WITHOUT_SLEEP {
            self.lower(now);
        }
    }

    fn lower(&mut self, now: u64) {
        if self.is_raised {
            sys::set_realtime_priority(false);
            sys::set_short_time_slice(TIME_SLICE);
            self.is_raised = false;
            self.may_raise_at = now + PRIORITY_PAUSE;
        }
    }
}

impl<'a> PacedQueue<'a> {
    pub(crate) fn new(options: &Options, start: &'a Start, blocks: Receiver<Block>) -> Self {
        // The feed ends a schedule when its duration is over; a sender that is late may continue
        // for the grace period.
        let grace = if options.timing.is_max() { 0 } else { GRACE };
        let end = |d: Duration| nanoseconds(d).saturating_add(grace);
        let end = options.duration.map_or(u64::MAX, end);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let busy_until = if processors < options.threads + SPARE { u64::MAX } else { 0 };
        Self {
            start,
            started_at: None,
            is_ready: false,
            blocks,
            block: Block::default(),
            next: 0,
            fetched: VecDeque::new(),
            last_client: None,
            end,
            ended: false,
            busy_until,
            priority: Priority {
                may: options.realtime && !options.timing.is_max(),
                is_raised: false,
                last_sleep: 0,
                may_raise_at: 0,
            },
        }
    }

    /// Nanoseconds since the start of the run; 0 before it.
    pub(crate) fn now(&self) -> u64 {
        self.started_at.map_or(0, |started_at| nanoseconds(started_at.elapsed()))
    }

    /// Fetches blocks until the queue is full, or no block arrives for [`PREPARATION`].
    pub(crate) fn prepare(&mut self) {
        let end = Instant::now() + PREPARATION;
        while self.fetched.len() < QUEUED_BLOCKS
            && self.wait_for_block(end.saturating_duration_since(Instant::now()))
        {}
    }

    /// Reports that this sender is ready, and sleeps until all are and the run starts.
    pub(crate) fn wait_for_start(&mut self, stopped: &dyn Fn() -> bool) {
        self.is_ready = true;
        self.start.ready();
        let started_at = self.start.wait(stopped);
        self.started_at = Some(started_at);
        std::thread::sleep(started_at.saturating_duration_since(Instant::now()));
    }

    /// Drops the remaining queries once the end of sending is reached.
    pub(crate) fn cut_off(&mut self, now: u64) {
        if now >= self.end {
            self.ended = true;
            self.block = Block::default();
            self.next = 0;
            self.fetched.clear();
        }
    }

    /// Whether a query is queued.
    pub(crate) fn has_query(&mut self) -> bool {
        while self.next >= self.block.items.len() {
            if self.fetched.is_empty() && !self.fetch() {
                return false;
            }
            self.block = self.fetched.pop_front().unwrap_or_default();
            self.next = 0;
        }
        true
    }

    /// Fetches an available block, unless the queue is full; returns whether it did.
    pub(crate) fn fetch(&mut self) -> bool {
        if self.ended || self.fetched.len() >= QUEUED_BLOCKS {
            return false;
        }
        match self.blocks.try_recv() {
            Ok(block) => {
                self.put(block);
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => {
                self.ended = true;
                false
            }
        }
    }

    /// Waits up to `patience` for the next block if the queue is empty; returns whether one
    /// arrived.
    pub(crate) fn wait_for_block(&mut self, patience: Duration) -> bool {
        if self.ended {
            return false;
        }
        match self.blocks.recv_timeout(patience) {
            Ok(block) => {
                self.put(block);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                false
            }
        }
    }

    fn put(&mut self, block: Block) {
        self.last_client = self.last_client.max(Some(block.last_client));
        self.fetched.push_back(block);
    }

    /// The highest client of all blocks fetched so far.
    pub(crate) fn last_client(&self) -> Option<u32> {
        self.last_client
    }

    /// The next query and its message.
    pub(crate) fn peek(&self) -> Option<(Item, &[u8])> {
        let item = self.block.items.get(self.next)?;
        Some((*item, self.block.message(item)))
    }

    /// Advances past the next query.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    /// Whether all queries are sent and the feed has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.next >= self.block.items.len() && self.fetched.is_empty()
    }

    /// Time to sleep, in nanoseconds, until shortly before the next query is due or until `other`.
    /// `None` if the time is too short to sleep; the clock was then polled a few times.
    ///
    /// `held` means that queries wait for answers and not for the clock. Otherwise, if a query has
    /// become due since the clock was last read, there is no pause.
    pub(crate) fn pause(&mut self, now: u64, other: Option<u64>, held: bool) -> Option<u64> {
        let next = match self.block.items.get(self.next) {
            Some(_) if held => now + MAX_WAIT,
            Some(item) if item.due <= now => {
                self.priority.without_sleep(now);
                return None;
            }
            Some(item) => item.due,
            None if self.ended => now + MAX_WAIT,
            None => now + FEED_POLL + SPIN,
        };
        let next = other.map_or(next, |at| next.min(at.saturating_add(SPIN)));
        let gap = next.saturating_sub(now).min(MAX_WAIT);
        if gap > SPIN {
            self.priority.last_sleep = now;
            return Some(gap - SPIN);
        }
        if now < self.busy_until {
            self.priority.before_sleep(now);
            // Queries that become due during a short sleep are sent together after it.
            return Some(gap.max(SHORT_SLEEP));
        }
        // A sender that polls the clock must not have real-time priority.
        self.priority.lower(now);
        let mut before = now;
        for _ in 0..CLOCK_POLLS {
            let now = self.now();
            if now - before > PREEMPTED_GAP {
                self.busy_until = self.busy_until.max(now + BUSY_PERIOD);
            }
            if now >= next {
                break;
            }
            before = now;
        }
        None
    }
}

impl Drop for PacedQueue<'_> {
    fn drop(&mut self) {
        // The other senders must not wait for one that failed.
        if !self.is_ready {
            self.start.ready();
        }
    }
}

/// A duration in nanoseconds of the run's clock, saturating.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::mpsc::sync_channel;

    use crate::Input;

    fn options() -> Options {
        Options::new(Input::List(PathBuf::new()), ([127, 0, 0, 1], 9).into())
    }

    #[test]
    fn the_clock_starts_when_all_are_ready() {
        let start = Start::of(2);
        let options = options();
        let slow = Duration::from_millis(30);
        // One start for both threads: a busy machine may start the first thread after the second
        // one has slept.
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for wait in [Duration::ZERO, slow] {
                let (start, options) = (&start, &options);
                scope.spawn(move || {
                    let (_to, blocks) = sync_channel(1);
                    let mut due = PacedQueue::new(options, start, blocks);
                    std::thread::sleep(wait);
                    assert_eq!(due.now(), 0);
                    due.wait_for_start(&|| false);
                    assert!(begun.elapsed() >= slow, "it waited for the other");
                });
            }
        });
    }

    #[test]
    fn no_sender_waits_for_one_that_failed_or_after_a_stop() {
        let start = Start::of(2);
        let options = options();
        let due = || PacedQueue::new(&options, &start, sync_channel(1).1);
        let mut one = due();
        drop(due());
        one.wait_for_start(&|| false);
        let start = Start::of(2);
        PacedQueue::new(&options, &start, sync_channel(1).1).wait_for_start(&|| true);
    }

    #[test]
    fn available_blocks_are_fetched_before_the_start() {
        let (options, start) = (options(), Start::of(1));
        let (to, blocks) = sync_channel(QUEUED_BLOCKS);
        let mut due = PacedQueue::new(&options, &start, blocks);
        for client in 0..3 {
            let mut block = Block::default();
            block.push(5, client, 0.into(), b"query");
            to.send(block).unwrap();
        }
        drop(to);
        due.prepare();
        assert_eq!((due.last_client(), due.now()), (Some(2), 0));
        assert!(!due.is_over() && due.has_query());
    }
}
