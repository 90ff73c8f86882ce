//! Captures batches of packets on interfaces.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use gannet_base::Time;
use gannet_capture::Batch;
use gannet_capture::Gathered;
use gannet_capture::NEAR_PACKETS;
use gannet_capture::Record;
use gannet_filter::Insn;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

use crate::Error;
use crate::Interface;
use crate::Ledger;
use crate::LinkCounters;
use crate::Ring;
use crate::RingCounters;
use crate::RingOptions;
use crate::ledger::kernel_backlog_drops;
use crate::merge::PendingBlock;
use crate::merge::merge;
use crate::ring::is_interrupted;

/// Options of a [`Source`].
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Options of each ring.
    pub ring: RingOptions,
    /// Number of rings per interface, which share its packets by flow.
    pub sockets: u16,
    /// Maximum number of packets in a batch.
    pub batch_packets: usize,
    /// Whether rings are reopened on an interface that was created again. In a [`Sandbox`](crate::Sandbox) the attempt
    /// would kill the process.
    pub reopens: bool,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            ring: RingOptions::default(),
            sockets: 1,
            batch_packets: NEAR_PACKETS,
            reopens: true,
        }
    }
}

/// Captures on one or several interfaces.
#[derive(Debug)]
pub struct Source {
    rings: Vec<Ring>,
    pending: Vec<PendingBlock>,
    gathered: Gathered,
    /// Records of the merged batch.
    merged: Vec<Record>,
    /// Maximum number of packets in a batch.
    max_packets: usize,
    /// Number of the next packet.
    next: u64,
    options: SourceOptions,
    filters: BTreeMap<String, Vec<Insn>>,
    /// Counters of rings that were replaced because their interface was created again.
    replaced_rings: RingCounters,
    /// Interfaces that were created again and could not be reopened, with their indices and the errors.
    refused: BTreeMap<String, (u32, Error)>,
    /// Interfaces that were created again and reopened.
    reopened: Vec<String>,
    /// Counters of links and of the backlog at the start.
    initial_counters: (BTreeMap<String, LinkCounters>, u64),
    /// Whether the kernel rejected a filter.
    refused_filter: bool,
}

/// Result of [`Source::packets`].
#[derive(Debug)]
pub enum Next<'a> {
    /// A batch of packets.
    Packets(Batch<'a>),
    /// No packets are available.
    Idle,
}

/// Poll interval while an interface is down.
const DOWN_POLL: Duration = Duration::from_millis(100);
/// Poll interval while packets of several rings are pending to be merged.
const MERGE_POLL: Duration = Duration::from_millis(5);

impl Source {
    /// Opens rings on interfaces, and starts them when all are open. `filter` returns the program for an interface.
    ///
    /// # Errors
    /// If an interface does not exist, or the process may not capture on it.
    pub fn open(
        interfaces: &[Interface],
        options: SourceOptions,
        filter: impl Fn(&Interface) -> Option<Vec<Insn>>,
    ) -> Result<Self, Error> {
        let mut rings = Vec::new();
        let mut filters = BTreeMap::new();
        for (number, interface) in (0_u16..).zip(interfaces) {
            if let Some(insns) = filter(interface) {
                filters.insert(interface.name.clone(), insns);
            }
            rings.extend(rings_of(interface, number, &options)?);
        }
        let links =
            interfaces.iter().map(|i| (i.name.clone(), LinkCounters::of(&i.name))).collect();
        let initial_counters = (links, kernel_backlog_drops());
        let mut refused_filter = false;
        for ring in &rings {
            let filter = filters.get(&ring.interface().name).map(Vec::as_slice);
            refused_filter |= !ring.start(filter)?;
        }
        Ok(Self {
            pending: rings.iter().map(|_| PendingBlock::default()).collect(),
            rings,
            gathered: Gathered::default(),
            merged: Vec::new(),
            max_packets: options.batch_packets,
            next: 1,
            options,
            filters,
            replaced_rings: RingCounters::default(),
            refused: BTreeMap::new(),
            reopened: Vec::new(),
            initial_counters,
            refused_filter,
        })
    }

    /// Whether the kernel rejected a filter, so that only the analysis filters packets.
    pub fn refused_filter(&self) -> bool {
        self.refused_filter
    }

    /// The rings.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Consumes and returns the number of the next packet, for events that occur without packets.
    pub fn skip_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns packets that have arrived; does not wait.
    pub fn packets(&mut self) -> Next<'_> {
        // Release the block of the last batch, unless it is still used.
        self.gathered.clear();
        for (ring, pending_block) in self.rings.iter_mut().zip(&mut self.pending) {
            if pending_block.is_empty() {
                pending_block.at = 0;
                pending_block.block.bytes = gannet_capture::Bytes::default();
                ring.take(&mut pending_block.block);
            }
        }
        let first = self.next;
        if let [pending_block] = &mut self.pending[..] {
            let end = (pending_block.at + self.max_packets).min(pending_block.block.records.len());
            let records =
                pending_block.block.records.get(pending_block.at..end).unwrap_or_default();
            if records.is_empty() {
                return Next::Idle;
            }
            self.next += records.len() as u64;
            self.gathered.begin(pending_block.block.bytes.clone(), first);
            records.iter().for_each(|record| self.gathered.push(record));
            pending_block.at = end;
            if pending_block.is_empty() {
                pending_block.block.bytes = gannet_capture::Bytes::default();
            }
        } else {
            let bytes = merge(&mut self.pending, now(), self.max_packets, &mut self.merged);
            if self.merged.is_empty() {
                return Next::Idle;
            }
            self.next += self.merged.len() as u64;
            self.gathered.begin(bytes, first);
            self.merged.iter().for_each(|record| self.gathered.push(record));
        }
        Next::Packets(self.gathered.batch())
    }

    /// Waits for packets, at most for `max`. Reopens interfaces that were created again. Returns early if a signal
    /// arrives.
    ///
    /// # Errors
    /// If polling fails.
    pub fn wait(&mut self, max: Duration) -> io::Result<()> {
        let mut max = max;
        if self.pending.iter().any(|pending_block| !pending_block.is_empty()) {
            max = max.min(MERGE_POLL);
        }
        let mut downs = Vec::new();
        let mut fds = Vec::new();
        for (n, ring) in self.rings.iter_mut().enumerate() {
            if ring.is_down() {
                max = max.min(DOWN_POLL);
                downs.push(n);
            }
        }
        let mut ring_indices = Vec::new();
        for (n, ring) in self.rings.iter().enumerate() {
            // Do not poll rings with pending packets: their next block may be complete already.
            if !downs.contains(&n) && self.pending.get(n).is_some_and(PendingBlock::is_empty) {
                fds.push(PollFd::new(ring.socket().fd(), PollFlags::IN));
                ring_indices.push(n);
            }
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(max.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: max.subsec_nanos().into(),
        };
        let result = poll(&mut fds, Some(&timeout)).map_err(io::Error::from);
        let failed: Vec<usize> = fds
            .iter()
            .zip(&ring_indices)
            .filter(|(fd, _)| fd.revents().intersects(PollFlags::ERR | PollFlags::NVAL))
            .map(|(_, n)| *n)
            .collect();
        drop(fds);
        match result {
            Ok(_) => {}
            Err(error) if is_interrupted(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        for n in failed {
            if let Some(ring) = self.rings.get_mut(n) {
                ring.handle_error();
            }
        }
        for n in downs {
            self.reopen_if_new(n);
        }
        Ok(())
    }

    /// Reopens the rings of an interface if it was created again; `n` is the index of one of them.
    fn reopen_if_new(&mut self, n: usize) {
        let Some(ring) = self.rings.get(n) else { return };
        let (old_index, number) = (ring.interface().index, ring.number());
        let Ok(now) = Interface::named(&ring.interface().name) else { return };
        if now.index == old_index {
            return;
        }
        let filter = self.filters.get(&now.name).map(Vec::as_slice);
        let may_open = match self.options.reopens {
            true => Ok(()),
            false => Err(Error::NotPermitted(now.name.clone())),
        };
        let opened = may_open.and_then(|()| rings_of(&now, number, &self.options));
        let opened = opened.and_then(|rings| {
            rings.iter().try_for_each(|ring| ring.start(filter).map(|_| ()))?;
            Ok(rings)
        });
        match opened {
            Ok(rings) => {
                let old = self.rings.iter_mut().filter(|ring| ring.interface().index == old_index);
                for (ring, new) in old.zip(rings) {
                    self.replaced_rings.add(&ring.counters());
                    *ring = new;
                }
                self.refused.remove(&now.name);
                self.reopened.push(now.name);
            }
            Err(error) => {
                self.refused.insert(now.name, (now.index, error));
            }
        }
    }

    /// Takes the names of interfaces that were created again and reopened.
    pub fn take_reopened(&mut self) -> Vec<String> {
        std::mem::take(&mut self.reopened)
    }

    /// Interfaces that were created again and could not be reopened, with their indices and the errors.
    pub fn refused(&self) -> &BTreeMap<String, (u32, Error)> {
        &self.refused
    }

    /// Reads all counters, also those of the kernel.
    pub fn ledger(&mut self) -> Ledger {
        let mut ledger = Ledger { rings: self.replaced_rings, ..Ledger::default() };
        for ring in &mut self.rings {
            let counters = ring.counters();
            ledger.rings.add(&counters);
            ledger.by_ring.push((ring.interface().name.clone(), counters));
        }
        let (links, backlog) = &self.initial_counters;
        for (name, initial) in links {
            ledger.links.insert(name.clone(), LinkCounters::of(name).since(initial));
        }
        ledger.backlog_drops = kernel_backlog_drops().saturating_sub(*backlog);
        ledger
    }
}

/// Opens the rings of an interface.
fn rings_of(
    interface: &Interface,
    number: u16,
    options: &SourceOptions,
) -> Result<Vec<Ring>, Error> {
    let mut rings = Vec::new();
    let mut group = None;
    for _ in 0..options.sockets.max(1) {
        let ring = Ring::open(interface, number, options.ring)?;
        if options.sockets > 1 {
            group = Some(ring.fan_out(group)?);
        }
        rings.push(ring);
    }
    Ok(rings)
}

/// The time of the clock that the kernel uses for packet timestamps.
pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::Realtime);
    Time::from_nanos(now.tv_sec * 1_000_000_000 + now.tv_nsec)
}

impl Source {
    /// The time of the clock that the kernel uses for packet timestamps.
    pub fn clock() -> Time {
        now()
    }
}

impl Source {
    /// Stops capturing; packets that have arrived can still be read.
    pub fn stop(&mut self) {
        self.rings.iter().for_each(Ring::stop);
    }

    /// Discards all packets that have arrived and were not read, and counts them as dropped.
    pub fn drop_rest(&mut self) {
        for (ring, pending_block) in self.rings.iter_mut().zip(&mut self.pending) {
            let mut remaining =
                pending_block.block.records.len().saturating_sub(pending_block.at) as u64;
            while ring.take(&mut pending_block.block) {
                remaining += pending_block.block.records.len() as u64;
            }
            pending_block.at = pending_block.block.records.len();
            pending_block.block.bytes = gannet_capture::Bytes::default();
            ring.count_discarded(remaining);
        }
    }

    /// Names of interfaces that are down.
    pub fn down(&mut self) -> Vec<String> {
        let down = |ring: &mut Ring| ring.is_down().then(|| ring.interface().name.clone());
        let mut all: Vec<_> = self.rings.iter_mut().filter_map(down).collect();
        all.dedup();
        all
    }
}
