//! Events of Finger.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Finger);

    /// A client asks for a user.
    pub struct FingerRequest<'a> = "finger_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it asks for all that is known (`/W`).
        full: bool = "full",
        /// The user; empty: all users.
        username: &'a [u8] = "username",
        /// The host to ask, if the server is to ask another one.
        hostname: &'a [u8] = "hostname",
    }

    /// A line of a server's answer.
    pub struct FingerReply<'a> = "finger_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The line.
        reply_line: &'a [u8] = "reply_line",
    }
}
