//! Events of tunneled packets, raised if they have a listener.

use gannet_event::Connection;
use gannet_event::Event;
use gannet_protocols::Tag;
use gannet_protocols::conn_state;
use gannet_protocols::packet::build;
use gannet_protocols::packet::headers::PktHdr;
use gannet_protocols::tunnel::events::*;
use gannet_protocols::tunnel::gtpv1::CreateRequest;
use gannet_protocols::tunnel::gtpv1::CreateResponse;
use gannet_protocols::tunnel::gtpv1::DeleteRequest;
use gannet_protocols::tunnel::gtpv1::DeleteResponse;
use gannet_protocols::tunnel::gtpv1::UpdateRequest;
use gannet_protocols::tunnel::gtpv1::UpdateResponse;
use gannet_protocols::tunnel::teredo::TeredoHdr;
use gannet_protocols::weird::PacketWeird;
use gannet_wire::tunnel;
use gannet_wire::tunnel::Body;
use gannet_wire::tunnel::Inner;
use gannet_wire::tunnel::Teredo;

use crate::shard::Shard;

impl Shard {
    fn raise_of_tunnel<E: Event>(&mut self, index: u32, make: impl FnOnce(Connection) -> E) {
        if self.env.logs.events.wants::<E>()
            && let Some(slot) = self.table.get(index)
        {
            conn_state::raise(&mut self.env.logs, &slot.conn, make);
        }
    }

    /// Raises the event of a VXLAN or Geneve packet, after its inner packet was processed.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_inner(&mut self, index: u32, tag: Tag, data: &[u8], inner: &Inner<'_>) {
        let wants_options = self.env.logs.events.wants::<GeneveOptions<'_>>();
        if wants_options
            && tag == Tag::Geneve
            && let Ok(geneve) = tunnel::geneve(data)
        {
            self.env.logs.events.raise(&GeneveOptions { options: geneve.raw_options });
        }
        match tag {
            Tag::Vxlan if self.env.logs.events.wants::<VxlanPacket>() => {
                if let (Some(inner), Ok(vxlan)) = (headers(inner), tunnel::vxlan(data)) {
                    let vni = u64::from(vxlan.vni);
                    self.raise_of_tunnel(index, |outer| VxlanPacket { outer, inner, vni });
                }
            }
            Tag::Geneve if self.env.logs.events.wants::<GenevePacket>() => {
                if let (Some(inner), Ok(geneve)) = (headers(inner), tunnel::geneve(data)) {
                    let vni = u64::from(geneve.vni);
                    self.raise_of_tunnel(index, |outer| GenevePacket { outer, inner, vni });
                }
            }
            _ => {}
        }
    }

    /// Raises the events of a Teredo packet, before its inner packet is processed.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_teredo(&mut self, index: u32, teredo: &Teredo<'_>) {
        let events = &self.env.logs.events;
        let is_wanted = events.wants::<TeredoPacket<'_>>()
            || events.wants::<TeredoAuthentication<'_>>()
            || events.wants::<TeredoOriginIndication<'_>>()
            || events.wants::<TeredoBubble<'_>>();
        if !is_wanted {
            return;
        }
        let Some(hdr) = headers(&teredo.inner) else { return };
        let hdr = TeredoHdr::new(teredo, hdr);
        let inner = hdr.clone();
        self.raise_of_tunnel(index, |outer| TeredoPacket { outer, inner });
        if teredo.authentication.is_some() {
            let inner = hdr.clone();
            self.raise_of_tunnel(index, |outer| TeredoAuthentication { outer, inner });
        }
        if teredo.origin.is_some() {
            let inner = hdr.clone();
            self.raise_of_tunnel(index, |outer| TeredoOriginIndication { outer, inner });
        }
        if teredo.bubble {
            self.raise_of_tunnel(index, |outer| TeredoBubble { outer, inner: hdr });
        }
    }

    /// Raises the event of a GTPv1 message, before its inner packet is processed.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_gtp(&mut self, index: u32, data: &[u8]) {
        if !self.env.logs.events.any() {
            return;
        }
        let Ok(message) = tunnel::gtpv1_message(data) else { return };
        let hdr = (&message).into();
        self.raise_of_tunnel(index, |c| Gtpv1Message { c, hdr });
        let Body::Control(body) = message.body else { return };
        let mut faults = Vec::new();
        let all = tunnel::elements(body);
        let invalid = |kind| faults.push(kind);
        let events = &self.env.logs.events;
        match message.message {
            16 if events.wants::<Gtpv1CreatePdpCtxRequest<'_>>() => {
                let elements = CreateRequest::new(all, invalid);
                self.raise_of_tunnel(index, |c| Gtpv1CreatePdpCtxRequest { c, hdr, elements });
            }
            17 if events.wants::<Gtpv1CreatePdpCtxResponse<'_>>() => {
                let elements = CreateResponse::new(all, invalid);
                self.raise_of_tunnel(index, |c| Gtpv1CreatePdpCtxResponse { c, hdr, elements });
            }
            18 if events.wants::<Gtpv1UpdatePdpCtxRequest<'_>>() => {
                let elements = UpdateRequest::new(all, invalid);
                self.raise_of_tunnel(index, |c| Gtpv1UpdatePdpCtxRequest { c, hdr, elements });
            }
            19 if events.wants::<Gtpv1UpdatePdpCtxResponse<'_>>() => {
                let elements = UpdateResponse::new(all, invalid);
                self.raise_of_tunnel(index, |c| Gtpv1UpdatePdpCtxResponse { c, hdr, elements });
            }
            20 if events.wants::<Gtpv1DeletePdpCtxRequest<'_>>() => {
                let elements = DeleteRequest::new(all, invalid);
                self.raise_of_tunnel(index, |c| Gtpv1DeletePdpCtxRequest { c, hdr, elements });
            }
            21 if events.wants::<Gtpv1DeletePdpCtxResponse<'_>>() => {
                let elements = DeleteResponse::new(all, invalid);
                self.raise_of_tunnel(index, |c| Gtpv1DeletePdpCtxResponse { c, hdr, elements });
            }
            _ => {}
        }
        for kind in faults {
            let addl = kind.to_string();
            let source = Some(Tag::Gtpv1.name());
            let name = "gtp_invalid_info_element";
            let what = PacketWeird { name, addl: &addl, source, in_tunnel: false };
            let env = &mut self.env;
            env.weirds.packet(&mut env.logs, self.now, &what);
        }
    }

    /// Raises the event of the inner packet of GTPv1, before that packet is processed.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise_gtp_packet(&mut self, index: u32, data: &[u8], inner: &Inner<'_>) {
        if self.env.logs.events.wants::<Gtpv1GPduPacket>()
            && let Ok(message) = tunnel::gtpv1_message(data)
            && let Some(inner_ip) = headers(inner)
        {
            let inner_gtp = (&message).into();
            self.raise_of_tunnel(index, |outer| Gtpv1GPduPacket { outer, inner_gtp, inner_ip });
        }
    }
}

/// The headers of the inner IP packet; `None` if the tunnel carries no valid IP packet.
fn headers(inner: &Inner<'_>) -> Option<PktHdr> {
    let data = inner.data();
    let len = u32::try_from(data.len()).ok()?;
    // Raw IP has its own link type.
    let decoded = gannet_wire::decode(inner.link_type()?, data, len).ok()?;
    decoded.datagram().map(|datagram| build::packet(&datagram.ip))
}
