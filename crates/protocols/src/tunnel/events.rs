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
    /// A tunnel around a connection.
    #[derive(Clone, Copy, Debug)]
    pub struct EncapsulatingConn = "Tunnel::EncapsulatingConn" {
        /// Its ends.
        cid: Id4 = "cid",
        /// Its kind.
        tunnel_type: TunnelType = "tunnel_type",
        /// The connection that it is, if it is one.
        uid: Option<Uid> = "uid",
    }
}

/// A kind of tunnel, as the log spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelType(pub &'static str);

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ayiya);

    /// A connection comes through other tunnels than before.
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

    /// A connection may carry GTP.
    pub struct NewGtpv1State = "new_gtpv1_state" {
        /// The connection.
        c: Connection = "c",
    }

    /// A packet in VXLAN, after its own events.
    pub struct VxlanPacket = "vxlan_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of the packet inside.
        inner: PktHdr = "inner",
        /// Network identifier.
        vni: u64 = "vni",
    }

    /// A packet in Geneve, after its own events.
    pub struct GenevePacket = "geneve_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of the packet inside.
        inner: PktHdr = "inner",
        /// Network identifier.
        vni: u64 = "vni",
    }

    /// The options of a packet in Geneve, after its own events: those of tunnels within it come first.
    pub struct GeneveOptions<'a> = "gannet::geneve_options", opt_in, one_thread {
        /// The options, as they are on the wire.
        options: &'a [u8] = "options",
    }

    /// A packet in Teredo.
    pub struct TeredoPacket<'a> = "teredo_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the packet inside.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A packet in Teredo with a header of authentication.
    pub struct TeredoAuthentication<'a> = "teredo_authentication", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the packet inside.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A packet in Teredo with an origin indication.
    pub struct TeredoOriginIndication<'a> = "teredo_origin_indication", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the packet inside.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A packet in Teredo without payload.
    pub struct TeredoBubble<'a> = "teredo_bubble", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Headers of Teredo and of the packet inside.
        inner: TeredoHdr<'a> = "inner",
    }

    /// A message of GTPv1.
    pub struct Gtpv1Message = "gtpv1_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
    }

    /// A packet in GTPv1.
    pub struct Gtpv1GPduPacket = "gtpv1_g_pdu_packet", opt_in {
        /// The connection of the tunnel.
        outer: Connection = "outer",
        /// Header of GTP.
        inner_gtp: Gtpv1Hdr = "inner_gtp",
        /// Headers of the packet inside.
        inner_ip: PktHdr = "inner_ip",
    }

    /// A request for the creation of a context of the packet data protocol.
    pub struct Gtpv1CreatePdpCtxRequest<'a> = "gtpv1_create_pdp_ctx_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: CreateRequest<'a> = "elements",
    }

    /// The answer to a request for the creation of a context of the packet data protocol.
    pub struct Gtpv1CreatePdpCtxResponse<'a> = "gtpv1_create_pdp_ctx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: CreateResponse<'a> = "elements",
    }

    /// A request for the update of a context of the packet data protocol.
    pub struct Gtpv1UpdatePdpCtxRequest<'a> = "gtpv1_update_pdp_ctx_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: UpdateRequest<'a> = "elements",
    }

    /// The answer to a request for the update of a context of the packet data protocol.
    pub struct Gtpv1UpdatePdpCtxResponse<'a> = "gtpv1_update_pdp_ctx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: UpdateResponse<'a> = "elements",
    }

    /// A request for the deletion of a context of the packet data protocol.
    pub struct Gtpv1DeletePdpCtxRequest<'a> = "gtpv1_delete_pdp_ctx_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: DeleteRequest<'a> = "elements",
    }

    /// The answer to a request for the deletion of a context of the packet data protocol.
    pub struct Gtpv1DeletePdpCtxResponse<'a> = "gtpv1_delete_pdp_ctx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its header.
        hdr: Gtpv1Hdr = "hdr",
        /// Its information elements.
        elements: DeleteResponse<'a> = "elements",
    }
}
