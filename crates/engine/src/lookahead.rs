//! Lookahead: prefetching the connections of the next packets.
//!
//! With many connections, finding one reads uncached memory. Looking at the addresses of a packet
//! some packets ahead gives the addresses of that memory early enough to prefetch it. Packets that
//! the lookahead does not parse are not prefetched. The dispatcher uses the same parser to assign
//! packets.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_capture::Packet;
use gannet_flow::Key;
use gannet_wire::link_type;
use gannet_wire::protocol;

/// Distance of the lookahead in packets: the time of a few cache misses.
pub(crate) const AHEAD: usize = 6;

/// Size of a hash table that stays in the second-level cache: below it, the lookahead costs more
/// than it gains.
pub(crate) const NEAR: usize = 512 << 10;

/// Bytes of an Ethernet header.
pub(crate) const LINK: usize = 14;

/// Bytes of an IPv4 header without options, and of ports.
const HEADERS: usize = 20 + 4;

/// The word of flags, fragment offset, time to live and protocol of an IPv4 header, masked to the
/// protocol.
const TCP: u32 = protocol::TCP as u32;
const UDP: u32 = protocol::UDP as u32;

/// The headers of a plain TCP or UDP packet over IPv4 over Ethernet.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a>(&'a [u8; LINK + HEADERS]);

impl<'a> Plain<'a> {
    /// The headers of a packet, if it is plain.
    #[inline]
    pub(crate) fn of(packet: &Packet<'a>) -> Option<Self> {
        let head: &[u8; LINK + HEADERS] = packet.data.first_chunk()?;
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        // IPv4 with a header of 20 bytes, and no fragment; the time to live is masked.
        let is_plain = packet.link_type.0 == link_type::ETHERNET
            && word(12) & 0xffff_ff00 == 0x0800_4500
            && matches!(word(20) & 0x3fff_00ff, TCP | UDP);
        is_plain.then_some(Self(head))
    }

    /// The protocol above IP.
    #[inline]
    pub(crate) fn protocol(self) -> u8 {
        self.0[23]
    }

    /// The source and the destination address.
    #[inline]
    pub(crate) fn hosts(self) -> ([u8; 4], [u8; 4]) {
        let at = |at: usize| [self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]];
        (at(26), at(30))
    }

    /// The source and the destination port.
    #[inline]
    pub(crate) fn ports(self) -> (u16, u16) {
        let at = |at: usize| u16::from_be_bytes([self.0[at], self.0[at + 1]]);
        (at(34), at(36))
    }
}

/// The connection key of such a packet.
#[inline]
pub(crate) fn key(packet: &Packet<'_>) -> Option<Key> {
    let plain = Plain::of(packet)?;
    let ((src, dst), (orig_p, resp_p)) = (plain.hosts(), plain.ports());
    let id = ConnId { orig_h: Addr::v4(src), orig_p, resp_h: Addr::v4(dst), resp_p };
    Some(Key::new(&id, plain.protocol(), false))
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;
    use gannet_base::Time;
    use gannet_base::UidSource;
    use gannet_capture::Format;
    use gannet_capture::LinkType;

    use super::*;

    #[test]
    fn plain_headers_only() {
        let mut data = [0; LINK + HEADERS];
        data[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        data[23] = protocol::UDP;
        data[26..].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2, 0x04, 0xd2, 0, 53]);
        let look = |data: &[u8]| {
            key(&Packet {
                time: Time::ZERO,
                wire_len: data.len() as u32,
                link_type: LinkType(1),
                interface: 0,
                format: Format::Pcap,
                number: 1,
                data,
            })
        };
        let id = ConnId {
            orig_h: Addr::v4([192, 0, 2, 2]),
            orig_p: 53,
            resp_h: Addr::v4([192, 0, 2, 1]),
            resp_p: 1234,
        };
        let mut table = gannet_flow::Table::<()>::default();
        let conn = gannet_flow::Conn::new(
            UidSource::new(0).connection(1, 0),
            id,
            Proto::Udp,
            17,
            Time::ZERO,
        );
        let hash = table.hash(&Key::new(&id, 17, false));
        let place = table.insert(hash, gannet_flow::Slot::new(conn, None, (), 1, false));
        let key = look(&data).unwrap();
        assert_eq!(table.find(table.hash(&key), &key).map(|f| f.index), Some(place));
        assert!(look(&data[..LINK + HEADERS - 1]).is_none());
        for (at, byte) in [(12, 0x81), (14, 0x46), (20, 0x20), (23, 1)] {
            let mut odd = data;
            odd[at] = byte;
            assert!(look(&odd).is_none(), "{at}");
        }
    }
}
