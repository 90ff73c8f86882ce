//! The row of a transaction.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Set;
use gannet_log::Type;
use gannet_log::Value;
use gannet_log::Vector;
use gannet_log::row;

row! {
    /// One row for each transaction: the messages with one transaction ID within a short time.
    #[derive(Clone, Debug)]
    pub struct Dhcp = "dhcp" {
        /// Time of the first message.
        ts: Time = "ts",
        /// The connections that carried the messages.
        uids: Set<Uid> = "uids",
        /// The client's address if it had one, otherwise the assigned one.
        client_addr: Option<Addr> = "client_addr",
        /// The server that assigned an address.
        server_addr: Option<Addr> = "server_addr",
        /// The client's hardware address.
        mac: Option<Vec<u8>> = "mac",
        /// Host name of the client, as sent by the client.
        host_name: Option<Vec<u8>> = "host_name",
        /// Fully qualified name of the client, as sent by the client.
        client_fqdn: Option<Vec<u8>> = "client_fqdn",
        /// Domain of the client, as sent by the server.
        domain: Option<Vec<u8>> = "domain",
        /// Address that the client requested.
        requested_addr: Option<Addr> = "requested_addr",
        /// Address that the server assigned.
        assigned_addr: Option<Addr> = "assigned_addr",
        /// Lease time of the address.
        lease_time: Option<Interval> = "lease_time",
        /// Error message of the client.
        client_message: Option<Vec<u8>> = "client_message",
        /// Error message of the server.
        server_message: Option<Vec<u8>> = "server_message",
        /// Types of the messages in order.
        msg_types: Vector<MessageType> = "msg_types",
        /// Time from the first to the last message.
        duration: Interval = "duration",
    }
}

/// Type of a message (RFC 2132 §9.6 and the registry), by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageType(pub u8);

impl MessageType {
    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 18] = [
            "DISCOVER",
            "OFFER",
            "REQUEST",
            "DECLINE",
            "ACK",
            "NAK",
            "RELEASE",
            "INFORM",
            "FORCERENEW",
            "LEASEQUERY",
            "LEASEUNASSIGNED",
            "LEASEUNKNOWN",
            "LEASEACTIVE",
            "BULKLEASEQUERY",
            "LEASEQUERYDONE",
            "ACTIVELEASEQUERY",
            "LEASEQUERYSTATUS",
            "TLS",
        ];
        NAMES.get(usize::from(self.0).checked_sub(1)?).copied()
    }
}

impl Value for MessageType {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self.name() {
            Some(name) => e.plain(name.as_bytes()),
            None => e.plain(format!("unknown-message-type-{}", self.0).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_types() {
        assert_eq!(MessageType(1).name(), Some("DISCOVER"));
        assert_eq!(MessageType(18).name(), Some("TLS"));
        assert_eq!((MessageType(0).name(), MessageType(19).name()), (None, None));
    }
}
