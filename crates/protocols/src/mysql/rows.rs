use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use crate::Context;

gannet_log::row! {
    /// One row for each command, or login.
    pub struct MysqlRow<'a> = "mysql" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// The command.
        cmd: Command = "cmd",
        /// The argument of the command.
        arg: &'a [u8] = "arg",
        /// Whether it succeeded.
        success: Option<bool> = "success",
        /// Rows that it changed.
        rows: Option<u64> = "rows",
        /// The server's error message.
        response: Option<&'a [u8]> = "response",
    }
}

/// A command, or the login, written as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The login.
    Login,
    /// A command by its code.
    Code(u8),
}

const NAMES: [&str; 32] = [
    "sleep",
    "quit",
    "init_db",
    "query",
    "field_list",
    "create_db",
    "drop_db",
    "refresh",
    "shutdown",
    "statistics",
    "process_info",
    "connect",
    "process_kill",
    "debug",
    "ping",
    "time",
    "delayed_insert",
    "change_user",
    "binlog_dump",
    "table_dump",
    "connect_out",
    "register_slave",
    "stmt_prepare",
    "stmt_execute",
    "stmt_send_long_data",
    "stmt_close",
    "stmt_reset",
    "set_option",
    "stmt_fetch",
    "daemon",
    "binlog_dump_gtid",
    "reset_connection",
];

impl Value for Command {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self {
            Self::Login => e.plain(b"login"),
            Self::Code(n) => match NAMES.get(usize::from(*n)) {
                Some(name) => e.plain(name.as_bytes()),
                None => e.plain(format!("unknown-{n}").as_bytes()),
            },
        }
    }
}

/// A command whose outcome is not known yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) ts: Time,
    pub(super) cmd: Command,
    pub(super) arg: Vec<u8>,
}

/// Result code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    Unknown,
    /// Rows changed.
    Ok(u64),
    /// The server's diagnostic text.
    Error(&'a [u8]),
}

impl Pending {
    pub(super) fn write(&self, cx: &mut Context<'_>, outcome: Outcome<'_>) {
        let (success, rows, response) = match outcome {
            Outcome::Unknown => (None, None, None),
            Outcome::Ok(rows) => (Some(true), Some(rows), None),
            Outcome::Error(words) => (Some(false), None, Some(words)),
        };
        cx.log(&MysqlRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            cmd: self.cmd,
            arg: &self.arg,
            success,
            rows,
            response,
        });
    }
}
