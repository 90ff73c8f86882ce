use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// An IPv4 or IPv6 address in sixteen bytes in network order; IPv4 addresses are IPv4-mapped (`::ffff:a.b.c.d`), so
/// that both versions are compared, hashed and sorted in the same way.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr([u8; 16]);

/// The first twelve bytes of an IPv4 address: the first eight and the next four as numbers.
const MAPPED: (u64, u32) = (0, u32::from_ne_bytes([0, 0, 0xff, 0xff]));

impl Addr {
    /// From four bytes in network order.
    #[inline]
    pub const fn v4(b: [u8; 4]) -> Self {
        Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, b[0], b[1], b[2], b[3]])
    }

    /// From sixteen bytes in network order. An IPv4-mapped address is an IPv4 address.
    #[inline]
    pub const fn v6(b: [u8; 16]) -> Self {
        Self(b)
    }

    /// From four or sixteen bytes; `None` for any other length.
    pub fn from_slice(b: &[u8]) -> Option<Self> {
        match b.len() {
            4 => Some(Self::v4([b[0], b[1], b[2], b[3]])),
            16 => <[u8; 16]>::try_from(b).ok().map(Self),
            _ => None,
        }
    }

    /// The sixteen bytes; IPv4-mapped for IPv4 addresses.
    #[inline]
    pub const fn octets(self) -> [u8; 16] {
        self.0
    }

    /// The four bytes of an IPv4 address.
    #[inline]
    pub fn as_v4(self) -> Option<[u8; 4]> {
        self.is_v4().then(|| [self.0[12], self.0[13], self.0[14], self.0[15]])
    }

    /// Whether this is an IPv4 address.
    #[inline]
    pub fn is_v4(self) -> bool {
        // Two integer comparisons, because compilers would compare the bytes one by one.
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.0;
        let first_bytes =
            (u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u32::from_ne_bytes([i, j, k, l]));
        first_bytes == MAPPED
    }

    /// Whether this address is in 224.0.0.0/4 or ff00::/8.
    #[inline]
    pub fn is_multicast(self) -> bool {
        match self.as_v4() {
            Some(b) => b[0] & 0xf0 == 0xe0,
            None => self.0[0] == 0xff,
        }
    }

    /// Whether this is 255.255.255.255.
    pub fn is_broadcast(self) -> bool {
        self.as_v4() == Some([255; 4])
    }
}

/// Formats an IPv4 address as dotted decimal; returns the buffer and the length of the text.
fn dotted(parts: [u8; 4]) -> ([u8; 15], usize) {
    let (mut text, mut len) = ([0; 15], 0);
    let mut push = |byte| {
        text[len] = byte;
        len += 1;
    };
    for (i, n) in parts.into_iter().enumerate() {
        if i > 0 {
            push(b'.');
        }
        if n >= 100 {
            push(b'0' + n / 100);
        }
        if n >= 10 {
            push(b'0' + n / 10 % 10);
        }
        push(b'0' + n % 10);
    }
    (text, len)
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_v4() {
            Some(b) => {
                let (text, len) = dotted(b);
                f.pad(std::str::from_utf8(&text[..len]).unwrap_or_default())
            }
            None => Ipv6Addr::from(self.0).fmt(f),
        }
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Addr {
    type Err = std::net::AddrParseError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        s.parse::<std::net::IpAddr>().map(|a| match a {
            std::net::IpAddr::V4(a) => Self::v4(a.octets()),
            std::net::IpAddr::V6(a) => Self::v6(a.octets()),
        })
    }
}

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subnet {
    /// The prefix, padded with zeros, as a number in native byte order.
    base: u128,
    /// The mask of the prefix, in native byte order.
    mask: u128,
}

impl Subnet {
    /// From an address and a prefix length of its version: at most 32 for IPv4, 128 for IPv6. `None` if it is longer.
    pub fn new(base: Addr, len: u8) -> Option<Self> {
        let (max, mapped_bits) = if base.is_v4() { (32, 96) } else { (128, 0) };
        let bits = 128 - u32::from(mapped_bits + len.min(max));
        let mask = u128::MAX.checked_shl(bits).unwrap_or_default().to_be();
        (len <= max).then(|| Self { base: u128::from_ne_bytes(base.0) & mask, mask })
    }

    /// The first address of the subnet.
    pub fn base(&self) -> Addr {
        Addr(self.base.to_ne_bytes())
    }

    /// Length of the prefix out of 128 bits, also for IPv4 addresses.
    pub fn bits(&self) -> u8 {
        self.mask.count_ones() as u8
    }

    /// Whether the subnet contains the address.
    #[inline]
    pub fn contains(&self, a: Addr) -> bool {
        u128::from_ne_bytes(a.0) & self.mask == self.base
    }

    /// Whether the subnet contains any address from `low` to `high`.
    pub fn overlaps(&self, low: Addr, high: Addr) -> bool {
        let (first, mask) = (u128::from_be(self.base), u128::from_be(self.mask));
        first <= u128::from_be_bytes(high.0) && u128::from_be_bytes(low.0) <= first | !mask
    }
}

/// Formats as `10.0.0.0/8`.
impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.base();
        let mapped_bits = if base.is_v4() { 96 } else { 0 };
        write!(f, "{base}/{}", self.bits() - mapped_bits)
    }
}

impl FromStr for Subnet {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let error = || format!("'{s}' is not a subnet; expected ADDRESS/LENGTH, like 10.0.0.0/8");
        let (a, n) = s.split_once('/').ok_or_else(error)?;
        Self::new(a.parse().map_err(|_| error())?, n.parse().map_err(|_| error())?)
            .ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_formatted_as_in_logs() {
        assert_eq!(Addr::v4([10, 0, 0, 1]).to_string(), "10.0.0.1");
        for n in 0..=255 {
            let parts = [n, 255 - n, 0, n / 2];
            assert_eq!(Addr::v4(parts).to_string(), std::net::Ipv4Addr::from(parts).to_string());
        }
        assert_eq!(
            format!("{:>9}|{:<9}", Addr::v4([1; 4]), Addr::v4([2; 4])),
            "  1.1.1.1|2.2.2.2  "
        );
        assert_eq!("fe80::1".parse::<Addr>().map(|a| a.to_string()), Ok("fe80::1".into()));
    }

    #[test]
    fn subnets_contain_addresses_of_their_version() {
        let n: Subnet = "10.0.0.0/8".parse().unwrap();
        assert!(n.contains(Addr::v4([10, 9, 8, 7])));
        assert!(!n.contains(Addr::v4([11, 0, 0, 0])));
        assert!(!n.contains("fe80::1".parse().unwrap()));
        assert!(n.overlaps(Addr::v4([9, 0, 0, 0]), Addr::v4([10, 0, 0, 0])));
        assert!(!n.overlaps(Addr::v4([11, 0, 0, 0]), Addr::v4([11, 255, 255, 255])));
        assert!("10.0.0.0/33".parse::<Subnet>().is_err());
        assert!("::/0".parse::<Subnet>().unwrap().contains("2001:db8::1".parse().unwrap()));
    }
}
