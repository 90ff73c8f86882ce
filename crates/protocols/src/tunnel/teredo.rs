//! Headers of Teredo as events show them.

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_event::Port;
use gannet_wire::tunnel::Teredo;

use crate::packet::headers::PktHdr;

gannet_event::record! {
    /// A header of authentication (RFC 4380 section 5.1.1).
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
    /// An origin indication (RFC 4380 section 5.1.1).
    #[derive(Clone, Debug)]
    pub struct TeredoOrigin = "teredo_origin" {
        /// Port of the client.
        p: Port = "p",
        /// Address of the client.
        a: Addr = "a",
    }
}

gannet_event::record! {
    /// The headers of a packet in Teredo.
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
    /// The headers of `teredo`, whose packet has these headers.
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
