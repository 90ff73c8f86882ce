//! A shard that drops state at its limits.

use std::collections::BTreeMap;

use gannet_dict::KeyedHash;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Tcp;

use super::ENDED_AT_ONCE;
use super::Held;
use super::LOOKS;
use super::Pair;
use super::RANKS;
use super::STALE;
use super::pair;
use crate::shard::Shard;
use crate::shard::ext::Ext;

impl Shard {
    /// Samples the usage, so that the maximum is reported.
    #[cold]
    pub(crate) fn sample_usage(&mut self) {
        let evictor = &mut self.evictor;
        let timers =
            self.timers.heap_bytes() + evictor.ranks.iter().map(Timers::heap_bytes).sum::<usize>();
        let slots = (self.table.len() + self.table.free_slots()) * Table::<Ext>::SLOT_BYTES;
        let report = &mut evictor.report;
        let all = evictor.memory.map_or(0, |memory| memory());
        let is_most = evictor.memory.is_some() && all >= report.all;
        let seen = [
            (&mut report.slots, slots),
            (&mut report.index, self.table.index_bytes()),
            (&mut report.timers, timers),
            (&mut report.reassembly, evictor.held),
            (&mut report.fragments, self.fragments.bytes()),
        ];
        for (most, now) in seen {
            if is_most || evictor.memory.is_none() {
                *most = if is_most { now as u64 } else { (now as u64).max(*most) };
            }
        }
        report.all = report.all.max(all);
        report.files = report.files.max(self.env.files.len() as u64);
        report.fragments_given_up = self.fragments.given_up();
        report.files_given_up = self.env.files.given_up();
    }

    /// Evicts state above the limits. Must not be called while a connection is borrowed.
    #[inline]
    pub(crate) fn evict(&mut self) {
        if self.evictor.is_due {
            self.relieve_now();
        }
    }

    #[cold]
    fn relieve_now(&mut self) {
        if self.evictor.memory.is_some() || self.evictor.is_on {
            self.look();
        }
        if self.evictor.held > self.evictor.held_most {
            self.skip_oldest_holes();
        }
        if self.evictor.holes.len() > self.evictor.holes_most {
            self.forget_filled_holes();
        }
        let evictor = &mut self.evictor;
        evictor.is_due = evictor.is_on || evictor.memory.is_some() || evictor.holds_too_much();
    }

    /// Checks the limits and updates the maximum.
    fn look(&mut self) {
        let evictor = &mut self.evictor;
        evictor.looks += 1;
        if evictor.looks.is_multiple_of(LOOKS)
            && evictor.memory.is_some_and(|m| m() > evictor.report.all + evictor.report.all / LOOKS)
        {
            self.sample_usage();
        }
        if self.evictor.is_on && self.evictor.excess(&self.table).is_some() {
            self.end_least();
        }
    }

    #[cold]
    fn end_least(&mut self) {
        for _ in 0..ENDED_AT_ONCE {
            let Some(limit) = self.evictor.excess(&self.table) else { break };
            let Some((rank, index)) = self.evictor.least(&self.table) else { break };
            if self.evictor.report.ended_early == [0; RANKS] {
                let env = &mut self.env;
                env.weirds.net(&mut env.logs, self.now, limit, "");
            }
            self.evictor.report.ended_early[rank] += 1;
            self.remove(index);
            self.evictor.tidy(&self.table, &mut self.timers);
        }
    }

    #[cold]
    fn skip_oldest_holes(&mut self) {
        while self.evictor.held > self.evictor.held_most
            && let Some((number, index)) = self.evictor.holes.pop_front()
        {
            let slot = self.table.get(index).filter(|s| s.number == number);
            let Some(held) = slot.and_then(|s| s.tcp.as_deref()).map(Tcp::held) else { continue };
            if held == 0 {
                continue;
            }
            self.skip_holes(number, index, held);
        }
    }

    /// Gives up the oldest holes of a host pair that has too much data above holes. This happens
    /// with the packet that brought the data: the time of the shard's next packet depends on other
    /// host pairs.
    #[inline]
    pub(crate) fn skip_holes_of_pairs(&mut self) {
        if self.evictor.full.is_some() {
            self.skip_holes_of_full_pair();
        }
    }

    #[cold]
    fn skip_holes_of_full_pair(&mut self) {
        let Some(pair) = self.evictor.full.take() else { return };
        if self.evictor.pairs.is_none() {
            self.count_pairs();
        }
        loop {
            let most = self.evictor.pair_most;
            let held = self.evictor.pairs.as_mut().and_then(|pairs| pairs.get_mut(&pair));
            let Some(held) = held.filter(|h| h.bytes > most) else { break };
            let Some((number, index)) = held.holes.pop_front() else { break };
            let slot = self.table.get(index).filter(|s| s.number == number);
            let held = slot.and_then(|s| s.tcp.as_deref()).map_or(0, Tcp::held);
            if held > 0 {
                self.skip_holes(number, index, held);
            }
        }
        self.evictor.full = None;
    }

    /// From now on data above holes is counted by host pair.
    fn count_pairs(&mut self) {
        let mut pairs: BTreeMap<Pair, Held> = BTreeMap::new();
        let mut seen = std::collections::HashSet::<u64, KeyedHash>::default();
        for (number, index) in &self.evictor.holes {
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
        self.evictor.pairs = Some(pairs);
    }

    /// Gives up the holes of a connection with `held` bytes above holes.
    fn skip_holes(&mut self, number: u64, index: u32, held: usize) {
        self.evictor.report.holes_given_up += 1;
        let limits = self.streams;
        self.with_session(index, |conn, tcp, session| {
            if let Some(tcp) = tcp {
                session.weird(conn, "reassembly_limit_reached", "", "TCP");
                tcp.skip_holes(conn, &limits, session);
            }
        });
        if let Some(slot) = self.table.get(index) {
            let left = slot.tcp.as_deref().map_or(0, Tcp::held);
            self.evictor.hold(held, left, number, index, || pair(&slot.conn));
        }
        self.settle(index);
    }

    /// Drops entries of connections without holes, once they are the majority.
    #[cold]
    fn forget_filled_holes(&mut self) {
        let table = &self.table;
        let mut seen = std::collections::HashSet::<u64, KeyedHash>::default();
        self.evictor.holes.retain(|(number, index)| {
            let slot = table.get(*index).filter(|s| s.number == *number);
            let waits = slot.and_then(|s| s.tcp.as_deref()).is_some_and(|tcp| tcp.held() > 0);
            waits && seen.insert(*number)
        });
        for held in self.evictor.pairs.iter_mut().flat_map(BTreeMap::values_mut) {
            held.holes.retain(|(number, _)| seen.remove(number));
        }
        self.evictor.holes_most = 2 * self.evictor.holes.len() + STALE;
    }
}
