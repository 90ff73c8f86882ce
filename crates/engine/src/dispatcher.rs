//! The dispatcher: analysis on several threads.
//!
//! The caller's thread is the *dispatcher*. It reads the addresses of each packet and assigns the
//! packet to the *shard* that owns its host pair, in a *block*. Every shard receives every block,
//! so that time advances equally in all of them, and analyzes its own packets. Packets below the
//! transport layer and packets that affect other host pairs go to the *global shard*, which runs in
//! the dispatcher's thread: fragments, tunnels, DHCP, and connections that announce others. The
//! packets that it extracts belong to host pairs again and are sent with the block. A *merge*
//! orders the rows. Idle threads, including the dispatcher, work on shards and the merge: see
//! [`crate::scheduler`].
//!
//! Packets are not copied: blocks share the mapped file or the buffer that contains them.

use std::io;
use std::sync::Arc;

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_capture::Batch;
use gannet_capture::Packet;
use gannet_event::Event as _;
use gannet_event::Events;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Sinks;
use gannet_event::ThreadAffinity;
use gannet_log::Logs;
use gannet_log::StreamCount;
use gannet_protocols::global;
use gannet_protocols::global::GlobalPorts;
use gannet_protocols::lifecycle::events::EventQueueFlushPoint;
use gannet_wire::Datagram;
use gannet_wire::Outline;
use gannet_wire::Outline6;
use gannet_wire::Transport;
use gannet_wire::protocol;
use gannet_workers::OnPanic;
use gannet_workers::Workers;

use crate::Options;
use crate::block::Block;
use crate::gauge::Gauge;
use crate::merge::Merge;
use crate::packet_filter::PacketFilter;
use crate::role::Outbox;
use crate::role::Role;
use crate::route::owner;
use crate::route::owner_v4;
use crate::scheduler::Ended;
use crate::scheduler::Shared;
use crate::shard::Shard;
use crate::shard::clock::CLOSING;
use crate::shard_task::ShardTask;
use crate::state::State;

/// Maximum number of shards.
pub(crate) const MAX_SHARDS: usize = u8::MAX as usize;

/// The dispatcher, with its handle to the shards and the merge.
pub(crate) struct Dispatcher {
    global: Shard,
    shards: usize,
    threads: Threads,
    /// All blocks, in use or free for reuse.
    blocks: Vec<Arc<Block>>,
    /// Maximum time of all packets so far.
    latest: Time,
    /// Number of the last analyzed packet; recorded only if events have a listener.
    last: u64,
}

/// The scheduler, and the worker threads besides the caller's thread.
struct Threads {
    shared: Arc<Shared>,
    workers: Workers,
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Threads {
    /// Starts a worker thread, whose home is the `n`-th shard.
    fn start(&mut self, n: usize) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        self.workers.start(format!("worker {n}"), move || {
            // Wakes the threads that wait for the result of a panicked thread.
            let _guard = OnPanic(|| shared.stop());
            shared.work(n, |_| false);
        })
    }

    /// Detaches the threads, which end once all work is done: freeing their memory takes a while.
    /// Propagates a panic of a thread.
    fn leave(mut self) {
        if self.shared.is_stopped() {
            self.workers.join();
        }
        self.workers.detach();
    }
}

impl Dispatcher {
    /// Starts `threads` threads, including the caller's, with one shard for each.
    pub(crate) fn new(options: &Options, threads: usize) -> io::Result<Self> {
        let shards = threads.clamp(2, MAX_SHARDS);
        let part = |me| ShardTask::new(me, Shard::new(options.clone(), Role::HostPairs));
        let merge = Merge::new(Logs::new(options.logs.clone()), shards + 1);
        let shared = Shared::new((0..shards).map(part), merge);
        let outbox = Box::new(Outbox { shards, ..Outbox::default() });
        let global = Shard::new(options.clone(), Role::Global(outbox));
        let mut dispatcher = Self::of(global, shards, shared);
        dispatcher.start()?;
        Ok(dispatcher)
    }

    /// Like [`Self::new`], but the merge passes events of `interest` to a listener. Runs with fewer
    /// threads if the system cannot start all of them.
    pub(crate) fn with_listener(
        options: &Options,
        threads: usize,
        interest: &Interest,
        listener: Box<dyn Listener>,
    ) -> Self {
        let shards = threads.clamp(2, MAX_SHARDS);
        let (affinity, wants_packets) = (listener.affinity(), listener.wants_packets());
        let mut events = Events::new(interest.clone(), listener);
        events.set_mark(EventQueueFlushPoint::DECL);
        events.collect_commands();
        let commands = events.take_commands();
        let record = |role| {
            let mut shard = Shard::new(options.clone(), role);
            shard.record(interest.clone(), wants_packets, &commands);
            shard
        };
        let part = |me| ShardTask::new(me, record(Role::HostPairs));
        let logs = Sinks::new(Logs::new(options.logs.clone()), events);
        let mut merge = Merge::new(logs, shards + 1);
        merge.sample(&commands);
        let mut shared = Shared::new((0..shards).map(part), merge);
        shared.listen(affinity == ThreadAffinity::Caller);
        let outbox = Box::new(Outbox { shards, ..Outbox::default() });
        let mut dispatcher = Self::of(record(Role::Global(outbox)), shards, shared);
        // If some threads could not be started, the others and the caller's thread do all the work.
        let _ = dispatcher.start();
        dispatcher
    }

    fn of(global: Shard, shards: usize, shared: Shared) -> Self {
        let threads = Threads { shared: Arc::new(shared), workers: Workers::default() };
        Self { global, shards, threads, blocks: Vec::new(), latest: Time::ZERO, last: 0 }
    }

    /// Starts the worker threads.
    fn start(&mut self) -> io::Result<()> {
        (1..self.shards).try_for_each(|n| self.threads.start(n))
    }

    /// Records the event for the end of a capture, if events have a listener.
    pub(crate) fn end_capture(&mut self, path: &str) {
        if self.global.env.logs.events.any() {
            self.global.record_last(std::mem::take(&mut self.last));
            self.global.env.logs.set_key(CLOSING);
            self.global.raise_capture_end(path);
        }
    }

    /// Dispatches the next packets; only packets that pass the filter are analyzed.
    pub(crate) fn batch(
        &mut self,
        batch: &Batch<'_>,
        packet_filter: &mut PacketFilter<'_>,
    ) -> io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut block = self.free_block();
        let Some(filling) = Arc::get_mut(&mut block) else { return Ok(()) };
        filling.begin(batch, self.shards);
        if let Role::Global(outbox) = &mut self.global.role {
            let bytes = batch.bytes();
            outbox.block_memory = (bytes.as_ptr().addr(), bytes.len());
            outbox.extracted = std::mem::take(&mut filling.extracted);
        }
        self.assign(batch, filling, packet_filter);
        if let Role::Global(outbox) = &mut self.global.role {
            filling.extracted = std::mem::take(&mut outbox.extracted);
        }
        let (written, goes_on) = self.threads.shared.add(&block, &mut self.global);
        self.blocks.push(block);
        if !goes_on {
            self.threads.workers.join();
        }
        written
    }

    /// Analyzes all blocks and writes all complete rows.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let written = self.threads.shared.write_out();
        self.release();
        written
    }

    /// Releases the packet data of blocks that all shards have analyzed.
    fn release(&mut self) {
        self.blocks.iter_mut().filter_map(Arc::get_mut).for_each(Block::release);
    }

    /// Advances the time of all shards, as a packet with this number and time would.
    pub(crate) fn advance(&mut self, number: u64, time: Time) -> io::Result<()> {
        let mut block = self.free_block();
        let Some(filling) = Arc::get_mut(&mut block) else { return Ok(()) };
        filling.begin_without_packets((number, time), self.shards);
        self.latest = self.latest.max(time);
        if self.global.env.logs.events.any() {
            self.global.begin(number, time);
            self.last = number;
        }
        self.global.pass(number, time);
        let (written, goes_on) = self.threads.shared.add(&block, &mut self.global);
        self.blocks.push(block);
        if !goes_on {
            self.threads.workers.join();
        }
        written
    }

    /// Analyzes all blocks, then calls `work` with the logs; `None` if the logs are closed.
    pub(crate) fn with_logs<T>(
        &mut self,
        work: impl FnOnce(&mut Logs) -> T,
    ) -> io::Result<Option<T>> {
        let done = self.threads.shared.with_logs(work);
        self.release();
        done
    }

    /// Analyzes all blocks, then returns the sum of the gauges of all shards.
    pub(crate) fn gauge(&mut self) -> Gauge {
        let mut gauge = self.threads.shared.gauge();
        gauge.add(&Gauge::measure(&mut self.global));
        gauge
    }

    /// Assigns the packets of a batch to shards and processes those of the global shard.
    fn assign(
        &mut self,
        batch: &Batch<'_>,
        block: &mut Block,
        packet_filter: &mut PacketFilter<'_>,
    ) {
        let Self { global, shards, .. } = self;
        let mut times = PacketTimes { latest: self.latest, are_in_order: true };
        let mut at = 0;
        let mut records_others = global.env.logs.events.any() && global.records_packets();
        let is_quick = packet_filter.is_open() && !global.has_filter() && !records_others;
        loop {
            let mut is_global = false;
            if is_quick {
                (at, is_global) = assign_own((global, *shards), batch, at, block, &mut times);
            }
            let Some(packet) = batch.get(at) else { break };
            if !packet_filter.passes(&packet) || !global.passes(&packet) {
                block.skip_packet(at);
            } else if !is_global
                && let Some(part) = owner_of(&packet, &global.env.global_ports, *shards)
            {
                if records_others {
                    global.record_packet(packet.number, packet.time);
                    records_others = global.records_packets();
                }
                global.pass(packet.number, packet.time);
                block.assign(at, part);
                times.note(packet.time);
            } else if globals(global, &packet, at, block) {
                times.note(packet.time);
            }
            at += 1;
        }
        if global.env.logs.events.any() {
            // Empty packets count as received, filtered packets do not.
            let is_counted = |at: &usize| {
                let is_empty = |p: &Packet<'_>| p.data.is_empty() || p.wire_len == 0;
                !block.is_unowned(*at) || batch.get(*at).is_some_and(|packet| is_empty(&packet))
            };
            let last = (0..batch.len()).rev().find(is_counted);
            self.last = last.and_then(|at| batch.get(at)).map_or(self.last, |packet| packet.number);
        }
        if !times.are_in_order {
            block.store_latest(self.latest);
        }
        self.latest = times.latest;
    }

    /// Returns a block that no shard uses.
    fn free_block(&mut self) -> Arc<Block> {
        let free = self.blocks.iter().position(|b| Arc::strong_count(b) == 1);
        free.map(|i| self.blocks.swap_remove(i)).unwrap_or_default()
    }

    /// Ends the input. Returns the number of connections, the state report and the written streams.
    pub(crate) fn finish(self) -> io::Result<(u64, State, Vec<StreamCount>)> {
        let Self { mut global, shards, threads, last, .. } = self;
        let now = global.now;
        if global.env.logs.events.any() {
            global.record_last(last);
        }
        threads.shared.end(ShardTask::new(shards, global));
        threads.shared.work(0, |_| false);
        let ended = threads.shared.ended();
        threads.leave();
        close(ended, now)
    }
}

/// Closes the logs at time `now`. Returns the number of connections, the state report and the
/// written streams.
fn close(ended: Ended, now: Time) -> io::Result<(u64, State, Vec<StreamCount>)> {
    let Ended { connections, state, merge, error } = ended;
    let Some(merge) = merge else { return Ok((connections, state, Vec::new())) };
    let (mut logs, counts) = merge.into_logs();
    logs.set_time(now);
    let closed = logs.close();
    error.map_or(Ok(()), Err)?;
    closed?;
    Ok((connections, state, counts))
}

/// Packet times of a batch.
#[derive(Clone, Copy)]
struct PacketTimes {
    latest: Time,
    /// Whether the times never decreased.
    are_in_order: bool,
}

impl PacketTimes {
    #[inline]
    fn note(&mut self, time: Time) {
        self.are_in_order &= time >= self.latest;
        self.latest = self.latest.max(time);
    }
}

/// Assigns packets from index `at` on to their shards, while each certainly belongs to one host
/// pair and no timer is due. Returns the index of the first other packet, and whether the global
/// shard may own it.
// A separate function, so that the compiler keeps all variables of the loop in registers.
#[inline(never)]
fn assign_own(
    (global, shards): (&mut Shard, usize),
    batch: &Batch<'_>,
    mut at: usize,
    block: &mut Block,
    times: &mut PacketTimes,
) -> (usize, bool) {
    let (ports, mut noted) = (&global.env.global_ports, *times);
    let mut is_global = false;
    if !global.is_idle_until(global.now) {
        return (at, is_global);
    }
    for packet in batch.split_at(at).1 {
        let Some(outline) = Outline::of(packet.link_type.0, packet.data) else { break };
        if !global.is_idle_until(packet.time) {
            break;
        }
        let Some(part) = owner_of_outline(outline, &packet, ports, shards) else {
            is_global = true;
            break;
        };
        block.assign(at, part);
        noted.note(packet.time);
        at += 1;
    }
    global.now = global.now.max(noted.latest);
    *times = noted;
    (at, is_global)
}

/// Processes a packet of a block in the global shard; returns whether the packet is not empty.
#[cold]
fn globals(global: &mut Shard, packet: &Packet<'_>, at: usize, block: &mut Block) -> bool {
    let mut before = 0;
    if let Role::Global(outbox) = &mut global.role {
        outbox.index = at as u32;
        before = outbox.extracted.packets.len();
    }
    global.packet::<true>(packet);
    if let Role::Global(outbox) = &global.role {
        let extracted = outbox.extracted.packets.iter().skip(before);
        extracted.for_each(|packet| block.assign_extracted(at, packet.shard));
    }
    // An empty packet does not advance time.
    let is_none = packet.data.is_empty() || packet.wire_len == 0;
    if is_none {
        block.skip_packet(at);
    }
    !is_none
}

/// Returns the shard that owns a packet, if the packet certainly belongs to one host pair: no
/// weird, no fragment, no tunnel, and no protocol of the global shard.
#[inline]
fn owner_of(packet: &Packet<'_>, ports: &GlobalPorts, shards: usize) -> Option<u8> {
    let (link_type, data) = (packet.link_type.0, packet.data);
    if let Some(outline) = Outline::of(link_type, data) {
        return owner_of_outline(outline, packet, ports, shards);
    }
    let Some(outline) = Outline6::of(link_type, data) else {
        return owner_of_decoded(packet, ports, shards);
    };
    let ((src, dst), (from, to)) = (outline.hosts(), outline.ports());
    let may_have = |proto| ports.may_have(proto, (src, from), (dst, to));
    let is_global = if outline.protocol() == protocol::TCP {
        may_have(Proto::Tcp)
    } else {
        may_have(Proto::Udp) || global::may_be_by_content(Outline6::udp_payload(data))
    };
    (!is_global).then(|| owner(src, dst, shards))
}

/// Fast path for packets that have an outline.
#[inline(always)]
fn owner_of_outline(
    outline: Outline<'_>,
    packet: &Packet<'_>,
    ports: &GlobalPorts,
    shards: usize,
) -> Option<u8> {
    let ((src, dst), (from, to)) = (outline.hosts(), outline.ports());
    let may_have = |proto| ports.may_have(proto, (Addr::v4(src), from), (Addr::v4(dst), to));
    let is_global = if outline.protocol() == protocol::TCP {
        may_have(Proto::Tcp)
    } else {
        may_have(Proto::Udp) || global::may_be_by_content(Outline::udp_payload(packet.data))
    };
    (!is_global).then(|| owner_v4(src, dst, shards))
}

/// Like [`owner_of_outline`], but for any packet.
fn owner_of_decoded(packet: &Packet<'_>, ports: &GlobalPorts, shards: usize) -> Option<u8> {
    let (mut is_faulty, link) = (false, packet.link_type.0);
    let faults = &mut |_| is_faulty = true;
    let decoded = gannet_wire::decode_with(link, packet.data, packet.wire_len, faults).ok()?;
    let Datagram { ip, transport } = decoded.datagram()?;
    // A header after the IPv6 header may name other hosts.
    let has_more = ip.fragment.is_some() || ip.version == 6 && ip.header_len > 40;
    if is_faulty || has_more {
        return None;
    }
    let may_have = |proto, from, to| ports.may_have(proto, (ip.src, from), (ip.dst, to));
    let is_global = match transport {
        Transport::Tcp(tcp) => may_have(Proto::Tcp, tcp.src_port, tcp.dst_port),
        Transport::Udp(udp) => {
            may_have(Proto::Udp, udp.src_port, udp.dst_port)
                || global::may_be_by_content(udp.payload)
        }
        Transport::Icmp(_) => false,
        Transport::Invalid(_) | Transport::Fragment => true,
        Transport::Other => {
            let tunnels = [protocol::IPV4, protocol::IPV6, protocol::GRE, protocol::NONE];
            ip.version == 6 || tunnels.contains(&ip.protocol)
        }
    };
    (!is_global).then(|| owner(ip.src, ip.dst, shards))
}

#[cfg(test)]
mod tests {
    use gannet_capture::Format;
    use gannet_capture::LinkType;

    use super::*;

    #[test]
    fn packets_with_ipv6_extension_headers_belong_to_the_global_shard() {
        let owned = |next, addr: [u8; 16]| {
            let head = [0x60, 0, 0, 0, 0, 16, next, 64];
            let data = [&head[..], &addr, &addr, &[17, 0, 0, 1, 0, 0, 0, 7], &[9; 8]].concat();
            let packet = Packet {
                time: Time::ZERO,
                wire_len: data.len() as u32,
                link_type: LinkType::RAW,
                interface: 0,
                format: Format::Pcap,
                number: 1,
                data: &data,
            };
            owner_of(&packet, &GlobalPorts::default(), 2).is_some()
        };
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
        for addr in [mapped, [0x20; 16]] {
            assert!(owned(protocol::ICMP6, addr));
            // A fragment, and destination options, which may contain a home address.
            assert!(
                !owned(protocol::IPV6_FRAGMENT, addr) && !owned(protocol::IPV6_DEST_OPTIONS, addr)
            );
        }
    }
}
