//! Discards state of a shard that exceeds the limits.

use std::collections::BTreeMap;

use gannet_dict::KeyedHash;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Tcp;

use super::Buffered;
use super::CHECKS_PER_SAMPLE;
use super::MAX_EVICTED_AT_ONCE;
use super::MAX_STALE;
use super::Pair;
use super::RANKS;
use super::pair;
use crate::shard::Shard;
use crate::shard::ext::Ext;

impl Shard {
    /// Samples the memory usage, so that the maximum is reported.
    #[cold]
    pub(crate) fn sample_usage(&mut self) {
        let evictor = &mut self.evictor;
        let timers =
            self.timers.heap_bytes() + evictor.ranks.iter().map(Timers::heap_bytes).sum::<usize>();
        let slots = (self.table.len() + self.table.free_slots()) * Table::<Ext>::SLOT_BYTES;
        let report = &mut evictor.report;
        let all = evictor.memory.map_or(0, |memory| memory());
        let is_maximum = evictor.memory.is_some() && all >= report.all;
        let amounts = [
            (&mut report.slots, slots),
            (&mut report.index, self.table.index_bytes()),
            (&mut report.timers, timers),
            (&mut report.reassembly, evictor.buffered),
            (&mut report.fragments, self.fragments.bytes()),
        ];
        for (maximum, now) in amounts {
            if is_maximum || evictor.memory.is_none() {
                *maximum = if is_maximum { now as u64 } else { (now as u64).max(*maximum) };
            }
        }
        report.all = report.all.max(all);
        report.files = report.files.max(self.env.files.len() as u64);
        report.fragments_given_up = self.fragments.dropped();
        report.files_given_up = self.env.files.discarded();
    }

    /// Evicts state above the limits. Must not be called while a connection is borrowed.
    #[inline]
    pub(crate) fn evict(&mut self) {
        if self.evictor.is_due {
            self.evict_now();
        }
    }

    #[cold]
    fn evict_now(&mut self) {
        if self.evictor.memory.is_some() || self.evictor.is_on {
            self.check_limits();
        }
        if self.evictor.buffered > self.evictor.max_buffered {
            self.skip_oldest_holes();
        }
        if self.evictor.holes.len() > self.evictor.max_holes {
            self.remove_filled_holes();
        }
        let evictor = &mut self.evictor;
        evictor.is_due =
            evictor.is_on || evictor.memory.is_some() || evictor.exceeds_buffer_limits();
    }

    /// Checks the limits and updates the maxima.
    fn check_limits(&mut self) {
        let evictor = &mut self.evictor;
        evictor.checks += 1;
        if evictor.checks.is_multiple_of(CHECKS_PER_SAMPLE)
            && evictor
                .memory
                .is_some_and(|m| m() > evictor.report.all + evictor.report.all / CHECKS_PER_SAMPLE)
        {
            self.sample_usage();
        }
        if self.evictor.is_on && self.evictor.excess(&self.table).is_some() {
            self.evict_excess();
        }
    }

    #[cold]
    fn evict_excess(&mut self) {
        for _ in 0..MAX_EVICTED_AT_ONCE {
            let Some(limit) = self.evictor.excess(&self.table) else { break };
            let Some((rank, index)) = self.evictor.next_evicted(&self.table) else { break };
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
        while self.evictor.buffered > self.evictor.max_buffered
            && let Some((number, index)) = self.evictor.holes.pop_front()
        {
            let slot = self.table.get(index).filter(|s| s.number == number);
            let Some(buffered) = slot.and_then(|s| s.tcp.as_deref()).map(Tcp::buffered_bytes)
            else {
                continue;
            };
            if buffered == 0 {
                continue;
            }
            self.skip_holes(number, index, buffered);
        }
    }

    /// Skips the oldest holes of a host pair that exceeds its limit of data above holes. This
    /// happens at the packet that brought the data, because the time of the shard's next packet
    /// depends on other host pairs.
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
            let max = self.evictor.max_buffered_of_pair;
            let buffered = self.evictor.pairs.as_mut().and_then(|pairs| pairs.get_mut(&pair));
            let Some(buffered) = buffered.filter(|h| h.bytes > max) else { break };
            let Some((number, index)) = buffered.holes.pop_front() else { break };
            let slot = self.table.get(index).filter(|s| s.number == number);
            let buffered = slot.and_then(|s| s.tcp.as_deref()).map_or(0, Tcp::buffered_bytes);
            if buffered > 0 {
                self.skip_holes(number, index, buffered);
            }
        }
        self.evictor.full = None;
    }

    /// Starts to count data above holes by host pair.
    fn count_pairs(&mut self) {
        let mut pairs: BTreeMap<Pair, Buffered> = BTreeMap::new();
        let mut seen = std::collections::HashSet::<u64, KeyedHash>::default();
        for (number, index) in &self.evictor.holes {
            let Some(slot) = self.table.get(*index).filter(|s| s.number == *number) else {
                continue;
            };
            let bytes = slot.tcp.as_deref().map_or(0, Tcp::buffered_bytes);
            if bytes > 0 && seen.insert(*number) {
                let buffered = pairs.entry(pair(&slot.conn)).or_default();
                buffered.bytes += bytes;
                buffered.holes.push_back((*number, *index));
            }
        }
        self.evictor.pairs = Some(pairs);
    }

    /// Skips all holes of a connection that buffers `buffered` bytes above holes.
    fn skip_holes(&mut self, number: u64, index: u32, buffered: usize) {
        self.evictor.report.holes_given_up += 1;
        let limits = self.streams;
        self.with_session(index, |conn, tcp, session| {
            if let Some(tcp) = tcp {
                session.weird(conn, "reassembly_limit_reached", "", "TCP");
                tcp.skip_holes(conn, &limits, session);
            }
        });
        if let Some(slot) = self.table.get(index) {
            let left = slot.tcp.as_deref().map_or(0, Tcp::buffered_bytes);
            self.evictor.set_buffered(buffered, left, number, index, || pair(&slot.conn));
        }
        self.apply_requests(index);
    }

    /// Removes entries of connections without holes, if they are the majority.
    #[cold]
    fn remove_filled_holes(&mut self) {
        let table = &self.table;
        let mut seen = std::collections::HashSet::<u64, KeyedHash>::default();
        self.evictor.holes.retain(|(number, index)| {
            let slot = table.get(*index).filter(|s| s.number == *number);
            let waits =
                slot.and_then(|s| s.tcp.as_deref()).is_some_and(|tcp| tcp.buffered_bytes() > 0);
            waits && seen.insert(*number)
        });
        for buffered in self.evictor.pairs.iter_mut().flat_map(BTreeMap::values_mut) {
            buffered.holes.retain(|(number, _)| seen.remove(number));
        }
        self.evictor.max_holes = 2 * self.evictor.holes.len() + MAX_STALE;
    }
}
