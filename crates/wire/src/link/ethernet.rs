//! Ethernet II, IEEE 802.3 and Cisco FabricPath.

use super::Frame;
use super::IPV4;
use super::IPV6;
use super::Kind;
use super::Network;
use super::Step;
use super::mac;
use super::network;
use crate::bytes;
use crate::ip::Ip;
use crate::ipv4;
use crate::weird::Weird;

pub(super) const SOURCE: &str = "ETHERNET";
/// Bytes of the header.
const LEN: usize = 14;
/// Frames must be longer than this.
const TOO_SHORT: usize = 16;
/// Bytes that FabricPath puts before the frame proper.
const FABRIC_PATH_LEN: usize = 16;
const FABRIC_PATH: u16 = 0x8903;

mod field {
    pub(super) const DST: usize = 0;
    pub(super) const SRC: usize = 6;
    pub(super) const ETHERTYPE: usize = 12;
}

/// IP right after the Ethernet header; `None` for everything else.
#[inline]
pub(super) fn direct(data: &[u8], wire_len: u32, depth: u8) -> Option<Frame<'_>> {
    if data.len() <= TOO_SHORT {
        return None;
    }
    let (head, inner) = data.split_first_chunk::<LEN>()?;
    if !matches!(bytes::u16_at(head, field::ETHERTYPE), IPV4 | IPV6) {
        return None;
    }
    Some(Frame {
        network: Network::Ip(inner),
        wire_len: wire_len.saturating_sub(LEN as u32),
        depth: depth + 2,
        vlan: None,
        inner_vlan: None,
        src_mac: mac(head, field::SRC),
        dst_mac: mac(head, field::DST),
    })
}

/// Layers to the IP header of a [plain](plain_ipv4) frame, both counted.
pub const PLAIN_LAYERS: u8 = 2;

/// The datagram of an Ethernet frame that carries plain IPv4, and its length from its header on:
/// the result of [`link`](crate::link()) and [`ip`](crate::ip()) in one step. `None` for everything
/// else. Without `verify_checksum` the header's checksum is not checked.
#[inline]
pub fn plain_ipv4(data: &[u8], wire_len: u32, verify_checksum: bool) -> Option<(Ip<'_>, &[u8])> {
    if data.len() <= TOO_SHORT {
        return None;
    }
    let (head, inner) = data.split_first_chunk::<LEN>()?;
    if bytes::u16_at(head, field::ETHERTYPE) != IPV4 {
        return None;
    }
    let ip = ipv4::plain(inner, wire_len.checked_sub(LEN as u32)?, verify_checksum)?;
    Some((ip, inner))
}

pub(super) fn step<'a>(mut data: &'a [u8], frame: &mut Frame<'a>) -> Result<Step<'a>, Weird> {
    if data.len() <= TOO_SHORT {
        return Err(Weird::packet("truncated_ethernet_frame", SOURCE));
    }
    if bytes::u16_at(data, field::ETHERTYPE) == FABRIC_PATH {
        if data.len() <= FABRIC_PATH_LEN + LEN {
            return Err(Weird::packet("truncated_link_header_cfp", SOURCE));
        }
        data = bytes::from(data, FABRIC_PATH_LEN);
    }
    frame.dst_mac = mac(data, field::DST);
    frame.src_mac = mac(data, field::SRC);
    let kind = bytes::u16_at(data, field::ETHERTYPE);
    let inner = bytes::from(data, LEN);
    match kind {
        1536.. => Ok(ethertype(kind, inner)),
        0..=1500 => {
            ieee8023(kind, inner).ok_or_else(|| Weird::packet("truncated_ethernet_frame", SOURCE))
        }
        _ => Err(Weird::packet("undefined_ether_type", SOURCE)),
    }
}

fn ethertype(kind: u16, inner: &[u8]) -> Step<'_> {
    match kind {
        0x8100 | 0x88a8 | 0x9100 => Step::Into(Kind::Vlan, inner),
        _ => tagged(kind, inner),
    }
}

/// What may follow the Ethernet header or a VLAN tag, other than (further) tags.
pub(super) fn tagged(kind: u16, inner: &[u8]) -> Step<'_> {
    match kind {
        0x8847 => Step::Into(Kind::Mpls, inner),
        0x8864 => Step::Into(Kind::Pppoe, inner),
        0x88e7 => Step::Into(Kind::Pbb, inner),
        0x8926 => Step::Into(Kind::VnTag, inner),
        _ => network(kind, inner),
    }
}

/// IEEE 802.3: a length in place of the EtherType, and a service access point in the first two
/// bytes. `None` if those are missing.
pub(super) fn ieee8023(len: u16, inner: &[u8]) -> Option<Step<'_>> {
    let access = inner.first_chunk::<2>()?;
    let inner = bytes::cut(inner, usize::from(len));
    Some(match access {
        [0xaa, 0xaa] => Step::Into(Kind::Snap, inner),
        [0xff, 0xff] => Step::Into(Kind::Novell, inner),
        _ => Step::Into(Kind::Llc, inner),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;

    fn frame(ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
        let mut f = vec![1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2];
        f.extend_from_slice(&ethertype);
        f.extend_from_slice(payload);
        f
    }

    proptest::proptest! {
        /// A plain datagram reads as it does layer by layer, without a weird.
        #[test]
        fn plain_as_layer_by_layer(
            version in proptest::sample::select(vec![0x45_u8, 0x46, 0x55]),
            len in proptest::sample::select(vec![0_u16, 19, 20, 21, 28, 40, 60]),
            fragment in proptest::sample::select(vec![0_u16, 0x4000, 0x2000, 7]),
            ethertype in proptest::sample::select(vec![[8_u8, 0], [8, 6]]),
            mut rest in proptest::collection::vec(0_u8.., 0..60),
            wire_len in 0_u32..100,
            verify: bool,
        ) {
            let mut f = frame(ethertype, &[version, 0]);
            f.extend_from_slice(&len.to_be_bytes());
            f.extend_from_slice(&[0, 1]);
            f.extend_from_slice(&fragment.to_be_bytes());
            f.append(&mut rest);
            if let Some((ip, bytes)) = plain_ipv4(&f, wire_len, verify) {
                let frame = link(1, &f, wire_len).unwrap();
                let mut odd = 0;
                let same = crate::ip_with(bytes, frame.wire_len, verify, &mut |_| odd += 1).unwrap();
                proptest::prop_assert_eq!((frame.network, frame.depth), (Network::Ip(bytes), PLAIN_LAYERS));
                proptest::prop_assert_eq!((ip, odd), (same, 0));
            }
        }
    }

    #[test]
    fn plain_frames_are_taken() {
        let mut f = frame([8, 0], &[0x45, 0, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1]);
        f.extend_from_slice(&[192, 0, 2, 2, 0, 53, 4, 210, 0, 8, 0, 0]);
        let (ip, bytes) = plain_ipv4(&f, 42, false).unwrap();
        assert_eq!((ip.protocol, ip.payload.len(), bytes.len()), (17, 8, 28));
        assert!(plain_ipv4(&f, 42, true).is_none(), "a wrong checksum");
        assert!(plain_ipv4(&f, 41, false).is_none(), "shorter than it says");
    }

    #[test]
    fn ip_and_arp() {
        let f = frame([8, 0], &[0x45; 30]);
        let v = link(1, &f, 80).unwrap();
        assert_eq!((v.network, v.wire_len), (Network::Ip(&[0x45; 30]), 66));
        assert_eq!((v.dst_mac, v.src_mac), (Some([1; 6]), Some([2; 6])));
        let f = frame([8, 6], &[7; 28]);
        assert_eq!(link(1, &f, 42).unwrap().network, Network::Arp(&[7; 28]));
        let f = frame([0x88, 0xcc], &[7; 28]);
        let other = Network::Other { ethertype: 0x88cc, data: &[7; 28] };
        assert_eq!(link(1, &f, 42).unwrap().network, other);
    }

    #[test]
    fn short_and_undefined_frames() {
        let e = |f: &[u8]| link(1, f, f.len() as u32).unwrap_err().name;
        assert_eq!(e(&frame([8, 0], &[0x45, 0])), "truncated_ethernet_frame");
        assert_eq!(e(&frame([0x05, 0xdd], &[0; 20])), "undefined_ether_type");
        assert_eq!(e(&frame([0x89, 0x03], &[0; 16])), "truncated_link_header_cfp");
        assert_eq!(e(&frame([0, 9], &[0xff; 20])), "no_suitable_analyzer_found");
    }

    #[test]
    fn fabric_path_is_skipped() {
        let mut f = frame([0x89, 0x03], &[0, 0]);
        f.extend_from_slice(&frame([8, 0], &[0x45; 4]));
        let v = link(1, &f, f.len() as u32).unwrap();
        assert_eq!((v.network, v.wire_len), (Network::Ip(&[0x45; 4]), 4));
        assert_eq!(v.src_mac, Some([2; 6]));
    }

    #[test]
    fn snap_is_cut_to_the_stated_length() {
        let f = frame([0, 12], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45, 1, 2, 3, 9, 9, 9]);
        let v = link(1, &f, f.len() as u32).unwrap();
        assert_eq!((v.network, v.wire_len), (Network::Ip(&[0x45, 1, 2, 3]), 7));
    }
}
