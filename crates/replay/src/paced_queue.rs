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

/// Blocks that wait for a sender in its channel, and as many again at its hand: some ten thousand
/// queries, which is time enough to make the sockets of their clients.
pub(crate) const AHEAD: usize = 16;
/// Waits that are shorter are spent looking at the clock, in nanoseconds.
const SPIN: u64 = 150_000;
/// A wait is never longer, so that a stop is heard.
const MAX_WAIT: u64 = 20_000_000;
/// How long to wait for the feed before it is asked again.
const STARVING: u64 = 100_000;
/// Nanoseconds that a late sender continues beyond its duration.
const GRACE: u64 = 1_000_000_000;

/// How long a sender runs in one go where others want the processor, in nanoseconds.
pub(crate) const GO: u64 = 100_000;
/// Length of short sleeps on busy machines in nanoseconds, and thus the delay of a query: the
/// kernel reschedules a sleeping thread sooner than a spinning one, which it suspends for
/// milliseconds.
const NAP: u64 = 50_000;
/// A look at the clock that comes so long after the one before means that something else had the
/// processor, in nanoseconds, and how long after that there are naps instead of looks.
pub(crate) const ROBBED: u64 = 300_000;
const CROWDED: u64 = 1_000_000_000;
/// Processors needed in addition to those of senders to allow polling the clock: for the feed, and
/// for the server if it is on the same machine.
const SPARE: usize = 2;
/// Looks at the clock before a sender looks after its sockets again.
const LOOKS: u32 = 40;
/// A sender that takes naps runs before other programs, where the kernel lets it, as long as it does not
/// go without a nap for so long; then not for so long again, in nanoseconds.
const BREATHLESS: u64 = 20_000_000;
const REST: u64 = 1_000_000_000;

/// Between the moment when all senders are ready and the first query.
const HEAD_START: Duration = Duration::from_millis(2);
/// How long a sender waits for further blocks before it reports that it is ready: a file reader
/// fills the queue in less time, and data from a pipe is not awaited.
const PREPARATION: Duration = Duration::from_millis(200);
/// How often one that waits for the others looks whether the run is stopped.
const LOOK: Duration = Duration::from_millis(20);

/// When a run starts: a moment after all its senders have their sockets.
#[derive(Debug)]
pub(crate) struct Start {
    /// Senders that are not ready, and when the run started once they all are.
    state: Mutex<(usize, Option<ClockPair>)>,
    known: Condvar,
}

/// The same moment by two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockPair {
    pub(crate) at: Instant,
    pub(crate) wall: SystemTime,
}

impl ClockPair {
    fn soon() -> Self {
        Self { at: Instant::now() + HEAD_START, wall: SystemTime::now() + HEAD_START }
    }
}

impl Start {
    /// For this many senders.
    pub(crate) fn of(senders: usize) -> Self {
        Self { state: Mutex::new((senders, None)), known: Condvar::new() }
    }

    /// One more sender is ready, or will never be.
    fn ready(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0.saturating_sub(1);
        if state.0 == 0 && state.1.is_none() {
            state.1 = Some(ClockPair::soon());
            self.known.notify_all();
        }
    }

    /// When it started; where it did not, it does now.
    pub(crate) fn began(&self) -> ClockPair {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.1.get_or_insert_with(ClockPair::soon)
    }

    /// Waits until all are ready, or `stopped`.
    fn wait(&self, stopped: &dyn Fn() -> bool) -> Instant {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.1.is_none() && !stopped() {
            let waited = self.known.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.began().at
    }
}

/// The queries of a sender.
pub(crate) struct PacedQueue<'a> {
    start: &'a Start,
    /// When that was, and whether this sender has said that it is ready.
    began: Option<Instant>,
    is_ready: bool,
    blocks: Receiver<Block>,
    block: Block,
    /// The next item of the block.
    next: usize,
    /// Blocks after this one that are here already.
    upcoming: VecDeque<Block>,
    /// The highest client of all that are, or were, here.
    last_client: Option<u32>,
    /// When sending ends, whatever is still due.
    end: u64,
    /// No more blocks will come.
    ended: bool,
    /// Until when processors are taken to be wanted by others.
    crowded: u64,
    rank: Rank,
}

/// Whether this thread runs before those of other programs.
struct Rank {
    /// Whether it may ask for that: it has a schedule, and was not refused.
    may: bool,
    is_first: bool,
    /// When it last took a nap, and from when on it may be first again.
    napped: u64,
    from: u64,
}

impl Rank {
    /// It is about to take a nap.
    fn nap(&mut self, now: u64) {
        self.napped = now;
        if self.may && !self.is_first && now >= self.from {
            self.is_first = sys::run_first(true);
            self.may = self.is_first;
        }
    }

    /// It has no time to sleep. A sender with this much work must not take the processor from other
    /// threads, such as the reader of its input and possibly the server.
    fn hurry(&mut self, now: u64) {
        if self.is_first && now.saturating_sub(self.napped) > BREATHLESS {
            self.step_back(now);
        }
    }

    fn step_back(&mut self, now: u64) {
        if self.is_first {
            sys::run_first(false);
            sys::run_in_short_goes(GO);
            self.is_first = false;
            self.from = now + REST;
        }
    }
}

impl<'a> PacedQueue<'a> {
    pub(crate) fn new(options: &Options, start: &'a Start, blocks: Receiver<Block>) -> Self {
        // The feed ends a schedule when its time is over; a sender that is late may take a bit
        // longer.
        let grace = if options.timing.is_max() { 0 } else { GRACE };
        let end = |d: Duration| nanoseconds(d).saturating_add(grace);
        let end = options.duration.map_or(u64::MAX, end);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let crowded = if processors < options.threads + SPARE { u64::MAX } else { 0 };
        Self {
            start,
            began: None,
            is_ready: false,
            blocks,
            block: Block::default(),
            next: 0,
            upcoming: VecDeque::new(),
            last_client: None,
            end,
            ended: false,
            crowded,
            rank: Rank {
                may: options.realtime && !options.timing.is_max(),
                is_first: false,
                napped: 0,
                from: 0,
            },
        }
    }

    /// Nanoseconds since the start of the run; 0 before it.
    pub(crate) fn now(&self) -> u64 {
        self.began.map_or(0, |began| nanoseconds(began.elapsed()))
    }

    /// Takes blocks in until there is no room for more, or no more come soon.
    pub(crate) fn prepare(&mut self) {
        let end = Instant::now() + PREPARATION;
        while self.upcoming.len() < AHEAD
            && self.wait_for_block(end.saturating_duration_since(Instant::now()))
        {}
    }

    /// Says that this sender is ready, and sleeps until all are and the run starts.
    pub(crate) fn wait_for_start(&mut self, stopped: &dyn Fn() -> bool) {
        self.is_ready = true;
        self.start.ready();
        let began = self.start.wait(stopped);
        self.began = Some(began);
        std::thread::sleep(began.saturating_duration_since(Instant::now()));
    }

    /// Drops the remaining queries once the time is over.
    pub(crate) fn cut_off(&mut self, now: u64) {
        if now >= self.end {
            self.ended = true;
            self.block = Block::default();
            self.next = 0;
            self.upcoming.clear();
        }
    }

    /// Whether a query is queued.
    pub(crate) fn has_query(&mut self) -> bool {
        while self.next >= self.block.items.len() {
            if self.upcoming.is_empty() && !self.fetch() {
                return false;
            }
            self.block = self.upcoming.pop_front().unwrap_or_default();
            self.next = 0;
        }
        true
    }

    /// Takes a block in that has come, if there is room for one; whether it did.
    pub(crate) fn fetch(&mut self) -> bool {
        if self.ended || self.upcoming.len() >= AHEAD {
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

    /// Waits a little for the next block where none is left; whether it came.
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
        self.upcoming.push_back(block);
    }

    /// The highest client that was heard of.
    pub(crate) fn last_client(&self) -> Option<u32> {
        self.last_client
    }

    /// The next query and its message.
    pub(crate) fn peek(&self) -> Option<(Item, &[u8])> {
        let item = self.block.items.get(self.next)?;
        Some((*item, self.block.message(item)))
    }

    /// The next query was sent.
    pub(crate) fn pass(&mut self) {
        self.next += 1;
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.next >= self.block.items.len() && self.upcoming.is_empty()
    }

    /// How long to sleep, in nanoseconds, until shortly before the next query is due or `other`
    /// comes. `None` where there is only time to look at the clock, which this did a few times.
    ///
    /// `held` says that queries wait for answers and not for the clock. Without it, a query that
    /// became due since the clock was last looked at leaves no time for a pause.
    pub(crate) fn pause(&mut self, now: u64, other: Option<u64>, held: bool) -> Option<u64> {
        let next = match self.block.items.get(self.next) {
            Some(_) if held => now + MAX_WAIT,
            Some(item) if item.due <= now => {
                self.rank.hurry(now);
                return None;
            }
            Some(item) => item.due,
            None if self.ended => now + MAX_WAIT,
            None => now + STARVING + SPIN,
        };
        let next = other.map_or(next, |at| next.min(at.saturating_add(SPIN)));
        let gap = next.saturating_sub(now).min(MAX_WAIT);
        if gap > SPIN {
            self.rank.napped = now;
            return Some(gap - SPIN);
        }
        if now < self.crowded {
            self.rank.nap(now);
            // What becomes due in a nap goes out together after it.
            return Some(gap.max(NAP));
        }
        // A sender that polls the clock must not have real-time priority.
        self.rank.step_back(now);
        let mut before = now;
        for _ in 0..LOOKS {
            let now = self.now();
            if now - before > ROBBED {
                self.crowded = self.crowded.max(now + CROWDED);
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
        // The others do not wait for one that failed.
        if !self.is_ready {
            self.start.ready();
        }
    }
}

/// As the clock of a run counts; the longest there is for longer times.
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
        // One for both: a busy machine may start the first thread after the second one has slept.
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
    fn what_is_there_is_taken_before_the_start() {
        let (options, start) = (options(), Start::of(1));
        let (to, blocks) = sync_channel(AHEAD);
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
