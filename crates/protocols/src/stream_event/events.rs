//! Events of the bytes of connections.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::StreamEvent);

    /// Reassembled bytes of a connection, segment by segment. Expensive for connections with much
    /// data.
    pub struct StreamDeliver<'a> = "stream_deliver", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// The bytes.
        data: &'a [u8] = "data",
    }

    /// Bytes of a connection are missing.
    pub struct StreamUndelivered = "stream_undelivered", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        is_orig: bool = "is_orig",
        /// Position of the first missing byte in the stream; the stream begins with 1.
        seq: u64 = "seq",
        /// Number of missing bytes.
        len: u64 = "len",
    }
}
