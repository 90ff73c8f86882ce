//! Events of POP3.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Pop3);

    /// A command that is allowed in the current state.
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
        /// Text of the reply after the indicator.
        msg: &'a [u8] = "msg",
    }

    /// A further line of a reply.
    pub struct Pop3Data<'a> = "pop3_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The line without surrounding spaces.
        data: &'a [u8] = "data",
    }

    /// A client logged in.
    pub struct Pop3LoginSuccess<'a> = "pop3_login_success", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent the reply: false, because the server sends it.
        is_orig: bool = "is_orig",
        /// The user.
        user: &'a [u8] = "user",
        /// The password, if it was sent in clear text.
        password: &'a [u8] = "password",
    }

    /// A login failed.
    pub struct Pop3LoginFailure<'a> = "pop3_login_failure", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent the reply: false, because the server sends it.
        is_orig: bool = "is_orig",
        /// The user.
        user: &'a [u8] = "user",
        /// The password, if it was sent in clear text.
        password: &'a [u8] = "password",
    }

    /// A command that is not allowed in the current state, or a reply that contradicts it.
    pub struct Pop3Unexpected<'a> = "pop3_unexpected", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The command or reply.
        msg: &'static str = "msg",
        /// Reason.
        detail: &'a [u8] = "detail",
    }

    /// TLS begins.
    pub struct Pop3Starttls = "pop3_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }
}
