//! Packet headers in the form of events: Zeek's `raw_pkt_hdr`, `pkt_hdr` and the records within
//! them.

use gannet_base::Addr;
use gannet_event::Port;

/// Encapsulation of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEncap {
    /// Ethernet.
    Ethernet,
    /// Any other link type.
    Unknown,
    /// A number that is not a value of Zeek's enum.
    Undefined,
}

gannet_event::enumeration!(LinkEncap = "link_encap", |encap| match encap {
    LinkEncap::Ethernet => "LINK_ETHERNET",
    LinkEncap::Unknown => "LINK_UNKNOWN",
    LinkEncap::Undefined => "<undefined>",
});

/// Network-layer protocol of a frame.
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
    /// Link-layer header of a frame.
    #[derive(Clone, Debug)]
    pub struct L2Hdr = "l2_hdr" {
        /// Encapsulation of the link.
        encap: LinkEncap = "encap",
        /// Bytes on the wire.
        len: u64 = "len",
        /// Bytes captured.
        cap_len: u64 = "cap_len",
        /// Source address, for Ethernet.
        src: Option<String> = "src",
        /// Destination address, for Ethernet.
        dst: Option<String> = "dst",
        /// Outer VLAN.
        vlan: Option<u64> = "vlan",
        /// Priority of the outer VLAN.
        vlan_pcp: Option<u64> = "vlan_pcp",
        /// Drop eligible indicator of the outer VLAN.
        vlan_dei: Option<bool> = "vlan_dei",
        /// Inner VLAN.
        inner_vlan: Option<u64> = "inner_vlan",
        /// Priority of the inner VLAN.
        inner_vlan_pcp: Option<u64> = "inner_vlan_pcp",
        /// Drop eligible indicator of the inner VLAN.
        inner_vlan_dei: Option<bool> = "inner_vlan_dei",
        /// The last EtherType.
        eth_type: Option<u64> = "eth_type",
        /// Network-layer protocol.
        proto: Layer3 = "proto",
    }
}

gannet_event::record! {
    /// An IPv4 header (RFC 791).
    #[derive(Clone, Debug)]
    pub struct Ip4Hdr = "ip4_hdr" {
        /// Length of the header, in bytes.
        hl: u64 = "hl",
        /// Type of service.
        tos: u64 = "tos",
        /// Total length.
        len: u64 = "len",
        /// Identification.
        id: u64 = "id",
        /// Don't Fragment flag.
        df: bool = "DF",
        /// More Fragments flag.
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

/// An owned or static string.
pub type Vec8 = std::borrow::Cow<'static, [u8]>;

gannet_event::record! {
    /// Hop-by-hop options (RFC 8200 section 4.3).
    #[derive(Clone, Debug)]
    pub struct Ip6Hopopts = "ip6_hopopts" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of eight bytes, excluding the first eight.
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
        /// Length in units of eight bytes, excluding the first eight.
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
        /// Length in units of eight bytes, excluding the first eight.
        len: u64 = "len",
        /// Type.
        rtype: u64 = "rtype",
        /// Segments left.
        segleft: u64 = "segleft",
        /// Type-specific data.
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
        /// Fragment offset in units of eight bytes.
        offset: u64 = "offset",
        /// Reserved bits.
        rsv2: u64 = "rsv2",
        /// Whether more fragments follow.
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
        /// Length in units of four bytes, minus two.
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
    /// Binding Refresh Request (RFC 6275 section 6.1.2).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBrr = "ip6_mobility_brr" {
        /// Reserved.
        rsv: u64 = "rsv",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// Home Test Init (RFC 6275 section 6.1.3).
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
    /// Care-of Test Init (RFC 6275 section 6.1.4).
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
    /// Home Test (RFC 6275 section 6.1.5).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityHot = "ip6_mobility_hot" {
        /// Home nonce index.
        nonce_idx: u64 = "nonce_idx",
        /// Home init cookie.
        cookie: u64 = "cookie",
        /// Home keygen token.
        token: u64 = "token",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// Care-of Test (RFC 6275 section 6.1.6).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityCot = "ip6_mobility_cot" {
        /// Care-of nonce index.
        nonce_idx: u64 = "nonce_idx",
        /// Care-of init cookie.
        cookie: u64 = "cookie",
        /// Care-of keygen token.
        token: u64 = "token",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// Binding Update (RFC 6275 section 6.1.7).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBu = "ip6_mobility_bu" {
        /// Sequence number.
        seq: u64 = "seq",
        /// Whether an acknowledgement is requested.
        acknowledge: bool = "a",
        /// Home registration.
        home: bool = "h",
        /// Link-local address compatibility.
        link_local: bool = "l",
        /// Key management mobility capability.
        key: bool = "k",
        /// Lifetime in units of four seconds.
        life: u64 = "life",
        /// Options.
        options: Vec<Ip6Option> = "options",
    }
}

gannet_event::record! {
    /// Binding Acknowledgement (RFC 6275 section 6.1.8).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityBack = "ip6_mobility_back" {
        /// Status.
        status: u64 = "status",
        /// Key management mobility capability.
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
    /// Binding Error (RFC 6275 section 6.1.9).
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
    /// A Mobile IPv6 message.
    #[derive(Clone, Debug, Default)]
    pub struct Ip6MobilityMsg = "ip6_mobility_msg" {
        /// Type of the message.
        id: u64 = "id",
        /// Binding Refresh Request.
        brr: Option<Ip6MobilityBrr> = "brr",
        /// Home Test Init.
        hoti: Option<Ip6MobilityHoti> = "hoti",
        /// Care-of Test Init.
        coti: Option<Ip6MobilityCoti> = "coti",
        /// Home Test.
        hot: Option<Ip6MobilityHot> = "hot",
        /// Care-of Test.
        cot: Option<Ip6MobilityCot> = "cot",
        /// Binding Update.
        bu: Option<Ip6MobilityBu> = "bu",
        /// Binding Acknowledgement.
        back: Option<Ip6MobilityBack> = "back",
        /// Binding Error.
        be: Option<Ip6MobilityBe> = "be",
    }
}

gannet_event::record! {
    /// A mobility header (RFC 6275 section 6.1).
    #[derive(Clone, Debug)]
    pub struct Ip6MobilityHdr = "ip6_mobility_hdr" {
        /// Next header.
        nxt: u64 = "nxt",
        /// Length in units of eight bytes, excluding the first eight.
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
        /// Protocol number of the header.
        id: u64 = "id",
        /// Hop-by-hop options.
        hopopts: Option<Ip6Hopopts> = "hopopts",
        /// Destination options.
        dstopts: Option<Ip6Dstopts> = "dstopts",
        /// Routing header.
        routing: Option<Ip6Routing> = "routing",
        /// Fragment header.
        fragment: Option<Ip6Fragment> = "fragment",
        /// Authentication header.
        ah: Option<Ip6Ah> = "ah",
        /// Encapsulating security payload header.
        esp: Option<Ip6Esp> = "esp",
        /// Mobility header.
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
        /// Length of the header, in bytes.
        hl: u64 = "hl",
        /// Number of data bytes.
        dl: u64 = "dl",
        /// Reserved bits.
        reserved: u64 = "reserved",
        /// Flags.
        flags: u64 = "flags",
        /// Window size.
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
        /// Link-layer header.
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
