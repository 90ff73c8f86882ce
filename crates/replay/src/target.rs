//! Addresses that queries may be sent to, and source addresses.

use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::net::ToSocketAddrs;

use gannet_base::Addr;
use gannet_base::Subnet;

/// Port of DNS over UDP and TCP.
const DNS_PORT: u16 = 53;

/// A server that queries may be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(SocketAddr);

/// The error for a text that names no permitted server.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It is neither an address nor a name that resolves.
    #[error("'{text}': {why}")]
    NoAddress {
        /// The given text.
        text: String,
        /// The cause.
        why: String,
    },
    /// It is a public address, which may belong to another party.
    #[error(
        "{0} is neither a loopback nor a private address: queries go there only with --yes-i-may"
    )]
    Public(SocketAddr),
    /// It is a broadcast or multicast address.
    #[error("{0} is not the address of a single server")]
    Many(SocketAddr),
}

impl Target {
    /// Parses `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`; the port is 53 unless given.
    ///
    /// # Errors
    /// If it does not resolve, or is a broadcast or multicast address, or, unless `may_be_public`,
    /// a public address.
    pub fn parse(text: &str, may_be_public: bool) -> Result<Self, TargetError> {
        Self::with_port(text, DNS_PORT, may_be_public)
    }

    /// Like [`parse`](Self::parse), with another default port.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub fn with_port(text: &str, port: u16, may_be_public: bool) -> Result<Self, TargetError> {
        let address = resolve(text, port)?;
        if address.port() == 0 {
            let why = "a server cannot have port 0".to_owned();
            return Err(TargetError::NoAddress { text: text.to_owned(), why });
        }
        if address.ip().is_multicast() || is_broadcast(address.ip()) {
            return Err(TargetError::Many(address));
        }
        if !may_be_public && is_public(address.ip()) {
            return Err(TargetError::Public(address));
        }
        Ok(Self(address))
    }

    /// The address and port.
    pub fn address(self) -> SocketAddr {
        self.0
    }
}

/// The name or address in a text such as [`Target::parse`] accepts, without the port.
pub fn host(text: &str) -> &str {
    if let Some((host, _)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        return host;
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => text,
    }
}

fn resolve(text: &str, default: u16) -> Result<SocketAddr, TargetError> {
    let fail = |why: &str| TargetError::NoAddress { text: text.to_owned(), why: why.to_owned() };
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, default));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| fail("the port is not a number"))?),
        None => (text, default),
    };
    if host.is_empty() {
        return Err(fail("the host is missing; expected HOST:PORT, like 127.0.0.1:5300"));
    }
    (host, port)
        .to_socket_addrs()
        .map_err(|e| fail(&e.to_string()))?
        .next()
        .ok_or_else(|| fail("the name does not resolve to an address"))
}

fn is_broadcast(ip: IpAddr) -> bool {
    ip == IpAddr::from([255, 255, 255, 255]) || ip.is_unspecified()
}

/// Whether an address may belong to another party: not loopback, and not private (RFC 1918, RFC
/// 4193). Link-local addresses reach every host of a link, shared ones (RFC 6598) those of a
/// provider, and benchmarking and documentation ranges follow the default route.
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !(ip.is_loopback() || ip.is_private()),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or_else(
            || !(ip == Ipv6Addr::LOCALHOST || ip.segments()[0] & 0xfe00 == 0xfc00),
            |ip| is_public(IpAddr::V4(ip)),
        ),
    }
}

/// Parses a range of source addresses, `10.0.0.0/8` or one address; `None` for any other text.
pub fn parse_range(text: &str) -> Option<Range> {
    let (base, len) = match text.split_once('/') {
        Some((base, len)) => (base.parse::<IpAddr>().ok()?, Some(len.parse::<u8>().ok()?)),
        None => (text.parse().ok()?, None),
    };
    let width = if base.is_ipv4() { 32 } else { 128 };
    let len = len.unwrap_or(width);
    let addr = base.to_string().parse::<Addr>().ok()?;
    Subnet::new(addr, len)?;
    let host = u32::from(width - len);
    let bits = match base {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    };
    let mask = 1_u128.checked_shl(host).map_or(u128::MAX, |size| size - 1);
    Some(Range { base: bits & !mask, mask, is_v4: base.is_ipv4() })
}

/// Source addresses that clients bind to, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    base: u128,
    mask: u128,
    is_v4: bool,
}

impl Range {
    /// The address of client `index`: the range's first and last (network and broadcast) are
    /// excluded if it has more than two addresses.
    pub fn address(&self, index: u32) -> IpAddr {
        let host = if self.mask > 1 {
            1 + u128::from(index) % (self.mask - 1)
        } else {
            u128::from(index) & self.mask
        };
        let bits = self.base + host;
        if self.is_v4 {
            IpAddr::from((bits as u32).to_be_bytes())
        } else {
            IpAddr::from(bits.to_be_bytes())
        }
    }

    /// Whether it holds IPv4 addresses.
    pub fn is_v4(&self) -> bool {
        self.is_v4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_targets_and_public_ones_are_refused() {
        for ok in [
            "127.0.0.1",
            "127.0.0.1:5300",
            "[::1]:53",
            "::1",
            "10.1.2.3",
            "192.168.0.1:1",
            "fd00::1",
            "[::ffff:10.0.0.1]:53",
            "localhost:5300",
        ] {
            assert!(Target::parse(ok, false).is_ok(), "{ok}");
        }
        for public in [
            "8.8.8.8",
            "1.1.1.1:53",
            "[2001:4860:4860::8888]:53",
            "100.128.0.1",
            "198.20.0.1",
            "[::ffff:8.8.8.8]:53",
            "172.32.0.1",
            "100.64.0.1",
            "169.254.0.1",
            "198.18.0.1",
            "192.0.2.1",
            "240.0.0.1",
            "fe80::1",
            "2001:db8::1",
            "2001:2::1",
        ] {
            assert!(
                matches!(Target::parse(public, false), Err(TargetError::Public(_))),
                "{public}"
            );
            assert!(Target::parse(public, true).is_ok(), "{public}");
        }
        for many in ["224.0.0.251:5353", "255.255.255.255", "ff02::fb", "0.0.0.0:53"] {
            assert!(matches!(Target::parse(many, true), Err(TargetError::Many(_))), "{many}");
        }
        for none in ["", ":53", "127.0.0.1:port", "127.0.0.1:99999"] {
            assert!(
                matches!(Target::parse(none, true), Err(TargetError::NoAddress { .. })),
                "{none}"
            );
        }
    }

    #[test]
    fn the_port_is_53_unless_given() {
        assert_eq!(Target::parse("127.0.0.1", false).unwrap().address().port(), 53);
        assert_eq!(Target::parse("[::1]:54", false).unwrap().address().port(), 54);
        assert_eq!(Target::with_port("::1", 853, false).unwrap().address().port(), 853);
        assert!(Target::parse("127.0.0.1:0", false).is_err());
    }

    #[test]
    fn the_host_precedes_its_port() {
        for text in ["[::1]:54", "[::1]", "::1"] {
            assert_eq!(host(text), "::1");
        }
        assert_eq!((host("a.test:853"), host("a.test")), ("a.test", "a.test"));
    }

    #[test]
    fn clients_take_the_addresses_of_a_range_in_turn() {
        let r = parse_range("127.9.0.0/30").unwrap();
        let seen: Vec<_> = (0..4).map(|i| r.address(i).to_string()).collect();
        assert_eq!(seen, ["127.9.0.1", "127.9.0.2", "127.9.0.1", "127.9.0.2"]);
        assert_eq!(parse_range("10.0.0.7").unwrap().address(9).to_string(), "10.0.0.7");
        assert_eq!(parse_range("fd00::/64").unwrap().address(8).to_string(), "fd00::9");
        assert_eq!(parse_range("::/0").unwrap().address(0).to_string(), "::1");
        for wrong in ["", "10.0.0.0/33", "x/8", "10.0.0.0/"] {
            assert_eq!(parse_range(wrong), None, "{wrong}");
        }
    }
}
