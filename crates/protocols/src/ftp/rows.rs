//! ftp.log: one row for each file-related command and its reply.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Port;

use super::events::FtpReply;
use super::events::FtpRequest;
use super::session::Session;
use crate::Context;
use crate::OnEvent;
use crate::context;
use crate::policy::software::DetectedSoftware;

gannet_log::row! {
    /// One row for each command that transfers or deletes a file or prepares a transfer, and at least one for each
    /// session.
    pub struct FtpRow<'a> = "ftp" {
        /// Time of the command.
        ts: Time = "ts",
        /// Identifier of the control connection.
        uid: &'a Uid = "uid",
        /// Endpoints of the control connection.
        id: &'a ConnId = "id",
        /// Name of the user.
        user: &'a [u8] = "user",
        /// The user's password; hidden unless the user is a guest.
        password: Option<&'a [u8]> = "password",
        /// The command.
        command: Option<&'a [u8]> = "command",
        /// Argument of the command; a URL if it is a file.
        arg: Option<&'a [u8]> = "arg",
        /// MIME type of the file, detected from its content.
        mime_type: Option<&'static str> = "mime_type",
        /// Size of the file, from the reply.
        file_size: Option<u64> = "file_size",
        /// Code of the reply.
        reply_code: Option<u16> = "reply_code",
        /// Text of the reply.
        reply_msg: Option<&'a [u8]> = "reply_msg",
        /// Whether the server accepts the data connection (passive mode).
        passive: Option<bool> = "data_channel.passive",
        /// Address that opens the data connection.
        data_orig: Option<Addr> = "data_channel.orig_h",
        /// Address that accepts the data connection.
        data_resp: Option<Addr> = "data_channel.resp_h",
        /// Port that accepts the data connection.
        data_port: Option<Port> = "data_channel.resp_p",
        /// Identifier of the file.
        fuid: Option<Uid> = "fuid",
    }
}

/// Writes the rows of a control connection. The session starts with the first line.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl Rows {
    #[inline]
    fn session(&mut self, cx: &Context<'_>) -> &mut Session {
        self.0.get_or_insert_with(|| Session::new(cx))
    }

    /// Writes the remaining rows at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(mut session) = self.0.take() {
            session.finish(cx);
        }
    }
}

impl OnEvent<FtpRequest<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &FtpRequest<'_>) {
        let (host, text) = (cx.conn.id.orig_h, event.arg);
        if event.command == b"CLNT"
            && let Some(mut policy) = cx.env.policy()
        {
            policy.software(
                cx.now,
                &DetectedSoftware { host, port: None, kind: "FTP::CLIENT", text },
            );
        }
        self.session(cx).request(cx, event.command, event.arg);
    }
}

impl OnEvent<FtpReply<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &FtpReply<'_>) {
        self.session(cx).reply(cx, event.code, event.msg, event.cont_resp);
    }
}

impl Session {
    /// Writes the row of the last completed command.
    pub(super) fn log(&mut self, cx: &mut Context<'_>) {
        let transfer = cx.env.ftp.take_transfer(cx.conn.uid);
        let uid = &cx.conn.uid;
        let row = || FtpRow {
            ts: self.ts,
            uid,
            id: &self.id,
            user: &self.user,
            password: self.password.as_deref(),
            command: Some(&self.command[..]).filter(|c| !c.is_empty()),
            arg: Some(&self.argument[..]).filter(|a| !a.is_empty()),
            mime_type: transfer.mime_type,
            file_size: self.file_size,
            reply_code: self.reply.as_ref().map(|r| r.0),
            reply_msg: self.reply.as_ref().map(|r| &r.1[..]),
            passive: self.channel.map(|c| c.passive),
            data_orig: self.channel.map(|c| c.orig),
            data_resp: self.channel.map(|c| c.to.addr),
            data_port: self.channel.map(|c| Port(c.to.port)),
            fuid: transfer.fuid,
        };
        context::log_every(cx.env, cx.now, row);
        self.logged = true;
    }
}
