//! Events of SMTP.

use gannet_event::Connection;

use super::message::Answered;
use crate::support::text::UpperCase;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Smtp);

    /// A command.
    pub struct SmtpRequest<'a> = "smtp_request" {
        /// The connection.
        c: Connection = "c",
        /// Whether the connection's originator sent it.
        is_orig: bool = "is_orig",
        /// The command in upper case; `.` at the end of a mail, `**` for a line of AUTH.
        command: UpperCase<'a> = "command",
        /// Its argument.
        arg: &'a [u8] = "arg",
    }

    /// A line of a reply.
    pub struct SmtpReply<'a> = "smtp_reply" {
        /// The connection.
        c: Connection = "c",
        /// Whether the connection's originator sent it.
        is_orig: bool = "is_orig",
        /// The reply code.
        code: u16 = "code",
        /// The command that is answered: `>` for the connection, `.` for a mail.
        cmd: Answered = "cmd",
        /// The text after the code.
        msg: &'a [u8] = "msg",
        /// Whether another line of the same reply follows.
        cont_resp: bool = "cont_resp",
    }

    /// A line of a mail.
    pub struct SmtpData<'a> = "smtp_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the connection's originator sent it.
        is_orig: bool = "is_orig",
        /// The line without its end and without the dot of transparency (RFC 5321 section 4.5.2).
        data: &'a [u8] = "data",
    }

    /// The exchange deviates from the protocol, or a part of it is missing.
    pub struct SmtpUnexpected<'a> = "smtp_unexpected", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the connection's originator sent it.
        is_orig: bool = "is_orig",
        /// Description.
        msg: &'static str = "msg",
        /// The line, or the command, the reply code and the number of the state.
        detail: &'a [u8] = "detail",
    }

    /// TLS begins.
    pub struct SmtpStarttls = "smtp_starttls" {
        /// The connection.
        c: Connection = "c",
    }
}
