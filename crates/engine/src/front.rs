//! The analysis on several threads.
//!
//! The caller's thread is the *front*. It takes packets in their order, looks at their addresses,
//! and notes in a *block* which *part* owns each pair of hosts. Every part gets every block, so
//! that time passes for all of them alike, and analyses what is its own. What is below connections
//! or speaks of other pairs of hosts is the *hub*'s, which works in the front's thread: fragments,
//! tunnels, DHCP, and connections that announce others. What it finds inside belongs to its own
//! pair of hosts again, and goes along with the block. A *merge* puts the rows in order.
//!
//! Packets are not copied: blocks share the mapped file or the buffer that they lie in.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::thread::JoinHandle;

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_capture::Batch;
use gannet_capture::Packet;
use gannet_log::Logs;
use gannet_log::StreamCount;
use gannet_protocols::hub;
use gannet_protocols::hub::HubPorts;
use gannet_wire::Network;
use gannet_wire::protocol;

use crate::Options;
use crate::block::Block;
use crate::block::Entry;
use crate::block::HUB;
use crate::merge;
use crate::merge::Failure;
use crate::part;
use crate::queue::Queue;
use crate::reports::Reports;
use crate::shard::Shard;
use crate::state::Crowd;
use crate::state::State;
use crate::steer::Outbox;
use crate::steer::Role;
use crate::steer::owner;

/// The most parts there can be.
pub(crate) const MAX_PARTS: usize = HUB as usize;
/// Blocks that wait for a part at the most, each of a batch of packets.
const BLOCKS: usize = 8;
/// Reports that wait for the merge at the most, for each part.
const REPORTS: usize = 4;
/// Blocks after which the hub reports: as often as a part.
const REPORT_BLOCKS: u32 = 16;

/// The front's end of the parts and the merge.
pub(crate) struct Front {
    hub: Shard,
    parts: Vec<Part>,
    reports: Arc<Reports>,
    /// Taken when it is joined.
    merge: Option<JoinHandle<(Logs, Vec<StreamCount>)>>,
    failure: Arc<Failure>,
    /// Blocks that are or were with the parts.
    blocks: Vec<Arc<Block>>,
    /// Blocks since the hub last reported.
    unreported: u32,
    /// The latest time of all packets so far.
    latest: Time,
}

struct Part {
    blocks: Arc<Queue<Arc<Block>>>,
    /// Taken when it is joined.
    thread: Option<JoinHandle<(u64, State)>>,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.blocks.close();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.reports.queue.close();
    }
}

impl Front {
    /// Starts the threads of so many parts.
    pub(crate) fn new(options: &Options, parts: usize) -> io::Result<Self> {
        let parts = parts.clamp(1, MAX_PARTS);
        let queues: Vec<_> = (0..=parts).map(|_| Arc::new(Reports::new(REPORTS))).collect();
        let crowd = Crowd::of(parts + 1);
        let start = |(me, reports): (usize, &Arc<Reports>)| {
            let blocks = Arc::new(Queue::new(BLOCKS));
            let (taken, reports) = (Arc::clone(&blocks), Arc::clone(reports));
            let mut shard = Shard::new(options.clone(), Role::Part);
            shard.keeper.join(&crowd, me);
            let work = move || part::run(me as u8, shard, &taken, &reports);
            let thread = thread::Builder::new().name(format!("part {me}")).spawn(work)?;
            Ok(Part { blocks, thread: Some(thread) })
        };
        let running = queues.iter().take(parts).enumerate().map(start);
        let running = running.collect::<io::Result<Vec<_>>>()?;
        let failure = Arc::new(Failure::default());
        let reports = Arc::clone(&queues[parts]);
        let logs = Logs::new(options.logs.clone());
        let told = Arc::clone(&failure);
        let merge = thread::Builder::new().name("merge".to_owned());
        let merge = merge.spawn(move || merge::run(logs, queues, &told))?;
        let outbox = Box::new(Outbox { parts, ..Outbox::default() });
        let mut hub = Shard::new(options.clone(), Role::Hub(outbox));
        hub.keeper.join(&crowd, parts);
        Ok(Self {
            hub,
            parts: running,
            reports,
            merge: Some(merge),
            failure,
            blocks: Vec::new(),
            unreported: 0,
            latest: Time::ZERO,
        })
    }

    /// The next packets, of which only those that `pass` are analysed.
    pub(crate) fn batch(
        &mut self,
        batch: &Batch<'_>,
        mut pass: impl FnMut(&Packet<'_>) -> bool,
    ) -> io::Result<()> {
        let Some(first) = batch.iter().find(|p| !p.data.is_empty()).or(batch.get(0)) else {
            return Ok(());
        };
        let mut block = self.free_block();
        let Some(filling) = Arc::get_mut(&mut block) else { return Ok(()) };
        let bytes = batch.bytes();
        let memory = (bytes.as_ptr().addr(), bytes.len());
        filling.bytes = bytes.clone();
        filling.base = first.data.as_ptr().addr().saturating_sub(memory.0).min(memory.1);
        filling.first = batch.get(0).map_or(0, |p| p.number);
        filling.entries.clear();
        filling.dealt.resize_with(self.parts.len(), Vec::new);
        filling.dealt.iter_mut().for_each(Vec::clear);
        if let Role::Hub(outbox) = &mut self.hub.role {
            outbox.memory = memory;
            outbox.handed = std::mem::take(&mut filling.handed);
            outbox.own = std::mem::take(&mut filling.own);
            outbox.handed.clear();
            outbox.own.clear();
        }
        let base = memory.0 + filling.base;
        for packet in batch.iter().filter(|p| pass(p)) {
            let index = (packet.number - filling.first) as u32;
            let Some(entry) = self.packet(&packet, index, base) else { continue };
            self.latest = self.latest.max(entry.time);
            let at = filling.entries.len() as u32;
            match filling.dealt.get_mut(usize::from(entry.part)) {
                Some(own) => own.push(at),
                None => filling.dealt.iter_mut().for_each(|own| own.push(at)),
            }
            filling.entries.push(entry);
        }
        filling.latest = self.latest;
        self.hub.relieve_after(filling.first);
        if let Role::Hub(outbox) = &mut self.hub.role {
            filling.handed = std::mem::take(&mut outbox.handed);
            filling.own = std::mem::take(&mut outbox.own);
        }
        let last = block.last();
        for part in &self.parts {
            if part.blocks.is_full() && self.unreported > 0 {
                // Nobody may wait for the hub while the front waits. (Of this block it has made
                // rows already, but none of a later one.)
                self.unreported = 0;
                part::report(&mut self.hub, Some(part::after(last)), &self.reports);
            }
            part.blocks.push(Arc::clone(&block));
        }
        self.blocks.push(block);
        self.unreported += 1;
        part::report_much(&mut self.hub, &self.reports);
        if self.unreported >= REPORT_BLOCKS {
            self.unreported = 0;
            part::report(&mut self.hub, Some(part::after(last)), &self.reports);
        }
        self.failure.check()
    }

    /// One packet: its entry in the block, if it is one.
    fn packet(&mut self, packet: &Packet<'_>, index: u32, base: usize) -> Option<Entry> {
        let parts = self.parts.len();
        let offset = |ip: &IpPart<'_>| {
            let offset = ip.data.as_ptr().addr().checked_sub(base)?;
            u32::try_from(offset).ok()
        };
        if let Some((ip, pair)) = plain(packet, &self.hub.env.hub_ports)
            && let Some(offset) = offset(&ip)
        {
            self.hub.pass(packet.number, packet.time);
            return Some(Entry {
                time: packet.time,
                before: self.latest,
                index,
                offset,
                len: ip.data.len() as u32,
                wire_len: ip.wire_len,
                part: owner(pair.0, pair.1, parts),
                layers: ip.layers,
            });
        }
        if let Role::Hub(outbox) = &mut self.hub.role {
            outbox.index = index;
        }
        self.hub.packet(packet);
        self.hub.rest();
        let is_one = !packet.data.is_empty() && packet.wire_len > 0;
        let (time, before, layers, part) = (packet.time, self.latest, 0, HUB);
        is_one.then_some(Entry {
            time,
            before,
            index,
            offset: 0,
            len: 0,
            wire_len: 0,
            part,
            layers,
        })
    }

    /// A block that no part reads any more.
    fn free_block(&mut self) -> Arc<Block> {
        let free = self.blocks.iter().position(|b| Arc::strong_count(b) == 1);
        free.map(|i| self.blocks.swap_remove(i)).unwrap_or_default()
    }

    /// The end of input. Returns how many connections there were, and what was written.
    pub(crate) fn finish(mut self) -> io::Result<(u64, State, Vec<StreamCount>)> {
        for part in &self.parts {
            part.blocks.close();
        }
        let reports = &self.reports;
        self.hub.close(|hub| part::report_much(hub, reports));
        part::report(&mut self.hub, None, reports);
        let (mut connections, mut state) = (self.hub.connections(), self.hub.keeper.report);
        for thread in self.parts.iter_mut().filter_map(|p| p.thread.take()) {
            let (more, kept) = thread.join().unwrap_or_else(|e| resume_unwind(e));
            connections += more;
            state.add(&kept);
        }
        let Some(merge) = self.merge.take() else { return Ok((connections, state, Vec::new())) };
        let (mut logs, counts) = merge.join().unwrap_or_else(|e| resume_unwind(e));
        logs.set_time(self.hub.now);
        let closed = logs.close();
        self.failure.check()?;
        closed?;
        Ok((connections, state, counts))
    }
}

/// Where IP begins in a packet.
struct IpPart<'a> {
    data: &'a [u8],
    wire_len: u32,
    layers: u8,
}

/// The IP part and the hosts of a packet that surely is one pair's own: no oddity so far, no
/// fragment, no tunnel, nothing of the hub.
#[inline]
fn plain<'a>(packet: &Packet<'a>, ports: &HubPorts) -> Option<(IpPart<'a>, (Addr, Addr))> {
    let mut odd = false;
    let (link, data) = (packet.link_type.0, packet.data);
    let frame = gannet_wire::link_with(link, data, packet.wire_len, 0, &mut |_| odd = true);
    let frame = frame.ok().filter(|_| !odd)?;
    let Network::Ip(ip) = frame.network else { return None };
    let (pair, next, transport) = match ip.first()? >> 4 {
        4 => {
            let head: &[u8; 20] = ip.first_chunk()?;
            let addr = |at: usize| Addr::v4([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let len = usize::from(head[0] & 15) * 4;
            let is_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
            if len < 20 || is_fragment {
                return None;
            }
            ((addr(12), addr(16)), head[9], ip.get(len..)?)
        }
        6 => {
            let head: &[u8; 40] = ip.first_chunk()?;
            let pair = (Addr::from_slice(&head[8..24])?, Addr::from_slice(&head[24..])?);
            (pair, head[6], &ip[40..])
        }
        _ => return None,
    };
    let may_be_hubs = |proto| {
        let p: Option<&[u8; 4]> = transport.first_chunk();
        p.is_none_or(|p| {
            let port = |at: usize| u16::from_be_bytes([p[at], p[at + 1]]);
            ports.may_have(proto, port(0), port(2))
        })
    };
    let hubs = match next {
        protocol::TCP => may_be_hubs(Proto::Tcp),
        protocol::UDP => {
            let payload = transport.get(8..).unwrap_or_default();
            may_be_hubs(Proto::Udp) || hub::may_be_by_content(payload)
        }
        protocol::ICMP | protocol::ICMP6 => false,
        _ => true,
    };
    let ip = IpPart { data: ip, wire_len: frame.wire_len, layers: frame.depth };
    (!hubs).then_some((ip, pair))
}
