//! Lists of addresses and ports as sets: `host in {…}`, and long runs of `host a or host b`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::link::{ARP, IP, IP6, RARP};
use super::{At, Lower, Result, invalid};
use crate::ast::{Expr, Id, Join, Primitive, Qualifiers};
use crate::bpf;
use crate::ir::{Cond, Set, Set6, ValueId, and, not, or};

/// Shorter runs are left to the optimizer, so that the stages show them as written.
const MIN_RUN: usize = 16;

/// Numbers in source order, both ends included.
type Listed = Vec<(u32, u32)>;

/// The addresses of a list.
#[derive(Debug, Default)]
struct Addresses {
    v4: Listed,
    v6: Vec<(u128, u128)>,
}

impl Lower<'_> {
    /// A run of alternatives that begins here and differs only in addresses or ports: its condition
    /// and its length.
    pub(super) fn run(&mut self, first: &Expr, rest: &[(Join, Expr)]) -> Option<(Cond, usize)> {
        if !self.options.optimize {
            return None;
        }
        let (q, range) = listed(first)?;
        let mut ranges = vec![range];
        for (join, next) in rest {
            match (join, listed(next)) {
                (Join::Or, Some((same, range))) if same == q => ranges.push(range),
                _ => break,
            }
        }
        if ranges.len() < MIN_RUN {
            return None;
        }
        // If the link layer does not distinguish IPv4 and ARP, combining the tests would change the
        // order in which bytes are read.
        if q.of != Some("port") && self.carries(IP).ok()? == self.carries(ARP).ok()? {
            return None;
        }
        let n = ranges.len();
        let cond = match q.of {
            Some("port") => self.ports_listed(q, &ranges, true),
            _ => self.hosts_listed(q.proto, q.dir, &ranges, true),
        };
        Some((cond.ok()?, n))
    }

    /// One side or both. For a run of alternatives first the first source, then all destinations,
    /// then the other sources: so the bytes that are read first are the same as for separate tests.
    fn sides_listed(
        &mut self,
        dir: Option<&str>,
        sets: &Sets,
        mut load: impl FnMut(&mut Self, bool) -> Result<ValueId>,
    ) -> Result<Cond> {
        let Sets { first, all, rest } = sets;
        let source = load(self, true)?;
        let destination = load(self, false)?;
        let all_of = |value| Cond::In(value, Arc::clone(all));
        Ok(match dir {
            Some("src") => all_of(source),
            Some("dst") => all_of(destination),
            Some("src and dst") => and(all_of(source), all_of(destination)),
            _ => {
                let first = Cond::In(source, Arc::clone(first));
                let any = or(first, all_of(destination));
                if rest.is_empty() { any } else { or(any, Cond::In(source, Arc::clone(rest))) }
            }
        })
    }

    fn hosts_listed(
        &mut self,
        proto: Option<&str>,
        dir: Option<&str>,
        ranges: &[(u32, u32)],
        run: bool,
    ) -> Result<Cond> {
        let below = common_prefix(ranges);
        let of_nets: Listed;
        let ranges = match below {
            0 => ranges,
            _ => {
                of_nets = ranges.iter().map(|(low, _)| (*low, *low)).collect();
                &of_nets
            }
        };
        let sets = Sets::new(ranges, run);
        let kinds: &[&str] = match proto {
            None if self.state.labels > 0 => &["ip"],
            None => &["ip", "arp", "rarp"],
            Some("ip") => &["ip"],
            Some("arp") => &["arp"],
            Some("rarp") => &["rarp"],
            Some(other) => return Err(invalid(other, "host in")),
        };
        let mut any = Cond::False;
        for kind in kinds {
            let (kind, source, destination) = match *kind {
                "ip" => (IP, 12, 16),
                "arp" => (ARP, 14, 24),
                _ => (RARP, 14, 24),
            };
            let carries = self.carries(kind)?;
            let here = self.sides_listed(dir, &sets, |l, is_source| {
                let offset = if is_source { source } else { destination };
                let address = l.load(At::Payload, offset, 4)?;
                let mask = l.values.constant(!below);
                Ok(if below == 0 { address } else { l.values.binary(bpf::AND, address, mask) })
            })?;
            any = or(any, and(carries, here));
        }
        Ok(any)
    }

    fn hosts6_listed(&mut self, dir: Option<&str>, ranges: Vec<(u128, u128)>) -> Result<Cond> {
        let set = Arc::new(Set6::new(ranges));
        let carries = self.carries(IP6)?;
        let here = super::host::sides(dir, |is_source| {
            let offset = if is_source { 8 } else { 24 };
            let mut word = |i: u32| self.load(At::Payload, offset + 4 * i, 4);
            Ok(Cond::In6([word(0)?, word(1)?, word(2)?, word(3)?], Arc::clone(&set)))
        })?;
        Ok(and(carries, here))
    }

    fn ports_listed(&mut self, q: Qualifiers, ranges: &[(u32, u32)], run: bool) -> Result<Cond> {
        let over = self.port_protocol(q.proto, "port")?;
        let sets = Sets::new(ranges, run);
        let mut both = Cond::False;
        for (version, at, proto_at) in [(IP6, At::Transport6, 6), (IP, At::Transport4, 9)] {
            let mut check = self.carries(version)?;
            let mut protocols = Cond::False;
            for n in over.map_or_else(|| vec![6, 17, 132], |n| vec![n]) {
                protocols = or(protocols, self.eq(At::Payload, proto_at, 1, n)?);
            }
            check = and(check, protocols);
            if version == IP {
                check = and(check, not(self.set(At::Payload, 6, 2, 0x1fff)?));
            }
            let here = self.sides_listed(q.dir, &sets, |l, is_source| {
                l.load(at, if is_source { 0 } else { 2 }, 2)
            })?;
            both = or(both, and(check, here));
        }
        Ok(both)
    }

    /// `host in {…}`, `net in {…}`, `port in {…}`.
    pub(super) fn among(&mut self, q: Qualifiers, items: &[Id]) -> Result<Cond> {
        if !matches!(q.dir, None | Some("src" | "dst" | "src or dst" | "src and dst")) {
            return Err(format!("'{}' is valid for 802.11 syntax only", q.dir.unwrap_or_default()));
        }
        match q.of {
            Some("port" | "portrange") => {
                let mut ranges = Listed::new();
                for item in items {
                    self.ports_of(item, &mut ranges)?;
                }
                self.ports_listed(q, &ranges, false)
            }
            None | Some("host" | "net") => {
                let mut all = Addresses::default();
                for item in items {
                    self.addresses_of(item, &mut all)?;
                }
                if all.v4.is_empty() && all.v6.is_empty() {
                    return Err("the list is empty".into());
                }
                let v4 = match q.proto {
                    Some("ip6") => None,
                    _ if all.v4.is_empty() => None,
                    proto => Some(self.hosts_listed(proto, q.dir, &all.v4, false)?),
                };
                let v6 = match q.proto {
                    None | Some("ip6") if !all.v6.is_empty() => {
                        Some(self.hosts6_listed(q.dir, all.v6)?)
                    }
                    _ => None,
                };
                match (v4, v6) {
                    (Some(a), Some(b)) => Ok(or(a, b)),
                    (Some(one), None) | (None, Some(one)) => Ok(one),
                    (None, None) => Err("the list has no address of this protocol".into()),
                }
            }
            Some(of) => Err(invalid(of, "in {…}")),
        }
    }

    fn ports_of(&mut self, item: &Id, out: &mut Listed) -> Result<()> {
        let mut one = |l: &Self, text: &str| -> Result<()> {
            let (low, high) = match l.port(text) {
                Ok((port, _)) => (port, port),
                Err(_) => l.port_range(text)?.0,
            };
            super::at_most("port number", low.max(high), 0xffff)?;
            out.push((low.min(high), low.max(high)));
            Ok(())
        };
        match item {
            Id::Number(n) => one(self, &n.to_string()),
            Id::Name(name) => one(self, name),
            Id::File(file) => {
                let text = self.file(file)?;
                entries(&text).try_for_each(|(line, entry)| {
                    one(self, entry).map_err(|e| format!("{file}, line {line}: {e}"))
                })
            }
            _ => Err("a list of ports must contain ports, ranges and service names".into()),
        }
    }

    fn addresses_of(&mut self, item: &Id, out: &mut Addresses) -> Result<()> {
        match item {
            Id::Name(name) => self.entry(name, out),
            Id::V4(text) | Id::V6(text) => self.entry(text, out),
            Id::V4Prefix(text, n) | Id::V6Prefix(text, n) => {
                self.entry(&format!("{text}/{n}"), out)
            }
            Id::File(file) => {
                let text = self.file(file)?;
                entries(&text).try_for_each(|(line, entry)| {
                    self.entry(entry, out).map_err(|e| format!("{file}, line {line}: {e}"))
                })
            }
            _ => Err("a list of hosts must contain addresses, networks and host names".into()),
        }
    }

    fn file(&self, name: &str) -> Result<String> {
        self.names.list(name).map_err(|why| format!("list '{name}': {why}"))
    }

    fn named(&mut self, name: &str, out: &mut Addresses) -> Result<()> {
        let found = self.names.host(name);
        if found.is_empty() {
            return Err(format!("unknown host '{name}'"));
        }
        for address in found {
            out.push(address, u32::MAX);
        }
        Ok(())
    }

    /// An address, a network or two addresses with `-` between; else a name.
    fn entry(&mut self, text: &str, out: &mut Addresses) -> Result<()> {
        let address = |text: &str| text.trim().parse::<IpAddr>().ok();
        if let Some(one) = address(text) {
            out.push(one, u32::MAX);
            return Ok(());
        }
        if let Some((net, length)) = text.split_once('/') {
            let wrong = || format!("'{text}' is not a network");
            let net = address(net).ok_or_else(wrong)?;
            let length = length.trim().parse().map_err(|_| wrong())?;
            let most = if net.is_ipv4() { 32 } else { 128 };
            super::at_most("prefix length", length, most)?;
            if !out.push(net, length) {
                return Err(format!("non-network bits set in \"{text}\""));
            }
            return Ok(());
        }
        if let Some((low, high)) = text.split_once('-')
            && let Some(ends) = address(low).zip(address(high))
        {
            match ends {
                (IpAddr::V4(a), IpAddr::V4(b)) if a <= b => out.v4.push((a.into(), b.into())),
                (IpAddr::V6(a), IpAddr::V6(b)) if a <= b => out.v6.push((a.into(), b.into())),
                _ => return Err(format!("'{text}' does not lead from an address to a higher one")),
            }
            return Ok(());
        }
        self.named(text, out)
    }
}

impl Addresses {
    /// Adds a network; returns whether all bits after the prefix are clear.
    fn push(&mut self, address: IpAddr, length: u32) -> bool {
        match address {
            IpAddr::V4(a) => {
                let (a, below) = (u32::from(a), u32::MAX.checked_shr(length).unwrap_or(0));
                self.v4.push((a & !below, a | below));
                a & below == 0
            }
            IpAddr::V6(a) => {
                let (a, below) = (u128::from(a), u128::MAX.checked_shr(length).unwrap_or(0));
                self.v6.push((a & !below, a | below));
                a & below == 0
            }
        }
    }
}

/// The bits after the prefix, if all ranges are networks of one length with gaps between: then a
/// masked address needs one comparison for each, not two.
fn common_prefix(ranges: &[(u32, u32)]) -> u32 {
    let below = ranges.first().map_or(0, |(low, high)| low ^ high);
    if below == 0 {
        return 0;
    }
    let network = |(low, high): &(u32, u32)| low & below == 0 && low | below == *high;
    let one_length = below & below.wrapping_add(1) == 0 && ranges.iter().all(network);
    if one_length && Set::new(ranges.to_vec()).ranges().len() == ranges.len() { below } else { 0 }
}

/// Tests of the source, of the destination, and of the source again.
struct Sets {
    first: Arc<Set>,
    all: Arc<Set>,
    rest: Arc<Set>,
}

impl Sets {
    /// For a list as written, or a run of alternatives.
    fn new(ranges: &[(u32, u32)], run: bool) -> Self {
        let all = Arc::new(Set::new(ranges.to_vec()));
        match ranges.split_first() {
            Some((first, rest)) if run => Self {
                first: Arc::new(Set::new(vec![*first])),
                all,
                rest: Arc::new(Set::new(rest.to_vec())),
            },
            _ => Self { first: Arc::clone(&all), all, rest: Arc::default() },
        }
    }
}

/// Non-empty lines with their number, without comments.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .map(|(i, l)| (i + 1, l.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, entry)| !entry.is_empty())
}

/// An address or port of a leaf without other conditions, with its qualifiers.
fn listed(expr: &Expr) -> Option<(Qualifiers, (u32, u32))> {
    let Expr::Leaf(Primitive::Id(Some(q), id), _) = expr else { return None };
    if !matches!(q.dir, None | Some("src" | "dst" | "src or dst")) {
        return None;
    }
    let range = match (q.of, id) {
        (None | Some("host" | "net"), Id::V4(text)) => {
            let address = u32::from(text.parse::<Ipv4Addr>().ok()?);
            (address, address)
        }
        (Some("net"), Id::V4Prefix(text, length @ 1..=32)) => {
            let address = u32::from(text.parse::<Ipv4Addr>().ok()?);
            let below = u32::MAX.checked_shr(*length).unwrap_or(0);
            if address & below != 0 {
                return None;
            }
            (address, address | below)
        }
        (Some("port"), Id::Number(n @ 0..=0xffff)) => {
            return matches!(q.proto, None | Some("tcp" | "udp" | "sctp"))
                .then_some((*q, (*n, *n)));
        }
        _ => return None,
    };
    matches!(q.proto, None | Some("ip" | "arp" | "rarp")).then_some((*q, range))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use crate::{Options, Resolver, compile};

    struct Lists;

    impl Resolver for Lists {
        fn list(&self, name: &str) -> Result<String, String> {
            let text = "10.0.0.1 # one\n\n192.0.2.0/24\n2001:db8::/32\n10.1.0.0-10.1.0.9\n";
            match name {
                "ok.txt" => Ok(text.to_owned()),
                "bad.txt" => Ok("10.0.0.1\n10.0.0.1/8\n".to_owned()),
                _ => Err("no such list".to_owned()),
            }
        }
    }

    fn v4(source: [u8; 4], destination: [u8; 4], ports: [u8; 4]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0];
        p.extend_from_slice(&source);
        p.extend_from_slice(&destination);
        p.extend_from_slice(&ports);
        p
    }

    fn says(text: &str, packet: &[u8]) -> bool {
        let options = Options::default();
        let compiled = compile(text, crate::dlt::RAW, &options, &Lists).unwrap();
        let verdict = compiled.program().run(packet, 100) != 0;
        let graph = compiled.graph().unwrap();
        assert_eq!(graph.run(packet, 100), verdict, "{text}");
        verdict
    }

    #[test]
    fn members_match() {
        let p = v4([10, 1, 0, 5], [192, 0, 2, 9], [0, 80, 0x1f, 0x48]);
        for text in [
            "host in {1.1.1.1, 192.0.2.9}",
            "src host in {10.1.0.0-10.1.0.5}",
            "net in {192.0.2.0/24}",
            "host in @ok.txt",
            "src and dst host in @ok.txt",
            "port in {80, 443, 8000-8100}",
            "udp dst port in {8000-8100}",
            "dst port in {http, 8008}",
            "port in {1} or # nothing yet\n host in @ok.txt",
        ] {
            assert!(says(text, &p), "{text}");
        }
        for text in [
            "host in {1.1.1.1}",
            "dst host in {10.1.0.0-10.1.0.5}",
            "ip6 host in @ok.txt",
            "tcp port in {80}",
            "src port in {443, 8000-8100}",
            "not port in {80}",
        ] {
            assert!(!says(text, &p), "{text}");
        }
        let mut p = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
        p.extend(Ipv6Addr::from(0x2001_0db8_u128 << 96 | 5).octets());
        p.extend(Ipv6Addr::LOCALHOST.octets());
        assert!(says("src host in @ok.txt", &p));
        assert!(says("dst host in {::1, ::2, 2001:db9::/32}", &p));
        assert!(!says("dst host in @ok.txt", &p));
        assert!(!says("not dst host in {::1}", &p[..39]));
    }

    #[test]
    fn mistakes_in_lists_are_reported() {
        let told = |text: &str| {
            compile(text, 1, &Options::default(), &Lists).unwrap_err().message().to_owned()
        };
        assert_eq!(told("host in @none.txt"), "list 'none.txt': no such list");
        assert_eq!(
            told("host in @bad.txt"),
            "bad.txt, line 2: non-network bits set in \"10.0.0.1/8\""
        );
        assert_eq!(told("port in {70000}"), "port number 70000 greater than maximum 65535");
        assert_eq!(told("host in {nobody}"), "unknown host 'nobody'");
    }

    /// Link types that do not distinguish IPv4 and ARP: sources of one are at the offsets of
    /// destinations of the other.
    #[test]
    fn runs_keep_their_order_where_protocols_are_not_distinguished() {
        let run: Vec<String> = (0..20).map(|i| format!("src net 10.{i}.0.0/16")).collect();
        let found = crate::proof::check(&run.join(" or "), 178, &Lists, 200, 1, &[]);
        assert!(matches!(found, Ok(Some(_))), "{found:?}");
    }

    #[test]
    fn long_runs_keep_their_meaning() {
        for one in
            ["host 10.0.0.{}", "src net 10.{}.0.0/16", "udp port 80{}", "ip dst host 9.9.9.{}"]
        {
            let run: Vec<String> = (0..20).map(|i| one.replace("{}", &i.to_string())).collect();
            let text = format!("icmp or {} and not port 7", run.join(" or "));
            let found = crate::proof::check(&text, crate::dlt::RAW, &Lists, 20, 1, &[]);
            assert!(matches!(found, Ok(Some(_))), "{text}: {found:?}");
        }
    }
}
