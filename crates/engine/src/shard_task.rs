//! A shard at work: the analysis of some host pairs.

use std::ops::Range;

use gannet_capture::Batch;
use gannet_log::Key;

use crate::block::Block;
use crate::lookahead;
use crate::shard::Shard;
use crate::shard::clock::Closing;

/// A shard reports when its rows exceed this many bytes, including overhead …
const REPORT_BYTES: u64 = 256 << 10;
/// … or sooner, so that this many reports fit into the limit of memory …
const REPORTS_OF_STATE: u64 = 128;
/// … or after this many blocks, so that rows of other shards need not wait.
const REPORT_BLOCKS: u32 = 8;
/// Packets between two checks of that amount.
const LOOK_EVERY: usize = 8;
/// Estimated bytes of an item that is deferred to the merge.
const DEFERRED_BYTES: usize = 256;

/// The dispatcher has read packets into the cache of its own core. Headers are prefetched this many
/// of the shard's packets ahead.
const FETCH_AHEAD: usize = 2 * lookahead::AHEAD;

/// What takes the results of shards.
pub(crate) trait Results {
    /// Adds the results of a shard, whose future rows have the key `until` or a later one.
    fn report(&self, part: usize, shard: &mut Shard, until: Option<Key>);
}

/// The shard of some host pairs, or the global shard once it has seen all packets.
pub(crate) struct ShardTask {
    me: usize,
    shard: Shard,
    /// Blocks since its last report.
    unreported: u32,
    /// Number of the last packet that it knows of.
    last: u64,
    /// The connections still to be closed, once the input has ended.
    closing: Option<Closing>,
}

impl ShardTask {
    /// The shard number `me`.
    pub(crate) fn new(me: usize, shard: Shard) -> Self {
        Self { me, shard, unreported: 0, last: 0, closing: None }
    }

    pub(crate) fn me(&self) -> usize {
        self.me
    }

    pub(crate) fn shard(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Whether it has unreported results.
    pub(crate) fn is_unreported(&self) -> bool {
        self.unreported > 0
    }

    /// Marks all as reported: returns the least key of future rows.
    pub(crate) fn reported(&mut self) -> Key {
        self.unreported = 0;
        Key { packet: self.last + 1, ..Key::EARLIEST }
    }

    /// Analyses its own packets of a block, and advances time by the others.
    pub(crate) fn take(&mut self, block: &Block, to: &impl Results) {
        if let Some((number, time)) = block.pass() {
            self.shard.pass(number, time);
        } else {
            // Nothing of that changes while no event has a listener.
            match self.shard.is_unobserved() {
                true => take::<false>(self.me, &mut self.shard, block, to),
                false => take::<true>(self.me, &mut self.shard, block, to),
            }
        }
        self.last = block.last();
        self.unreported += 1;
        if self.unreported >= REPORT_BLOCKS {
            let until = self.reported();
            to.report(self.me, &mut self.shard, Some(until));
        }
    }

    /// Closes some of the open connections after the last packet. Returns whether all are closed
    /// and reported.
    pub(crate) fn close(&mut self, to: &impl Results) -> bool {
        let shard = &mut self.shard;
        let closing = self.closing.get_or_insert_with(|| shard.begin_close());
        let much = much(shard);
        while shard.close_next(closing) {
            if report_if((self.me, shard), much, to) {
                return false;
            }
        }
        shard.end_close();
        to.report(self.me, shard, None);
        true
    }
}

/// Analyses the packets of a block that belong to shard `me`, and advances time by the others. `EVENTS`: an event may
/// have a listener.
// A separate function, so that its loop keeps everything in registers.
#[inline(never)]
fn take<const EVENTS: bool>(me: usize, shard: &mut Shard, block: &Block, to: &impl Results) {
    let batch = block.batch();
    let assigned = block.assigned(me);
    let mut handed = block.found.handed.iter().enumerate().peekable();
    let mut done = 0;
    let (is_far, is_in_order) = (shard.is_table_far(), block.is_in_order());
    let much = much(shard);
    for (n, place) in assigned.iter().enumerate() {
        if let Some(next) = assigned.get(n + FETCH_AHEAD) {
            batch.prefetch_remote(next.at());
        }
        if is_far
            && let Some(next) = assigned.get(n + lookahead::AHEAD)
            && let Some(key) = batch.get(next.at()).as_ref().and_then(lookahead::key)
        {
            shard.prefetch(&key);
        }
        let at = place.at();
        let Some(packet) = batch.get(at) else { break };
        // The other shards' packets in between are usually not later than this packet, and then no
        // timer is due for them either. Whether there were any is unpredictable, so it is tested
        // last.
        if !(is_in_order && shard.is_idle_until(packet.time)) && done < at {
            pass((me, shard), block, &batch, done..at, to);
        }
        done = at + 1;
        if place.is_global() {
            shard.begin(packet.number, packet.time);
            shard.advance(packet.time);
            while let Some((nth, next)) = handed.next_if(|(_, h)| h.index as usize <= at) {
                if usize::from(next.part) == me {
                    let (bytes, shown) = (block.handed(next), block.found.shown.get(nth));
                    shard.take_over(next, bytes, &block.found.encapsulation(next), shown);
                }
            }
            shard.rest();
        } else {
            shard.packet::<EVENTS>(&packet);
        }
        if n % LOOK_EVERY == 0 {
            report_if((me, shard), much, to);
        }
    }
    pass((me, shard), block, &batch, done..batch.len(), to);
}

/// Advances time by packets of other shards: one by one only if a timer is due.
#[inline]
fn pass(
    (me, shard): (usize, &mut Shard),
    block: &Block,
    batch: &Batch<'_>,
    places: Range<usize>,
    to: &impl Results,
) {
    let Some(last) = places.end.checked_sub(1).filter(|_| !places.is_empty()) else { return };
    if block.is_unowned(last) || !shard.pass_all(block.latest(batch, last)) {
        pass_each((me, shard), block, batch, places, to);
    }
}

/// The slow path.
#[cold]
fn pass_each(
    (me, shard): (usize, &mut Shard),
    block: &Block,
    batch: &Batch<'_>,
    places: Range<usize>,
    to: &impl Results,
) {
    let much = much(shard);
    for at in places.filter(|at| !block.is_unowned(*at)) {
        let time = block.latest(batch, at);
        if !shard.pass_all(time) {
            shard.pass(block.first() + at as u64, time);
            report_if((me, shard), much, to);
        }
    }
}

/// Bytes of rows that are reported even in the middle of a block. Where events are recorded, their bytes count as well:
/// [`report`] looks at these.
fn much(shard: &Shard) -> usize {
    if shard.env.logs.events.is_recording() {
        return 0;
    }
    most(shard)
}

fn most(shard: &Shard) -> usize {
    REPORT_BYTES.min(shard.options.limits.state / REPORTS_OF_STATE) as usize
}

/// Reports the results of a shard if they exceed `much` bytes; returns whether it did.
#[inline]
fn report_if((me, shard): (usize, &mut Shard), much: usize, to: &impl Results) -> bool {
    let made = shard.env.logs.collected_bytes() + shard.env.deferred() * DEFERRED_BYTES;
    made >= much && report((me, shard), made, to)
}

/// Reports all results, unless they are few together with the events.
#[cold]
fn report((me, shard): (usize, &mut Shard), made: usize, to: &impl Results) -> bool {
    let events = &shard.env.logs.events;
    let is_much = !events.is_recording() || made + events.recorded() >= most(shard);
    if is_much {
        let until = shard.env.logs.key();
        to.report(me, shard, until);
    }
    is_much
}
