//! Records of Teredo headers in events.

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_event::Port;
use gannet_wire::tunnel::Teredo;

use crate::packet::headers::PktHdr;

gannet_event::record! {
    /// A Teredo authentication header (RFC 4380 section 5.1.1).
    #[derive(Clone, Debug)]
    pub struct TeredoAuth<'a> = "teredo_auth" {
        /// Client identifier.
        id: &'a [u8] = "id",
        /// Authentication value.
        value: &'a [u8] = "value",
        /// Nonce.
        nonce: u64 = "nonce",
        /// Whether the client needs a new key.
        confirm: u64 = "confirm",
    }
}

gannet_event::record! {
    /// A Teredo origin indication (RFC 4380 section 5.1.1).
    #[derive(Clone, Debug)]
    pub struct TeredoOrigin = "teredo_origin" {
        /// Port of the client.
        p: Port = "p",
        /// Address of the client.
        a: Addr = "a",
    }
}

gannet_event::record! {
    /// The headers of a packet in a Teredo tunnel.
    #[derive(Clone, Debug)]
    pub struct TeredoHdr<'a> = "teredo_hdr" {
        /// Authentication.
        auth: Option<TeredoAuth<'a>> = "auth",
        /// Origin indication.
        origin: Option<TeredoOrigin> = "origin",
        /// Headers of the packet.
        hdr: PktHdr = "hdr",
    }
}

impl<'a> TeredoHdr<'a> {
    /// Builds the record from a Teredo header and the headers of the inner packet.
    #[must_use]
    pub fn new(teredo: &Teredo<'a>, hdr: PktHdr) -> Self {
        let auth = teredo.authentication.map(|auth| TeredoAuth {
            id: auth.id,
            value: auth.value,
            nonce: auth.nonce,
            confirm: u64::from(auth.confirmation),
        });
        let origin = teredo
            .origin
            .map(|origin| TeredoOrigin { p: Port(origin.port, Proto::Udp), a: origin.addr });
        Self { auth, origin, hdr }
    }
}
