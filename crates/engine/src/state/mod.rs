//! What to give up when there is too much.
//!
//! A [`Keeper`] ranks live connections by what is lost with them: half-open ones, of which one side
//! was never heard, before established ones; idle ones before busy ones. It costs nothing where
//! nothing is limited, and an entry a connection otherwise: being used does not move it, and one that
//! comes up although it was used is put back. What goes gets its rows as if the capture had ended
//! there.
//!
//! Every connection begins as a half-open one. So that new ones have the time to become more while a
//! table is full of established ones, the newest half-open ones, a [sixteenth](ROOM) of all, go last.
//!
//! Memory is what the allocator says is in use, less slots of the table that wait to be used again:
//! nothing that anybody keeps is forgotten in the sum.

mod report;

use std::collections::BTreeMap;
use std::collections::VecDeque;

use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_flow::Conn;
use gannet_flow::Slot;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Tcp;

pub use report::State;

use crate::Limits;
use crate::shard::Ext;
use crate::shard::Shard;

/// Says how many bytes are in use; see [`crate::Options::memory`].
pub type Memory = fn() -> u64;

/// Ranks: half-open, established.
const RANKS: usize = 2;

/// Of so many live connections, one may be half-open without going before established ones.
const ROOM: usize = 16;

/// Two hosts in order, and whether their connection is the hub's: what one part of an analysis sees as
/// a whole, so that limits for it do not depend on the number of threads.
pub(crate) type Pair = (Addr, Addr, bool);

/// The pair of a connection.
pub(crate) fn pair(conn: &Conn) -> Pair {
    let (a, b) = (conn.id.orig_h, conn.id.resp_h);
    (a.min(b), a.max(b), conn.is_hub())
}

/// Data above holes of one pair of hosts.
#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// Connections with holes, in the order of the first one.
    holes: VecDeque<(u64, u32)>,
}

fn is_excess(half_open: usize, live: usize) -> bool {
    half_open > (live / ROOM).max(1)
}

/// Which connections go first.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Whether live connections are counted, or memory is.
    is_on: bool,
    /// Whether there may be something to do after a packet: most have nothing that is asked for.
    is_due: bool,
    most: usize,
    bytes: u64,
    memory: Option<Memory>,
    /// By rank, in order of last use.
    ranks: [Timers; RANKS],
    /// Data that waits above holes.
    held: usize,
    /// How much may wait in all, and of one pair of hosts.
    held_most: usize,
    pair_most: usize,
    /// By pair of hosts, from when more waited than one pair may have.
    pairs: Option<BTreeMap<Pair, Held>>,
    /// A pair that has too much.
    full: Option<Pair>,
    /// Looks at whether there is too much.
    looks: u64,
    /// Connections with holes, in the order of the first one.
    holes: VecDeque<(u64, u32)>,
    /// So many of these are looked through.
    holes_most: usize,
    pub(crate) report: State,
}

/// Connections that are ended between two packets at the most: what they leave, rows to be merged and
/// slots of chunks that others share, goes away a little later.
const ENDED_AT_ONCE: usize = 8;

/// Every so many looks it is seen whether there is more than ever, by so small a part.
const LOOKS: u64 = 64;

/// So small a part of all memory is for free slots, which come and go by the chunk.
const FREE: u64 = 16;

/// Entries that may be out of date before it matters.
const STALE: usize = 4_096;

impl Keeper {
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

    /// A connection began, one of so many that are `live`.
    #[inline]
    pub(crate) fn began(&mut self, live: usize, time: Time, number: u64, index: u32) {
        self.report.connections = self.report.connections.max(live as u64);
        if self.is_on {
            self.ranks[0].add(time, number, index);
        }
    }

    /// A connection's data above holes takes so much more, or less.
    #[inline]
    pub(crate) fn hold(
        &mut self,
        before: usize,
        after: usize,
        number: u64,
        index: u32,
        pair: Pair,
    ) {
        if before == after {
            return;
        }
        if self.pairs.is_some() {
            self.hold_of_pair(before, after, (number, index), pair);
        } else if self.held + after > self.pair_most + before {
            // The pair may have too much, or all pairs together have.
            self.full = Some(pair);
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

    /// Bytes in use, as far as they count: not while slots wait to be used again, if they are few.
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

    /// The least valuable connection, if it is for this part to give one up.
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

    /// Takes out the entry of the connection of a rank that was used last the longest ago.
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

    /// No connection needs to be ended early any more.
    pub(crate) fn rest(&mut self) {
        self.ranks = Default::default();
        self.is_on = false;
    }

    /// Drops entries of connections that are gone, once they are the most.
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

/// What is lost with a connection: 0 if it is half-open or over, 1 if it is established.
fn rank_of(slot: &Slot<Ext>) -> usize {
    let both = |heard: &dyn Fn(Dir) -> bool| heard(Dir::Orig) && heard(Dir::Resp);
    let established = match slot.conn.proto {
        Proto::Tcp => slot.tcp.as_deref().is_some_and(Tcp::is_established),
        Proto::Udp => both(&|side| slot.conn.is_active(side)),
        _ => both(&|side| slot.conn.sent(side).packets > 0),
    };
    usize::from(established)
}

impl Shard {
    /// Looks at what is kept: it is told of the moment when there was most.
    #[cold]
    pub(crate) fn survey(&mut self) {
        let keeper = &mut self.keeper;
        let timers =
            self.timers.heap_bytes() + keeper.ranks.iter().map(Timers::heap_bytes).sum::<usize>();
        let slots = (self.table.len() + self.table.free_slots()) * Table::<Ext>::SLOT_BYTES;
        let report = &mut keeper.report;
        let all = keeper.memory.map_or(0, |memory| memory());
        let is_most = keeper.memory.is_some() && all >= report.all;
        let seen = [
            (&mut report.slots, slots),
            (&mut report.index, self.table.index_bytes()),
            (&mut report.timers, timers),
            (&mut report.reassembly, keeper.held),
            (&mut report.fragments, self.fragments.bytes()),
        ];
        for (most, now) in seen {
            if is_most || keeper.memory.is_none() {
                *most = if is_most { now as u64 } else { (now as u64).max(*most) };
            }
        }
        report.all = report.all.max(all);
        report.files = report.files.max(self.env.files.len() as u64);
        report.fragments_given_up = self.fragments.given_up();
        report.files_given_up = self.env.files.given_up();
    }

    /// Gives up what is too much. No connection is at hand when this is called.
    #[inline]
    pub(crate) fn relieve(&mut self) {
        if self.keeper.is_due {
            self.relieve_now();
        }
    }

    #[cold]
    fn relieve_now(&mut self) {
        if self.keeper.memory.is_some() || self.keeper.is_on {
            self.look();
        }
        if self.keeper.held > self.keeper.held_most {
            self.skip_oldest_holes();
        }
        if self.keeper.holes.len() > self.keeper.holes_most {
            self.forget_filled_holes();
        }
        let keeper = &mut self.keeper;
        keeper.is_due = keeper.is_on || keeper.memory.is_some() || keeper.holds_too_much();
    }

    /// Is there too much, or more than ever?
    fn look(&mut self) {
        let keeper = &mut self.keeper;
        keeper.looks += 1;
        if keeper.looks.is_multiple_of(LOOKS)
            && keeper.memory.is_some_and(|m| m() > keeper.report.all + keeper.report.all / LOOKS)
        {
            self.survey();
        }
        if self.keeper.is_on && self.keeper.excess(&self.table).is_some() {
            self.end_least();
        }
    }

    #[cold]
    fn end_least(&mut self) {
        for _ in 0..ENDED_AT_ONCE {
            let Some(limit) = self.keeper.excess(&self.table) else { break };
            let Some((rank, index)) = self.keeper.least(&self.table) else { break };
            if self.keeper.report.ended_early == [0; RANKS] {
                let env = &mut self.env;
                env.weirds.net(&mut env.logs, self.now, limit, "");
            }
            self.keeper.report.ended_early[rank] += 1;
            self.remove(index);
            self.keeper.tidy(&self.table, &mut self.timers);
        }
    }

    #[cold]
    fn skip_oldest_holes(&mut self) {
        while self.keeper.held > self.keeper.held_most
            && let Some((number, index)) = self.keeper.holes.pop_front()
        {
            let slot = self.table.get(index).filter(|s| s.number == number);
            let Some(held) = slot.and_then(|s| s.tcp.as_deref()).map(Tcp::held) else { continue };
            if held == 0 {
                continue;
            }
            self.skip_holes(number, index, held);
        }
    }

    /// Gives up the oldest holes of a pair of hosts that has too much data above holes. That is done
    /// with the packet that brings it: when the next one comes depends on what other packets the part
    /// has.
    #[inline]
    pub(crate) fn skip_holes_of_pairs(&mut self) {
        if self.keeper.full.is_some() {
            self.skip_holes_of_full_pair();
        }
    }

    #[cold]
    fn skip_holes_of_full_pair(&mut self) {
        let Some(pair) = self.keeper.full.take() else { return };
        if self.keeper.pairs.is_none() {
            self.count_pairs();
        }
        loop {
            let most = self.keeper.pair_most;
            let held = self.keeper.pairs.as_mut().and_then(|pairs| pairs.get_mut(&pair));
            let Some(held) = held.filter(|h| h.bytes > most) else { break };
            let Some((number, index)) = held.holes.pop_front() else { break };
            let slot = self.table.get(index).filter(|s| s.number == number);
            let held = slot.and_then(|s| s.tcp.as_deref()).map_or(0, Tcp::held);
            if held > 0 {
                self.skip_holes(number, index, held);
            }
        }
        self.keeper.full = None;
    }

    /// From now on what waits is counted by pair of hosts.
    fn count_pairs(&mut self) {
        let mut pairs: BTreeMap<Pair, Held> = BTreeMap::new();
        let mut seen = std::collections::HashSet::<u64, KeyedHash>::default();
        for (number, index) in &self.keeper.holes {
            let Some(slot) = self.table.get(*index).filter(|s| s.number == *number) else {
                continue;
            };
            let bytes = slot.tcp.as_deref().map_or(0, Tcp::held);
            if bytes > 0 && seen.insert(*number) {
                let held = pairs.entry(pair(&slot.conn)).or_default();
                held.bytes += bytes;
                held.holes.push_back((*number, *index));
            }
        }
        self.keeper.pairs = Some(pairs);
    }

    /// A connection of which so much is `held` goes on above its holes.
    fn skip_holes(&mut self, number: u64, index: u32, held: usize) {
        self.keeper.report.holes_given_up += 1;
        self.with_session(index, |conn, tcp, session| {
            if let Some(tcp) = tcp {
                session.weird(conn, "reassembly_limit_reached", "", "TCP");
                tcp.skip_holes(conn, session);
            }
        });
        if let Some(slot) = self.table.get(index) {
            let left = slot.tcp.as_deref().map_or(0, Tcp::held);
            self.keeper.hold(held, left, number, index, pair(&slot.conn));
        }
        self.settle(index);
    }

    /// Drops entries of connections that wait for nothing any more, once they are the most.
    #[cold]
    fn forget_filled_holes(&mut self) {
        let table = &self.table;
        let mut seen = std::collections::HashSet::<u64, KeyedHash>::default();
        self.keeper.holes.retain(|(number, index)| {
            let slot = table.get(*index).filter(|s| s.number == *number);
            let waits = slot.and_then(|s| s.tcp.as_deref()).is_some_and(|tcp| tcp.held() > 0);
            waits && seen.insert(*number)
        });
        for held in self.keeper.pairs.iter_mut().flat_map(BTreeMap::values_mut) {
            held.holes.retain(|(number, _)| seen.remove(number));
        }
        self.keeper.holes_most = 2 * self.keeper.holes.len() + STALE;
    }
}

#[cfg(test)]
mod tests;
