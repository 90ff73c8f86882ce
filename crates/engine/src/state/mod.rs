//! Eviction: which state is discarded at the limits.
//!
//! An [`Evictor`] ranks live connections by the information lost with them: half-open ones, with
//! traffic from one side only, before established ones; idle ones before busy ones. Without limits
//! it does no work; otherwise each connection has one entry. Activity does not move the entry: an
//! entry that is next although its connection was active is put back. An evicted connection gets
//! its rows as if the capture had ended.
//!
//! Every connection begins half-open. So that new connections can become established while the
//! table is full of established ones, the newest half-open ones, a [sixteenth](HALF_OPEN_FRACTION) of all
//! connections, are evicted last.
//!
//! Memory usage is that of the allocator, minus free slots of the table, so it includes all state.

mod evict;
mod report;

use std::collections::BTreeMap;
use std::collections::VecDeque;

use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_flow::Conn;
use gannet_flow::Slot;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp::Tcp;

pub use report::State;

use crate::Limits;
use crate::shard::ext::Ext;

/// Returns the bytes in use; see [`crate::Options::memory`].
pub type Memory = fn() -> u64;

/// Ranks: half-open, established.
const RANKS: usize = 2;

/// One in this number of live connections may be half-open without being evicted before established
/// ones.
const HALF_OPEN_FRACTION: usize = 16;

/// An ordered host pair, and whether the global shard owns the connection. All connections of a
/// pair are in one shard, so limits for pairs do not depend on the number of threads.
pub(crate) type Pair = (Addr, Addr, bool);

/// The host pair of a connection.
pub(crate) fn pair(conn: &Conn) -> Pair {
    let (a, b) = (conn.id.orig_h, conn.id.resp_h);
    (a.min(b), a.max(b), conn.is_global())
}

/// Bytes buffered for reassembly by the connections of one host pair.
#[derive(Debug, Default)]
struct Buffered {
    bytes: usize,
    /// Connections with holes, in the order of their first hole.
    holes: VecDeque<(u64, u32)>,
}

fn is_excess(half_open: usize, live: usize) -> bool {
    half_open > (live / HALF_OPEN_FRACTION).max(1)
}

/// Ranks connections for eviction, and enforces the limits of state.
#[derive(Debug, Default)]
pub(crate) struct Evictor {
    /// Whether the number of connections or the memory is limited.
    is_on: bool,
    /// Whether state may exceed a limit after the current packet; usually false.
    is_due: bool,
    max_connections: usize,
    bytes: u64,
    memory: Option<Memory>,
    /// By rank, connections in the order of last use.
    ranks: [Timers; RANKS],
    /// Bytes buffered for reassembly above holes.
    buffered: usize,
    /// Limits of these bytes in total, and for one host pair.
    max_buffered: usize,
    max_buffered_of_pair: usize,
    /// By host pair; counted once the total exceeds the limit of one pair.
    pairs: Option<BTreeMap<Pair, Buffered>>,
    /// A host pair above its limit.
    full: Option<Pair>,
    /// Number of checks.
    checks: u64,
    /// Connections with holes, in the order of their first hole.
    holes: VecDeque<(u64, u32)>,
    /// Length of `holes` at which stale entries are removed.
    max_holes: usize,
    pub(crate) report: State,
}

/// Maximum number of connections that are evicted after one packet: memory of their rows in the
/// merge and of their slots in shared chunks is freed later.
const MAX_EVICTED_AT_ONCE: usize = 8;

/// Number of checks between two samples of the maximum, and the inverse of the relative increase
/// that updates it.
const CHECKS_PER_SAMPLE: u64 = 64;

/// Free slots up to this fraction (one in 16) of all bytes count as in use: slots are allocated in
/// chunks.
const FREE_FRACTION: u64 = 16;

/// Number of tolerated stale entries.
const MAX_STALE: usize = 4_096;

impl Evictor {
    pub(crate) fn new(limits: &Limits, memory: Option<Memory>) -> Self {
        let max_connections = usize::try_from(limits.connections).unwrap_or(usize::MAX).max(1);
        let counts = memory.is_some() && limits.state != u64::MAX;
        let is_on = counts || max_connections != usize::MAX;
        Self {
            is_on,
            is_due: is_on || memory.is_some(),
            max_holes: MAX_STALE,
            max_connections,
            bytes: if counts { limits.state } else { u64::MAX },
            memory,
            max_buffered: limits.reassembly_of_all(),
            max_buffered_of_pair: limits.reassembly(),
            ..Self::default()
        }
    }

    /// Adds a new connection; `live` is the number of connections including it.
    #[inline]
    pub(crate) fn began(&mut self, live: usize, time: Time, number: u64, index: u32) {
        self.report.connections = self.report.connections.max(live as u64);
        if self.is_on {
            self.ranks[0].add(time, number, index);
        }
    }

    /// Updates the number of bytes that a connection buffers above holes.
    #[inline]
    pub(crate) fn set_buffered(
        &mut self,
        before: usize,
        after: usize,
        number: u64,
        index: u32,
        pair: impl FnOnce() -> Pair,
    ) {
        if before == after {
            return;
        }
        if self.pairs.is_some() {
            self.set_buffered_of_pair(before, after, (number, index), pair());
        } else if self.buffered + after > self.max_buffered_of_pair + before {
            // The pair, or the total, may exceed the limit.
            self.full = Some(pair());
        }
        self.buffered = (self.buffered + after).saturating_sub(before);
        if self.memory.is_none() {
            self.report.reassembly = self.report.reassembly.max(self.buffered as u64);
        }
        if before == 0 {
            self.holes.push_back((number, index));
        }
        self.is_due |= self.exceeds_buffer_limits();
    }

    #[cold]
    fn set_buffered_of_pair(&mut self, before: usize, after: usize, conn: (u64, u32), pair: Pair) {
        let Some(pairs) = &mut self.pairs else { return };
        let buffered = pairs.entry(pair).or_default();
        buffered.bytes = (buffered.bytes + after).saturating_sub(before);
        if before == 0 {
            buffered.holes.push_back(conn);
        }
        if buffered.bytes > self.max_buffered_of_pair {
            self.full = Some(pair);
        } else if buffered.bytes == 0 {
            pairs.remove(&pair);
        }
    }

    fn exceeds_buffer_limits(&self) -> bool {
        self.buffered > self.max_buffered || self.holes.len() > self.max_holes
    }

    /// Bytes in use, without free slots beyond a tolerated number.
    fn in_use(&self, table: &Table<Ext>) -> u64 {
        let memory = self.memory.map_or(0, |memory| memory());
        let free = (table.free_slots() * Table::<Ext>::SLOT_BYTES) as u64;
        memory.saturating_sub(free.min(self.bytes / FREE_FRACTION))
    }

    fn excess(&self, table: &Table<Ext>) -> Option<&'static str> {
        if table.len() > self.max_connections {
            return Some("connections_limit_reached");
        }
        let max = self.bytes - self.bytes / FREE_FRACTION;
        let is_excess = self.bytes != u64::MAX && self.in_use(table) > max;
        is_excess.then_some("state_limit_reached")
    }

    /// The least valuable connection, if this shard must evict one.
    fn next_evicted(&mut self, table: &Table<Ext>) -> Option<(usize, u32)> {
        if let Some((stamp, number, index)) = self.pop_idlest(0, table) {
            if is_excess(self.ranks[0].len() + 1, table.len()) {
                return Some((0, index));
            }
            self.ranks[0].add(stamp, number, index);
        }
        let rank = if self.ranks[1].is_empty() { 0 } else { 1 };
        self.pop_idlest(rank, table).map(|(_, _, index)| (rank, index))
    }

    /// Removes and returns the entry of the least recently used connection of a rank.
    fn pop_idlest(&mut self, rank: usize, table: &Table<Ext>) -> Option<(Time, u64, u32)> {
        while let Some((stamp, number, index)) = self.ranks[rank].pop(Time::MAX) {
            if let Some(next) = self.ranks[rank].ahead(8) {
                table.prefetch_slot(next);
            }
            let slot = table.get(index).filter(|s| s.number as u32 == number);
            let Some(slot) = slot else { continue };
            let now = rank_of(slot);
            if now > rank || slot.conn.last > stamp {
                self.ranks[now].add(slot.conn.last, slot.number, index);
                continue;
            }
            return Some((stamp, slot.number, index));
        }
        None
    }

    /// Bytes buffered for reassembly above holes.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Stops eviction until the next check.
    pub(crate) fn stop(&mut self) {
        self.ranks = Default::default();
        self.is_on = false;
    }

    /// Removes stale entries if they are the majority.
    fn tidy(&mut self, table: &Table<Ext>, timers: &mut Timers) {
        let live =
            |number: u32, index: u32| table.get(index).is_some_and(|s| s.number as u32 == number);
        let max = table.len() + table.len() / 2 + MAX_STALE;
        if timers.len() > max {
            timers.retain(live);
        }
        if self.ranks.iter().map(Timers::len).sum::<usize>() > max {
            self.ranks.iter_mut().for_each(|rank| rank.retain(live));
        }
    }
}

/// The rank of a connection: 0 if it is half-open or closed, 1 if it is established.
fn rank_of(slot: &Slot<Ext>) -> usize {
    let both = |has_sent: &dyn Fn(Dir) -> bool| has_sent(Dir::Orig) && has_sent(Dir::Resp);
    let established = match slot.conn.proto {
        Proto::Tcp => slot.tcp.as_deref().is_some_and(Tcp::is_established),
        Proto::Udp => both(&|side| slot.conn.is_active(side)),
        _ => both(&|side| slot.conn.sent(side).packets > 0),
    };
    usize::from(established)
}

#[cfg(test)]
mod tests;
