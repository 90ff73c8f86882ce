//! Events of connections, whatever they carry.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module::CONN;

    /// A connection began: its first packet was seen.
    pub struct NewConnection = "new_connection" {
        /// The connection.
        c: Connection = "c",
    }

    /// The state of a connection is removed: it closed, or was idle for too long, or the input ended.
    pub struct ConnectionStateRemove = "connection_state_remove" {
        /// The connection.
        c: Connection = "c",
    }

    /// The responder of a TCP connection acknowledged its SYN.
    pub struct ConnectionEstablished = "connection_established" {
        /// The connection.
        c: Connection = "c",
    }

    /// Originator and responder were exchanged: later packets showed that the first one came from
    /// the responder.
    pub struct ConnectionFlipped = "connection_flipped" {
        /// The connection, as it is afterwards.
        c: Connection = "c",
    }

    /// A SYN began another connection with the addresses and ports of one that is still known.
    pub struct ConnectionReused = "connection_reused" {
        /// The connection that ends.
        c: Connection = "c",
    }

    /// The IPv6 flow label of a side's packets changes.
    pub struct ConnectionFlowLabelChanged = "connection_flow_label_changed", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent the packet.
        is_orig: bool = "is_orig",
        /// The label of its packet before.
        old_label: u32 = "old_label",
        /// The label of the packet.
        new_label: u32 = "new_label",
    }

    /// A part of a TCP stream was not captured.
    pub struct ContentGap = "content_gap" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent the missing bytes.
        is_orig: bool = "is_orig",
        /// Position in the stream of the first missing byte.
        seq: u64 = "seq",
        /// Number of missing bytes.
        length: u64 = "length",
    }

    /// A TCP segment repeats bytes that are not acknowledged yet, and has others in their place.
    pub struct RexmitInconsistency<'a> = "rexmit_inconsistency", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The bytes that were sent first.
        t1: &'a [u8] = "t1",
        /// The bytes in their place.
        t2: &'a [u8] = "t2",
        /// Letters of the flags of the later segment: S, F, R, A, P, U.
        tcp_flags: &'a str = "tcp_flags",
    }
}
