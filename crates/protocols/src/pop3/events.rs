//! Events of POP3.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Pop3);

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

    /// A further line of a reply.
    pub struct Pop3Data<'a> = "pop3_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The line without blanks around it.
        data: &'a [u8] = "data",
    }

    /// A client logged in.
    pub struct Pop3LoginSuccess<'a> = "pop3_login_success", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it: the server says so.
        is_orig: bool = "is_orig",
        /// The user.
        user: &'a [u8] = "user",
        /// The password, where it can be read.
        password: &'a [u8] = "password",
    }

    /// A client was refused.
    pub struct Pop3LoginFailure<'a> = "pop3_login_failure", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it: the server says so.
        is_orig: bool = "is_orig",
        /// The user.
        user: &'a [u8] = "user",
        /// The password, where it can be read.
        password: &'a [u8] = "password",
    }

    /// A command where it is not allowed, or a reply that shows that the state was another.
    pub struct Pop3Unexpected<'a> = "pop3_unexpected", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The command or reply.
        msg: &'static str = "msg",
        /// Why it was not expected.
        detail: &'a [u8] = "detail",
    }

    /// TLS begins.
    pub struct Pop3Starttls = "pop3_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }
}
