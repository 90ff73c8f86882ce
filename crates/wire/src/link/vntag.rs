//! Cisco VN-Tag (IEEE 802.1BR): always followed by a VLAN tag.

use super::Kind;
use super::Network;
use super::Step;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

const LEN: usize = 6;
const ETHERTYPE: usize = 4;

pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Error> {
    if data.len() <= LEN {
        return Err(Error::Truncated(Layer::VnTag));
    }
    Ok(match bytes::u16_at(data, ETHERTYPE) {
        0x8100 | 0x88a8 | 0x9100 => Step::Into(Kind::Vlan, bytes::from(data, LEN)),
        other => {
            let data = bytes::from(data, LEN);
            Step::Network(Network::Other { ethertype: u32::from(other), data })
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::Layer;
    use crate::Network;
    use crate::link;

    #[test]
    fn a_vlan_tag_follows() {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[0x89, 0x26, 0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0, 0x45]);
        let v = link(1, &f, f.len() as u32).unwrap();
        assert_eq!((v.network, v.vlan), (Network::Ip(&[0x45]), Some(5)));
        assert_eq!(link(1, &f[..20], 20).unwrap_err(), Error::Truncated(Layer::VnTag));
    }
}
