use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::ExchangeDone;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each Redis command.
    pub struct RedisRow<'a> = "redis" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// The command.
        name: Option<&'a [u8]> = "cmd.name",
        /// The key that the command accesses.
        key: Option<&'a [u8]> = "cmd.key",
        /// The value that the command writes to the key.
        value: Option<&'a [u8]> = "cmd.value",
        /// Whether the command succeeded.
        success: Option<bool> = "success",
        /// The server's reply.
        reply: Option<&'a [u8]> = "reply.value",
    }
}

/// Writes the rows; the event of an exchange contains all columns.
pub(super) struct Rows;

impl OnEvent<ExchangeDone<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ExchangeDone<'_>) {
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
