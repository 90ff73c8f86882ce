//! The analysis on several threads.
//!
//! The caller's thread is the *front*. It takes packets in their order, looks at their addresses,
//! and notes in a *block* which *part* owns each pair of hosts. Every part gets every block, so
//! that time passes for all of them alike, and analyses what is its own. What is below connections
//! or refers to other pairs of hosts is the *hub*'s, which works in the front's thread: fragments,
//! tunnels, DHCP, and connections that announce others. What it finds inside belongs to its own
//! pair of hosts again, and is passed with the block. A *merge* puts the rows in order. Parts and
//! merge are worked on by whoever has nothing else to do, the front too: see [`crate::plan`].
//!
//! Packets are not copied: blocks share the mapped file or the buffer that they lie in.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::thread::JoinHandle;
use std::time::Instant;

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
use crate::cores::HELD;
use crate::cores::Origin;
use crate::glance::LINK;
use crate::glance::Plain;
use crate::merge::Merge;
use crate::part::Part;
use crate::plan::Ended;
use crate::plan::Shared;
use crate::plan::Stopping;
use crate::shard::Shard;
use crate::sieve::Sieve;
use crate::state::State;
use crate::steer::Outbox;
use crate::steer::Role;
use crate::steer::owner;
use crate::steer::owner_v4;

/// The most parts there can be.
pub(crate) const MAX_PARTS: usize = u8::MAX as usize;

/// The front's end of the parts and the merge.
pub(crate) struct Front {
    hub: Shard,
    parts: usize,
    crew: Crew,
    /// Blocks that are or were with the parts.
    blocks: Vec<Arc<Block>>,
    /// The latest time of all packets so far.
    latest: Time,
}

/// What is done beside the front, and the threads that do it beside the caller's.
struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Crew {
    /// Waits for the threads to end; if one has panicked, the panic goes on here.
    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_else(|e| resume_unwind(e));
        }
    }

    /// All is done, and threads end by themselves: that takes a while, since the allocator looks through all
    /// memory that was theirs, and nobody is to wait for it. If one has panicked, the panic goes on here.
    fn leave(mut self) {
        if self.shared.is_stopped() {
            self.join();
        }
    }
}

impl Front {
    /// Starts so many threads, the caller's being one of them, with a part for each.
    pub(crate) fn new(options: &Options, threads: usize) -> io::Result<Self> {
        let parts = threads.clamp(2, MAX_PARTS);
        let part = |me| Part::new(me, Shard::new(options.clone(), Role::Part));
        let merge = Merge::new(Logs::new(options.logs.clone()), parts + 1);
        let shared = Arc::new(Shared::new((0..parts).map(part), merge));
        let outbox = Box::new(Outbox { parts, ..Outbox::default() });
        let hub = Shard::new(options.clone(), Role::Hub(outbox));
        let mut crew = Crew { shared, threads: Vec::new() };
        let origin = Origin::of_caller();
        for n in 1..parts {
            let shared = Arc::clone(&crew.shared);
            let work = move || {
                let _stopping = Stopping(&shared);
                let (held, begun) = (origin.hold(n), Instant::now());
                shared.work(n, |_| begun.elapsed() >= HELD);
                drop(held);
                shared.work(n, |_| false);
            };
            crew.threads.push(thread::Builder::new().name(format!("worker {n}")).spawn(work)?);
        }
        Ok(Self { hub, parts, crew, blocks: Vec::new(), latest: Time::ZERO })
    }

    /// The next packets, of which only those that pass are analysed.
    pub(crate) fn batch(&mut self, batch: &Batch<'_>, sieve: &mut Sieve<'_>) -> io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut block = self.free_block();
        let Some(filling) = Arc::get_mut(&mut block) else { return Ok(()) };
        filling.begin(batch, self.parts);
        if let Role::Hub(outbox) = &mut self.hub.role {
            let bytes = batch.bytes();
            outbox.memory = (bytes.as_ptr().addr(), bytes.len());
            outbox.found = std::mem::take(&mut filling.found);
        }
        self.deal(batch, filling, sieve);
        if let Role::Hub(outbox) = &mut self.hub.role {
            filling.found = std::mem::take(&mut outbox.found);
        }
        let (written, goes_on) = self.crew.shared.add(&block, &mut self.hub);
        self.blocks.push(block);
        if !goes_on {
            self.crew.join();
        }
        written
    }

    /// All blocks are analysed, and what is complete is written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.crew.shared.write_out()
    }

    /// Says of a batch's packets whose they are, and has the hub look at its own.
    fn deal(&mut self, batch: &Batch<'_>, block: &mut Block, sieve: &mut Sieve<'_>) {
        let Self { hub, parts, .. } = self;
        let mut times = Times { latest: self.latest, are_in_order: true };
        let mut at = 0;
        loop {
            let mut is_hubs = false;
            if sieve.is_open() {
                (at, is_hubs) = deal_own((hub, *parts), batch, at, block, &mut times);
            }
            let Some(packet) = batch.get(at) else { break };
            if !sieve.passes(&packet) {
                block.leave(at);
            } else if !is_hubs && let Some(part) = owner_of(&packet, &hub.env.hub_ports, *parts) {
                hub.pass(packet.number, packet.time);
                block.deal(at, part);
                times.note(packet.time);
            } else if hubs(hub, &packet, at, block) {
                times.note(packet.time);
            }
            at += 1;
        }
        if !times.are_in_order {
            block.note_latest(self.latest);
        }
        self.latest = times.latest;
    }

    /// A block that no part reads any more.
    fn free_block(&mut self) -> Arc<Block> {
        let free = self.blocks.iter().position(|b| Arc::strong_count(b) == 1);
        free.map(|i| self.blocks.swap_remove(i)).unwrap_or_default()
    }

    /// The end of input. Returns how many connections there were, and what was written.
    pub(crate) fn finish(self) -> io::Result<(u64, State, Vec<StreamCount>)> {
        let Self { hub, parts, crew, .. } = self;
        let now = hub.now;
        crew.shared.end(Part::new(parts, hub));
        crew.shared.work(0, |_| false);
        let ended = crew.shared.ended();
        crew.leave();
        close(ended, now)
    }
}

/// The logs are closed at time `now`. Returns how many connections there were, and what was written.
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

/// Times of packets.
#[derive(Clone, Copy)]
struct Times {
    latest: Time,
    /// Whether none was before one that came earlier.
    are_in_order: bool,
}

impl Times {
    #[inline]
    fn note(&mut self, time: Time) {
        self.are_in_order &= time >= self.latest;
        self.latest = self.latest.max(time);
    }
}

/// From place `at` on, packets as nearly all are: surely one pair's own, and nothing is due with them. Each is
/// dealt to its part. Returns the place of the first that is another, and whether that may be the hub's.
// Apart from what goes on around it, so that all it needs for a packet stays in registers.
#[inline(never)]
fn deal_own(
    (hub, parts): (&mut Shard, usize),
    batch: &Batch<'_>,
    mut at: usize,
    block: &mut Block,
    times: &mut Times,
) -> (usize, bool) {
    let (ports, mut noted) = (&hub.env.hub_ports, *times);
    let mut is_hubs = false;
    if !hub.is_idle_until(hub.now) {
        return (at, is_hubs);
    }
    for packet in batch.split_at(at).1 {
        let Some(plain) = Plain::of(&packet) else { break };
        if !hub.is_idle_until(packet.time) {
            break;
        }
        let Some(part) = owner_of_plain(plain, &packet, ports, parts) else {
            is_hubs = true;
            break;
        };
        block.deal(at, part);
        noted.note(packet.time);
        at += 1;
    }
    hub.now = hub.now.max(noted.latest);
    *times = noted;
    (at, is_hubs)
}

/// The hub looks at a packet of a block; whether there is one.
#[cold]
fn hubs(hub: &mut Shard, packet: &Packet<'_>, at: usize, block: &mut Block) -> bool {
    let mut before = 0;
    if let Role::Hub(outbox) = &mut hub.role {
        outbox.index = at as u32;
        before = outbox.found.handed.len();
    }
    hub.packet(packet);
    if let Role::Hub(outbox) = &hub.role {
        let handed = outbox.found.handed.iter().skip(before);
        handed.for_each(|handed| block.deal_handed(at, handed.part));
    }
    // Of what is none, not even the time counts.
    let is_none = packet.data.is_empty() || packet.wire_len == 0;
    if is_none {
        block.leave(at);
    }
    !is_none
}

/// Who of so many parts owns a packet that surely is one pair's own: no weird so far, no fragment, no
/// tunnel, nothing of the hub.
#[inline]
fn owner_of(packet: &Packet<'_>, ports: &HubPorts, parts: usize) -> Option<u8> {
    match Plain::of(packet) {
        Some(plain) => owner_of_plain(plain, packet, ports, parts),
        None => any(packet, ports, parts),
    }
}

/// The same of what nearly all packets are.
#[inline(always)]
fn owner_of_plain(
    plain: Plain<'_>,
    packet: &Packet<'_>,
    ports: &HubPorts,
    parts: usize,
) -> Option<u8> {
    let ((src, dst), (from, to)) = (plain.hosts(), plain.ports());
    let may_have = |proto| ports.may_have(proto, (Addr::v4(src), from), (Addr::v4(dst), to));
    let is_hubs = if plain.protocol() == protocol::TCP {
        may_have(Proto::Tcp)
    } else {
        may_have(Proto::Udp)
            || hub::may_be_by_content(packet.data.get(LINK + 28..).unwrap_or_default())
    };
    (!is_hubs).then(|| owner_v4(src, dst, parts))
}

/// The same of any packet.
fn any(packet: &Packet<'_>, ports: &HubPorts, parts: usize) -> Option<u8> {
    let mut odd = false;
    let (link, data) = (packet.link_type.0, packet.data);
    let frame = gannet_wire::link_with(link, data, packet.wire_len, 0, &mut |_| odd = true);
    let frame = frame.ok().filter(|_| !odd)?;
    let Network::Ip(ip) = frame.network else { return None };
    let version = ip.first()? >> 4;
    let (pair, next, transport) = match version {
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
            ports.may_have(proto, (pair.0, port(0)), (pair.1, port(2)))
        })
    };
    let hubs = match next {
        protocol::TCP => may_be_hubs(Proto::Tcp),
        protocol::UDP => {
            let payload = transport.get(8..).unwrap_or_default();
            may_be_hubs(Proto::Udp) || hub::may_be_by_content(payload)
        }
        protocol::ICMP | protocol::ICMP6 => false,
        // Of IPv6, what stands first need not be what is inside, whatever its addresses.
        protocol::IPV4 | protocol::IPV6 | protocol::GRE | protocol::NONE => true,
        _ => version == 6,
    };
    (!hubs).then(|| owner(pair.0, pair.1, parts))
}

#[cfg(test)]
mod tests {
    use gannet_capture::Format;
    use gannet_capture::LinkType;

    use super::*;

    #[test]
    fn headers_behind_that_of_ipv6_are_the_hubs_whatever_its_addresses() {
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
            owner_of(&packet, &HubPorts::default(), 2).is_some()
        };
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
        for addr in [mapped, [0x20; 16]] {
            assert!(owned(protocol::ICMP6, addr));
            // A fragment, and destination options with the home address perhaps.
            assert!(
                !owned(protocol::IPV6_FRAGMENT, addr) && !owned(protocol::IPV6_DEST_OPTIONS, addr)
            );
        }
    }
}
