//! The queries that a sender has at hand, in the order of their due times, and its clock.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use std::time::Instant;

use crate::Options;
use crate::block::Block;
use crate::block::Item;

/// Blocks that wait for a sender in its channel, and as many again at its hand: some ten thousand
/// queries, which is time enough to make the sockets of their clients.
pub(crate) const AHEAD: usize = 16;
/// Waits that are shorter are spent looking at the clock, in nanoseconds.
const SPIN: u64 = 150_000;
/// A wait is never longer, so that a stop is heard.
const MAX_WAIT: u64 = 20_000_000;
/// How long to wait for the feed before it is asked again.
const STARVING: u64 = 100_000;
/// How much longer than its duration a late sender goes on, in nanoseconds.
const GRACE: u64 = 1_000_000_000;

/// How short sleeps are where processors are wanted by others, in nanoseconds, and thus how late a
/// query may be: who sleeps gets a processor back sooner than who spins, whom the kernel takes it
/// away from for milliseconds.
const NAP: u64 = 50_000;
/// A look at the clock that comes so long after the one before means that something else had the
/// processor, in nanoseconds, and how long after that there are naps instead of looks.
const ROBBED: u64 = 300_000;
const CROWDED: u64 = 1_000_000_000;
/// Processors beside those of senders that must be there for looking at the clock: for the feed, and
/// for the server if it is on the same machine.
const SPARE: usize = 2;
/// Looks at the clock before a sender looks after its sockets again.
const LOOKS: u32 = 40;

/// What a sender has to send.
pub(crate) struct Due {
    start: Instant,
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
}

impl Due {
    pub(crate) fn new(options: &Options, start: Instant, blocks: Receiver<Block>) -> Self {
        // The feed ends a schedule when its time is over; a sender that is late may take a bit
        // longer.
        let grace = if options.timing.is_max() { 0 } else { GRACE };
        let end = |d: Duration| nanoseconds(d).saturating_add(grace);
        let end = options.duration.map_or(u64::MAX, end);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let crowded = if processors < options.threads + SPARE { u64::MAX } else { 0 };
        Self {
            start,
            blocks,
            block: Block::default(),
            next: 0,
            upcoming: VecDeque::new(),
            last_client: None,
            end,
            ended: false,
            crowded,
        }
    }

    /// Nanoseconds since the start of the run; 0 before it.
    pub(crate) fn now(&self) -> u64 {
        nanoseconds(self.start.elapsed())
    }

    /// Sleeps until the run starts.
    pub(crate) fn wait_for_start(&self) {
        std::thread::sleep(self.start.saturating_duration_since(Instant::now()));
    }

    /// Sends no more of what was dealt out once the time is over.
    pub(crate) fn cut_off(&mut self, now: u64) {
        if now >= self.end {
            self.ended = true;
            self.block = Block::default();
            self.next = 0;
            self.upcoming.clear();
        }
    }

    /// Whether there is a query at hand.
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

    /// The next query is on its way.
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
            Some(item) if item.due <= now => return None,
            Some(item) => item.due,
            None if self.ended => now + MAX_WAIT,
            None => now + STARVING + SPIN,
        };
        let next = other.map_or(next, |at| next.min(at.saturating_add(SPIN)));
        let gap = next.saturating_sub(now).min(MAX_WAIT);
        if gap > SPIN {
            return Some(gap - SPIN);
        }
        if now < self.crowded {
            // What becomes due in a nap goes out together after it.
            return Some(gap.max(NAP));
        }
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

/// As the clock of a run counts; the longest there is for longer times.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
