//! smtp.log: one row a mail, or what of it was seen.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Set;
use gannet_log::Vector;

use super::events::SmtpReply;
use super::events::SmtpRequest;
use super::events::SmtpStarttls;
use super::session::Session;
use crate::Context;
use crate::Hear;
use crate::stack::events::FileStarts;
use crate::support::mime::events::MimeBeginEntity;
use crate::support::mime::events::MimeEndEntity;
use crate::support::mime::events::MimeOneHeader;

gannet_log::row! {
    /// One row for each mail transaction.
    #[derive(Clone, Debug)]
    pub struct SmtpRow = "smtp" {
        /// When the transaction's first command or reply was seen.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its endpoints.
        id: ConnId = "id",
        /// Number of the mail within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// Argument of HELO or EHLO.
        helo: Option<Vec<u8>> = "helo",
        /// Address in MAIL FROM.
        mailfrom: Option<Vec<u8>> = "mailfrom",
        /// Addresses in RCPT TO.
        rcptto: Option<Set<Vec<u8>>> = "rcptto",
        /// The Date field.
        date: Option<Vec<u8>> = "date",
        /// The From field.
        from: Option<Vec<u8>> = "from",
        /// Entries of the To field.
        to: Option<Set<Vec<u8>>> = "to",
        /// Entries of the Cc field.
        cc: Option<Set<Vec<u8>>> = "cc",
        /// The Reply-To field.
        reply_to: Option<Vec<u8>> = "reply_to",
        /// The Message-ID field.
        msg_id: Option<Vec<u8>> = "msg_id",
        /// The In-Reply-To field.
        in_reply_to: Option<Vec<u8>> = "in_reply_to",
        /// The Subject field.
        subject: Option<Vec<u8>> = "subject",
        /// The address in the X-Originating-IP field.
        x_originating_ip: Option<Addr> = "x_originating_ip",
        /// The first Received field, which is the last to be written.
        first_received: Option<Vec<u8>> = "first_received",
        /// The second one.
        second_received: Option<Vec<u8>> = "second_received",
        /// The last reply of the server.
        last_reply: Option<Vec<u8>> = "last_reply",
        /// Hosts that relayed the mail, from this connection back to its origin.
        path: Vector<Addr> = "path",
        /// The User-Agent or X-Mailer field.
        user_agent: Option<Vec<u8>> = "user_agent",
        /// Whether the connection switched to TLS.
        tls: bool = "tls",
        /// The files of the mail.
        fuids: Vector<Uid> = "fuids",
    }
}

impl SmtpRow {
    /// A row with only its connection.
    pub(super) fn new(ts: Time, uid: Uid, id: ConnId, trans_depth: u64) -> Self {
        Self {
            ts,
            uid,
            id,
            trans_depth,
            helo: None,
            mailfrom: None,
            rcptto: None,
            date: None,
            from: None,
            to: None,
            cc: None,
            reply_to: None,
            msg_id: None,
            in_reply_to: None,
            subject: None,
            x_originating_ip: None,
            first_received: None,
            second_received: None,
            last_reply: None,
            // The last two hosts are those of this connection.
            path: Vector(vec![id.resp_h, id.orig_h]),
            user_agent: None,
            tls: false,
            fuids: Vector(Vec::new()),
        }
    }

    /// Writes it.
    pub(super) fn log(&self, cx: &mut Context<'_>) {
        cx.log(self);
    }
}

impl Hear<SmtpRequest<'_>> for Session {
    #[inline]
    fn hear(&mut self, cx: &mut Context<'_>, event: &SmtpRequest<'_>) {
        self.request(cx, event.command, event.arg);
    }
}

impl Hear<SmtpReply<'_>> for Session {
    #[inline]
    fn hear(&mut self, cx: &mut Context<'_>, event: &SmtpReply<'_>) {
        self.reply(cx, event.code, event.cmd, event.msg, event.cont_resp);
    }
}

impl Hear<SmtpStarttls> for Session {
    fn hear(&mut self, _cx: &mut Context<'_>, _event: &SmtpStarttls) {
        self.tls();
    }
}

impl Hear<MimeBeginEntity> for Session {
    #[inline]
    fn hear(&mut self, _cx: &mut Context<'_>, _event: &MimeBeginEntity) {
        self.entity();
    }
}

impl Hear<MimeOneHeader<'_>> for Session {
    #[inline]
    fn hear(&mut self, cx: &mut Context<'_>, event: &MimeOneHeader<'_>) {
        self.field(cx, event.h.original_name, event.h.value);
    }
}

impl Hear<MimeEndEntity> for Session {
    #[inline]
    fn hear(&mut self, _cx: &mut Context<'_>, _event: &MimeEndEntity) {
        self.entity_ends();
    }
}

impl Hear<FileStarts> for Session {
    fn hear(&mut self, _cx: &mut Context<'_>, event: &FileStarts) {
        self.file(event.fuid);
    }
}

impl Session {
    /// The connection ends: the row is written if the client did anything.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.flush(cx);
    }
}
