//! BSD loopback (LINKTYPE_NULL and LINKTYPE_LOOP): an address family in four bytes.

use super::Network;
use super::Step;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

const LEN: usize = 4;

/// Parses a header with the address family in little-endian order.
pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Error> {
    family(data, u32::swap_bytes)
}

/// Parses a header with the address family in network byte order.
pub(super) fn step_loop(data: &[u8]) -> Result<Step<'_>, Error> {
    family(data, |f| f)
}

fn family(data: &[u8], order: impl Fn(u32) -> u32) -> Result<Step<'_>, Error> {
    if data.len() <= LEN {
        return Err(Error::Truncated(Layer::Null));
    }
    let inner = bytes::from(data, LEN);
    Ok(Step::Network(match order(bytes::u32_at(data, 0)) {
        // AF_INET, then AF_INET6 of NetBSD and OpenBSD, FreeBSD, and macOS.
        2 | 24 | 28 | 30 => Network::Ip(inner),
        other => Network::Other { ethertype: other, data: inner },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;

    #[test]
    fn families_in_either_order() {
        let ip = Network::Ip(&[0x60]);
        for af in [2, 24, 28, 30] {
            assert_eq!(link(0, &[af, 0, 0, 0, 0x60], 5).unwrap().network, ip);
            assert_eq!(link(108, &[0, 0, 0, af, 0x60], 5).unwrap().network, ip);
        }
        let other = Network::Other { ethertype: 7, data: &[0x60] };
        assert_eq!(link(0, &[7, 0, 0, 0, 0x60], 5).unwrap().network, other);
        assert_eq!(link(0, &[2, 0, 0, 0], 4).unwrap_err(), Error::Truncated(Layer::Null));
    }
}
