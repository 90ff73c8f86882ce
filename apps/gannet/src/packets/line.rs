//! Formats a packet as a line.

use std::collections::HashMap;
use std::fmt::Write;

use foldhash::fast::RandomState;
use gannet_base::Addr;
use gannet_base::Time;
use gannet_capture::Packet;
use gannet_wire::Contents;
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::Error;
use gannet_wire::Icmp;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::Tcp;
use gannet_wire::Transport;
use gannet_wire::Udp;
use gannet_wire::UpperLayer;
use gannet_wire::protocol;

/// Options of the format.
pub(super) struct Options {
    /// Print absolute sequence numbers instead of relative ones.
    pub(super) absolute: bool,
    pub(super) times: Times,
    pub(super) bytes: Option<Bytes>,
}

/// The format of times, which are UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Clock,
    None,
    Epoch,
    Date,
}

/// The format of packet bytes below a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    /// Print bytes and their characters.
    pub(super) characters: bool,
    /// Start at the link layer instead of the network layer.
    pub(super) from_link: bool,
}

/// One direction of a TCP connection.
type Direction = (Addr, u16, Addr, u16);

/// Maximum number of directions whose first sequence number is stored; when it is reached, all are cleared.
const MAX_DIRECTIONS: usize = 1 << 20;
const ETHERTYPE_IPV4: u16 = 0x0800;
/// The port of DNS, and that of mDNS.
const DNS: [u16; 2] = [53, 5353];

/// Formats packets.
pub(super) struct Printer {
    options: Options,
    /// First sequence numbers.
    first: HashMap<Direction, u32, RandomState>,
    text: String,
}

impl Printer {
    pub(super) fn new(options: Options) -> Self {
        Self { options, first: HashMap::default(), text: String::new() }
    }

    /// The line of a packet, followed by its bytes if they were requested.
    pub(super) fn packet(&mut self, packet: &Packet<'_>) -> &[u8] {
        self.text.clear();
        self.time(packet.time);
        let (link, data) = (packet.link_type.0, packet.data);
        let mut network = 0;
        match gannet_wire::decode(link, data, packet.wire_len) {
            Ok(Decoded { frame, contents }) => {
                for tag in [frame.vlan, frame.inner_vlan].into_iter().flatten() {
                    self.push(format_args!("vlan {tag}, "));
                }
                let len = frame.wire_len;
                match frame.network {
                    Network::Ip(bytes) => {
                        network = offset(data, bytes);
                        self.ip(&contents, len, 0);
                    }
                    Network::Arp(bytes) => {
                        network = offset(data, bytes);
                        self.arp(bytes, len);
                    }
                    Network::Other { ethertype, data: bytes } => {
                        network = offset(data, bytes);
                        self.push(format_args!("ethertype {ethertype:#06x}, length {len}"));
                    }
                    Network::Aggregate(_) => self.push(format_args!("aggregate, length {len}")),
                    Network::Nothing => {
                        let all = packet.wire_len;
                        self.push(format_args!("{}, length {all}", packet.link_type));
                    }
                }
            }
            Err(error) => {
                let all = packet.wire_len;
                self.push(format_args!("[|{}] {error}, length {all}", packet.link_type));
            }
        }
        self.text.push('\n');
        if let Some(bytes) = self.options.bytes {
            let from = if bytes.from_link { 0 } else { network };
            dump(data.get(from..).unwrap_or_default(), bytes.characters, &mut self.text);
        }
        self.text.as_bytes()
    }

    fn push(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        self.text.write_fmt(words).unwrap_or_default();
    }

    fn time(&mut self, time: Time) {
        let nanos = time.as_nanos();
        let (seconds, micros) =
            (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000) / 1_000);
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        match self.options.times {
            Times::None => {}
            Times::Epoch => self.push(format_args!("{seconds}.{micros:06} ")),
            Times::Clock => {
                self.push(format_args!("{hour:02}:{minute:02}:{second:02}.{micros:06} "));
            }
            Times::Date => {
                let (y, m, d) = date(days);
                self.push(format_args!(
                    "{y:04}-{m:02}-{d:02} {hour:02}:{minute:02}:{second:02}.{micros:06} "
                ));
            }
        }
    }

    fn ip(&mut self, contents: &Contents<'_>, wire_len: u32, tunnels: u8) {
        let Datagram { ip, transport } = match contents {
            Contents::Datagram(datagram) => datagram,
            Contents::Invalid(error) => {
                return self.push(format_args!("IP [|{error}], length {wire_len}"));
            }
            Contents::Other => return,
        };
        self.text.push_str(if ip.version == 6 { "IP6 " } else { "IP " });
        if let Some(fragment) = ip.fragment.filter(|f| f.offset > 0) {
            let name = name_of(ip);
            return self.push(format_args!(
                "{} > {}: {name} fragment {:#x} at {}, length {}",
                ip.src, ip.dst, fragment.id, fragment.offset, ip.payload_len
            ));
        }
        let is_tunnel = ip.upper == UpperLayer::Payload
            && matches!(ip.protocol, protocol::IPV4 | protocol::IPV6);
        match transport {
            Transport::Tcp(tcp) => self.tcp(ip, tcp),
            Transport::Udp(udp) => self.udp(ip, udp),
            Transport::Icmp(icmp) => self.icmp(ip, icmp),
            Transport::Invalid(error) => self.cut(ip, error),
            Transport::Other if is_tunnel && tunnels < gannet_wire::MAX_TUNNEL_DEPTH => {
                self.push(format_args!("{} > {}: ", ip.src, ip.dst));
                let len = ip.payload_len;
                self.ip(&Contents::of(ip.payload, len), len, tunnels + 1);
            }
            Transport::Other | Transport::Fragment => {
                let name = name_of(ip);
                self.push(format_args!(
                    "{} > {}: {name}, length {}",
                    ip.src, ip.dst, ip.payload_len
                ));
            }
        }
    }

    /// Prints a truncated transport header.
    fn cut(&mut self, ip: &Ip<'_>, error: &Error) {
        let name = name_of(ip);
        self.push(format_args!(
            "{} > {}: [|{name}] {error}, length {}",
            ip.src, ip.dst, ip.payload_len
        ));
    }

    fn tcp(&mut self, ip: &Ip<'_>, tcp: &Tcp<'_>) {
        let (seq, ack) = self.relative(ip, tcp);
        self.push(format_args!(
            "{}.{} > {}.{}: Flags [",
            ip.src, tcp.src_port, ip.dst, tcp.dst_port
        ));
        let letters = ['F', 'S', 'R', 'P', '.', 'U', 'E', 'W'];
        let set = letters.iter().enumerate().filter(|(bit, _)| tcp.flags.0 >> bit & 1 == 1);
        let before = self.text.len();
        self.text.extend(set.map(|(_, letter)| letter));
        if self.text.len() == before {
            self.text.push_str("none");
        }
        self.text.push(']');
        let len = tcp.payload_len;
        if len > 0 {
            self.push(format_args!(", seq {seq}:{}", seq.wrapping_add(len)));
        } else if tcp.flags.syn() || tcp.flags.fin() || tcp.flags.rst() {
            self.push(format_args!(", seq {seq}"));
        }
        if tcp.flags.ack() {
            self.push(format_args!(", ack {ack}"));
        }
        self.push(format_args!(", win {}", tcp.window));
        if tcp.flags.urg() {
            self.push(format_args!(", urg {}", gannet_wire::tcp_urgent(ip.payload)));
        }
        if !tcp.options.is_empty() {
            self.text.push_str(", options [");
            tcp_options(tcp.options, &mut self.text);
            self.text.push(']');
        }
        self.push(format_args!(", length {len}"));
    }

    /// Sequence and acknowledgement numbers, relative to the first of their direction where both are
    /// known, as tcpdump prints them: those of a SYN are absolute.
    fn relative(&mut self, ip: &Ip<'_>, tcp: &Tcp<'_>) -> (u32, u32) {
        if self.options.absolute {
            return (tcp.seq, tcp.ack);
        }
        let direction = (ip.src, tcp.src_port, ip.dst, tcp.dst_port);
        let other = (ip.dst, tcp.dst_port, ip.src, tcp.src_port);
        if self.first.len() >= MAX_DIRECTIONS {
            self.first.clear();
        }
        if tcp.flags.syn() {
            self.first.insert(direction, tcp.seq);
            if tcp.flags.ack() {
                self.first.insert(other, tcp.ack.wrapping_sub(1));
            }
            return (tcp.seq, tcp.ack);
        }
        // The first captured segment of a connection whose start is missing.
        let Some(first) = self.first.get(&direction).copied() else {
            self.first.insert(direction, tcp.seq);
            self.first.entry(other).or_insert(tcp.ack);
            return (tcp.seq, tcp.ack);
        };
        let from = self.first.get(&other).copied().unwrap_or_default();
        (tcp.seq.wrapping_sub(first), tcp.ack.wrapping_sub(from))
    }

    fn udp(&mut self, ip: &Ip<'_>, udp: &Udp<'_>) {
        let (from, to) = (udp.src_port, udp.dst_port);
        self.push(format_args!("{}.{from} > {}.{to}: ", ip.src, ip.dst));
        let is_dns = DNS.contains(&from) || DNS.contains(&to);
        if !(is_dns && dns(udp.payload, udp.payload_len, &mut self.text)) {
            self.push(format_args!("UDP, length {}", udp.payload_len));
        }
    }

    fn icmp(&mut self, ip: &Ip<'_>, icmp: &Icmp<'_>) {
        self.push(format_args!("{} > {}: ", ip.src, ip.dst));
        self.text.push_str(if icmp.v6 { "ICMP6, " } else { "ICMP " });
        let len = ip.payload_len;
        let name = if icmp.v6 { icmp6_name(icmp.kind) } else { icmp_name(icmp.kind) };
        let is_echo = matches!((icmp.v6, icmp.kind), (false, 0 | 8) | (true, 128 | 129));
        match name {
            Some(name) if is_echo => {
                let (id, seq) = (icmp.rest >> 16, icmp.rest & 0xffff);
                self.push(format_args!("{name}, id {id}, seq {seq}, length {len}"));
            }
            Some(name) => self.push(format_args!("{name}, code {}, length {len}", icmp.code)),
            None => self.push(format_args!("type {}, code {}, length {len}", icmp.kind, icmp.code)),
        }
    }

    fn arp(&mut self, bytes: &[u8], wire_len: u32) {
        let arp = match gannet_wire::arp(bytes) {
            Ok(arp) => arp,
            Err(error) => {
                return self.push(format_args!("ARP, [|{error}], length {wire_len}"));
            }
        };
        let address = |bytes: &[u8]| match (arp.protocol, bytes) {
            (ETHERTYPE_IPV4, [a, b, c, d]) => format!("{a}.{b}.{c}.{d}"),
            _ => hex(bytes),
        };
        let (sender, target) = (address(arp.sender), address(arp.target));
        match arp.operation {
            1 => self.push(format_args!("ARP, Request who-has {target} tell {sender}")),
            2 => self.push(format_args!("ARP, Reply {sender} is-at {}", hex(arp.sender_mac))),
            other => self.push(format_args!("ARP, operation {other}, {sender} to {target}")),
        }
        self.push(format_args!(", length {wire_len}"));
    }
}

/// The offset of `part` in `all`.
fn offset(all: &[u8], part: &[u8]) -> usize {
    let offset = part.as_ptr().addr().wrapping_sub(all.as_ptr().addr());
    if offset <= all.len() { offset } else { 0 }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

/// The name of a datagram's protocol.
pub(super) fn name_of(ip: &Ip<'_>) -> String {
    let name = match ip.protocol {
        _ if ip.upper == UpperLayer::Esp => "ESP",
        _ if ip.upper == UpperLayer::Mobility => "Mobility",
        protocol::ICMP => "ICMP",
        2 => "IGMP",
        protocol::IPV4 => "IPv4",
        protocol::TCP => "TCP",
        protocol::UDP => "UDP",
        protocol::IPV6 => "IPv6",
        protocol::GRE => "GRE",
        protocol::ESP => "ESP",
        protocol::AH => "AH",
        protocol::ICMP6 => "ICMPv6",
        protocol::NONE => "no next header",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        132 => "SCTP",
        other => return format!("ip-proto-{other}"),
    };
    name.to_owned()
}

fn icmp_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "echo reply",
        3 => "destination unreachable",
        4 => "source quench",
        5 => "redirect",
        8 => "echo request",
        9 => "router advertisement",
        10 => "router solicitation",
        11 => "time exceeded",
        12 => "parameter problem",
        13 => "time stamp query",
        14 => "time stamp reply",
        _ => return None,
    })
}

fn icmp6_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "destination unreachable",
        2 => "packet too big",
        3 => "time exceeded",
        4 => "parameter problem",
        128 => "echo request",
        129 => "echo reply",
        130 => "multicast listener query",
        131 => "multicast listener report",
        132 => "multicast listener done",
        133 => "router solicitation",
        134 => "router advertisement",
        135 => "neighbor solicitation",
        136 => "neighbor advertisement",
        137 => "redirect",
        143 => "multicast listener report v2",
        _ => return None,
    })
}

/// Formats all TCP options, including padding.
fn tcp_options(options: &[u8], out: &mut String) {
    let mut rest = options;
    let mut first = true;
    loop {
        let (words, len) = match *rest {
            [] => return,
            [0, ..] => ("eol".to_owned(), rest.len()),
            [1, ..] => ("nop".to_owned(), 1),
            [kind, len, ..] if len >= 2 && rest.len() >= usize::from(len) => {
                let value = rest.get(2..usize::from(len)).unwrap_or_default();
                (tcp_option(kind, value), usize::from(len))
            }
            _ => ("bad opt".to_owned(), rest.len()),
        };
        if !first {
            out.push(',');
        }
        first = false;
        out.push_str(&words);
        rest = rest.get(len..).unwrap_or_default();
    }
}

fn tcp_option(kind: u8, value: &[u8]) -> String {
    let word = |at: usize| {
        let bytes = value.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    };
    match (kind, value) {
        (2, [a, b]) => format!("mss {}", u16::from_be_bytes([*a, *b])),
        (3, [scale]) => format!("wscale {scale}"),
        (4, []) => "sackOK".to_owned(),
        (5, _) if !value.is_empty() && value.len().is_multiple_of(8) => {
            let blocks = (0..value.len()).step_by(8);
            let blocks = blocks.map(|at| format!("{{{}:{}}}", word(at), word(at + 4)));
            format!("sack {} {}", value.len() / 8, blocks.collect::<String>())
        }
        (8, [_, _, _, _, _, _, _, _]) => format!("TS val {} ecr {}", word(0), word(4)),
        _ => format!("unknown-{kind}"),
    }
}

/// Names of record types.
const TYPES: [(u16, &str); 14] = [
    (1, "A"),
    (2, "NS"),
    (5, "CNAME"),
    (6, "SOA"),
    (12, "PTR"),
    (15, "MX"),
    (16, "TXT"),
    (28, "AAAA"),
    (33, "SRV"),
    (41, "OPT"),
    (43, "DS"),
    (48, "DNSKEY"),
    (65, "HTTPS"),
    (255, "ANY"),
];
const RCODES: [&str; 6] = ["", "FormErr", "ServFail", "NXDomain", "NotImp", "Refused"];

/// Formats a DNS message: id and flags, the question, or the counts of an answer. Returns whether it is a DNS message.
fn dns(payload: &[u8], wire_len: u32, out: &mut String) -> bool {
    let word = |at: usize| match payload.get(at..at + 2) {
        Some(&[a, b]) => Some(u16::from_be_bytes([a, b])),
        _ => None,
    };
    let [Some(id), Some(flags), Some(questions), Some(answers), Some(authority), Some(more)] =
        [word(0), word(2), word(4), word(6), word(8), word(10)]
    else {
        return false;
    };
    let mut text = format!("{id}");
    if flags & 0x8000 == 0 {
        text.push_str(if flags & 0x0100 != 0 { "+" } else { "" });
        if questions == 1
            && let Some((name, end)) = name(payload, 12)
            && let Some(kind) = word(end)
        {
            let known = TYPES.iter().find(|(number, _)| *number == kind);
            let kind = known.map_or_else(|| format!("Type{kind}"), |(_, name)| (*name).to_owned());
            text.push_str(&format!(" {kind}? {name}"));
        } else {
            text.push_str(&format!(" [{questions}q]"));
        }
    } else {
        let rcode = usize::from(flags & 15);
        if rcode > 0 {
            let name =
                RCODES.get(rcode).map_or_else(|| format!("Resp{rcode}"), |n| (*n).to_owned());
            text.push_str(&format!(" {name}"));
        }
        text.push_str(if flags & 0x0400 != 0 { "*" } else { "" });
        text.push_str(&format!(" {answers}/{authority}/{more}"));
    }
    out.push_str(&format!("{text} ({wire_len})"));
    true
}

/// The name of a question, which has no compression pointers, and the offset after it.
fn name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    loop {
        let len = usize::from(*message.get(at)?);
        at += 1;
        if len == 0 {
            if name.is_empty() {
                name.push('.');
            }
            return Some((name, at));
        }
        // A longer label is a pointer; names have at most 255 bytes (RFC 1035 §2.3.4).
        if len > 63 || name.len() > 1_020 {
            return None;
        }
        for byte in message.get(at..at + len)? {
            match byte {
                b'!'..=b'~' => name.push(char::from(*byte)),
                _ => name.push_str(&format!("\\{byte:03}")),
            }
        }
        name.push('.');
        at += len;
    }
}

/// Bytes in hexadecimal, sixteen a line, as tcpdump prints them.
fn dump(bytes: &[u8], characters: bool, out: &mut String) {
    for (number, line) in bytes.chunks(16).enumerate() {
        let mut hex = String::new();
        for pair in line.chunks(2) {
            hex.push(' ');
            hex.extend(pair.iter().map(|b| format!("{b:02x}")));
        }
        let offset = number * 16;
        if characters {
            let shown = |b: &u8| if b.is_ascii_graphic() { char::from(*b) } else { '.' };
            let shown: String = line.iter().map(shown).collect();
            out.push_str(&format!("\t0x{offset:04x}: {hex:<41} {shown}\n"));
        } else {
            out.push_str(&format!("\t0x{offset:04x}: {hex}\n"));
        }
    }
}

/// Year, month and day of a day since 1970 (the civil calendar, days counted in eras of 400 years).
fn date(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(19_675), (2023, 11, 14));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(-1), (1969, 12, 31));
    }

    #[test]
    fn tcp_options_are_printed_up_to_an_error() {
        let of = |bytes: &[u8]| {
            let mut out = String::new();
            tcp_options(bytes, &mut out);
            out
        };
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
        assert_eq!(of(&bytes), "mss 1460,sackOK,TS val 1 ecr 2,nop,wscale 7");
        assert_eq!(of(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9]), "nop,nop,sack 1 {1:9}");
        assert_eq!(of(&[2, 1]), "bad opt");
        assert_eq!(of(&[2, 9, 0]), "bad opt");
        assert_eq!(of(&[0, 1, 1]), "eol");
        assert_eq!(of(&[99, 3, 1]), "unknown-99");
    }

    #[test]
    fn truncated_names_are_refused() {
        assert_eq!(name(b"\x03www\x00", 0), Some(("www.".to_owned(), 5)));
        assert_eq!(name(b"\x00", 0), Some((".".to_owned(), 1)));
        assert_eq!(name(b"\x02\x01.\x00", 0), Some(("\\001..".to_owned(), 4)));
        assert_eq!(name(b"\x03ww", 0), None);
        assert_eq!(name(b"\xc0\x0c", 0), None);
        let mut out = String::new();
        assert!(!dns(b"\x00\x01", 2, &mut out) && out.is_empty());
    }

    #[test]
    fn bytes_are_sixteen_a_line() {
        let mut out = String::new();
        dump(b"GET / HTTP/1.1\r\n\x00", false, &mut out);
        assert_eq!(out, "\t0x0000:  4745 5420 2f20 4854 5450 2f31 2e31 0d0a\n\t0x0010:  00\n");
        out.clear();
        dump(b"GET /\r\n", true, &mut out);
        assert_eq!(out, "\t0x0000:  4745 5420 2f0d 0a                        GET./..\n");
    }
}
