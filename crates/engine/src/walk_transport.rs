//! The way of a packet, further: its transport, its connection, and what that does with it.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_flow::Hash;
use gannet_flow::Key;
use gannet_flow::is_power_of_ten;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Segment;
use gannet_flow::tcp::flag;
use gannet_protocols::conn_state::events::ConnectionReused;
use gannet_protocols::hub;
use gannet_protocols::registry::is_likely_server_port;
use gannet_wire::Ip;
use gannet_wire::Scope;
use gannet_wire::Weird;
use gannet_wire::checksum;

use crate::packet_events;
use crate::shard::Shard;
use crate::steer::Datagram;
use crate::tunnels::Encapsulation;
use crate::walk::TOO_MANY_LAYERS;

/// The analyzer of transports that nothing reads.
const UNKNOWN_TRANSPORT: &str = "UNKNOWN_IP_TRANSPORT";

/// Bit of a UDP connection's `seen` for `D`.
const UDP_DATA_BIT: u32 = 3;

/// What the table has for a packet.
struct Known {
    hash: Hash,
    at: Option<Place>,
}

/// Where a packet's connection is, who of its ends sent the packet, and whether it was always outside of
/// tunnels.
#[derive(Clone, Copy)]
struct Place {
    index: u32,
    from: Dir,
    usual: bool,
}

impl Shard {
    /// The connection of a packet that has no ports, and the packet's direction.
    fn connection(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        one_way: bool,
        around: &Encapsulation,
    ) -> (u32, Dir) {
        let known = self.look_up(&Key::new(id, ip.protocol, one_way));
        self.found(id, ip, proto, (one_way, false), around, known, || false)
    }

    /// What is known of a key.
    #[inline(always)]
    fn look_up(&self, key: &Key) -> Known {
        let (hash, found) = self.table.look_up(key);
        let at =
            found.map(|f| Place { index: f.index, from: f.from, usual: f.slot.ext.is_usual() });
        Known { hash, at }
    }

    /// The connection of a packet and the packet's direction, once it was looked for.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "all there is to say of a new connection")]
    fn found(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        (one_way, hub): (bool, bool),
        around: &Encapsulation,
        Known { hash, at }: Known,
        flip: impl FnOnce() -> bool,
    ) -> (u32, Dir) {
        let ordinal = self.next_ordinal();
        if let Some(Place { index, from, usual }) = at {
            if !usual || around.depth() > 0 {
                self.check_around(index, around);
            }
            return (index, from);
        }
        let flags = (one_way, hub, flip());
        self.create((hash, ordinal), id, proto, ip.protocol, flags, around)
    }

    /// A TCP segment; returns whether its header is there.
    pub(crate) fn tcp(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) -> bool {
        let t = match gannet_wire::tcp(ip) {
            Ok(t) => t,
            Err(w) => return self.odd_tcp(&w, ip, all, around),
        };
        let segment = Segment {
            seq: t.seq,
            ack: t.ack,
            flags: t.flags.0,
            window: t.window,
            options: t.options,
            data: t.payload,
            len: t.payload_len,
        };
        let id = ConnId { orig_h: ip.src, orig_p: t.src_port, resp_h: ip.dst, resp_p: t.dst_port };
        let Some(hub) = self.steer(&id, ip, Proto::Tcp, None, all, around) else { return true };
        let key = Key::new(&id, ip.protocol, false).of_hub(hub);
        let mut known = self.look_up(&key);
        if segment.flags & flag::SYN != 0 {
            known.at = known.at.filter(|at| !self.ends_for(at.index, &segment));
        }
        let (index, from) = self.found(&id, ip, Proto::Tcp, (false, hub), around, known, || {
            is_flipped(&id, segment.flags)
        });
        let observed = self.env.logs.events.any();
        if observed {
            self.raise_new_packet(index, ip);
            if self.skips(index) {
                return true;
            }
        }
        let bad = !self.options.ignore_checksums
            && ip.is_complete()
            && checksum::tcp(ip) == gannet_wire::Checksum::Invalid;
        self.keeper.report.wrong_checksums += u64::from(bad);
        let (time, ip_bytes) = (self.time, ip.total_len);
        let full = !bad && self.layers >= gannet_wire::MAX_DEPTH;
        let limits = self.streams;
        let held = self.with_packet(index, |conn, tcp, session| {
            let tcp = tcp.as_mut()?;
            if bad {
                session.weird(conn, "bad_TCP_checksum", "", "TCP");
                tcp.bad_checksum(conn, from);
                return None;
            }
            let before = tcp.held();
            let states = [tcp.endpoint(Dir::Orig).state, tcp.endpoint(Dir::Resp).state];
            if observed {
                packet_events::before_segment(session, conn, tcp, (ip, from, &segment));
            }
            let from = tcp.segment(conn, time, from, &segment, &limits, session);
            conn.count_packet(from, ip_bytes);
            if observed {
                packet_events::after_segment(session, conn, tcp, states, (from, &segment));
            }
            let after = tcp.held();
            (before != after).then_some((before, after))
        });
        if let Some((before, after)) = held.flatten()
            && let Some(slot) = self.table.get(index)
        {
            let pair = crate::state::pair(&slot.conn);
            self.keeper.hold(before, after, slot.number, index, pair);
            self.skip_holes_of_pairs();
        }
        if full {
            self.no_room_above(index, ip, "TCP", around);
        }
        if observed && !bad {
            self.check_thresholds(index, from);
            self.raise_contents(index, segment.data);
        }
        true
    }

    /// Whatever a transport carries is a layer too many, which is told even where nothing would be
    /// looked for.
    #[cold]
    fn no_room_above(
        &mut self,
        index: u32,
        ip: &Ip<'_>,
        source: &'static str,
        around: &Encapsulation,
    ) {
        if let Some(slot) = self.table.get_mut(index) {
            slot.conn.note_limit();
        }
        self.flow_weird(TOO_MANY_LAYERS, ip, source, around);
    }

    /// A TCP segment whose header does not hold. As long as the ports are there, there is a connection.
    #[cold]
    fn odd_tcp(
        &mut self,
        odd: &Weird,
        ip: &Ip<'_>,
        all: Datagram<'_>,
        around: &Encapsulation,
    ) -> bool {
        if odd.scope != Scope::Connection {
            self.weird(odd, around, Some(ip));
            return false;
        }
        let two = |at: usize| ip.payload.get(at..at + 2).and_then(|b| b.try_into().ok());
        let port = |at| two(at).map_or(0, u16::from_be_bytes);
        let seq =
            ip.payload.get(4..8).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes);
        let flags = ip.payload.get(13).copied().unwrap_or_default();
        let id = ConnId { orig_h: ip.src, orig_p: port(0), resp_h: ip.dst, resp_p: port(2) };
        let Some(hub) = self.steer(&id, ip, Proto::Tcp, None, all, around) else { return true };
        let key = Key::new(&id, ip.protocol, false).of_hub(hub);
        let mut known = self.look_up(&key);
        // A SYN whose options do not hold begins another connection nevertheless.
        let is_header = ip.payload.get(12).is_some_and(|words| words >> 4 >= 5);
        if flags & flag::SYN != 0 && is_header {
            let segment =
                Segment { seq, ack: 0, flags, window: 0, options: &[], data: &[], len: 0 };
            known.at = known.at.filter(|at| !self.ends_for(at.index, &segment));
        }
        let (index, _) =
            self.found(&id, ip, Proto::Tcp, (false, hub), around, known, || is_flipped(&id, flags));
        self.conn_weird(index, odd);
        self.settle(index);
        true
    }

    /// Whether a SYN begins another connection in place of the one that has its hosts and ports, which
    /// ends then.
    fn ends_for(&mut self, index: u32, syn: &Segment<'_>) -> bool {
        let time = self.time;
        let reuse = self.with_session(index, |conn, tcp, session| {
            tcp.as_mut().is_some_and(|tcp| tcp.is_reuse(conn, time, syn, session))
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

    /// A UDP datagram; returns whether its header is there.
    pub(crate) fn udp(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) -> bool {
        let parsed = gannet_wire::udp(ip);
        let udp = match &parsed {
            Ok(udp) => udp,
            Err(w) => {
                self.weird(w, around, Some(ip));
                return false;
            }
        };
        let id =
            ConnId { orig_h: ip.src, orig_p: udp.src_port, resp_h: ip.dst, resp_p: udp.dst_port };
        let odd = hub::may_be_by_content(udp.payload).then_some(udp.payload);
        let Some(hub) = self.steer(&id, ip, Proto::Udp, odd, all, around) else { return true };
        let key = Key::new(&id, ip.protocol, false).of_hub(hub);
        let known = self.look_up(&key);
        let (index, from) = self.found(&id, ip, Proto::Udp, (false, hub), around, known, || {
            let likely = |p| is_likely_server_port(Proto::Udp, p);
            likely(id.orig_p) && !likely(id.resp_p)
        });
        let observed = self.env.logs.events.any();
        if observed {
            self.raise_new_packet(index, ip);
            if self.skips(index) {
                return true;
            }
        }
        // Of a packet that was cut, even behind the datagram, Zeek does not ask.
        let is_cut = all.wire_len as usize > all.bytes.len();
        let verify = !self.options.ignore_checksums && !is_cut;
        if verify && checksum::udp(ip) == gannet_wire::Checksum::Invalid {
            self.bad_udp_checksum(index, from);
            self.settle(index);
            return true;
        }
        if let Some(w) = udp.length_mismatch() {
            self.conn_weird(index, &w);
        }
        let Some(slot) = self.table.get_mut(index) else { return true };
        slot.conn.last = self.time;
        slot.conn.note_once(from, UDP_DATA_BIT, b'D');
        slot.conn.count_udp(from, udp.stated_len());
        if observed {
            self.raise_contents(index, udp.payload);
            self.raise_datagram(index, from, udp.payload);
        }
        let deeper = self.deeper(ip, "UDP", around);
        // Tunnels are of the hub by their ports, or look like what they are.
        if deeper && (hub || odd.is_some()) {
            self.udp_tunnel(index, from, ip, udp, around);
        }
        self.with_packet(index, |conn, _, session| {
            if !deeper {
                conn.note_limit();
            }
            session.datagram(conn, from, udp.payload, udp.payload_len);
            conn.count_packet(from, ip.total_len);
        });
        if observed {
            self.check_thresholds(index, from);
        }
        true
    }

    #[cold]
    fn bad_udp_checksum(&mut self, index: u32, from: Dir) {
        self.keeper.report.wrong_checksums += 1;
        let Some(slot) = self.table.get_mut(index) else { return };
        let count = &mut slot.ext.rare().bad_checksums[from.index()];
        *count = count.saturating_add(1);
        let note = is_power_of_ten(*count);
        self.with_session(index, |conn, _, session| {
            session.weird(conn, "bad_UDP_checksum", "", "UDP");
            if note {
                conn.note(from, b'C');
            }
        });
    }

    /// An ICMP message; returns whether its header is there.
    pub(crate) fn icmp(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) -> bool {
        let icmp = match gannet_wire::icmp(ip) {
            Ok(icmp) => icmp,
            Err(w) => {
                self.weird(&w, around, Some(ip));
                return false;
            }
        };
        let counterpart = icmp.counterpart();
        let id = ConnId {
            orig_h: ip.src,
            orig_p: u16::from(icmp.kind),
            resp_h: ip.dst,
            resp_p: u16::from(counterpart.value),
        };
        if self.steer(&id, ip, Proto::Icmp, None, all, around).is_none() {
            return true;
        }
        let (index, from) = self.connection(&id, ip, Proto::Icmp, counterpart.one_way, around);
        let observed = self.env.logs.events.any();
        if observed {
            self.raise_new_packet(index, ip);
            if self.skips(index) {
                return true;
            }
        }
        let bad =
            !self.options.ignore_checksums && checksum::icmp(ip) == gannet_wire::Checksum::Invalid;
        self.keeper.report.wrong_checksums += u64::from(bad);
        let (time, ip_bytes, len) = (self.time, ip.total_len, icmp.payload_len);
        let complete = icmp.payload.len() as u64 >= u64::from(len);
        let fault = icmp.report_fault();
        if let Some(noting) = &mut self.noting
            && icmp.is_error()
        {
            noting.error(self.packet_number, icmp.payload);
        }
        let full = !bad && self.layers >= gannet_wire::MAX_DEPTH;
        self.with_packet(index, |conn, _, session| {
            if bad {
                session.weird(conn, "bad_ICMP_checksum", "", "ICMP");
                return;
            }
            conn.last = time;
            conn.count_payload(from, len);
            if complete {
                conn.count_packet(from, ip_bytes);
            }
            if observed {
                packet_events::icmp(session, conn, ip, &icmp);
            }
            if let Some(name) = fault {
                session.weird(conn, name, "", "ICMP");
            }
        });
        if observed && !bad {
            self.raise_contents(index, icmp.payload);
        }
        if full {
            self.no_room_above(index, ip, "ICMP", around);
        }
        true
    }

    /// Any other transport: who talked to whom, and how much.
    pub(crate) fn unknown(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) {
        let id = ConnId { orig_h: ip.src, orig_p: 0, resp_h: ip.dst, resp_p: 0 };
        if self.steer(&id, ip, Proto::Unknown, None, all, around).is_none() {
            return;
        }
        let (index, from) = self.connection(&id, ip, Proto::Unknown, false, around);
        if self.env.logs.events.any() {
            self.raise_new_packet(index, ip);
            self.raise_contents(index, ip.payload);
        }
        let Some(slot) = self.table.get_mut(index) else { return };
        slot.conn.last = self.time;
        slot.conn.count_packet(from, ip.total_len);
        self.settle(index);
        if let Some(trail) = &mut self.trail {
            trail.push(UNKNOWN_TRANSPORT);
        }
        self.unread(Some(UNKNOWN_TRANSPORT), u32::from(ip.protocol), ip.payload);
    }

    #[cold]
    fn conn_weird(&mut self, index: u32, w: &Weird) {
        let addl = w.addl.to_string();
        self.with_session(index, |conn, _, session| session.weird(conn, w.name, &addl, w.source));
    }
}

/// Whether the first segment of a connection that is seen comes from its responder.
fn is_flipped(id: &ConnId, flags: u8) -> bool {
    let syn = flags & flag::SYN != 0;
    if syn && flags & flag::ACK == 0 {
        return false;
    }
    let likely = |p| is_likely_server_port(Proto::Tcp, p);
    // Where both ports may be a server's, a SYN-ACK is left alone (stealth scans), and of others the
    // lower port is the server's.
    likely(id.orig_p) && (!likely(id.resp_p) || !syn && id.orig_p < id.resp_p)
}
