//! Events of packets, of transports and of the sizes of connections.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_event::Connection;
use gannet_event::Id4;
use gannet_wire::igmp;

use super::headers::LinkEncap;
use super::headers::PktHdr;
use super::headers::RawPktHdr;

gannet_event::record! {
    /// An ICMP message.
    #[derive(Clone, Copy, Debug)]
    pub struct IcmpInfo = "icmp_info" {
        /// Whether it is ICMPv6.
        v6: bool = "v6",
        /// Type.
        itype: u64 = "itype",
        /// Code.
        icode: u64 = "icode",
        /// Bytes of its payload.
        len: u64 = "len",
        /// Time to live or hop limit of its packet.
        ttl: u64 = "ttl",
    }
}

gannet_event::record! {
    /// The packet that an ICMP message is about.
    #[derive(Clone, Copy, Debug)]
    pub struct IcmpContext = "icmp_context" {
        /// Addresses and ports of the packet.
        id: Id4 = "id",
        /// Bytes of the IP packet.
        len: u64 = "len",
        /// Transport protocol number.
        proto: u64 = "proto",
        /// Offset of the fragment.
        frag_offset: u64 = "frag_offset",
        /// Whether it is too short for ports.
        bad_hdr_len: bool = "bad_hdr_len",
        /// Whether its checksum is wrong.
        bad_checksum: bool = "bad_checksum",
        /// Whether more fragments follow.
        mf: bool = "MF",
        /// Don't Fragment flag.
        df: bool = "DF",
    }
}

gannet_event::record! {
    /// A prefix that a router announces (RFC 4861 section 4.6.2).
    #[derive(Clone, Copy, Debug)]
    pub struct PrefixInfo = "icmp6_nd_prefix_info" {
        /// Bits of the prefix.
        prefix_len: u64 = "prefix_len",
        /// Whether addresses with the prefix are on the link.
        l_flag: bool = "L_flag",
        /// Whether hosts may form addresses from it.
        a_flag: bool = "A_flag",
        /// Valid lifetime.
        valid_lifetime: Interval = "valid_lifetime",
        /// Preferred lifetime.
        preferred_lifetime: Interval = "preferred_lifetime",
        /// The prefix.
        prefix: Addr = "prefix",
    }
}

gannet_event::record! {
    /// An option of neighbor discovery (RFC 4861 section 4.6).
    #[derive(Clone, Debug)]
    pub struct NdOption<'a> = "icmp6_nd_option" {
        /// Type.
        otype: u64 = "otype",
        /// Length in units of eight bytes.
        len: u64 = "len",
        /// A link-layer address.
        link_address: Option<&'a [u8]> = "link_address",
        /// A prefix.
        prefix: Option<PrefixInfo> = "prefix",
        /// The header of a redirected packet.
        redirect: Option<IcmpContext> = "redirect",
        /// The MTU of the link.
        mtu: Option<u64> = "mtu",
        /// The data of other options.
        payload: Option<&'a [u8]> = "payload",
    }
}

gannet_event::record! {
    /// Contents of a SYN.
    #[derive(Clone, Copy, Debug)]
    pub struct SynPacket = "SYN_packet" {
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Don't Fragment flag.
        df: bool = "DF",
        /// Time to live.
        ttl: u64 = "ttl",
        /// Bytes of the IP packet.
        size: u64 = "size",
        /// Window size.
        win_size: u64 = "win_size",
        /// Window scale; -1 without the option.
        win_scale: i64 = "win_scale",
        /// Maximum segment size; 0 without the option.
        mss: u64 = "MSS",
        /// Whether selective acknowledgements are permitted.
        sack_ok: bool = "SACK_OK",
        /// Value of the timestamp option.
        ts_val: Option<u64> = "TSval",
        /// Echo reply of the timestamp option.
        ts_ecr: Option<u64> = "TSecr",
    }
}

gannet_event::record! {
    /// A TCP option (RFC 9293 section 3.1).
    #[derive(Clone, Debug)]
    pub struct TcpOptionRecord<'a> = "TCP::Option" {
        /// Kind.
        kind: u64 = "kind",
        /// Length.
        length: u64 = "length",
        /// Data of kinds without a specific field.
        data: Option<&'a [u8]> = "data",
        /// Maximum segment size.
        mss: Option<u64> = "mss",
        /// Window scale.
        window_scale: Option<u64> = "window_scale",
        /// Selective acknowledgements: the left and right edge of each block.
        sack: Option<Vec<u64>> = "sack",
        /// Value of the timestamp option.
        send_timestamp: Option<u64> = "send_timestamp",
        /// Echo reply of the timestamp option.
        echo_timestamp: Option<u64> = "echo_timestamp",
        /// Requested rate (quick-start).
        rate: Option<u64> = "rate",
        /// TTL difference (quick-start).
        ttl_diff: Option<u64> = "ttl_diff",
        /// Nonce (quick-start).
        qs_nonce: Option<u64> = "qs_nonce",
    }
}

/// Type of a multicast address record (RFC 3810 section 5.2.12), by its number.
#[derive(Clone, Copy, Debug)]
pub struct MldGroupType(pub u8);

gannet_event::enumeration!(MldGroupType = "icmp6_mldv2_group_type", |kind| match kind.0 {
    1 => "MLDV2_MODE_IS_INCLUDE",
    2 => "MLDV2_MODE_IS_EXCLUDE",
    3 => "MLDV2_CHANGE_TO_INCLUDE_MODE",
    4 => "MLDV2_CHANGE_TO_EXCLUDE_MODE",
    5 => "MLDV2_ALLOW_NEW_SOURCES",
    6 => "MLDV2_BLOCK_OLD_SOURCES",
    _ => "<undefined>",
});

gannet_event::record! {
    /// A multicast address record: the sources that a host listens to in one group.
    #[derive(Clone, Debug)]
    pub struct MldRecord<'a> = "icmp6_mldv2_mar" {
        /// Type of the record.
        group_type: MldGroupType = "group_type",
        /// Bytes of additional data.
        aux_data_len: u64 = "aux_data_len",
        /// Number of sources.
        num_sources: u64 = "num_sources",
        /// Multicast address of the group.
        multicast_addr: Addr = "multicast_addr",
        /// The sources.
        sources: Vec<Addr> = "sources",
        /// Additional data.
        aux_data: Option<&'a [u8]> = "aux_data",
    }
}

gannet_event::record! {
    /// A packet as captures store it.
    #[derive(Clone, Copy, Debug)]
    pub struct PcapPacket<'a> = "pcap_packet" {
        /// Seconds of its timestamp.
        ts_sec: u64 = "ts_sec",
        /// Microseconds of its timestamp.
        ts_usec: u64 = "ts_usec",
        /// Bytes captured.
        caplen: u64 = "caplen",
        /// Bytes on the wire.
        len: u64 = "len",
        /// The captured bytes.
        data: &'a [u8] = "data",
        /// Encapsulation of the link.
        link_type: LinkEncap = "link_type",
    }
}

/// Kinds of IGMP messages (RFC 3376 section 4).
#[derive(Clone, Copy, Debug)]
pub struct IgmpKind(pub igmp::Kind);

gannet_event::enumeration!(IgmpKind = "IGMP::MessageType", |kind| match kind.0 {
    igmp::Kind::Query => "IGMP::MEMBERSHIP_QUERY",
    igmp::Kind::Report1 => "IGMP::MEMBERSHIP_REPORT_V1",
    igmp::Kind::Report2 => "IGMP::MEMBERSHIP_REPORT_V2",
    igmp::Kind::Leave => "IGMP::LEAVE_GROUP",
    igmp::Kind::Report3 => "IGMP::MEMBERSHIP_REPORT_V3",
});

/// Type of a group record (RFC 3376 section 4.2.12), by its number.
#[derive(Clone, Copy, Debug)]
pub struct IgmpGroupType(pub u8);

gannet_event::enumeration!(IgmpGroupType = "IGMP::GroupType", |kind| match kind.0 {
    1 => "IGMP::MODE_IS_INCLUDE",
    2 => "IGMP::MODE_IS_EXCLUDE",
    3 => "IGMP::CHANGE_TO_INCLUDE_MODE",
    4 => "IGMP::CHANGE_TO_EXCLUDE_MODE",
    5 => "IGMP::ALLOW_NEW_SOURCES",
    6 => "IGMP::BLOCK_OLD_SOURCES",
    _ => "<undefined>",
});

gannet_event::record! {
    /// A group record (RFC 3376 section 4.2.4).
    #[derive(Clone, Debug)]
    pub struct IgmpGroup<'a> = "IGMP::Group" {
        /// Type of the record.
        group_type: IgmpGroupType = "group_type",
        /// Bytes of additional data.
        aux_data_len: u64 = "aux_data_len",
        /// Number of sources.
        num_sources: u64 = "num_sources",
        /// Multicast address of the group.
        multicast_addr: Addr = "multicast_addr",
        /// The sources.
        sources: Vec<Addr> = "sources",
        /// Additional data.
        aux_data: &'a [u8] = "aux_data",
    }
}

gannet_event::events! {
    crate::events::module::PACKET;

    /// A packet was captured.
    pub struct RawPacket = "raw_packet", opt_in {
        /// Its headers.
        p: RawPktHdr = "p",
    }

    /// An IGMP message.
    pub struct IgmpMessage = "IGMP::message", opt_in, one_thread {
        /// The headers of its packet.
        packet: RawPktHdr = "packet",
        /// Its kind.
        msg_type: IgmpKind = "msg_type",
    }

    /// A router queries which groups have members (IGMP).
    pub struct IgmpQuery = "IGMP::membership_query", opt_in, one_thread {
        /// The router.
        source: Addr = "source",
        /// The group; 0.0.0.0 for all.
        group_addr: Addr = "group_addr",
    }

    /// A host is a member of a group (version 1 of IGMP).
    pub struct IgmpReport1 = "IGMP::membership_report_v1", opt_in, one_thread {
        /// The host.
        source: Addr = "source",
        /// The group.
        group_addr: Addr = "group_addr",
    }

    /// A host is a member of a group (version 2 of IGMP).
    pub struct IgmpReport2 = "IGMP::membership_report_v2", opt_in, one_thread {
        /// The host.
        source: Addr = "source",
        /// The group.
        group_addr: Addr = "group_addr",
    }

    /// A host leaves a group (IGMP).
    pub struct IgmpLeave = "IGMP::leave_group", opt_in, one_thread {
        /// The host.
        source: Addr = "source",
        /// The group.
        group_addr: Addr = "group_addr",
    }

    /// A host lists groups with their sources (version 3 of IGMP).
    pub struct IgmpReport3<'a> = "IGMP::membership_report_v3", opt_in, one_thread {
        /// The host.
        source: Addr = "source",
        /// A record for each group.
        groups: Vec<IgmpGroup<'a>> = "groups",
    }

    /// No analyzer processed a packet: it belongs to no connection, and it is not ARP.
    pub struct PacketNotProcessed<'a> = "packet_not_processed", opt_in {
        /// The packet.
        pkt: PcapPacket<'a> = "pkt",
    }

    /// A Mobile IPv6 packet (RFC 6275).
    pub struct MobileIpv6Message = "mobile_ipv6_message", opt_in {
        /// Its headers.
        p: PktHdr = "p",
    }

    /// Segments were retransmitted: ten, a hundred, a thousand and so on.
    pub struct TcpMultipleRetransmissions = "tcp_multiple_retransmissions", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// Number of retransmissions.
        threshold: u64 = "threshold",
    }

    /// Bytes of a stream are missing for the tenth, hundredth, thousandth time and so on.
    pub struct TcpMultipleGap = "tcp_multiple_gap", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// Number of gaps.
        threshold: u64 = "threshold",
    }

    /// A side closed its window for the tenth, hundredth, thousandth time and so on.
    pub struct TcpMultipleZeroWindows = "tcp_multiple_zero_windows", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it is the originator.
        is_orig: bool = "is_orig",
        /// Number of zero windows.
        threshold: u64 = "threshold",
    }

    /// Segments had wrong checksums: ten, a hundred, a thousand and so on.
    pub struct TcpMultipleChecksumErrors = "tcp_multiple_checksum_errors", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// Number of errors.
        threshold: u64 = "threshold",
    }

    /// Datagrams had wrong checksums: ten, a hundred, a thousand and so on.
    pub struct UdpMultipleChecksumErrors = "udp_multiple_checksum_errors", opt_in {
        /// The connection.
        u: Connection = "u",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// Number of errors.
        threshold: u64 = "threshold",
    }

    /// An analyzer of datagram exchanges left a connection.
    pub struct UdpSessionDone = "udp_session_done", opt_in {
        /// The connection.
        u: Connection = "u",
    }

    /// The bytes of a packet as they were captured.
    pub struct PacketBytes<'a> = "gannet::packet_bytes", opt_in {
        /// Its time.
        ts: Time = "ts",
        /// Its bytes.
        data: &'a [u8] = "data",
        /// Bytes on the wire.
        len: u64 = "len",
        /// Link type, by its number in captures.
        link_type: u64 = "link_type",
    }

    /// A packet in a PPPoE session is about to be analyzed.
    pub struct PppoeSession = "gannet::pppoe_session", opt_in, one_thread {
        /// Session number.
        session: u64 = "session",
    }

    /// A packet was analyzed: counters for statistics.
    pub struct PacketDone = "gannet::packet_done", opt_in, one_thread {
        /// Whether a connection or ARP processed it.
        processed: bool = "processed",
        /// Number of datagrams being reassembled from fragments.
        fragments: u64 = "fragments",
        /// Maximum number of such datagrams so far.
        most_fragments: u64 = "most_fragments",
        /// Number of acknowledgements of new data of established TCP connections so far.
        acks: u64 = "acks",
        /// Number of bytes that they acknowledged.
        acked_bytes: u64 = "acked_bytes",
        /// Number of acknowledgements of bytes that were not captured.
        gaps: u64 = "gaps",
        /// Number of these bytes.
        gap_bytes: u64 = "gap_bytes",
        /// Number of timers of the analysis.
        timers: u64 = "timers",
        /// Number of buffered bytes of TCP streams that follow a gap.
        stream_bytes: u64 = "stream_bytes",
        /// Number of buffered bytes of fragments.
        fragment_bytes: u64 = "fragment_bytes",
    }

    /// A packet of an unknown protocol; reported for a few packets of each kind.
    pub struct UnknownProtocol<'a> = "unknown_protocol", opt_in, one_thread {
        /// The layer that contains the protocol.
        analyzer_name: &'a str = "analyzer_name",
        /// Number of the protocol in that layer.
        protocol: u64 = "protocol",
        /// Its first bytes.
        first_bytes: &'a [u8] = "first_bytes",
        /// The enclosing layers, the outermost first.
        analyzer_history: Vec<&'a str> = "analyzer_history",
    }

    /// The options of a TCP segment as on the wire; raised before the other events of the segment.
    pub struct SegmentOptions<'a> = "gannet::tcp_options", opt_in {
        /// The options with all padding.
        options: &'a [u8] = "options",
    }

    /// The sequence numbers of a TCP connection after a segment.
    pub struct TcpSequences = "gannet::tcp_sequences", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The next sequence number of the originator.
        orig: u64 = "orig",
        /// The next sequence number of the responder.
        resp: u64 = "resp",
    }

    /// A packet of a connection that scripts watch.
    pub struct WatchedConnection = "gannet::watched_connection", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
    }

    /// A decision: whether scripts discard an IP packet.
    pub struct DiscardPacket<'a> = "gannet::discard_packet", opt_in, one_thread {
        /// Its headers.
        hdr: PktHdr = "hdr",
        /// Protocol number of the complete transport header: 6, 17 or 1; 0 if there is none.
        protocol: u64 = "protocol",
        /// Data after the transport header.
        data: &'a [u8] = "data",
    }

    /// A decision: whether a connection is kept after its timeout.
    pub struct ConnectionTimingOut = "gannet::connection_timing_out", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
    }

    /// The first packet of a side of a connection, for signatures.
    pub struct SignaturePacket<'a> = "gannet::signature_packet", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// IP version.
        version: u64 = "version",
        /// The IP headers.
        header: &'a [u8] = "header",
        /// The first bytes after the IP headers.
        payload: &'a [u8] = "payload",
        /// Protocol number of the payload.
        protocol: u64 = "protocol",
    }

    /// Data of a connection, for signatures: the next bytes of a stream, or a datagram. Earlier
    /// events are delivered first, and analyzers that the listener starts read the data
    /// immediately.
    pub struct SignatureData<'a> = "gannet::signature_data", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The data.
        contents: &'a [u8] = "contents",
    }

    /// Analyzers that a listener started for data have read that data.
    pub struct SignatureResume = "gannet::signature_resume", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection ends, for signatures.
    pub struct SignatureEnd = "gannet::signature_end", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A packet belongs to a connection.
    pub struct NewPacket = "new_packet", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its headers.
        p: PktHdr = "p",
    }

    /// The data of a packet of a connection.
    pub struct PacketContents<'a> = "packet_contents", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The payload of the transport protocol.
        contents: &'a [u8] = "contents",
    }

    /// A packet has IPv6 extension headers.
    pub struct Ipv6ExtHeaders = "ipv6_ext_headers", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its headers.
        p: PktHdr = "p",
    }

    /// A packet is encrypted by IPsec.
    pub struct EspPacket = "esp_packet", opt_in {
        /// Its headers.
        p: PktHdr = "p",
    }

    /// A TCP segment.
    pub struct TcpPacket<'a> = "tcp_packet", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// A letter for each flag that is set.
        flags: &'a str = "flags",
        /// Sequence number, relative to the first.
        seq: u64 = "seq",
        /// Acknowledgement number, relative to the other side's first.
        ack: u64 = "ack",
        /// Bytes of data on the wire.
        len: u64 = "len",
        /// The data as captured.
        payload: &'a [u8] = "payload",
    }

    /// An option of a TCP segment.
    pub struct TcpOption = "tcp_option", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Kind.
        opt: u64 = "opt",
        /// Length.
        optlen: u64 = "optlen",
    }

    /// The options of a TCP segment.
    pub struct TcpOptions<'a> = "tcp_options", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The options.
        options: Vec<TcpOptionRecord<'a>> = "options",
    }

    /// A SYN.
    pub struct ConnectionSynPacket = "connection_SYN_packet", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Contents of the SYN.
        pkt: SynPacket = "pkt",
    }

    /// A TCP connection began whose contents are reported.
    pub struct NewConnectionContents = "new_connection_contents", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// Bytes of a TCP stream, in order.
    pub struct TcpContents<'a> = "tcp_contents", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// Sequence number of the first byte, relative to the SYN.
        seq: u64 = "seq",
        /// The bytes.
        contents: &'a [u8] = "contents",
    }

    /// A part of a TCP stream that a script writes to a file.
    pub struct StreamContents<'a> = "gannet::stream_contents", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Number of missing bytes before it.
        missing: u64 = "missing",
        /// The bytes.
        contents: &'a [u8] = "contents",
    }

    /// A connection was not answered.
    pub struct ConnectionAttempt = "connection_attempt", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection was refused.
    pub struct ConnectionRejected = "connection_rejected", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection that was established was reset.
    pub struct ConnectionReset = "connection_reset", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection finished: both sides closed.
    pub struct ConnectionFinished = "connection_finished", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// One side closed a connection that was never answered.
    pub struct ConnectionHalfFinished = "connection_half_finished", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// One side closed a connection, and the other side continued.
    pub struct ConnectionPartialClose = "connection_partial_close", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection was open when the input ended.
    pub struct ConnectionPending = "connection_pending", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection whose beginning was not seen.
    pub struct PartialConnection = "partial_connection", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The first acknowledgement by the originator.
    pub struct ConnectionFirstAck = "connection_first_ACK", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// All data of a side was delivered.
    pub struct ConnectionEof = "connection_EOF", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it is the originator's side.
        is_orig: bool = "is_orig",
    }

    /// A connection was idle for too long.
    pub struct ConnectionTimeout = "connection_timeout", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection ended because it was idle for longer than its timeout, and not by the idle
    /// check of its protocol.
    pub struct ConnectionInactive = "gannet::connection_inactive", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A datagram of the originator.
    pub struct UdpRequest = "udp_request", opt_in {
        /// The connection.
        u: Connection = "u",
    }

    /// A datagram of the responder.
    pub struct UdpReply = "udp_reply", opt_in {
        /// The connection.
        u: Connection = "u",
    }

    /// The data of a datagram.
    pub struct UdpContents<'a> = "udp_contents", opt_in {
        /// The connection.
        u: Connection = "u",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The data.
        contents: &'a [u8] = "contents",
    }

    /// An ICMP message without a more specific event.
    pub struct IcmpSent = "icmp_sent", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
    }

    /// Like `icmp_sent`, with the payload of the message.
    pub struct IcmpSentPayload<'a> = "icmp_sent_payload", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its data.
        payload: &'a [u8] = "payload",
    }

    /// An echo request.
    pub struct IcmpEchoRequest<'a> = "icmp_echo_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Identifier.
        id: u64 = "id",
        /// Sequence number.
        seq: u64 = "seq",
        /// Its data.
        payload: &'a [u8] = "payload",
    }

    /// An echo reply.
    pub struct IcmpEchoReply<'a> = "icmp_echo_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Identifier.
        id: u64 = "id",
        /// Sequence number.
        seq: u64 = "seq",
        /// Its data.
        payload: &'a [u8] = "payload",
    }

    /// An ICMPv6 error message without a more specific event.
    pub struct IcmpErrorMessage = "icmp_error_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that the message quotes.
        context: IcmpContext = "context",
    }

    /// A packet did not reach its destination.
    pub struct IcmpUnreachable = "icmp_unreachable", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that the message quotes.
        context: IcmpContext = "context",
    }

    /// A packet was too big.
    pub struct IcmpPacketTooBig = "icmp_packet_too_big", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that the message quotes.
        context: IcmpContext = "context",
    }

    /// A packet exceeded its time to live, or its reassembly timed out.
    pub struct IcmpTimeExceeded = "icmp_time_exceeded", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that the message quotes.
        context: IcmpContext = "context",
    }

    /// A packet had an invalid header field.
    pub struct IcmpParameterProblem = "icmp_parameter_problem", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that the message quotes.
        context: IcmpContext = "context",
    }

    /// A router announces itself (RFC 4861 section 4.2).
    pub struct IcmpRouterAdvertisement<'a> = "icmp_router_advertisement", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Hop limit for hosts to use.
        cur_hop_limit: u64 = "cur_hop_limit",
        /// Whether addresses are available from DHCPv6.
        managed: bool = "managed",
        /// Whether other configuration is available from DHCPv6.
        other: bool = "other",
        /// Whether the router is a home agent.
        home_agent: bool = "home_agent",
        /// Preference.
        pref: u64 = "pref",
        /// Whether the router is a proxy.
        proxy: bool = "proxy",
        /// Reserved bits.
        rsv: u64 = "rsv",
        /// How long the router is a default router.
        router_lifetime: Interval = "router_lifetime",
        /// How long a neighbor counts as reachable.
        reachable_time: Interval = "reachable_time",
        /// Time between solicitations.
        retrans_timer: Interval = "retrans_timer",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// A host solicits routers (RFC 4861 section 4.1).
    pub struct IcmpRouterSolicitation<'a> = "icmp_router_solicitation", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// A host listens to a multicast group (RFC 2710).
    pub struct IcmpMldReport1 = "icmpv6_mld_report_v1", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The group.
        group_addr: Addr = "group_addr",
    }

    /// A host no longer listens to a multicast group (RFC 2710).
    pub struct IcmpMldDone1 = "icmpv6_mld_done_v1", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The group.
        group_addr: Addr = "group_addr",
    }

    /// A host reports the multicast groups that it listens to (RFC 3810 section 5.2).
    pub struct IcmpMldReport2<'a> = "icmpv6_mld_report_v2", opt_in {
        /// The connection.
        c: Connection = "c",
        /// A record for each group.
        groups: Vec<MldRecord<'a>> = "groups",
    }

    /// A host solicits a neighbor (RFC 4861 section 4.3).
    pub struct IcmpNeighborSolicitation<'a> = "icmp_neighbor_solicitation", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// The neighbor.
        tgt: Addr = "tgt",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// A neighbor advertises itself (RFC 4861 section 4.4).
    pub struct IcmpNeighborAdvertisement<'a> = "icmp_neighbor_advertisement", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Whether the neighbor is a router.
        router: bool = "router",
        /// Whether it was solicited.
        solicited: bool = "solicited",
        /// Whether it replaces the known link-layer address.
        override_: bool = "override",
        /// The neighbor.
        tgt: Addr = "tgt",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// A router reports a better next hop (RFC 4861 section 4.5, RFC 792).
    pub struct IcmpRedirect<'a> = "icmp_redirect", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// The better next hop.
        tgt: Addr = "tgt",
        /// The destination of the redirect.
        dest: Addr = "dest",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// An ARP message is malformed, or of a kind that is not supported.
    pub struct BadArp<'a> = "bad_arp", opt_in {
        /// Protocol address of the sender.
        spa: Addr = "SPA",
        /// Hardware address of the sender.
        sha: &'a str = "SHA",
        /// Protocol address of the target.
        tpa: Addr = "TPA",
        /// Hardware address of the target.
        tha: &'a str = "THA",
        /// Reason.
        explanation: &'a str = "explanation",
    }

    /// An ARP request (RFC 826).
    pub struct ArpRequest<'a> = "arp_request", opt_in {
        /// Source of the frame.
        mac_src: &'a str = "mac_src",
        /// Destination of the frame.
        mac_dst: &'a str = "mac_dst",
        /// Protocol address of the sender.
        spa: Addr = "SPA",
        /// Hardware address of the sender.
        sha: &'a str = "SHA",
        /// Protocol address of the target.
        tpa: Addr = "TPA",
        /// Hardware address of the target.
        tha: &'a str = "THA",
    }

    /// An ARP reply (RFC 826).
    pub struct ArpReply<'a> = "arp_reply", opt_in {
        /// Source of the frame.
        mac_src: &'a str = "mac_src",
        /// Destination of the frame.
        mac_dst: &'a str = "mac_dst",
        /// Protocol address of the sender.
        spa: Addr = "SPA",
        /// Hardware address of the sender.
        sha: &'a str = "SHA",
        /// Protocol address of the target.
        tpa: Addr = "TPA",
        /// Hardware address of the target.
        tha: &'a str = "THA",
    }

    /// A side of a connection sent more bytes of IP packets than a script's threshold.
    pub struct ConnBytesThresholdCrossed = "conn_bytes_threshold_crossed" {
        /// The connection.
        c: Connection = "c",
        /// The threshold.
        threshold: u64 = "threshold",
        /// Whether the originator's side.
        is_orig: bool = "is_orig",
    }

    /// A side of a connection sent more packets than a script's threshold.
    pub struct ConnPacketsThresholdCrossed = "conn_packets_threshold_crossed" {
        /// The connection.
        c: Connection = "c",
        /// The threshold.
        threshold: u64 = "threshold",
        /// Whether the originator's side.
        is_orig: bool = "is_orig",
    }

    /// A connection lasted longer than a script's threshold.
    pub struct ConnDurationThresholdCrossed = "conn_duration_threshold_crossed" {
        /// The connection.
        c: Connection = "c",
        /// The threshold.
        threshold: Interval = "threshold",
        /// Whether the originator sent the packet that exceeded it.
        is_orig: bool = "is_orig",
    }

    /// The packets of both sides of a connection together reached a script's threshold.
    pub struct ConnGenericPacketThresholdCrossed = "conn_generic_packet_threshold_crossed", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The threshold.
        threshold: u64 = "threshold",
    }

    /// A packet is analyzed: its time and size, for listeners that do not need its bytes. Delivered
    /// before the other events of the packet.
    pub struct PacketSeen = "gannet::packet_seen", opt_in {
        /// Its time.
        ts: Time = "ts",
        /// Bytes on the wire.
        len: u64 = "len",
        /// Link type, by its number in captures.
        link_type: u64 = "link_type",
    }
}
