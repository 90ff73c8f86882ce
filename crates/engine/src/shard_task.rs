//! The work of one shard on the blocks of the dispatcher.

use std::ops::Range;

use gannet_capture::Batch;
use gannet_log::Key;

use crate::block::Block;
use crate::lookahead;
use crate::shard::Shard;
use crate::shard::clock::Closing;

/// A shard reports if its rows exceed this many bytes, including overhead …
const REPORT_BYTES: u64 = 256 << 10;
/// … or earlier, so that this many reports fit into the limit of the state …
const REPORTS_PER_STATE: u64 = 128;
/// … or after this many blocks, so that rows of other shards are not delayed.
const REPORT_BLOCKS: u32 = 8;
/// Number of packets between two checks of the size.
const CHECK_EVERY: usize = 8;
/// Estimated size in bytes of a decision that is deferred to the merge.
const DEFERRED_BYTES: usize = 256;

/// Distance, in packets of the shard, of the prefetch of packet headers. The dispatcher read them
/// into the cache of its own core.
const PREFETCH_AHEAD: usize = 2 * lookahead::AHEAD;

/// Receives the results of shards.
pub(crate) trait Results {
    /// Adds the results of a shard whose future rows have the key `until` or a later one.
    fn report(&self, index: usize, shard: &mut Shard, until: Option<Key>);
}

/// A shard that owns host pairs, or the global shard after the last packet.
pub(crate) struct ShardTask {
    index: usize,
    shard: Shard,
    /// Number of blocks since the last report.
    unreported: u32,
    /// Number of the last packet in the blocks processed so far.
    last: u64,
    /// The connections to close, after the end of input.
    closing: Option<Closing>,
}

impl ShardTask {
    /// Creates the task of the shard with index `me`.
    pub(crate) fn new(index: usize, shard: Shard) -> Self {
        Self { index, shard, unreported: 0, last: 0, closing: None }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn shard(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Whether the shard has unreported results.
    pub(crate) fn is_unreported(&self) -> bool {
        self.unreported > 0
    }

    /// Marks all results as reported: returns the minimum key of future rows.
    pub(crate) fn reported(&mut self) -> Key {
        self.unreported = 0;
        Key { packet: self.last + 1, ..Key::EARLIEST }
    }

    /// Analyzes the shard's own packets of a block, and advances time by the others.
    pub(crate) fn process(&mut self, block: &Block, results: &impl Results) {
        if let Some((number, time)) = block.time_advance() {
            self.shard.pass(number, time);
        } else {
            // The shard stays unobserved for the whole block.
            match self.shard.is_unobserved() {
                true => process::<false>(self.index, &mut self.shard, block, results),
                false => process::<true>(self.index, &mut self.shard, block, results),
            }
        }
        self.last = block.last();
        self.unreported += 1;
        if self.unreported >= REPORT_BLOCKS {
            let until = self.reported();
            results.report(self.index, &mut self.shard, Some(until));
        }
    }

    /// Closes some of the connections that are open after the last packet. Returns whether all are
    /// closed and reported.
    pub(crate) fn close(&mut self, results: &impl Results) -> bool {
        let shard = &mut self.shard;
        let closing = self.closing.get_or_insert_with(|| shard.begin_close());
        let min_report = min_report(shard);
        while shard.close_next(closing) {
            if report_if((self.index, shard), min_report, results) {
                return false;
            }
        }
        shard.end_close();
        results.report(self.index, shard, None);
        true
    }
}

/// Analyzes the packets of a block that belong to shard `me`, and advances time by the others.
/// `EVENTS`: an event may have a listener.
// A separate function, so that the compiler keeps all variables of the loop in registers.
#[inline(never)]
fn process<const EVENTS: bool>(
    index: usize,
    shard: &mut Shard,
    block: &Block,
    results: &impl Results,
) {
    let batch = block.batch();
    let assigned = block.assigned(index);
    let mut extracted = block.extracted.packets.iter().enumerate().peekable();
    let mut done = 0;
    let (is_far, is_in_order) = (shard.is_table_far(), block.is_in_order());
    let min_report = min_report(shard);
    for (n, position) in assigned.iter().enumerate() {
        if let Some(next) = assigned.get(n + PREFETCH_AHEAD) {
            batch.prefetch_remote(next.at());
        }
        if is_far
            && let Some(next) = assigned.get(n + lookahead::AHEAD)
            && let Some(key) = batch.get(next.at()).as_ref().and_then(lookahead::key)
        {
            shard.prefetch(&key);
        }
        let at = position.at();
        let Some(packet) = batch.get(at) else { break };
        // The packets of other shards in between are usually not later than this packet, so no
        // timer is due for them either. Whether such packets exist is hard to predict for the
        // branch predictor, so this test comes last.
        if !(is_in_order && shard.is_idle_until(packet.time)) && done < at {
            pass((index, shard), block, &batch, done..at, results);
        }
        done = at + 1;
        if position.is_global() {
            shard.begin(packet.number, packet.time);
            shard.advance(packet.time);
            while let Some((nth, next)) = extracted.next_if(|(_, h)| h.index as usize <= at) {
                if usize::from(next.shard) == index {
                    let (bytes, context) =
                        (block.extracted_bytes(next), block.extracted.event_contexts.get(nth));
                    shard.process_extracted(
                        next,
                        bytes,
                        &block.extracted.encapsulation(next),
                        context,
                    );
                }
            }
            shard.update_wake();
        } else {
            shard.packet::<EVENTS>(&packet);
        }
        if n % CHECK_EVERY == 0 {
            report_if((index, shard), min_report, results);
        }
    }
    pass((index, shard), block, &batch, done..batch.len(), results);
}

/// Advances time by packets of other shards; one by one only if a timer is due.
#[inline]
fn pass(
    (index, shard): (usize, &mut Shard),
    block: &Block,
    batch: &Batch<'_>,
    positions: Range<usize>,
    results: &impl Results,
) {
    let Some(last) = positions.end.checked_sub(1).filter(|_| !positions.is_empty()) else { return };
    if block.is_unowned(last) || !shard.pass_all(block.latest(batch, last)) {
        pass_each((index, shard), block, batch, positions, results);
    }
}

/// The slow path of [`pass`].
#[cold]
fn pass_each(
    (index, shard): (usize, &mut Shard),
    block: &Block,
    batch: &Batch<'_>,
    positions: Range<usize>,
    results: &impl Results,
) {
    let min_report = min_report(shard);
    for at in positions.filter(|at| !block.is_unowned(*at)) {
        let time = block.latest(batch, at);
        if !shard.pass_all(time) {
            shard.pass(block.first() + at as u64, time);
            report_if((index, shard), min_report, results);
        }
    }
}

/// The size of rows, in bytes, that is reported even in the middle of a block. If events are
/// recorded, their size counts as well: [`report`] adds it.
fn min_report(shard: &Shard) -> usize {
    if shard.env.logs.events.is_recording() {
        return 0;
    }
    min_report_with_events(shard)
}

fn min_report_with_events(shard: &Shard) -> usize {
    REPORT_BYTES.min(shard.options.limits.state / REPORTS_PER_STATE) as usize
}

/// Reports the results of a shard if they exceed `min_report` bytes; returns whether it reported.
#[inline]
fn report_if(
    (index, shard): (usize, &mut Shard),
    min_report: usize,
    results: &impl Results,
) -> bool {
    let size = shard.env.logs.collected_bytes() + shard.env.deferred() * DEFERRED_BYTES;
    size >= min_report && report((index, shard), size, results)
}

/// Reports all results, unless rows and events together are small.
#[cold]
fn report((index, shard): (usize, &mut Shard), size: usize, results: &impl Results) -> bool {
    let events = &shard.env.logs.events;
    let is_enough =
        !events.is_recording() || size + events.recorded() >= min_report_with_events(shard);
    if is_enough {
        let until = shard.env.logs.key();
        results.report(index, shard, until);
    }
    is_enough
}
