//! Where a packet belongs: to the hub, or to the part that owns its pair of hosts.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_flow::Key;
use gannet_protocols::hub;
use gannet_wire::Ip;
use gannet_wire::protocol;

use crate::block::Found;
use crate::block::Handed;
use crate::block::Start;
use crate::shard::Shard;
use crate::tunnels::Encapsulation;

/// Which part of an analysis a shard is.
pub(crate) enum Role {
    /// All of it.
    Whole,
    /// The [hub](gannet_protocols::hub) and everything below connections; what belongs to pairs of
    /// hosts is handed over to the parts that own them.
    Hub(Box<Outbox>),
    /// Some pairs of hosts.
    Part,
}

/// What the hub hands over from one block of packets.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Parts that own pairs of hosts.
    pub(crate) parts: usize,
    /// Where the bytes of the block begin in memory, and how many there are.
    pub(crate) memory: (usize, usize),
    /// Index of the packet at hand in its block.
    pub(crate) index: u32,
    pub(crate) found: Found,
}

/// An IP packet from its first header on, as far as it was captured.
#[derive(Clone, Copy)]
pub(crate) struct Datagram<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) wire_len: u32,
}

/// The part that owns a pair of hosts, whoever sends.
#[inline]
pub(crate) fn owner(a: Addr, b: Addr, parts: usize) -> u8 {
    if let (Some(a), Some(b)) = (a.as_v4(), b.as_v4()) {
        return owner_v4(a, b, parts);
    }
    let fold = |a: Addr| {
        let n = u128::from_ne_bytes(a.octets());
        (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n >> 64) as u64
    };
    let (a, b) = (fold(a), fold(b));
    part_of(a.wrapping_add(b) ^ (a ^ b).rotate_left(32), parts)
}

/// The same of a pair of IPv4 hosts, by their bytes in order.
#[inline]
pub(crate) fn owner_v4(a: [u8; 4], b: [u8; 4], parts: usize) -> u8 {
    let (a, b) = (u32::from_ne_bytes(a), u32::from_ne_bytes(b));
    // Both together are different for nearly all pairs, and the same for both directions.
    part_of(u64::from(a.wrapping_add(b)) << 32 | u64::from(a ^ b), parts)
}

#[inline]
fn part_of(pair: u64, parts: usize) -> u8 {
    let mixed = u128::from(pair ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db;
    let hash = mixed as u64 ^ (mixed >> 64) as u64;
    ((u128::from(hash) * parts as u128) >> 64) as u8
}

impl Shard {
    /// Whether a packet's connection is of the hub, if it is dealt with here. If not, the packet
    /// is handed over to the part that owns its hosts. `payload` is a datagram's that
    /// [may be](hub::may_be_by_content) of the hub.
    #[inline]
    pub(crate) fn steer(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        payload: Option<&[u8]>,
        all: Datagram<'_>,
        around: &Encapsulation,
    ) -> Option<bool> {
        if matches!(self.role, Role::Part) {
            return Some(false);
        }
        let ports = &self.env.hub_ports;
        let may_be = payload.is_some() || ports.may_have_ports(proto, id.orig_p, id.resp_p);
        let is_hubs = may_be && self.is_of_hub(id, ip, proto, payload);
        if !is_hubs && matches!(self.role, Role::Hub(_)) {
            self.hand_over(ip, all, around);
            return None;
        }
        Some(is_hubs)
    }

    /// Whether a packet's connection is of the [hub](gannet_protocols::hub): by its ports, by what
    /// a datagram holds, or because it was announced there. The answer depends on this packet and
    /// on the hub alone. Most packets have ports of which that need not be asked.
    #[inline(never)]
    fn is_of_hub(&self, id: &ConnId, ip: &Ip<'_>, proto: Proto, payload: Option<&[u8]>) -> bool {
        let ends = [(id.orig_h, id.orig_p), (id.resp_h, id.resp_p)];
        payload.is_some_and(hub::is_by_content)
            || hub::is_by_port(proto, id.orig_p, id.resp_p)
            || self.env.hub_ports.may_have(proto, ends[0], ends[1])
                && self.is_known_or_announced(id, ip, proto)
    }

    /// Whether the hub has a connection, or one of its connections announced it.
    fn is_known_or_announced(&self, id: &ConnId, ip: &Ip<'_>, proto: Proto) -> bool {
        let announced = |id| self.env.expected_for(id, proto, true, self.now).is_some();
        let key = Key::new(id, ip.protocol, false).of_hub(true);
        self.table.look_up(&key).1.is_some() || announced(id) || announced(&id.flipped())
    }

    #[inline(never)]
    fn hand_over(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) {
        let (ordinal, step) = (self.next_ordinal(), self.step + 1);
        // What the hub does after this comes after what the other part does.
        self.set_step(step + 1);
        let Role::Hub(outbox) = &mut self.role else { return };
        let (memory, len) = outbox.memory;
        let at = all.bytes.as_ptr().addr().wrapping_sub(memory);
        let start = if at.saturating_add(all.bytes.len()) <= len {
            Start::InBlock(at)
        } else {
            outbox.found.own.extend_from_slice(all.bytes);
            Start::InOwn(outbox.found.own.len() - all.bytes.len())
        };
        let around = outbox.found.note_around(around);
        outbox.found.handed.push(Handed {
            index: outbox.index,
            part: owner(ip.src, ip.dst, outbox.parts),
            layers: self.layers,
            start,
            len: all.bytes.len(),
            wire_len: all.wire_len,
            ordinal,
            step,
            around,
        });
    }

    /// What another part handed over. Time has come to its packet already.
    pub(crate) fn take_over(&mut self, handed: &Handed, bytes: &[u8], around: &Encapsulation) {
        self.ordinal = handed.ordinal;
        self.layers = handed.layers;
        self.missing = 0;
        self.set_step(handed.step);
        let all = Datagram { bytes, wire_len: handed.wire_len };
        // What is odd of its IP header was told where it was read first.
        let Ok(ip) = gannet_wire::ip_with(bytes, handed.wire_len, false, &mut |_| {}) else {
            return;
        };
        match ip.protocol {
            protocol::TCP => self.tcp(&ip, all, around),
            protocol::UDP => self.udp(&ip, all, around),
            protocol::ICMP | protocol::ICMP6 => self.icmp(&ip, all, around),
            _ => {
                self.unknown(&ip, all, around);
                false
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_owner_and_all_parts_own_something() {
        let addr = |n: u32| Addr::v4(n.to_be_bytes());
        for parts in [1, 2, 7] {
            let mut owned = vec![0; parts];
            for n in 0..7_000 {
                let (a, b) = (addr(0x0a00_0000 + n), addr(0xc0a8_0001 + n % 16));
                let part = owner(a, b, parts);
                assert_eq!(part, owner(b, a, parts));
                let v4 = |a: Addr| a.as_v4().unwrap();
                assert_eq!(part, owner_v4(v4(a), v4(b), parts));
                owned[usize::from(part)] += 1;
            }
            let fair = 7_000 / parts;
            assert!(owned.iter().all(|n| n * 10 > fair * 9 && n * 10 < fair * 11), "{owned:?}");
        }
    }
}
