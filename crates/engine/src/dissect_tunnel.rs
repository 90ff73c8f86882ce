//! Packet processing, continued: tunnels.

use gannet_base::Dir;
use gannet_base::LinkState;
use gannet_protocols::Tag;
use gannet_protocols::conn_state;
use gannet_protocols::tunnel::Tunnel;
use gannet_protocols::tunnel::events::NewGtpv1State;
use gannet_protocols::tunnel::events::NewTeredoState;
use gannet_protocols::tunnel::raise_confirmation;
use gannet_protocols::tunnel::raise_violation;
use gannet_protocols::weird::PacketWeird;
use gannet_wire::Error;
use gannet_wire::Ip;
use gannet_wire::Udp;
use gannet_wire::protocol;
use gannet_wire::tunnel;
use gannet_wire::tunnel::Body;
use gannet_wire::tunnel::Inner;
use gannet_wire::tunnel::Refusal;
use gannet_wire::tunnel::port;

use crate::shard::Shard;
use crate::shard::connection::log_service;
use crate::tunnels::Encapsulation;
use crate::weirds;
use crate::weirds::IP_TUNNEL;
use crate::weirds::named;

const GRE: &str = "Tunnel::GRE";
const GTPV1: &str = "Tunnel::GTPv1";
pub(crate) const TEREDO: &str = "Tunnel::TEREDO";

impl Shard {
    /// Processes IP-in-IP and GRE: tunnels between two hosts, without a connection of their own.
    pub(crate) fn ip_tunnel(&mut self, ip: &Ip<'_>, encapsulation: &Encapsulation) {
        if ip.protocol != protocol::GRE {
            return self.in_hosts_tunnel(ip, encapsulation, "Tunnel::IP", |faults| {
                tunnel::ip_in_ip_with(ip.payload, ip.protocol, &mut |w| faults.push(w))
                    .map(Inner::Ip)
            });
        }
        self.in_gre(ip, ip.payload, encapsulation);
    }

    /// Processes GRE. GRE and the tunnel between its hosts count as one layer each.
    fn in_gre(&mut self, ip: &Ip<'_>, data: &[u8], encapsulation: &Encapsulation) {
        if self.deeper(ip, weirds::GRE, encapsulation) {
            self.in_hosts_tunnel(ip, encapsulation, GRE, |faults| {
                tunnel::gre_with(data, &mut |w| faults.push(w)).map(|g| g.inner)
            });
        }
    }

    fn in_hosts_tunnel<'a>(
        &mut self,
        ip: &Ip<'_>,
        encapsulation: &Encapsulation,
        kind: &'static str,
        open: impl FnOnce(&mut Vec<Error>) -> Result<Inner<'a>, Error>,
    ) {
        let mut faults = Vec::new();
        let opened = open(&mut faults);
        // Weirds of GRE are reported before the depth of tunnels is checked.
        let refused = opened.as_ref().is_err_and(|w| named(w).source == weirds::GRE);
        if !refused && encapsulation.is_full(self.options.limits.tunnel_depth) {
            return self.too_deep(ip, encapsulation);
        }
        self.report_headers(&faults, encapsulation);
        let inner = match opened {
            Ok(inner) => inner,
            Err(w) => return self.weird(&w, encapsulation, Some((ip.src, ip.dst))),
        };
        let (uids, packet, ordinal) = (self.env.uids, self.packet_number, self.next_ordinal());
        let uid = || uids.connection(packet, ordinal);
        let tunnel = self.ip_tunnels.between(self.now, ip.src, ip.dst, (ip.protocol, kind), uid);
        if self.ip_tunnels.take_overflow() {
            self.env.weirds.net(&mut self.env.logs, self.now, "ip_tunnel_limit_reached", "");
        }
        if let (Some(index_reporter), Some(uid)) = (&mut self.index_reporter, tunnel.uid) {
            index_reporter.index.tunnel(self.packet_number, uid);
        }
        let encapsulation = encapsulation.with(tunnel);
        self.reassembled.clear_flags();
        // The inner packet has its captured length, and so has its payload.
        let missing = std::mem::take(&mut self.missing);
        self.dissect_inner(inner, inner.data().len() as u32, IP_TUNNEL, &encapsulation);
        self.missing = missing;
    }

    /// Reports the weirds of the outer headers of an inner packet, before the packet is processed.
    fn report_headers(&mut self, faults: &[Error], encapsulation: &Encapsulation) {
        for w in faults {
            self.weird(w, encapsulation, None);
        }
    }

    /// Processes the inner packet of a tunnel; returns whether it is valid.
    fn dissect_inner(
        &mut self,
        inner: Inner<'_>,
        wire_len: u32,
        source: &'static str,
        encapsulation: &Encapsulation,
    ) -> bool {
        if let Inner::Ip(data) = inner {
            // Link addresses and tags belong to the outer packet.
            self.link = LinkState::default();
            return self.deeper_inside(source, encapsulation)
                && self.dissect_ip(data, wire_len, encapsulation);
        }
        match (inner, inner.link_type()) {
            (_, Some(link)) => {
                if let Some(trail) = &mut self.trail {
                    trail.push(source);
                }
                self.dissect_frame(link, inner.data(), wire_len, encapsulation)
            }
            (Inner::Arp(data), _) => self.dissect_arp(data, [None; 2], encapsulation),
            (Inner::Other { protocol, data }, _) if self.deeper_inside(source, encapsulation) => {
                self.report_unknown_protocol(Some(source), u32::from(protocol), data);
                false
            }
            _ => false,
        }
    }

    #[cold]
    fn too_deep(&mut self, ip: &Ip<'_>, encapsulation: &Encapsulation) {
        self.flow_weird("exceeded_tunnel_max_depth", ip, IP_TUNNEL, encapsulation);
    }

    /// Processes a UDP payload that may be tunneled: decided by the responder's port, otherwise by
    /// content.
    pub(crate) fn udp_tunnel(
        &mut self,
        index: u32,
        from: Dir,
        ip: &Ip<'_>,
        udp: &Udp<'_>,
        encapsulation: &Encapsulation,
    ) {
        let Some(slot) = self.table.get(index) else { return };
        let port = self.env.tunnel_port(slot.conn.id.resp_p);
        if matches!(port, port::GTPV1_C | port::GTPV1_U) {
            self.new_gtp_state(index);
        }
        let Some(slot) = self.table.get(index) else { return };
        let data = udp.payload;
        let mut faults = Vec::new();
        let (tag, kind, opened) = match port {
            port::VXLAN => {
                let inner = tunnel::vxlan(data).map(|v| v.inner);
                (Tag::Vxlan, "Tunnel::VXLAN", inner)
            }
            port::GENEVE => {
                let inner = tunnel::geneve(data).map(|g| g.inner);
                (Tag::Geneve, "Tunnel::GENEVE", inner)
            }
            port::GTPV1_C | port::GTPV1_U => {
                let read = tunnel::gtpv1_with(data, &mut |w| faults.push(w));
                let inner = read.and_then(|g| match g.body {
                    Body::Packet(inner) => Ok(inner),
                    _ => Err(Refusal::Ignored),
                });
                (Tag::Gtpv1, GTPV1, inner)
            }
            port::GRE => return self.in_gre(ip, data, encapsulation),
            // The port takes precedence over the content.
            p if p == port::TEREDO || p != port::AYIYA && tunnel::looks_like_teredo(data) => {
                return self.teredo(index, from, ip, udp, encapsulation);
            }
            p if p == port::AYIYA || tunnel::looks_like_ayiya(data) => {
                (Tag::Ayiya, "Tunnel::AYIYA", tunnel::ayiya(data))
            }
            _ => return,
        };
        if self.env.is_disabled(tag) {
            return;
        }
        let failed = slot.ext.tunnel_failed(tag);
        if failed && tag != Tag::Gtpv1 {
            return;
        }
        let full = encapsulation.is_full(self.options.limits.tunnel_depth);
        if full && tag != Tag::Gtpv1 {
            self.udp_too_deep(index, ip, tag, encapsulation);
            return;
        }
        if tag == Tag::Gtpv1 && !opened.as_ref().is_err_and(Refusal::is_out_of_bound) {
            if full {
                return self.gtp_too_deep();
            }
            if encapsulation.last().is_some_and(|t| t.kind == GTPV1) {
                return self.refuse(index, tag, "GTP-in-GTP", &[]);
            }
            self.raise_gtp(index, data);
        }
        self.report_headers(&faults, encapsulation);
        let inner = match opened {
            Ok(inner) => inner,
            Err(refusal) => {
                self.refused(index, ip, tag, &refusal, encapsulation);
                return;
            }
        };
        let is_delayed =
            tag == Tag::Gtpv1 && self.env.setting("Tunnel::delay_gtp_confirmation", 0) != 0;
        if !is_delayed || self.has_both_sides(index, from) {
            self.confirm_tunnel(index, tag);
        }
        if tag == Tag::Gtpv1 {
            self.raise_gtp_packet(index, data, &inner);
        }
        let is_valid = self.enter(index, tag, kind, inner, encapsulation);
        if is_valid && self.env.logs.events.any() {
            self.raise_inner(index, tag, data, &inner);
        }
    }

    /// Records a valid packet of a tunnel. Returns whether both sides have sent one.
    fn has_both_sides(&mut self, index: u32, from: Dir) -> bool {
        let Some(slot) = self.table.get_mut(index) else { return false };
        let rare = slot.ext.rare();
        rare.tunnel_sides |= 1 << from.index();
        rare.tunnel_sides == 3
    }

    /// Raises the event of a connection that may carry GTP, once per connection.
    fn new_gtp_state(&mut self, index: u32) {
        if self.env.logs.events.wants::<NewGtpv1State>()
            && let Some(slot) = self.table.get_mut(index)
            && !slot.ext.tunnel_failed(Tag::Gtpv1)
            && !std::mem::replace(&mut slot.ext.rare().has_gtp_state, true)
        {
            conn_state::raise(&mut self.env.logs, &slot.conn, |c| NewGtpv1State { c });
        }
    }

    /// Processes Teredo. The tunnel is confirmed once both sides have sent valid packets; the
    /// payload is processed in any case.
    fn teredo(
        &mut self,
        index: u32,
        from: Dir,
        ip: &Ip<'_>,
        udp: &Udp<'_>,
        encapsulation: &Encapsulation,
    ) {
        let Some(slot) = self.table.get(index) else { return };
        if slot.ext.tunnel_failed(Tag::Teredo) || self.env.is_disabled(Tag::Teredo) {
            return;
        }
        if encapsulation.is_full(self.options.limits.tunnel_depth) {
            return self.udp_too_deep(index, ip, Tag::Teredo, encapsulation);
        }
        let mut faults = Vec::new();
        let opened = tunnel::teredo_with(udp.payload, &mut |w| faults.push(w));
        self.report_headers(&faults, encapsulation);
        let Some(slot) = self.table.get_mut(index) else { return };
        let teredo = match opened {
            Ok(teredo) => teredo,
            Err(Refusal::Violation { reason, data, if_confirmed }) => {
                let confirmed = slot.conn.services.contains(Tag::Teredo as u8);
                if let Some(error) = &if_confirmed
                    && confirmed
                {
                    self.conn_weird(index, error);
                }
                self.refuse(index, Tag::Teredo, &reason.to_string(), data);
                return;
            }
            Err(_) => return,
        };
        let is_new = slot.ext.rare().tunnel_sides == 0;
        let both = self.has_both_sides(index, from);
        let Some(slot) = self.table.get(index) else { return };
        if is_new && self.env.logs.events.wants::<NewTeredoState>() {
            conn_state::raise(&mut self.env.logs, &slot.conn, |c| NewTeredoState { c });
        }
        if let Some(error) = teredo.fault() {
            self.conn_weird(index, &error);
        }
        if both || self.env.setting("Tunnel::delay_teredo_confirmation", 1) == 0 {
            self.confirm_tunnel(index, Tag::Teredo);
        }
        if self.env.logs.events.any() {
            self.raise_teredo(index, &teredo);
        }
        self.enter(index, Tag::Teredo, TEREDO, teredo.inner, encapsulation);
    }

    /// Processes the inner packet of a connection's tunnel; returns whether it is valid.
    fn enter(
        &mut self,
        index: u32,
        tag: Tag,
        kind: &'static str,
        inner: Inner<'_>,
        encapsulation: &Encapsulation,
    ) -> bool {
        let Some(slot) = self.table.get_mut(index) else { return false };
        if !slot.conn.is_global() {
            // The global shard owns tunnels, by port or content.
            return false;
        }
        slot.ext.rare().carries = true;
        let encapsulation = encapsulation.with(Tunnel {
            uid: Some(slot.conn.uid),
            id: slot.conn.id,
            ip_proto: 17,
            kind,
        });
        let wire_len = (inner.data().len() as u32).saturating_add(self.missing);
        self.dissect_inner(inner, wire_len, tag.name(), &encapsulation)
    }

    fn confirm_tunnel(&mut self, index: u32, tag: Tag) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if !slot.ext.tunnel_failed(tag) {
            let known = slot.conn.services.contains(tag as u8);
            slot.conn.services.insert(tag as u8);
            if !known {
                raise_confirmation(&mut self.env.logs, &slot.conn, tag);
                log_service(&mut self.env, self.now, &mut slot.conn, None);
            }
        }
    }

    #[cold]
    fn udp_too_deep(&mut self, index: u32, ip: &Ip<'_>, tag: Tag, encapsulation: &Encapsulation) {
        if let Some(slot) = self.table.get_mut(index) {
            slot.conn.note_limit();
        }
        self.flow_weird("exceeded_tunnel_max_depth", ip, tag.name(), encapsulation);
    }

    /// Reports that GTP exceeds the maximum depth, under a name of its own and without connection
    /// or hosts.
    #[cold]
    fn gtp_too_deep(&mut self) {
        let source = Some(Tag::Gtpv1.name());
        let what = PacketWeird { name: "tunnel_depth", addl: "", source, in_tunnel: false };
        let env = &mut self.env;
        env.weirds.packet(&mut env.logs, self.now, &what);
    }

    #[cold]
    fn refused(
        &mut self,
        index: u32,
        ip: &Ip<'_>,
        tag: Tag,
        refusal: &Refusal<'_>,
        encapsulation: &Encapsulation,
    ) {
        match refusal {
            Refusal::Violation { reason, data, .. } => {
                self.refuse(index, tag, &reason.to_string(), data);
            }
            Refusal::Faulty { error, confirmed } => {
                if *confirmed {
                    self.confirm_tunnel(index, tag);
                }
                self.weird(error, encapsulation, Some((ip.src, ip.dst)));
            }
            Refusal::Ignored => {
                // AYIYA and GTP' packets of these types are valid and have no payload.
            }
        }
    }

    /// Logs the first violation of a tunnel protocol on a connection.
    #[cold]
    fn refuse(&mut self, index: u32, tag: Tag, reason: &str, data: &[u8]) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if slot.ext.tunnel_failed(tag) {
            return;
        }
        raise_violation(&mut self.env.logs, &slot.conn, tag, reason, data);
        slot.ext.rare().tunnels_failed.insert(tag as u8);
        let data = &data[..data.len().min(40)];
        self.env.log_failure(self.now, &slot.conn, "packet", tag, reason.as_bytes(), data);
    }
}
