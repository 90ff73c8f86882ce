//! Events of Gnutella.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Gnutella);

    /// A side sends a complete handshake: lines up to an empty one.
    pub struct GnutellaTextMsg<'a> = "gnutella_text_msg", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent them.
        orig: bool = "orig",
        /// The lines, each after CR and LF.
        headers: &'a [u8] = "headers",
    }

    /// A side sends a message.
    pub struct GnutellaBinaryMsg<'a> = "gnutella_binary_msg", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        orig: bool = "orig",
        /// Type of the message.
        msg_type: u64 = "msg_type",
        /// Remaining number of times that the message may be forwarded.
        ttl: u64 = "ttl",
        /// Number of times that the message has been forwarded.
        hops: u64 = "hops",
        /// Length of the payload as the header gives it, in bytes.
        msg_len: u32 = "msg_len",
        /// The first bytes of the payload, at most 1024.
        payload: &'a [u8] = "payload",
        /// Number of bytes in `payload`.
        payload_len: u64 = "payload_len",
        /// Whether `payload` is shorter than the message and the limit allow.
        trunc: bool = "trunc",
        /// Whether the whole payload was seen.
        complete: bool = "complete",
    }

    /// The connection ends within the header of a message.
    pub struct GnutellaPartialBinaryMsg<'a> = "gnutella_partial_binary_msg", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        orig: bool = "orig",
        /// The incomplete header.
        msg: &'a [u8] = "msg",
        /// Length of the incomplete header, in bytes.
        len: u64 = "len",
    }

    /// Both sides accepted the connection.
    pub struct GnutellaEstablish = "gnutella_establish", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The connection ends, and at least one side did not accept it.
    pub struct GnutellaNotEstablish = "gnutella_not_establish", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The connection carries HTTP.
    pub struct GnutellaHttpNotify = "gnutella_http_notify", opt_in {
        /// The connection.
        c: Connection = "c",
    }
}
