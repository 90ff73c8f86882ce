//! Random filters over the whole language.

use super::Random;
use crate::dlt;

/// Link types, with more weight for those with a larger language.
const LINKS: &[u16] = &[
    dlt::EN10MB,
    dlt::EN10MB,
    dlt::EN10MB,
    dlt::EN10MB,
    dlt::RAW,
    dlt::IEEE802_11,
    dlt::IEEE802_11_RADIO,
    dlt::PRISM_HEADER,
    dlt::PPI,
    dlt::LINUX_SLL,
    dlt::LINUX_SLL2,
    dlt::NULL,
    dlt::PPP,
    dlt::PPP_BSDOS,
    dlt::FDDI,
    dlt::IEEE802,
    dlt::IP_OVER_FC,
    dlt::ARCNET,
    dlt::PFLOG,
    dlt::SUNATM,
    dlt::MTP2,
    dlt::FRELAY,
    dlt::C_HDLC,
    dlt::DSA_TAG_BRCM,
    dlt::NETANALYZER,
    dlt::IPNET,
    dlt::IPV4,
    dlt::IPV6,
    dlt::JUNIPER_ETHER,
    dlt::SLIP,
];
const PROTOS: &[&str] = &[
    "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6", "igmp", "pim", "esp", "ah",
    "vrrp", "atalk", "aarp", "decnet", "iso", "isis", "esis", "clnp", "l1", "l2", "iih", "lsp",
    "snp", "csnp", "psnp", "stp", "ipx", "netbeui", "lat", "mopdl", "moprc", "sca", "igrp", "carp",
];
const INDEXED: &[&str] = &[
    "link", "ether", "ip", "ip", "ip6", "tcp", "tcp", "udp", "udp", "icmp", "icmp6", "arp", "sctp",
    "igmp", "rarp", "atalk", "decnet", "radio", "pim", "vrrp",
];
const OPERATORS: &[&str] = &["+", "-", "*", "/", "%", "&", "&", "&", "|", "^", "<<", ">>"];
const RELATIONS: &[&str] = &["=", "=", "==", "!=", "<", "<=", ">", ">="];
const DIRECTIONS: &[&str] =
    &["", "", "src ", "dst ", "src or dst ", "src and dst ", "dst and src "];
const WLAN: &[&str] = &[
    "type mgt",
    "type ctl",
    "type data",
    "type mgt subtype beacon",
    "type data subtype qos-data",
    "subtype ack",
    "subtype probe-req",
    "dir fromds",
    "dir tods",
    "dir dstods",
    "dir 0",
];
const KEYS: &[&str] = &[
    "inbound",
    "outbound",
    "broadcast",
    "multicast",
    "ip multicast",
    "ip6 multicast",
    "llc",
    "llc i",
    "llc s",
    "llc u",
    "llc rnr",
    "llc xid",
    "link broadcast",
    "ip broadcast",
    "less 60",
    "greater 60",
    "less 0",
    "greater 100",
];
const PFLOG: &[&str] =
    &["on en0", "action pass", "reason match", "rset abc", "rnr 3", "srnr 4", "action block"];
const ATM: &[&str] = &[
    "lane",
    "metac",
    "bcc",
    "oam",
    "oamf4",
    "oamf4sc",
    "oamf4ec",
    "sc",
    "ilmic",
    "connectmsg",
    "metaconnect",
    "vpi 0",
    "vci 5",
    "vci (5 or 16 or 33)",
    "vpi > 3",
    "vci <= 100",
];
const SS7: &[&str] = &[
    "fisu",
    "lssu",
    "msu",
    "hfisu",
    "hlssu",
    "hmsu",
    "sio 5",
    "opc 100",
    "dpc > 2",
    "sls (1 or 2)",
    "hsio 3",
    "hopc 77",
    "hdpc 4",
    "hsls 9",
];

/// Generates random expressions, each with its link type. Not all of them compile.
#[derive(Clone, Debug)]
pub struct Expressions {
    random: Random,
    /// Addresses and ports that are reused, so that tests interact.
    pool: [u32; 6],
}

impl Expressions {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let pool = std::array::from_fn(|_| random.number());
        Self { random, pool }
    }

    /// A link type and an expression.
    pub fn filter(&mut self) -> (u16, String) {
        if self.random.one_in(8) {
            self.pool = std::array::from_fn(|_| self.random.number());
        }
        let link = *self.random.of(LINKS);
        let depth = 1 + self.random.below(4);
        let mut text = String::new();
        self.expression(link, depth, &mut text);
        (link, text)
    }

    fn expression(&mut self, link: u16, depth: usize, out: &mut String) {
        let terms = match depth {
            0 => 1,
            _ => 1 + self.random.below(4),
        };
        if depth > 0 && self.random.one_in(12) {
            return self.list(out);
        }
        for i in 0..terms {
            if i > 0 {
                out.push_str(
                    self.random.of::<&str>(&[" and ", " or ", " and ", " or ", " && ", " || "]),
                );
            }
            if self.random.one_in(6) {
                out.push_str(self.random.of::<&str>(&["not ", "! ", "not not "]));
            }
            if depth > 0 && self.random.one_in(2) {
                out.push('(');
                self.expression(link, depth - 1, out);
                out.push(')');
            } else {
                let primitive = self.primitive(link);
                out.push_str(&primitive);
            }
        }
    }

    /// Many alternatives of a kind, with some duplicates.
    fn list(&mut self, out: &mut String) {
        let kind = self.random.below(7);
        let n = 2 + self.random.below(24);
        let join = if self.random.one_in(5) { " and not " } else { " or " };
        if kind > 4 {
            let all: Vec<String> = (0..n)
                .map(|_| match (kind, self.random.below(40)) {
                    (5, k) => format!("{}", k * 3),
                    (_, k @ 0..12) => format!("2001:db8::{:x}:{k:x}", k & 1),
                    (_, k @ 12..20) => format!("10.{k}.0.0/16"),
                    (_, k) => format!("10.0.0.{k}"),
                })
                .collect();
            let dir = *self.random.of(&["", "src ", "dst ", "src and dst "]);
            let of = if kind == 5 { "port" } else { "host" };
            out.push_str(&format!("{dir}{of} in {{{}}}", all.join(", ")));
            return;
        }
        for i in 0..n {
            if i > 0 {
                out.push_str(join);
            }
            let k = self.random.below(40) as u32;
            match kind {
                0 => out.push_str(&format!("host 10.0.{}.{k}", k & 1)),
                1 => out.push_str(&format!("port {k}")),
                2 => out.push_str(&format!("src net 10.{k}.0.0/{}", 16 + 8 * (k & 1))),
                3 => out.push_str(&format!("(host 10.0.0.{} and port {k})", k & 3)),
                _ => out.push_str(&format!("dst host 2001:db8::{:x}:{k:x}", k & 3)),
            }
        }
    }

    fn primitive(&mut self, link: u16) -> String {
        let special: &[&str] = match link {
            dlt::PFLOG => PFLOG,
            dlt::SUNATM => ATM,
            dlt::MTP2 => SS7,
            dlt::IEEE802_11 | dlt::IEEE802_11_RADIO | dlt::PRISM_HEADER | dlt::PPI => WLAN,
            _ => &[],
        };
        if !special.is_empty() && self.random.one_in(2) {
            return (*self.random.of(special)).to_owned();
        }
        match self.random.below(18) {
            0..3 => (*self.random.of(PROTOS)).to_owned(),
            3..6 => self.host(),
            6 | 7 => self.port(),
            8..13 => {
                let (left, right) = (self.arithmetic(2), self.arithmetic(1));
                format!("{left} {} {right}", self.random.of(RELATIONS))
            }
            13 => self.encapsulation(),
            14 => (*self.random.of(KEYS)).to_owned(),
            15 => self.mac(),
            16 => self.protocol(),
            _ => match self.random.below(3) {
                0 => format!("byte {} = {}", self.random.below(40), self.random.below(256)),
                1 => format!("len {} {}", self.random.of(RELATIONS), self.random.number()),
                _ => format!("{} = {}", self.random.number(), self.random.number()),
            },
        }
    }

    fn address(&mut self) -> u32 {
        if self.random.one_in(4) { self.random.number() } else { *self.random.of(&self.pool) }
    }

    fn address6(&mut self) -> std::net::Ipv6Addr {
        let words = [0x2001_0db8, self.address(), self.address(), self.address()];
        words.iter().fold(0_u128, |n, w| n << 32 | u128::from(*w)).into()
    }

    fn host(&mut self) -> String {
        let dir = *self.random.of(DIRECTIONS);
        if self.random.one_in(3) {
            let address = self.address6();
            if self.random.one_in(2) {
                return format!("{dir}host {address}");
            }
            let bits = self.random.below(129) as u32;
            let kept = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            let net = std::net::Ipv6Addr::from(u128::from(address) & kept);
            return format!("{dir}net {net}/{bits}");
        }
        let proto = *self.random.of(&["", "", "ip ", "arp ", "rarp "]);
        let address = self.address();
        if self.random.one_in(2) {
            return format!("{proto}{dir}host {}", std::net::Ipv4Addr::from(address));
        }
        let bits = self.random.below(33) as u32;
        let kept = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        format!("{proto}{dir}net {}/{bits}", std::net::Ipv4Addr::from(address & kept))
    }

    fn port(&mut self) -> String {
        let proto = *self.random.of(&["", "", "tcp ", "udp ", "sctp "]);
        let dir = *self.random.of(&["", "", "src ", "dst ", "src or dst ", "src and dst "]);
        let low = self.address() & 0xffff;
        if self.random.one_in(2) {
            let more =
                if self.random.one_in(3) { format!(" or {}", low ^ 1) } else { String::new() };
            return format!("{proto}{dir}port {low}{more}");
        }
        let high = self.random.number() & 0xffff;
        format!("{proto}{dir}portrange {low}-{high}")
    }

    fn mac(&mut self) -> String {
        let dir = *self.random.of(&[
            "",
            "src ",
            "dst ",
            "src and dst ",
            "addr1 ",
            "addr2 ",
            "addr3 ",
            "addr4 ",
            "ra ",
            "ta ",
        ]);
        let [a, b, c, d] = self.address().to_be_bytes();
        format!("ether {dir}host 02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }

    fn protocol(&mut self) -> String {
        let n = self.random.below(256);
        match self.random.below(6) {
            0 => format!("ether proto {}", self.random.number() & 0xffff),
            1 => format!("ip proto {n}"),
            2 => format!("ip6 proto {n}"),
            3 => format!("proto {n}"),
            4 => format!("isis proto {}", n & 31),
            _ => format!("{}protochain {n}", self.random.of(&["", "ip ", "ip6 "])),
        }
    }

    fn encapsulation(&mut self) -> String {
        let n = self.address();
        match self.random.below(12) {
            0 | 1 => "vlan".to_owned(),
            2 | 3 => format!("vlan {}", n & 0xfff),
            4 => "mpls".to_owned(),
            5 => format!("mpls {}", n & 0xf_ffff),
            6 => "pppoes".to_owned(),
            7 => format!("pppoes {}", n & 0xffff),
            8 => "geneve".to_owned(),
            9 => format!("geneve {}", n & 0xff_ffff),
            10 => "vxlan".to_owned(),
            _ => "pppoed".to_owned(),
        }
    }

    fn arithmetic(&mut self, depth: usize) -> String {
        match self.random.below(if depth > 0 { 8 } else { 3 }) {
            0 => self.random.number().to_string(),
            1 => "len".to_owned(),
            2 | 3 => {
                let size = *self.random.of(&["", ":1", ":2", ":4"]);
                let offset = match self.random.below(6) {
                    0 if depth > 0 => self.arithmetic(depth - 1),
                    1 => self.random.number().to_string(),
                    _ => self.random.below(24).to_string(),
                };
                format!("{}[{offset}{size}]", self.random.of(INDEXED))
            }
            4 => format!("- {}", self.arithmetic(depth - 1)),
            _ => {
                let (a, b) = (self.arithmetic(depth - 1), self.arithmetic(depth - 1));
                format!("({a} {} {b})", self.random.of(OPERATORS))
            }
        }
    }
}
