//! Events of weirds, with Zeek's names. They are raised after sampling.

use gannet_base::Addr;
use gannet_base::Uid;
use gannet_event::Connection;
use gannet_event::Id4;

gannet_event::events! {
    crate::events::module::WEIRD;

    /// A connection behaved unusually.
    pub struct ConnWeird<'a> = "conn_weird" {
        /// Name of the behaviour.
        name: &'a str = "name",
        /// The connection.
        c: Connection = "c",
        /// Details.
        addl: &'a [u8] = "addl",
        /// Name of the analyzer that reports it, if any.
        source: &'a str = "source",
    }

    /// Like `conn_weird`, for a connection whose state was removed.
    pub struct ExpiredConnWeird<'a> = "expired_conn_weird" {
        /// Name of the behaviour.
        name: &'a str = "name",
        /// Originator and responder.
        id: Id4 = "id",
        /// The connection's uid in all logs.
        uid: Uid = "uid",
        /// Details.
        addl: &'a [u8] = "addl",
        /// Name of the analyzer that reports it, if any.
        source: &'a str = "source",
    }

    /// Packets between two hosts are unusual, outside of any connection.
    pub struct FlowWeird<'a> = "flow_weird" {
        /// Name of the behaviour.
        name: &'a str = "name",
        /// The sender's address.
        src: Addr = "src",
        /// The receiver's address.
        dst: Addr = "dst",
        /// Details.
        addl: &'a [u8] = "addl",
        /// Name of the analyzer that reports it, if any.
        source: &'a str = "source",
    }

    /// Something unusual that belongs to no connection and no pair of hosts.
    pub struct NetWeird<'a> = "net_weird" {
        /// Name of the behaviour.
        name: &'a str = "name",
        /// Details.
        addl: &'a [u8] = "addl",
        /// Name of the analyzer that reports it, if any.
        source: &'a str = "source",
    }

    /// A weird, before sampling. Delivered before the other events of the packet.
    pub struct WeirdSeen<'a> = "gannet::weird_seen", opt_in, one_thread {
        /// Name of the behaviour.
        name: &'a str = "name",
    }
}
