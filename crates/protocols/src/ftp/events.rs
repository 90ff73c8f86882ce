//! Events of FTP and of transfers as plain streams.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ftp);

    /// A command.
    pub struct FtpRequest<'a> = "ftp_request" {
        /// The connection.
        c: Connection = "c",
        /// The command in upper case.
        command: &'a [u8] = "command",
        /// Its argument.
        arg: &'a [u8] = "arg",
    }

    /// A line of a reply.
    pub struct FtpReply<'a> = "ftp_reply" {
        /// The connection.
        c: Connection = "c",
        /// The reply code; 0 for lines between the first and the last.
        code: u16 = "code",
        /// The text behind the code.
        msg: &'a [u8] = "msg",
        /// Whether another line of the same reply follows.
        cont_resp: bool = "cont_resp",
    }

    /// TLS begins.
    pub struct FtpStarttls = "ftp_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A data connection of FTP or IRC carries a file.
    pub struct FileTransferred<'a> = "file_transferred" {
        /// The connection.
        c: Connection = "c",
        /// The first bytes, 1,024 at the most.
        prefix: &'a [u8] = "prefix",
        /// Kind; never determined.
        descr: &'a [u8] = "descr",
        /// Media type by the first bytes.
        mime_type: &'a str = "mime_type",
    }
}
