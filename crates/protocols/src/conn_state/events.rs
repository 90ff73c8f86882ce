//! Events of connections, independent of their protocol.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module::CONN;

    /// A connection began: its first packet was seen.
    pub struct NewConnection = "new_connection" {
        /// The connection.
        c: Connection = "c",
    }

    /// The state of a connection is removed: it closed, timed out, or the input ended.
    pub struct ConnectionStateRemove = "connection_state_remove" {
        /// The connection.
        c: Connection = "c",
    }

    /// The responder of a TCP connection acknowledged the originator's SYN.
    pub struct ConnectionEstablished = "connection_established" {
        /// The connection.
        c: Connection = "c",
    }

    /// Originator and responder were exchanged: later packets showed that the first one came from
    /// the responder.
    pub struct ConnectionFlipped = "connection_flipped" {
        /// The connection with its new roles.
        c: Connection = "c",
    }

    /// A SYN began another connection with the addresses and ports of a connection that has not
    /// been removed.
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
        /// Flow label of the side's previous packet.
        old_label: u32 = "old_label",
        /// Flow label of the current packet.
        new_label: u32 = "new_label",
    }

    /// A part of a TCP stream was not captured.
    pub struct ContentGap = "content_gap" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent the missing bytes.
        is_orig: bool = "is_orig",
        /// Offset of the first missing byte in the stream.
        seq: u64 = "seq",
        /// Number of missing bytes.
        length: u64 = "length",
    }

    /// A TCP segment retransmits unacknowledged bytes with different contents.
    pub struct RexmitInconsistency<'a> = "rexmit_inconsistency", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Bytes that were sent first.
        t1: &'a [u8] = "t1",
        /// Bytes of the retransmission.
        t2: &'a [u8] = "t2",
        /// Flags of the later segment, as letters: S, F, R, A, P, U.
        tcp_flags: &'a str = "tcp_flags",
    }
}
