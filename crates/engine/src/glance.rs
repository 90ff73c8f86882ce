//! A glance at packets that are still to come.
//!
//! Finding a packet's connection reads memory that is in no cache, once there are many of them. A
//! glance at the addresses of a packet a few ahead tells what that memory will be, early enough for
//! it to come. Nothing is decided here: what a glance does not understand just comes later.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_capture::Packet;
use gannet_flow::Key;
use gannet_wire::link_type;
use gannet_wire::protocol;

/// Packets between a glance and its packet's turn: the time of a few cache misses.
pub(crate) const AHEAD: usize = 6;

/// Bytes of the headers that a glance reads: Ethernet, IPv4 without options, and ports.
const HEADERS: usize = 14 + 20 + 4;

/// The key that a packet will be looked up by, if it is plain TCP or UDP over IPv4 over Ethernet.
#[inline]
pub(crate) fn key(packet: &Packet<'_>) -> Option<Key> {
    let head: &[u8; HEADERS] = packet.data.first_chunk()?;
    let fragment = u16::from_be_bytes([head[20], head[21]]) & 0x3fff != 0;
    let plain = packet.link_type.0 == link_type::ETHERNET
        && head[12..15] == [0x08, 0x00, 0x45]
        && !fragment
        && matches!(head[23], protocol::TCP | protocol::UDP);
    if !plain {
        return None;
    }
    Some(v4_key(&head[14..]))
}

/// The key of an IP packet, if it is plain TCP or UDP over IPv4.
#[inline]
pub(crate) fn ip_key(ip: &[u8]) -> Option<Key> {
    let plain =
        ip.len() >= HEADERS - 14 && ip[0] == 0x45 && matches!(ip[9], protocol::TCP | protocol::UDP);
    plain.then(|| v4_key(ip))
}

/// The key of an IPv4 packet without options that has ports.
#[inline]
fn v4_key(head: &[u8]) -> Key {
    let addr = |at: usize| Addr::v4([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let id = ConnId { orig_h: addr(12), orig_p: port(20), resp_h: addr(16), resp_p: port(22) };
    Key::new(&id, head[9], false)
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;
    use gannet_base::Time;
    use gannet_base::UidSource;
    use gannet_capture::LinkType;

    use super::*;

    #[test]
    fn plain_headers_only() {
        let mut data = [0; HEADERS];
        data[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        data[23] = protocol::UDP;
        data[26..].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2, 0x04, 0xd2, 0, 53]);
        let look = |data: &[u8]| {
            key(&Packet {
                time: Time::ZERO,
                wire_len: data.len() as u32,
                link_type: LinkType(1),
                interface: 0,
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
        assert_eq!(table.find(table.hash(&key), &key), Some(place));
        assert!(look(&data[..HEADERS - 1]).is_none());
        for (at, byte) in [(12, 0x81), (14, 0x46), (20, 0x20), (23, 1)] {
            let mut odd = data;
            odd[at] = byte;
            assert!(look(&odd).is_none(), "{at}");
        }
    }
}
