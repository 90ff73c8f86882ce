//! Routing: the global shard, or the shard that owns the packet's host pair.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_flow::Key;
use gannet_protocols::global;
use gannet_protocols::packet::events::PacketNotProcessed;
use gannet_wire::Ip;
use gannet_wire::protocol;

use crate::block::ExtractedPacket;
use crate::block::Shown;
use crate::block::Start;
use crate::role::Role;
use crate::shard::Shard;
use crate::tunnels::Encapsulation;

/// An IP packet from its first header on, as captured.
#[derive(Clone, Copy)]
pub(crate) struct Captured<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) wire_len: u32,
}

/// The shard that owns a host pair, in either direction.
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

/// The same for a pair of IPv4 hosts, given as bytes.
#[inline]
pub(crate) fn owner_v4(a: [u8; 4], b: [u8; 4], shards: usize) -> u8 {
    let (a, b) = (u32::from_ne_bytes(a), u32::from_ne_bytes(b));
    // Sum and XOR together differ for nearly all pairs, and are equal for both directions.
    shard_of(u64::from(a.wrapping_add(b)) << 32 | u64::from(a ^ b), shards)
}

#[inline]
fn shard_of(pair: u64, shards: usize) -> u8 {
    let mixed = u128::from(pair ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db;
    let hash = mixed as u64 ^ (mixed >> 64) as u64;
    ((u128::from(hash) * shards as u128) >> 64) as u8
}

impl Shard {
    /// Whether the packet's connection is to be processed in this shard; returns whether the global
    /// shard owns it. Otherwise the packet is handed over to the shard that owns its hosts.
    /// `payload` is that of a datagram that [may be](global::may_be_by_content) the global shard's.
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
            self.hand_over(ip, all, encapsulation);
            return None;
        }
        Some(is_global)
    }

    /// Whether the [global shard](gannet_protocols::global) owns a packet's connection: by its ports,
    /// by the contents of a datagram, or because it was announced. The result depends only on this
    /// packet and the global shard. The ports of most packets decide at once.
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

    /// Whether the global shard has a connection, or one of its connections announced it.
    fn is_known_or_announced(&self, id: &ConnId, ip: &Ip<'_>, proto: Proto) -> bool {
        let announced = |id| self.env.expected_for(id, proto, true, self.now).is_some();
        let key = Key::new(id, ip.protocol, false).of_global(true).of_vlans(self.vlans());
        self.table.look_up(&key).1.is_some() || announced(id) || announced(&id.flipped())
    }

    #[inline(never)]
    fn hand_over(&mut self, ip: &Ip<'_>, all: Captured<'_>, encapsulation: &Encapsulation) {
        if let Some(noting) = &mut self.noting {
            noting.index.mark(self.packet_number);
        }
        let (ordinal, step) = (self.next_ordinal(), self.step + 1);
        // The global shard's further steps come after those of the other shard.
        self.set_step(step + 1);
        let Role::Global(outbox) = &mut self.role else { return };
        let (memory, len) = outbox.memory;
        let at = all.bytes.as_ptr().addr().wrapping_sub(memory);
        let start = if at.saturating_add(all.bytes.len()) <= len {
            Start::InBlock(at)
        } else {
            outbox.found.own.extend_from_slice(all.bytes);
            Start::InOwn(outbox.found.own.len() - all.bytes.len())
        };
        let encapsulation = outbox.found.note_encapsulation(encapsulation);
        if self.env.logs.events.any() {
            let flags = self.reassembled.flags.take();
            outbox.found.shown.push(Shown { link: self.link, flags });
            // The merge decides whether a lookup by a handler shows the outer connection as it is at the end.
            if encapsulation.is_some() {
                self.env.logs.events.record_end();
            }
        }
        outbox.found.handed.push(ExtractedPacket {
            index: outbox.index,
            part: owner(ip.src, ip.dst, outbox.shards),
            layers: self.layers,
            start,
            len: all.bytes.len(),
            wire_len: all.wire_len,
            ordinal,
            step,
            encapsulation,
        });
    }

    /// Processes a packet that the global shard handed over. Time has advanced to it already.
    pub(crate) fn take_over(
        &mut self,
        handed: &ExtractedPacket,
        bytes: &[u8],
        encapsulation: &Encapsulation,
        shown: Option<&Shown>,
    ) {
        if let Some(shown) = shown {
            self.link = shown.link;
            self.reassembled.flags = shown.flags;
        }
        self.ordinal = handed.ordinal;
        self.layers = handed.layers;
        self.missing = 0;
        if let Some(noting) = &mut self.noting {
            noting.index.mark(self.packet_number);
        }
        self.set_step(handed.step);
        let all = Captured { bytes, wire_len: handed.wire_len };
        // The weirds of its IP header were reported where it was read first.
        let Ok(ip) = gannet_wire::ip(bytes, handed.wire_len, false) else { return };
        match ip.protocol {
            protocol::TCP => self.tcp::<true>(&ip, all, encapsulation),
            protocol::UDP => self.udp::<true>(&ip, all, encapsulation),
            protocol::ICMP | protocol::ICMP6 => self.icmp(&ip, all, encapsulation),
            _ => {
                self.unknown(&ip, all, encapsulation);
                false
            }
        };
        self.reassembled.forget_flags();
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
    fn both_directions_have_one_owner_and_all_parts_own_something() {
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
