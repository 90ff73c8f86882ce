//! Events of IDENT.

use gannet_event::Connection;
use gannet_event::Port;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ident);

    /// A client requests the user of a connection.
    pub struct IdentRequest = "ident_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Port of the queried connection on the client.
        lport: Port = "lport",
        /// Port of the queried connection on the server.
        rport: Port = "rport",
    }

    /// A server names the user.
    pub struct IdentReply<'a> = "ident_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Port of the queried connection on the client.
        lport: Port = "lport",
        /// Port of the queried connection on the server.
        rport: Port = "rport",
        /// The user.
        user_id: &'a [u8] = "user_id",
        /// The operating system, with the `:` or `,` after it, as in Zeek.
        system: &'a [u8] = "system",
    }

    /// A server answers with an error.
    pub struct IdentError<'a> = "ident_error", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Port of the queried connection on the client.
        lport: Port = "lport",
        /// Port of the queried connection on the server.
        rport: Port = "rport",
        /// The error.
        line: &'a [u8] = "line",
    }
}
