use std::fmt;

use gannet_base::Addr;

use crate::MAX_DEPTH;

/// Source and destination address.
pub type Hosts = (Addr, Addr);

/// A fault of a packet.
///
/// A function that fails returns one. Faults that do not stop the dissection are passed to the sink
/// of the `_with` functions, in the order of their bytes in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A layer exceeds [`MAX_DEPTH`]; the value is the last layer within it, if any.
    #[error("more than {MAX_DEPTH} layers")]
    TooDeep(Option<Layer>),
    /// The bytes end within the header of a layer.
    #[error("truncated {0} header")]
    Truncated(Layer),
    /// The bytes end within the LLC header before SNAP.
    #[error("truncated LLC header before SNAP")]
    TruncatedSnapLlc,
    /// The bytes end within a FabricPath header.
    #[error("truncated FabricPath header")]
    TruncatedFabricPath,
    /// The bytes end within the HDLC framing of PPP.
    #[error("truncated HDLC header")]
    TruncatedHdlc,
    /// The bytes end within the LLC header of an IEEE 802.11 frame.
    #[error("truncated LLC header of IEEE 802.11")]
    TruncatedIeee80211Llc,
    /// The bytes end within the header of a subframe of an aggregate.
    #[error("truncated header in an aggregate")]
    TruncatedSubframeHeader,
    /// The bytes end within a subframe of an aggregate.
    #[error("truncated frame in an aggregate")]
    TruncatedSubframe,
    /// A subframe of an aggregate is invalid, so the subframes after it are not dissected.
    #[error("invalid frame in an aggregate")]
    InvalidSubframe,
    /// The value of the protocol type field is neither an EtherType nor a length.
    #[error("undefined protocol in {0}")]
    UndefinedProtocol(Layer),
    /// The payload of this layer is never dissected.
    #[error("payload of {0} is not dissected")]
    NotDissected(Layer),
    /// The version of a layer is unknown.
    #[error("unknown version {1} of {0}")]
    UnknownVersion(Layer, u8),
    /// A third VLAN tag replaces the second one.
    #[error("more than two VLAN tags")]
    ThirdVlan,
    /// A PPPoE frame is longer than its header says.
    #[error("more bytes than the PPPoE header says")]
    PppoeTooLong,
    /// A PPPoE frame is shorter than its header says.
    #[error("fewer bytes than the PPPoE header says")]
    PppoeTooShort,
    /// A netfilter log record contains no packet.
    #[error("no packet in the NFLOG record")]
    NflogWithoutPacket,
    /// An attribute of a netfilter log record is shorter than its own header.
    #[error("NFLOG value shorter than its header")]
    NflogValueTooShort,
    /// The length of an attribute of a netfilter log record exceeds the captured bytes; both in
    /// bytes.
    #[error("NFLOG value of {0} bytes in {1}")]
    NflogValueTooLong(usize, usize),
    /// The total length of an IPv4 header is zero, as segmentation offload leaves it.
    #[error("IP total length of zero")]
    ZeroIpLen,
    /// The datagram is longer than the frame.
    #[error("IP datagram longer than its frame")]
    IpTooLong,
    /// The headers of a datagram are longer than the datagram.
    #[error("IP headers longer than their datagram")]
    IpHeadersTooLong,
    /// The captured bytes end within the options of an IPv4 header.
    #[error("truncated IP options")]
    TruncatedIpOptions,
    /// The header length of IPv4 is less than that of the fixed header.
    #[error("IP header shorter than its fixed part")]
    IpHeaderTooShort,
    /// The checksum of an IPv4 header is wrong.
    #[error("wrong IP checksum")]
    IpChecksum(Hosts),
    /// A fault of IPv6 extension headers, with the addresses known up to it.
    #[error("{0}")]
    Ipv6(Ipv6Fault, Hosts),
    /// The payload of a datagram is shorter than the header of its transport.
    #[error("datagram shorter than the {0} header")]
    DatagramTooShort(Layer),
    /// The captured bytes end within the header of a transport.
    #[error("truncated {0} header")]
    TruncatedTransport(Layer),
    /// The data offset of a TCP segment is less than the length of the fixed header.
    #[error("TCP header shorter than its fixed part")]
    TcpHeaderTooShort,
    /// The options of a TCP segment exceed the segment or the captured bytes.
    #[error("truncated TCP options")]
    TruncatedTcpOptions,
    /// The length field of UDP differs from the length by the IP header; both in bytes.
    #[error("UDP length {stated} in a datagram of {by_ip}")]
    UdpLen {
        /// By the length field.
        stated: i64,
        /// By the IP header.
        by_ip: i64,
    },
    /// A multicast listener discovery message ends within its address.
    #[error("truncated multicast listener message")]
    TruncatedListener,
    /// A multicast listener report is shorter than the minimum length of its records.
    #[error("truncated multicast listener report")]
    TruncatedListenerReport,
    /// A record of a multicast listener report ends within its sources or its auxiliary data.
    #[error("truncated multicast address record")]
    TruncatedListenerRecord,
    /// The protocol type of enhanced GRE is not PPP.
    #[error("enhanced GRE with protocol type {0:#06x}")]
    EnhancedGreType(u16),
    /// A GRE header has the routing flag, which is deprecated.
    #[error("GRE with routing")]
    GreRouting,
    /// A GRE header has reserved flags.
    #[error("GRE with reserved flags")]
    GreFlags,
    /// Enhanced GRE carries something other than IP.
    #[error("enhanced GRE without IP")]
    GreWithoutIp,
    /// The IP version of an inner packet is not the one that the tunnel announces.
    #[error("inner IP packet of another version")]
    InnerVersion,
    /// An inner packet is shorter than the length in its header.
    #[error("inner IP packet shorter than its header says")]
    InnerTooShort,
    /// An inner packet is longer than the length in its header.
    #[error("inner IP packet longer than its header says")]
    InnerTooLong,
    /// No payload follows the header of a tunnel.
    #[error("{0} without a packet")]
    EmptyTunnel(Layer),
    /// A Teredo bubble has a payload.
    #[error("Teredo bubble with a payload")]
    TeredoBubblePayload,
    /// The bytes end within a Teredo origin indication.
    #[error("truncated Teredo origin indication")]
    TruncatedTeredoOrigin,
    /// The bytes end within a Teredo authentication header.
    #[error("truncated Teredo authentication")]
    TruncatedTeredoAuthentication,
    /// The bytes end within the IPv6 header in Teredo.
    #[error("truncated IPv6 header in Teredo")]
    TruncatedTeredoIpv6,
}

/// A fault of IPv6 extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ipv6Fault {
    /// A second routing header (RFC 8200 §4.1).
    #[error("more than one IPv6 routing header")]
    SecondRouting,
    /// A routing header of type 0, which is deprecated (RFC 5095).
    #[error("IPv6 routing header of type 0")]
    Routing0,
    /// The length of a routing header of type 0 is odd.
    #[error("IPv6 routing header of type 0 with an odd length")]
    OddRouting0Len,
    /// The length of a routing header of type 2 is not that of one address.
    #[error("IPv6 routing header of type 2 with a wrong length")]
    Routing2Len,
    /// The type of a routing header is unknown.
    #[error("unknown type {0} of an IPv6 routing header")]
    UnknownRouting(u8),
    /// A destination option exceeds its header.
    #[error("IPv6 destination option longer than its header")]
    DestOptionLen,
    /// The length of a home address option is not that of an address.
    #[error("IPv6 home address with a wrong length")]
    HomeAddressLen,
    /// A second home address option.
    #[error("more than one IPv6 home address")]
    SecondHomeAddress,
    /// The checksum of a mobility header is wrong.
    #[error("wrong checksum of a mobility header")]
    MobilityChecksum,
    /// Another header follows a mobility header.
    #[error("payload after a mobility header")]
    MobilityPayload,
}

/// The protocols that the dissection parses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "names of protocols")]
pub enum Layer {
    Ethernet,
    Fddi,
    Ieee80211,
    Llc,
    Loop,
    Mpls,
    Nflog,
    Novell,
    Null,
    Pbb,
    Ppp,
    PppSerial,
    Pppoe,
    Radiotap,
    Sll,
    Sll2,
    Snap,
    Vlan,
    VnTag,
    Arp,
    Ip,
    Icmp,
    Tcp,
    Udp,
    Ayiya,
    Geneve,
    Gre,
    Teredo,
    Vxlan,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::Fddi => "FDDI",
            Self::Ieee80211 => "IEEE 802.11",
            Self::Llc => "LLC",
            Self::Loop | Self::Null => "loopback",
            Self::Mpls => "MPLS",
            Self::Nflog => "NFLOG",
            Self::Novell => "raw IEEE 802.3",
            Self::Pbb => "PBB",
            Self::Ppp | Self::PppSerial => "PPP",
            Self::Pppoe => "PPPoE",
            Self::Radiotap => "radiotap",
            Self::Sll => "SLL",
            Self::Sll2 => "SLL2",
            Self::Snap => "SNAP",
            Self::Vlan => "VLAN",
            Self::VnTag => "VN-Tag",
            Self::Arp => "ARP",
            Self::Ip => "IP",
            Self::Icmp => "ICMP",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Ayiya => "AYIYA",
            Self::Geneve => "Geneve",
            Self::Gre => "GRE",
            Self::Teredo => "Teredo",
            Self::Vxlan => "VXLAN",
        })
    }
}
