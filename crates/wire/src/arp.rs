//! ARP and RARP (RFC 826, RFC 903).

use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Number of bytes before the addresses.
const FIXED_LEN: usize = 8;

mod field {
    pub(super) const HARDWARE: usize = 0;
    pub(super) const PROTOCOL: usize = 2;
    pub(super) const HARDWARE_LEN: usize = 4;
    pub(super) const PROTOCOL_LEN: usize = 5;
    pub(super) const OPERATION: usize = 6;
}

/// A request or reply, with addresses of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp<'a> {
    /// Hardware address type: 1 for Ethernet.
    pub hardware: u16,
    /// Protocol address type, an EtherType: 0x0800 for IPv4.
    pub protocol: u16,
    /// Operation: 1 is a request, 2 a reply.
    pub operation: u16,
    /// Hardware address of the sender.
    pub sender_mac: &'a [u8],
    /// Protocol address of the sender.
    pub sender: &'a [u8],
    /// Hardware address of the target.
    pub target_mac: &'a [u8],
    /// Protocol address of the target.
    pub target: &'a [u8],
}

impl Arp<'_> {
    /// Whether this is a request or reply for IPv4 over Ethernet whose sender address equals the
    /// frame's source address `from`. Nearly all ARP messages are.
    pub fn is_usual(&self, from: [u8; 6]) -> bool {
        const ETHERNET: u16 = 1;
        const IEEE_802: u16 = 6;
        matches!(self.hardware, ETHERNET | IEEE_802)
            && self.protocol == 0x0800
            && self.sender.len() == 4
            && self.sender_mac == from
            && matches!(self.operation, 1 | 2)
    }
}

/// Parses an ARP message.
///
/// # Errors
/// `truncated_ARP` if the data ends before the header or its addresses do.
pub fn arp(data: &[u8]) -> Result<Arp<'_>, Error> {
    let read = || {
        let (head, rest) = data.split_at_checked(FIXED_LEN)?;
        let hardware_len = usize::from(bytes::u8_at(head, field::HARDWARE_LEN));
        let protocol_len = usize::from(bytes::u8_at(head, field::PROTOCOL_LEN));
        let (sender_mac, rest) = rest.split_at_checked(hardware_len)?;
        let (sender, rest) = rest.split_at_checked(protocol_len)?;
        let (target_mac, rest) = rest.split_at_checked(hardware_len)?;
        Some(Arp {
            hardware: bytes::u16_at(head, field::HARDWARE),
            protocol: bytes::u16_at(head, field::PROTOCOL),
            operation: bytes::u16_at(head, field::OPERATION),
            sender_mac,
            sender,
            target_mac,
            target: rest.get(..protocol_len)?,
        })
    };
    read().ok_or(Error::Truncated(Layer::Arp))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [u8; 28] =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2];

    #[test]
    fn reads_every_field() {
        let a = arp(&REQUEST).unwrap();
        assert_eq!((a.hardware, a.protocol, a.operation), (1, 0x0800, 1));
        assert_eq!((a.sender_mac, a.sender), (&[2, 0, 0, 0, 0, 1][..], &[192, 0, 2, 1][..]));
        assert_eq!((a.target_mac, a.target), (&[0; 6][..], &[192, 0, 2, 2][..]));
    }

    #[test]
    fn usual_messages() {
        let from = [2, 0, 0, 0, 0, 1];
        let usual = |a: &Arp<'_>| a.is_usual(from);
        let a = arp(&REQUEST).unwrap();
        assert!(usual(&a) && usual(&Arp { hardware: 6, operation: 2, ..a }));
        assert!(!a.is_usual([2, 0, 0, 0, 0, 2]));
        let odd = [
            Arp { hardware: 15, ..a },
            Arp { protocol: 0x86dd, ..a },
            Arp { sender: &[1; 16], ..a },
            Arp { sender_mac: &from[..5], ..a },
            Arp { operation: 3, ..a },
        ];
        assert!(!odd.iter().any(usual));
    }

    #[test]
    fn every_shorter_message_is_truncated() {
        for len in 0..REQUEST.len() {
            assert_eq!(arp(&REQUEST[..len]).unwrap_err(), Error::Truncated(Layer::Arp));
        }
    }
}
