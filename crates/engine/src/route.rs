//! Routing: selects the global shard, or the shard that owns the packet's host pair.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_flow::Key;
use gannet_protocols::global;
use gannet_protocols::packet::events::PacketNotProcessed;
use gannet_wire::Ip;
use gannet_wire::protocol;

use crate::block::EventContext;
use crate::block::ExtractedPacket;
use crate::block::Start;
use crate::role::Role;
use crate::shard::Shard;
use crate::tunnels::Encapsulation;

/// The captured bytes of an IP packet, from its first header on.
#[derive(Clone, Copy)]
pub(crate) struct Captured<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) wire_len: u32,
}

/// The shard that owns a host pair, the same for both directions.
#[inline]
pub(crate) fn owner(a: Addr, b: Addr, shards: usize) -> u8 {
    if let (Some(a), Some(b)) = (a.as_v4(), b.as_v4()) {
        return owner_v4(a, b, shards);
    }
    let fold = |a: Addr| {
        let n = u128::from_ne_bytes(a.octets());
        (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n >> 64) as u64
    };
    let (a, b) = (fold(a), fold(b));
    shard_of(a.wrapping_add(b) ^ (a ^ b).rotate_left(32), shards)
}

/// Like [`owner`], for a pair of IPv4 addresses as bytes.
#[inline]
pub(crate) fn owner_v4(a: [u8; 4], b: [u8; 4], shards: usize) -> u8 {
    let (a, b) = (u32::from_ne_bytes(a), u32::from_ne_bytes(b));
    // Sum and XOR together differ for nearly all pairs and are symmetric.
    shard_of(u64::from(a.wrapping_add(b)) << 32 | u64::from(a ^ b), shards)
}

#[inline]
fn shard_of(pair: u64, shards: usize) -> u8 {
    let mixed = u128::from(pair ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db;
    let hash = mixed as u64 ^ (mixed >> 64) as u64;
    ((u128::from(hash) * shards as u128) >> 64) as u8
}

impl Shard {
    /// If this shard must process the packet's connection, returns whether the global shard owns
    /// the connection. Otherwise passes the packet to the shard that owns its hosts, and returns
    /// `None`. `payload` is that of a datagram that [may belong](global::may_be_by_content) to the
    /// global shard.
    #[inline]
    pub(crate) fn route(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        payload: Option<&[u8]>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> Option<bool> {
        if matches!(self.role, Role::HostPairs) {
            return Some(false);
        }
        let ports = &self.env.global_ports;
        let may_be = payload.is_some() || ports.may_have_ports(proto, id.orig_p, id.resp_p);
        let is_global = may_be && self.is_owned_by_global(id, ip, proto, payload);
        if !is_global && matches!(self.role, Role::Global(_)) {
            self.extract(ip, all, encapsulation);
            return None;
        }
        Some(is_global)
    }

    /// Whether the [global shard](gannet_protocols::global) owns a packet's connection: by its
    /// ports, by the contents of a datagram, or because the connection was announced. The result
    /// depends only on this packet and on the state of the global shard. For most packets, the
    /// ports decide at once.
    #[inline(never)]
    fn is_owned_by_global(
        &self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        payload: Option<&[u8]>,
    ) -> bool {
        let ends = [(id.orig_h, id.orig_p), (id.resp_h, id.resp_p)];
        payload.is_some_and(global::is_by_content)
            || global::is_by_port(proto, id.orig_p, id.resp_p)
            || self.env.global_ports.may_have(proto, ends[0], ends[1])
                && self.is_known_or_announced(id, ip, proto)
    }

    /// Whether the global shard has the connection, or one of its connections announced it.
    fn is_known_or_announced(&self, id: &ConnId, ip: &Ip<'_>, proto: Proto) -> bool {
        let announced = |id| self.env.expected_for(id, proto, true, self.now).is_some();
        let key = Key::new(id, ip.protocol, false).of_global(true).of_vlans(self.vlans());
        self.table.look_up(&key).1.is_some() || announced(id) || announced(&id.flipped())
    }

    #[inline(never)]
    fn extract(&mut self, ip: &Ip<'_>, all: Captured<'_>, encapsulation: &Encapsulation) {
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.index.mark(self.packet_number);
        }
        let (ordinal, step) = (self.next_ordinal(), self.step + 1);
        // Further steps of the global shard come after those of the other shard.
        self.set_step(step + 1);
        let Role::Global(outbox) = &mut self.role else { return };
        let (memory, len) = outbox.block_memory;
        let at = all.bytes.as_ptr().addr().wrapping_sub(memory);
        let start = if at.saturating_add(all.bytes.len()) <= len {
            Start::InBlock(at)
        } else {
            outbox.extracted.bytes.extend_from_slice(all.bytes);
            Start::InExtracted(outbox.extracted.bytes.len() - all.bytes.len())
        };
        let encapsulation = outbox.extracted.store_encapsulation(encapsulation);
        if self.env.logs.events.any() {
            let flags = self.reassembled.flags.take();
            outbox.extracted.event_contexts.push(EventContext { link: self.link, flags });
            // Records the encapsulation, so that the merge can decide whether a lookup by a handler
            // shows the outer connection in its final state.
            if encapsulation.is_some() {
                self.env.logs.events.record_end();
            }
        }
        outbox.extracted.packets.push(ExtractedPacket {
            index: outbox.index,
            shard: owner(ip.src, ip.dst, outbox.shards),
            layers: self.layers,
            start,
            len: all.bytes.len(),
            wire_len: all.wire_len,
            ordinal,
            step,
            encapsulation,
        });
    }

    /// Processes a packet that the global shard extracted. Time was advanced to it before.
    pub(crate) fn process_extracted(
        &mut self,
        packet: &ExtractedPacket,
        bytes: &[u8],
        encapsulation: &Encapsulation,
        context: Option<&EventContext>,
    ) {
        if let Some(context) = context {
            self.link = context.link;
            self.reassembled.flags = context.flags;
        }
        self.ordinal = packet.ordinal;
        self.layers = packet.layers;
        self.missing = 0;
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.index.mark(self.packet_number);
        }
        self.set_step(packet.step);
        let all = Captured { bytes, wire_len: packet.wire_len };
        // The global shard reported the weirds of the IP header.
        let Ok(ip) = gannet_wire::ip(bytes, packet.wire_len, false) else { return };
        match ip.protocol {
            protocol::TCP => self.tcp::<true>(&ip, all, encapsulation),
            protocol::UDP => self.udp::<true>(&ip, all, encapsulation),
            protocol::ICMP | protocol::ICMP6 => self.icmp(&ip, all, encapsulation),
            _ => {
                self.unknown(&ip, all, encapsulation);
                false
            }
        };
        self.reassembled.clear_flags();
        if std::mem::take(&mut self.is_taken)
            && self.env.logs.events.wants::<PacketNotProcessed<'_>>()
        {
            self.env.logs.events.record_taken();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_owner_and_all_shards_own_pairs() {
        let addr = |n: u32| Addr::v4(n.to_be_bytes());
        for shards in [1, 2, 7] {
            let mut owned = vec![0; shards];
            for n in 0..7_000 {
                let (a, b) = (addr(0x0a00_0000 + n), addr(0xc0a8_0001 + n % 16));
                let part = owner(a, b, shards);
                assert_eq!(part, owner(b, a, shards));
                let v4 = |a: Addr| a.as_v4().unwrap();
                assert_eq!(part, owner_v4(v4(a), v4(b), shards));
                owned[usize::from(part)] += 1;
            }
            let fair = 7_000 / shards;
            assert!(owned.iter().all(|n| n * 10 > fair * 9 && n * 10 < fair * 11), "{owned:?}");
        }
    }
}
