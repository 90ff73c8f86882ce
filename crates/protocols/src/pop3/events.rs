//! Events of POP3.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module::POP3;

    /// A command where it is allowed.
    pub struct Pop3Request<'a> = "pop3_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The command.
        command: &'static str = "command",
        /// Its argument.
        arg: &'a [u8] = "arg",
    }

    /// The first line of a reply.
    pub struct Pop3Reply<'a> = "pop3_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// `OK` or `ERR`.
        cmd: &'static str = "cmd",
        /// Next header.
        msg: &'a [u8] = "msg",
    }

    /// TLS begins.
    pub struct Pop3Starttls = "pop3_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }
}
