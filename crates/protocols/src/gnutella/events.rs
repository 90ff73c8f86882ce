//! Events of Gnutella.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Gnutella);

    /// Lines of a handshake, up to an empty one.
    pub struct GnutellaTextMsg<'a> = "gnutella_text_msg", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        orig: bool = "orig",
        /// The lines, each behind CR and LF.
        headers: &'a [u8] = "headers",
    }

    /// A message.
    pub struct GnutellaBinaryMsg<'a> = "gnutella_binary_msg", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        orig: bool = "orig",
        /// Its kind.
        msg_type: u64 = "msg_type",
        /// How many more hosts may pass it on.
        ttl: u64 = "ttl",
        /// How many hosts passed it on.
        hops: u64 = "hops",
        /// Bytes behind its header, as that says.
        msg_len: u32 = "msg_len",
        /// The first of them.
        payload: &'a [u8] = "payload",
        /// The number of those.
        payload_len: u64 = "payload_len",
        /// Whether fewer were seen than events have.
        trunc: bool = "trunc",
        /// Whether all of them were seen.
        complete: bool = "complete",
    }

    /// A message whose header is cut by the end of the connection.
    pub struct GnutellaPartialBinaryMsg<'a> = "gnutella_partial_binary_msg", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        orig: bool = "orig",
        /// The begin of the header.
        msg: &'a [u8] = "msg",
        /// Its bytes.
        len: u64 = "len",
    }

    /// Both sides accepted the connection.
    pub struct GnutellaEstablish = "gnutella_establish", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The connection ends, and one side at least did not accept it.
    pub struct GnutellaNotEstablish = "gnutella_not_establish", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The connection is of HTTP.
    pub struct GnutellaHttpNotify = "gnutella_http_notify", opt_in {
        /// The connection.
        c: Connection = "c",
    }
}
