//! Headers of packets as events show them: Zeek's `raw_pkt_hdr`, `pkt_hdr` and the records inside.

use gannet_base::Addr;
use gannet_event::Port;

/// How a link encapsulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEncap {
    /// Ethernet.
    Ethernet,
    /// Anything else.
    Unknown,
    /// A number that the type does not have.
    Undefined,
}

gannet_event::enumeration!(LinkEncap = "link_encap", |encap| match encap {
    LinkEncap::Ethernet => "LINK_ETHERNET",
    LinkEncap::Unknown => "LINK_UNKNOWN",
    LinkEncap::Undefined => "<undefined>",
});

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer3 {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ARP.
    Arp,
    /// Anything else.
    Unknown,
}

gannet_event::enumeration!(Layer3 = "layer3_proto", |proto| match proto {
    Layer3::Ipv4 => "L3_IPV4",
    Layer3::Ipv6 => "L3_IPV6",
    Layer3::Arp => "L3_ARP",
    Layer3::Unknown => "L3_UNKNOWN",
});

gannet_event::record! {
    /// The header of a frame.
    #[derive(Clone, Debug)]
    pub struct L2Hdr = "l2_hdr" {
        /// How the link encapsulates.
        encap: LinkEncap = "encap",
        /// Bytes on the wire.
        len: u64 = "len",
        /// Bytes captured.
        cap_len: u64 = "cap_len",
        /// Source, of Ethernet.
        src: Option<String> = "src",
        /// Destination, of Ethernet.
        dst: Option<String> = "dst",
        /// Outer VLAN.
        vlan: Option<u64> = "vlan",
        /// Priority of the outer VLAN.
        vlan_pcp: Option<u64> = "vlan_pcp",
        /// Whether the outer VLAN's tag says that the frame may be dropped.
        vlan_dei: Option<bool> = "vlan_dei",
        /// Inner VLAN.
        inner_vlan: Option<u64> = "inner_vlan",
        /// Priority of the inner VLAN.
        inner_vlan_pcp: Option<u64> = "inner_vlan_pcp",
        /// Whether the inner VLAN's tag says that the frame may be dropped.
        inner_vlan_dei: Option<bool> = "inner_vlan_dei",
        /// The last EtherType.
        eth_type: Option<u64> = "eth_type",
        /// What it carries.
        proto: Layer3 = "proto",
    }
}

gannet_event::record! {
    /// An IPv4 header (RFC 791).
    #[derive(Clone, Debug)]
    pub struct Ip4Hdr = "ip4_hdr" {
        /// Bytes of the header.
        hl: u64 = "hl",
        /// Type of service.
        tos: u64 = "tos",
        /// Total length.
        len: u64 = "len",
        /// Identification.
        id: u64 = "id",
        /// Whether it may not be fragmented.
        df: bool = "DF",
        /// Whether more fragments follow.
        mf: bool = "MF",
        /// Offset of the fragment, in bytes.
        offset: u64 = "offset",
        /// Time to live.
        ttl: u64 = "ttl",
        /// Protocol.
        p: u64 = "p",
        /// Checksum.
        sum: u64 = "sum",
        /// Source.
        src: Addr = "src",
        /// Destination.
        dst: Addr = "dst",
    }
}

gannet_event::record! {
    /// An option of an IPv6 header (RFC 8200 section 4.2).
    #[derive(Clone, Debug)]
    pub struct Ip6Option = "ip6_option" {
        /// Type.
        otype: u64 = "otype",
        /// Length of the data.
        len: u64 = "len",
        /// Data.
        data: Vec8 = "data",
    }
}

/// A string of its own.
pub type Vec8 = std::borrow::Cow<'static, [u8]>;

gannet_event::record! {
    /// Hop-by-hop options (RFC 8200 section 4.3).
    #[derive(Clone, Debug)]
    pub struct Ip6Hopopts = "ip6_hopopts" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of eight bytes, without the first.
        len: u64 = "len",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// Destination options (RFC 8200 section 4.6).
    #[derive(Clone, Debug)]
    pub struct Ip6Dstopts = "ip6_dstopts" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of eight bytes, without the first.
        len: u64 = "len",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// A routing header (RFC 8200 section 4.4).
    #[derive(Clone, Debug)]
    pub struct Ip6Routing = "ip6_routing" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of eight bytes, without the first.
        len: u64 = "len",
        /// Type.
        rtype: u64 = "rtype",
        /// Segments left.
        segleft: u64 = "segleft",
        /// What follows.
        data: Vec8 = "data",
    }
}

gannet_event::record! {
    /// A fragment header (RFC 8200 section 4.5).
    #[derive(Clone, Debug)]
    pub struct Ip6Fragment = "ip6_fragment" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Reserved byte.
        rsv1: u64 = "rsv1",
        /// Offset in units of eight bytes.
        offset: u64 = "offset",
        /// Reserved bits.
        rsv2: u64 = "rsv2",
        /// Whether more follow.
        more: bool = "more",
        /// Identification.
        id: u64 = "id",
    }
}

gannet_event::record! {
    /// An authentication header (RFC 4302).
    #[derive(Clone, Debug)]
    pub struct Ip6Ah = "ip6_ah" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of four bytes, without the first two.
        len: u64 = "len",
        /// Reserved.
        rsv: u64 = "rsv",
        /// Security parameters index.
        spi: u64 = "spi",
        /// Sequence number.
        seq: Option<u64> = "seq",
        /// Integrity check value.
        data: Option<Vec8> = "data",
    }
}

gannet_event::record! {
    /// An encapsulating security payload header (RFC 4303).
    #[derive(Clone, Debug)]
    pub struct Ip6Esp = "ip6_esp" {
        /// Security parameters index.
        spi: u64 = "spi",
        /// Sequence number.
        seq: u64 = "seq",
    }
}

gannet_event::record! {
    /// A request to refresh a binding (RFC 6275 section 6.1.2).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBrr = "ip6_mobility_brr" {
        /// Reserved.
        rsv: u64 = "rsv",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// The start of a test of the home address (RFC 6275 section 6.1.3).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityHoti = "ip6_mobility_hoti" {
        /// Reserved.
        rsv: u64 = "rsv",
        /// Cookie.
        cookie: u64 = "cookie",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// The start of a test of the care-of address (RFC 6275 section 6.1.4).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityCoti = "ip6_mobility_coti" {
        /// Reserved.
        rsv: u64 = "rsv",
        /// Cookie.
        cookie: u64 = "cookie",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// A test of the home address (RFC 6275 section 6.1.5).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityHot = "ip6_mobility_hot" {
        /// Index of the nonce.
        nonce_idx: u64 = "nonce_idx",
        /// Cookie.
        cookie: u64 = "cookie",
        /// Token.
        token: u64 = "token",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// A test of the care-of address (RFC 6275 section 6.1.6).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityCot = "ip6_mobility_cot" {
        /// Index of the nonce.
        nonce_idx: u64 = "nonce_idx",
        /// Cookie.
        cookie: u64 = "cookie",
        /// Token.
        token: u64 = "token",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// An update of a binding (RFC 6275 section 6.1.7).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBu = "ip6_mobility_bu" {
        /// Sequence number.
        seq: u64 = "seq",
        /// Whether an acknowledgement is requested.
        acknowledge: bool = "a",
        /// Whether it is a registration at home.
        home: bool = "h",
        /// Whether the interface identifier of the link-local address is that of the home address.
        link_local: bool = "l",
        /// Whether key management survives a move.
        key: bool = "k",
        /// Lifetime in units of four seconds.
        life: u64 = "life",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// An acknowledgement of a binding (RFC 6275 section 6.1.8).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBack = "ip6_mobility_back" {
        /// Status.
        status: u64 = "status",
        /// Whether key management survives a move.
        key: bool = "k",
        /// Sequence number.
        seq: u64 = "seq",
        /// Lifetime in units of four seconds.
        life: u64 = "life",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// An error of a binding (RFC 6275 section 6.1.9).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBe = "ip6_mobility_be" {
        /// Status.
        status: u64 = "status",
        /// Home address.
        hoa: Addr = "hoa",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// A message of Mobile IPv6.
    #[derive(Clone, Debug, Default)]
    pub struct Ip6MobilityMsg = "ip6_mobility_msg" {
        /// Its type.
        id: u64 = "id",
        /// A request to refresh a binding.
        brr: Option<Ip6MobilityBrr> = "brr",
        /// The start of a test of the home address.
        hoti: Option<Ip6MobilityHoti> = "hoti",
        /// The start of a test of the care-of address.
        coti: Option<Ip6MobilityCoti> = "coti",
        /// A test of the home address.
        hot: Option<Ip6MobilityHot> = "hot",
        /// A test of the care-of address.
        cot: Option<Ip6MobilityCot> = "cot",
        /// An update of a binding.
        bu: Option<Ip6MobilityBu> = "bu",
        /// An acknowledgement of a binding.
        back: Option<Ip6MobilityBack> = "back",
        /// An error of a binding.
        be: Option<Ip6MobilityBe> = "be",
    }
}

gannet_event::record! {
    /// A mobility header (RFC 6275 section 6.1).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityHdr = "ip6_mobility_hdr" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of eight bytes, without the first.
        len: u64 = "len",
        /// Type of the message.
        mh_type: u64 = "mh_type",
        /// Reserved.
        rsv: u64 = "rsv",
        /// Checksum.
        chksum: u64 = "chksum",
        /// The message.
        msg: Ip6MobilityMsg = "msg",
    }
}

gannet_event::record! {
    /// One extension header.
    #[derive(Clone, Debug)]
    pub struct Ip6ExtHdr = "ip6_ext_hdr" {
        /// Its number.
        id: u64 = "id",
        /// Hop-by-hop options.
        hopopts: Option<Ip6Hopopts> = "hopopts",
        /// Destination options.
        dstopts: Option<Ip6Dstopts> = "dstopts",
        /// Routing.
        routing: Option<Ip6Routing> = "routing",
        /// Fragment.
        fragment: Option<Ip6Fragment> = "fragment",
        /// Authentication.
        ah: Option<Ip6Ah> = "ah",
        /// Encryption.
        esp: Option<Ip6Esp> = "esp",
        /// Mobility.
        mobility: Option<Ip6MobilityHdr> = "mobility",
    }
}

gannet_event::record! {
    /// An IPv6 header (RFC 8200).
    #[derive(Clone, Debug)]
    pub struct Ip6Hdr = "ip6_hdr" {
        /// Traffic class.
        class: u64 = "class",
        /// Flow label.
        flow: u64 = "flow",
        /// Length of the payload.
        len: u64 = "len",
        /// Next header.
        nxt: u64 = "nxt",
        /// Hop limit.
        hlim: u64 = "hlim",
        /// Source.
        src: Addr = "src",
        /// Destination.
        dst: Addr = "dst",
        /// Extension headers.
        exts: Vec<Ip6ExtHdr> = "exts",
    }
}

gannet_event::record! {
    /// A TCP header (RFC 9293).
    #[derive(Clone, Copy, Debug)]
    pub struct TcpHdr = "tcp_hdr" {
        /// Source port.
        sport: Port = "sport",
        /// Destination port.
        dport: Port = "dport",
        /// Sequence number.
        seq: u64 = "seq",
        /// Acknowledgement number.
        ack: u64 = "ack",
        /// Bytes of the header.
        hl: u64 = "hl",
        /// Bytes of data.
        dl: u64 = "dl",
        /// Reserved bits.
        reserved: u64 = "reserved",
        /// Flags.
        flags: u64 = "flags",
        /// Window.
        win: u64 = "win",
    }
}

gannet_event::record! {
    /// A UDP header (RFC 768).
    #[derive(Clone, Copy, Debug)]
    pub struct UdpHdr = "udp_hdr" {
        /// Source port.
        sport: Port = "sport",
        /// Destination port.
        dport: Port = "dport",
        /// Length.
        ulen: u64 = "ulen",
    }
}

gannet_event::record! {
    /// An ICMP header (RFC 792).
    #[derive(Clone, Copy, Debug)]
    pub struct IcmpHdr = "icmp_hdr" {
        /// Type.
        icmp_type: u64 = "icmp_type",
    }
}

gannet_event::record! {
    /// The headers of an IP packet.
    #[derive(Clone, Debug, Default)]
    pub struct PktHdr = "pkt_hdr" {
        /// IPv4.
        ip: Option<Ip4Hdr> = "ip",
        /// IPv6.
        ip6: Option<Ip6Hdr> = "ip6",
        /// TCP.
        tcp: Option<TcpHdr> = "tcp",
        /// UDP.
        udp: Option<UdpHdr> = "udp",
        /// ICMP.
        icmp: Option<IcmpHdr> = "icmp",
    }
}

gannet_event::record! {
    /// The headers of a frame.
    #[derive(Clone, Debug)]
    pub struct RawPktHdr = "raw_pkt_hdr" {
        /// Of the link.
        l2: L2Hdr = "l2",
        /// IPv4.
        ip: Option<Ip4Hdr> = "ip",
        /// IPv6.
        ip6: Option<Ip6Hdr> = "ip6",
        /// TCP.
        tcp: Option<TcpHdr> = "tcp",
        /// UDP.
        udp: Option<UdpHdr> = "udp",
        /// ICMP.
        icmp: Option<IcmpHdr> = "icmp",
    }
}
