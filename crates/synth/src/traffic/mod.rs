//! Traffic in large numbers: conversations of a protocol between many hosts, for benchmarks, for
//! the profiles of profile-guided optimization, and for counts that are compared between changes.
//!
//! A [`Kind`] is a protocol or a typical behaviour. [`of`] generates a number of its conversations,
//! which overlap in time. [`mixed`] combines all kinds, in approximately the proportions of an
//! office uplink. Names, sizes and addresses vary between conversations and depend only on the
//! seed.

mod datagrams;
mod der;
mod lines;
pub mod long;
mod tls;
mod web;

use std::fmt;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::str::FromStr;

use gannet_base::Interval;
use gannet_base::Time;

use crate::Rng;
use crate::Trace;

/// Kinds of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Lookups over UDP: addresses, aliases, names that do not exist (RFC 1035).
    Dns,
    /// One to six requests per connection, bodies of many types, some of them chunked (RFC 9112).
    Http,
    /// Handshakes of versions 1.2, with a certificate, and 1.3, with data (RFC 5246, 8446).
    Tls,
    /// Mails with headers and a body (RFC 5321).
    Smtp,
    /// Banners, key exchange, and encrypted packets (RFC 4253).
    Ssh,
    /// Logins and downloads over data channels of their own (RFC 959).
    Ftp,
    /// Time requests (RFC 5905).
    Ntp,
    /// Leases (RFC 2131).
    Dhcp,
    /// Requests to agents (RFC 3416).
    Snmp,
    /// Calls (RFC 3261).
    Sip,
    /// Sensors that publish (MQTT 3.1.1).
    Mqtt,
    /// Echo requests and replies (RFC 792, 4443).
    Ping,
    /// Connections that are refused, or never answered.
    Scan,
    /// Long transfers of an unknown protocol, with lost, retransmitted and reordered segments.
    Bulk,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Dns,
        Self::Http,
        Self::Tls,
        Self::Smtp,
        Self::Ssh,
        Self::Ftp,
        Self::Ntp,
        Self::Dhcp,
        Self::Snmp,
        Self::Sip,
        Self::Mqtt,
        Self::Ping,
        Self::Scan,
        Self::Bulk,
    ];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Http => "http",
            Self::Tls => "tls",
            Self::Smtp => "smtp",
            Self::Ssh => "ssh",
            Self::Ftp => "ftp",
            Self::Ntp => "ntp",
            Self::Dhcp => "dhcp",
            Self::Snmp => "snmp",
            Self::Sip => "sip",
            Self::Mqtt => "mqtt",
            Self::Ping => "ping",
            Self::Scan => "scan",
            Self::Bulk => "bulk",
        }
    }

    /// Number of conversations of this kind per thousand of [`mixed`].
    fn share(self) -> usize {
        match self {
            Self::Dns => 420,
            Self::Http => 120,
            Self::Tls => 210,
            Self::Smtp | Self::Ssh | Self::Ftp => 15,
            Self::Ntp | Self::Snmp => 25,
            Self::Dhcp | Self::Mqtt | Self::Ping => 20,
            Self::Sip => 15,
            Self::Scan => 70,
            Self::Bulk => 10,
        }
    }

    fn play(self, trace: &mut Trace, ends: Ends) {
        match self {
            Self::Dns => datagrams::dns(trace, ends),
            Self::Http => web::http(trace, ends),
            Self::Tls => tls::tls(trace, ends),
            Self::Smtp => lines::smtp(trace, ends),
            Self::Ssh => tls::ssh(trace, ends),
            Self::Ftp => lines::ftp(trace, ends),
            Self::Ntp => datagrams::ntp(trace, ends),
            Self::Dhcp => datagrams::dhcp(trace, ends),
            Self::Snmp => datagrams::snmp(trace, ends),
            Self::Sip => datagrams::sip(trace, ends),
            Self::Mqtt => datagrams::mqtt(trace, ends),
            Self::Ping => ping(trace, ends),
            Self::Scan => scan(trace, ends),
            Self::Bulk => bulk(trace, ends),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An unknown kind of traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchKind(String);

impl fmt::Display for NoSuchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Kind::ALL.map(Kind::name).join(", ");
        write!(f, "no such kind of traffic: '{}'; there are {names}", self.0)
    }
}

impl std::error::Error for NoSuchKind {}

impl FromStr for Kind {
    type Err = NoSuchKind;

    fn from_str(name: &str) -> Result<Self, NoSuchKind> {
        Self::ALL.into_iter().find(|k| k.name() == name).ok_or_else(|| NoSuchKind(name.to_owned()))
    }
}

/// Start time of the traffic, in seconds since 1970.
const START: i64 = 1_700_000_000;

/// Approximate number of concurrent conversations.
const CONCURRENT: usize = 32;

/// `count` conversations of one kind, some 32 of them concurrent.
pub fn of(kind: Kind, count: usize, seed: u64) -> Trace {
    overlapping(&vec![kind; count], seed)
}

/// `count` conversations of all kinds, in the proportions of an office uplink; see [`of`].
pub fn mixed(count: usize, seed: u64) -> Trace {
    let total: usize = Kind::ALL.iter().map(|k| k.share()).sum();
    let mut rng = Rng::new(seed ^ 0x006d_6978_6564);
    let mut pick = || {
        let mut at = rng.below(total as u64) as usize;
        let found = Kind::ALL.into_iter().find(|k| {
            let hit = at < k.share();
            at = at.saturating_sub(k.share());
            hit
        });
        found.unwrap_or(Kind::Dns)
    };
    let kinds: Vec<_> = (0..count).map(|_| pick()).collect();
    overlapping(&kinds, seed)
}

/// Plays the conversations on several clocks that run concurrently.
fn overlapping(kinds: &[Kind], seed: u64) -> Trace {
    let start = Time::from_secs(START);
    let mut lanes: Vec<_> = (0..CONCURRENT.min(kinds.len()))
        .map(|i| {
            let mut lane = Trace::new(start, seed ^ (i as u64) << 32);
            lane.wait(Interval::from_micros(i as i64 * 7_919));
            lane
        })
        .collect();
    let count = lanes.len().max(1);
    for (at, &kind) in kinds.iter().enumerate() {
        let Some(lane) = lanes.get_mut(at % count) else { break };
        let ends = Ends::pick(lane.rng());
        let pause = lane.rng().below(3_000) as i64;
        lane.wait(Interval::from_micros(pause));
        kind.play(lane, ends);
    }
    Trace::merge(start, lanes)
}

/// The two hosts of a conversation.
#[derive(Clone, Copy, Debug)]
struct Ends {
    client: IpAddr,
    server: IpAddr,
    /// The client's port.
    port: u16,
}

impl Ends {
    /// One of 16,000 clients and 60,000 servers; every eighth pair speaks IPv6.
    fn pick(rng: &mut Rng) -> Self {
        let n = rng.next_u64();
        let [a, b, c, d, e, f, _, v6] = n.to_le_bytes();
        let (client, server) = if v6 & 7 == 0 {
            let wide = |net, x, y| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, net, 0, 0, x, y));
            (wide(1, u16::from(a & 63), u16::from(b)), wide(2, u16::from(c), u16::from(d)))
        } else {
            // 10/8, as documentation networks are too small for the number of clients.
            let client = Ipv4Addr::new(10, 0, a & 63, b.max(1));
            (client.into(), Ipv4Addr::new(198, 18 | (d & 1), c, d.max(1)).into())
        };
        Self { client, server, port: 32_768 | u16::from_le_bytes([e, f]) }
    }

    fn client(self) -> SocketAddr {
        SocketAddr::new(self.client, self.port)
    }

    fn server(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.server, port)
    }
}

fn ping(trace: &mut Trace, ends: Ends) {
    for seq in 1..=trace.rng().below(4) as u16 + 1 {
        trace.ping(ends.client, ends.server, ends.port, seq);
    }
}

fn scan(trace: &mut Trace, ends: Ends) {
    let port = [22, 23, 80, 443, 445, 3_389, 5_900, 8_080][trace.rng().below(8) as usize];
    if trace.rng().below(3) == 0 {
        trace.refuse(ends.client(), ends.server(port));
    } else {
        trace.knock(ends.client(), ends.server(port));
    }
}

fn bulk(trace: &mut Trace, ends: Ends) {
    let begun = trace.frames().len();
    let mut tcp = trace.connect(ends.client(), ends.server(9_418 + ends.port % 7));
    tcp.send(&[0, 1, 0, 0, 0, 12, 7, 7, 7, 7, 7, 7]);
    let mut rng = Rng::new(u64::from(ends.port));
    let block = rng.bytes(1_400);
    for _ in 0..20 + rng.below(200) {
        tcp.reply(&block);
    }
    tcp.close();
    trace.disturb(begun, 40);
}

/// A lower-case word of `len` letters.
fn word(rng: &mut Rng, len: usize) -> String {
    rng.bytes(len).into_iter().map(|b| char::from(b'a' + b % 26)).collect()
}

/// A host name of two to four labels.
fn host(rng: &mut Rng) -> String {
    let labels = 1 + rng.below(3);
    let mut name = String::new();
    for _ in 0..labels {
        let len = 3 + rng.below(9) as usize;
        name.push_str(&word(rng, len));
        name.push('.');
    }
    name + ["com", "org", "net", "example", "io"][rng.below(5) as usize]
}

/// Prose-like text: words and line ends, `len` bytes or a little more.
fn prose(rng: &mut Rng, len: usize) -> String {
    let mut text = String::with_capacity(len + 16);
    while text.len() < len {
        let letters = 2 + rng.below(8) as usize;
        text.push_str(&word(rng, letters));
        text.push_str(if rng.below(12) == 0 { "\r\n" } else { " " });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_ordered_and_comes_from_the_seed() {
        for kind in Kind::ALL {
            let trace = of(kind, 40, 5);
            assert!(trace.frames().len() >= 40, "{kind}");
            assert!(trace.frames().is_sorted_by_key(|f| f.time), "{kind}");
            assert_eq!(trace.frames(), of(kind, 40, 5).frames(), "{kind}");
            assert_ne!(trace.frames(), of(kind, 40, 6).frames(), "{kind}");
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("gopher".parse::<Kind>().unwrap_err().to_string().contains("there are dns, http"));
    }

    #[test]
    fn conversations_overlap() {
        let trace = of(Kind::Http, 64, 1);
        let ports: Vec<_> = trace.frames().iter().map(|f| f.bytes[34..38].to_vec()).collect();
        let changes = ports.windows(2).filter(|w| w[0] != w[1]).count();
        assert!(changes > ports.len() / 2, "{changes} of {}", ports.len());
    }

    #[test]
    fn a_mixture_holds_all_kinds() {
        let trace = mixed(3_000, 9);
        let to = |port: u16| {
            let port = port.to_be_bytes();
            trace.frames().iter().filter(|f| f.bytes[36..38] == port).count()
        };
        for port in [53, 80, 443, 25, 22, 21, 123, 67, 161, 5_060, 1_883] {
            assert!(to(port) > 0, "nothing to port {port}");
        }
        assert!(to(53) > to(123));
    }
}
