//! Lookahead: prefetching the connections of the next packets.
//!
//! With many connections, a lookup reads uncached memory. The lookahead computes the connection key
//! of a packet some packets ahead and prefetches that memory. Packets without an outline are not
//! prefetched.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_capture::Packet;
use gannet_flow::Key;
use gannet_wire::Outline;

/// Distance of the lookahead in packets: about the duration of a few cache misses.
pub(crate) const AHEAD: usize = 6;

/// Size in bytes of a hash table that fits into the second-level cache: below it, the lookahead
/// costs more than it saves.
pub(crate) const NEAR: usize = 512 << 10;

/// The connection key of a packet, if the packet has an outline.
#[inline]
pub(crate) fn key(packet: &Packet<'_>) -> Option<Key> {
    let outline = Outline::of(packet.link_type.0, packet.data)?;
    let ((src, dst), (orig_p, resp_p)) = (outline.hosts(), outline.ports());
    let id = ConnId { orig_h: Addr::v4(src), orig_p, resp_h: Addr::v4(dst), resp_p };
    Some(Key::new(&id, outline.protocol(), false))
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
    fn the_key_is_that_of_the_connection() {
        let mut data = [0; 14 + 20 + 4];
        data[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        data[23] = 17;
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
        let index = table.insert(hash, gannet_flow::Slot::new(conn, None, (), 1, false));
        let key = look(&data).unwrap();
        assert_eq!(table.find(table.hash(&key), &key).map(|f| f.index), Some(index));
        assert!(look(&data[1..]).is_none());
    }
}
