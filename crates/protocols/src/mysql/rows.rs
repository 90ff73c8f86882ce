use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use super::events::*;
use super::message;
use crate::Context;
use crate::OnEvent;
use crate::policy::software::DetectedSoftware;

gannet_log::row! {
    /// One row for each command, or login.
    pub struct MysqlRow<'a> = "mysql" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// The command.
        cmd: Command = "cmd",
        /// The argument of the command.
        arg: &'a [u8] = "arg",
        /// Whether the command succeeded.
        success: Option<bool> = "success",
        /// Number of rows that changed.
        rows: Option<u64> = "rows",
        /// The server's error message.
        response: Option<&'a [u8]> = "response",
    }
}

/// A command, or the login, written by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The login.
    Login,
    /// A command by its code.
    Code(u64),
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
            Self::Code(n) => match usize::try_from(*n).ok().and_then(|n| NAMES.get(n)) {
                Some(name) => e.plain(name.as_bytes()),
                None => e.plain(format!("unknown-{n}").as_bytes()),
            },
        }
    }
}

/// Code of `COM_QUIT`, which gets no reply.
const QUIT: u64 = 1;

/// Writes a row for each command.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Pending>);

impl Rows {
    /// Writes the row of a command without a reply at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.outcome(cx, Outcome::Unknown);
    }

    fn outcome(&mut self, cx: &mut Context<'_>, outcome: Outcome<'_>) {
        if let Some(pending) = self.0.take() {
            pending.write(cx, outcome);
        }
    }
}

impl OnEvent<MysqlServerVersion<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MysqlServerVersion<'_>) {
        let (host, text) = (cx.conn.id.resp_h, event.ver);
        if !text.is_empty()
            && let Some(mut policy) = cx.env.policy()
        {
            policy.software(
                cx.now,
                &DetectedSoftware { host, port: None, kind: "MySQL::SERVER", text },
            );
        }
    }
}

impl OnEvent<MysqlHandshake<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MysqlHandshake<'_>) {
        self.0.get_or_insert_with(|| Pending {
            ts: cx.now,
            cmd: Command::Login,
            arg: event.username.to_vec(),
        });
    }
}

impl OnEvent<MysqlCommandRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MysqlCommandRequest<'_>) {
        self.outcome(cx, Outcome::Unknown);
        // The event of COM_CHANGE_USER follows and names the user.
        let is_change = event.command == u64::from(message::CHANGE_USER);
        let arg = if is_change { b"" } else { event.arg.strip_suffix(b"\0").unwrap_or(event.arg) };
        let pending = Pending { ts: cx.now, cmd: Command::Code(event.command), arg: arg.to_vec() };
        if event.command == QUIT {
            pending.write(cx, Outcome::Unknown);
        } else {
            self.0 = Some(pending);
        }
    }
}

impl OnEvent<MysqlChangeUser<'_>> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &MysqlChangeUser<'_>) {
        if let Some(pending) = &mut self.0 {
            pending.arg = event.username.to_vec();
        }
    }
}

impl OnEvent<MysqlOk> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MysqlOk) {
        self.outcome(cx, Outcome::Ok(event.affected_rows));
    }
}

impl OnEvent<MysqlEof> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MysqlEof) {
        if !event.is_intermediate {
            self.outcome(cx, Outcome::Ok(0));
        }
    }
}

impl OnEvent<MysqlError<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MysqlError<'_>) {
        self.outcome(cx, Outcome::Error(event.msg));
    }
}

/// A command whose outcome is not known yet.
#[derive(Debug)]
struct Pending {
    ts: Time,
    cmd: Command,
    arg: Vec<u8>,
}

/// Outcome of a command.
#[derive(Clone, Copy, Debug)]
enum Outcome<'a> {
    Unknown,
    /// Number of rows that changed.
    Ok(u64),
    /// The server's error message.
    Error(&'a [u8]),
}

impl Pending {
    fn write(&self, cx: &mut Context<'_>, outcome: Outcome<'_>) {
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
