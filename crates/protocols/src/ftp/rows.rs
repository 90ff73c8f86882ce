//! ftp.log: one row a command that concerns files, with its reply.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Port;

gannet_log::row! {
    /// One row for each command that transfers or removes files or prepares that, and at least one a
    /// session.
    pub struct FtpRow<'a> = "ftp" {
        /// When the command was sent.
        ts: Time = "ts",
        /// The control connection.
        uid: &'a Uid = "uid",
        /// Its endpoints.
        id: &'a ConnId = "id",
        /// The user.
        user: &'a [u8] = "user",
        /// The user's password; hidden unless the user is a guest.
        password: Option<&'a [u8]> = "password",
        /// The command.
        command: Option<&'a [u8]> = "command",
        /// Its argument; a URL where it names a file.
        arg: Option<&'a [u8]> = "arg",
        /// Type of the file, from its content.
        mime_type: Option<&'static str> = "mime_type",
        /// Size of the file, from the reply.
        file_size: Option<u64> = "file_size",
        /// Code of the reply.
        reply_code: Option<u16> = "reply_code",
        /// Text of the reply.
        reply_msg: Option<&'a [u8]> = "reply_msg",
        /// Whether the server accepts the data connection (passive mode).
        passive: Option<bool> = "data_channel.passive",
        /// Address that opens the data connection.
        data_orig: Option<Addr> = "data_channel.orig_h",
        /// Address that accepts it.
        data_resp: Option<Addr> = "data_channel.resp_h",
        /// Port that accepts it.
        data_port: Option<Port> = "data_channel.resp_p",
        /// The file.
        fuid: Option<Uid> = "fuid",
    }
}
