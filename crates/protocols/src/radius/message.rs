use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::TableOf;
use gannet_event::Type;

use crate::support::OutOfBound;
use crate::support::Record;

/// A message, whose attributes are known to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Packet type code (RFC 2865 section 4).
    pub code: u8,
    /// Identifier, which matches a reply to its request.
    pub id: u8,
    /// Request or response authenticator, 16 bytes.
    pub authenticator: &'a [u8],
    /// Its attributes.
    pub attributes: Attributes<'a>,
}

/// The attributes of a message, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Iterates over the attributes.
    pub fn iter(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        attributes(self.0)
    }

    /// The value of the first attribute of type `code`.
    pub fn first(&self, code: u64) -> Option<&'a [u8]> {
        self.iter().find(|a| u64::from(a.code) == code).map(|a| a.value)
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// Encoded as a table of the values by attribute type.
impl Arg for Attributes<'_> {
    const TYPE: Type = TableOf::<u64, Vec<&[u8]>>::TYPE;

    fn pack(&self, to: &mut Packer<'_>) {
        let mut table: Vec<(u64, Vec<&[u8]>)> = Vec::new();
        for Attribute { code, value } in self.iter() {
            let code = u64::from(code);
            match table.iter_mut().find(|(known, _)| *known == code) {
                Some((_, values)) => values.push(value),
                None => table.push((code, vec![value])),
            }
        }
        TableOf(table).pack(to);
    }
}

/// An attribute (RFC 2865 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Attribute type.
    pub code: u8,
    /// Its value.
    pub value: &'a [u8],
}

/// Number of bytes before the attributes.
const HEADER: usize = 20;

/// `Access-Request`.
pub(super) const REQUEST: u64 = 1;
/// `Access-Accept`.
pub(super) const ACCEPT: u64 = 2;
/// `Access-Reject`.
pub(super) const REJECT: u64 = 3;
/// `Access-Challenge`.
pub(super) const CHALLENGE: u64 = 11;

impl<'a> Message<'a> {
    /// Parses a datagram. The header's length is not used: attributes extend to the end.
    pub fn parse(data: &'a [u8]) -> Result<Self, OutOfBound> {
        let mut r = Record::new("RADIUS_PDU", data);
        let head = r.upto("length", 4)?;
        let authenticator = r.upto("authenticator", 16)?;
        let message =
            Self { code: head[0], id: head[1], authenticator, attributes: Attributes(r.rest()) };
        let mut rest = message.attributes.0;
        while !rest.is_empty() {
            attribute(&mut rest)?;
        }
        Ok(message)
    }
}

/// The attributes of a datagram in order, even if the message is incomplete; the first malformed
/// one ends them.
pub(super) fn attributes_of(datagram: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    attributes(datagram.get(HEADER..).unwrap_or_default())
}

fn attributes<'a>(mut rest: &'a [u8]) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
    std::iter::from_fn(move || attribute(&mut rest).ok())
}

/// Removes the next attribute from `rest` and returns it.
fn attribute<'a>(rest: &mut &'a [u8]) -> Result<Attribute<'a>, OutOfBound> {
    let mut r = Record::new("RADIUS_Attribute", rest);
    let head = r.upto("length", 2)?;
    r.string("value", i64::from(head[1]) - 2)?;
    let value = &rest[2..r.at];
    *rest = r.rest();
    Ok(Attribute { code: head[0], value })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn message(code: u8, attributes: &[u8]) -> Vec<u8> {
        let mut out = vec![code, 7, 0, 20];
        out.resize(20, 0);
        out.extend_from_slice(attributes);
        out
    }

    #[test]
    fn attributes() {
        let m = message(1, b"\x01\x05bob\x1f\x02");
        let m = Message::parse(&m).unwrap();
        assert_eq!(u64::from(m.code), REQUEST);
        assert_eq!(m.attributes.first(1), Some(&b"bob"[..]));
        assert_eq!(m.attributes.first(31), Some(&b""[..]));
        assert_eq!(m.attributes.first(2), None);
    }

    #[test]
    fn lengths_that_lie() {
        let error = |d: &[u8]| Message::parse(d).unwrap_err().to_string();
        let ends = |a, end: &str| error(&message(1, a)).ends_with(end);
        assert!(ends(b"\x01\x09bob", "out_of_bound: RADIUS_Attribute:value: 9 > 5"));
        assert!(ends(b"\x01\x00bob", "out_of_bound: RADIUS_Attribute:value: 0 > 5"));
        assert!(ends(b"\x01", "out_of_bound: RADIUS_Attribute:length: 2 > 1"));
        assert!(error(&[1; 19]).ends_with("out_of_bound: RADIUS_PDU:authenticator: 20 > 19"));
        assert!(error(&[1; 3]).ends_with("out_of_bound: RADIUS_PDU:length: 4 > 3"));
    }
}
