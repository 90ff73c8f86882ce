use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;

use super::SOURCE;
use super::events::*;
use super::shared::Key;
use super::shared::Transfer;
use super::shared::Transfers;
use super::shared::fits;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// Files that TFTP transfers, one row each.
    pub struct TftpRow<'a> = "tftp", opt_in {
        /// Time of the request.
        ts: Time = "ts",
        /// Connection of the request.
        uid: Uid = "uid",
        /// Originator and responder of that connection.
        id: ConnId = "id",
        /// Whether the client writes the file.
        wrq: bool = "wrq",
        /// Name of the file.
        fname: &'a [u8] = "fname",
        /// Mode: `netascii`, `octet` or `mail`.
        mode: &'a [u8] = "mode",
        /// Connection of the contents.
        uid_data: Option<Uid> = "uid_data",
        /// Number of bytes sent, each block counted once.
        size: u64 = "size",
        /// Number of the last block sent.
        block_sent: u64 = "block_sent",
        /// Number of the last block acknowledged.
        block_acked: u64 = "block_acked",
        /// Error code, if the transfer failed.
        error_code: Option<u64> = "error_code",
        /// Error message, if the transfer failed.
        error_msg: Option<&'a [u8]> = "error_msg",
        /// Options that the server accepted: `name=value`.
        options: Option<Vector<&'a [u8]>> = "options",
    }
}

/// The rows of transfers.
pub(super) struct Rows;

impl Rows {
    /// Writes the row of a connection's transfer when the connection ends.
    pub(super) fn finish(cx: &mut Context<'_>) {
        let (id, uid) = (cx.conn.id, cx.conn.uid);
        let Some(transfers) = cx.env.shared::<Transfers>() else { return };
        // The connection of a request ends before that of the contents, which writes the row.
        let over = transfers.find(&id, uid).map(|(key, _)| key);
        if let Some(transfer) = over.and_then(|key| transfers.take(&key)) {
            transfer.write(cx);
        }
    }

    /// Begins the transfer of a request.
    fn begin(cx: &mut Context<'_>, writes: bool, filename: &[u8], mode: &[u8]) {
        let id = cx.conn.id;
        let transfer = Transfer::new((cx.now, cx.conn.uid, id), writes, filename, mode);
        let [key, _] = Key::for_connection(&id);
        let Some(transfers) = cx.env.shared::<Transfers>() else { return };
        if let Some(over) = transfers.add(key, transfer) {
            over.write(cx);
        }
        if !fits(filename) {
            cx.weird("tftp_long_file_name", "", SOURCE);
        }
    }

    /// Handles a message of a current transfer: `read` returns whether the transfer ended, and the
    /// name of a weird.
    fn handle(
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Transfer) -> (bool, Option<&'static str>),
    ) {
        let (id, uid) = (cx.conn.id, cx.conn.uid);
        let Some(transfers) = cx.env.shared::<Transfers>() else { return };
        let Some((key, transfer)) = transfers.find(&id, uid) else { return };
        transfer.begin(uid);
        let (is_over, weird) = read(transfer);
        let over = if is_over { transfers.take(&key) } else { None };
        if let Some(weird) = weird {
            cx.weird(weird, "", SOURCE);
        }
        if let Some(transfer) = over {
            transfer.write(cx);
        }
    }
}

impl OnEvent<ReadRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ReadRequest<'_>) {
        Self::begin(cx, false, event.filename, event.mode);
    }
}

impl OnEvent<WriteRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &WriteRequest<'_>) {
        Self::begin(cx, true, event.filename, event.mode);
    }
}

impl OnEvent<Data<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &Data<'_>) {
        Self::handle(cx, |transfer| {
            transfer.data(event.block_num, event.data);
            (false, None)
        });
    }
}

impl OnEvent<Ack> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &Ack) {
        Self::handle(cx, |transfer| (transfer.ack(event.block_num), None));
    }
}

impl OnEvent<Error<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &Error<'_>) {
        Self::handle(cx, |transfer| {
            transfer.fail(event.code, event.msg);
            (true, (!fits(event.msg)).then_some("tftp_long_error"))
        });
    }
}

impl OnEvent<OptionAck<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &OptionAck<'_>) {
        Self::handle(cx, |transfer| (false, transfer.accept(event.options.0)));
    }
}

impl Transfer {
    /// Writes its row.
    pub(super) fn write(&self, cx: &mut Context<'_>) {
        let error = self.error.as_ref();
        let options = self.options.iter().map(Vec::as_slice).collect::<Vec<_>>();
        cx.log(&TftpRow {
            ts: self.ts,
            uid: self.uid,
            id: self.id,
            wrq: self.writes,
            fname: &self.filename,
            mode: &self.mode,
            uid_data: self.uid_data,
            size: self.size,
            block_sent: self.sent,
            block_acked: self.acked,
            error_code: error.map(|(code, _)| u64::from(*code)),
            error_msg: error.map(|(_, message)| &message[..]),
            options: (!options.is_empty()).then_some(Vector(options)),
        });
    }
}
