//! A thread that analyses some pairs of hosts.

use std::sync::Arc;

use crate::block::Block;
use crate::block::HUB;
use crate::block::Report;
use crate::glance;
use crate::queue::Closing;
use crate::queue::Queue;
use crate::shard::Shard;
use crate::state::State;
use crate::steer::Datagram;
use gannet_log::Key;

/// Rows go to the merge when there are so many bytes of them, with what they cost beside …
const REPORT_BYTES: usize = 512 << 10;
/// … or after so many blocks, so that those of other parts need not wait.
const REPORT_BLOCKS: u32 = 16;
/// What an item that is left to the merge costs, in bytes.
const DEFERRED_BYTES: usize = 256;

/// Analyses what blocks bring for part `me`; returns how many connections there were, and what was
/// kept of them.
pub(crate) fn run(
    me: u8,
    mut shard: Shard,
    blocks: &Queue<Arc<Block>>,
    reports: &Queue<Report>,
) -> (u64, State) {
    let _no_more_blocks = Closing(blocks);
    let _no_more_reports = Closing(reports);
    let (mut unreported, mut done) = (0, 0);
    loop {
        let next = blocks.try_pop().or_else(|| {
            // Nobody may wait for this part while it waits itself.
            if unreported > 0 {
                unreported = 0;
                reports.push(report(&mut shard, Some(after(done))));
            }
            blocks.pop()
        });
        let Some(block) = next else { break };
        take(me, &mut shard, &block, reports);
        done = block.last();
        unreported += 1;
        if unreported >= REPORT_BLOCKS {
            unreported = 0;
            reports.push(report(&mut shard, Some(after(done))));
        }
    }
    shard.close(|shard| report_much(shard, reports));
    reports.push(report(&mut shard, None));
    (shard.connections(), shard.keeper.report)
}

fn take(me: u8, shard: &mut Shard, block: &Block, reports: &Queue<Report>) {
    let mut handed = block.handed.iter().peekable();
    let mut coming = block.entries.iter().filter(|e| e.part == me).skip(glance::AHEAD);
    for entry in &block.entries {
        let number = block.first + u64::from(entry.index);
        if entry.part == me {
            if let Some(next) = coming.next()
                && let Some(key) = glance::ip_key(block.packet(next))
            {
                shard.expect_soon(&key);
            }
            let ip = Datagram { bytes: block.packet(entry), wire_len: entry.wire_len };
            shard.given(number, entry.time, entry.layers, ip);
        } else if entry.part == HUB {
            let mut mine = false;
            while let Some(next) = handed.next_if(|h| h.index <= entry.index) {
                if next.part == me {
                    if !std::mem::replace(&mut mine, true) {
                        shard.begin(number, entry.time);
                        shard.advance(entry.time);
                    }
                    shard.take_over(next, block.handed(next));
                }
            }
            if mine { shard.rest() } else { shard.pass(number, entry.time) }
        } else {
            shard.pass(number, entry.time);
        }
        report_much(shard, reports);
    }
    shard.relieve_after(block.first);
}

/// The key that nothing after packet number `last` comes before.
pub(crate) fn after(last: u64) -> Key {
    Key { packet: last + 1, ..Key::EARLIEST }
}

/// What the shard has made so far, of which everything to come is `until` or later.
pub(crate) fn report(shard: &mut Shard, until: Option<Key>) -> Report {
    Report { until, rows: shard.env.logs.take(), deferred: shard.env.take_deferred() }
}

fn is_much(shard: &mut Shard) -> bool {
    shard.env.logs.held() + shard.env.deferred() * DEFERRED_BYTES >= REPORT_BYTES
}

/// Reports in the middle of a block if there is much.
#[inline]
pub(crate) fn report_much(shard: &mut Shard, reports: &Queue<Report>) {
    if is_much(shard) {
        let until = shard.env.logs.key();
        reports.push(report(shard, until));
    }
}
