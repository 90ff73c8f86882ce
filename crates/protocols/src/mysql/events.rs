//! Events of MySQL.

use std::borrow::Cow;

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Mysql);

    /// A client sends a command.
    pub struct MysqlCommandRequest<'a> = "mysql_command_request" {
        /// The connection.
        c: Connection = "c",
        /// Command code.
        command: u64 = "command",
        /// Argument of the command.
        arg: &'a [u8] = "arg",
    }

    /// A client changes its user.
    pub struct MysqlChangeUser<'a> = "mysql_change_user" {
        /// The connection.
        c: Connection = "c",
        /// User name.
        username: &'a [u8] = "username",
    }

    /// A server reports an error.
    pub struct MysqlError<'a> = "mysql_error" {
        /// The connection.
        c: Connection = "c",
        /// Error code.
        code: u16 = "code",
        /// Error message.
        msg: &'a [u8] = "msg",
    }

    /// A server reports success.
    pub struct MysqlOk = "mysql_ok" {
        /// The connection.
        c: Connection = "c",
        /// Number of rows that changed.
        affected_rows: u64 = "affected_rows",
    }

    /// A server ends a list of columns or rows (EOF).
    pub struct MysqlEof = "mysql_eof" {
        /// The connection.
        c: Connection = "c",
        /// Whether rows follow.
        is_intermediate: bool = "is_intermediate",
    }

    /// A server sends its greeting.
    pub struct MysqlServerVersion<'a> = "mysql_server_version", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The server's version string.
        ver: &'a [u8] = "ver",
    }

    /// A client requests TLS.
    pub struct MysqlSslRequest = "mysql_ssl_request", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A client logs in.
    pub struct MysqlHandshake<'a> = "mysql_handshake" {
        /// The connection.
        c: Connection = "c",
        /// User name.
        username: &'a [u8] = "username",
    }

    /// A row of results.
    pub struct MysqlResultFields<'a> = "mysql_result_row", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its fields.
        row: Vec<&'a [u8]> = "row",
    }

    /// A side names its authentication plugin, with data for the plugin.
    pub struct MysqlAuthPlugin<'a> = "mysql_auth_plugin", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the client sent it.
        is_orig: bool = "is_orig",
        /// Name of the plugin; empty if the client leaves it out.
        name: &'a [u8] = "name",
        /// The server's challenge, or the client's response to it.
        data: Cow<'a, [u8]> = "data",
    }

    /// A server requests another authentication plugin.
    pub struct MysqlAuthSwitchRequest<'a> = "mysql_auth_switch_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the plugin.
        name: &'a [u8] = "name",
        /// Data for the plugin.
        data: &'a [u8] = "data",
    }

    /// More data of the authentication plugin.
    pub struct MysqlAuthMoreData<'a> = "mysql_auth_more_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the client sent it.
        is_orig: bool = "is_orig",
        /// Data of the plugin.
        data: &'a [u8] = "data",
    }
}
