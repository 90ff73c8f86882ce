//! Single messages, without state. `None` means that a message is incomplete.

use gannet_base::Addr;

use crate::support::Bytes;

/// Destination or source: an address, a name, or (SOCKS 4a) both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address<'a> {
    /// The address.
    pub host: Option<Addr>,
    /// The name.
    pub name: Option<&'a [u8]>,
}

/// A request to SOCKS 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request4<'a> {
    /// 1 connect, 2 bind.
    pub command: u8,
    /// The port to connect to.
    pub port: u16,
    /// Destination.
    pub to: Address<'a>,
    /// User name.
    pub user: &'a [u8],
}

/// A reply of SOCKS 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply4 {
    /// 0x5a granted, 0x5b to 0x5d refused.
    pub status: u8,
    /// The proxy's port.
    pub port: u16,
    /// The proxy's address.
    pub from: Addr,
}

/// A request to SOCKS 5, or its reply: both have the same format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message5<'a> {
    /// Command or status.
    pub code: u8,
    /// Reserved, 0.
    pub reserved: u8,
    /// Destination or source; empty if the address type is unknown.
    pub address: Address<'a>,
    /// Port of the destination or source.
    pub port: u16,
}

impl<'a> Request4<'a> {
    /// Parses the data after the version. An address 0.0.0.x means that a name follows (SOCKS 4a).
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let (command, port, host) = (b.u8()?, b.u16()?, b.array::<4>()?);
        let user = text(&mut b);
        let mut to = Address { host: Some(Addr::v4(host)), name: None };
        if host[..3] == [0; 3] {
            to.name = Some(text(&mut b));
        }
        Some(Self { command, port, to, user })
    }
}

impl Reply4 {
    /// Parses the data after the first zero byte.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let (status, port) = (b.u8()?, b.u16()?);
        Some(Self { status, port, from: Addr::v4(b.array()?) })
    }
}

impl<'a> Message5<'a> {
    /// Parses the data after the version.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let (code, reserved, kind) = (b.u8()?, b.u8()?, b.u8()?);
        let mut address = Address::default();
        match kind {
            1 => address.host = Some(Addr::v4(b.array()?)),
            3 => {
                let len = b.u8()?;
                address.name = Some(b.take(usize::from(len))?);
            }
            4 => address.host = Some(Addr::v6(b.array()?)),
            // The length of the address is unknown, and so is the position of the port.
            _ => return None,
        }
        Some(Self { code, reserved, address, port: b.u16()? })
    }
}

/// The methods that a SOCKS 5 client offers, from the data after the version.
pub fn methods(data: &[u8]) -> Option<&[u8]> {
    let mut b = Bytes(data);
    let count = b.u8()?;
    b.take(usize::from(count))
}

/// User name and password (RFC 1929 §2), from the data after the version.
pub fn login(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut b = Bytes(data);
    let len = b.u8()?;
    let user = b.take(usize::from(len))?;
    let len = b.u8()?;
    Some((user, b.take(usize::from(len))?))
}

/// Reads text up to a NUL, or to the end, as in Zeek.
fn text<'a>(b: &mut Bytes<'a>) -> &'a [u8] {
    let len = memchr::memchr(0, b.0).unwrap_or(b.0.len());
    let (text, rest) = b.0.split_at(len);
    b.0 = rest.get(1..).unwrap_or_default();
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn version_4() {
        let r = Request4::parse(b"\x01\x00\x50\x0a\x00\x00\x01me\0rest").unwrap_or(EMPTY);
        assert_eq!((r.command, r.port, r.user), (1, 80, &b"me"[..]));
        assert_eq!(r.to, Address { host: Some(Addr::v4([10, 0, 0, 1])), name: None });
        let r = Request4::parse(b"\x01\x00\x50\x00\x00\x00\x01\0a.example\0").unwrap_or(EMPTY);
        assert_eq!(r.to.name, Some(&b"a.example"[..]));
        let r = Request4::parse(b"\x01\x00\x50\x00\x00\x00\x01\0a.ex").unwrap_or(EMPTY);
        assert_eq!(r.to.name, Some(&b"a.ex"[..]));
        let r = Request4::parse(b"\x01\x00\x50\x00\x00\x00\x01me").unwrap_or(EMPTY);
        assert_eq!((r.user, r.to.name), (&b"me"[..], Some(&b""[..])));
        assert_eq!(Request4::parse(b"\x01\x00\x50\x0a\x00\x00"), None);
        let reply = Reply4 { status: 0x5a, port: 80, from: Addr::v4([10, 0, 0, 2]) };
        assert_eq!(Reply4::parse(b"\x5a\x00\x50\x0a\x00\x00\x02"), Some(reply));
        assert_eq!(Reply4::parse(b"\x5a\x00\x50\x0a\x00\x00"), None);
    }

    const EMPTY: Request4<'_> =
        Request4 { command: 0, port: 0, to: Address { host: None, name: None }, user: b"" };

    #[test]
    fn version_5() {
        let m = Message5::parse(b"\x01\x00\x03\x01a\x01\xbb");
        let address = Address { host: None, name: Some(b"a") };
        assert_eq!(m, Some(Message5 { code: 1, reserved: 0, address, port: 443 }));
        let m = Message5::parse(b"\x01\x00\x01\x0a\x00\x00\x01\x00\x16");
        assert_eq!(m.and_then(|m| m.address.host), Some(Addr::v4([10, 0, 0, 1])));
        assert_eq!(Message5::parse(b"\x01\x00\x02\x0a\x00\x00\x01\x00\x16"), None);
        assert_eq!(Message5::parse(b"\x01\x00\x03\x05a\x01\xbb"), None);
        assert_eq!(methods(b"\x02\x00\x02"), Some(&b"\x00\x02"[..]));
        assert_eq!(methods(b"\x03\x00\x02"), None);
        assert_eq!(login(b"\x03bob\x02pw"), Some((&b"bob"[..], &b"pw"[..])));
        assert_eq!(login(b"\x03bob\x03pw"), None);
    }

    proptest! {
        #[test]
        fn names_survive(name in prop::collection::vec(any::<u8>(), 0..=255), port: u16) {
            let mut data = vec![1, 0, 3, name.len() as u8];
            data.extend_from_slice(&name);
            data.extend_from_slice(&port.to_be_bytes());
            let m = Message5::parse(&data);
            prop_assert_eq!(m.and_then(|m| m.address.name), Some(&name[..]));
            prop_assert_eq!(m.map(|m| m.port), Some(port));
            prop_assert!(Message5::parse(&data[..data.len() - 1]).is_none());
        }
    }
}
