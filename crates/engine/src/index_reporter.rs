//! Reports the packets of each connection to an index.

use std::collections::HashMap;
use std::fmt;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_wire::Ip;

/// An index of the packets of connections.
pub trait PacketIndex: Send + Sync + fmt::Debug {
    /// Creates the receiver for one more shard.
    fn shard(&self) -> Box<dyn ShardIndex>;
}

/// Receives what one shard reports. Packet numbers never decrease.
pub trait ShardIndex: Send + fmt::Debug {
    /// A new connection uses this slot of the connection table; the previous connection in the slot
    /// has ended.
    fn begin(&mut self, slot: u32, uid: Uid, id: ConnId, proto: Proto);
    /// A packet belongs to the connection in a slot.
    fn packet(&mut self, number: u64, slot: u32);
    /// A packet belongs to a tunnel that has no connection.
    fn tunnel(&mut self, number: u64, uid: Uid);
    /// A packet may complete a datagram, in this shard or another one; called before or after the
    /// packet is reported for that datagram.
    fn mark(&mut self, number: u64);
    /// The packet `number` completes a datagram that the earlier packet `piece` is a fragment of.
    fn piece(&mut self, number: u64, piece: u64);
    /// This number of fragments was forgotten before their datagrams were complete. If a datagram
    /// is completed later, its forgotten fragments are missing from the index.
    fn forget(&mut self, fragments: u64);
    /// A packet is an ICMP error that quotes a packet with these endpoints; the sender of the
    /// quoted packet is the originator.
    fn error(&mut self, number: u64, id: ConnId, proto: Proto);
    /// The analysis has ended.
    fn finish(&mut self);
}

/// Receives the start of each connection, from several threads, before any row of the connection is
/// written.
pub trait ConnectionObserver: Send + Sync + fmt::Debug {
    /// The packet with this number began a connection.
    fn connection_began(&self, packet: u64, uid: Uid);
}

/// Maximum number of datagrams whose fragments are remembered.
const MAX_DATAGRAMS: usize = 16 << 10;
/// Maximum number of remembered fragments of one datagram.
const MAX_PIECES: usize = 1 << 10;

/// Reports the packets of one shard to an index.
pub(crate) struct IndexReporter {
    pub(crate) index: Box<dyn ShardIndex>,
    /// Packet numbers of the fragments of incomplete datagrams.
    pieces: HashMap<Datagram, Vec<u64>, KeyedHash>,
}

/// The fields that all fragments of a datagram share: source, destination, and identification
/// combined with protocol.
type Datagram = (u128, u128, u64);

impl IndexReporter {
    pub(crate) fn new(index: &dyn PacketIndex) -> Self {
        Self { index: index.shard(), pieces: HashMap::default() }
    }

    /// Records an ICMP message that quotes a packet.
    pub(crate) fn error(&mut self, number: u64, quoted: &[u8]) {
        if let Some((id, proto)) = quoted_id(quoted) {
            self.index.error(number, id, proto);
        }
    }

    /// Records that the current packet is a fragment.
    pub(crate) fn piece(&mut self, number: u64, ip: &Ip<'_>) {
        let Some(datagram) = datagram(ip) else { return };
        if self.pieces.len() >= MAX_DATAGRAMS && !self.pieces.contains_key(&datagram) {
            // Nearly all of these datagrams will never be completed.
            let pieces = self.pieces.drain().map(|(_, pieces)| pieces.len() as u64);
            self.index.forget(pieces.sum());
        }
        let pieces = self.pieces.entry(datagram).or_default();
        if pieces.len() < MAX_PIECES {
            pieces.push(number);
        } else {
            self.index.forget(1);
        }
    }

    /// Records that the current packet completes its datagram.
    pub(crate) fn complete(&mut self, number: u64, ip: &Ip<'_>) {
        self.index.mark(number);
        let pieces = datagram(ip).and_then(|d| self.pieces.remove(&d)).unwrap_or_default();
        let others = pieces.into_iter().filter(|piece| *piece != number);
        others.for_each(|piece| self.index.piece(number, piece));
    }
}

fn datagram(ip: &Ip<'_>) -> Option<Datagram> {
    let fragment = ip.fragment?;
    let number = |addr: Addr| u128::from_ne_bytes(addr.octets());
    Some((number(ip.src), number(ip.dst), u64::from(fragment.id) << 8 | u64::from(ip.protocol)))
}

/// The endpoints of a quoted packet: its IP header and the first bytes of its transport header.
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
    use std::sync::Arc;
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Taken(Arc<Mutex<(u64, usize)>>);

    impl PacketIndex for Taken {
        fn shard(&self) -> Box<dyn ShardIndex> {
            Box::new(self.clone())
        }
    }

    impl ShardIndex for Taken {
        fn begin(&mut self, _: u32, _: Uid, _: ConnId, _: Proto) {}
        fn packet(&mut self, _: u64, _: u32) {}
        fn tunnel(&mut self, _: u64, _: Uid) {}
        fn mark(&mut self, _: u64) {}

        fn piece(&mut self, _: u64, _: u64) {
            self.0.lock().unwrap().1 += 1;
        }

        fn forget(&mut self, fragments: u64) {
            self.0.lock().unwrap().0 += fragments;
        }

        fn error(&mut self, _: u64, _: ConnId, _: Proto) {}
        fn finish(&mut self) {}
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

    /// Sends fragments of `datagrams` datagrams, then completes each datagram. Returns the number
    /// of forgotten and of found fragments.
    fn counts(datagrams: u32, pieces: u64) -> (u64, usize) {
        let taken = Taken::default();
        let mut index_reporter = IndexReporter::new(&taken);
        let mut number = 0;
        for n in 0..datagrams {
            for _ in 0..pieces {
                number += 1;
                index_reporter.piece(number, &ip(&fragment(n)));
            }
        }
        for n in 0..datagrams {
            number += 1;
            index_reporter.complete(number, &ip(&fragment(n)));
        }
        let (forgotten, found) = *taken.0.lock().unwrap();
        assert_eq!(forgotten + found as u64, u64::from(datagrams) * pieces);
        (forgotten, found)
    }

    #[test]
    fn forgotten_fragments_are_counted() {
        assert_eq!(counts(10, 2), (0, 20));
        assert_eq!(counts(1_000, 2), (0, 2_000));
        let left = 100_000 % MAX_DATAGRAMS;
        assert_eq!(counts(100_000, 1), (100_000 - left as u64, left));
        assert_eq!(counts(1, 10), (0, 10));
        assert_eq!(counts(1, 1_000), (0, 1_000));
        assert_eq!(counts(1, 100_000), (100_000 - MAX_PIECES as u64, MAX_PIECES));
    }
}
