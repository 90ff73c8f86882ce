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
        /// Its ends.
        id: Id4 = "id",
        /// Bytes of the IP packet.
        len: u64 = "len",
        /// Transport.
        proto: u64 = "proto",
        /// Offset of the fragment.
        frag_offset: u64 = "frag_offset",
        /// Whether it has too few bytes for ports.
        bad_hdr_len: bool = "bad_hdr_len",
        /// Whether its checksum is wrong.
        bad_checksum: bool = "bad_checksum",
        /// Whether more fragments follow.
        mf: bool = "MF",
        /// Whether it may not be fragmented.
        df: bool = "DF",
    }
}

gannet_event::record! {
    /// A prefix that a router announces (RFC 4861 section 4.6.2).
    #[derive(Clone, Copy, Debug)]
    pub struct PrefixInfo = "icmp6_nd_prefix_info" {
        /// Bits of the prefix.
        prefix_len: u64 = "prefix_len",
        /// Whether it is on the link.
        l_flag: bool = "L_flag",
        /// Whether hosts make addresses from it.
        a_flag: bool = "A_flag",
        /// How long it is valid.
        valid_lifetime: Interval = "valid_lifetime",
        /// How long it is preferred.
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
    /// What a SYN says.
    #[derive(Clone, Copy, Debug)]
    pub struct SynPacket = "SYN_packet" {
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Whether it may not be fragmented.
        df: bool = "DF",
        /// Time to live.
        ttl: u64 = "ttl",
        /// Bytes of the IP packet.
        size: u64 = "size",
        /// Window.
        win_size: u64 = "win_size",
        /// Scale of the window; -1 without the option.
        win_scale: i64 = "win_scale",
        /// Maximum segment size; 0 without the option.
        mss: u64 = "MSS",
        /// Whether selective acknowledgements are permitted.
        sack_ok: bool = "SACK_OK",
        /// The time stamp's value.
        ts_val: Option<u64> = "TSval",
        /// The time stamp that it echoes.
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
        /// Data of kinds that have no field of their own.
        data: Option<&'a [u8]> = "data",
        /// Maximum segment size.
        mss: Option<u64> = "mss",
        /// Scale of the window.
        window_scale: Option<u64> = "window_scale",
        /// Selective acknowledgements, two numbers each.
        sack: Option<Vec<u64>> = "sack",
        /// The time stamp's value.
        send_timestamp: Option<u64> = "send_timestamp",
        /// The time stamp that it echoes.
        echo_timestamp: Option<u64> = "echo_timestamp",
        /// Rate that is asked for.
        rate: Option<u64> = "rate",
        /// Hop count that goes with it.
        ttl_diff: Option<u64> = "ttl_diff",
        /// Nonce that goes with it.
        qs_nonce: Option<u64> = "qs_nonce",
    }
}

/// What a host does with a multicast group (RFC 3810 section 5.2.12), by its number.
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
    /// What a host listens to in one multicast group.
    #[derive(Clone, Debug)]
    pub struct MldRecord<'a> = "icmp6_mldv2_mar" {
        /// What it does with the sources.
        group_type: MldGroupType = "group_type",
        /// Bytes of additional data.
        aux_data_len: u64 = "aux_data_len",
        /// Number of sources.
        num_sources: u64 = "num_sources",
        /// The group.
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
        /// Seconds of its time.
        ts_sec: u64 = "ts_sec",
        /// Microseconds of its time.
        ts_usec: u64 = "ts_usec",
        /// Bytes captured.
        caplen: u64 = "caplen",
        /// Bytes on the wire.
        len: u64 = "len",
        /// The captured bytes.
        data: &'a [u8] = "data",
        /// How the link encapsulates.
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

/// What a host does with a multicast group (RFC 3376 section 4.2.12), by its number.
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
    /// What a host does with one multicast group (RFC 3376 section 4.2.4).
    #[derive(Clone, Debug)]
    pub struct IgmpGroup<'a> = "IGMP::Group" {
        /// What it does with the sources.
        group_type: IgmpGroupType = "group_type",
        /// Bytes of additional data.
        aux_data_len: u64 = "aux_data_len",
        /// Number of sources.
        num_sources: u64 = "num_sources",
        /// The group.
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

    /// A router asks which groups have members (IGMP).
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

    /// No analyzer took a packet: no connection has it, and it is no ARP.
    pub struct PacketNotProcessed<'a> = "packet_not_processed", opt_in {
        /// The packet.
        pkt: PcapPacket<'a> = "pkt",
    }

    /// A packet of Mobile IPv6 (RFC 6275).
    pub struct MobileIpv6Message = "mobile_ipv6_message", opt_in {
        /// Its headers.
        p: PktHdr = "p",
    }

    /// Segments were sent again: ten, a hundred, a thousand and so on.
    pub struct TcpMultipleRetransmissions = "tcp_multiple_retransmissions", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// How many.
        threshold: u64 = "threshold",
    }

    /// Bytes of a stream are missing for the tenth, hundredth, thousandth time and so on.
    pub struct TcpMultipleGap = "tcp_multiple_gap", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// How often.
        threshold: u64 = "threshold",
    }

    /// A side closed its window for the tenth, hundredth, thousandth time and so on.
    pub struct TcpMultipleZeroWindows = "tcp_multiple_zero_windows", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it is the originator.
        is_orig: bool = "is_orig",
        /// How often.
        threshold: u64 = "threshold",
    }

    /// Segments had wrong checksums: ten, a hundred, a thousand and so on.
    pub struct TcpMultipleChecksumErrors = "tcp_multiple_checksum_errors", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// How many.
        threshold: u64 = "threshold",
    }

    /// Datagrams had wrong checksums: ten, a hundred, a thousand and so on.
    pub struct UdpMultipleChecksumErrors = "udp_multiple_checksum_errors", opt_in {
        /// The connection.
        u: Connection = "u",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// How many.
        threshold: u64 = "threshold",
    }

    /// An analyzer of a protocol that pairs datagrams is done with a connection.
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
        /// The type of the link by its number in captures.
        link_type: u64 = "link_type",
    }

    /// A packet begins that is in a PPPoE session.
    pub struct PppoeSession = "gannet::pppoe_session", opt_in, one_thread {
        /// Its number.
        session: u64 = "session",
    }

    /// A packet is done: what statistics count.
    pub struct PacketDone = "gannet::packet_done", opt_in, one_thread {
        /// Whether a connection or ARP took it.
        processed: bool = "processed",
        /// Datagrams of which fragments wait.
        fragments: u64 = "fragments",
        /// The most of them at a time.
        most_fragments: u64 = "most_fragments",
        /// Acknowledgements of new data of established TCP connections, so far.
        acks: u64 = "acks",
        /// The bytes that they acknowledged.
        acked_bytes: u64 = "acked_bytes",
        /// Those of them that acknowledged bytes that were not captured.
        gaps: u64 = "gaps",
        /// These bytes.
        gap_bytes: u64 = "gap_bytes",
        /// Timers of the analysis.
        timers: u64 = "timers",
        /// Bytes of TCP streams that wait above holes.
        stream_bytes: u64 = "stream_bytes",
        /// Bytes of fragments that wait.
        fragment_bytes: u64 = "fragment_bytes",
    }

    /// A packet of a protocol that is not read: a few of each kind.
    pub struct UnknownProtocol<'a> = "unknown_protocol", opt_in, one_thread {
        /// The layer that leads to it.
        analyzer_name: &'a str = "analyzer_name",
        /// Its number there.
        protocol: u64 = "protocol",
        /// Its first bytes.
        first_bytes: &'a [u8] = "first_bytes",
        /// The layers around it, the outermost first.
        analyzer_history: Vec<&'a str> = "analyzer_history",
    }

    /// The options of a TCP segment, as they are on the wire, before its other events.
    pub struct SegmentOptions<'a> = "gannet::tcp_options", opt_in {
        /// The options with all padding.
        options: &'a [u8] = "options",
    }

    /// The sequence numbers of a TCP connection after a segment.
    pub struct TcpSequences = "gannet::tcp_sequences", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The number behind what the originator sent.
        orig: u64 = "orig",
        /// The number behind what the responder sent.
        resp: u64 = "resp",
    }

    /// A packet of a connection that scripts look at again.
    pub struct WatchedConnection = "gannet::watched_connection", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
    }

    /// Whether scripts discard an IP packet: a question.
    pub struct DiscardPacket<'a> = "gannet::discard_packet", opt_in, one_thread {
        /// Its headers.
        hdr: PktHdr = "hdr",
        /// The protocol whose data follows, where it is complete: 6, 17 or 1; 0 if none is.
        protocol: u64 = "protocol",
        /// Data behind the header of the transport.
        data: &'a [u8] = "data",
    }

    /// Whether a connection that was silent for too long is kept: a question.
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
        /// Version of IP.
        version: u64 = "version",
        /// The IP headers.
        header: &'a [u8] = "header",
        /// The first bytes behind them.
        payload: &'a [u8] = "payload",
        /// The protocol of these.
        protocol: u64 = "protocol",
    }

    /// Data of a connection, for signatures: a part of a stream in order, or a datagram. The events before it are
    /// delivered first, and analyzers that the listener starts read it at once.
    pub struct SignatureData<'a> = "gannet::signature_data", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The data.
        contents: &'a [u8] = "contents",
    }

    /// Analyzers that a listener started for data have read it.
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
        /// A letter for each flag.
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
        /// What it says.
        pkt: SynPacket = "pkt",
    }

    /// A TCP connection began that has data.
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
        /// Position of the first, of which the SYN is the first.
        seq: u64 = "seq",
        /// The bytes.
        contents: &'a [u8] = "contents",
    }

    /// Part of a TCP stream that a script writes to a file.
    pub struct StreamContents<'a> = "gannet::stream_contents", opt_in, one_thread {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Bytes that are missing before it.
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

    /// One side closed, which was never answered.
    pub struct ConnectionHalfFinished = "connection_half_finished", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// One side closed, and the other one went on.
    pub struct ConnectionPartialClose = "connection_partial_close", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection was open when the input ended.
    pub struct ConnectionPending = "connection_pending", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection of which the beginning was not seen.
    pub struct PartialConnection = "partial_connection", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The first acknowledgement of the originator.
    pub struct ConnectionFirstAck = "connection_first_ACK", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// All that a side sent was delivered.
    pub struct ConnectionEof = "connection_EOF", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator's side.
        is_orig: bool = "is_orig",
    }

    /// A connection was idle for too long.
    pub struct ConnectionTimeout = "connection_timeout", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection ended because it was silent for longer than its timeout, and not because its protocol looked at it.
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

    /// An ICMP message of another kind.
    pub struct IcmpSent = "icmp_sent", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
    }

    /// The same with its data.
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

    /// An ICMPv6 error message that has no event of its own.
    pub struct IcmpErrorMessage = "icmp_error_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that it is about.
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
        /// The packet that it is about.
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
        /// The packet that it is about.
        context: IcmpContext = "context",
    }

    /// A packet was on its way for too long.
    pub struct IcmpTimeExceeded = "icmp_time_exceeded", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that it is about.
        context: IcmpContext = "context",
    }

    /// A header was wrong.
    pub struct IcmpParameterProblem = "icmp_parameter_problem", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Its code.
        code: u64 = "code",
        /// The packet that it is about.
        context: IcmpContext = "context",
    }

    /// A router announces itself (RFC 4861 section 4.2).
    pub struct IcmpRouterAdvertisement<'a> = "icmp_router_advertisement", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Hop limit that hosts are to use.
        cur_hop_limit: u64 = "cur_hop_limit",
        /// Whether addresses come from DHCPv6.
        managed: bool = "managed",
        /// Whether other configuration comes from DHCPv6.
        other: bool = "other",
        /// Whether it is a home agent.
        home_agent: bool = "home_agent",
        /// Preference.
        pref: u64 = "pref",
        /// Whether it is a proxy.
        proxy: bool = "proxy",
        /// Reserved bits.
        rsv: u64 = "rsv",
        /// How long it is a default router.
        router_lifetime: Interval = "router_lifetime",
        /// How long a neighbor counts as reachable.
        reachable_time: Interval = "reachable_time",
        /// Time between solicitations.
        retrans_timer: Interval = "retrans_timer",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// A host asks for routers (RFC 4861 section 4.1).
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

    /// A host reports what it listens to (RFC 3810 section 5.2).
    pub struct IcmpMldReport2<'a> = "icmpv6_mld_report_v2", opt_in {
        /// The connection.
        c: Connection = "c",
        /// A record for each group.
        groups: Vec<MldRecord<'a>> = "groups",
    }

    /// A host asks for a neighbor (RFC 4861 section 4.3).
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

    /// A neighbor answers (RFC 4861 section 4.4).
    pub struct IcmpNeighborAdvertisement<'a> = "icmp_neighbor_advertisement", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// Whether it is a router.
        router: bool = "router",
        /// Whether it was asked.
        solicited: bool = "solicited",
        /// Whether what is known of it is replaced.
        override_: bool = "override",
        /// The neighbor.
        tgt: Addr = "tgt",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// A router knows a better way (RFC 4861 section 4.5, RFC 792).
    pub struct IcmpRedirect<'a> = "icmp_redirect", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The message.
        info: IcmpInfo = "info",
        /// The better next hop.
        tgt: Addr = "tgt",
        /// The destination that it is for.
        dest: Addr = "dest",
        /// Options.
        options: Vec<NdOption<'a>> = "options",
    }

    /// An ARP message is malformed, or of a kind that is not read.
    pub struct BadArp<'a> = "bad_arp", opt_in {
        /// Protocol address of the sender.
        spa: Addr = "SPA",
        /// Hardware address of the sender.
        sha: &'a str = "SHA",
        /// Protocol address of the target.
        tpa: Addr = "TPA",
        /// Hardware address of the target.
        tha: &'a str = "THA",
        /// What is wrong.
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

    /// A side of a connection sent more bytes of IP packets than a script wants to know of.
    pub struct ConnBytesThresholdCrossed = "conn_bytes_threshold_crossed" {
        /// The connection.
        c: Connection = "c",
        /// The number.
        threshold: u64 = "threshold",
        /// Whether the originator.
        is_orig: bool = "is_orig",
    }

    /// A side of a connection sent more packets than a script wants to know of.
    pub struct ConnPacketsThresholdCrossed = "conn_packets_threshold_crossed" {
        /// The connection.
        c: Connection = "c",
        /// The number.
        threshold: u64 = "threshold",
        /// Whether the originator.
        is_orig: bool = "is_orig",
    }

    /// A connection lasted for longer than a script wants to know of.
    pub struct ConnDurationThresholdCrossed = "conn_duration_threshold_crossed" {
        /// The connection.
        c: Connection = "c",
        /// The time.
        threshold: Interval = "threshold",
        /// Whether the originator sent the packet that showed it.
        is_orig: bool = "is_orig",
    }

    /// A connection has as many packets as scripts say, those of both sides together.
    pub struct ConnGenericPacketThresholdCrossed = "conn_generic_packet_threshold_crossed", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The number.
        threshold: u64 = "threshold",
    }

    /// A packet is analyzed: its time and its size, where its bytes are not needed. Delivered ahead of the other events of the packet.
    pub struct PacketSeen = "gannet::packet_seen", opt_in {
        /// Its time.
        ts: Time = "ts",
        /// Bytes on the wire.
        len: u64 = "len",
        /// The type of the link by its number in captures.
        link_type: u64 = "link_type",
    }
}
