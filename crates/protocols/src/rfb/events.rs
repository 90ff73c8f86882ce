//! Events of RFB (VNC).

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Rfb);

    /// The client's version.
    pub struct RfbClientVersion<'a> = "rfb_client_version" {
        /// The connection.
        c: Connection = "c",
        /// Major version, three digits.
        major_version: &'a [u8] = "major_version",
        /// Minor version, three digits.
        minor_version: &'a [u8] = "minor_version",
    }

    /// The server's version.
    pub struct RfbServerVersion<'a> = "rfb_server_version" {
        /// The connection.
        c: Connection = "c",
        /// Major version, three digits.
        major_version: &'a [u8] = "major_version",
        /// Minor version, three digits.
        minor_version: &'a [u8] = "minor_version",
    }

    /// The authentication method was chosen.
    pub struct RfbAuthenticationType = "rfb_authentication_type" {
        /// The connection.
        c: Connection = "c",
        /// Number of the security type.
        authtype: u32 = "authtype",
    }

    /// Authentication ended.
    pub struct RfbAuthenticationResult = "rfb_authentication_result" {
        /// The connection.
        c: Connection = "c",
        /// Whether it succeeded.
        result: bool = "result",
    }

    /// Authentication ended: the opposite of `rfb_authentication_result`, as in Zeek.
    pub struct RfbAuthResult = "rfb_auth_result", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it failed.
        result: bool = "result",
    }

    /// The client requests a session.
    pub struct RfbShareFlag = "rfb_share_flag" {
        /// The connection.
        c: Connection = "c",
        /// Whether others may share it.
        flag: bool = "flag",
    }

    /// The server sends its screen parameters.
    pub struct RfbServerParameters<'a> = "rfb_server_parameters" {
        /// The connection.
        c: Connection = "c",
        /// Name of the desktop.
        name: &'a [u8] = "name",
        /// Width in pixels.
        width: u16 = "width",
        /// Height in pixels.
        height: u16 = "height",
    }
}
