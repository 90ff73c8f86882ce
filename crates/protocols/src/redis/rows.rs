use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::ExchangeOver;
use crate::Context;
use crate::OnEvent;

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

/// The rows: an exchange has all that one shows.
pub(super) struct Rows;

impl OnEvent<ExchangeOver<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ExchangeOver<'_>) {
        cx.log(&RedisRow {
            ts: event.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            name: event.name,
            key: event.key,
            value: event.value,
            success: event.success,
            reply: event.reply,
        });
    }
}
