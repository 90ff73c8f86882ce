//! The packets of each connection, for an index.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Uid;
use gannet_wire::Ip;

/// Facts since they were last taken. The packets of one connection come in order.
#[derive(Clone, Debug, Default)]
pub struct PacketNotes {
    /// Packet numbers, each with a connection or tunnel that the packet belongs to.
    pub packets: Vec<(u64, Uid)>,
    /// New connections.
    pub begun: Vec<(Uid, ConnId, Proto)>,
    /// ICMP errors by packet number, with the endpoints of the quoted packet: its sender is the
    /// originator.
    pub errors: Vec<(u64, ConnId, Proto)>,
    /// Packets that complete a datagram, each with an earlier fragment.
    pub pieces: Vec<(u64, u64)>,
    /// Fragments that were forgotten before their datagram was complete: if it is completed later, they are missing.
    pub forgotten: u64,
}

/// Receives notes from several threads.
pub trait PacketIndex: Send + Sync + fmt::Debug {
    /// Takes the contents and leaves the memory.
    fn take(&self, notes: &mut PacketNotes);
}

/// Learns of connections when they begin, from several threads: before any row of theirs is written.
pub trait Births: Send + Sync + fmt::Debug {
    /// The packet with this number began a connection.
    fn began(&self, packet: u64, uid: Uid);
}

/// Notes are passed on at this number.
const MANY: usize = 4 << 10;
/// Most datagrams whose fragments are remembered.
const MAX_DATAGRAMS: usize = 16 << 10;
/// Most fragments of one of them.
const MAX_PIECES: usize = 1 << 10;

/// The notes of one shard.
pub(crate) struct Noting {
    index: Arc<dyn PacketIndex>,
    notes: PacketNotes,
    /// Packet numbers of fragments by datagram.
    pieces: HashMap<Datagram, Vec<u64>>,
}

/// The fields that all fragments of a datagram share.
type Datagram = (Addr, Addr, u32, u8);

impl Noting {
    pub(crate) fn new(index: Arc<dyn PacketIndex>) -> Self {
        Self { index, notes: PacketNotes::default(), pieces: HashMap::new() }
    }

    /// Records a new connection.
    pub(crate) fn begin(&mut self, uid: Uid, id: ConnId, proto: Proto) {
        self.notes.begun.push((uid, id, proto));
    }

    /// Records that the current packet belongs to a connection or tunnel.
    #[inline]
    pub(crate) fn packet(&mut self, number: u64, uid: Uid) {
        if self.notes.packets.last() == Some(&(number, uid)) {
            return;
        }
        self.notes.packets.push((number, uid));
        if self.notes.packets.len() >= MANY {
            self.hand_on();
        }
    }

    /// Records an ICMP message that quotes a packet.
    pub(crate) fn error(&mut self, number: u64, quoted: &[u8]) {
        if let Some((id, proto)) = quoted_id(quoted) {
            self.notes.errors.push((number, id, proto));
        }
    }

    /// Records that the current packet is a fragment.
    pub(crate) fn piece(&mut self, number: u64, ip: &Ip<'_>) {
        let Some(datagram) = datagram(ip) else { return };
        if self.pieces.len() >= MAX_DATAGRAMS && !self.pieces.contains_key(&datagram) {
            // Nearly all belong to datagrams that were never completed.
            let pieces = self.pieces.drain().map(|(_, pieces)| pieces.len() as u64);
            self.notes.forgotten += pieces.sum::<u64>();
        }
        let pieces = self.pieces.entry(datagram).or_default();
        if pieces.len() < MAX_PIECES {
            pieces.push(number);
        } else {
            self.notes.forgotten += 1;
        }
    }

    /// Records that the current packet completes its datagram.
    pub(crate) fn complete(&mut self, number: u64, ip: &Ip<'_>) {
        let pieces = datagram(ip).and_then(|d| self.pieces.remove(&d)).unwrap_or_default();
        let others = pieces.into_iter().filter(|piece| *piece != number);
        self.notes.pieces.extend(others.map(|piece| (number, piece)));
    }

    /// Passes on the collected notes.
    pub(crate) fn hand_on(&mut self) {
        self.index.take(&mut self.notes);
        self.notes.packets.clear();
        self.notes.begun.clear();
        self.notes.errors.clear();
        self.notes.pieces.clear();
        self.notes.forgotten = 0;
    }
}

fn datagram(ip: &Ip<'_>) -> Option<Datagram> {
    let fragment = ip.fragment?;
    Some((ip.src, ip.dst, fragment.id, ip.protocol))
}

/// The endpoints of a quoted packet: its IP header and the first bytes of its transport.
fn quoted_id(quoted: &[u8]) -> Option<(ConnId, Proto)> {
    let (src, dst, protocol, transport) = match quoted.first()? >> 4 {
        4 => {
            let head: &[u8; 20] = quoted.first_chunk()?;
            let len = usize::from(head[0] & 15) * 4;
            let is_later_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x1fff != 0;
            if is_later_fragment {
                return None;
            }
            let (src, dst) = (Addr::from_slice(&head[12..16])?, Addr::from_slice(&head[16..20])?);
            (src, dst, head[9], quoted.get(len.max(20)..)?)
        }
        6 => {
            let head: &[u8; 40] = quoted.first_chunk()?;
            let (src, dst) = (Addr::from_slice(&head[8..24])?, Addr::from_slice(&head[24..])?);
            (src, dst, head[6], quoted.get(40..)?)
        }
        _ => return None,
    };
    let ports: &[u8; 4] = transport.first_chunk()?;
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    let proto = match protocol {
        gannet_wire::protocol::TCP => Proto::Tcp,
        gannet_wire::protocol::UDP => Proto::Udp,
        _ => return None,
    };
    Some((ConnId { orig_h: src, orig_p: port(0), resp_h: dst, resp_p: port(2) }, proto))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Taken(Mutex<(u64, usize)>);

    impl PacketIndex for Taken {
        fn take(&self, notes: &mut PacketNotes) {
            let mut taken = self.0.lock().unwrap();
            taken.0 += notes.forgotten;
            taken.1 += notes.pieces.len();
        }
    }

    /// The header of a fragment of the `n`-th datagram.
    fn fragment(n: u32) -> [u8; 28] {
        let mut packet = [0; 28];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&28_u16.to_be_bytes());
        packet[4..6].copy_from_slice(&(n as u16).to_be_bytes());
        // More fragments follow.
        packet[6] = 0x20;
        packet[8..10].copy_from_slice(&[64, 17]);
        packet[12..16].copy_from_slice(&[10, 0, (n >> 24) as u8, (n >> 16) as u8]);
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        packet
    }

    fn ip(packet: &[u8]) -> Ip<'_> {
        gannet_wire::ip(packet, packet.len() as u32, false).unwrap()
    }

    /// Fragments of `datagrams` datagrams, then the completion of each: all are either found or counted as forgotten.
    fn counts(datagrams: u32, pieces: u64) -> (u64, usize) {
        let taken = Arc::new(Taken::default());
        let index: Arc<dyn PacketIndex> = taken.clone();
        let mut noting = Noting::new(index);
        let mut number = 0;
        for n in 0..datagrams {
            for _ in 0..pieces {
                number += 1;
                noting.piece(number, &ip(&fragment(n)));
            }
        }
        for n in 0..datagrams {
            number += 1;
            noting.complete(number, &ip(&fragment(n)));
        }
        noting.hand_on();
        let (forgotten, found) = *taken.0.lock().unwrap();
        assert_eq!(forgotten + found as u64, u64::from(datagrams) * pieces);
        // What was handed on is counted once.
        noting.hand_on();
        assert_eq!(taken.0.lock().unwrap().0, forgotten);
        (forgotten, found)
    }

    #[test]
    fn fragments_that_are_forgotten_are_counted() {
        assert_eq!(counts(10, 2), (0, 20));
        assert_eq!(counts(1_000, 2), (0, 2_000));
        let left = 100_000 % MAX_DATAGRAMS;
        assert_eq!(counts(100_000, 1), (100_000 - left as u64, left));
        assert_eq!(counts(1, 10), (0, 10));
        assert_eq!(counts(1, 1_000), (0, 1_000));
        assert_eq!(counts(1, 100_000), (100_000 - MAX_PIECES as u64, MAX_PIECES));
    }
}
