//! Events of packets and transports, raised if they have a listener.
//!
//! Packet processing calls these functions if [`Events::any`](gannet_event::Events::any) holds.
//! Each of them checks whether its own events have a listener.

use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_capture::Packet;
use gannet_flow::Conn;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Delayed;
use gannet_flow::tcp::State;
use gannet_flow::tcp::Tcp;
use gannet_protocols::Session;
use gannet_protocols::conn_state::events::ConnectionFlowLabelChanged;
use gannet_protocols::lifecycle::events::PcapFileDone;
use gannet_protocols::packet::build;
use gannet_protocols::packet::events::*;
use gannet_protocols::packet::headers::LinkEncap;
use gannet_protocols::weird::PacketWeird;
use gannet_wire::Icmp;
use gannet_wire::Ip;
use gannet_wire::protocol;

use crate::reassembled::Reassembled;
use crate::shard::Shard;

impl Shard {
    /// Raises the events with a packet's bytes, or with its size and time only, before the packet
    /// is processed.
    #[inline]
    pub(crate) fn raise_packet_bytes(&mut self, packet: &Packet<'_>) {
        let events = &mut self.env.logs.events;
        if events.wants::<PacketSeen>() {
            events.raise_at_once(&PacketSeen {
                ts: packet.time,
                len: u64::from(packet.wire_len),
                link_type: u64::from(packet.link_type.0),
            });
        }
        if events.wants::<PacketBytes<'_>>() {
            self.raise_bytes(packet);
        }
        if self.env.logs.events.wants::<PppoeSession>() {
            self.raise_session(packet);
        }
    }

    #[cold]
    fn raise_bytes(&mut self, packet: &Packet<'_>) {
        self.env.logs.events.raise(&PacketBytes {
            ts: packet.time,
            data: packet.data,
            len: u64::from(packet.wire_len),
            link_type: u64::from(packet.link_type.0),
        });
    }

    #[cold]
    fn raise_session(&mut self, packet: &Packet<'_>) {
        if let Some(session) = gannet_wire::pppoe_session(packet.link_type.0, packet.data) {
            let session = u64::from(session);
            self.env.logs.events.raise_at_once(&PppoeSession { session });
        }
    }

    /// Raises the event of the whole packet, after the events of its layers.
    #[inline]
    pub(crate) fn raise_raw_packet(&mut self, packet: &Packet<'_>) {
        if self.env.logs.events.wants::<RawPacket>() || self.wants_igmp() {
            self.raise_frame(packet);
        }
    }

    #[cold]
    fn raise_frame(&mut self, packet: &Packet<'_>) {
        let whole = self.reassembled.frame.take();
        if !self.groups.is_empty() {
            self.raise_igmp(packet);
        }
        if self.env.logs.events.wants::<RawPacket>() {
            let p = build::frame(packet.link_type.0, packet.data, packet.wire_len, whole);
            self.env.logs.events.raise(&RawPacket { p });
        }
    }

    /// Raises the events after a packet was processed: one for statistics, and one for a packet
    /// that no analyzer processed.
    #[inline]
    pub(crate) fn raise_packet_done(&mut self, packet: &Packet<'_>) {
        let processed = std::mem::take(&mut self.is_taken);
        let events = &self.env.logs.events;
        if events.wants::<PacketNotProcessed<'_>>() || events.wants::<PacketDone>() {
            self.raise_done(packet, processed);
        }
    }

    #[cold]
    fn raise_done(&mut self, packet: &Packet<'_>, processed: bool) {
        let events = &mut self.env.logs.events;
        if !processed && events.wants::<PacketNotProcessed<'_>>() {
            let nanos = packet.time.as_nanos();
            let pkt = PcapPacket {
                ts_sec: nanos.div_euclid(1_000_000_000) as u64,
                ts_usec: nanos.rem_euclid(1_000_000_000) as u64 / 1_000,
                caplen: packet.data.len() as u64,
                len: u64::from(packet.wire_len),
                data: packet.data,
                // Like Zeek, this shows the link type number of captures as a value of Zeek's own
                // link type.
                link_type: match packet.link_type.0 {
                    0 => LinkEncap::Ethernet,
                    1 => LinkEncap::Unknown,
                    _ => LinkEncap::Undefined,
                },
            };
            // Another shard may have a connection that processes a part of the packet.
            events.raise_unless_taken(&PacketNotProcessed { pkt });
        }
        if events.wants::<PacketDone>() {
            let acked = self.env.acked;
            events.raise(&PacketDone {
                processed,
                fragments: self.fragments.len() as u64,
                most_fragments: self.fragments.peak() as u64,
                acks: acked.times,
                acked_bytes: acked.bytes,
                gaps: acked.gaps,
                gap_bytes: acked.missing,
                timers: self.timers.len() as u64,
                stream_bytes: self.evictor.buffered() as u64,
                fragment_bytes: self.fragments.bytes() as u64,
            });
        }
    }

    /// Raises the event for the end of a capture.
    pub(crate) fn raise_capture_end(&mut self, path: &str) {
        let events = &mut self.env.logs.events;
        if events.wants::<PcapFileDone<'_>>() {
            events.raise(&PcapFileDone { path });
        }
    }

    /// Records that a datagram was reassembled. The event of its headers shows the flags of the
    /// fragment that arrived first; so does the event of the frame if the datagram is not tunneled.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_reassembled(&mut self, ip: &Ip<'_>, is_outermost: bool) {
        let flags = self.fragments.completed_flags();
        let wants_frame = is_outermost && self.env.logs.events.wants::<RawPacket>();
        let frame = wants_frame.then(|| build::Reassembled {
            headers: build::with_flags(build::packet(ip), flags),
            total_len: ip.total_len,
        });
        self.reassembled = Reassembled { flags: Some(flags), frame };
    }

    /// Raises the events of a packet that belongs to a connection.
    #[inline]
    pub(crate) fn raise_new_packet(&mut self, index: u32, from: Dir, ip: &Ip<'_>) {
        // A connection of an unknown transport has the packet, but no analyzer for it.
        self.is_taken |=
            matches!(ip.protocol, protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMP6);
        if ip.version == 6 || self.env.logs.events.wants::<NewPacket>() {
            self.raise_any_packet(index, from, ip);
        }
    }

    #[cold]
    #[inline(never)]
    fn raise_any_packet(&mut self, index: u32, from: Dir, ip: &Ip<'_>) {
        if ip.version == 6 {
            self.record_flow_label(index, from, ip.flow_label());
        }
        let has_extensions = ip.version == 6 && ip.header_len > 40;
        let wants_extensions = has_extensions && self.env.logs.events.wants::<Ipv6ExtHeaders>();
        if !self.env.logs.events.wants::<NewPacket>() && !wants_extensions {
            return;
        }
        let flags = self.reassembled.flags.take();
        self.with_session(index, |conn, tcp, session| {
            session.mention(tcp.as_deref());
            session.raise(conn, |c| {
                let p = build::packet(ip);
                let p = match flags {
                    Some(flags) => build::with_flags(p, flags),
                    None => p,
                };
                NewPacket { c, p }
            });
            if has_extensions {
                session.raise(conn, |c| Ipv6ExtHeaders { c, p: build::packet(ip) });
            }
        });
    }

    /// Records the flow label of a packet, and raises an event if the previous packet of the same side
    /// had a different one.
    fn record_flow_label(&mut self, index: u32, from: Dir, new_label: u32) {
        if !self.env.logs.events.wants::<ConnectionFlowLabelChanged>() {
            if let Some(slot) = self.table.get_mut(index) {
                slot.conn.set_flow_label(from, new_label);
            }
            return;
        }
        self.with_session(index, |conn, tcp, session| {
            let Some(old_label) = conn.change_flow_label(from, new_label) else { return };
            session.mention(tcp.as_deref());
            let is_orig = from.is_orig();
            session.raise(conn, |c| ConnectionFlowLabelChanged {
                c,
                is_orig,
                old_label,
                new_label,
            });
        });
    }

    /// Raises the events of the options of a TCP segment.
    #[inline]
    pub(crate) fn raise_segment_options(&mut self, options: &[u8]) {
        let events = &mut self.env.logs.events;
        if events.wants::<SegmentOptions<'_>>() {
            events.raise(&SegmentOptions { options });
        }
    }

    /// Raises the event of an IPv6 packet with encrypted contents.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_esp(&mut self, ip: &Ip<'_>) {
        let events = &mut self.env.logs.events;
        if events.wants::<EspPacket>() {
            events.raise(&EspPacket { p: build::packet(ip) });
        }
    }

    /// Raises the event of a Mobile IPv6 packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_mobility(&mut self, ip: &Ip<'_>) {
        let events = &mut self.env.logs.events;
        if events.wants::<MobileIpv6Message>() {
            events.raise(&MobileIpv6Message { p: build::packet(ip) });
        }
    }

    /// Returns whether a script discards an IP packet.
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
                // The length of the longest header that these events show.
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

    /// Raises the event of the payload of a connection's packet.
    #[inline]
    pub(crate) fn raise_contents(&mut self, index: u32, contents: &[u8]) {
        if self.env.logs.events.wants::<PacketContents<'_>>() && !contents.is_empty() {
            self.raise_some_contents(index, contents);
        }
    }

    #[cold]
    fn raise_some_contents(&mut self, index: u32, contents: &[u8]) {
        self.with_session(index, |conn, tcp, session| {
            session.mention(tcp.as_deref());
            session.raise(conn, |c| PacketContents { c, contents });
        });
    }

    /// Raises the event of a UDP datagram of a connection.
    #[inline]
    pub(crate) fn raise_datagram(&mut self, index: u32, from: Dir, contents: &[u8]) {
        let events = &self.env.logs.events;
        let wants_side = match from {
            Dir::Orig => events.wants::<UdpRequest>(),
            Dir::Resp => events.wants::<UdpReply>(),
        };
        if wants_side || events.wants::<UdpContents<'_>>() {
            self.raise_any_datagram(index, from, contents);
        }
    }

    #[cold]
    fn raise_any_datagram(&mut self, index: u32, from: Dir, contents: &[u8]) {
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

    /// Raises the events of an ARP message with complete fields.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_arp(&mut self, data: &[u8], mac: [Option<[u8; 6]>; 2]) {
        self.is_taken = true;
        let &[hrd_0, hrd_1, pro_0, pro_1, hln, pln, op_0, op_1, ..] = data else { return };
        let hardware = u16::from_be_bytes([hrd_0, hrd_1]);
        let protocol = u16::from_be_bytes([pro_0, pro_1]);
        let operation = u16::from_be_bytes([op_0, op_1]);
        let (hl, pl) = (usize::from(hln), usize::from(pln));
        let field = |at: usize, len: usize| data.get(at..at + len);
        let (Some(sha), Some(spa)) = (field(8, hl), field(8 + hl, pl)) else { return };
        let (Some(tha), Some(tpa)) = (field(8 + hl + pl, hl), field(8 + 2 * hl + pl, pl)) else {
            return;
        };
        let mac = mac.map(Option::unwrap_or_default);
        let explanation = match (hardware, protocol, operation) {
            (1 | 6, ..) if hln != 6 => format!("corrupt-arp-header (hrd={hardware}, hln={hln})"),
            (1 | 6, 0x0800, _) if pln != 4 => {
                format!("corrupt-arp-header (pro={protocol}, pln={pln})")
            }
            (1 | 6, 0x0800, _) if mac[0] != *sha => "weird-arp-sha".to_owned(),
            (1 | 6, 0x0800, 1 | 2) => String::new(),
            // RARP and InARP.
            (1 | 6, 0x0800, 3 | 4 | 8 | 9) => format!("unimplemented-arp-opcode ({operation})"),
            (1 | 6, 0x0800, _) => format!("invalid-arp-opcode (opcode={operation})"),
            (1 | 6, ..) => format!("unknown-arp-proto-address (pro={protocol})"),
            _ => format!("unknown-arp-hw-address (hrd={hardware})"),
        };
        let addr = |b: &[u8]| Addr::v4(b.first_chunk().copied().unwrap_or_default());
        let text = |b: &[u8]| b.first_chunk::<6>().map_or_else(String::new, |b| build::mac(b));
        let (spa, tpa, sha, tha) = (addr(spa), addr(tpa), text(sha), text(tha));
        let (mac_src, mac_dst) = (&*build::mac(&mac[0]), &*build::mac(&mac[1]));
        let (sha, tha, explanation) = (&*sha, &*tha, &*explanation);
        let events = &mut self.env.logs.events;
        if !explanation.is_empty() {
            if events.wants::<BadArp<'_>>() {
                events.raise(&BadArp { spa, sha, tpa, tha, explanation });
            }
        } else if operation == 1 {
            if events.wants::<ArpRequest<'_>>() {
                events.raise(&ArpRequest { mac_src, mac_dst, spa, sha, tpa, tha });
            }
        } else if events.wants::<ArpReply<'_>>() {
            events.raise(&ArpReply { mac_src, mac_dst, spa, sha, tpa, tha });
        }
    }
}

/// Records the fields that only the header of a SYN contains, for the event raised when the segment
/// changes the state of the connection.
#[cold]
#[inline(never)]
pub(crate) fn before_syn(
    session: &mut Session<'_>,
    (ip, from, s): (&Ip<'_>, Dir, &gannet_wire::Tcp<'_>),
) {
    if session.wants::<ConnectionSynPacket>() {
        session.env.syn = Some(build::syn(ip, from.is_orig(), s.window, s.options));
    }
}

/// Raises the events of a connection that a timer ends because it is closed or idle.
#[cold]
#[inline(never)]
pub(crate) fn timed_out(session: &mut Session<'_>, conn: &Conn, tcp: Option<&Tcp>, idle: bool) {
    session.mention(tcp);
    let delayed = tcp.filter(|_| !idle).and_then(Tcp::ended_after);
    if !idle && tcp.is_some_and(is_attempt) {
        session.raise(conn, |c| ConnectionAttempt { c });
    } else if delayed == Some(Delayed::PartialClose) {
        session.raise(conn, |c| ConnectionPartialClose { c });
    } else if delayed == Some(Delayed::Reset) {
        session.raise(conn, |c| ConnectionReset { c });
    } else {
        session.raise(conn, |c| ConnectionTimeout { c });
    }
    if idle && conn.check_every == 0 {
        session.raise(conn, |c| ConnectionInactive { c });
    }
}

/// Whether the originator waits for a reply to its SYN.
fn is_attempt(tcp: &Tcp) -> bool {
    let [orig, resp] = [Dir::Orig, Dir::Resp].map(|side| tcp.endpoint(side).state);
    matches!(orig, State::SynSent | State::SynAckSent) && resp == State::Inactive
}

/// Raises the events of a TCP connection that is open at the end of input.
#[cold]
#[inline(never)]
pub(crate) fn pending(session: &mut Session<'_>, conn: &Conn, tcp: Option<&Tcp>, is_due: bool) {
    // The last packet may have an earlier time than the one before, by more than the timeout.
    if is_due && conn.check_every == 0 && conn.last + conn.timeout() <= session.now {
        return timed_out(session, conn, tcp, true);
    }
    let Some(tcp) = tcp else {
        // Zeek fires the timers of DNS and RPC at the end of input.
        if conn.proto == Proto::Udp && conn.check_every > 0 {
            session.raise(conn, |c| ConnectionTimeout { c });
        }
        return;
    };
    session.mention(Some(tcp));
    if is_attempt(tcp) {
        // Zeek fires the timers of connection attempts at the end of input.
        session.raise(conn, |c| ConnectionAttempt { c });
        return;
    }
    if tcp.is_half_reset() {
        // Zeek fires the timers of resets at the end of input.
        session.raise(conn, |c| ConnectionReset { c });
    } else if tcp.is_pending() {
        session.raise(conn, |c| ConnectionPending { c });
    }
}

/// Raises the events of an ICMP message of a connection.
#[cold]
#[inline(never)]
pub(crate) fn icmp(session: &mut Session<'_>, conn: &mut Conn, ip: &Ip<'_>, icmp: &Icmp<'_>) {
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
            if session.wants::<IcmpRouterSolicitation<'_>>() {
                let options = nd_options(session, conn, data);
                session.raise(conn, |c| IcmpRouterSolicitation { c, info, options });
            }
        }
        (true, 134..=137) if data.len() < target_bytes(icmp.kind) => {
            let name = match icmp.kind {
                134 if session.wants::<IcmpRouterAdvertisement<'_>>() => "icmp6_ra_bad_opt_offset",
                135 if session.wants::<IcmpNeighborSolicitation<'_>>() => "icmp6_ns_bad_opt_offset",
                136 if session.wants::<IcmpNeighborAdvertisement<'_>>() => {
                    "icmp6_na_bad_opt_offset"
                }
                137 if session.wants::<IcmpRedirect<'_>>() => "icmp6_redirect_bad_opt_offset",
                _ => return,
            };
            let (env, need) = (&mut *session.env, target_bytes(icmp.kind));
            let addl = format!("{need} (length {})", data.len());
            let faults = PacketWeird { name, addl: &addl, source: Some("ICMP"), in_tunnel: false };
            env.weirds.packet(&mut env.logs, session.now, &faults);
        }
        (true, 134) if session.wants::<IcmpRouterAdvertisement<'_>>() => {
            let millis = |at: usize| {
                let four = data.get(at..at + 4).and_then(|b| b.try_into().ok());
                let number = u32::from_be_bytes(four.unwrap_or_default());
                Interval::from_nanos(i64::from(number) * 1_000_000)
            };
            let options = nd_options(session, conn, rest(8));
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
                options,
            });
        }
        (true, 135) if session.wants::<IcmpNeighborSolicitation<'_>>() => {
            let options = nd_options(session, conn, rest(16));
            session.raise(conn, |c| IcmpNeighborSolicitation { c, info, tgt: target(0), options });
        }
        (true, 136) if session.wants::<IcmpNeighborAdvertisement<'_>>() => {
            let options = nd_options(session, conn, rest(16));
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
        (true, 137) if session.wants::<IcmpRedirect<'_>>() => {
            let options = nd_options(session, conn, rest(32));
            let (tgt, dest) = (target(0), target(16));
            session.raise(conn, |c| IcmpRedirect { c, info, tgt, dest, options });
        }
        (true, 134..=137) => {}
        (true, 131) if data.len() >= 16 => {
            session.raise(conn, |c| IcmpMldReport1 { c, group_addr: target(0) });
        }
        (true, 132) if data.len() >= 16 => {
            session.raise(conn, |c| IcmpMldDone1 { c, group_addr: target(0) });
        }
        (true, 143) if session.wants::<IcmpMldReport2<'_>>() => {
            if let Some(groups) = build::mld_records(icmp.rest as u16, data) {
                session.raise(conn, |c| IcmpMldReport2 { c, groups });
            }
        }
        (true, 131 | 132 | 143) => {}
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

/// Number of bytes between the header and the options of a neighbor discovery message.
fn target_bytes(kind: u8) -> usize {
    match kind {
        134 => 8,
        137 => 32,
        _ => 16,
    }
}

/// Parses the options of a neighbor discovery message; reports a truncated option.
fn nd_options<'a>(session: &mut Session<'_>, conn: &mut Conn, data: &'a [u8]) -> Vec<NdOption<'a>> {
    let (options, weird) = build::nd_options(data);
    if let Some(name) = weird {
        session.weird(conn, name, "", "ICMP");
    }
    options
}
