//! Events of SOCKS.

use gannet_base::Addr;
use gannet_event::Connection;
use gannet_event::Port;

gannet_event::record! {
    /// Destination or source of a relayed connection.
    pub struct Address<'a> = "SOCKS::Address" {
        /// The address.
        host: Option<Addr> = "host",
        /// The name.
        name: Option<&'a [u8]> = "name",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Socks);

    /// A client requests a proxy to relay a connection.
    pub struct SocksRequest<'a> = "socks_request" {
        /// The connection.
        c: Connection = "c",
        /// Version of SOCKS.
        version: u64 = "version",
        /// Command: 1 connect, 2 bind, 3 UDP.
        request_type: u64 = "request_type",
        /// Destination.
        sa: Address<'a> = "sa",
        /// Destination port.
        p: Port = "p",
        /// User name, in version 4.
        user: &'a [u8] = "user",
    }

    /// A proxy replies to a request.
    pub struct SocksReply<'a> = "socks_reply" {
        /// The connection.
        c: Connection = "c",
        /// Version of SOCKS.
        version: u64 = "version",
        /// Status code.
        reply: u64 = "reply",
        /// The proxy's address.
        sa: Address<'a> = "sa",
        /// The proxy's port.
        p: Port = "p",
    }

    /// A client logs in.
    pub struct SocksLoginUserpassRequest<'a> = "socks_login_userpass_request" {
        /// The connection.
        c: Connection = "c",
        /// User name.
        user: &'a [u8] = "user",
        /// The password.
        password: &'a [u8] = "password",
    }

    /// A proxy replies to a login.
    pub struct SocksLoginUserpassReply = "socks_login_userpass_reply" {
        /// The connection.
        c: Connection = "c",
        /// Status code; 0 is success.
        code: u64 = "code",
    }
}
