//! The analysis of some pairs of hosts.

use std::ops::Range;

use gannet_capture::Batch;
use gannet_log::Key;

use crate::block::Block;
use crate::glance;
use crate::plan::Shared;
use crate::shard::Shard;
use crate::shard::clock::Closing;

/// Rows are reported when there are so many bytes of them, with what they cost beside …
const REPORT_BYTES: u64 = 256 << 10;
/// … or sooner, so that so many reports would fit into all memory there may be …
const REPORTS_OF_STATE: u64 = 128;
/// … or after so many blocks, so that those of other parts need not wait.
const REPORT_BLOCKS: u32 = 8;
/// Packets between two looks at how much there is.
const LOOK_EVERY: usize = 8;
/// What an item that is left to the merge costs, in bytes.
const DEFERRED_BYTES: usize = 256;

/// The front has read packets into the cache of its own core. So many of this part's packets ahead,
/// headers are fetched from there.
const FETCH_AHEAD: usize = 2 * glance::AHEAD;

/// What belongs to some pairs of hosts, or the hub once it has seen all packets.
pub(crate) struct Part {
    me: usize,
    shard: Shard,
    /// Blocks since it last reported.
    unreported: u32,
    /// Number of the last packet it knows of.
    last: u64,
    /// What is still to be closed, once there are no more packets.
    closing: Option<Closing>,
}

impl Part {
    /// The part number `me`.
    pub(crate) fn new(me: usize, shard: Shard) -> Self {
        Self { me, shard, unreported: 0, last: 0, closing: None }
    }

    pub(crate) fn me(&self) -> usize {
        self.me
    }

    pub(crate) fn shard(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Whether it has not reported all that it has made.
    pub(crate) fn is_unreported(&self) -> bool {
        self.unreported > 0
    }

    /// All of it is reported: the key that nothing to come is before.
    pub(crate) fn reported(&mut self) -> Key {
        self.unreported = 0;
        Key { packet: self.last + 1, ..Key::EARLIEST }
    }

    /// A block's packets that are its own, and the time of all others.
    pub(crate) fn take(&mut self, block: &Block, to: &Shared) {
        if let Some((number, time)) = block.pass() {
            self.shard.pass(number, time);
        } else {
            take(self.me, &mut self.shard, block, to);
        }
        self.last = block.last();
        self.unreported += 1;
        if self.unreported >= REPORT_BLOCKS {
            let until = self.reported();
            to.report(self.me, &mut self.shard, Some(until));
        }
    }

    /// There are no more packets: some of what is open is closed. Returns whether all is, and
    /// reported.
    pub(crate) fn close(&mut self, to: &Shared) -> bool {
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

/// The packets of a block that are of part `me`, and the time of all others.
// Apart from what goes on around it, so that all it needs for a packet stays in registers.
#[inline(never)]
fn take(me: usize, shard: &mut Shard, block: &Block, to: &Shared) {
    let batch = block.batch();
    let dealt = block.dealt(me);
    let mut handed = block.found.handed.iter().peekable();
    let mut done = 0;
    let (is_far, is_in_order) = (shard.is_table_far(), block.is_in_order());
    let much = much(shard);
    for (n, place) in dealt.iter().enumerate() {
        if let Some(next) = dealt.get(n + FETCH_AHEAD) {
            batch.expect_from_afar(next.at());
        }
        if is_far
            && let Some(next) = dealt.get(n + glance::AHEAD)
            && let Some(key) = batch.get(next.at()).as_ref().and_then(glance::key)
        {
            shard.expect_soon(&key);
        }
        let at = place.at();
        let Some(packet) = batch.get(at) else { break };
        // What others had before is no later than this packet, as a rule: then nothing is due with it,
        // either. Whether others had something nobody can foretell: that is asked last.
        if !(is_in_order && shard.is_idle_until(packet.time)) && done < at {
            pass((me, shard), block, &batch, done..at, to);
        }
        done = at + 1;
        if place.is_hubs() {
            shard.begin(packet.number, packet.time);
            shard.advance(packet.time);
            while let Some(next) = handed.next_if(|h| h.index as usize <= at) {
                if usize::from(next.part) == me {
                    shard.take_over(next, block.handed(next), &block.found.around(next));
                }
            }
            shard.rest();
        } else {
            shard.packet(&packet);
        }
        if n % LOOK_EVERY == 0 {
            report_if((me, shard), much, to);
        }
    }
    pass((me, shard), block, &batch, done..batch.len(), to);
}

/// Packets of others: one by one only if something is due.
#[inline]
fn pass(
    (me, shard): (usize, &mut Shard),
    block: &Block,
    batch: &Batch<'_>,
    places: Range<usize>,
    to: &Shared,
) {
    let Some(last) = places.end.checked_sub(1).filter(|_| !places.is_empty()) else { return };
    if block.is_nobodys(last) || !shard.pass_all(block.latest(batch, last)) {
        pass_each((me, shard), block, batch, places, to);
    }
}

/// The same, if it may be.
#[cold]
fn pass_each(
    (me, shard): (usize, &mut Shard),
    block: &Block,
    batch: &Batch<'_>,
    places: Range<usize>,
    to: &Shared,
) {
    let much = much(shard);
    for at in places.filter(|at| !block.is_nobodys(*at)) {
        let time = block.latest(batch, at);
        if !shard.pass_all(time) {
            shard.pass(block.first() + at as u64, time);
            report_if((me, shard), much, to);
        }
    }
}

/// So many bytes are reported in the middle of a block, too.
fn much(shard: &Shard) -> usize {
    REPORT_BYTES.min(shard.options.limits.state / REPORTS_OF_STATE) as usize
}

/// Reports what a part has made if it is so many bytes; whether it did.
#[inline]
fn report_if((me, shard): (usize, &mut Shard), much: usize, to: &Shared) -> bool {
    let made = shard.env.logs.held() + shard.env.deferred() * DEFERRED_BYTES;
    if made >= much {
        report((me, shard), to);
    }
    made >= much
}

/// Reports what there is.
#[cold]
fn report((me, shard): (usize, &mut Shard), to: &Shared) {
    let until = shard.env.logs.key();
    to.report(me, shard, until);
}
