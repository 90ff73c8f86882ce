//! Packet processing, continued: transport and connection.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_flow::Hash;
use gannet_flow::Key;
use gannet_flow::is_power_of_ten;
use gannet_flow::tcp::Consumer;
use gannet_protocols::Env;
use gannet_protocols::conn_state::events::ConnectionReused;
use gannet_protocols::global;
use gannet_protocols::packet::events::UdpMultipleChecksumErrors;
use gannet_wire::Error;
use gannet_wire::Ip;
use gannet_wire::Tcp;
use gannet_wire::TcpFlags;
use gannet_wire::checksum;

use crate::dissect::TOO_MANY_LAYERS;
use crate::packet_events;
use crate::route::Captured;
use crate::shard::Shard;
use crate::tunnels::Encapsulation;
use crate::weirds::Named;
use crate::weirds::named;

/// The name of the analyzer of unknown transports.
pub(crate) const UNKNOWN_TRANSPORT: &str = "UNKNOWN_IP_TRANSPORT";

/// Bit of `seen`: for UDP, that history has `D`; for ICMP, that a side sent a message, if events
/// show that.
const UDP_DATA_BIT: u32 = 3;

/// The result of looking up a packet's connection.
struct Lookup {
    hash: Hash,
    sender: Option<PacketSender>,
}

/// The index of a packet's connection, the side that sent the packet, and whether no rare data is
/// set for the connection.
#[derive(Clone, Copy)]
struct PacketSender {
    index: u32,
    from: Dir,
    is_usual: bool,
}

impl Shard {
    /// Looks up or creates the connection of a packet without ports; returns it with the side that
    /// sent the packet.
    fn connection(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        one_way: bool,
        encapsulation: &Encapsulation,
    ) -> (u32, Dir) {
        let known = self.look_up(&Key::new(id, ip.protocol, one_way).of_vlans(self.vlans()));
        self.resolve(id, ip, proto, (one_way, false), encapsulation, known, |_| false)
    }

    /// Looks up a key in the connection table.
    #[inline(always)]
    fn look_up(&self, key: &Key) -> Lookup {
        let (hash, found) = self.table.look_up(key);
        let sender = found.map(|f| PacketSender {
            index: f.index,
            from: f.from,
            is_usual: f.slot.ext.is_usual(),
        });
        Lookup { hash, sender }
    }

    /// Completes a lookup: returns the connection of a packet, created if necessary, and the side
    /// that sent the packet.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "all there is to say of a new connection")]
    fn resolve(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        (one_way, global): (bool, bool),
        encapsulation: &Encapsulation,
        Lookup { hash, sender }: Lookup,
        flip: impl FnOnce(&Env) -> bool,
    ) -> (u32, Dir) {
        let ordinal = self.next_ordinal();
        if let Some(PacketSender { index, from, is_usual }) = sender {
            if !is_usual || encapsulation.depth() > 0 {
                self.check_encapsulation(index, encapsulation);
            }
            return (index, from);
        }
        let flags = (one_way, global, flip(&self.env));
        self.create((hash, ordinal), id, proto, ip, flags, encapsulation)
    }

    /// Processes a TCP segment; returns whether its header is complete.
    pub(crate) fn tcp<const EVENTS: bool>(
        &mut self,
        ip: &Ip<'_>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        // By reference, because a copy is measurably slower.
        let read = gannet_wire::tcp(ip);
        let segment = match &read {
            Ok(segment) => segment,
            Err(error) => return self.invalid(error, ip, all, encapsulation),
        };
        let id = tcp_id(ip, segment);
        let Some(global) = self.route(&id, ip, Proto::Tcp, None, all, encapsulation) else {
            return true;
        };
        let key = Key::new(&id, ip.protocol, false).of_global(global).of_vlans(if EVENTS {
            self.vlans()
        } else {
            0
        });
        let mut known = self.look_up(&key);
        if segment.flags.syn() {
            known.sender = known.sender.filter(|at| !self.ends_for(at.index, segment));
        }
        if EVENTS && known.sender.is_none() && !self.beginnings.with(segment.flags) {
            return true;
        }
        let (index, from) =
            self.resolve(&id, ip, Proto::Tcp, (false, global), encapsulation, known, |env| {
                is_flipped(env, &id, segment.flags)
            });
        let observed = EVENTS && self.env.logs.events.any();
        if observed {
            self.raise_segment_options(segment.options);
            self.raise_new_packet(index, from, ip);
            if self.skips(index) {
                return true;
            }
            self.raise_contents(index, segment.payload);
        }
        let bad = self.verifies(ip.src)
            && ip.is_complete()
            && checksum::tcp(ip) == gannet_wire::Checksum::Invalid;
        self.evictor.report.wrong_checksums += u64::from(bad);
        let (time, ip_bytes) = (self.time, ip.total_len);
        let full = !bad && self.layers >= gannet_wire::MAX_DEPTH;
        let limits = self.streams;
        let held = self.with_packet::<EVENTS, _>(index, |conn, tcp, session| {
            let tcp = tcp.as_mut()?;
            if bad {
                session.weird(conn, "bad_TCP_checksum", "", "TCP");
                tcp.bad_checksum(conn, from, session);
                return None;
            }
            let before = tcp.buffered_bytes();
            if observed {
                if segment.flags.syn() {
                    packet_events::before_syn(session, (ip, from, segment));
                }
                if session.matches_packets() {
                    session.mention(Some(tcp));
                    if tcp.misses_syn(from, segment) {
                        conn.set_side_unmatched(from);
                    }
                    session.note_packet(conn, from, ip);
                }
            }
            let patience = conn.timeout();
            let from = match EVENTS {
                true => tcp.segment(conn, time, from, segment, &limits, session),
                false => tcp.unobserved_segment(conn, time, from, segment, &limits, session),
            };
            if observed {
                session.match_noted(conn);
            }
            if observed && conn.timeout() != patience {
                // Scripts set the duration.
                let seconds = session.env.setting("tcp_inactivity_timeout", 0);
                if seconds > 0 {
                    conn.set_timeout(u16::try_from(seconds).unwrap_or(u16::MAX));
                }
            }
            conn.count_packet(from, ip_bytes);
            let after = tcp.buffered_bytes();
            (before != after).then_some((before, after))
        });
        if let Some((before, after)) = held.flatten()
            && let Some(slot) = self.table.get(index)
        {
            let pair = || crate::state::pair(&slot.conn);
            self.evictor.set_buffered(before, after, slot.number, index, pair);
            self.skip_holes_of_pairs();
        }
        if full {
            self.exceeds_depth_above(index, ip, "TCP", encapsulation);
        }
        if observed && !bad {
            self.check_thresholds(index, from, u64::from(ip.total_len));
        }
        true
    }

    /// Whether the payload of a transport would exceed the maximum number of layers, which is
    /// reported even if no analyzer would run.
    #[cold]
    fn exceeds_depth_above(
        &mut self,
        index: u32,
        ip: &Ip<'_>,
        source: &'static str,
        encapsulation: &Encapsulation,
    ) {
        if let Some(slot) = self.table.get_mut(index) {
            slot.conn.note_limit();
        }
        self.flow_weird(TOO_MANY_LAYERS, ip, source, encapsulation);
    }

    /// Processes a transport with an invalid header; returns whether the packet has a connection:
    /// only a TCP segment with a complete fixed header does.
    #[cold]
    fn invalid(
        &mut self,
        error: &Error,
        ip: &Ip<'_>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        if !matches!(error, Error::TcpHeaderTooShort | Error::TruncatedTcpOptions) {
            self.weird(error, encapsulation, Some((ip.src, ip.dst)));
            return false;
        }
        let segment = Tcp::fixed(ip.payload);
        let id = tcp_id(ip, &segment);
        let Some(global) = self.route(&id, ip, Proto::Tcp, None, all, encapsulation) else {
            return true;
        };
        let key = Key::new(&id, ip.protocol, false).of_global(global).of_vlans(self.vlans());
        let mut known = self.look_up(&key);
        // A SYN with invalid options starts another connection nevertheless.
        if segment.flags.syn() && *error == Error::TruncatedTcpOptions {
            known.sender = known.sender.filter(|at| !self.ends_for(at.index, &segment));
        }
        let (index, from) =
            self.resolve(&id, ip, Proto::Tcp, (false, global), encapsulation, known, |env| {
                is_flipped(env, &id, segment.flags)
            });
        if self.env.logs.events.any() {
            self.raise_new_packet(index, from, ip);
        }
        self.conn_weird(index, error);
        self.apply_requests(index);
        true
    }

    /// Whether a SYN starts another connection with the same endpoints; if so, ends the old one.
    fn ends_for(&mut self, index: u32, syn: &Tcp<'_>) -> bool {
        let (time, delays) = (self.time, self.streams.delays);
        let reuse = self.with_session(index, |conn, tcp, session| {
            tcp.as_mut().is_some_and(|tcp| tcp.is_reuse(conn, time, syn, &delays, session))
        });
        if reuse == Some(true) {
            self.with_session(index, |conn, tcp, session| {
                session.mention(tcp.as_deref());
                session.raise(conn, |c| ConnectionReused { c });
            });
            self.remove(index);
        }
        reuse == Some(true)
    }

    /// Processes a UDP datagram; returns whether its header is complete.
    pub(crate) fn udp<const EVENTS: bool>(
        &mut self,
        ip: &Ip<'_>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        // By reference, because a copy is measurably slower.
        let read = gannet_wire::udp(ip);
        let udp = match &read {
            Ok(udp) => udp,
            Err(error) => return self.invalid(error, ip, all, encapsulation),
        };
        let id =
            ConnId { orig_h: ip.src, orig_p: udp.src_port, resp_h: ip.dst, resp_p: udp.dst_port };
        let faults = global::may_be_by_content(udp.payload).then_some(udp.payload);
        let Some(global) = self.route(&id, ip, Proto::Udp, faults, all, encapsulation) else {
            return true;
        };
        // Ports set by scripts: then only one shard runs.
        let global = global || EVENTS && self.env.may_be_own_tunnel(id.orig_p, id.resp_p);
        let key = Key::new(&id, ip.protocol, false).of_global(global).of_vlans(if EVENTS {
            self.vlans()
        } else {
            0
        });
        let known = self.look_up(&key);
        let (index, from) =
            self.resolve(&id, ip, Proto::Udp, (false, global), encapsulation, known, |env| {
                let likely = |p| env.is_likely_server_port(Proto::Udp, p);
                likely(id.orig_p) && !likely(id.resp_p)
            });
        let observed = EVENTS && self.env.logs.events.any();
        if observed {
            self.raise_new_packet(index, from, ip);
            if self.skips(index) {
                return true;
            }
            self.raise_contents(index, udp.payload);
        }
        // Like Zeek, this does not verify truncated packets, even if only bytes after the datagram
        // are missing.
        let has_overflowed = all.wire_len as usize > all.bytes.len();
        let verify = self.verifies(ip.src) && !has_overflowed;
        let verify =
            verify && !(EVENTS && self.ignores_vxlan_checksums && self.is_vxlan(ip, udp.dst_port));
        if verify && checksum::udp(ip) == gannet_wire::Checksum::Invalid {
            self.bad_udp_checksum(index, from);
            self.apply_requests(index);
            return true;
        }
        if let Some(error) = udp.len_fault() {
            self.conn_weird(index, &error);
        }
        let Some(slot) = self.table.get_mut(index) else { return true };
        slot.conn.last = self.time;
        slot.conn.note_once(from, UDP_DATA_BIT, b'D');
        slot.conn.count_udp(from, udp.stated_len());
        if observed {
            self.raise_datagram(index, from, udp.payload);
        }
        let deeper = self.deeper(ip, "UDP", encapsulation);
        // The global shard owns tunnels, by port or content.
        if deeper && (global || faults.is_some()) {
            self.udp_tunnel(index, from, ip, udp, encapsulation);
        }
        self.with_packet::<EVENTS, _>(index, |conn, _, session| {
            if !deeper {
                conn.note_limit();
            }
            if observed {
                session.match_packet(conn, from, ip);
                session.before_data(conn);
            }
            session.datagram(conn, from, (udp.payload, udp.payload_len), ip.total_len);
            if observed {
                session.match_data(conn, from, udp.payload);
            }
        });
        if observed {
            self.check_thresholds(index, from, u64::from(ip.total_len));
        }
        true
    }

    #[cold]
    fn is_vxlan(&self, ip: &Ip<'_>, port: u16) -> bool {
        self.env.tunnel_port(port) == gannet_wire::tunnel::port::VXLAN && checksum::may_be_vxlan(ip)
    }

    #[cold]
    fn bad_udp_checksum(&mut self, index: u32, from: Dir) {
        self.evictor.report.wrong_checksums += 1;
        let Some(slot) = self.table.get_mut(index) else { return };
        let count = &mut slot.ext.rare().bad_checksums[from.index()];
        *count = count.saturating_add(1);
        let times = *count;
        let note = is_power_of_ten(times);
        self.with_session(index, |conn, _, session| {
            session.weird(conn, "bad_UDP_checksum", "", "UDP");
            if note {
                conn.note(from, b'C');
                if times > 1 {
                    let (is_orig, threshold) = (from.is_orig(), u64::from(times));
                    session.raise(conn, |u| UdpMultipleChecksumErrors { u, is_orig, threshold });
                }
            }
        });
    }

    /// Processes an ICMP message; returns whether its header is complete.
    pub(crate) fn icmp(
        &mut self,
        ip: &Ip<'_>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        // By reference, because a copy is measurably slower.
        let read = gannet_wire::icmp(ip);
        let icmp = match &read {
            Ok(icmp) => icmp,
            Err(error) => return self.invalid(error, ip, all, encapsulation),
        };
        let counterpart = icmp.counterpart();
        let id = ConnId {
            orig_h: ip.src,
            orig_p: u16::from(icmp.kind),
            resp_h: ip.dst,
            resp_p: u16::from(counterpart.value),
        };
        if self.route(&id, ip, Proto::Icmp, None, all, encapsulation).is_none() {
            return true;
        }
        let (index, from) =
            self.connection(&id, ip, Proto::Icmp, counterpart.one_way, encapsulation);
        let observed = self.env.logs.events.any();
        if observed {
            self.raise_new_packet(index, from, ip);
            if self.skips(index) {
                return true;
            }
            self.raise_contents(index, icmp.payload);
        }
        let bad = self.verifies(ip.src) && checksum::icmp(ip) == gannet_wire::Checksum::Invalid;
        self.evictor.report.wrong_checksums += u64::from(bad);
        let (time, ip_bytes, len) = (self.time, ip.total_len, icmp.payload_len);
        let complete = icmp.payload.len() as u64 >= u64::from(len);
        let fault = icmp.report_fault();
        if let Some(index_reporter) = &mut self.index_reporter
            && icmp.is_error()
        {
            index_reporter.error(self.packet_number, icmp.payload);
        }
        let full = !bad && self.layers >= gannet_wire::MAX_DEPTH;
        self.with_packet::<true, _>(index, |conn, _, session| {
            if bad {
                session.weird(conn, "bad_ICMP_checksum", "", "ICMP");
                return;
            }
            conn.last = time;
            conn.count_payload(from, len);
            if observed {
                conn.note_flag(UDP_DATA_BIT + 16 * from.index() as u32);
                session.match_packet(conn, from, ip);
                packet_events::icmp(session, conn, ip, icmp);
            }
            if let Some(error) = &fault {
                let Named { name, addl, source, .. } = named(error);
                session.weird(conn, name, &addl, source);
            }
            // Events of the message show the connection without this packet, as in Zeek.
            if complete {
                conn.count_packet(from, ip_bytes);
            }
            if observed {
                session.match_data(conn, from, icmp.payload);
            }
        });
        if full {
            self.exceeds_depth_above(index, ip, "ICMP", encapsulation);
        }
        if observed && !bad {
            self.check_thresholds(index, from, u64::from(ip_bytes));
        }
        true
    }

    /// Processes any other transport: only records endpoints and counts.
    pub(crate) fn unknown(
        &mut self,
        ip: &Ip<'_>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) {
        if self.ignores_unknown {
            return;
        }
        let id = ConnId { orig_h: ip.src, orig_p: 0, resp_h: ip.dst, resp_p: 0 };
        if self.route(&id, ip, Proto::Unknown, None, all, encapsulation).is_none() {
            return;
        }
        let (index, from) = self.connection(&id, ip, Proto::Unknown, false, encapsulation);
        if self.env.logs.events.any() {
            self.raise_new_packet(index, from, ip);
            self.raise_contents(index, ip.payload);
        }
        let Some(slot) = self.table.get_mut(index) else { return };
        slot.conn.last = self.time;
        slot.conn.count_packet(from, ip.total_len);
        self.apply_requests(index);
        if self.env.logs.events.any() {
            self.check_thresholds(index, from, u64::from(ip.total_len));
        }
        if let Some(trail) = &mut self.trail {
            trail.push(UNKNOWN_TRANSPORT);
        }
        self.report_unknown_protocol(Some(UNKNOWN_TRANSPORT), u32::from(ip.protocol), ip.payload);
    }

    #[cold]
    pub(crate) fn conn_weird(&mut self, index: u32, error: &Error) {
        let Named { name, addl, source, .. } = named(error);
        self.with_session(index, |conn, _, session| session.weird(conn, name, &addl, source));
    }
}

fn tcp_id(ip: &Ip<'_>, segment: &Tcp<'_>) -> ConnId {
    let (orig_p, resp_p) = (segment.src_port, segment.dst_port);
    ConnId { orig_h: ip.src, orig_p, resp_h: ip.dst, resp_p }
}

/// Whether the first seen segment of a connection comes from the responder.
fn is_flipped(env: &Env, id: &ConnId, flags: TcpFlags) -> bool {
    let syn = flags.syn();
    if syn && !flags.ack() {
        return false;
    }
    let likely = |p| env.is_likely_server_port(Proto::Tcp, p);
    // If both ports may be server ports, a SYN-ACK is not flipped (stealth scans); otherwise the
    // lower port is the server's.
    likely(id.orig_p) && (!likely(id.resp_p) || !syn && id.orig_p < id.resp_p)
}
