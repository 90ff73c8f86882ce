//! The Internet Group Management Protocol: versions 1 (RFC 1112), 2 (RFC 2236) and 3 (RFC 3376).

use gannet_base::Addr;

use crate::checksum;

/// Message types (RFC 3376 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Membership query of a router.
    Query,
    /// Membership report of version 1.
    Report1,
    /// Membership report of version 2.
    Report2,
    /// Leave group.
    Leave,
    /// Membership report of version 3, with group records.
    Report3,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message type.
    pub kind: Kind,
    /// The group address; 0.0.0.0 for all groups, and in reports of version 3.
    pub group: Addr,
    /// Whether the checksum is correct.
    pub is_intact: bool,
    /// The group records of a report of version 3.
    pub records: Records<'a>,
}

/// The group records of a report of version 3, all of them complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records<'a> {
    count: u16,
    bytes: &'a [u8],
}

/// A group record (RFC 3376 section 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Record type.
    pub kind: u8,
    /// Multicast address.
    pub group: Addr,
    /// Source addresses, four bytes each.
    pub sources: &'a [u8],
    /// Auxiliary data.
    pub data: &'a [u8],
}

/// Length of a message with a single group.
const SHORT: usize = 8;
/// Length of a query of version 3 before its source addresses.
const QUERY: usize = 12;

impl<'a> Message<'a> {
    /// Parses a message; `None` if it is truncated or of an unknown type. Like Zeek, this rejects
    /// queries of versions 1 and 2 as too short.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let head = data.first_chunk::<SHORT>()?;
        let group = Addr::v4([head[4], head[5], head[6], head[7]]);
        let (kind, len) = match head[0] {
            0x11 => {
                let sources = data.get(10..QUERY)?;
                let sources = u16::from_be_bytes([sources[0], sources[1]]);
                data.get(..QUERY + 4 * usize::from(sources))?;
                (Kind::Query, data.len())
            }
            0x12 => (Kind::Report1, SHORT),
            0x16 => (Kind::Report2, SHORT),
            0x17 => (Kind::Leave, SHORT),
            0x22 => {
                let count = u16::from_be_bytes([head[6], head[7]]);
                let mut records = Records { count, bytes: data.get(SHORT..)? };
                let all = records;
                let mut left = count;
                while left > 0 {
                    records.next()?;
                    left -= 1;
                }
                let len = data.len() - records.bytes.len();
                let is_intact = is_intact(data.get(..len)?)?;
                let group = Addr::v4([0; 4]);
                return Some(Self { kind: Kind::Report3, group, is_intact, records: all });
            }
            _ => return None,
        };
        let is_intact = is_intact(data.get(..len)?)?;
        Some(Self { kind, group, is_intact, records: Records::default() })
    }
}

/// Whether the checksum of these bytes is correct; `None` if their number is odd.
fn is_intact(data: &[u8]) -> Option<bool> {
    data.len().is_multiple_of(2).then(|| checksum::fits(data))
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if self.count == 0 {
            return None;
        }
        let (head, rest) = self.bytes.split_first_chunk::<8>()?;
        let sources = 4 * usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (sources, rest) = rest.split_at_checked(sources)?;
        let (data, rest) = rest.split_at_checked(usize::from(head[1]))?;
        self.bytes = rest;
        self.count -= 1;
        let group = Addr::v4([head[4], head[5], head[6], head[7]]);
        Some(Record { kind: head[0], group, sources, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message with its checksum set.
    fn sealed(mut message: Vec<u8>) -> Vec<u8> {
        let mut sum = checksum::Sum::default();
        sum.add(&message);
        let sum = sum.checksum();
        message[2..4].copy_from_slice(&sum);
        message
    }

    #[test]
    fn messages_of_one_group() {
        for (number, kind) in [(0x12, Kind::Report1), (0x16, Kind::Report2), (0x17, Kind::Leave)] {
            let bytes = sealed(vec![number, 0, 0, 0, 239, 1, 2, 3]);
            let message = Message::parse(&bytes).unwrap();
            assert_eq!((message.kind, message.is_intact), (kind, true));
            assert_eq!(message.group, Addr::v4([239, 1, 2, 3]));
            assert!(Message::parse(&bytes[..7]).is_none());
            // Bytes after the message are ignored.
            let longer = [&bytes[..], b"behind"].concat();
            assert!(Message::parse(&longer).unwrap().is_intact);
            assert!(!Message::parse(&[&bytes[..7], b"x"].concat()).unwrap().is_intact);
        }
        assert!(Message::parse(&[0x13; 8]).is_none());
    }

    #[test]
    fn queries_have_sources() {
        let query = sealed(vec![0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 1, 10, 0, 0, 1]);
        assert_eq!(Message::parse(&query).unwrap().kind, Kind::Query);
        assert!(Message::parse(&query).unwrap().is_intact);
        assert!(Message::parse(&query[..15]).is_none());
        assert!(Message::parse(&query[..8]).is_none());
    }

    #[test]
    fn reports_have_records() {
        let report = sealed(
            [
                &[0x22, 0, 0, 0, 0, 0, 0, 2][..],
                &[4, 0, 0, 0, 239, 0, 0, 1],
                &[1, 2, 0, 1, 239, 0, 0, 2, 10, 0, 0, 1, b'x', b'y'],
            ]
            .concat(),
        );
        let message = Message::parse(&report).unwrap();
        assert!(message.kind == Kind::Report3 && message.is_intact);
        let records: Vec<_> = message.records.collect();
        let groups: Vec<_> = records.iter().map(|r| r.group).collect();
        assert_eq!(groups, [[239, 0, 0, 1], [239, 0, 0, 2]].map(Addr::v4));
        assert_eq!(
            (records[1].kind, records[1].sources, records[1].data),
            (1, &[10, 0, 0, 1][..], &b"xy"[..])
        );
        for len in 0..report.len() {
            assert!(Message::parse(&report[..len]).is_none(), "{len}");
        }
        assert!(Message::parse(&[&report[..], b"z"].concat()).unwrap().is_intact);
    }

    proptest! {
        #[test]
        fn any_bytes(data: Vec<u8>) {
            if let Some(message) = Message::parse(&data) {
                message.records.count();
            }
        }
    }
}
