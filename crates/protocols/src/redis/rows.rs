use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::command::Command;
use super::value::Value;
use crate::Context;

gannet_log::row! {
    /// One row for each command of Redis.
    pub struct RedisRow<'a> = "redis" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// The command.
        name: Option<&'a [u8]> = "cmd.name",
        /// Its key.
        key: Option<&'a [u8]> = "cmd.key",
        /// The value that it writes to the key.
        value: Option<&'a [u8]> = "cmd.value",
        /// Whether it succeeded.
        success: Option<bool> = "success",
        /// The server's answer.
        reply: Option<&'a [u8]> = "reply.value",
    }
}

/// A row in the making: a command, its answer, or both.
#[derive(Debug)]
pub(super) struct Pending {
    ts: Time,
    pub(super) command: Option<Command>,
    pub(super) reply: Option<Value>,
}

impl Pending {
    pub(super) fn new(ts: Time) -> Self {
        Self { ts, command: None, reply: None }
    }

    pub(super) fn write(&self, cx: &mut Context<'_>) {
        cx.log(&RedisRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            name: self.command.as_ref().map(Command::name),
            key: self.command.as_ref().and_then(Command::key),
            value: self.command.as_ref().and_then(Command::value),
            success: self.reply.as_ref().map(|r| !r.is_error()),
            reply: self.reply.as_ref().map(|r| &*r.text),
        });
    }
}
