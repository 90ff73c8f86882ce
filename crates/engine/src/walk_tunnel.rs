//! The way of a packet through tunnels.

use gannet_base::Dir;
use gannet_protocols::Tag;
use gannet_protocols::failure;
use gannet_protocols::tunnel::Tunnel;
use gannet_protocols::weird::Oddity;
use gannet_wire::Ip;
use gannet_wire::Udp;
use gannet_wire::Weird;
use gannet_wire::protocol;
use gannet_wire::tunnel;
use gannet_wire::tunnel::Body;
use gannet_wire::tunnel::Inner;
use gannet_wire::tunnel::Refusal;
use gannet_wire::tunnel::port;

use crate::shard::Shard;
use crate::shard::connection::serve;
use crate::tunnels::Encapsulation;

const GRE: &str = "Tunnel::GRE";
const GTPV1: &str = "Tunnel::GTPv1";
pub(crate) const TEREDO: &str = "Tunnel::TEREDO";
const GRE_LAYER: &str = "GRE";
/// Who tells of weirds of tunnels between hosts.
const IP_TUNNEL: &str = "IPTUNNEL";

impl Shard {
    /// IP-in-IP and GRE: tunnels between two hosts, without a connection of their own.
    pub(crate) fn ip_tunnel(&mut self, ip: &Ip<'_>, around: &Encapsulation) {
        if ip.protocol != protocol::GRE {
            return self.in_hosts_tunnel(ip, around, "Tunnel::IP", |odd| {
                tunnel::ip_in_ip_with(ip.payload, ip.protocol, &mut |w| odd.push(w)).map(Inner::Ip)
            });
        }
        self.in_gre(ip, ip.payload, around);
    }

    /// GRE, and the tunnel between hosts that follows as a layer of its own.
    fn in_gre(&mut self, ip: &Ip<'_>, data: &[u8], around: &Encapsulation) {
        if self.deeper(ip, GRE_LAYER, around) {
            self.in_hosts_tunnel(ip, around, GRE, |odd| {
                tunnel::gre_with(data, &mut |w| odd.push(w)).map(|g| g.inner)
            });
        }
    }

    fn in_hosts_tunnel<'a>(
        &mut self,
        ip: &Ip<'_>,
        around: &Encapsulation,
        kind: &'static str,
        open: impl FnOnce(&mut Vec<Weird>) -> Result<Inner<'a>, Weird>,
    ) {
        let mut odd = Vec::new();
        let opened = open(&mut odd);
        // What is wrong with GRE is told before there are too many tunnels.
        let refused = opened.as_ref().is_err_and(|w| w.source == GRE_LAYER);
        if !refused && around.is_full(self.options.limits.tunnel_depth) {
            return self.too_deep(ip, around);
        }
        self.tell_headers(&odd, around);
        let inner = match opened {
            Ok(inner) => inner,
            Err(w) => return self.weird(&w, around, Some(ip)),
        };
        let (uids, packet, ordinal) = (self.env.uids, self.packet_number, self.next_ordinal());
        let uid = || uids.connection(packet, ordinal);
        let tunnel = self.ip_tunnels.between(self.now, ip.src, ip.dst, kind, uid);
        if let (Some(noting), Some(uid)) = (&mut self.noting, tunnel.uid) {
            noting.packet(self.packet_number, uid);
        }
        let around = around.with(tunnel);
        // What is inside is as long as captured, and so is what that holds.
        let missing = std::mem::take(&mut self.missing);
        self.walk_inner(inner, inner.data().len() as u32, IP_TUNNEL, &around);
        self.missing = missing;
    }

    /// What is odd about the headers of a packet in a tunnel, before it is walked.
    fn tell_headers(&mut self, odd: &[Weird], around: &Encapsulation) {
        for w in odd {
            self.weird(w, around, None);
        }
    }

    fn walk_inner(
        &mut self,
        inner: Inner<'_>,
        wire_len: u32,
        source: &'static str,
        around: &Encapsulation,
    ) {
        if let Inner::Ip(data) = inner {
            if self.deeper_inside(source, around) {
                self.walk_ip(data, wire_len, around);
            }
            return;
        }
        match (inner, inner.link_type()) {
            (_, Some(link)) => self.walk_frame(link, inner.data(), wire_len, around),
            (Inner::Arp(data), _) => {
                self.walk_arp(data, None, around);
            }
            (Inner::Other { protocol, data }, _) if self.deeper_inside(source, around) => {
                self.unread(Some(source), u32::from(protocol), data);
            }
            _ => {}
        }
    }

    #[cold]
    fn too_deep(&mut self, ip: &Ip<'_>, around: &Encapsulation) {
        self.flow_weird("exceeded_tunnel_max_depth", ip, IP_TUNNEL, around);
    }

    /// UDP payload that may be a tunnel: by the responder's port, else by content.
    pub(crate) fn udp_tunnel(
        &mut self,
        index: u32,
        from: Dir,
        ip: &Ip<'_>,
        udp: &Udp<'_>,
        around: &Encapsulation,
    ) {
        let Some(slot) = self.table.get(index) else { return };
        let data = udp.payload;
        let mut odd = Vec::new();
        let (tag, kind, opened) = match slot.conn.id.resp_p {
            port::VXLAN => {
                let inner = tunnel::vxlan(data).map(|v| v.inner);
                (Tag::Vxlan, "Tunnel::VXLAN", inner)
            }
            port::GENEVE => {
                let inner = tunnel::geneve(data).map(|g| g.inner);
                (Tag::Geneve, "Tunnel::GENEVE", inner)
            }
            port::GTPV1_C | port::GTPV1_U => {
                let read = tunnel::gtpv1_with(data, &mut |w| odd.push(w));
                let inner = read.and_then(|g| match g.body {
                    Body::Packet(inner) => Ok(inner),
                    _ => Err(Refusal::Ignored),
                });
                (Tag::Gtpv1, GTPV1, inner)
            }
            port::GRE => return self.in_gre(ip, data, around),
            // A port says more than content does.
            p if p == port::TEREDO || p != port::AYIYA && tunnel::looks_like_teredo(data) => {
                return self.teredo(index, from, ip, udp, around);
            }
            p if p == port::AYIYA || tunnel::looks_like_ayiya(data) => {
                (Tag::Ayiya, "Tunnel::AYIYA", tunnel::ayiya(data))
            }
            _ => return,
        };
        let failed = slot.ext.tunnel_failed(tag);
        if failed && tag != Tag::Gtpv1 {
            return;
        }
        let full = around.is_full(self.options.limits.tunnel_depth);
        if full && tag != Tag::Gtpv1 {
            self.udp_too_deep(index, ip, tag, around);
            return;
        }
        if tag == Tag::Gtpv1 && !opened.as_ref().is_err_and(Refusal::is_out_of_bound) {
            if full {
                return self.gtp_too_deep();
            }
            if around.last().is_some_and(|t| t.kind == GTPV1) {
                return self.refuse(index, tag, "GTP-in-GTP", &[]);
            }
        }
        self.tell_headers(&odd, around);
        let inner = match opened {
            Ok(inner) => inner,
            Err(refusal) => {
                self.refused(index, ip, tag, &refusal, around);
                return;
            }
        };
        self.confirm_tunnel(index, tag);
        self.enter(index, tag, kind, inner, around);
    }

    /// Teredo counts once sound packets were seen both ways; what it carries is looked at anyway.
    fn teredo(
        &mut self,
        index: u32,
        from: Dir,
        ip: &Ip<'_>,
        udp: &Udp<'_>,
        around: &Encapsulation,
    ) {
        let Some(slot) = self.table.get(index) else { return };
        if slot.ext.tunnel_failed(Tag::Teredo) {
            return;
        }
        if around.is_full(self.options.limits.tunnel_depth) {
            return self.udp_too_deep(index, ip, Tag::Teredo, around);
        }
        let mut odd = Vec::new();
        let opened = tunnel::teredo_with(udp.payload, &mut |w| odd.push(w));
        self.tell_headers(&odd, around);
        let Some(slot) = self.table.get_mut(index) else { return };
        let teredo = match opened {
            Ok(teredo) => teredo,
            Err(Refusal::Violation { reason, data, if_confirmed }) => {
                let confirmed = slot.conn.services.contains(Tag::Teredo as u8);
                if let Some(name) = if_confirmed
                    && confirmed
                {
                    self.tunnel_weird(index, name, "TEREDO");
                }
                self.refuse(index, Tag::Teredo, &reason.to_string(), data);
                return;
            }
            Err(_) => return,
        };
        let rare = slot.ext.rare();
        rare.teredo_sides |= 1 << from.index();
        let both = rare.teredo_sides == 3;
        if teredo.bubble_with_payload {
            self.tunnel_weird(index, "Teredo_bubble_with_payload", "TEREDO");
        }
        if both {
            self.confirm_tunnel(index, Tag::Teredo);
        }
        self.enter(index, Tag::Teredo, TEREDO, teredo.inner, around);
    }

    fn enter(
        &mut self,
        index: u32,
        tag: Tag,
        kind: &'static str,
        inner: Inner<'_>,
        around: &Encapsulation,
    ) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if !slot.conn.is_hub() {
            // By its ports or its content a tunnel that holds a packet is of the hub.
            return;
        }
        slot.ext.rare().carries = true;
        let around = around.with(Tunnel { uid: Some(slot.conn.uid), id: slot.conn.id, kind });
        let wire_len = (inner.data().len() as u32).saturating_add(self.missing);
        self.walk_inner(inner, wire_len, tag.name(), &around);
    }

    fn confirm_tunnel(&mut self, index: u32, tag: Tag) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if !slot.ext.tunnel_failed(tag) {
            let known = slot.conn.services.contains(tag as u8);
            slot.conn.services.insert(tag as u8);
            if !known {
                serve(&mut self.env, self.now, &mut slot.conn, None);
            }
        }
    }

    #[cold]
    fn udp_too_deep(&mut self, index: u32, ip: &Ip<'_>, tag: Tag, around: &Encapsulation) {
        if let Some(slot) = self.table.get_mut(index) {
            slot.conn.note_limit();
        }
        self.flow_weird("exceeded_tunnel_max_depth", ip, tag.name(), around);
    }

    /// GTP tells so of no connection and no hosts, by a name of its own.
    #[cold]
    fn gtp_too_deep(&mut self) {
        let source = Some(Tag::Gtpv1.name());
        let what = Oddity { name: "tunnel_depth", addl: "", source, in_tunnel: false };
        let env = &mut self.env;
        env.weirds.packet(&mut env.logs, self.now, &what);
    }

    #[cold]
    fn tunnel_weird(&mut self, index: u32, name: &'static str, source: &'static str) {
        self.with_session(index, |conn, _, session| {
            gannet_flow::tcp::Consumer::weird(session, conn, name, "", source);
        });
    }

    #[cold]
    fn refused(
        &mut self,
        index: u32,
        ip: &Ip<'_>,
        tag: Tag,
        refusal: &Refusal<'_>,
        around: &Encapsulation,
    ) {
        match refusal {
            Refusal::Violation { reason, data, .. } => {
                self.refuse(index, tag, &reason.to_string(), data);
            }
            Refusal::Weird { weird, confirmed } => {
                if *confirmed {
                    self.confirm_tunnel(index, tag);
                }
                self.weird(weird, around, Some(ip));
            }
            Refusal::Ignored => {
                // AYIYA, GTP': nothing wrong, nothing inside.
            }
        }
    }

    /// The first violation of a tunnel protocol on a connection is logged.
    #[cold]
    fn refuse(&mut self, index: u32, tag: Tag, reason: &str, data: &[u8]) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if slot.ext.tunnel_failed(tag) {
            return;
        }
        slot.ext.rare().tunnels_failed.insert(tag as u8);
        let data = &data[..data.len().min(40)];
        failure::log(&mut self.env, self.now, &slot.conn, "packet", tag, reason.as_bytes(), data);
    }
}
