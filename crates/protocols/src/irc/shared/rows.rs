//! The row of irc.log, which a session and the transfers that it announced share.

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

gannet_log::row! {
    /// One row for each NICK, USER, JOIN or DCC transfer.
    #[derive(Clone, Debug)]
    pub struct IrcRow = "irc" {
        /// Time of the last such message of the session.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// The client's nickname.
        nick: Option<Vec<u8>> = "nick",
        /// The client's user name.
        user: Option<Vec<u8>> = "user",
        /// The command.
        command: Option<&'static str> = "command",
        /// Argument of the command: a name or a channel.
        value: Option<Vec<u8>> = "value",
        /// Further arguments.
        addl: Option<Vec<u8>> = "addl",
        /// Name of the offered file.
        dcc_file_name: Option<Vec<u8>> = "dcc_file_name",
        /// Size of the file according to the sender, in bytes.
        dcc_file_size: Option<u64> = "dcc_file_size",
        /// MIME type of the file, detected from its content.
        dcc_mime_type: Option<&'static str> = "dcc_mime_type",
        /// Identifier of the file.
        fuid: Option<Uid> = "fuid",
    }
}

impl IrcRow {
    /// The row of a new session.
    pub(in crate::irc) fn new(ts: Time, uid: Uid, id: ConnId) -> Self {
        Self {
            ts,
            uid,
            id,
            nick: None,
            user: None,
            command: None,
            value: None,
            addl: None,
            dcc_file_name: None,
            dcc_file_size: None,
            dcc_mime_type: None,
            fuid: None,
        }
    }
}
