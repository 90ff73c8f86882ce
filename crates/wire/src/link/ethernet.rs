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
use crate::error::Error;
use crate::error::Layer;
use crate::ip::Ip;
use crate::ipv4;
use crate::ipv6;

/// Length of the header.
const LEN: usize = 14;
/// Frames up to this length, in bytes, are truncated.
const TOO_SHORT: usize = 16;
/// Number of bytes that FabricPath adds before the Ethernet frame.
const FABRIC_PATH_LEN: usize = 16;
const FABRIC_PATH: u16 = 0x8903;

mod field {
    pub(super) const DST: usize = 0;
    pub(super) const SRC: usize = 6;
    pub(super) const ETHERTYPE: usize = 12;
}

/// Number of layers down to the IP header of a [plain](plain_ipv4) packet, both included.
pub const PLAIN_LAYERS: u8 = 2;

/// The EtherType of IP right after the Ethernet header, and the bytes after that header; `None` for
/// all other frames.
#[inline]
fn direct_ip(data: &[u8]) -> Option<(u16, &[u8])> {
    if data.len() <= TOO_SHORT {
        return None;
    }
    let (head, inner) = data.split_first_chunk::<LEN>()?;
    let ethertype = bytes::u16_at(head, field::ETHERTYPE);
    matches!(ethertype, IPV4 | IPV6).then_some((ethertype, inner))
}

/// Parses a frame with IP right after the Ethernet header; `None` for all other frames.
#[inline]
pub(super) fn direct(data: &[u8], wire_len: u32, depth: u8) -> Option<Frame<'_>> {
    let (_, inner) = direct_ip(data)?;
    Some(Frame {
        network: Network::Ip(inner),
        wire_len: wire_len.saturating_sub(LEN as u32),
        depth: depth + 2,
        vlan: None,
        inner_vlan: None,
        src_mac: mac(data, field::SRC),
        dst_mac: mac(data, field::DST),
    })
}

/// Parses the IP header of a plain packet: IPv4 without options, complete on the wire and not
/// fragmented, right after an Ethernet header, as nearly all packets are. Also returns the bytes
/// from the IP header on. The result is that of [`decode`](crate::decode()), without a fault up to
/// the IP header, whose depth is [`PLAIN_LAYERS`]. `None` for all others.
#[inline]
pub fn plain_ipv4(data: &[u8], wire_len: u32, verify_checksum: bool) -> Option<(Ip<'_>, &[u8])> {
    let (ethertype, inner) = direct_ip(data)?;
    if ethertype != IPV4 {
        return None;
    }
    let ip = ipv4::plain(inner, wire_len.checked_sub(LEN as u32)?, verify_checksum)?;
    Some((ip, inner))
}

/// Like [`plain_ipv4`], for IPv6 without extension headers.
#[inline]
pub fn plain_ipv6(data: &[u8], wire_len: u32) -> Option<(Ip<'_>, &[u8])> {
    let (ethertype, inner) = direct_ip(data)?;
    if ethertype != IPV6 {
        return None;
    }
    let ip = ipv6::plain(inner, wire_len.checked_sub(LEN as u32)?)?;
    Some((ip, inner))
}

pub(super) fn step<'a>(mut data: &'a [u8], frame: &mut Frame<'a>) -> Result<Step<'a>, Error> {
    if data.len() <= TOO_SHORT {
        return Err(Error::Truncated(Layer::Ethernet));
    }
    if bytes::u16_at(data, field::ETHERTYPE) == FABRIC_PATH {
        if data.len() <= FABRIC_PATH_LEN + LEN {
            return Err(Error::TruncatedFabricPath);
        }
        data = bytes::from(data, FABRIC_PATH_LEN);
    }
    frame.dst_mac = mac(data, field::DST);
    frame.src_mac = mac(data, field::SRC);
    let kind = bytes::u16_at(data, field::ETHERTYPE);
    let inner = bytes::from(data, LEN);
    match kind {
        1536.. => Ok(ethertype(kind, inner)),
        0..=1500 => ieee8023(kind, inner).ok_or(Error::Truncated(Layer::Ethernet)),
        _ => Err(Error::UndefinedProtocol(Layer::Ethernet)),
    }
}

fn ethertype(kind: u16, inner: &[u8]) -> Step<'_> {
    match kind {
        0x8100 | 0x88a8 | 0x9100 => Step::Into(Kind::Vlan, inner),
        _ => tagged(kind, inner),
    }
}

/// The protocols that may follow the Ethernet header or a VLAN tag, besides (further) tags.
pub(super) fn tagged(kind: u16, inner: &[u8]) -> Step<'_> {
    match kind {
        0x8847 => Step::Into(Kind::Mpls, inner),
        0x8864 => Step::Into(Kind::Pppoe, inner),
        0x88e7 => Step::Into(Kind::Pbb, inner),
        0x8926 => Step::Into(Kind::VnTag, inner),
        _ => network(kind, inner),
    }
}

/// IEEE 802.3: a length instead of the EtherType, then two service access points. `None` if those
/// are missing.
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
        let e = |f: &[u8]| link(1, f, f.len() as u32).unwrap_err();
        assert_eq!(e(&frame([8, 0], &[0x45, 0])), Error::Truncated(Layer::Ethernet));
        assert_eq!(e(&frame([0x05, 0xdd], &[0; 20])), Error::UndefinedProtocol(Layer::Ethernet));
        assert_eq!(e(&frame([0x89, 0x03], &[0; 16])), Error::TruncatedFabricPath);
        assert_eq!(e(&frame([0, 9], &[0xff; 20])), Error::NotDissected(Layer::Novell));
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
