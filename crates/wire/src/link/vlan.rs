//! VLAN tags (IEEE 802.1Q, 802.1ad).

use super::Frame;
use super::Kind;
use super::Step;
use super::ethernet;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of tag control information and EtherType.
const LEN: usize = 4;

mod field {
    pub(super) const CONTROL: usize = 0;
    pub(super) const ETHERTYPE: usize = 2;
}

const ID_MASK: u16 = 0x0fff;

pub(super) fn step<'a>(
    data: &'a [u8],
    frame: &mut Frame<'a>,
    on_fault: &mut impl FnMut(Error),
) -> Result<Step<'a>, Error> {
    let truncated = Error::Truncated(Layer::Vlan);
    if data.len() <= LEN {
        return Err(truncated);
    }
    let id = bytes::u16_at(data, field::CONTROL) & ID_MASK;
    if frame.vlan.is_none() {
        frame.vlan = Some(id);
    } else {
        if frame.inner_vlan.is_some() {
            on_fault(Error::ThirdVlan);
        }
        frame.inner_vlan = Some(id);
    }
    let kind = bytes::u16_at(data, field::ETHERTYPE);
    let inner = bytes::from(data, LEN);
    match kind {
        0x8100 => Ok(Step::Into(Kind::Vlan, inner)),
        1536.. => Ok(ethernet::tagged(kind, inner)),
        0..=1500 => ethernet::ieee8023(kind, inner).ok_or(truncated),
        _ => Err(Error::UndefinedProtocol(Layer::Vlan)),
    }
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::Layer;
    use crate::Network;
    use crate::link;
    use crate::link_with;

    fn tags(tags: &[[u8; 4]], inner: &[u8]) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[0x88, 0xa8]);
        f.extend_from_slice(&tags.concat());
        f.extend_from_slice(inner);
        f
    }

    #[test]
    fn one_and_two_tags() {
        let f = tags(&[[0xe0, 100, 0x81, 0], [0x01, 0, 8, 0]], &[0x45; 8]);
        let v = link(1, &f, f.len() as u32).unwrap();
        assert_eq!((v.vlan, v.inner_vlan), (Some(100), Some(256)));
        assert_eq!((v.network, v.wire_len, v.depth), (Network::Ip(&[0x45; 8]), 8, 4));
        let f = tags(&[[0, 7, 8, 6]], &[1; 8]);
        let v = link(1, &f, f.len() as u32).unwrap();
        assert_eq!((v.vlan, v.inner_vlan, v.network), (Some(7), None, Network::Arp(&[1; 8])));
    }

    #[test]
    fn a_third_tag_takes_the_place_of_the_second() {
        let f = tags(&[[0, 1, 0x81, 0], [0, 2, 0x81, 0], [0, 3, 8, 0]], &[0x45; 8]);
        let mut faults = Vec::new();
        let v = link_with(1, &f, f.len() as u32, 0, &mut |w| faults.push(w)).unwrap();
        assert_eq!((v.vlan, v.inner_vlan), (Some(1), Some(3)));
        assert_eq!(faults, [Error::ThirdVlan]);
    }

    #[test]
    fn tags_without_a_known_protocol() {
        let e = |f: &[u8]| link(1, f, f.len() as u32).unwrap_err();
        assert_eq!(e(&tags(&[[0, 1, 8, 0]], &[])), Error::Truncated(Layer::Vlan));
        assert_eq!(e(&tags(&[[0, 1, 0, 40]], &[3])), Error::Truncated(Layer::Vlan));
        assert_eq!(e(&tags(&[[0, 1, 0x05, 0xdd]], &[0; 8])), Error::UndefinedProtocol(Layer::Vlan));
    }
}
