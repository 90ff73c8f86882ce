//! The list of protocols: names, ports, and one enum that holds any analyzer.

use std::collections::HashMap;
use std::sync::LazyLock;

use gannet_base::Dir;
use gannet_dict::KeyedHash;
use gannet_event::Decl;
use gannet_log::Schema;

use crate::Analyze;
use crate::Context;
use crate::Env;

/// How the enum of all analyzers holds one: boxed, so that it stays small, unless the analyzer is
/// small itself and so common that another allocation would be felt.
macro_rules! held {
    ($ty:ty) => { Box<$ty> };
    ($ty:ty, inline) => { $ty };
}

macro_rules! hold {
    ($analyzer:expr) => {
        Box::new($analyzer)
    };
    ($analyzer:expr, inline) => {
        $analyzer
    };
}

macro_rules! registry {
    (
        analyzers { $( $tag:ident $module:ident :: $ty:ident, $name:literal, $service:literal, tcp $tcp:tt, udp $udp:tt $(, $how:ident)?; )* }
        names { $( $packet:ident, $pname:literal, $pservice:literal; )* }
    ) => {
        /// A protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag { $( #[doc = $name] $tag, )* $( #[doc = $pname] $packet, )* }

        impl Tag {
            /// All protocols.
            pub const ALL: &[Self] = &[ $( Self::$tag, )* $( Self::$packet, )* ];

            /// Name as analyzer.log spells it.
            pub fn name(self) -> &'static str {
                match self { $( Self::$tag => $name, )* $( Self::$packet => $pname, )* }
            }

            /// Name as conn.log's `service` spells it.
            pub fn service(self) -> &'static str {
                match self { $( Self::$tag => $service, )* $( Self::$packet => $pservice, )* }
            }

            /// Name as the connections of events spell it.
            pub fn script_service(self) -> &'static str {
                match self {
                    Self::FtpData | Self::IrcData => self.service(),
                    _ => self.name(),
                }
            }

            /// Name of its tag in Zeek's scripts.
            pub fn zeek_name(self) -> &'static str {
                match self {
                    $( Self::$tag => concat!("Analyzer::ANALYZER_", $name), )*
                    $( Self::$packet if self.reads_packets() => concat!("PacketAnalyzer::ANALYZER_", $pname), )*
                    $( Self::$packet => concat!("Analyzer::ANALYZER_", $pname), )*
                }
            }

            /// TCP ports on which it is tried at once.
            pub fn tcp_ports(self) -> &'static [u16] {
                match self { $( Self::$tag => &$tcp, )* _ => &[] }
            }

            /// UDP ports on which it is tried at once.
            pub fn udp_ports(self) -> &'static [u16] {
                match self { $( Self::$tag => &$udp, )* _ => &[] }
            }
        }

        /// Ports on which analyzers are tried at once.
        const TCP_PORTS: &[&[u16]] = &[ $( &$tcp ),* ];
        /// See [`TCP_PORTS`].
        const UDP_PORTS: &[&[u16]] = &[ $( &$udp ),* ];

        impl Tag {
            /// Events that its analyzer declares.
            pub(crate) fn events(self) -> &'static [&'static Decl] {
                match self { $( Self::$tag => <crate::$module::$ty as Analyze>::EVENTS, )* _ => &[] }
            }

            /// Schemas of logs that its analyzer declares.
            pub(crate) fn schemas(self) -> &'static [fn() -> Schema] {
                match self { $( Self::$tag => <crate::$module::$ty as Analyze>::SCHEMAS, )* _ => &[] }
            }

            /// Whether its analyzer [starts](Analyze::is_wanted) at all.
            pub(crate) fn is_wanted(self, env: &Env) -> bool {
                match self { $( Self::$tag => <crate::$module::$ty as Analyze>::is_wanted(env), )* _ => true }
            }
        }

        impl Tag {
            /// Whether there is an analyzer behind the name.
            pub fn has_analyzer(self) -> bool {
                matches!(self, $( Self::$tag )|*)
            }
        }

        /// The analyzer of any protocol.
        pub enum Analyzer { $( #[doc = $name] $tag(held!(crate::$module::$ty $(, $how)?)), )* }

        impl Analyzer {
            /// A fresh analyzer for a connection; `None` for names that have none.
            pub fn new(tag: Tag, cx: &mut Context<'_>) -> Option<Self> {
                match tag {
                    $( Tag::$tag => Some(Self::$tag(hold!(crate::$module::$ty::new(cx) $(, $how)?))), )*
                    _ => None,
                }
            }

            /// Its protocol.
            pub fn tag(&self) -> Tag {
                match self { $( Self::$tag(_) => Tag::$tag, )* }
            }
        }

        impl Analyze for Analyzer {
            #[inline]
            fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
                match self {
                    $( Self::$tag(a) => stream::<crate::$module::$ty>(a, cx, from, data), )*
                }
            }
            fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
                match self { $( Self::$tag(a) => a.gap(cx, from, len), )* }
            }
            fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
                match self { $( Self::$tag(a) => a.end(cx, from), )* }
            }
            fn closed(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.closed(cx), )* }
            }
            #[inline]
            fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], len: u32) {
                match self {
                    $( Self::$tag(a) => datagram::<crate::$module::$ty>(a, cx, from, data, len), )*
                }
            }
            fn is_idle(&self) -> bool {
                match self { $( Self::$tag(a) => a.is_idle(), )* }
            }
            fn flip(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.flip(cx), )* }
            }
            fn reset(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.reset(cx), )* }
            }
            fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
                match self { $( Self::$tag(a) => a.suspend(cx), )* }
            }
            fn left(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.left(cx), )* }
            }
            fn finish(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.finish(cx), )* }
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

registry! {
    analyzers {
        Detector detect::Detector, "PIA", "pia", tcp [], udp [], inline;
        DceRpc dce_rpc::Analyzer, "DCE_RPC", "dce_rpc", tcp [135], udp [];
        Dhcp dhcp::Analyzer, "DHCP", "dhcp", tcp [], udp [67, 68, 4011];
        Dnp3Tcp dnp3::Tcp, "DNP3_TCP", "dnp3_tcp", tcp [20000], udp [];
        Dnp3Udp dnp3::Udp, "DNP3_UDP", "dnp3_udp", tcp [], udp [];
        Dns dns::Analyzer, "DNS", "dns", tcp [53], udp [53, 137, 5353, 5355], inline;
        Dtls ssl::Dtls, "DTLS", "dtls", tcp [], udp [443];
        Finger finger::Analyzer, "FINGER", "finger", tcp [79], udp [];
        Ftp ftp::Analyzer, "FTP", "ftp", tcp [21, 2811], udp [];
        FtpData ftp::Data, "FTP_DATA", "ftp-data", tcp [], udp [];
        Http http::Analyzer, "HTTP", "http", tcp [80, 81, 631, 1080, 3128, 8000, 8080, 8888], udp [];
        Imap imap::Analyzer, "IMAP", "imap", tcp [143], udp [];
        Irc irc::Analyzer, "IRC", "irc", tcp [6666, 6667, 6668, 6669], udp [];
        IrcData irc::Data, "IRC_DATA", "irc-dcc-data", tcp [], udp [];
        Krb krb::Udp, "KRB", "krb", tcp [], udp [88];
        KrbTcp krb::Tcp, "KRB_TCP", "krb_tcp", tcp [88], udp [];
        LdapTcp ldap::Tcp, "LDAP_TCP", "ldap_tcp", tcp [389, 3268], udp [];
        LdapUdp ldap::Udp, "LDAP_UDP", "ldap_udp", tcp [], udp [389];
        Modbus modbus::Analyzer, "MODBUS", "modbus", tcp [502], udp [];
        Mqtt mqtt::Analyzer, "MQTT", "mqtt", tcp [1883], udp [];
        Mysql mysql::Analyzer, "MYSQL", "mysql", tcp [1434, 3306], udp [];
        Ntp ntp::Analyzer, "NTP", "ntp", tcp [], udp [123];
        Pop3 pop3::Analyzer, "POP3", "pop3", tcp [], udp [];
        Postgresql postgresql::Analyzer, "POSTGRESQL", "postgresql", tcp [5432], udp [];
        Quic quic::Analyzer, "QUIC", "quic", tcp [], udp [443, 784, 853];
        Radius radius::Analyzer, "RADIUS", "radius", tcp [], udp [1812];
        Rdp rdp::Analyzer, "RDP", "rdp", tcp [3389], udp [];
        RdpEudp rdp::Udp, "RDPEUDP", "rdpeudp", tcp [], udp [3389];
        Redis redis::Analyzer, "REDIS", "redis", tcp [6379], udp [];
        Rfb rfb::Analyzer, "RFB", "rfb", tcp [], udp [];
        Sip sip::Analyzer, "SIP", "sip", tcp [], udp [5060];
        Smb smb::Analyzer, "SMB", "smb", tcp [139, 445], udp [];
        Smtp smtp::Analyzer, "SMTP", "smtp", tcp [25, 587], udp [];
        Snmp snmp::Analyzer, "SNMP", "snmp", tcp [], udp [161, 162];
        Socks socks::Analyzer, "SOCKS", "socks", tcp [1080], udp [];
        Ssh ssh::Analyzer, "SSH", "ssh", tcp [22], udp [];
        Ssl ssl::Analyzer, "SSL", "ssl", tcp [443, 465, 563, 585, 614, 636, 989, 990, 992, 993, 995, 5223], udp [];
        Syslog syslog::Analyzer, "SYSLOG", "syslog", tcp [], udp [514];
        Tftp tftp::Analyzer, "TFTP", "tftp", tcp [], udp [69];
        WebSocket websocket::Analyzer, "WEBSOCKET", "websocket", tcp [], udp [];
        Xmpp xmpp::Analyzer, "XMPP", "xmpp", tcp [5222, 5269], udp [];
    }
    names {
        Ayiya, "AYIYA", "ayiya";
        Gridftp, "GRIDFTP", "gridftp";
        Gssapi, "GSSAPI", "gssapi";
        Ntlm, "NTLM", "ntlm";
        Geneve, "GENEVE", "geneve";
        Gtpv1, "GTPV1", "gtpv1";
        Teredo, "TEREDO", "teredo";
        Vxlan, "VXLAN", "vxlan";
    }
}

impl Tag {
    /// The protocol whose tag has this name in Zeek's scripts.
    pub fn of_zeek_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|tag| tag.zeek_name() == name).copied()
    }

    /// Whether it reads tunnels, whose packets carry others.
    pub(crate) fn reads_packets(self) -> bool {
        matches!(self, Self::Ayiya | Self::Geneve | Self::Gtpv1 | Self::Teredo | Self::Vxlan)
    }

    /// Whether Zeek reads the protocol only where it was built with Spicy.
    pub fn needs_spicy(self) -> bool {
        matches!(self, Self::LdapTcp | Self::LdapUdp | Self::Postgresql | Self::Quic | Self::Redis)
    }
}

/// Ports of servers of known protocols, which determine the responder if the first packet does not.
/// Zeek's `likely_server_ports`; those of its Spicy analyzers are not among them.
const LIKELY_TCP: &[u16] = &[
    21, 22, 25, 53, 79, 80, 81, 88, 135, 139, 143, 443, 445, 465, 502, 514, 563, 585, 587, 614,
    631, 636, 989, 990, 992, 993, 995, 1080, 1434, 1883, 2811, 3128, 3306, 3389, 5222, 5223, 5269,
    6666, 6667, 6668, 6669, 8000, 8080, 8888, 20000,
];

/// See [`LIKELY_TCP`].
const LIKELY_UDP: &[u16] = &[
    53, 67, 88, 123, 137, 161, 162, 443, 514, 1812, 2123, 2152, 3389, 3544, 4011, 4754, 4789, 5060,
    5072, 5353, 5355, 6081, 20000,
];

/// Whether a server of a known protocol is likely to have this port.
#[inline]
pub fn is_likely_server_port(proto: gannet_base::Proto, port: u16) -> bool {
    let map = match proto {
        gannet_base::Proto::Tcp => &TCP_MAP,
        gannet_base::Proto::Udp => &UDP_MAP,
        _ => return false,
    };
    map[usize::from(port >> 6)] >> (port & 63) & 1 != 0
}

static TCP_MAP: [u64; 1024] = bitmap(LIKELY_TCP);
static UDP_MAP: [u64; 1024] = bitmap(LIKELY_UDP);

const fn bitmap(ports: &[u16]) -> [u64; 1024] {
    let mut map = [0; 1024];
    let mut i = 0;
    while i < ports.len() {
        map[(ports[i] >> 6) as usize] |= 1 << (ports[i] & 63);
        i += 1;
    }
    map
}

/// Protocols tried at once on a responder's port.
#[inline]
pub fn by_port(proto: gannet_base::Proto, port: u16) -> &'static [Tag] {
    if !is_known_port(proto, port) {
        return &[];
    }
    let table = match proto {
        gannet_base::Proto::Tcp => &TCP_TAGS,
        _ => &UDP_TAGS,
    };
    table.get(&port).map_or(&[], |tags| tags)
}

type Ports = HashMap<u16, Vec<Tag>, KeyedHash>;

static TCP_TAGS: LazyLock<Ports> = LazyLock::new(|| ports(Tag::tcp_ports));
static UDP_TAGS: LazyLock<Ports> = LazyLock::new(|| ports(Tag::udp_ports));

fn ports(of: fn(Tag) -> &'static [u16]) -> Ports {
    let mut map = Ports::default();
    for tag in Tag::ALL {
        for port in of(*tag) {
            map.entry(*port).or_default().push(*tag);
        }
    }
    map
}

/// Whether a protocol is tried at once on a port. Not all of these ports determine the server side.
#[inline]
fn is_known_port(proto: gannet_base::Proto, port: u16) -> bool {
    let map = match proto {
        gannet_base::Proto::Tcp => &TCP_KNOWN,
        gannet_base::Proto::Udp => &UDP_KNOWN,
        _ => return false,
    };
    map[usize::from(port >> 6)] >> (port & 63) & 1 != 0
}

static TCP_KNOWN: [u64; 1024] = bitmaps(TCP_PORTS);
static UDP_KNOWN: [u64; 1024] = bitmaps(UDP_PORTS);

const fn bitmaps(lists: &[&[u16]]) -> [u64; 1024] {
    let mut map = [0; 1024];
    let mut i = 0;
    while i < lists.len() {
        let mut j = 0;
        while j < lists[i].len() {
            let port = lists[i][j];
            map[(port >> 6) as usize] |= 1 << (port & 63);
            j += 1;
        }
        i += 1;
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Proto;

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
}
