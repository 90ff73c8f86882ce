//! The list of protocols: names, ports, and one enum that holds any analyzer.

use gannet_base::Dir;

use crate::Analyze;
use crate::Context;

macro_rules! registry {
    (
        analyzers { $( $tag:ident $module:ident :: $ty:ident, $name:literal, $service:literal, tcp $tcp:tt, udp $udp:tt; )* }
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

            /// TCP ports on which it is tried at once.
            pub fn tcp_ports(self) -> &'static [u16] {
                match self { $( Self::$tag => &$tcp, )* _ => &[] }
            }

            /// UDP ports on which it is tried at once.
            pub fn udp_ports(self) -> &'static [u16] {
                match self { $( Self::$tag => &$udp, )* _ => &[] }
            }
        }

        /// The analyzer of any protocol.
        pub enum Analyzer { $( #[doc = $name] $tag(Box<crate::$module::$ty>), )* }

        impl Analyzer {
            /// A fresh analyzer for a connection; `None` for names that have none.
            pub fn new(tag: Tag, cx: &mut Context<'_>) -> Option<Self> {
                match tag {
                    $( Tag::$tag => Some(Self::$tag(Box::new(crate::$module::$ty::new(cx)))), )*
                    _ => None,
                }
            }

            /// Its protocol.
            pub fn tag(&self) -> Tag {
                match self { $( Self::$tag(_) => Tag::$tag, )* }
            }
        }

        impl Analyze for Analyzer {
            fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
                match self { $( Self::$tag(a) => a.stream(cx, from, data), )* }
            }
            fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
                match self { $( Self::$tag(a) => a.gap(cx, from, len), )* }
            }
            fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
                match self { $( Self::$tag(a) => a.end(cx, from), )* }
            }
            fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], len: u32) {
                match self { $( Self::$tag(a) => a.datagram(cx, from, data, len), )* }
            }
            fn flip(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.flip(cx), )* }
            }
            fn reset(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.reset(cx), )* }
            }
            fn finish(&mut self, cx: &mut Context<'_>) {
                match self { $( Self::$tag(a) => a.finish(cx), )* }
            }
        }
    };
}

registry! {
    analyzers {
        Detector detect::Detector, "PIA", "pia", tcp [], udp [];
        Dhcp dhcp::Analyzer, "DHCP", "dhcp", tcp [], udp [67, 68, 4011];
        Dns dns::Analyzer, "DNS", "dns", tcp [53], udp [53, 137, 5353, 5355];
        Dtls ssl::Dtls, "DTLS", "dtls", tcp [], udp [443];
        Ftp ftp::Analyzer, "FTP", "ftp", tcp [21, 2811], udp [];
        FtpData ftp::Data, "FTP_DATA", "ftp-data", tcp [], udp [];
        Http http::Analyzer, "HTTP", "http", tcp [80, 81, 631, 1080, 3128, 8000, 8080, 8888], udp [];
        Irc irc::Analyzer, "IRC", "irc", tcp [6666, 6667, 6668, 6669], udp [];
        IrcData irc::Data, "IRC_DATA", "irc-dcc-data", tcp [], udp [];
        Ntp ntp::Analyzer, "NTP", "ntp", tcp [], udp [123];
        Smtp smtp::Analyzer, "SMTP", "smtp", tcp [25, 587], udp [];
        Ssh ssh::Analyzer, "SSH", "ssh", tcp [22], udp [];
        Ssl ssl::Analyzer, "SSL", "ssl", tcp [443, 465, 563, 585, 614, 636, 989, 990, 992, 993, 995, 5223], udp [];
        Syslog syslog::Analyzer, "SYSLOG", "syslog", tcp [], udp [514];
    }
    names {
        Ayiya, "AYIYA", "ayiya";
        Geneve, "GENEVE", "geneve";
        Gtpv1, "GTPV1", "gtpv1";
        Teredo, "TEREDO", "teredo";
        Vxlan, "VXLAN", "vxlan";
    }
}
