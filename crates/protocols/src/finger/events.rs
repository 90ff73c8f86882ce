//! Events of Finger.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Finger);

    /// A client queries a user.
    pub struct FingerRequest<'a> = "finger_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the client requests verbose output (`/W`).
        full: bool = "full",
        /// Name of the user; empty to query all users.
        username: &'a [u8] = "username",
        /// Host to which the server is to forward the query, if any.
        hostname: &'a [u8] = "hostname",
    }

    /// A server sends a line of its response.
    pub struct FingerReply<'a> = "finger_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The line.
        reply_line: &'a [u8] = "reply_line",
    }
}
