//! Interfaces as a source of batches.

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
use crate::merge::Lane;
use crate::merge::merge;
use crate::ring::is_interrupted;

/// How a [`Source`] captures.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Size of each ring.
    pub ring: RingOptions,
    /// Rings on each interface, which share its packets by flow.
    pub sockets: u16,
    /// Packets of a batch, at the most.
    pub batch_packets: usize,
    /// Whether the process may open rings again on an interface that was made again: a [`Sandbox`](crate::Sandbox) ends a
    /// process that tries.
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

/// Captures on one interface or several.
#[derive(Debug)]
pub struct Source {
    rings: Vec<Ring>,
    lanes: Vec<Lane>,
    gathered: Gathered,
    /// Records of a merged batch.
    merged: Vec<Record>,
    /// Packets of a batch, at the most.
    most: usize,
    /// Number of the next packet.
    next: u64,
    options: SourceOptions,
    filters: BTreeMap<String, Vec<Insn>>,
    /// Counters of rings that were replaced because their interface was.
    past: RingCounters,
    /// Interfaces that were made again and on which capturing does not begin again: their numbers, and why.
    refused: BTreeMap<String, (u32, Error)>,
    /// Interfaces that were made again and are captured on again.
    reopened: Vec<String>,
    /// What links and the backlog had counted at the start.
    before: (BTreeMap<String, LinkCounters>, u64),
    refused_filter: bool,
}

/// What a source has.
#[derive(Debug)]
pub enum Next<'a> {
    /// Packets.
    Packets(Batch<'a>),
    /// No packets for now.
    Idle,
}

/// While an interface is down, packets are looked for this often.
const DOWN: Duration = Duration::from_millis(100);
/// While packets of several rings wait for each other, they are looked at this often.
const MERGING: Duration = Duration::from_millis(5);

impl Source {
    /// Opens rings on interfaces. Packets come in once all are open; `filter` gives the program for an interface.
    ///
    /// # Errors
    /// When an interface does not exist, or the process may not capture on it.
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
        let before = (links, kernel_backlog_drops());
        let mut refused_filter = false;
        for ring in &rings {
            let filter = filters.get(&ring.interface().name).map(Vec::as_slice);
            refused_filter |= !ring.start(filter)?;
        }
        Ok(Self {
            lanes: rings.iter().map(|_| Lane::default()).collect(),
            rings,
            gathered: Gathered::default(),
            merged: Vec::new(),
            most: options.batch_packets,
            next: 1,
            options,
            filters,
            past: RingCounters::default(),
            refused: BTreeMap::new(),
            reopened: Vec::new(),
            before,
            refused_filter,
        })
    }

    /// Whether the kernel did not take a filter: packets are then filtered by the analysis alone.
    pub fn refused_filter(&self) -> bool {
        self.refused_filter
    }

    /// The rings.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// The number of the next packet, which then is none: for time that passes without packets.
    pub fn skip_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns packets that have arrived already.
    pub fn packets(&mut self) -> Next<'_> {
        // The block of the last batch goes back if nothing reads it any more.
        self.gathered.clear();
        for (ring, lane) in self.rings.iter_mut().zip(&mut self.lanes) {
            if lane.is_empty() {
                lane.at = 0;
                lane.block.bytes = gannet_capture::Bytes::default();
                ring.take(&mut lane.block);
            }
        }
        let first = self.next;
        if let [lane] = &mut self.lanes[..] {
            let end = (lane.at + self.most).min(lane.block.records.len());
            let records = lane.block.records.get(lane.at..end).unwrap_or_default();
            if records.is_empty() {
                return Next::Idle;
            }
            self.next += records.len() as u64;
            self.gathered.begin(lane.block.bytes.clone(), first);
            records.iter().for_each(|record| self.gathered.push(record));
            lane.at = end;
            if lane.is_empty() {
                lane.block.bytes = gannet_capture::Bytes::default();
            }
        } else {
            let bytes = merge(&mut self.lanes, now(), self.most, &mut self.merged);
            if self.merged.is_empty() {
                return Next::Idle;
            }
            self.next += self.merged.len() as u64;
            self.gathered.begin(bytes, first);
            self.merged.iter().for_each(|record| self.gathered.push(record));
        }
        Next::Packets(self.gathered.batch())
    }

    /// Waits for packets, at most for `most`. Captures again on interfaces that went down or were made
    /// again. Returns early when a signal comes.
    ///
    /// # Errors
    /// When the system cannot wait.
    pub fn wait(&mut self, most: Duration) -> io::Result<()> {
        let mut most = most;
        if self.lanes.iter().any(|lane| !lane.is_empty()) {
            most = most.min(MERGING);
        }
        let mut downs = Vec::new();
        let mut fds = Vec::new();
        for (n, ring) in self.rings.iter_mut().enumerate() {
            if ring.is_down() {
                most = most.min(DOWN);
                downs.push(n);
            }
        }
        let mut which = Vec::new();
        for (n, ring) in self.rings.iter().enumerate() {
            // A lane that waits for others has pending packets, and its next block may be complete.
            if !downs.contains(&n) && self.lanes.get(n).is_some_and(Lane::is_empty) {
                fds.push(PollFd::new(ring.socket().fd(), PollFlags::IN));
                which.push(n);
            }
        }
        let within = Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: most.subsec_nanos().into(),
        };
        let polled = poll(&mut fds, Some(&within)).map_err(io::Error::from);
        let failed: Vec<usize> = fds
            .iter()
            .zip(&which)
            .filter(|(fd, _)| fd.revents().intersects(PollFlags::ERR | PollFlags::NVAL))
            .map(|(_, n)| *n)
            .collect();
        drop(fds);
        match polled {
            Ok(_) => {}
            Err(error) if is_interrupted(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        for n in failed {
            if let Some(ring) = self.rings.get_mut(n) {
                ring.has_failed();
            }
        }
        for n in downs {
            self.reopen_if_new(n);
        }
        Ok(())
    }

    /// Opens the rings of an interface again that was removed and made again; `n` is one of them.
    fn reopen_if_new(&mut self, n: usize) {
        let Some(ring) = self.rings.get(n) else { return };
        let (before, number) = (ring.interface().index, ring.number());
        let Ok(now) = Interface::named(&ring.interface().name) else { return };
        if now.index == before {
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
                let old = self.rings.iter_mut().filter(|ring| ring.interface().index == before);
                for (ring, fresh) in old.zip(rings) {
                    self.past.add(&ring.counters());
                    *ring = fresh;
                }
                self.refused.remove(&now.name);
                self.reopened.push(now.name);
            }
            Err(error) => {
                self.refused.insert(now.name, (now.index, error));
            }
        }
    }

    /// Takes the names of interfaces that were made again and are captured on again.
    pub fn take_reopened(&mut self) -> Vec<String> {
        std::mem::take(&mut self.reopened)
    }

    /// Interfaces that were made again and on which capturing does not begin again: their numbers, and why.
    pub fn refused(&self) -> &BTreeMap<String, (u32, Error)> {
        &self.refused
    }

    /// What became of all packets so far. Asks the kernel.
    pub fn ledger(&mut self) -> Ledger {
        let mut ledger = Ledger { rings: self.past, ..Ledger::default() };
        for ring in &mut self.rings {
            let counters = ring.counters();
            ledger.rings.add(&counters);
            ledger.by_ring.push((ring.interface().name.clone(), counters));
        }
        let (links, backlog) = &self.before;
        for (name, before) in links {
            ledger.links.insert(name.clone(), LinkCounters::of(name).since(before));
        }
        ledger.backlog_drops = kernel_backlog_drops().saturating_sub(*backlog);
        ledger
    }
}

/// Opens the rings of an interface, which share its packets by flow.
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

/// The time of the clock by which the kernel stamps packets.
pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::Realtime);
    Time::from_nanos(now.tv_sec * 1_000_000_000 + now.tv_nsec)
}

impl Source {
    /// The time of the clock by which the kernel stamps packets.
    pub fn clock() -> Time {
        now()
    }
}

impl Source {
    /// Lets no more packets in. Those that have arrived can still be read.
    pub fn stop(&mut self) {
        self.rings.iter().for_each(Ring::stop);
    }

    /// Drops all packets that have arrived and were not read, and counts them as dropped.
    pub fn drop_rest(&mut self) {
        for (ring, lane) in self.rings.iter_mut().zip(&mut self.lanes) {
            let mut left = lane.block.records.len().saturating_sub(lane.at) as u64;
            while ring.take(&mut lane.block) {
                left += lane.block.records.len() as u64;
            }
            lane.at = lane.block.records.len();
            lane.block.bytes = gannet_capture::Bytes::default();
            ring.drop_taken(left);
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
