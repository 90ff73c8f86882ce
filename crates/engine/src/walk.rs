//! The way of a packet: link layer, IP, fragments, and on to its transport or tunnel.

use gannet_capture::Format;
use gannet_capture::Packet;
use gannet_protocols::policy::unknown::Seen;
use gannet_protocols::weird::Oddity;
use gannet_wire::Frame;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::Scope;
use gannet_wire::Upper;
use gannet_wire::Weird;
use gannet_wire::protocol;

use crate::shard::Shard;
use crate::steer::Datagram;
use crate::tunnels::Encapsulation;
use crate::walk_tunnel::TEREDO;

impl Shard {
    /// A frame as captured: the short way for what nearly all are, else layer by layer.
    #[inline]
    pub(crate) fn walk_link(&mut self, packet: &Packet<'_>) {
        let (link_type, data, wire_len) = (packet.link_type.0, packet.data, packet.wire_len);
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
        // Zeek reads pcapng by itself, and without a filter.
        let is_filtered = packet.format != Format::PcapNg;
        if is_filtered && !gannet_wire::passes_filter(link_type, data) {
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
                self.unread(layer, ethertype, data);
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
            Ok(arp) => {
                if self.env.logs.events.any() {
                    self.raise_arp(data, [src_mac, None]);
                }
                arp.is_usual(src_mac.unwrap_or_default())
            }
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
            return self.walk_transport(&ip, self.datagram(data, &ip), around);
        }
        let mut odd = Vec::new();
        let ip = gannet_wire::ip_with(data, wire_len, verify, &mut |w| odd.push(w));
        for w in odd {
            self.weird(&w, around, None);
        }
        // Where it lies: it is too large to be carried around.
        match &ip {
            Ok(ip) if ip.fragment.is_some() => {
                self.walk_fragment(ip, self.datagram(data, ip), around)
            }
            Ok(ip) => self.walk_transport(ip, self.datagram(data, ip), around),
            Err(w) => {
                self.weird(w, around, None);
                false
            }
        }
    }

    /// An IP packet as it lies. What its link cut off behind it was captured nevertheless: only as many
    /// bytes are missing as are of the whole frame.
    fn datagram<'a>(&self, bytes: &'a [u8], ip: &Ip<'_>) -> Datagram<'a> {
        let wire_len = (bytes.len() as u32).saturating_add(self.missing).max(ip.total_len);
        Datagram { bytes, wire_len }
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
        if let Some(noting) = &mut self.noting {
            noting.piece(self.packet_number, ip);
            if complete {
                noting.complete(self.packet_number, ip);
            }
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
        // A fragment header that came in pieces is passed over: what is put together is not
        // taken for a piece again.
        let Ok(ip) = read else { return true };
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

    /// A packet led to a protocol that nothing here reads, which is told where that is logged.
    pub(crate) fn unread(&mut self, layer: Option<&'static str>, protocol: u32, data: &[u8]) {
        if let (Some(layers), Some(analyzer), Some(mut policy)) =
            (&self.trail, layer, self.env.policy())
        {
            policy.unknown(self.now, &Seen { analyzer, protocol, data, layers });
        }
    }

    /// An weird of a packet, told of what it is about.
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
}

pub(crate) const TOO_MANY_LAYERS: &str = "max_packet_analyzer_depth_exceeded";
