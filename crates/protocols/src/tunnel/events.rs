//! Events of tunnels.

use super::gtpv1::CreateRequest;
use super::gtpv1::CreateResponse;
use super::gtpv1::DeleteRequest;
use super::gtpv1::DeleteResponse;
use super::gtpv1::Gtpv1Hdr;
use super::gtpv1::UpdateRequest;
use super::gtpv1::UpdateResponse;
use super::teredo::TeredoHdr;
use crate::packet::headers::PktHdr;
use gannet_base::Uid;
use gannet_event::Connection;
use gannet_event::Id4;

gannet_event::enumeration!(TunnelType = "Tunnel::Type", |t| t.0);
gannet_event::record! {
    /// A tunnel that encloses a connection.
    #[derive(Clone, Copy, Debug)]
    pub struct EncapsulatingConn = "Tunnel::EncapsulatingConn" {
        /// Originator and responder of the tunnel.
        cid: Id4 = "cid",
        /// Kind of the tunnel.
        tunnel_type: TunnelType = "tunnel_type",
        /// The connection that is the tunnel, if it is a single one.
        uid: Option<Uid> = "uid",
    }
}

/// A kind of tunnel, as the log spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelType(pub &'static str);

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ayiya);

    /// The enclosing tunnels of a connection changed.
    pub struct TunnelChanged = "tunnel_changed" {
        /// The connection.
        c: Connection = "c",
        /// The tunnels, the outermost first.
        e: Vec<EncapsulatingConn> = "e",
    }

    /// A connection carries Teredo.
    pub struct NewTeredoState = "new_teredo_state" {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection may carry GTPv1.
    pub struct NewGtpv1State = "new_gtpv1_state" {
        /// The connection.
        c: Connection = "c",
    }

    /// A packet in a VXLAN tunnel; raised after the events of that packet.
    pub struct VxlanPacket = "vxlan_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of the inner packet.
        inner: PktHdr = "inner",
        /// Network identifier.
        vni: u64 = "vni",
    }

    /// A packet in a Geneve tunnel; raised after the events of that packet.
    pub struct GenevePacket = "geneve_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of the inner packet.
        inner: PktHdr = "inner",
        /// Network identifier.
        vni: u64 = "vni",
    }

    /// The options of a Geneve packet; raised after the events of the inner packet, those of nested
    /// tunnels first.
    pub struct GeneveOptions<'a> = "gannet::geneve_options", opt_in, one_thread {
        /// The options, as they are on the wire.
        options: &'a [u8] = "options",
    }

    /// A packet in a Teredo tunnel.
    pub struct TeredoPacket<'a> = "teredo_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the inner packet.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A packet in a Teredo tunnel with an authentication header.
    pub struct TeredoAuthentication<'a> = "teredo_authentication", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the inner packet.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A packet in a Teredo tunnel with an origin indication.
    pub struct TeredoOriginIndication<'a> = "teredo_origin_indication", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the inner packet.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A Teredo bubble: a packet without payload.
    pub struct TeredoBubble<'a> = "teredo_bubble", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the inner packet.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A GTPv1 message.
    pub struct Gtpv1Message = "gtpv1_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
    }

    /// A packet in a GTPv1 tunnel.
    pub struct Gtpv1GPduPacket = "gtpv1_g_pdu_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// GTP header.
        inner_gtp: Gtpv1Hdr = "inner_gtp",
        /// Headers of the inner packet.
        inner_ip: PktHdr = "inner_ip",
    }

    /// A Create PDP Context Request.
    pub struct Gtpv1CreatePdpCtxRequest<'a> = "gtpv1_create_pdp_ctx_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: CreateRequest<'a> = "elements",
    }

    /// A Create PDP Context Response.
    pub struct Gtpv1CreatePdpCtxResponse<'a> = "gtpv1_create_pdp_ctx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: CreateResponse<'a> = "elements",
    }

    /// An Update PDP Context Request.
    pub struct Gtpv1UpdatePdpCtxRequest<'a> = "gtpv1_update_pdp_ctx_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: UpdateRequest<'a> = "elements",
    }

    /// An Update PDP Context Response.
    pub struct Gtpv1UpdatePdpCtxResponse<'a> = "gtpv1_update_pdp_ctx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: UpdateResponse<'a> = "elements",
    }

    /// A Delete PDP Context Request.
    pub struct Gtpv1DeletePdpCtxRequest<'a> = "gtpv1_delete_pdp_ctx_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: DeleteRequest<'a> = "elements",
    }

    /// A Delete PDP Context Response.
    pub struct Gtpv1DeletePdpCtxResponse<'a> = "gtpv1_delete_pdp_ctx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: DeleteResponse<'a> = "elements",
    }
}
