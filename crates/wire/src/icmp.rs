//! ICMP (RFC 792) and ICMPv6 (RFC 4443).

use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::ip::Ip;
use crate::protocol;

/// Length of the common header: type, code, checksum, and four bytes that depend on the type.
const LEN: usize = 8;

mod field {
    pub(super) const TYPE: usize = 0;
    pub(super) const CODE: usize = 1;
    pub(super) const CHECKSUM: usize = 2;
    pub(super) const REST: usize = 4;
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp<'a> {
    /// Message type.
    pub kind: u8,
    /// Message code.
    pub code: u8,
    /// The checksum field; [`crate::checksum::icmp`] checks it.
    pub checksum: u16,
    /// Four bytes that depend on the type: for echoes identifier and sequence number.
    pub rest: u32,
    /// Whether this is ICMPv6.
    pub v6: bool,
    /// The captured bytes after the common header.
    pub payload: &'a [u8],
    /// Length of the payload on the wire.
    pub payload_len: u32,
}

impl Icmp<'_> {
    /// The message type of the reply to this message; for one-way messages the code instead. Type
    /// and counterpart replace the ports in a connection's key.
    pub fn counterpart(&self) -> Counterpart {
        let answer = if self.v6 { answer_v6(self.kind) } else { answer_v4(self.kind) };
        match answer {
            Some(kind) => Counterpart { value: kind, one_way: false },
            None => Counterpart { value: self.code, one_way: true },
        }
    }
}

impl Icmp<'_> {
    /// Whether the message reports an error and quotes the packet that caused it (RFC 792, RFC
    /// 4443).
    pub fn is_error(&self) -> bool {
        if self.v6 { self.kind < 128 } else { matches!(self.kind, 3 | 4 | 5 | 11 | 12) }
    }
}

/// Length of a multicast address record without sources and auxiliary data (RFC 3810 §5.2).
const RECORD: usize = 4 + 16;

impl Icmp<'_> {
    /// The fault of a multicast listener report (RFC 2710, RFC 3810), if any.
    pub fn report_fault(&self) -> Option<Error> {
        if !self.v6 {
            return None;
        }
        match self.kind {
            131 | 132 if self.payload.len() < 16 => Some(Error::TruncatedListener),
            143 => self.records_fault(),
            _ => None,
        }
    }

    fn records_fault(&self) -> Option<Error> {
        let records = self.rest as u16;
        let mut rest = self.payload;
        if rest.len() < usize::from(records) * RECORD {
            return Some(Error::TruncatedListenerReport);
        }
        for _ in 0..records {
            if rest.is_empty() {
                break;
            }
            let whole = rest.first_chunk().and_then(|&[_, data, a, b]| {
                let sources = usize::from(u16::from_be_bytes([a, b]));
                rest.get(RECORD + 16 * sources + 4 * usize::from(data)..)
            });
            let Some(next) = whole else { return Some(Error::TruncatedListenerRecord) };
            rest = next;
        }
        None
    }
}

/// The value that replaces the responder's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counterpart {
    /// The message type of the reply, or the code.
    pub value: u8,
    /// Whether messages of this type have no reply.
    pub one_way: bool,
}

fn answer_v4(kind: u8) -> Option<u8> {
    Some(match kind {
        // Echo, router discovery, timestamp, information, address mask.
        8 => 0,
        0 => 8,
        10 => 9,
        9 => 10,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return None,
    })
}

fn answer_v6(kind: u8) -> Option<u8> {
    Some(match kind {
        // Echo, multicast listener, router and neighbour discovery, node information, home
        // agent discovery.
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return None,
    })
}

/// Parses the ICMP header of a datagram.
///
/// # Errors
/// [`Error::DatagramTooShort`] if the IP payload is shorter than the header, and
/// [`Error::TruncatedTransport`] if the capture is.
#[inline]
pub fn icmp<'a>(ip: &Ip<'a>) -> Result<Icmp<'a>, Error> {
    ip.check_transport(LEN, Layer::Icmp)?;
    let data = ip.payload;
    Ok(Icmp {
        kind: bytes::u8_at(data, field::TYPE),
        code: bytes::u8_at(data, field::CODE),
        checksum: bytes::u16_at(data, field::CHECKSUM),
        rest: bytes::u32_at(data, field::REST),
        v6: ip.protocol == protocol::ICMP6,
        payload: bytes::from(data, LEN),
        payload_len: ip.transport_len() - LEN as u32,
    })
}

#[cfg(test)]
mod tests {
    use crate::checksum;
    use crate::checksum::Checksum;
    use crate::ip;

    use super::*;

    fn packet(message: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 1, 0, 0, 64, 1, 0, 0];
        p.extend_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        p.extend_from_slice(message);
        p
    }

    #[test]
    fn an_echo_and_its_checksum() {
        let p = packet(&[8, 0, 0xf6, 0xf8, 0, 1, 0, 2, 1, 4]);
        let i = ip(&p, 30, false).unwrap();
        let m = icmp(&i).unwrap();
        assert_eq!((m.kind, m.code, m.rest, m.payload), (8, 0, 0x0001_0002, &[1, 4][..]));
        assert_eq!(m.counterpart(), Counterpart { value: 0, one_way: false });
        assert_eq!(checksum::icmp(&i), Checksum::Valid);
        let bad = packet(&[8, 0, 0xf6, 0xf9, 0, 1, 0, 2, 1, 4]);
        assert_eq!(checksum::icmp(&ip(&bad, 30, false).unwrap()), Checksum::Invalid);
    }

    #[test]
    fn one_way_messages_have_their_code() {
        let p = packet(&[3, 13, 0, 0, 0, 0, 0, 0]);
        let m = icmp(&ip(&p, 28, false).unwrap()).unwrap();
        assert_eq!(m.counterpart(), Counterpart { value: 13, one_way: true });
        let p = packet(&[3, 13, 0, 0]);
        assert_eq!(
            icmp(&ip(&p, 24, false).unwrap()).unwrap_err(),
            Error::DatagramTooShort(Layer::Icmp)
        );
    }

    #[test]
    fn listener_reports() {
        let report = |kind, records: u16, payload: &'static [u8]| Icmp {
            kind,
            code: 0,
            checksum: 0,
            rest: u32::from(records),
            v6: true,
            payload,
            payload_len: payload.len() as u32,
        };
        assert_eq!(report(131, 0, &[0; 16]).report_fault(), None);
        assert_eq!(report(132, 0, &[0; 15]).report_fault(), Some(Error::TruncatedListener));
        assert_eq!(report(130, 0, &[]).report_fault(), None);
        assert_eq!(report(143, 2, &[0; 40]).report_fault(), None);
        assert_eq!(report(143, 2, &[0; 39]).report_fault(), Some(Error::TruncatedListenerReport));
        // One source is missing, and four bytes of data are present.
        const SOURCE: [u8; 35] = {
            let mut r = [0; 35];
            r[3] = 1;
            r
        };
        const DATA: [u8; 24] = {
            let mut r = [0; 24];
            r[1] = 1;
            r
        };
        let record = Some(Error::TruncatedListenerRecord);
        assert_eq!(report(143, 1, &SOURCE).report_fault(), record);
        assert_eq!(report(143, 1, &DATA).report_fault(), None);
        let v4 = Icmp { v6: false, ..report(143, 2, &[]) };
        assert_eq!(v4.report_fault(), None);
    }

    #[test]
    fn every_answer_is_answered() {
        for kind in 0..=255 {
            assert!(answer_v4(kind).is_none_or(|a| answer_v4(a) == Some(kind)));
            assert!(answer_v6(kind).is_none_or(|a| answer_v6(a) == Some(kind)));
        }
    }
}
