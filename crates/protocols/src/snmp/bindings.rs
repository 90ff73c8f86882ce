//! Variables, with their names and values.

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::Bytes;
use crate::support::ber;

/// Most bytes of a part of a name: 64 bits, seven to a byte.
pub(super) const MAX_PART: usize = 10;
/// Tag of an address (RFC 1155).
pub(super) const IP_ADDRESS: u8 = 0x40;

gannet_event::record! {
    /// The value of a variable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ObjectValue<'a> = "SNMP::ObjectValue" {
        /// Its tag.
        tag: u64 = "tag",
        /// A name.
        oid: Option<Oid<'a>> = "oid",
        /// A signed number.
        signed: Option<i64> = "signed",
        /// An unsigned number.
        unsigned: Option<u64> = "unsigned",
        /// An address.
        address: Option<Addr> = "address",
        /// Any other value.
        octets: Option<&'a [u8]> = "octets",
    }
}

gannet_event::record! {
    /// A variable with its value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Binding<'a> = "SNMP::Binding" {
        /// Its name.
        oid: Oid<'a> = "oid",
        /// Its value.
        value: ObjectValue<'a> = "value",
    }
}

/// The name of an object, as its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oid<'a>(pub(super) &'a [u8]);

/// In dotted form; empty where it is not whole or has a part that is too long.
impl Arg for Oid<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        dotted(self.0).pack(to);
    }
}

/// Variables with their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bindings<'a> {
    pub(super) bytes: &'a [u8],
    /// Number of variables.
    pub count: u64,
    /// `sysDescr.0`, if present.
    pub description: Option<&'a [u8]>,
    /// `sysUpTime.0` in hundredths of a second, if present.
    pub up_time: Option<u64>,
}

impl<'a> Bindings<'a> {
    /// Each of them.
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

/// A number. As in Zeek it is not negative below eight bytes, and 0 above them.
pub(super) fn signed(content: &[u8]) -> i64 {
    ber::unsigned(content) as i64
}

/// An address of four bytes; any other counts as none.
pub(super) fn addr(content: &[u8]) -> Addr {
    <[u8; 4]>::try_from(content).map_or(Addr::v6([0; 16]), Addr::v4)
}

/// A name in dotted form; empty where it is not whole or has a part that is too long.
fn dotted(name: &[u8]) -> String {
    let mut out = String::new();
    if name.last().is_none_or(|b| b & 0x80 != 0) {
        return out;
    }
    for part in name.split_inclusive(|b| b & 0x80 == 0) {
        if part.len() > MAX_PART {
            return String::new();
        }
        let n = part.iter().fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
        let text = if out.is_empty() {
            // The first part holds two numbers, which Zeek divides as signed ones of 32 bits.
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
