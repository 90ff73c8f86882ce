//! Restores packets to their form on the wire: VLAN tags and checksums that are offloaded to the network card.

use gannet_base::Addr;
use gannet_wire::checksum::Sum;
use gannet_wire::protocol;

/// Size of a VLAN tag, in bytes.
pub const TAG: usize = 4;
/// Size of both addresses of an Ethernet frame, in bytes.
const ADDRESSES: usize = 12;

/// Restores a VLAN tag that the kernel stripped from a frame. `buffer` begins [`TAG`] bytes before the frame; the frame
/// with its tag begins at the start of `buffer`. Returns `false` if the frame is too short.
pub fn restore_tag(buffer: &mut [u8], protocol: u16, tag: u16) -> bool {
    if buffer.len() < TAG + ADDRESSES {
        return false;
    }
    buffer.copy_within(TAG..TAG + ADDRESSES, 0);
    let [a, b] = protocol.to_be_bytes();
    let [c, d] = tag.to_be_bytes();
    if let Some(to) = buffer.get_mut(ADDRESSES..ADDRESSES + TAG) {
        to.copy_from_slice(&[a, b, c, d]);
    }
    true
}

/// Computes the checksum of a TCP segment or UDP datagram, which the kernel left to the network card. It supports
/// Ethernet frames with up to two VLAN tags, and plain IP packets; other frames, fragments and truncated frames are not
/// changed. Returns whether a checksum was written.
pub fn fill_checksum(frame: &mut [u8], is_ethernet: bool) -> bool {
    compute(frame, is_ethernet).is_some()
}

fn compute(frame: &mut [u8], is_ethernet: bool) -> Option<()> {
    let start = if is_ethernet { network(frame)? } else { 0 };
    let ip = frame.get_mut(start..)?;
    let (source, target, next, from, to) = match ip.first()? >> 4 {
        4 => {
            let head: &[u8; 20] = ip.first_chunk()?;
            let len = usize::from(head[0] & 15) * 4;
            let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
            // The length field is 0 if the packet is too long for it, because the kernel joined segments.
            let total = if total == 0 { ip.len() } else { total };
            let is_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
            if is_fragment || len < 20 {
                return None;
            }
            let source = Addr::from_slice(&head[12..16])?;
            (source, Addr::from_slice(&head[16..])?, head[9], len, total)
        }
        6 => {
            let head: &[u8; 40] = ip.first_chunk()?;
            let total = 40 + usize::from(u16::from_be_bytes([head[4], head[5]]));
            let total = if total == 40 { ip.len() } else { total };
            (Addr::from_slice(&head[8..24])?, Addr::from_slice(&head[24..])?, head[6], 40, total)
        }
        _ => return None,
    };
    let at = match next {
        protocol::TCP => 16,
        protocol::UDP => 6,
        _ => return None,
    };
    let transport = ip.get_mut(from..to)?;
    transport.get_mut(at..at + 2)?.fill(0);
    let mut sum = Sum::default();
    sum.add_pseudo(source, target, next, u32::try_from(to - from).ok()?);
    sum.add(transport);
    let mut checksum = sum.checksum();
    if next == protocol::UDP && checksum == [0, 0] {
        // Zero stands for no checksum.
        checksum = [0xff, 0xff];
    }
    transport.get_mut(at..at + 2)?.copy_from_slice(&checksum);
    Some(())
}

/// Offset of the IP packet in an Ethernet frame.
fn network(frame: &[u8]) -> Option<usize> {
    let mut at = ADDRESSES;
    for _ in 0..3 {
        let kind = frame.get(at..)?.first_chunk().map(|k| u16::from_be_bytes(*k))?;
        match kind {
            0x8100 | 0x88a8 | 0x9100 => at += TAG,
            0x0800 | 0x86dd => return Some(at + 2),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use gannet_wire::Checksum;

    use super::*;

    /// An Ethernet frame with a UDP datagram over IPv4, whose checksum is incomplete.
    fn datagram() -> Vec<u8> {
        let mut frame = vec![1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0];
        frame.extend([0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 2]);
        frame.extend([4, 210, 0, 53, 0, 11, 0xab, 0xcd, b'a', b'b', b'c']);
        frame
    }

    fn checked(ip: &[u8]) -> Checksum {
        let ip = gannet_wire::ip(ip, ip.len() as u32, false).unwrap();
        gannet_wire::checksum::udp(&ip)
    }

    #[test]
    fn a_checksum_is_filled_in() {
        let mut frame = datagram();
        assert_eq!(checked(&frame[14..]), Checksum::Invalid);
        assert!(fill_checksum(&mut frame, true));
        assert_eq!(checked(&frame[14..]), Checksum::Valid);
        let mut plain = datagram().split_off(14);
        assert!(fill_checksum(&mut plain, false));
        assert_eq!(plain, frame[14..]);
    }

    #[test]
    fn a_tag_is_restored() {
        let frame = datagram();
        let mut buffer = [&[9, 9, 9, 9][..], &frame].concat();
        assert!(restore_tag(&mut buffer, 0x8100, 0x2064));
        assert_eq!(buffer[..12], frame[..12]);
        assert_eq!(buffer[12..18], [0x81, 0, 0x20, 0x64, 8, 0]);
        assert!(fill_checksum(&mut buffer, true));
        assert_eq!(checked(&buffer[18..]), Checksum::Valid);
        assert!(!restore_tag(&mut [0; 15], 0x8100, 1));
    }

    #[test]
    fn truncated_frames_and_fragments_are_not_changed() {
        for len in 0..datagram().len() {
            let mut frame = datagram();
            frame.truncate(len);
            let before = frame.clone();
            assert!(!fill_checksum(&mut frame, true) && frame == before, "{len}");
        }
        let mut fragment = datagram();
        fragment[20] = 0x20;
        assert!(!fill_checksum(&mut fragment, true));
    }
}
