//! The list of protocols, and what is derived from it and from their [descriptors](Descriptor): one enum of tags, one
//! that holds any analyzer, names, and tables of ports.

use std::collections::HashMap;
use std::sync::LazyLock;

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_dict::KeyedHash;

use crate::Analyze;
use crate::Context;
use crate::Env;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Kind;
use crate::descriptor::Log;
use crate::descriptor::Origin;
use crate::descriptor::Ports;

/// How the enum of all analyzers holds one: boxed, so that it stays small, unless the analyzer is
/// small itself and so common that another allocation would be felt.
macro_rules! held {
    ($ty:ty) => { Box<$ty> };
    ($ty:ty, inline) => { $ty };
}

/// An expression for each name with an analyzer.
macro_rules! analyzed {
    ($ty:ident, $then:expr) => {
        $then
    };
}

macro_rules! hold {
    ($analyzer:expr) => {
        Box::new($analyzer)
    };
    ($analyzer:expr, inline) => {
        $analyzer
    };
}

macro_rules! protocols {
    ($( $module:ident { $( $tag:ident $( : $ty:ident $($how:ident)? )? ),* } )*) => {
        /// A protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag { $($( #[doc = concat!("A name of `", stringify!($module), "`.")] $tag, )*)* }

        impl Tag {
            /// All protocols.
            pub const ALL: &[Self] = &[ $($( Self::$tag, )*)* ];

            /// Whether there is an analyzer behind the name.
            pub fn has_analyzer(self) -> bool {
                match self { $($($( Self::$tag => analyzed!($ty, true), )?)*)* _ => false }
            }

            fn descriptor(self) -> &'static Descriptor {
                match self { $($( Self::$tag => &crate::$module::DESCRIPTOR, )*)* }
            }
        }

        /// The descriptors of all protocols, in the order of the list.
        pub const DESCRIPTORS: &[&Descriptor] = &[ $( &crate::$module::DESCRIPTOR, )* ];

        /// The analyzer of any protocol.
        pub enum Analyzer {
            $($($( #[doc = concat!("Of `", stringify!($module), "`.")] $tag(held!(crate::$module::$ty $(, $how)?)), )?)*)*
        }

        impl Analyzer {
            /// A fresh analyzer for a connection; `None` for names that have none.
            pub fn new(tag: Tag, cx: &mut Context<'_>) -> Option<Self> {
                match tag {
                    $($($( Tag::$tag => Some(Self::$tag(hold!(crate::$module::$ty::new(cx) $(, $how)?))), )?)*)*
                    _ => None,
                }
            }

            /// Its protocol.
            pub fn tag(&self) -> Tag {
                match self { $($($( Self::$tag(_) => analyzed!($ty, Tag::$tag), )?)*)* }
            }
        }

        impl Analyze for Analyzer {
            #[inline]
            fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
                match self {
                    $($($( Self::$tag(a) => stream::<crate::$module::$ty>(a, cx, from, data), )?)*)*
                }
            }
            fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::gap(a, cx, from, len), )?)*)* }
            }
            fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::end(a, cx, from), )?)*)* }
            }
            fn closed(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::closed(a, cx), )?)*)* }
            }
            #[inline]
            fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], len: u32) {
                match self {
                    $($($( Self::$tag(a) => datagram::<crate::$module::$ty>(a, cx, from, data, len), )?)*)*
                }
            }
            #[inline]
            fn is_idle(&self) -> bool {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::is_idle(a), )?)*)* }
            }
            fn flip(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::flip(a, cx), )?)*)* }
            }
            fn reset(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::reset(a, cx), )?)*)* }
            }
            fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::suspend(a, cx), )?)*)* }
            }
            fn left(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::left(a, cx), )?)*)* }
            }
            fn finish(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::finish(a, cx), )?)*)* }
            }
        }
    };
}

/// A separate function for each analyzer: inlined into the dispatch, all would save the registers
/// and stack that the largest needs.
#[inline(never)]
fn stream<A: Analyze>(a: &mut A, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
    a.stream(cx, from, data);
}

/// The same for datagrams.
#[inline(never)]
fn datagram<A: Analyze>(a: &mut A, cx: &mut Context<'_>, from: Dir, data: &[u8], len: u32) {
    a.datagram(cx, from, data, len);
}

// A line for each folder: its tags in the order of its descriptor, each with the type of the analyzer, if it has one.
// Beginnings of connections are tried in the order of the list.
protocols! {
    detect { Detector: Detector inline }
    bittorrent { BittorrentTracker: Tracker }
    dce_rpc { DceRpc: Analyzer }
    dhcp { Dhcp: Analyzer }
    dnp3 { Dnp3Tcp: Tcp, Dnp3Udp: Udp }
    dns { Dns: Analyzer inline }
    finger { Finger: Analyzer }
    ftp { Ftp: Analyzer, FtpData: Data, Gridftp }
    gnutella { Gnutella: Analyzer }
    gssapi { Gssapi }
    http { Http: Analyzer }
    imap { Imap: Analyzer }
    irc { Irc: Analyzer, IrcData: Data }
    krb { Krb: Udp, KrbTcp: Tcp }
    ldap { LdapTcp: Tcp, LdapUdp: Udp }
    login { Telnet: Telnet, Rlogin: Rlogin, Rsh: Rsh }
    modbus { Modbus: Analyzer }
    mqtt { Mqtt: Analyzer }
    mysql { Mysql: Analyzer }
    ncp { Ncp: Analyzer }
    netbios { Netbios: Analyzer }
    ntlm { Ntlm }
    ntp { Ntp: Analyzer }
    pop3 { Pop3: Analyzer }
    postgresql { Postgresql: Analyzer }
    quic { Quic: Analyzer }
    radius { Radius: Analyzer }
    rdp { Rdp: Analyzer, RdpEudp: Udp }
    redis { Redis: Analyzer }
    rfb { Rfb: Analyzer }
    rpc { Mount: Mount, Nfs: Nfs, Portmapper: Portmapper }
    sip { Sip: Analyzer }
    smb { Smb: Analyzer }
    smtp { Smtp: Analyzer }
    snmp { Snmp: Analyzer }
    socks { Socks: Analyzer }
    ssh { Ssh: Analyzer }
    ssl { Dtls: Dtls, Ssl: Analyzer }
    syslog { Syslog: Analyzer }
    tftp { Tftp: Analyzer }
    tunnel { Ayiya, Geneve, Gtpv1, Teredo, Vxlan }
    websocket { WebSocket: Analyzer }
    xmpp { Xmpp: Analyzer }
}

/// Number of tags.
pub(crate) const TAGS: usize = Tag::ALL.len();

/// The entries of all descriptors, by tag.
static ENTRIES: [&Entry; TAGS] = entries();

pub(crate) const fn entries() -> [&'static Entry; TAGS] {
    let mut all = [&DESCRIPTORS[0].entries[0]; TAGS];
    let (mut at, mut i) = (0, 0);
    while i < DESCRIPTORS.len() {
        let mut j = 0;
        while j < DESCRIPTORS[i].entries.len() {
            let entry = &DESCRIPTORS[i].entries[j];
            assert!(entry.tag as usize == at, "a descriptor and its line list different tags");
            all[at] = entry;
            (at, j) = (at + 1, j + 1);
        }
        i += 1;
    }
    assert!(at == TAGS, "a descriptor lacks a tag of its line");
    all
}

impl Tag {
    /// Its entry in the protocol's descriptor.
    #[inline]
    pub fn entry(self) -> &'static Entry {
        ENTRIES[self as usize]
    }

    /// Name as analyzer.log spells it.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Name as conn.log's `service` spells it.
    pub fn service(self) -> &'static str {
        self.entry().service
    }

    /// Name as the connections of events spell it.
    pub fn script_service(self) -> &'static str {
        if self.entry().kind == Kind::Service { self.service() } else { self.name() }
    }

    /// Name of its tag in Zeek's scripts.
    pub fn zeek_name(self) -> &'static str {
        &ZEEK_NAMES[self as usize]
    }

    /// The protocol whose tag has this name in Zeek's scripts.
    pub fn of_zeek_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|tag| tag.zeek_name() == name).copied()
    }

    /// TCP ports on which it is tried at once.
    pub fn tcp_ports(self) -> &'static [u16] {
        self.entry().ports.tcp
    }

    /// UDP ports on which it is tried at once.
    pub fn udp_ports(self) -> &'static [u16] {
        self.entry().ports.udp
    }

    /// Whether it reads tunnels, whose packets carry others.
    pub(crate) fn reads_packets(self) -> bool {
        self.entry().kind == Kind::Tunnel
    }

    /// Whether Zeek reads the protocol only where it was built with Spicy.
    pub fn needs_spicy(self) -> bool {
        self.entry().origin == Origin::Spicy
    }

    /// Whether connections are analyzed: what Zeek does not have only where a log or an event of it is asked for.
    pub(crate) fn is_wanted(self, env: &Env) -> bool {
        if self.entry().origin != Origin::Extra {
            return true;
        }
        let (events, selection) = (&env.logs.events, env.logs.selection());
        let mut declared = self.descriptor().events.iter().copied().flatten();
        self.descriptor().logs.iter().any(|log| (log.is_wanted)(selection))
            || events.any() && declared.any(|decl| events.wants_id(decl.id))
    }
}

static ZEEK_NAMES: LazyLock<[String; TAGS]> = LazyLock::new(|| {
    ENTRIES.map(|entry| match entry.kind {
        Kind::Tunnel => format!("PacketAnalyzer::ANALYZER_{}", entry.name),
        _ => format!("Analyzer::ANALYZER_{}", entry.name),
    })
});

/// The logs that protocols declare.
pub(crate) fn logs() -> impl Iterator<Item = &'static Log> {
    DESCRIPTORS.iter().flat_map(|descriptor| descriptor.logs)
}

/// GRE in UDP (RFC 8086): of Zeek's `likely_server_ports`, the one of no name of the list.
const OTHER: Ports = Ports::udp(&[4754]);

/// Whether a server of a known protocol is likely to have this port: it determines the responder if the first packet
/// does not.
#[inline]
pub fn is_likely_server_port(proto: Proto, port: u16) -> bool {
    let map = match proto {
        Proto::Tcp => &TCP_LIKELY,
        Proto::Udp => &UDP_LIKELY,
        _ => return false,
    };
    has(map, port)
}

/// Protocols tried at once on a responder's port.
#[inline]
pub fn by_port(proto: Proto, port: u16) -> &'static [Tag] {
    if !is_known_port(proto, port) {
        return &[];
    }
    let table = match proto {
        Proto::Tcp => &TCP_TAGS,
        _ => &UDP_TAGS,
    };
    table.get(&port).map_or(&[], |tags| tags)
}

type Tags = HashMap<u16, Vec<Tag>, KeyedHash>;

static TCP_TAGS: LazyLock<Tags> = LazyLock::new(|| tags(Tag::tcp_ports));
static UDP_TAGS: LazyLock<Tags> = LazyLock::new(|| tags(Tag::udp_ports));

/// The tags of each port, in the order of their names, as in Zeek.
fn tags(ports: fn(Tag) -> &'static [u16]) -> Tags {
    let mut all = Tag::ALL.to_vec();
    all.sort_by_key(|tag| tag.name());
    let mut map = Tags::default();
    for tag in all {
        for port in ports(tag) {
            map.entry(*port).or_default().push(tag);
        }
    }
    map
}

/// Whether a protocol is tried at once on a port. Not all of these ports determine the server side.
#[inline]
fn is_known_port(proto: Proto, port: u16) -> bool {
    let map = match proto {
        Proto::Tcp => &TCP_KNOWN,
        Proto::Udp => &UDP_KNOWN,
        _ => return false,
    };
    has(map, port)
}

/// A bit for each port.
type PortMap = [u64; 1024];

static TCP_LIKELY: PortMap = bitmap(true, Proto::Tcp);
static UDP_LIKELY: PortMap = bitmap(true, Proto::Udp);
static TCP_KNOWN: PortMap = bitmap(false, Proto::Tcp);
static UDP_KNOWN: PortMap = bitmap(false, Proto::Udp);

#[inline]
fn has(map: &PortMap, port: u16) -> bool {
    map[usize::from(port >> 6)] >> (port & 63) & 1 != 0
}

/// The ports of all entries: those of servers, or those on which analyzers are tried at once.
const fn bitmap(servers: bool, proto: Proto) -> PortMap {
    let mut map = [0; 1024];
    if servers {
        add(&mut map, of(&OTHER, proto));
    }
    let all = entries();
    let mut i = 0;
    while i < all.len() {
        let ports = if servers { all[i].likely() } else { &all[i].ports };
        add(&mut map, of(ports, proto));
        i += 1;
    }
    map
}

const fn of(ports: &Ports, proto: Proto) -> &'static [u16] {
    match proto {
        Proto::Tcp => ports.tcp,
        _ => ports.udp,
    }
}

const fn add(map: &mut PortMap, ports: &[u16]) {
    let mut i = 0;
    while i < ports.len() {
        map[(ports[i] >> 6) as usize] |= 1 << (ports[i] & 63);
        i += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_port_is_found() {
        for tag in Tag::ALL {
            for p in tag.tcp_ports() {
                assert!(by_port(Proto::Tcp, *p).contains(tag), "{tag:?} {p}");
            }
            for p in tag.udp_ports() {
                assert!(by_port(Proto::Udp, *p).contains(tag), "{tag:?} {p}");
            }
        }
        assert_eq!(by_port(Proto::Tcp, 12_345).len(), 0);
    }

    #[test]
    fn servers_have_the_likely_ports_of_zeek() {
        let tcp = [
            21, 22, 25, 53, 79, 80, 81, 88, 135, 139, 143, 443, 445, 465, 502, 514, 563, 585, 587,
            614, 631, 636, 989, 990, 992, 993, 995, 1080, 1434, 1883, 2811, 3128, 3306, 3389, 5222,
            5223, 5269, 6666, 6667, 6668, 6669, 8000, 8080, 8888, 20000,
        ];
        let udp = [
            53, 67, 88, 123, 137, 161, 162, 443, 514, 1812, 2123, 2152, 3389, 3544, 4011, 4754,
            4789, 5060, 5072, 5353, 5355, 6081, 20000,
        ];
        let likely = |proto| (0..=u16::MAX).filter(move |p| is_likely_server_port(proto, *p));
        assert!(likely(Proto::Tcp).eq(tcp));
        assert!(likely(Proto::Udp).eq(udp));
    }

    #[test]
    fn protocols_of_one_port_start_in_the_order_of_names() {
        assert_eq!(by_port(Proto::Udp, 443), [Tag::Dtls, Tag::Quic]);
        assert_eq!(by_port(Proto::Tcp, 1080), [Tag::Http, Tag::Socks]);
    }
}
