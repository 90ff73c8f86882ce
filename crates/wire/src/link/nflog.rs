//! Linux netfilter log (LINKTYPE_NFLOG): a header, then attributes, one of which is the packet.

use super::Network;
use super::Step;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of family, version and resource id; also length of each attribute's length and type.
const LEN: usize = 4;
const PAYLOAD: u16 = 9;
/// Linux address families.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

pub(super) fn step(mut data: &[u8]) -> Result<Step<'_>, Error> {
    if data.len() <= LEN {
        return Err(Error::Truncated(Layer::Nflog));
    }
    let family = bytes::u8_at(data, 0);
    let version = bytes::u8_at(data, 1);
    if version != 0 {
        return Err(Error::UnknownVersion(Layer::Nflog, version));
    }
    data = bytes::from(data, LEN);
    // Lengths and types are in the byte order of the capturing host; libpcap converts them to that
    // of the reading host. Types are small numbers, so the first one shows the byte order.
    let is_big = data.len() > LEN && (1..0x100).contains(&bytes::u16_at(data, 2));
    let number = |data: &[u8], at| {
        let big = bytes::u16_at(data, at);
        if is_big { big } else { big.swap_bytes() }
    };
    loop {
        if data.len() <= LEN {
            return Err(Error::NflogWithoutPacket);
        }
        let len = usize::from(number(data, 0));
        if number(data, 2) == PAYLOAD {
            let inner = bytes::from(data, LEN);
            return Ok(Step::Network(match family {
                AF_INET | AF_INET6 => Network::Ip(inner),
                _ => Network::Other { ethertype: u32::from(family), data: inner },
            }));
        }
        if len < LEN {
            return Err(Error::NflogValueTooShort);
        }
        // The length field does not include the padding to four bytes.
        let skip = len.next_multiple_of(4);
        if skip > data.len() {
            return Err(Error::NflogValueTooLong(skip, data.len()));
        }
        data = bytes::from(data, skip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(d: &[u8]) -> Error {
        step(d).err().unwrap()
    }

    #[test]
    fn the_packet_is_found_among_the_values() {
        let d = [2, 0, 0, 0, 5, 0, 1, 0, 7, 0, 0, 0, 6, 0, 9, 0, 0x45, 1];
        assert!(matches!(step(&d), Ok(Step::Network(Network::Ip(&[0x45, 1])))));
        assert_eq!(error(&d[..12]), Error::NflogWithoutPacket);
    }

    #[test]
    fn both_byte_orders() {
        let d = [10, 0, 0, 0, 0, 5, 0, 1, 7, 0, 0, 0, 0, 6, 0, 9, 0x60, 1];
        assert!(matches!(step(&d), Ok(Step::Network(Network::Ip(&[0x60, 1])))));
        assert_eq!(error(&[2, 0, 0, 0, 0, 9, 0, 1, 0]), Error::NflogValueTooLong(12, 5));
    }

    #[test]
    fn values_that_do_not_fit() {
        assert_eq!(error(&[2, 0, 0, 0]), Error::Truncated(Layer::Nflog));
        assert_eq!(error(&[2, 1, 0, 0, 0]), Error::UnknownVersion(Layer::Nflog, 1));
        assert_eq!(error(&[2, 0, 0, 0, 3, 0, 1, 0, 0]), Error::NflogValueTooShort);
        assert_eq!(error(&[2, 0, 0, 0, 9, 0, 1, 0, 0]), Error::NflogValueTooLong(12, 5));
    }
}
