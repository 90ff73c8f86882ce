//! The network of a client, for EDNS Client Subnet (RFC 7871).

use std::net::IpAddr;
use std::str::FromStr;

use super::CLIENT_SUBNET;

/// An IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// The error for a text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a network, such as 192.0.2.0/24 or 2001:db8::/56")]
pub struct SubnetError(String);

impl FromStr for Subnet {
    type Err = SubnetError;

    /// Parses an address and a prefix length; bits after the prefix are cleared.
    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let parse = || {
            let (address, prefix) = text.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            let bits = if address.is_ipv4() { 32 } else { 128 };
            let digits = prefix.bytes().all(|b| b.is_ascii_digit());
            let prefix = prefix.parse().ok().filter(|prefix| digits && *prefix <= bits)?;
            Some(Self { address, prefix })
        };
        parse().ok_or_else(|| SubnetError(text.to_owned()))
    }
}

impl Subnet {
    /// Appends the option, with only the bytes of the address that the prefix covers (§6).
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let (family, bytes) = match self.address {
            IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
            IpAddr::V6(address) => (2, address.octets().to_vec()),
        };
        let len = usize::from(self.prefix).div_ceil(8);
        let mut bytes = bytes.get(..len).unwrap_or_default().to_vec();
        if let Some(last) = bytes.last_mut() {
            // Bits that the prefix does not cover are 0.
            *last &= 0xff << (len * 8 - usize::from(self.prefix));
        }
        out.extend_from_slice(&CLIENT_SUBNET.to_be_bytes());
        out.extend_from_slice(&(4 + len as u16).to_be_bytes());
        out.extend_from_slice(&family.to_be_bytes());
        out.extend_from_slice(&[self.prefix, 0]);
        out.extend_from_slice(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_bytes_of_its_prefix() {
        let option = |text: &str| {
            let mut out = Vec::new();
            text.parse::<Subnet>().unwrap().write(&mut out);
            out
        };
        assert_eq!(option("192.0.2.255/25"), b"\0\x08\0\x08\0\x01\x19\0\xc0\0\x02\x80");
        assert_eq!(option("10.1.2.3/0"), b"\0\x08\0\x04\0\x01\0\0");
        assert_eq!(option("2001:db8:ffff::/33"), b"\0\x08\0\x09\0\x02\x21\0\x20\x01\x0d\xb8\x80");
        assert_eq!(option("::1/128").len(), 24);
    }

    #[test]
    fn invalid_texts_are_refused() {
        for text in
            ["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/+8", "x/8", "10.0.0.0/"]
        {
            assert!(text.parse::<Subnet>().is_err(), "{text}");
        }
    }
}
