//! The analysis of some pairs of hosts.

use std::ops::Range;

use gannet_base::prefetch;
use gannet_log::Key;

use crate::block::Block;
use crate::block::HUB;
use crate::glance;
use crate::plan::Shared;
use crate::shard::Shard;
use crate::shard::clock::Closing;
use crate::steer::Datagram;

/// Rows are reported when there are so many bytes of them, with what they cost beside …
const REPORT_BYTES: u64 = 256 << 10;
/// … or sooner, so that so many reports would fit into all memory there may be …
const REPORTS_OF_STATE: u64 = 128;
/// … or after so many blocks, so that those of other parts need not wait.
const REPORT_BLOCKS: u32 = 8;
/// What an item that is left to the merge costs, in bytes.
const DEFERRED_BYTES: usize = 256;

/// The front has read packets into the cache of its own core. So many of this part's packets ahead …
const FETCH_AHEAD: usize = 2 * glance::AHEAD;
/// … so many bytes are fetched from there: headers, and most of a small packet.
const FETCH: usize = 192;

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
        take(self.me, &mut self.shard, block, to);
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
        while shard.close_next(closing) {
            if is_much(shard) {
                let until = shard.env.logs.key();
                to.report(self.me, shard, until);
                return false;
            }
        }
        shard.end_close();
        to.report(self.me, shard, None);
        true
    }
}

/// The packets of a block that are of part `me`, and the time of all others.
fn take(me: usize, shard: &mut Shard, block: &Block, to: &Shared) {
    let mut handed = block.handed.iter().peekable();
    let dealt = block.dealt.get(me).map_or(&[][..], Vec::as_slice);
    let mut done = 0;
    let is_far = shard.is_table_far();
    for (i, entry) in dealt.iter().enumerate() {
        if let Some(next) = dealt.get(i + FETCH_AHEAD) {
            prefetch(block.packet(next).as_ptr().cast::<[u8; FETCH]>());
        }
        if is_far
            && let Some(next) = dealt.get(i + glance::AHEAD)
            && let Some(key) = glance::ip_key(block.packet(next))
        {
            shard.expect_soon(&key);
        }
        let at = entry.at as usize;
        pass((me, shard), block, done..at, to);
        done = at + 1;
        let number = block.number(entry);
        if entry.layers == HUB {
            shard.begin(number, entry.time);
            shard.advance(entry.time);
            while let Some(next) = handed.next_if(|h| h.index <= entry.index) {
                if usize::from(next.part) == me {
                    shard.take_over(next, block.handed(next));
                }
            }
            shard.rest();
        } else {
            let ip = Datagram { bytes: block.packet(entry), wire_len: entry.wire_len };
            shard.given(number, entry.time, entry.layers, ip);
        }
        report_much(me, shard, to);
    }
    pass((me, shard), block, done..block.latest.len(), to);
    shard.relieve_after(block.first);
}

/// Packets of others: one by one only if something is due.
#[inline]
fn pass((me, shard): (usize, &mut Shard), block: &Block, places: Range<usize>, to: &Shared) {
    if places.is_empty() || block.latest.get(places.end - 1).is_none_or(|t| shard.pass_all(*t)) {
        return;
    }
    for (number, time) in block.times(places) {
        if !shard.pass_all(time) {
            shard.pass(number, time);
            report_much(me, shard, to);
        }
    }
}

fn is_much(shard: &mut Shard) -> bool {
    let most = REPORT_BYTES.min(shard.options.limits.state / REPORTS_OF_STATE);
    (shard.env.logs.held() + shard.env.deferred() * DEFERRED_BYTES) as u64 >= most
}

/// Reports in the middle of a block if there is much.
#[inline]
fn report_much(me: usize, shard: &mut Shard, to: &Shared) {
    if is_much(shard) {
        let until = shard.env.logs.key();
        to.report(me, shard, until);
    }
}
