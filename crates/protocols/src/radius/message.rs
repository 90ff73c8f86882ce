use crate::support::Bytes;

/// A message. Its attributes are known to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Kind of message (RFC 2865 section 4).
    pub code: u8,
    attributes: &'a [u8],
}

/// An attribute (RFC 2865 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// What it is.
    pub code: u8,
    /// Its value.
    pub value: &'a [u8],
}

/// Why a datagram is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It ends within the header or the head of an attribute.
    Short,
    /// An attribute's value: bytes needed, bytes there.
    Value {
        /// As the attribute says; 0 if it says less than its own head.
        needed: usize,
        /// As left in the datagram.
        left: usize,
    },
}

/// `Access-Request`.
pub(super) const REQUEST: u8 = 1;
/// `Access-Accept`.
pub(super) const ACCEPT: u8 = 2;
/// `Access-Reject`.
pub(super) const REJECT: u8 = 3;
/// `Access-Challenge`.
pub(super) const CHALLENGE: u8 = 11;

impl<'a> Message<'a> {
    /// Parses a datagram. The header's length is not used: attributes go on to the end.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let mut b = Bytes(data);
        let code = b.u8().ok_or(Malformed::Short)?;
        b.take(19).ok_or(Malformed::Short)?;
        let message = Self { code, attributes: b.rest() };
        let mut rest = Bytes(message.attributes);
        while !rest.is_empty() {
            attribute(&mut rest)?;
        }
        Ok(message)
    }

    /// Its attributes in order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let mut rest = Bytes(self.attributes);
        std::iter::from_fn(move || attribute(&mut rest).ok())
    }

    /// The value of the first attribute of a kind.
    pub fn first(&self, code: u8) -> Option<&'a [u8]> {
        self.attributes().find(|a| a.code == code).map(|a| a.value)
    }
}

fn attribute<'a>(b: &mut Bytes<'a>) -> Result<Attribute<'a>, Malformed> {
    let (Some(code), Some(length)) = (b.u8(), b.u8()) else { return Err(Malformed::Short) };
    let left = b.0.len();
    let needed = usize::from(length).saturating_sub(2);
    if length < 2 {
        return Err(Malformed::Value { needed, left });
    }
    let value = b.take(needed).ok_or(Malformed::Value { needed, left })?;
    Ok(Attribute { code, value })
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
        assert_eq!(m.code, REQUEST);
        assert_eq!(m.first(1), Some(&b"bob"[..]));
        assert_eq!(m.first(31), Some(&b""[..]));
        assert_eq!(m.first(2), None);
    }

    #[test]
    fn lengths_that_lie() {
        let parse = |a| Message::parse(&message(1, a)).err();
        assert_eq!(parse(b"\x01\x09bob"), Some(Malformed::Value { needed: 7, left: 3 }));
        assert_eq!(parse(b"\x01\x00bob"), Some(Malformed::Value { needed: 0, left: 3 }));
        assert_eq!(parse(b"\x01"), Some(Malformed::Short));
        assert_eq!(Message::parse(&[1; 19]), Err(Malformed::Short));
    }
}
