//! Events of packets and transports, where they have a listener.
//!
//! The walk of a packet calls these functions where [`Events::any`](gannet_event::Events::any) holds. Each tests
//! for a listener of its own events.

use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_capture::Packet;
use gannet_flow::Conn;
use gannet_flow::tcp::Segment;
use gannet_flow::tcp::State;
use gannet_flow::tcp::Tcp;
use gannet_flow::tcp::flag;
use gannet_protocols::Session;
use gannet_protocols::packet::build;
use gannet_protocols::packet::events::*;
use gannet_wire::Icmp;
use gannet_wire::Ip;
use gannet_wire::protocol;

use crate::shard::Shard;

impl Shard {
    /// The bytes of a packet, before it is walked.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_packet_bytes(&mut self, packet: &Packet<'_>) {
        let link_type = packet.link_type.0;
        let events = &mut self.env.logs.events;
        if events.wants::<PacketBytes<'_>>() {
            events.raise(&PacketBytes {
                ts: packet.time,
                data: packet.data,
                len: u64::from(packet.wire_len),
                link_type: u64::from(link_type),
            });
        }
    }

    /// The packet as a whole, after the events of its layers.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_raw_packet(&mut self, packet: &Packet<'_>) {
        let events = &mut self.env.logs.events;
        if events.wants::<RawPacket>() {
            let p = build::frame(packet.link_type.0, packet.data, packet.wire_len);
            events.raise(&RawPacket { p });
        }
    }

    /// What statistics count of a packet that is done.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_packet_done(&mut self) {
        let processed = std::mem::take(&mut self.is_taken);
        let events = &mut self.env.logs.events;
        if events.wants::<PacketDone>() {
            events.raise(&PacketDone {
                processed,
                fragments: self.fragments.len() as u64,
                most_fragments: self.fragments.most() as u64,
            });
        }
    }

    /// A packet of a connection that was found.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_new_packet(&mut self, index: u32, ip: &Ip<'_>) {
        self.is_taken = true;
        let has_extensions = ip.version == 6 && ip.header_len > 40;
        let wants_extensions = has_extensions && self.env.logs.events.wants::<Ipv6ExtHeaders>();
        if !self.env.logs.events.wants::<NewPacket>() && !wants_extensions {
            return;
        }
        self.with_session(index, |conn, tcp, session| {
            session.mention(tcp.as_deref());
            session.raise(conn, |c| NewPacket { c, p: build::packet(ip) });
            if has_extensions {
                session.raise(conn, |c| Ipv6ExtHeaders { c, p: build::packet(ip) });
            }
        });
    }

    /// The options of a TCP segment.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_segment_options(&mut self, options: &[u8]) {
        let events = &mut self.env.logs.events;
        if events.wants::<SegmentOptions<'_>>() {
            events.raise(&SegmentOptions { options });
        }
    }

    /// An IPv6 packet whose contents are encrypted.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_esp(&mut self, ip: &Ip<'_>) {
        let events = &mut self.env.logs.events;
        if events.wants::<EspPacket>() {
            events.raise(&EspPacket { p: build::packet(ip) });
        }
    }

    /// Whether scripts discard an IP packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_discarded(&mut self, ip: &Ip<'_>) -> bool {
        let (mut protocol, mut data) = (0, &ip.payload[..0]);
        if ip.is_complete() && ip.fragment.is_none() {
            let data_at = match ip.protocol {
                protocol::TCP if ip.payload.len() >= 20 => {
                    Some(usize::from(ip.payload[12] >> 4) * 4)
                }
                protocol::UDP => Some(8),
                // As much as the longest of its headers.
                protocol::ICMP => Some(28),
                _ => None,
            };
            if let Some(at) =
                data_at.filter(|at| ip.protocol == protocol::TCP || *at <= ip.payload.len())
            {
                protocol = u64::from(ip.protocol);
                data = ip.payload.get(at..).unwrap_or_default();
            }
        }
        let hdr = build::packet(ip);
        self.env.logs.events.decide(&DiscardPacket { hdr, protocol, data })
    }

    /// The data of a packet of a connection.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_contents(&mut self, index: u32, contents: &[u8]) {
        if self.env.logs.events.wants::<PacketContents<'_>>() && !contents.is_empty() {
            self.with_session(index, |conn, tcp, session| {
                session.mention(tcp.as_deref());
                session.raise(conn, |c| PacketContents { c, contents });
            });
        }
    }

    /// A datagram of a connection.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_datagram(&mut self, index: u32, from: Dir, contents: &[u8]) {
        self.with_session(index, |conn, _, session| {
            let is_orig = from.is_orig();
            if is_orig {
                session.raise(conn, |u| UdpRequest { u });
            } else {
                session.raise(conn, |u| UdpReply { u });
            }
            session.raise(conn, |u| UdpContents { u, is_orig, contents });
        });
    }

    /// An ARP message.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_arp(&mut self, data: &[u8], mac: [Option<[u8; 6]>; 2]) {
        self.is_taken = true;
        let text = |mac: Option<[u8; 6]>| mac.map_or_else(String::new, |mac| build::mac(&mac));
        let (mac_src, mac_dst) = (text(mac[0]), text(mac[1]));
        let (hl, pl) = match data.get(4..6) {
            Some(&[hl, 4]) => (usize::from(hl), 4),
            _ => return,
        };
        let field = |at: usize, len: usize| data.get(at..at + len);
        let (Some(sha), Some(spa)) = (field(8, hl), field(8 + hl, pl)) else { return };
        let (Some(tha), Some(tpa)) = (field(8 + hl + pl, hl), field(8 + 2 * hl + pl, pl)) else {
            return;
        };
        let addr = |b: &[u8]| Addr::v4(b.try_into().unwrap_or_default());
        let (spa, tpa, sha, tha) = (addr(spa), addr(tpa), build::mac(sha), build::mac(tha));
        let (mac_src, mac_dst, sha, tha) = (&*mac_src, &*mac_dst, &*sha, &*tha);
        let events = &mut self.env.logs.events;
        match data.get(6..8) {
            Some(&[0, 1]) if events.wants::<ArpRequest<'_>>() => {
                events.raise(&ArpRequest { mac_src, mac_dst, spa, sha, tpa, tha });
            }
            Some(&[0, 2]) if events.wants::<ArpReply<'_>>() => {
                events.raise(&ArpReply { mac_src, mac_dst, spa, sha, tpa, tha });
            }
            _ => {}
        }
    }
}

/// What a segment shows before it changes its connection.
#[cold]
#[inline(never)]
pub(crate) fn before_segment(
    session: &mut Session<'_>,
    conn: &Conn,
    tcp: &Tcp,
    (ip, from, s): (&Ip<'_>, Dir, &Segment<'_>),
) {
    session.mention(Some(tcp));
    if s.flags & flag::SYN != 0 {
        let is_orig = from.is_orig();
        session.raise(conn, |c| {
            let pkt = build::syn(ip, is_orig, s.window, s.options);
            ConnectionSynPacket { c, pkt }
        });
    }
}

/// What a segment changed: `before` are the states of originator and responder as they were.
#[cold]
#[inline(never)]
pub(crate) fn after_segment(
    session: &mut Session<'_>,
    conn: &Conn,
    tcp: &Tcp,
    before: [State; 2],
    (from, s): (Dir, &Segment<'_>),
) {
    session.mention(Some(tcp));
    let is_orig = from.is_orig();
    let after = [tcp.endpoint(Dir::Orig).state, tcp.endpoint(Dir::Resp).state];
    let (mine, peer) = (from.index(), from.other().index());
    let (was, is) = (before[mine], after[mine]);
    if s.flags & flag::RST != 0 && was != State::Reset && is == State::Reset {
        let rejects = was == State::Inactive
            && if is_orig {
                before[peer] == State::Established
            } else {
                matches!(before[peer], State::SynSent | State::SynAckSent)
            };
        if rejects {
            session.raise(conn, |c| ConnectionRejected { c });
        } else if was != State::Inactive && was != State::Closed {
            session.raise(conn, |c| ConnectionReset { c });
        }
    }
    if after == [State::Partial; 2] && before != after {
        session.raise(conn, |c| PartialConnection { c });
    }
    let relative = |side: Dir, seq: u32| u64::from(seq.wrapping_sub(tcp.endpoint(side).start()));
    if session.wants::<TcpPacket<'_>>() {
        let flags = build::flag_letters(s.flags);
        let ack = if s.flags & flag::ACK != 0 { relative(from.other(), s.ack) } else { 0 };
        let seq = relative(from, s.seq);
        let (len, payload) = (u64::from(s.len), s.data);
        session.raise(conn, |c| TcpPacket { c, is_orig, flags: &flags, seq, ack, len, payload });
    }
    if !s.options.is_empty() && (session.wants::<TcpOption>() || session.wants::<TcpOptions<'_>>())
    {
        let options = build::raw_options(s.options);
        for (kind, len, _) in &options {
            let (opt, optlen) = (u64::from(*kind), *len as u64);
            session.raise(conn, |c| TcpOption { c, is_orig, opt, optlen });
        }
        session.raise(conn, |c| TcpOptions {
            c,
            is_orig,
            options: options
                .iter()
                .map(|(kind, len, data)| build::option(*kind, *len, data))
                .collect(),
        });
    }
    let closed = |states: [State; 2]| states.iter().filter(|s| **s == State::Closed).count();
    if closed(after) > closed(before) {
        if closed(after) == 2 {
            session.raise(conn, |c| ConnectionFinished { c });
        } else if after[peer] == State::Inactive {
            session.raise(conn, |c| ConnectionHalfFinished { c });
        }
    }
}

/// A connection that ends because its timer found it over or idle.
#[cold]
#[inline(never)]
pub(crate) fn timed_out(session: &mut Session<'_>, conn: &Conn, tcp: Option<&Tcp>, idle: bool) {
    session.mention(tcp);
    let states = tcp.map(|tcp| [tcp.endpoint(Dir::Orig).state, tcp.endpoint(Dir::Resp).state]);
    match states {
        Some([State::SynSent | State::SynAckSent, State::Inactive]) if !idle => {
            session.raise(conn, |c| ConnectionAttempt { c });
        }
        Some([orig, resp])
            if !idle
                && orig != State::Inactive
                && resp != State::Inactive
                && orig != State::Reset
                && resp != State::Reset
                && (orig == State::Closed) != (resp == State::Closed) =>
        {
            session.raise(conn, |c| ConnectionPartialClose { c });
        }
        _ if idle => session.raise(conn, |c| ConnectionTimeout { c }),
        _ => {}
    }
}

/// A TCP connection that is open when the input ends.
#[cold]
#[inline(never)]
pub(crate) fn pending(session: &mut Session<'_>, conn: &Conn, tcp: Option<&Tcp>) {
    let Some(tcp) = tcp else { return };
    session.mention(Some(tcp));
    let over = |side| matches!(tcp.endpoint(side).state, State::Closed | State::Reset);
    if !(over(Dir::Orig) && over(Dir::Resp)) {
        session.raise(conn, |c| ConnectionPending { c });
    }
}

/// An ICMP message of a connection.
#[cold]
#[inline(never)]
pub(crate) fn icmp(session: &mut Session<'_>, conn: &Conn, ip: &Ip<'_>, icmp: &Icmp<'_>) {
    let info = IcmpInfo {
        v6: icmp.v6,
        itype: u64::from(icmp.kind),
        icode: u64::from(icmp.code),
        len: u64::from(icmp.payload_len),
        ttl: u64::from(ip.ttl),
    };
    let data = icmp.payload;
    let (id, seq) = (u64::from(icmp.rest >> 16), u64::from(icmp.rest & 0xffff));
    let code = u64::from(icmp.code);
    let bit = |n: u32| icmp.rest >> n & 1 != 0;
    let target = |at: usize| {
        let bytes = data.get(at..at + 16).and_then(|b| b.try_into().ok());
        Addr::v6(bytes.unwrap_or_default())
    };
    let rest = |at: usize| data.get(at..).unwrap_or_default();
    match (icmp.v6, icmp.kind) {
        (false, 8) | (true, 128) => {
            session.raise(conn, |c| IcmpEchoRequest { c, info, id, seq, payload: data });
        }
        (false, 0) | (true, 129) => {
            session.raise(conn, |c| IcmpEchoReply { c, info, id, seq, payload: data });
        }
        (false, 3) | (true, 1) => {
            let context = build::context(data, icmp.v6);
            session.raise(conn, |c| IcmpUnreachable { c, info, code, context });
        }
        (false, 11) | (true, 3) => {
            let context = build::context(data, icmp.v6);
            session.raise(conn, |c| IcmpTimeExceeded { c, info, code, context });
        }
        (true, 2) => {
            let context = build::context(data, true);
            session.raise(conn, |c| IcmpPacketTooBig { c, info, code, context });
        }
        (true, 4) => {
            let context = build::context(data, true);
            session.raise(conn, |c| IcmpParameterProblem { c, info, code, context });
        }
        (true, 133) => {
            let options = build::nd_options(data);
            session.raise(conn, |c| IcmpRouterSolicitation { c, info, options });
        }
        (true, 134) => {
            let millis = |at: usize| {
                let four = data.get(at..at + 4).and_then(|b| b.try_into().ok());
                let number = u32::from_be_bytes(four.unwrap_or_default());
                Interval::from_nanos(i64::from(number) * 1_000_000)
            };
            let router_lifetime = Interval::from_secs(i64::from(icmp.rest & 0xffff));
            session.raise(conn, |c| IcmpRouterAdvertisement {
                c,
                info,
                cur_hop_limit: u64::from(icmp.rest >> 24),
                managed: bit(23),
                other: bit(22),
                home_agent: bit(21),
                pref: u64::from(icmp.rest >> 19 & 3),
                proxy: bit(18),
                rsv: u64::from(icmp.rest >> 16 & 3),
                router_lifetime,
                reachable_time: millis(0),
                retrans_timer: millis(4),
                options: build::nd_options(rest(8)),
            });
        }
        (true, 135) => {
            let options = build::nd_options(rest(16));
            session.raise(conn, |c| IcmpNeighborSolicitation { c, info, tgt: target(0), options });
        }
        (true, 136) => {
            let options = build::nd_options(rest(16));
            session.raise(conn, |c| IcmpNeighborAdvertisement {
                c,
                info,
                router: bit(31),
                solicited: bit(30),
                override_: bit(29),
                tgt: target(0),
                options,
            });
        }
        (true, 137) => {
            let options = build::nd_options(rest(32));
            let (tgt, dest) = (target(0), target(16));
            session.raise(conn, |c| IcmpRedirect { c, info, tgt, dest, options });
        }
        (true, 0..128) => {
            let context = build::context(data, true);
            session.raise(conn, |c| IcmpErrorMessage { c, info, code, context });
        }
        _ => {
            session.raise(conn, |c| IcmpSent { c, info });
            session.raise(conn, |c| IcmpSentPayload { c, info, payload: data });
        }
    }
}
