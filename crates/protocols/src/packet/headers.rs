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
