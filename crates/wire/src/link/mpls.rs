//! MPLS label stacks (RFC 3032). The payload's protocol is not encoded and is assumed to be IP.

use super::Network;
use super::Step;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of a label stack entry.
const LEN: usize = 4;
const BOTTOM_OF_STACK: u8 = 0x01;

pub(super) fn step(mut data: &[u8]) -> Result<Step<'_>, Error> {
    loop {
        if data.len() <= LEN {
            return Err(Error::Truncated(Layer::Mpls));
        }
        let bottom = bytes::u8_at(data, 2) & BOTTOM_OF_STACK != 0;
        data = bytes::from(data, LEN);
        if bottom {
            return Ok(Step::Network(Network::Ip(data)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_popped() {
        let d = [0, 1, 0x00, 64, 0, 2, 0x01, 64, 0x45, 0];
        assert!(matches!(step(&d), Ok(Step::Network(Network::Ip(&[0x45, 0])))));
        assert!(step(&d[..8]).is_err_and(|w| w == Error::Truncated(Layer::Mpls)));
        assert!(step(&[0; 64]).is_err());
    }
}
