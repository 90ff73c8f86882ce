//! Eviction: which state is dropped at the limits.
//!
//! An [`Evictor`] ranks live connections by the information lost with them: half-open ones, with
//! traffic from one side only, before established ones; idle ones before busy ones. Without limits
//! it costs nothing; otherwise each connection has one entry. Activity does not move the entry; an
//! entry that comes up although its connection was active is put back. An evicted connection gets
//! its rows as if the capture had ended there.
//!
//! Every connection begins half-open. So that new connections can become established while the
//! table is full of established ones, the newest half-open ones, a [sixteenth](ROOM) of all, are
//! evicted last.
//!
//! Memory usage is that of the allocator, minus free slots of the table, so it includes all state.

mod relieve;
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

/// One in this many live connections may be half-open and is not evicted before established ones.
const ROOM: usize = 16;

/// A host pair in order, and whether the global shard owns its connection. One shard sees all of a
/// pair, so limits for pairs do not depend on the number of threads.
pub(crate) type Pair = (Addr, Addr, bool);

/// The host pair of a connection.
pub(crate) fn pair(conn: &Conn) -> Pair {
    let (a, b) = (conn.id.orig_h, conn.id.resp_h);
    (a.min(b), a.max(b), conn.is_global())
}

/// Data above holes of one host pair.
#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// Connections with holes, in the order of the first one.
    holes: VecDeque<(u64, u32)>,
}

fn is_excess(half_open: usize, live: usize) -> bool {
    half_open > (live / ROOM).max(1)
}

/// Ranks connections for eviction.
#[derive(Debug, Default)]
pub(crate) struct Evictor {
    /// Whether the number of connections or the memory is limited.
    is_on: bool,
    /// Whether there may be something to evict after a packet; usually not.
    is_due: bool,
    most: usize,
    bytes: u64,
    memory: Option<Memory>,
    /// By rank, in order of last use.
    ranks: [Timers; RANKS],
    /// Bytes of data above holes.
    held: usize,
    /// Limits of these bytes in total, and for one host pair.
    held_most: usize,
    pair_most: usize,
    /// By host pair, from the first time that the total exceeds the limit of one pair.
    pairs: Option<BTreeMap<Pair, Held>>,
    /// A pair above its limit.
    full: Option<Pair>,
    /// Number of checks.
    looks: u64,
    /// Connections with holes, in the order of the first one.
    holes: VecDeque<(u64, u32)>,
    /// Scan the holes for stale entries at this number.
    holes_most: usize,
    pub(crate) report: State,
}

/// The most connections that are evicted between two packets: their rows in the merge and their
/// slots in shared chunks are freed a little later.
const ENDED_AT_ONCE: usize = 8;

/// Checks between two samples of the maximum, which is updated when exceeded by one in this many.
const LOOKS: u64 = 64;

/// Free slots may take one in this many of all bytes: they come and go by the chunk.
const FREE: u64 = 16;

/// Stale entries that are tolerated.
const STALE: usize = 4_096;

impl Evictor {
    pub(crate) fn new(limits: &Limits, memory: Option<Memory>) -> Self {
        let most = usize::try_from(limits.connections).unwrap_or(usize::MAX).max(1);
        let counts = memory.is_some() && limits.state != u64::MAX;
        let is_on = counts || most != usize::MAX;
        Self {
            is_on,
            is_due: is_on || memory.is_some(),
            holes_most: STALE,
            most,
            bytes: if counts { limits.state } else { u64::MAX },
            memory,
            held_most: limits.reassembly_of_all(),
            pair_most: limits.reassembly(),
            ..Self::default()
        }
    }

    /// A connection began; there are `live` connections now.
    #[inline]
    pub(crate) fn began(&mut self, live: usize, time: Time, number: u64, index: u32) {
        self.report.connections = self.report.connections.max(live as u64);
        if self.is_on {
            self.ranks[0].add(time, number, index);
        }
    }

    /// Changes the number of bytes that a connection stores above holes.
    #[inline]
    pub(crate) fn hold(
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
            self.hold_of_pair(before, after, (number, index), pair());
        } else if self.held + after > self.pair_most + before {
            // The pair, or all pairs together, may be above the limit.
            self.full = Some(pair());
        }
        self.held = (self.held + after).saturating_sub(before);
        if self.memory.is_none() {
            self.report.reassembly = self.report.reassembly.max(self.held as u64);
        }
        if before == 0 {
            self.holes.push_back((number, index));
        }
        self.is_due |= self.holds_too_much();
    }

    #[cold]
    fn hold_of_pair(&mut self, before: usize, after: usize, conn: (u64, u32), pair: Pair) {
        let Some(pairs) = &mut self.pairs else { return };
        let held = pairs.entry(pair).or_default();
        held.bytes = (held.bytes + after).saturating_sub(before);
        if before == 0 {
            held.holes.push_back(conn);
        }
        if held.bytes > self.pair_most {
            self.full = Some(pair);
        } else if held.bytes == 0 {
            pairs.remove(&pair);
        }
    }

    fn holds_too_much(&self) -> bool {
        self.held > self.held_most || self.holes.len() > self.holes_most
    }

    /// Bytes in use, without a small number of free slots.
    fn in_use(&self, table: &Table<Ext>) -> u64 {
        let memory = self.memory.map_or(0, |memory| memory());
        let free = (table.free_slots() * Table::<Ext>::SLOT_BYTES) as u64;
        memory.saturating_sub(free.min(self.bytes / FREE))
    }

    fn excess(&self, table: &Table<Ext>) -> Option<&'static str> {
        if table.len() > self.most {
            return Some("connections_limit_reached");
        }
        let most = self.bytes - self.bytes / FREE;
        let much = self.bytes != u64::MAX && self.in_use(table) > most;
        much.then_some("state_limit_reached")
    }

    /// The least valuable connection, if this shard should evict one.
    fn least(&mut self, table: &Table<Ext>) -> Option<(usize, u32)> {
        if let Some((stamp, number, index)) = self.idlest(0, table) {
            if is_excess(self.ranks[0].len() + 1, table.len()) {
                return Some((0, index));
            }
            self.ranks[0].add(stamp, number, index);
        }
        let rank = if self.ranks[1].is_empty() { 0 } else { 1 };
        self.idlest(rank, table).map(|(_, _, index)| (rank, index))
    }

    /// Removes the entry of the least recently used connection of a rank.
    fn idlest(&mut self, rank: usize, table: &Table<Ext>) -> Option<(Time, u64, u32)> {
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

    /// Bytes of streams that wait above holes.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Stops evicting until the next check.
    pub(crate) fn rest(&mut self) {
        self.ranks = Default::default();
        self.is_on = false;
    }

    /// Drops stale entries, once they are the majority.
    fn tidy(&mut self, table: &Table<Ext>, timers: &mut Timers) {
        let live =
            |number: u32, index: u32| table.get(index).is_some_and(|s| s.number as u32 == number);
        let most = table.len() + table.len() / 2 + STALE;
        if timers.len() > most {
            timers.retain(live);
        }
        if self.ranks.iter().map(Timers::len).sum::<usize>() > most {
            self.ranks.iter_mut().for_each(|rank| rank.retain(live));
        }
    }
}

/// The rank of a connection: 0 if it is half-open or over, 1 if it is established.
fn rank_of(slot: &Slot<Ext>) -> usize {
    let both = |heard: &dyn Fn(Dir) -> bool| heard(Dir::Orig) && heard(Dir::Resp);
    let established = match slot.conn.proto {
        Proto::Tcp => slot.tcp.as_deref().is_some_and(Tcp::is_established),
        Proto::Udp => both(&|side| slot.conn.is_active(side)),
        _ => both(&|side| slot.conn.sent(side).packets > 0),
    };
    usize::from(established)
}

#[cfg(test)]
mod tests;
