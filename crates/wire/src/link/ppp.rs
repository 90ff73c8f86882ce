//! PPP (RFC 1661), with or without HDLC-like framing (RFC 1662).

use super::Kind;
use super::Network;
use super::Step;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of the protocol field, and of HDLC address, control and protocol.
const LEN: usize = 2;
const HDLC_LEN: usize = 4;

pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Error> {
    if data.len() <= LEN {
        return Err(Error::Truncated(Layer::Ppp));
    }
    if data.starts_with(&[0xff, 0x03]) {
        if data.len() <= HDLC_LEN {
            return Err(Error::TruncatedHdlc);
        }
        return Ok(with_mpls(bytes::u16_at(data, LEN), bytes::from(data, HDLC_LEN)));
    }
    Ok(with_mpls(bytes::u16_at(data, 0), bytes::from(data, LEN)))
}

pub(super) fn step_serial(data: &[u8]) -> Result<Step<'_>, Error> {
    if data.len() <= HDLC_LEN {
        return Err(Error::Truncated(Layer::PppSerial));
    }
    Ok(with_mpls(bytes::u16_at(data, LEN), bytes::from(data, HDLC_LEN)))
}

fn with_mpls(protocol: u16, inner: &[u8]) -> Step<'_> {
    if protocol == 0x0281 { Step::Into(Kind::Mpls, inner) } else { ip_only(protocol, inner) }
}

/// IPv4 and IPv6 by their PPP protocol numbers.
pub(super) fn ip_only(protocol: u16, inner: &[u8]) -> Step<'_> {
    Step::Network(match protocol {
        0x0021 | 0x0057 => Network::Ip(inner),
        other => Network::Other { ethertype: u32::from(other), data: inner },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;

    #[test]
    fn with_and_without_framing() {
        let ip = Network::Ip(&[0x45]);
        assert_eq!(link(9, &[0, 0x21, 0x45], 3).unwrap().network, ip);
        assert_eq!(link(9, &[0xff, 3, 0, 0x57, 0x45], 5).unwrap().network, ip);
        assert_eq!(link(50, &[0x0f, 0, 0, 0x21, 0x45], 5).unwrap().network, ip);
        let mpls = [0xff, 3, 0x02, 0x81, 0, 0, 1, 9, 0x45];
        assert_eq!(link(9, &mpls, 9).unwrap().network, ip);
        let control = Network::Other { ethertype: 0xc021, data: &[1] };
        assert_eq!(link(9, &[0xc0, 0x21, 1], 3).unwrap().network, control);
    }

    #[test]
    fn truncated_headers() {
        assert_eq!(link(9, &[0, 0x21], 2).unwrap_err(), Error::Truncated(Layer::Ppp));
        assert_eq!(link(9, &[0xff, 3, 0, 0x21], 4).unwrap_err(), Error::TruncatedHdlc);
        assert_eq!(link(50, &[0; 4], 4).unwrap_err(), Error::Truncated(Layer::PppSerial));
    }
}
