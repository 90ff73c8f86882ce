//! A thread that analyses some pairs of hosts.

use std::ops::Range;
use std::sync::Arc;

use gannet_base::prefetch;
use gannet_log::Key;

use crate::block::Block;
use crate::block::HUB;
use crate::glance;
use crate::queue::Closing;
use crate::queue::Queue;
use crate::reports::CLOSING;
use crate::reports::Report;
use crate::reports::Reports;
use crate::shard::Shard;
use crate::state::State;
use crate::steer::Datagram;

/// Rows go to the merge when there are so many bytes of them, with what they cost beside …
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

/// Analyses what blocks bring for part `me`; returns how many connections there were, and what was
/// kept of them.
pub(crate) fn run(
    me: u8,
    mut shard: Shard,
    blocks: &Queue<Arc<Block>>,
    reports: &Reports,
) -> (u64, State) {
    let _no_more_blocks = Closing(blocks);
    let _no_more_reports = Closing(&reports.queue);
    let (mut unreported, mut done) = (0, 0);
    loop {
        let next = blocks.try_pop().or_else(|| {
            // Nobody may wait for this part while it waits itself.
            if unreported > 0 {
                unreported = 0;
                report(&mut shard, Some(after(done)), reports);
            }
            blocks.pop()
        });
        let Some(block) = next else { break };
        take(me, &mut shard, &block, reports);
        done = block.last();
        unreported += 1;
        if unreported >= REPORT_BLOCKS {
            unreported = 0;
            report(&mut shard, Some(after(done)), reports);
        }
    }
    shard.close(|shard| report_much(shard, reports));
    report(&mut shard, None, reports);
    (shard.connections(), shard.keeper.report)
}

/// The packets of a block that are of part `me`, and the time of all others.
fn take(me: u8, shard: &mut Shard, block: &Block, reports: &Reports) {
    let mut handed = block.handed.iter().peekable();
    let dealt = block.dealt.get(usize::from(me)).map_or(&[][..], Vec::as_slice);
    let mut done = 0;
    for (i, entry) in dealt.iter().enumerate() {
        if let Some(next) = dealt.get(i + FETCH_AHEAD) {
            prefetch(block.packet(next).as_ptr().cast::<[u8; FETCH]>());
        }
        if let Some(next) = dealt.get(i + glance::AHEAD)
            && let Some(key) = glance::ip_key(block.packet(next))
        {
            shard.expect_soon(&key);
        }
        let at = entry.at as usize;
        pass(shard, block, done..at, reports);
        done = at + 1;
        let number = block.number(entry);
        if entry.layers == HUB {
            shard.begin(number, entry.time);
            shard.advance(entry.time);
            while let Some(next) = handed.next_if(|h| h.index <= entry.index) {
                if next.part == me {
                    shard.take_over(next, block.handed(next));
                }
            }
            shard.rest();
        } else {
            let ip = Datagram { bytes: block.packet(entry), wire_len: entry.wire_len };
            shard.given(number, entry.time, entry.layers, ip);
        }
        report_much(shard, reports);
    }
    pass(shard, block, done..block.latest.len(), reports);
    shard.relieve_after(block.first);
}

/// Packets of others: one by one only if something is due.
#[inline]
fn pass(shard: &mut Shard, block: &Block, places: Range<usize>, reports: &Reports) {
    if places.is_empty() || block.latest.get(places.end - 1).is_none_or(|t| shard.pass_all(*t)) {
        return;
    }
    for (number, time) in block.times(places) {
        if !shard.pass_all(time) {
            shard.pass(number, time);
            report_much(shard, reports);
        }
    }
}

/// The key that nothing after packet number `last` comes before.
pub(crate) fn after(last: u64) -> Key {
    Key { packet: last + 1, ..Key::EARLIEST }
}

/// Reports what the shard has made so far, of which everything to come is `until` or later.
pub(crate) fn report(shard: &mut Shard, until: Option<Key>, reports: &Reports) {
    reports.queue.push(made(shard, until, reports));
}

/// Reports what the hub has made so far, if anything, without waiting.
pub(crate) fn report_any(hub: &mut Shard, reports: &Reports) {
    if hub.env.logs.held() + hub.env.deferred() > 0 {
        reports.queue.push_at_once(made(hub, Some(CLOSING), reports));
    }
}

fn made(shard: &mut Shard, until: Option<Key>, reports: &Reports) -> Report {
    let rows = shard.env.logs.take();
    shard.env.logs.reuse(reports.spare());
    Report { until, rows, deferred: shard.env.take_deferred() }
}

fn is_much(shard: &mut Shard) -> bool {
    let most = REPORT_BYTES.min(shard.options.limits.state / REPORTS_OF_STATE);
    (shard.env.logs.held() + shard.env.deferred() * DEFERRED_BYTES) as u64 >= most
}

/// Reports in the middle of a block if there is much.
#[inline]
pub(crate) fn report_much(shard: &mut Shard, reports: &Reports) {
    if is_much(shard) {
        let until = shard.env.logs.key();
        report(shard, until, reports);
    }
}
