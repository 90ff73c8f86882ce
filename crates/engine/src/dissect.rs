//! Packet processing: link layer, IP, fragments, then transport or tunnel.

use gannet_base::Addr;
use gannet_base::LinkState;
use gannet_capture::Format;
use gannet_capture::Packet;
use gannet_protocols::packet::events::DiscardPacket;
use gannet_protocols::packet::events::UnknownProtocol;
use gannet_protocols::policy::unknown::Seen;
use gannet_protocols::weird::PacketWeird;
use gannet_wire::Error;
use gannet_wire::Frame;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::UpperLayer;
use gannet_wire::protocol;

use crate::dissect_tunnel::TEREDO;
use crate::route::Captured;
use crate::shard::Shard;
use crate::tunnels::Encapsulation;
use crate::weirds::INVALID_IP_HEADER_SIZE;
use crate::weirds::Scope;
use crate::weirds::analyzer;
use crate::weirds::named;

impl Shard {
    /// Processes a captured frame: by a fast path for plain frames, otherwise layer by layer.
    #[inline]
    pub(crate) fn dissect_link<const EVENTS: bool>(&mut self, packet: &Packet<'_>) {
        let (link_type, data, wire_len) = (packet.link_type.0, packet.data, packet.wire_len);
        let encapsulation = Encapsulation::default();
        if EVENTS && !self.skipped.is_empty() && self.dissect_skipped(packet, &encapsulation) {
            return;
        }
        let is_quick = link_type == gannet_wire::link_type::ETHERNET
            && (!EVENTS
                || self.trail.is_none()
                    && self.unchecked.is_empty()
                    && !self.env.logs.events.wants::<DiscardPacket<'_>>());
        if is_quick
            && let Some((ip, bytes)) =
                gannet_wire::plain_ipv4(data, wire_len, !self.options.ignore_checksums)
        {
            self.dissect_plain::<EVENTS>(&ip, bytes, packet, &encapsulation);
            return;
        }
        if is_quick && self.dissect_plain_ipv6::<EVENTS>(packet, &encapsulation) {
            return;
        }
        // Zeek reads pcapng without libpcap, so its filter does not apply.
        let is_filtered = packet.format != Format::PcapNg;
        if is_filtered && !gannet_wire::passes_filter(link_type, data) {
            return;
        }
        self.layers = 0;
        self.dissect_frame(link_type, data, wire_len, &encapsulation);
    }

    /// Processes a packet with a link type whose first bytes are skipped at the request of a
    /// script; returns whether the link type is one of these.
    #[cold]
    fn dissect_skipped(&mut self, packet: &Packet<'_>, encapsulation: &Encapsulation) -> bool {
        let is_it = |(link_type, _): &&(u32, usize)| *link_type == u32::from(packet.link_type.0);
        let Some((_, bytes)) = self.skipped.iter().find(is_it) else { return false };
        let wire_len = u32::try_from(*bytes).ok().and_then(|n| packet.wire_len.checked_sub(n));
        if let (Some(data), Some(wire_len)) = (packet.data.get(*bytes..), wire_len) {
            (self.layers, self.link) = (0, LinkState::default());
            self.dissect_ip(data, wire_len, encapsulation);
        }
        true
    }

    /// Processes a packet if it is plain IPv6; returns whether it is.
    // A separate function, so that the one for IPv4 stays small.
    #[inline(never)]
    fn dissect_plain_ipv6<const EVENTS: bool>(
        &mut self,
        packet: &Packet<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        let plain = gannet_wire::plain_ipv6(packet.data, packet.wire_len);
        plain.is_some_and(|(ip, bytes)| {
            self.dissect_plain::<EVENTS>(&ip, bytes, packet, encapsulation);
            true
        })
    }

    /// Processes a plain packet with a parsed IP header.
    #[inline(always)]
    fn dissect_plain<const EVENTS: bool>(
        &mut self,
        ip: &Ip<'_>,
        bytes: &[u8],
        packet: &Packet<'_>,
        encapsulation: &Encapsulation,
    ) {
        let (data, wire_len) = (packet.data, packet.wire_len);
        self.layers = gannet_wire::PLAIN_LAYERS;
        if EVENTS && self.env.logs.events.any() {
            let l2 = match data.first_chunk::<12>().map(|ends| ends.as_chunks().0) {
                Some([to, from]) => [Some(*from), Some(*to)],
                _ => [None; 2],
            };
            self.link = LinkState { l2, ..LinkState::default() };
        }
        let beyond = (data.len() - bytes.len()) as u32;
        let all = Captured { bytes, wire_len: wire_len.saturating_sub(beyond) };
        // The usual case. The trail of layers has no entry for these packets.
        match ip.protocol {
            protocol::TCP if ip.upper == UpperLayer::Payload => {
                self.layers = gannet_wire::PLAIN_LAYERS + 1;
                self.tcp::<EVENTS>(ip, all, encapsulation);
            }
            protocol::UDP if ip.upper == UpperLayer::Payload => {
                self.layers = gannet_wire::PLAIN_LAYERS + 1;
                self.udp::<EVENTS>(ip, all, encapsulation);
            }
            _ => {
                self.dissect_transport(ip, all, encapsulation);
            }
        }
    }

    /// Processes a frame, which may be tunneled; continues the layer count. Returns whether it is
    /// valid and its contents are of a known protocol.
    pub(crate) fn dissect_frame(
        &mut self,
        link_type: u16,
        data: &[u8],
        wire_len: u32,
        encapsulation: &Encapsulation,
    ) -> bool {
        // No allocation without a weird.
        let mut faults = Vec::new();
        let layers = self.layers;
        if let Some(trail) = &mut self.trail {
            if layers == 0 {
                trail.clear();
            }
            gannet_wire::link_layers(link_type, data, &mut |layer| trail.push(analyzer(layer)));
        }
        let frame =
            gannet_wire::link_with(link_type, data, wire_len, layers, &mut |w| faults.push(w));
        for w in faults {
            self.weird(&w, encapsulation, None);
        }
        match &frame {
            Ok(frame) => self.dissect_network(frame, encapsulation),
            Err(w) => {
                self.weird(w, encapsulation, None);
                false
            }
        }
    }

    /// Processes the network layer; returns whether it and its payload are valid, which decides
    /// whether an aggregate continues.
    #[inline]
    fn dissect_network(&mut self, frame: &Frame<'_>, encapsulation: &Encapsulation) -> bool {
        self.layers = frame.depth;
        if self.env.logs.events.any() {
            let (vlan, inner_vlan) = (frame.vlan, frame.inner_vlan);
            self.link = LinkState { vlan, inner_vlan, l2: [frame.src_mac, frame.dst_mac] };
        }
        match frame.network {
            Network::Ip(data) => self.dissect_ip(data, frame.wire_len, encapsulation),
            Network::Arp(data) => {
                self.dissect_arp(data, [frame.src_mac, frame.dst_mac], encapsulation)
            }
            Network::Aggregate(_) => {
                self.dissect_aggregate(frame, encapsulation);
                true
            }
            Network::Other { ethertype, data } => {
                let layer = self.trail.as_deref().and_then(|t| t.last().copied());
                self.report_unknown_protocol(layer, ethertype, data);
                true
            }
            Network::Nothing => true,
        }
    }

    /// Processes the subframes of an aggregate, up to the first invalid one. Its weirds are
    /// reported with the hosts of the last subframe with hosts.
    #[cold]
    fn dissect_aggregate(&mut self, frame: &Frame<'_>, encapsulation: &Encapsulation) {
        let verify = !self.options.ignore_checksums;
        let mut hosts = None;
        let mut frames = frame.subframes();
        while let Some(sub) = frames.next() {
            match sub {
                // Subframes contain IP or ARP, never aggregates.
                Ok(sub) => {
                    if let Network::Ip(data) = sub.network
                        && let Ok(ip) = gannet_wire::ip(data, sub.wire_len, verify)
                    {
                        hosts = Some((ip.src, ip.dst));
                    }
                    if !self.dissect_network(&sub, encapsulation) {
                        frames.fail();
                    }
                }
                Err(w) => self.weird(&w, encapsulation, hosts),
            }
        }
    }

    /// Processes an ARP message; returns whether it is valid and its sender is the sender of the
    /// frame.
    pub(crate) fn dissect_arp(
        &mut self,
        data: &[u8],
        [src_mac, dst_mac]: [Option<[u8; 6]>; 2],
        encapsulation: &Encapsulation,
    ) -> bool {
        match gannet_wire::arp(data) {
            Ok(arp) => {
                if self.env.logs.events.any() {
                    self.raise_arp(data, [src_mac, dst_mac]);
                }
                arp.is_usual(src_mac.unwrap_or_default())
            }
            Err(w) => {
                self.weird(&w, encapsulation, None);
                false
            }
        }
    }

    /// Processes an IP packet; returns whether it and its transport are valid.
    pub(crate) fn dissect_ip(
        &mut self,
        data: &[u8],
        wire_len: u32,
        encapsulation: &Encapsulation,
    ) -> bool {
        let verify = match data.first_chunk::<20>() {
            _ if self.unchecked.is_empty() => !self.options.ignore_checksums,
            Some([_, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                self.verifies(Addr::v4([*a, *b, *c, *d]))
            }
            None => !self.options.ignore_checksums,
        };
        if let Some(ip) = gannet_wire::plain_ip(data, wire_len, verify) {
            return self.dissect_datagram(&ip, data, encapsulation);
        }
        let mut faults = Vec::new();
        let read = gannet_wire::ip_with(data, wire_len, verify, &mut |error| faults.push(error));
        for error in &faults {
            self.weird(error, encapsulation, None);
        }
        match &read {
            Ok(ip) => self.dissect_datagram(ip, data, encapsulation),
            Err(error) => {
                self.weird(error, encapsulation, None);
                false
            }
        }
    }

    /// Processes an IP packet with valid headers; returns whether its transport is valid.
    #[inline]
    fn dissect_datagram(
        &mut self,
        ip: &Ip<'_>,
        data: &[u8],
        encapsulation: &Encapsulation,
    ) -> bool {
        if self.env.logs.events.wants::<DiscardPacket<'_>>() && self.is_discarded(ip) {
            return false;
        }
        // Bytes after the IP packet that belong to the link layer count as captured: the bytes
        // missing from the IP packet are those missing from the frame.
        let wire_len = (data.len() as u32).saturating_add(self.missing).max(ip.total_len);
        let all = Captured { bytes: data, wire_len };
        if ip.fragment.is_some() {
            return self.dissect_fragment(ip, all, encapsulation);
        }
        self.dissect_transport(ip, all, encapsulation)
    }

    /// Processes a fragment; continues with the transport of a complete datagram.
    fn dissect_fragment(
        &mut self,
        ip: &Ip<'_>,
        piece: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        if !ip.is_complete() {
            self.flow_weird("incompletely_captured_fragment", ip, "IP", encapsulation);
            let first = ip.fragment.is_some_and(|f| f.offset == 0);
            return first && self.dissect_transport(ip, piece, encapsulation);
        }
        let mut whole = Vec::new();
        let mut faults = Vec::new();
        let complete =
            self.fragments.add(self.time, self.now, ip, &mut whole, |name| faults.push(name));
        for name in faults {
            self.flow_weird(name, ip, "", encapsulation);
        }
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.piece(self.packet_number, ip);
            if complete {
                index_reporter.complete(self.packet_number, ip);
            }
        }
        if !complete {
            return true;
        }
        let mut faults = Vec::new();
        let read = gannet_wire::ip_with(&whole, whole.len() as u32, false, &mut |w| faults.push(w));
        // Options may be fragmented as well. A length of zero is no additional weird for a large
        // datagram.
        for w in faults.iter().filter(|w| named(w).scope != Scope::Packet) {
            self.weird(w, encapsulation, None);
        }
        // The length field has 16 bits; for a longer datagram it may wrap to a small value.
        let too_short = match &read {
            Ok(whole) => whole.total_len < u32::from(whole.header_len),
            Err(error) => *error == Error::IpHeadersTooLong,
        };
        if too_short {
            self.flow_weird(INVALID_IP_HEADER_SIZE, ip, "IP", encapsulation);
            return false;
        }
        // A fragment header inside the reassembled datagram is skipped: the datagram is not treated
        // as a fragment again.
        let Ok(ip) = read else { return true };
        let missing = std::mem::take(&mut self.missing);
        if self.env.logs.events.any() {
            self.record_reassembled(&ip, encapsulation.depth() == 0);
        }
        let bytes = whole.get(..ip.total_len as usize).unwrap_or(&whole);
        let all = Captured { bytes, wire_len: bytes.len() as u32 };
        let holds = self.dissect_transport(&ip, all, encapsulation);
        self.reassembled.clear_flags();
        self.missing = missing;
        holds
    }

    /// Processes the payload of an IP packet; returns whether it is valid.
    #[inline]
    fn dissect_transport(
        &mut self,
        ip: &Ip<'_>,
        all: Captured<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        if ip.upper != UpperLayer::Payload {
            if self.env.logs.events.any() && ip.version == 6 && ip.upper == UpperLayer::Esp {
                self.raise_esp(ip);
            }
            if self.env.logs.events.any() && ip.upper == UpperLayer::Mobility {
                self.raise_mobility(ip);
            }
            return true;
        }
        if ip.protocol != protocol::NONE && !self.deeper(ip, "IP", encapsulation) {
            return false;
        }
        match ip.protocol {
            protocol::TCP => return self.tcp::<true>(ip, all, encapsulation),
            protocol::UDP => return self.udp::<true>(ip, all, encapsulation),
            protocol::ICMP | protocol::ICMP6 => return self.icmp(ip, all, encapsulation),
            protocol::IPV4 | protocol::IPV6 | protocol::GRE => self.ip_tunnel(ip, encapsulation),
            protocol::NONE if encapsulation.last().is_some_and(|t| t.kind == TEREDO) => {}
            protocol::NONE => {
                self.flow_weird("ipv6_no_next", ip, "IP", encapsulation);
                return false;
            }
            protocol::IGMP if self.igmp(ip, encapsulation) => {}
            _ => {
                self.unknown(ip, all, encapsulation);
                return false;
            }
        }
        true
    }

    /// Adds a layer above IP; beyond the maximum, reports the packet.
    #[inline]
    pub(crate) fn deeper(
        &mut self,
        ip: &Ip<'_>,
        source: &'static str,
        encapsulation: &Encapsulation,
    ) -> bool {
        if self.layers >= gannet_wire::MAX_DEPTH {
            self.flow_weird(TOO_MANY_LAYERS, ip, source, encapsulation);
            return false;
        }
        self.layers += 1;
        if let Some(trail) = &mut self.trail {
            trail.push(source);
        }
        true
    }

    /// Adds the first layer of a tunnel's payload.
    pub(crate) fn deeper_inside(
        &mut self,
        source: &'static str,
        encapsulation: &Encapsulation,
    ) -> bool {
        if self.layers >= gannet_wire::MAX_DEPTH {
            let source = Some(source);
            let weird = PacketWeird {
                name: TOO_MANY_LAYERS,
                addl: "",
                source,
                in_tunnel: encapsulation.depth() > 0,
            };
            let env = &mut self.env;
            env.weirds.packet(&mut env.logs, self.now, &weird);
            return false;
        }
        self.layers += 1;
        if let Some(trail) = &mut self.trail {
            trail.push(source);
        }
        true
    }

    /// Reports a packet of an unknown protocol, if that is requested.
    pub(crate) fn report_unknown_protocol(
        &mut self,
        layer: Option<&'static str>,
        protocol: u32,
        data: &[u8],
    ) {
        let (Some(layers), Some(analyzer)) = (&self.trail, layer) else { return };
        let packet = Seen { analyzer, protocol, data, layers };
        if self.env.logs.events.wants::<UnknownProtocol<'_>>() {
            self.unknown_sampler.raise(&mut self.env.logs.events, self.now, &packet);
        }
        if let Some(mut policy) = self.env.policy() {
            policy.unknown(self.now, &packet);
        }
    }

    #[cold]
    pub(crate) fn flow_weird(
        &mut self,
        name: &'static str,
        ip: &Ip<'_>,
        source: &'static str,
        encapsulation: &Encapsulation,
    ) {
        let named = !source.is_empty();
        let weird = PacketWeird {
            name,
            addl: "",
            source: named.then_some(source),
            in_tunnel: encapsulation.depth() > 0 && named,
        };
        let env = &mut self.env;
        env.weirds.flow(&mut env.logs, self.now, ip.src, ip.dst, &weird);
    }
}

pub(crate) const TOO_MANY_LAYERS: &str = "max_packet_analyzer_depth_exceeded";
