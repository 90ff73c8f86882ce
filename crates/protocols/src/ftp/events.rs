//! Events of FTP, and of file transfers over separate connections.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ftp);

    /// A client sends a command.
    pub struct FtpRequest<'a> = "ftp_request" {
        /// The connection.
        c: Connection = "c",
        /// The command in upper case.
        command: &'a [u8] = "command",
        /// Argument of the command.
        arg: &'a [u8] = "arg",
    }

    /// A server sends a line of a reply.
    pub struct FtpReply<'a> = "ftp_reply" {
        /// The connection.
        c: Connection = "c",
        /// The reply code; 0 for lines between the first and the last.
        code: u16 = "code",
        /// The text after the code.
        msg: &'a [u8] = "msg",
        /// Whether another line of the same reply follows.
        cont_resp: bool = "cont_resp",
    }

    /// The connection switches to TLS.
    pub struct FtpStarttls = "ftp_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A data connection of FTP or IRC carries a file.
    pub struct FileTransferred<'a> = "file_transferred" {
        /// The connection.
        c: Connection = "c",
        /// The first bytes of the file, at most 1,024.
        prefix: &'a [u8] = "prefix",
        /// Description of the file type; always `<unknown>`.
        descr: &'a [u8] = "descr",
        /// MIME type detected from the first bytes.
        mime_type: &'a str = "mime_type",
    }
}
