//! What to give up when there is too much.
//!
//! A [`Keeper`] ranks live connections by what is lost with them: half-open ones, of which one side
//! was never heard, before established ones; idle ones before busy ones. It costs nothing where
//! nothing is limited, and an entry a connection otherwise: being used does not move it, and one that
//! comes up although it was used is put back. What goes gets its rows as if the capture had ended
//! there.
//!
//! Memory is what the allocator says is in use, less slots of the table that wait to be used again:
//! nothing that anybody keeps is forgotten in the sum.

mod report;

use std::collections::VecDeque;

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_flow::Slot;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Tcp;

pub use report::State;

use crate::Limits;
use crate::shard::Ext;
use crate::shard::Shard;

/// Tells how many bytes are in use; see [`crate::Options::memory`].
pub type Memory = fn() -> u64;

/// Ranks: half-open, established.
const RANKS: usize = 2;

/// Which connections go first.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Whether live connections are counted, or memory is.
    is_on: bool,
    most: usize,
    bytes: u64,
    memory: Option<Memory>,
    /// By rank, in order of last use.
    ranks: [Timers; RANKS],
    /// Data that waits above holes.
    held: usize,
    held_most: usize,
    /// Connections with holes, in the order of the first one.
    holes: VecDeque<(u64, u32)>,
    pub(crate) report: State,
}

/// Entries that may be out of date before it matters.
const STALE: usize = 4_096;

impl Keeper {
    pub(crate) fn new(limits: &Limits, memory: Option<Memory>) -> Self {
        let most = usize::try_from(limits.connections).unwrap_or(usize::MAX).max(1);
        let counts = memory.is_some() && limits.state != u64::MAX;
        Self {
            is_on: counts || most != usize::MAX,
            most,
            bytes: if counts { limits.state } else { u64::MAX },
            memory,
            held_most: limits.reassembly(),
            ..Self::default()
        }
    }

    /// Whether [`began`](Self::began) wants to be told.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A connection began.
    #[inline]
    pub(crate) fn began(&mut self, time: Time, number: u64, index: u32) {
        if self.is_on {
            self.ranks[0].add(time, number, index);
        }
    }

    /// A connection's data above holes takes so much more, or less.
    #[inline]
    pub(crate) fn hold(&mut self, before: usize, after: usize, number: u64, index: u32) {
        if before == after {
            return;
        }
        self.held = (self.held + after).saturating_sub(before);
        self.report.reassembly = self.report.reassembly.max(self.held as u64);
        if before == 0 {
            self.holes.push_back((number, index));
        }
    }

    /// Bytes in use, as far as they count.
    fn in_use(&self, table: &Table<Ext>) -> u64 {
        let memory = self.memory.map_or(0, |memory| memory());
        memory.saturating_sub((table.free_slots() * Table::<Ext>::SLOT_BYTES) as u64)
    }

    fn excess(&self, table: &Table<Ext>) -> Option<&'static str> {
        if table.len() > self.most {
            return Some("connections_limit_reached");
        }
        let much = self.bytes != u64::MAX && self.in_use(table) > self.bytes;
        much.then_some("state_limit_reached")
    }

    /// The least valuable connection.
    fn least(&mut self, table: &Table<Ext>) -> Option<(usize, u32)> {
        for rank in 0..RANKS {
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
                return Some((rank, index));
            }
        }
        None
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
        _ => both(&|side| slot.conn.sent[side.index()].packets > 0),
    };
    usize::from(established)
}

impl Shard {
    /// Looks at what is kept.
    #[cold]
    pub(crate) fn survey(&mut self) {
        let keeper = &mut self.keeper;
        let timers =
            self.timers.heap_bytes() + keeper.ranks.iter().map(Timers::heap_bytes).sum::<usize>();
        let slots = (self.table.len() + self.table.free_slots()) * Table::<Ext>::SLOT_BYTES;
        let all = keeper.memory.map_or(0, |memory| memory());
        let report = &mut keeper.report;
        let seen = [
            (&mut report.connections, self.table.len() as u64),
            (&mut report.slots, slots as u64),
            (&mut report.index, self.table.index_bytes() as u64),
            (&mut report.timers, timers as u64),
            (&mut report.fragments, self.fragments.bytes() as u64),
            (&mut report.files, self.env.files.len() as u64),
            (&mut report.all, all),
        ];
        for (most, now) in seen {
            *most = now.max(*most);
        }
        report.fragments_given_up = self.fragments.given_up();
        report.files_given_up = self.env.files.given_up();
    }

    /// Gives up what is too much. No connection is at hand when this is called.
    #[inline]
    pub(crate) fn relieve(&mut self) {
        let keeper = &self.keeper;
        if keeper.is_on && keeper.excess(&self.table).is_some() {
            self.end_least();
        }
        if self.keeper.held > self.keeper.held_most {
            self.skip_oldest_holes();
        }
        if self.keeper.holes.len() > 2 * self.table.len() + STALE {
            self.forget_filled_holes();
        }
    }

    #[cold]
    fn end_least(&mut self) {
        while let Some(limit) = self.keeper.excess(&self.table) {
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
            self.keeper.report.holes_given_up += 1;
            self.with_session(index, |conn, tcp, session| {
                if let Some(tcp) = tcp {
                    session.weird(conn, "reassembly_limit_reached", "", "TCP");
                    tcp.skip_holes(conn, session);
                }
            });
            let left = self.table.get(index).and_then(|s| s.tcp.as_deref()).map_or(0, Tcp::held);
            self.keeper.hold(held, left, number, index);
            self.settle(index);
        }
    }

    /// Drops entries of connections that wait for nothing any more, once they are the most.
    #[cold]
    fn forget_filled_holes(&mut self) {
        let table = &self.table;
        let mut seen = std::collections::HashSet::<u64, foldhash::fast::FixedState>::default();
        self.keeper.holes.retain(|(number, index)| {
            let slot = table.get(*index).filter(|s| s.number == *number);
            let waits = slot.and_then(|s| s.tcp.as_deref()).is_some_and(|tcp| tcp.held() > 0);
            waits && seen.insert(*number)
        });
    }
}

#[cfg(test)]
mod tests;
