//! Variable bindings: object identifiers with values.

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::Bytes;
use crate::support::ber;

/// Maximum length of an encoded sub-identifier, in bytes: 64 bits, seven per byte.
pub(super) const MAX_SUB_IDENTIFIER: usize = 10;
/// Tag of an IP address (RFC 1155).
pub(super) const IP_ADDRESS: u8 = 0x40;

gannet_event::record! {
    /// The value of a variable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ObjectValue<'a> = "SNMP::ObjectValue" {
        /// Tag of the value.
        tag: u64 = "tag",
        /// An object identifier.
        oid: Option<Oid<'a>> = "oid",
        /// A signed integer.
        signed: Option<i64> = "signed",
        /// An unsigned integer.
        unsigned: Option<u64> = "unsigned",
        /// An IP address.
        address: Option<Addr> = "address",
        /// Any other value.
        octets: Option<&'a [u8]> = "octets",
    }
}

gannet_event::record! {
    /// A variable binding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Binding<'a> = "SNMP::Binding" {
        /// Object identifier of the variable.
        oid: Oid<'a> = "oid",
        /// Value of the variable.
        value: ObjectValue<'a> = "value",
    }
}

/// An encoded object identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oid<'a>(pub(super) &'a [u8]);

/// Encoded in dotted form; empty if it is incomplete or has a sub-identifier that is too long.
impl Arg for Oid<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        dotted(self.0).pack(to);
    }
}

/// The variable bindings of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bindings<'a> {
    pub(super) bytes: &'a [u8],
    /// Number of bindings.
    pub count: u64,
    /// `sysDescr.0`, if present.
    pub description: Option<&'a [u8]>,
    /// `sysUpTime.0` in hundredths of a second, if present.
    pub up_time: Option<u64>,
}

impl<'a> Bindings<'a> {
    /// Iterates over the bindings.
    pub(super) fn iter(&self) -> impl Iterator<Item = Binding<'a>> + use<'a> {
        let mut b = Bytes(self.bytes);
        std::iter::from_fn(move || {
            ber::sequence(&mut b).ok()?;
            let oid = Oid(ber::tagged(&mut b, ber::OBJECT_IDENTIFIER).ok()?);
            let (tag, content) = ber::value(&mut b).ok()?;
            Some(Binding { oid, value: object(tag, content) })
        })
    }
}

impl Arg for Bindings<'_> {
    const TYPE: Type = Type::Vector(&Binding::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.iter().count());
        self.iter().for_each(|binding| binding.pack(to));
    }
}

fn object(tag: u8, content: &[u8]) -> ObjectValue<'_> {
    let mut value = ObjectValue {
        tag: tag.into(),
        oid: None,
        signed: None,
        unsigned: None,
        address: None,
        octets: None,
    };
    match tag {
        5 | 0x80..=0x82 => {}
        ber::OBJECT_IDENTIFIER => value.oid = Some(Oid(content)),
        ber::INTEGER => value.signed = Some(signed(content)),
        0x41..=0x43 | 0x46 => value.unsigned = Some(signed(content) as u64),
        IP_ADDRESS => value.address = Some(addr(content)),
        _ => value.octets = Some(content),
    }
    value
}

/// Decodes an integer. As in Zeek it is unsigned if it has fewer than eight bytes, and 0 if it has
/// more.
pub(super) fn signed(content: &[u8]) -> i64 {
    ber::unsigned(content) as i64
}

/// Decodes an address of four bytes; other lengths give the unspecified address.
pub(super) fn addr(content: &[u8]) -> Addr {
    <[u8; 4]>::try_from(content).map_or(Addr::v6([0; 16]), Addr::v4)
}

/// An object identifier in dotted form; empty if it is incomplete or has a sub-identifier that is
/// too long.
fn dotted(name: &[u8]) -> String {
    let mut out = String::new();
    if name.last().is_none_or(|b| b & 0x80 != 0) {
        return out;
    }
    for part in name.split_inclusive(|b| b & 0x80 == 0) {
        if part.len() > MAX_SUB_IDENTIFIER {
            return String::new();
        }
        let n = part.iter().fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
        let text = if out.is_empty() {
            // The first sub-identifier encodes two numbers, which Zeek computes as signed 32-bit
            // integers.
            let n = n as i32;
            format!("{}.{}", n / 40, n % 40)
        } else {
            format!(".{n}")
        };
        out.push_str(&text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_dotted_form() {
        assert_eq!(dotted(b"\x2b\x06\x01\x02\x01\x01\x03\x00"), "1.3.6.1.2.1.1.3.0");
        assert_eq!(dotted(b"\x2b\x81\x00"), "1.3.128");
        assert_eq!(dotted(b"\x2b\x81"), "");
        assert_eq!(dotted(&[&[0xff; 10][..], &[1]].concat()), "");
        assert_eq!(dotted(b""), "");
    }
}
