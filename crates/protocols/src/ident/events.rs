//! Events of IDENT.

use gannet_event::Connection;
use gannet_event::Port;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ident);

    /// A client asks for the user of a connection.
    pub struct IdentRequest = "ident_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The connection's port on the client.
        lport: Port = "lport",
        /// The connection's port on the server.
        rport: Port = "rport",
    }

    /// A server names the user.
    pub struct IdentReply<'a> = "ident_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The connection's port on the client.
        lport: Port = "lport",
        /// The connection's port on the server.
        rport: Port = "rport",
        /// The user.
        user_id: &'a [u8] = "user_id",
        /// The operating system, with the `:` or `,` behind it, as in Zeek.
        system: &'a [u8] = "system",
    }

    /// A server names no user.
    pub struct IdentError<'a> = "ident_error", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The connection's port on the client.
        lport: Port = "lport",
        /// The connection's port on the server.
        rport: Port = "rport",
        /// The error.
        line: &'a [u8] = "line",
    }
}
