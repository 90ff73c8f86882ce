//! Events of DHCP.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Connection;
use gannet_event::Id4;

use super::message::Msg;
use super::message::Options;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Dhcp);

    /// A DHCP message.
    pub struct DhcpMessage<'a> = "dhcp_message" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The fixed part of the message.
        msg: Msg<'a> = "msg",
        /// The options of the message.
        options: Options<'a> = "options",
    }

    /// A DHCP message, for scripts that aggregate the messages of one transaction.
    pub struct AggregateMsgs<'a> = "DHCP::aggregate_msgs", scripted {
        /// Time of the message.
        ts: Time = "ts",
        /// Endpoints of the connection.
        id: Id4 = "id",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The fixed part of the message.
        msg: Msg<'a> = "msg",
        /// The options of the message.
        options: Options<'a> = "options",
    }
}
