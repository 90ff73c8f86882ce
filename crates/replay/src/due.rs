//! The queries that a sender has at hand, in the order of their due times, and its clock.

use std::sync::mpsc::Receiver;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use std::time::Instant;

use crate::Options;
use crate::block::Block;
use crate::block::Item;

/// Waits that are shorter are spent looking at the clock, in nanoseconds.
const SPIN: u64 = 150_000;
/// A wait is never longer, so that a stop is heard.
const MAX_WAIT: u64 = 20_000_000;
/// How long to wait for the feed before it is asked again.
const STARVING: u64 = 100_000;
/// How much longer than its duration a late sender goes on, in nanoseconds.
const GRACE: u64 = 1_000_000_000;

/// What a sender has to send.
pub(crate) struct Due {
    start: Instant,
    blocks: Receiver<Block>,
    block: Block,
    /// The next item of the block.
    next: usize,
    /// When sending ends, whatever is still due.
    end: u64,
    /// No more blocks will come.
    ended: bool,
}

/// What is at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    /// A query.
    Query,
    /// A new block, which may be empty: look at its clients, then ask again.
    NewBlock,
    /// Nothing, for now or for ever.
    Nothing,
}

impl Due {
    pub(crate) fn new(options: &Options, start: Instant, blocks: Receiver<Block>) -> Self {
        // The feed ends a schedule when its time is over; a sender that is late may take a bit
        // longer.
        let grace = if options.timing.is_max() { 0 } else { GRACE };
        let end = |d: Duration| nanoseconds(d).saturating_add(grace);
        let end = options.duration.map_or(u64::MAX, end);
        Self { start, blocks, block: Block::default(), next: 0, end, ended: false }
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
        }
    }

    /// Takes the next block if need be.
    pub(crate) fn look(&mut self) -> AtHand {
        if self.next < self.block.items.len() {
            return AtHand::Query;
        }
        if self.ended {
            return AtHand::Nothing;
        }
        match self.blocks.try_recv() {
            Ok(block) => {
                self.block = block;
                self.next = 0;
                AtHand::NewBlock
            }
            Err(TryRecvError::Empty) => AtHand::Nothing,
            Err(TryRecvError::Disconnected) => {
                self.ended = true;
                AtHand::Nothing
            }
        }
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

    /// All queries of the block.
    pub(crate) fn items(&self) -> &[Item] {
        &self.block.items
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.next >= self.block.items.len()
    }

    /// How long to sleep, in nanoseconds, until shortly before the next query is due or `other`
    /// comes; `None` where there is only time to look at the clock.
    pub(crate) fn pause(&self, now: u64, other: Option<u64>) -> Option<u64> {
        let next = match self.block.items.get(self.next) {
            // Due, and not sent: it waits for answers.
            Some(item) if item.due <= now => now + MAX_WAIT,
            Some(item) => item.due,
            None if self.ended => now + MAX_WAIT,
            None => now + STARVING + SPIN,
        };
        let next = other.map_or(next, |at| next.min(at.saturating_add(SPIN)));
        let gap = next.saturating_sub(now).min(MAX_WAIT);
        (gap > SPIN).then(|| gap - SPIN)
    }
}

/// As the clock of a run counts; the longest there is for longer times.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
