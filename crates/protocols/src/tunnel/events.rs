//! Events of tunnels.

use super::TunnelType;
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

gannet_event::events! {
    crate::events::module::TUNNEL;

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
}
