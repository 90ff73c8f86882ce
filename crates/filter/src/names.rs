//! Names of hosts, networks and ports.

use std::net::IpAddr;

/// Resolves names. The default methods resolve nothing.
pub trait Resolver {
    /// The addresses of a host.
    fn host(&self, _name: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    /// The address of a host in `ethers`.
    fn ether(&self, _name: &str) -> Option<[u8; 6]> {
        None
    }

    /// The number of a network as in the system's database: `getnetbyname` of GNU pads networks to
    /// four numbers, other systems do not. Leading zero bytes are treated as missing trailing ones,
    /// so that 10 is 10.0.0.0/8.
    fn network(&self, _name: &str) -> Option<u32> {
        None
    }

    /// The port of a service over `tcp` or `udp`.
    fn port(&self, name: &str, over: &str) -> Option<u16> {
        well_known(name, over)
    }

    /// The text of a list, for `host in @NAME`: an address, a network, a range or a name on each
    /// line, or a port, a range of ports or a service; `#` starts a comment.
    ///
    /// # Errors
    /// The reason why it does not exist, as text that follows the list's name.
    fn list(&self, _name: &str) -> Result<String, String> {
        Err("lists are not known here".to_owned())
    }

    /// The number of a protocol over IP.
    fn protocol(&self, name: &str) -> Option<u8> {
        protocol(name)
    }
}

/// A resolver for well-known names only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Resolver for NoNames {}

/// The services most used in filters, from the IANA registry.
fn well_known(name: &str, over: &str) -> Option<u16> {
    const BOTH: &[(&str, u16)] = &[
        ("domain", 53),
        ("echo", 7),
        ("discard", 9),
        ("daytime", 13),
        ("time", 37),
        ("sunrpc", 111),
        ("ntp", 123),
        ("snmp", 161),
        ("snmp-trap", 162),
        ("ldap", 389),
        ("https", 443),
        ("kerberos", 88),
        ("sip", 5060),
        ("sip-tls", 5061),
    ];
    const TCP: &[(&str, u16)] = &[
        ("ftp-data", 20),
        ("ftp", 21),
        ("ssh", 22),
        ("telnet", 23),
        ("smtp", 25),
        ("http", 80),
        ("www", 80),
        ("pop3", 110),
        ("nntp", 119),
        ("imap2", 143),
        ("imap", 143),
        ("imaps", 993),
        ("pop3s", 995),
        ("bgp", 179),
        ("ldaps", 636),
    ];
    const UDP: &[(&str, u16)] = &[
        ("bootps", 67),
        ("bootpc", 68),
        ("tftp", 69),
        ("syslog", 514),
        ("ntp", 123),
        ("radius", 1812),
    ];
    let own = if over == "tcp" { TCP } else { UDP };
    own.iter().chain(BOTH).find(|(n, _)| *n == name).map(|(_, port)| *port)
}

fn protocol(name: &str) -> Option<u8> {
    const NAMES: &[(&str, u8)] = &[
        ("ip", 0),
        ("icmp", 1),
        ("igmp", 2),
        ("ipencap", 4),
        ("tcp", 6),
        ("egp", 8),
        ("igp", 9),
        ("udp", 17),
        ("ipv6", 41),
        ("ipv6-route", 43),
        ("ipv6-frag", 44),
        ("rsvp", 46),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("ipv6-icmp", 58),
        ("ipv6-nonxt", 59),
        ("ipv6-opts", 60),
        ("eigrp", 88),
        ("ospf", 89),
        ("pim", 103),
        ("vrrp", 112),
        ("l2tp", 115),
        ("isis", 124),
        ("sctp", 132),
        ("udplite", 136),
        ("mpls-in-ip", 137),
    ];
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
}

/// EtherTypes and SAPs of LLC.
pub(crate) fn link_protocol(name: &str) -> Option<u32> {
    const NAMES: &[(&str, u32)] = &[
        ("aarp", 0x80f3),
        ("arp", 0x806),
        ("atalk", 0x809b),
        ("decnet", 0x6003),
        ("ip", 0x800),
        ("ip6", 0x86dd),
        ("lat", 0x6004),
        ("lldp", 0x88cc),
        ("loopback", 0x9000),
        ("mopdl", 0x6001),
        ("moprc", 0x6002),
        ("rarp", 0x8035),
        ("sca", 0x6007),
        ("slow", 0x8809),
        ("iso", 0xfe),
        ("stp", 0x42),
        ("ipx", 0xe0),
        ("netbeui", 0xf0),
    ];
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
}
