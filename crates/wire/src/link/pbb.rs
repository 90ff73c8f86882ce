//! Provider backbone bridging (IEEE 802.1ah): a service tag, then the customer's frame.

use super::Kind;
use super::Step;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of the tag with both customer addresses and the EtherType.
const LEN: usize = 18;
/// Offset of the customer's frame.
const CUSTOMER: usize = 4;

pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Error> {
    if data.len() <= LEN {
        return Err(Error::Truncated(Layer::Pbb));
    }
    Ok(Step::Into(Kind::Ethernet, bytes::from(data, CUSTOMER)))
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::Layer;
    use crate::Network;
    use crate::link;

    #[test]
    fn the_customers_frame_is_read() {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[0x88, 0xe7, 0, 0, 0, 1]);
        f.extend_from_slice(&[3; 12]);
        f.extend_from_slice(&[8, 0, 0x45, 0, 0]);
        let v = link(1, &f, f.len() as u32).unwrap();
        assert_eq!((v.network, v.src_mac), (Network::Ip(&[0x45, 0, 0]), Some([3; 6])));
        assert_eq!(link(1, &f[..32], 32).unwrap_err(), Error::Truncated(Layer::Pbb));
    }
}
