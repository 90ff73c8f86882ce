//! Events of SOCKS.

use gannet_base::Addr;
use gannet_event::Connection;
use gannet_event::Port;

gannet_event::record! {
    /// Where to, or from where.
    pub struct Address<'a> = "SOCKS::Address" {
        /// The address.
        host: Option<Addr> = "host",
        /// The name.
        name: Option<&'a [u8]> = "name",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Socks);

    /// A client asks a proxy to relay.
    pub struct SocksRequest<'a> = "socks_request" {
        /// The connection.
        c: Connection = "c",
        /// Version of SOCKS.
        version: u64 = "version",
        /// Command: 1 connect, 2 bind, 3 UDP.
        request_type: u64 = "request_type",
        /// Where to.
        sa: Address<'a> = "sa",
        /// The port there.
        p: Port = "p",
        /// The user, in version 4.
        user: &'a [u8] = "user",
    }

    /// A proxy answers.
    pub struct SocksReply<'a> = "socks_reply" {
        /// The connection.
        c: Connection = "c",
        /// Version of SOCKS.
        version: u64 = "version",
        /// Status.
        reply: u64 = "reply",
        /// The proxy's address.
        sa: Address<'a> = "sa",
        /// The port there.
        p: Port = "p",
    }

    /// A client logs in.
    pub struct SocksLoginUserpassRequest<'a> = "socks_login_userpass_request" {
        /// The connection.
        c: Connection = "c",
        /// The user.
        user: &'a [u8] = "user",
        /// The password.
        password: &'a [u8] = "password",
    }

    /// A proxy answers a login.
    pub struct SocksLoginUserpassReply = "socks_login_userpass_reply" {
        /// The connection.
        c: Connection = "c",
        /// Status; 0 is success.
        code: u64 = "code",
    }
}
