//! Events of NetBIOS.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Netbios);

    /// A message of a session, or a datagram.
    pub struct SessionMessage = "netbios_session_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Its kind (RFC 1002 sections 4.3.1 and 4.4.1).
        msg_type: u64 = "msg_type",
        /// Number of bytes after its header.
        data_len: u64 = "data_len",
    }

    /// A client requests a session.
    pub struct SessionRequest<'a> = "netbios_session_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the server, decoded.
        msg: &'a [u8] = "msg",
    }

    /// The server accepts the session.
    pub struct SessionAccepted<'a> = "netbios_session_accepted", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message.
        msg: &'a [u8] = "msg",
    }

    /// The server rejects the session.
    pub struct SessionRejected<'a> = "netbios_session_rejected", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message: an error code.
        msg: &'a [u8] = "msg",
    }

    /// A session message that is not SMB 1.
    pub struct SessionRawMessage<'a> = "netbios_session_raw_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Contents of the message.
        msg: &'a [u8] = "msg",
    }

    /// The server redirects the session to another address.
    pub struct SessionRetArgResp<'a> = "netbios_session_ret_arg_resp", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message: address and port.
        msg: &'a [u8] = "msg",
    }

    /// A message that keeps the session alive.
    pub struct SessionKeepalive<'a> = "netbios_session_keepalive", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message, which is normally empty.
        msg: &'a [u8] = "msg",
    }
}
