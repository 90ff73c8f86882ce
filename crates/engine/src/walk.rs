//! The way of a packet: link layer, IP, fragments, transport.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_flow::Hash;
use gannet_flow::Key;
use gannet_flow::is_power_of_ten;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Segment;
use gannet_flow::tcp::flag;
use gannet_protocols::hub;
use gannet_protocols::policy::unknown::Seen;
use gannet_protocols::registry::is_likely_server_port;
use gannet_protocols::weird::Oddity;
use gannet_wire::Frame;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::Scope;
use gannet_wire::Upper;
use gannet_wire::Weird;
use gannet_wire::checksum;
use gannet_wire::protocol;

use crate::shard::Shard;
use crate::steer::Datagram;
use crate::tunnels::Encapsulation;
use crate::walk_tunnel::TEREDO;

impl Shard {
    /// A frame as captured: the short way for what nearly all are, else layer by layer.
    #[inline]
    pub(crate) fn walk_link(&mut self, link_type: u16, data: &[u8], wire_len: u32) {
        let around = Encapsulation::default();
        if link_type == gannet_wire::link_type::ETHERNET
            && self.trail.is_none()
            && let Some((ip, bytes)) =
                gannet_wire::plain_ipv4(data, wire_len, !self.options.ignore_checksums)
        {
            self.layers = gannet_wire::PLAIN_LAYERS;
            let beyond = (data.len() - bytes.len()) as u32;
            let all = Datagram { bytes, wire_len: wire_len.saturating_sub(beyond) };
            self.walk_transport(&ip, all, &around);
            return;
        }
        self.layers = 0;
        self.walk_frame(link_type, data, wire_len, &around);
    }

    /// A frame, perhaps inside of tunnels: of those, the layers so far count on.
    pub(crate) fn walk_frame(
        &mut self,
        link_type: u16,
        data: &[u8],
        wire_len: u32,
        around: &Encapsulation,
    ) {
        // Nothing is allocated while nothing is odd.
        let mut odd = Vec::new();
        let layers = self.layers;
        if let Some(trail) = &mut self.trail {
            if layers == 0 {
                trail.clear();
            }
            gannet_wire::link_layers(link_type, data, &mut |name| trail.push(name));
        }
        let frame = gannet_wire::link_with(link_type, data, wire_len, layers, &mut |w| odd.push(w));
        for w in odd {
            self.weird(&w, around, None);
        }
        match &frame {
            Ok(frame) => {
                self.walk_network(frame, around);
            }
            Err(w) => self.weird(w, around, None),
        }
    }

    /// Whether the network layer and what it carries hold, by which an aggregate goes on.
    #[inline]
    fn walk_network(&mut self, frame: &Frame<'_>, around: &Encapsulation) -> bool {
        self.layers = frame.depth;
        match frame.network {
            Network::Ip(data) => self.walk_ip(data, frame.wire_len, around),
            Network::Arp(data) => self.walk_arp(data, frame.src_mac, around),
            Network::Aggregate(_) => {
                self.walk_aggregate(frame, around);
                true
            }
            Network::Other { ethertype, data } => {
                let layer = self.trail.as_deref().and_then(|t| t.last().copied());
                self.unread(layer, u32::from(ethertype), data);
                true
            }
            Network::Nothing => true,
        }
    }

    /// The frames of an aggregate, up to the first that does not hold. What is odd of them all is told
    /// of the hosts of the last that had any.
    #[cold]
    fn walk_aggregate(&mut self, frame: &Frame<'_>, around: &Encapsulation) {
        let verify = !self.options.ignore_checksums;
        let mut hosts = None;
        let mut frames = frame.subframes();
        while let Some(sub) = frames.next() {
            match sub {
                // They hold IP or ARP, never aggregates again.
                Ok(sub) => {
                    if let Network::Ip(data) = sub.network
                        && let Ok(ip) = gannet_wire::ip(data, sub.wire_len, verify)
                    {
                        hosts = Some((ip.src, ip.dst));
                    }
                    if !self.walk_network(&sub, around) {
                        frames.fail();
                    }
                }
                Err(w) => self.weird(&w.of(hosts), around, None),
            }
        }
    }

    /// Whether a packet's ARP part holds, and is from whom its frame says.
    pub(crate) fn walk_arp(
        &mut self,
        data: &[u8],
        src_mac: Option<[u8; 6]>,
        around: &Encapsulation,
    ) -> bool {
        match gannet_wire::arp(data) {
            Ok(arp) => arp.is_usual(src_mac.unwrap_or_default()),
            Err(w) => {
                self.weird(&w, around, None);
                false
            }
        }
    }

    /// An IP packet; returns whether it and its transport hold.
    pub(crate) fn walk_ip(&mut self, data: &[u8], wire_len: u32, around: &Encapsulation) -> bool {
        let verify = !self.options.ignore_checksums;
        if let Some(ip) = gannet_wire::plain_ip(data, wire_len, verify) {
            return self.walk_transport(&ip, Datagram { bytes: data, wire_len }, around);
        }
        let mut odd = Vec::new();
        let ip = gannet_wire::ip_with(data, wire_len, verify, &mut |w| odd.push(w));
        for w in odd {
            self.weird(&w, around, None);
        }
        // Where it lies: it is too large to be carried around.
        match &ip {
            Ok(ip) if ip.fragment.is_some() => {
                self.walk_fragment(ip, Datagram { bytes: data, wire_len }, around)
            }
            Ok(ip) => self.walk_transport(ip, Datagram { bytes: data, wire_len }, around),
            Err(w) => {
                self.weird(w, around, None);
                false
            }
        }
    }

    /// A piece of a datagram; with the last one the datagram goes on.
    fn walk_fragment(&mut self, ip: &Ip<'_>, piece: Datagram<'_>, around: &Encapsulation) -> bool {
        if !ip.is_complete() {
            self.flow_weird("incompletely_captured_fragment", ip, "IP", around);
            let first = ip.fragment.is_some_and(|f| f.offset == 0);
            return first && self.walk_transport(ip, piece, around);
        }
        let mut whole = Vec::new();
        let mut odd = Vec::new();
        let complete = self.fragments.add(self.now, ip, &mut whole, |name| odd.push(name));
        for name in odd {
            self.flow_weird(name, ip, "", around);
        }
        if !complete {
            return true;
        }
        let mut odd = Vec::new();
        let read = gannet_wire::ip_with(&whole, whole.len() as u32, false, &mut |w| odd.push(w));
        // Options may have come in pieces, too. That no length is told is no news of a large one.
        for w in odd.iter().filter(|w| w.scope != Scope::Packet) {
            self.weird(w, around, None);
        }
        // Sixteen bits tell the length; of a datagram beyond that they may say nothing at all.
        let too_short = match &read {
            Ok(whole) => whole.total_len < u32::from(whole.header_len),
            Err(weird) => weird.name == "invalid_IP_header_size",
        };
        if too_short {
            self.flow_weird("invalid_IP_header_size", ip, "IP", around);
            return false;
        }
        // A datagram whose pieces claim to be a piece goes no further.
        let Some(ip) = read.ok().filter(|ip| ip.fragment.is_none()) else { return true };
        let missing = std::mem::take(&mut self.missing);
        let bytes = whole.get(..ip.total_len as usize).unwrap_or(&whole);
        let all = Datagram { bytes, wire_len: bytes.len() as u32 };
        let holds = self.walk_transport(&ip, all, around);
        self.missing = missing;
        holds
    }

    /// What an IP packet carries; returns whether it holds.
    #[inline]
    fn walk_transport(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) -> bool {
        if ip.upper != Upper::Payload {
            return true;
        }
        if ip.protocol != protocol::NONE && !self.deeper(ip, "IP", around) {
            return false;
        }
        match ip.protocol {
            protocol::TCP => return self.tcp(ip, all, around),
            protocol::UDP => return self.udp(ip, all, around),
            protocol::ICMP | protocol::ICMP6 => return self.icmp(ip, all, around),
            protocol::IPV4 | protocol::IPV6 | protocol::GRE => self.ip_tunnel(ip, around),
            protocol::NONE if around.last().is_some_and(|t| t.kind == TEREDO) => {}
            protocol::NONE => {
                self.flow_weird("ipv6_no_next", ip, "IP", around);
                return false;
            }
            _ => {
                self.unknown(ip, all, around);
                return false;
            }
        }
        true
    }

    /// One layer more, above IP; too many are told of the packet that has them.
    #[inline]
    pub(crate) fn deeper(
        &mut self,
        ip: &Ip<'_>,
        source: &'static str,
        around: &Encapsulation,
    ) -> bool {
        if self.layers >= gannet_wire::MAX_DEPTH {
            self.flow_weird(TOO_MANY_LAYERS, ip, source, around);
            return false;
        }
        self.layers += 1;
        if let Some(trail) = &mut self.trail {
            trail.push(source);
        }
        true
    }

    /// One layer more, the first one of what a tunnel carries.
    pub(crate) fn deeper_inside(&mut self, source: &'static str, around: &Encapsulation) -> bool {
        if self.layers >= gannet_wire::MAX_DEPTH {
            let source = Some(source);
            let what =
                Oddity { name: TOO_MANY_LAYERS, addl: "", source, in_tunnel: around.depth() > 0 };
            let env = &mut self.env;
            env.weirds.packet(&mut env.logs, self.now, &what);
            return false;
        }
        self.layers += 1;
        if let Some(trail) = &mut self.trail {
            trail.push(source);
        }
        true
    }

    /// The connection of a packet that has no ports, and the packet's direction.
    fn connection(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        one_way: bool,
        around: &Encapsulation,
    ) -> (u32, Dir) {
        let key = Key::new(id, ip.protocol, one_way);
        let hash = self.table.hash(&key);
        let found = self.table.find(hash, &key);
        self.found(id, ip, proto, (one_way, false), around, (hash, found), || false)
    }

    /// The same, once it was looked for.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "all there is to say of a new connection")]
    fn found(
        &mut self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        (one_way, hub): (bool, bool),
        around: &Encapsulation,
        (hash, found): (Hash, Option<u32>),
        flip: impl FnOnce() -> bool,
    ) -> (u32, Dir) {
        let ordinal = self.next_ordinal();
        let index = found.unwrap_or_else(|| {
            let flags = (one_way, hub, flip());
            self.create((hash, ordinal), id, proto, ip.protocol, flags, around)
        });
        let Some(slot) = self.table.get(index) else { return (index, Dir::Orig) };
        let i = &slot.conn.id;
        let is_orig = i.orig_h == id.orig_h && i.orig_p == id.orig_p;
        if found.is_some() && !(around.depth() == 0 && slot.ext.is_usual()) {
            self.check_around(index, around);
        }
        (index, if is_orig { Dir::Orig } else { Dir::Resp })
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
        let hash = self.table.hash(&key);
        let mut found = self.table.find(hash, &key);
        if segment.flags & flag::SYN != 0 {
            found = found.filter(|index| !self.ends_for(*index, &segment));
        }
        let known = (hash, found);
        let (index, from) = self.found(&id, ip, Proto::Tcp, (false, hub), around, known, || {
            is_flipped(&id, segment.flags)
        });
        let bad = !self.options.ignore_checksums
            && ip.is_complete()
            && checksum::tcp(ip) == gannet_wire::Checksum::Invalid;
        let (time, ip_bytes) = (self.time, ip.total_len);
        let limits = self.streams;
        let held = self.with_packet(index, |conn, tcp, session| {
            let tcp = tcp.as_mut()?;
            if bad {
                session.weird(conn, "bad_TCP_checksum", "", "TCP");
                tcp.bad_checksum(conn, from);
                return None;
            }
            let before = tcp.held();
            let from = tcp.segment(conn, time, from, &segment, &limits, session);
            conn.count_packet(from, ip_bytes);
            let after = tcp.held();
            (before != after).then_some((before, after))
        });
        if let Some((before, after)) = held.flatten()
            && let Some(slot) = self.table.get(index)
        {
            self.keeper.hold(before, after, slot.number, index);
        }
        true
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
        let hash = self.table.hash(&key);
        let mut found = self.table.find(hash, &key);
        // A SYN whose options do not hold begins another connection nevertheless.
        let is_header = ip.payload.get(12).is_some_and(|words| words >> 4 >= 5);
        if flags & flag::SYN != 0 && is_header {
            let segment =
                Segment { seq, ack: 0, flags, window: 0, options: &[], data: &[], len: 0 };
            found = found.filter(|index| !self.ends_for(*index, &segment));
        }
        let known = (hash, found);
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
        let hash = self.table.hash(&key);
        let known = (hash, self.table.find(hash, &key));
        let (index, from) = self.found(&id, ip, Proto::Udp, (false, hub), around, known, || {
            let likely = |p| is_likely_server_port(Proto::Udp, p);
            likely(id.orig_p) && !likely(id.resp_p)
        });
        if !self.options.ignore_checksums && checksum::udp(ip) == gannet_wire::Checksum::Invalid {
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
        true
    }

    #[cold]
    fn bad_udp_checksum(&mut self, index: u32, from: Dir) {
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
        let bad =
            !self.options.ignore_checksums && checksum::icmp(ip) == gannet_wire::Checksum::Invalid;
        let (time, ip_bytes, len) = (self.time, ip.total_len, icmp.payload_len);
        let complete = icmp.payload.len() as u64 >= u64::from(len);
        let fault = icmp.report_fault();
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
            if let Some(name) = fault {
                session.weird(conn, name, "", "ICMP");
            }
        });
        true
    }

    /// Any other transport: who talked to whom, and how much.
    pub(crate) fn unknown(&mut self, ip: &Ip<'_>, all: Datagram<'_>, around: &Encapsulation) {
        let id = ConnId { orig_h: ip.src, orig_p: 0, resp_h: ip.dst, resp_p: 0 };
        if self.steer(&id, ip, Proto::Unknown, None, all, around).is_none() {
            return;
        }
        let (index, from) = self.connection(&id, ip, Proto::Unknown, false, around);
        let Some(slot) = self.table.get_mut(index) else { return };
        slot.conn.last = self.time;
        slot.conn.count_packet(from, ip.total_len);
        self.settle(index);
        if let Some(trail) = &mut self.trail {
            trail.push(UNKNOWN_TRANSPORT);
        }
        self.unread(Some(UNKNOWN_TRANSPORT), u32::from(ip.protocol), ip.payload);
    }

    /// A packet led to a protocol that nothing here reads, which is told where that is logged.
    fn unread(&mut self, layer: Option<&'static str>, protocol: u32, data: &[u8]) {
        if let (Some(layers), Some(analyzer), Some(mut policy)) =
            (&self.trail, layer, self.env.policy())
        {
            policy.unknown(self.now, &Seen { analyzer, protocol, data, layers });
        }
    }

    /// An oddity of a packet, told of what it is about.
    #[cold]
    pub(crate) fn weird(&mut self, w: &Weird, around: &Encapsulation, ip: Option<&Ip<'_>>) {
        let addl = w.addl.to_string();
        let what = Oddity {
            name: w.name,
            addl: &addl,
            source: (!w.source.is_empty()).then_some(w.source),
            in_tunnel: around.depth() > 0 && w.scope.suffixed(),
        };
        let addrs = match w.scope {
            Scope::Flow | Scope::Header => w.addrs.or(ip.map(|ip| (ip.src, ip.dst))),
            _ => None,
        };
        let env = &mut self.env;
        match addrs {
            Some((src, dst)) => env.weirds.flow(&mut env.logs, self.now, src, dst, &what),
            None => env.weirds.packet(&mut env.logs, self.now, &what),
        }
    }

    #[cold]
    pub(crate) fn flow_weird(
        &mut self,
        name: &'static str,
        ip: &Ip<'_>,
        source: &'static str,
        around: &Encapsulation,
    ) {
        let named = !source.is_empty();
        let what = Oddity {
            name,
            addl: "",
            source: named.then_some(source),
            in_tunnel: around.depth() > 0 && named,
        };
        let env = &mut self.env;
        env.weirds.flow(&mut env.logs, self.now, ip.src, ip.dst, &what);
    }

    #[cold]
    fn conn_weird(&mut self, index: u32, w: &Weird) {
        let addl = w.addl.to_string();
        self.with_session(index, |conn, _, session| session.weird(conn, w.name, &addl, w.source));
    }
}

/// The analyzer of transports that nothing reads.
const UNKNOWN_TRANSPORT: &str = "UNKNOWN_IP_TRANSPORT";

const TOO_MANY_LAYERS: &str = "max_packet_analyzer_depth_exceeded";

/// Bit of a UDP connection's `seen` for `D`.
const UDP_DATA_BIT: u32 = 3;

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
