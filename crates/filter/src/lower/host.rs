//! Identifiers: addresses, names and numbers under their qualifiers.

use std::net::{IpAddr, Ipv6Addr};

use super::link::{ARP, IP, IP6, RARP};
use super::{At, Lower, Result, at_most, invalid};
use crate::ast::{Id, Qualifiers};
use crate::dlt::*;
use crate::ir::{Cond, and, not, or};
use crate::lexer::to_number;
use crate::names::link_protocol;

type V4 = (u32, u32);
type V6 = (u128, u128);

impl Lower<'_> {
    pub(super) fn id(&mut self, qualifiers: Option<Qualifiers>, id: &Id) -> Result<Cond> {
        let syntax = "syntax error in filter expression";
        let Some(q) = qualifiers else {
            return Err(match id {
                Id::Mac(_) => "Ethernet address used in non-ether expression".into(),
                Id::Mac8(_) => "'link' is the only valid proto qualifier for 'host $XX'".into(),
                _ => syntax.into(),
            });
        };
        if let (
            Id::V4(_) | Id::V4Prefix(..) | Id::V4Mask(..) | Id::V6(_) | Id::V6Prefix(..),
            Some(of),
        ) = (id, q.of)
            && matches!(of, "port" | "portrange" | "proto" | "protochain")
        {
            let what = match id {
                Id::V4(_) => "IPv4 address",
                Id::V4Prefix(..) => "IPv4 address and prefix length",
                Id::V4Mask(..) => "IPv4 address and netmask",
                Id::V6(_) => "IPv6 address",
                _ => "IPv6 address and prefix length",
            };
            return Err(format!("'{of}' qualifier applied to {what}"));
        }
        match id {
            Id::File(_) => Err(syntax.into()),
            Id::Name(name) => self.name(q, name),
            Id::Number(n) => self.plain(q, *n, 32, &n.to_string(), true),
            Id::V4(text) if q.proto == Some("decnet") => self.decnet(q, text),
            Id::V4(text) => {
                let (n, bits) = v4(text)?;
                self.plain(q, n, bits, text, false)
            }
            Id::V4Prefix(text, length) => {
                let (n, bits) = self.checked_v4(q, text)?;
                at_most("netmask length", *length, 32)?;
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                self.net4(q, n << (32 - bits), mask, &format!("{text}/{length}"))
            }
            Id::V4Mask(text, mask) => {
                let (n, bits) = self.checked_v4(q, text)?;
                let (m, mask_bits) = v4(mask)?;
                let named = format!("{text} mask {mask}");
                self.net4(q, n << (32 - bits), m << (32 - mask_bits), &named)
            }
            Id::V6(text) => self.net6(q, text, 128),
            Id::V6Prefix(text, length) => self.net6(q, text, *length),
            Id::Mac(text) => {
                let context = "link host XX:XX:XX:XX:XX:XX";
                if !matches!(q.of, None | Some("host")) || q.proto != Some("link") {
                    return Err("Ethernet address used in non-ether expression".into());
                }
                self.needs_mac48(context)?;
                self.mac48(&mac48(text), q.dir, context)
            }
            Id::Mac8(text) => {
                plain_dir(q.dir)?;
                if let Some(of) = q.of.filter(|of| *of != "host") {
                    return Err(invalid(of, "$XX"));
                }
                if q.proto != Some("link") {
                    return Err("'link' is the only valid proto qualifier for 'host $XX'".into());
                }
                let address = u32::from_str_radix(&text[1..], 16).unwrap_or(0);
                self.mac8(address, q.dir, "link host $XX")
            }
        }
    }

    fn checked_v4(&self, q: Qualifiers, text: &str) -> Result<(u32, u32)> {
        if q.proto == Some("decnet") {
            return Err(invalid("decnet", q.of.unwrap_or("host")));
        }
        v4(text)
    }

    fn net4(&mut self, q: Qualifiers, n: u32, mask: u32, named: &str) -> Result<Cond> {
        if n & !mask != 0 {
            return Err(format!("non-network bits set in \"{named}\""));
        }
        match q.of {
            Some("net") => self.hosts4(&[(n, mask)], q.proto, q.dir, false, "net <IPv4 prefix>"),
            of => Err(invalid(of.unwrap_or("host"), named)),
        }
    }

    fn net6(&mut self, q: Qualifiers, text: &str, length: u32) -> Result<Cond> {
        let address: Ipv6Addr =
            text.parse().map_err(|_| format!("'{text}' is not a valid IPv6 address"))?;
        let n = u128::from(address);
        if length > 128 {
            return Err("mask length must be <= 128".into());
        }
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        if n & !mask != 0 {
            return Err(format!("non-network bits set in \"{text}/{length}\""));
        }
        let named = if length == 128 { text.to_owned() } else { format!("{text}/{length}") };
        match q.of {
            None | Some("host") if length != 128 => Err(invalid("host", &named)),
            None | Some("host" | "net") => {
                let context =
                    if q.of == Some("host") { "host <IPv6 address>" } else { "net <IPv6 prefix>" };
                self.hosts6(&[(n, mask)], q.proto, q.dir, false, context)
            }
            Some(of) => Err(invalid(of, &named)),
        }
    }

    /// A number, or an address with the given length in bits.
    fn plain(
        &mut self,
        q: Qualifiers,
        v: u32,
        bits: u32,
        text: &str,
        is_number: bool,
    ) -> Result<Cond> {
        if q.proto == Some("decnet") {
            plain_dir(q.dir)?;
            if let Some(of) = q.of.filter(|of| *of != "host") {
                return Err(invalid("decnet", of));
            }
            return Err(format!("invalid DECnet address '{text}'"));
        }
        match q.of {
            None | Some("host" | "net") => {
                if q.proto == Some("link") {
                    return Err(format!("illegal link-layer address '{text}'"));
                }
                let (mut n, mut mask) = (v, u32::MAX);
                if is_number && q.of == Some("net") {
                    while n != 0 && n & 0xff00_0000 == 0 {
                        n <<= 8;
                        mask <<= 8;
                    }
                } else {
                    n <<= 32 - bits;
                    mask <<= 32 - bits;
                }
                let net = q.of == Some("net");
                let context = if net { "net <IPv4 address>" } else { "host <IPv4 address>" };
                self.hosts4(&[(n, mask)], q.proto, q.dir, false, context)
            }
            Some(of @ ("port" | "portrange")) => {
                let over = self.port_protocol(q.proto, of)?;
                at_most("port number", v, 0xffff)?;
                self.ports((v, v), over, q.dir, of)
            }
            Some("proto") => self.protocol(v, q.proto),
            Some("protochain") => self.protocol_chain(v, q.proto),
            Some(of) => Err(invalid(of, text)),
        }
    }

    fn name(&mut self, q: Qualifiers, name: &str) -> Result<Cond> {
        if q.proto == Some("decnet") {
            return Err(invalid("decnet", q.of.unwrap_or("host")));
        }
        match q.of {
            Some("net") => {
                let mut n = self.names.network(name).unwrap_or(0);
                if n == 0 {
                    return Err(format!("unknown network '{name}'"));
                }
                let mut mask = u32::MAX;
                while n & 0xff00_0000 == 0 {
                    n <<= 8;
                    mask <<= 8;
                }
                self.hosts4(&[(n, mask)], q.proto, q.dir, false, "net <IPv4 network name>")
            }
            None | Some("host") if q.proto == Some("link") => {
                self.mac48_by_name(name, q.dir, "link host NAME")
            }
            None | Some("host") => self.hosts_by_name(name, q.proto, q.proto, q.dir, false),
            Some("gateway") => self.gateway(name, q.proto),
            Some(of @ ("port" | "portrange")) => {
                let allowed = self.port_protocol(q.proto, of)?;
                let (range, real) = if of == "port" {
                    let (port, over) =
                        self.port(name).map_err(|_| format!("unknown port '{name}'"))?;
                    ((port, port), over)
                } else {
                    self.port_range(name)?
                };
                if let (Some(proto), Some(real)) = (q.proto, real)
                    && allowed != Some(real)
                {
                    let what = if of == "port" { "port" } else { "port in range" };
                    let other = if real == 6 { "tcp" } else { "udp" };
                    let _ = proto;
                    return Err(format!("{what} '{name}' is {other}"));
                }
                at_most("port number", range.0, 0xffff)?;
                at_most("port number", range.1, 0xffff)?;
                self.ports(range, allowed.or(real), q.dir, of)
            }
            Some(of) => {
                let v = match q.proto {
                    None | Some("ip" | "ip6") => self.names.protocol(name).map(u32::from),
                    Some("link") => link_protocol(name),
                    Some("iso") => match name {
                        "clnp" => Some(0x81),
                        "esis" => Some(0x82),
                        "isis" => Some(0x83),
                        _ => None,
                    },
                    _ => None,
                };
                let Some(v) = v else {
                    let proto = q.proto.map_or(String::new(), |p| format!("{p} "));
                    return Err(format!("unknown '{proto}{of}' value '{name}'"));
                };
                if of == "proto" {
                    self.protocol(v, q.proto)
                } else {
                    self.protocol_chain(v, q.proto)
                }
            }
        }
    }

    /// A port, and the protocol if only one has a service of this name.
    pub(super) fn port(&self, text: &str) -> Result<(u32, Option<u32>)> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            match to_number(text) {
                Ok(n) => return Ok((n, None)),
                Err(message) if message.contains("overflows") => return Err(message),
                Err(_) => (),
            }
        }
        match (self.names.port(text, "tcp"), self.names.port(text, "udp")) {
            (Some(tcp), Some(udp)) if tcp == udp => Ok((tcp.into(), None)),
            (Some(tcp), _) => Ok((tcp.into(), Some(6))),
            (None, Some(udp)) => Ok((udp.into(), Some(17))),
            (None, None) => Err(format!("'{text}' is not a valid port")),
        }
    }

    pub(super) fn port_range(&self, text: &str) -> Result<((u32, u32), Option<u32>)> {
        let Some((first, second)) = text.split_once('-') else {
            return Err(format!("port range '{text}' contains no hyphen"));
        };
        if second.contains('-') {
            return Err(format!("port range '{text}' contains more than one hyphen"));
        }
        if first.is_empty() {
            return Err(format!("port range '{text}' has no starting port"));
        }
        let low = self.port(first)?;
        if second.is_empty() {
            return Err(format!("port range '{text}' has no ending port"));
        }
        let high = self.port(second)?;
        Ok(((low.0, high.0), low.1.filter(|_| low.1 == high.1)))
    }

    fn hosts4(
        &mut self,
        hosts: &[V4],
        proto: Option<&str>,
        dir: Option<&str>,
        negated: bool,
        context: &str,
    ) -> Result<Cond> {
        plain_dir(dir)?;
        let (kind, source, destination) = match proto {
            None => {
                let mut any = self.hosts4(hosts, Some("ip"), dir, negated, context)?;
                if self.state.labels == 0 {
                    for proto in ["arp", "rarp"] {
                        any = or(any, self.hosts4(hosts, Some(proto), dir, negated, context)?);
                    }
                }
                return Ok(any);
            }
            Some("ip") => (IP, 12, 16),
            Some("arp") => (ARP, 14, 24),
            Some("rarp") => (RARP, 14, 24),
            Some(other) => return Err(invalid(other, context)),
        };
        let carries = self.carries(kind)?;
        if matches!(carries, Cond::False) {
            return Ok(Cond::False);
        }
        let mut any = Cond::False;
        for (n, mask) in hosts {
            any = or(
                any,
                sides(dir, |is_source| {
                    let offset = if is_source { source } else { destination };
                    self.masked(At::Payload, offset, 4, *n, *mask)
                })?,
            );
        }
        Ok(and(carries, if negated { not(any) } else { any }))
    }

    fn hosts6(
        &mut self,
        hosts: &[V6],
        proto: Option<&str>,
        dir: Option<&str>,
        negated: bool,
        context: &str,
    ) -> Result<Cond> {
        plain_dir(dir)?;
        if let Some(other) = proto.filter(|p| *p != "ip6") {
            return Err(invalid(other, context));
        }
        let carries = self.carries(IP6)?;
        let mut any = Cond::False;
        for (n, mask) in hosts {
            any = or(
                any,
                sides(dir, |is_source| {
                    let offset = if is_source { 8 } else { 24 };
                    let mut all = Cond::True;
                    for i in 0..4 {
                        let word = |v: u128| (v >> (96 - 32 * i)) as u32;
                        let at = offset + 4 * i as u32;
                        all = and(all, self.masked(At::Payload, at, 4, word(*n), word(*mask))?);
                    }
                    Ok(all)
                })?,
            );
        }
        Ok(and(carries, if negated { not(any) } else { any }))
    }

    fn hosts_by_name(
        &mut self,
        name: &str,
        proto4: Option<&str>,
        proto6: Option<&str>,
        dir: Option<&str>,
        negated: bool,
    ) -> Result<Cond> {
        let context = "host <Internet hostname>";
        let mut addresses = self.names.host(name);
        if addresses.is_empty() {
            return Err(format!("unknown host '{name}'"));
        }
        addresses.sort();
        let (mut v4, mut v6): (Vec<V4>, Vec<V6>) = (Vec::new(), Vec::new());
        for address in addresses {
            match address {
                IpAddr::V4(a) => v4.push((a.into(), u32::MAX)),
                IpAddr::V6(a) => v6.push((a.into(), u128::MAX)),
            }
        }
        let mut found = None;
        if proto4 != Some("ip6") && !v4.is_empty() {
            found = Some(self.hosts4(&v4, proto4, dir, negated, context)?);
        }
        if !matches!(proto6, Some("arp" | "ip" | "rarp")) && !v6.is_empty() {
            let hosts = self.hosts6(&v6, proto6, dir, negated, context)?;
            found = Some(match found {
                Some(before) => or(before, hosts),
                None => hosts,
            });
        }
        found.ok_or_else(|| match proto4 {
            None => format!("unknown host '{name}'"),
            Some(_) => format!("unknown host '{name}' for specified address family"),
        })
    }

    fn gateway(&mut self, name: &str, proto: Option<&str>) -> Result<Cond> {
        if let Some(other) = proto.filter(|p| !matches!(*p, "ip" | "arp" | "rarp")) {
            return Err(invalid(other, "gateway"));
        }
        if self.state.labels > 0 {
            return Err("'gateway' cannot be used within MPLS".into());
        }
        if self.state.inside_tunnel {
            return Err("'gateway' cannot be used within VXLAN or Geneve".into());
        }
        let through = self.mac48_by_name(name, None, "gateway")?;
        Ok(and(through, self.hosts_by_name(name, proto, Some("ip"), None, true)?))
    }

    fn needs_mac48(&self, context: &str) -> Result<()> {
        let has = super::state::is_wlan(self.state.link)
            || matches!(
                self.state.link,
                EN10MB
                    | FDDI
                    | IEEE802
                    | IP_OVER_FC
                    | NETANALYZER
                    | NETANALYZER_TRANSPARENT
                    | DSA_TAG_BRCM
                    | DSA_TAG_DSA
            );
        if has { Ok(()) } else { Err(self.unsupported(context)) }
    }

    pub(super) fn unsupported(&self, context: &str) -> String {
        format!("'{context}' not supported on {}", described(self.state.link))
    }

    fn mac48_by_name(&mut self, name: &str, dir: Option<&str>, context: &str) -> Result<Cond> {
        self.needs_mac48(context)?;
        let Some(address) = self.names.ether(name) else {
            return Err(format!("unknown Ethernet-like host '{name}'"));
        };
        self.mac48(&address, dir, context)
    }

    pub(super) fn mac48(
        &mut self,
        mac: &[u8; 6],
        dir: Option<&str>,
        context: &str,
    ) -> Result<Cond> {
        let mut before = Cond::True;
        let (source, destination) = match self.state.link {
            EN10MB | NETANALYZER | NETANALYZER_TRANSPARENT | DSA_TAG_BRCM | DSA_TAG_DSA => {
                before = self.previous_header_check()?;
                (6, 0)
            }
            FDDI => (7, 1),
            IEEE802 => (8, 2),
            IP_OVER_FC => (10, 2),
            link if super::state::is_wlan(link) => return self.wlan_host(mac, dir),
            _ => return Err(self.unsupported(context)),
        };
        plain_dir(dir)?;
        let host = sides(dir, |is_source| {
            self.bytes(At::LinkHeader, if is_source { source } else { destination }, mac)
        })?;
        Ok(and(before, host))
    }

    pub(super) fn mac8(&mut self, mac: u32, dir: Option<&str>, context: &str) -> Result<Cond> {
        let (source, destination) = match self.state.link {
            ARCNET | ARCNET_LINUX => (0, 1),
            BACNET_MS_TP => (4, 3),
            _ => return Err(self.unsupported(context)),
        };
        sides(dir, |is_source| {
            self.eq(At::LinkHeader, if is_source { source } else { destination }, 1, mac)
        })
    }

    /// DECnet addresses are little-endian and follow a long or a short header, with or without
    /// padding.
    fn decnet(&mut self, q: Qualifiers, text: &str) -> Result<Cond> {
        plain_dir(q.dir)?;
        if let Some(of) = q.of.filter(|of| *of != "host") {
            return Err(invalid("decnet", of));
        }
        let address = text.split_once('.').and_then(|(area, node)| {
            let (area, node): (u32, u32) = (area.parse().ok()?, node.parse().ok()?);
            (area <= 63 && node <= 1023).then_some(area << 10 | node)
        });
        let Some(address) = address else {
            return Err(format!("invalid DECnet address '{text}'"));
        };
        let address = address.rotate_left(8) & 0xff00 | address >> 8;
        let carries = self.carries(0x6003)?;
        let host = sides(q.dir, |is_source| {
            let (short, long) = if is_source { (3, 15) } else { (1, 7) };
            let mut any = Cond::False;
            for (flags, mask, size, offset) in [
                (0x02, 0x07, 1, 2 + short),
                (0x8102, 0xff07, 2, 3 + short),
                (0x06, 0x07, 1, 2 + long),
                (0x8106, 0xff07, 2, 3 + long),
            ] {
                if offset == 2 + u32::from(size) {
                    // The address follows the flags: one load of four bytes reads both.
                    let shift = 32 - 8 * u32::from(size);
                    let all = flags << shift | address << (shift - 16);
                    let mask = mask << shift | 0xffff << (shift - 16);
                    any = or(any, self.masked(At::Payload, 2, 4, all, mask)?);
                    continue;
                }
                let kind = self.masked(At::Payload, 2, size, flags, mask)?;
                any = or(any, and(kind, self.eq(At::Payload, offset, 2, address)?));
            }
            Ok(any)
        })?;
        Ok(and(carries, host))
    }
}

/// One side or both, depending on the direction.
pub(super) fn sides(dir: Option<&str>, mut side: impl FnMut(bool) -> Result<Cond>) -> Result<Cond> {
    match dir {
        Some("src") => side(true),
        Some("dst") => side(false),
        Some("src and dst") => Ok(and(side(true)?, side(false)?)),
        _ => Ok(or(side(true)?, side(false)?)),
    }
}

/// Directions of 802.11 apply only to its own addresses.
fn plain_dir(dir: Option<&str>) -> Result<()> {
    match dir {
        None | Some("src" | "dst" | "src or dst" | "src and dst") => Ok(()),
        Some(dir) => Err(format!("'{dir}' is valid for 802.11 syntax only")),
    }
}

/// An address of one to four bytes, and its length in bits.
fn v4(text: &str) -> Result<(u32, u32)> {
    let (mut n, mut bits) = (0, 0);
    for part in text.split('.') {
        let byte = part.parse::<u8>().map_err(|_| format!("invalid IPv4 address '{text}'"))?;
        n = n << 8 | u32::from(byte);
        bits += 8;
    }
    Ok((n, bits))
}

fn mac48(text: &str) -> [u8; 6] {
    let separated = text.len() < 12 || text.contains([':', '-']) || text.matches('.').count() == 5;
    let mut mac = [0; 6];
    if separated {
        for (byte, part) in mac.iter_mut().zip(text.split([':', '-', '.'])) {
            *byte = u8::from_str_radix(part, 16).unwrap_or(0);
        }
    } else {
        let digits: Vec<u8> =
            text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        for (byte, pair) in mac.iter_mut().zip(digits.chunks(2)) {
            *byte = pair.iter().fold(0, |b, d| b << 4 | d);
        }
    }
    mac
}
