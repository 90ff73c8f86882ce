//! The row of irc.log, which a session and the transfers that it announced share.

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

gannet_log::row! {
    /// One row for each NICK, USER, JOIN or DCC transfer.
    #[derive(Clone, Debug)]
    pub struct IrcRow = "irc" {
        /// When the session's last message of these was seen.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its endpoints.
        id: ConnId = "id",
        /// The client's nickname.
        nick: Option<Vec<u8>> = "nick",
        /// The client's user name.
        user: Option<Vec<u8>> = "user",
        /// The command.
        command: Option<&'static str> = "command",
        /// Its value: the name, the channel.
        value: Option<Vec<u8>> = "value",
        /// Further arguments.
        addl: Option<Vec<u8>> = "addl",
        /// Name of the file that was offered.
        dcc_file_name: Option<Vec<u8>> = "dcc_file_name",
        /// Its size as stated by the sender.
        dcc_file_size: Option<u64> = "dcc_file_size",
        /// Its type, from its content.
        dcc_mime_type: Option<&'static str> = "dcc_mime_type",
        /// The file.
        fuid: Option<Uid> = "fuid",
    }
}

impl IrcRow {
    /// A session of which nothing is known yet.
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
