//! smtp.log: one row per mail, or for what was seen of one.

use std::collections::HashSet;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_log::Set;
use gannet_log::Vector;

use super::addresses;
use super::events::SmtpReply;
use super::events::SmtpRequest;
use super::events::SmtpStarttls;
use super::message::Answered;
use super::message::Command;
use super::values::MAX_VALUE;
use super::values::SOURCE;
use super::values::file_name;
use super::values::is_searched;
use super::values::is_webmail;
use super::values::starts_with_ignore_case;
use super::values::truncate;
use super::values::without;
use crate::Context;
use crate::OnEvent;
use crate::policy::software::DetectedSoftware;
use crate::stack::events::FileStarts;
use crate::support::limit_reached;
use crate::support::mime::Field;
use crate::support::mime::events::MimeBeginEntity;
use crate::support::mime::events::MimeEndEntity;
use crate::support::mime::events::MimeOneHeader;
use crate::support::text::UpperCase;

/// Maximum number of addresses of one transaction, for each of RCPT TO, To and Cc.
const MAX_ADDRESSES: usize = 1000;

/// Maximum number of hosts in the path of one mail.
const MAX_PATH: usize = 1000;

/// Number of invalid transactions after which the analysis of the connection stops.
const MAX_INVALID: u64 = 25;

gannet_log::row! {
    /// One row for each mail transaction.
    #[derive(Clone, Debug)]
    pub struct SmtpRow = "smtp" {
        /// Time of the transaction's first command or reply.
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
        /// The first Received field, which was added last.
        first_received: Option<Vec<u8>> = "first_received",
        /// The second Received field.
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

    /// Writes the row.
    pub(super) fn log(&self, cx: &mut Context<'_>) {
        cx.log(self);
    }
}

/// The rows of one connection, with the state of its transactions.
#[derive(Debug, Default)]
pub(super) struct Session {
    helo: Option<Vec<u8>>,
    /// Number of mails that were transferred.
    transferred: u64,
    mail_from_seen: bool,
    rcpt_to_seen: bool,
    last_chunk_seen: bool,
    invalid: u64,
    /// There were too many invalid transactions.
    is_stopped: bool,
    transaction: Option<Transaction>,
}

/// Set of texts.
type Texts = HashSet<Vec<u8>, KeyedHash>;

/// A row that is being collected.
#[derive(Debug)]
struct Transaction {
    row: SmtpRow,
    rcptto: Texts,
    to: Texts,
    cc: Texts,
    /// The client did something that is logged.
    active: bool,
    /// The mail was written in a webmail program.
    webmail: bool,
    /// Number of entities that began in this transaction: only the fields of the first one are
    /// logged.
    entities: u64,
    /// Within an entity: the file name in its fields, if any.
    entity: Option<Option<Vec<u8>>>,
}

impl OnEvent<SmtpRequest<'_>> for Session {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SmtpRequest<'_>) {
        self.request(cx, event.command, event.arg);
    }
}

impl OnEvent<SmtpReply<'_>> for Session {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SmtpReply<'_>) {
        self.reply(cx, event.code, event.cmd, event.msg, event.cont_resp);
    }
}

impl OnEvent<SmtpStarttls> for Session {
    fn on_event(&mut self, _cx: &mut Context<'_>, _event: &SmtpStarttls) {
        self.tls();
    }
}

impl OnEvent<MimeBeginEntity> for Session {
    #[inline]
    fn on_event(&mut self, _cx: &mut Context<'_>, _event: &MimeBeginEntity) {
        self.entity();
    }
}

impl OnEvent<MimeOneHeader<'_>> for Session {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MimeOneHeader<'_>) {
        self.field(cx, event.h.original_name, event.h.value);
    }
}

impl OnEvent<MimeEndEntity> for Session {
    #[inline]
    fn on_event(&mut self, _cx: &mut Context<'_>, _event: &MimeEndEntity) {
        self.entity_ends();
    }
}

impl OnEvent<FileStarts> for Session {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &FileStarts) {
        self.file(event.fuid);
    }
}

impl Session {
    /// Writes the row at the end of the connection, if the client did anything.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.flush(cx);
    }

    /// Begins a row, unless there is one.
    pub(super) fn begin(&mut self, cx: &Context<'_>) {
        if self.transaction.is_none() {
            self.begin_transaction(cx);
        }
    }

    fn begin_transaction(&mut self, cx: &Context<'_>) {
        let mut row = SmtpRow::new(cx.now, cx.conn.uid, cx.conn.id, self.transferred + 1);
        row.helo.clone_from(&self.helo);
        self.transaction = Some(Transaction {
            row,
            rcptto: Texts::default(),
            to: Texts::default(),
            cc: Texts::default(),
            active: false,
            webmail: false,
            entities: 0,
            entity: None,
        });
    }

    fn transaction(&mut self, cx: &Context<'_>) -> Option<&mut Transaction> {
        self.begin(cx);
        self.transaction.as_mut()
    }

    /// Handles a command.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, word: UpperCase<'_>, argument: &[u8]) {
        self.begin(cx);
        let is = |command: &str| word.is(command);
        if is("HELO") || is("EHLO") {
            self.helo = Some(truncate(argument));
            if let Some(t) = &mut self.transaction {
                t.row.helo = Some(truncate(argument));
            }
        } else if is("RCPT") && starts_with_ignore_case(argument, b"TO:") {
            if let Some(t) = &mut self.transaction {
                t.recipients(cx, argument);
                t.active = true;
            }
            self.rcpt_to_seen = true;
            if !self.mail_from_seen {
                self.invalid(cx, "rcpt to missing mail from");
            }
        } else if is("MAIL") && starts_with_ignore_case(argument, b"FROM:") {
            // The previous mail may not have been acknowledged.
            self.flush(cx);
            if let Some(t) = &mut self.transaction {
                if is_searched(cx, argument, 11)
                    && let Some(address) = addresses::mail_addresses(argument).into_iter().next()
                    && !address.is_empty()
                {
                    t.row.mailfrom = Some(truncate(&address));
                }
                t.active = true;
            }
            self.mail_from_seen = true;
            self.rcpt_to_seen = false;
        } else if is("DATA") || is("BDAT") {
            if !self.rcpt_to_seen {
                self.invalid(cx, "data missing rcpt to");
            }
            if is("BDAT") && argument.ends_with(b" LAST") {
                self.mail_from_seen = false;
                self.rcpt_to_seen = false;
                self.last_chunk_seen = true;
            }
        } else if word.0 == b"." {
            self.mail_from_seen = false;
            self.rcpt_to_seen = false;
        }
    }

    fn invalid(&mut self, cx: &mut Context<'_>, addl: &str) {
        cx.weird("smtp_mail_transaction_invalid", addl, SOURCE);
        self.invalid += 1;
        if self.invalid == MAX_INVALID + 1 {
            let addl = format!("{} > {MAX_INVALID}", self.invalid);
            limit_reached(cx, "smtp_excessive_invalid_mail_transactions", &addl, SOURCE);
            self.is_stopped = true;
        }
    }

    /// Whether the analysis of the connection was stopped since the last call.
    #[inline]
    pub(super) fn take_stopped(&mut self) -> bool {
        std::mem::take(&mut self.is_stopped)
    }

    /// Name of the file that an entity's header names.
    pub(super) fn file_name(&self) -> Option<Vec<u8>> {
        self.transaction.as_ref()?.entity.clone()?
    }

    /// Handles a line of a reply to a command; `more` says whether another line of it follows.
    pub(super) fn reply(
        &mut self,
        cx: &mut Context<'_>,
        code: u16,
        to: Answered,
        text: &[u8],
        more: bool,
    ) {
        if let Some(t) = self.transaction(cx) {
            let mut reply = code.to_string().into_bytes();
            reply.push(b' ');
            reply.extend_from_slice(text);
            reply.truncate(MAX_VALUE);
            t.row.last_reply = Some(reply);
        }
        let done = match to {
            Answered(Some(Command::EndOfData)) => true,
            Answered(Some(Command::Bdat)) => !more && self.last_chunk_seen,
            Answered(_) => false,
        };
        if done {
            self.transferred += 1;
            self.last_chunk_seen = false;
            self.flush(cx);
            self.begin_transaction(cx);
        }
    }

    /// Notes that the connection continues with TLS.
    pub(super) fn tls(&mut self) {
        if let Some(t) = &mut self.transaction {
            t.row.tls = true;
            t.active = true;
        }
    }

    /// Begins an entity.
    pub(super) fn entity(&mut self) {
        if let Some(t) = &mut self.transaction {
            t.entities += 1;
            t.entity = Some(None);
        }
    }

    /// Handles a header field of the last entity.
    #[inline]
    pub(super) fn field(&mut self, cx: &mut Context<'_>, name: &[u8], value: &[u8]) {
        if let Some(t) = &mut self.transaction {
            t.field(cx, Field { name, value });
        }
    }

    /// Ends an entity.
    pub(super) fn entity_ends(&mut self) {
        if let Some(t) = &mut self.transaction {
            t.entity = None;
        }
    }

    /// Adds a file of the mail.
    pub(super) fn file(&mut self, fuid: Option<Uid>) {
        if let Some(t) = &mut self.transaction
            && !t.row.tls
        {
            t.row.fuids.0.extend(fuid);
        }
    }

    /// Writes the row if the client did anything since the last one.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        if let Some(mut t) = self.transaction.take_if(|t| t.active) {
            t.software(cx);
            t.row.rcptto = t.row.rcptto.map(|_| sorted(t.rcptto));
            t.row.to = t.row.to.map(|_| sorted(t.to));
            t.row.cc = t.row.cc.map(|_| sorted(t.cc));
            t.row.log(cx);
            self.begin_transaction(cx);
        }
    }
}

impl Transaction {
    /// Reports the software that wrote the mail, if software.log is enabled.
    fn software(&self, cx: &mut Context<'_>) {
        let (row, relay) = (&self.row, cx.conn.id.orig_h);
        let (Some(mut policy), Some(text)) = (cx.env.policy(), &row.user_agent) else { return };
        let mut path = row.path.0.iter().rev().copied();
        let mut host = path.next();
        if self.webmail {
            // Mail whose first hop used HTTP was written in a webmail program.
            let first = row.first_received.as_deref().unwrap_or_default();
            if memchr::memmem::find(first, b"via HTTP").is_some() {
                host = path.next();
            }
        }
        let kind = if self.webmail { "SMTP::WEBMAIL_SERVER" } else { "SMTP::MAIL_CLIENT" };
        if let Some(host) = host {
            policy.relayed_software(
                cx.now,
                relay,
                &DetectedSoftware { host, port: None, kind, text },
            );
        }
    }

    fn recipients(&mut self, cx: &mut Context<'_>, argument: &[u8]) {
        self.row.rcptto.get_or_insert_default();
        if !is_searched(cx, argument, 28) {
            return;
        }
        let mut seen = Texts::default();
        for address in addresses::mail_addresses(argument) {
            if !seen.insert(address.clone()) {
                continue;
            }
            if self.rcptto.len() >= MAX_ADDRESSES {
                cx.weird("smtp_too_many_rcptto_addresses", "", None);
                break;
            }
            self.rcptto.insert(truncate(&without(&address, b"ORCPT=rfc822")));
        }
    }

    fn field(&mut self, cx: &mut Context<'_>, field: Field<'_>) {
        self.file_name(cx, field);
        // Fields of nested entities do not belong to the mail.
        if self.entities > 1 {
            return;
        }
        let row = &mut self.row;
        let value = || Some(truncate(field.value));
        if field.is("message-id") {
            row.msg_id = value();
        } else if field.is("received") {
            if let Some(first) = row.first_received.take() {
                row.second_received = Some(first);
            }
            row.first_received = value();
            self.received(cx, field.value);
        } else if field.is("in-reply-to") {
            row.in_reply_to = value();
        } else if field.is("subject") {
            row.subject = value();
        } else if field.is("from") {
            row.from = value();
        } else if field.is("reply-to") {
            row.reply_to = value();
        } else if field.is("date") {
            row.date = value();
        } else if field.is("to") {
            row.to.get_or_insert_default();
            entries(cx, &mut self.to, field.value, "smtp_too_many_to_addresses");
        } else if field.is("cc") {
            row.cc.get_or_insert_default();
            entries(cx, &mut self.cc, field.value, "smtp_too_many_cc_addresses");
        } else if field.is("x-originating-ip") {
            if let Some(addr) = addresses::first_network_address(field.value) {
                row.x_originating_ip = Some(addr);
            }
        } else if field.is("x-mailer") || field.is("user-agent") || field.is("x-user-agent") {
            row.user_agent = value();
            // After any field identified a webmail program, only the standard field is checked.
            self.webmail |= field.is("user-agent") && is_webmail(field.value);
        }
    }

    fn received(&mut self, cx: &mut Context<'_>, value: &[u8]) {
        let path = &mut self.row.path.0;
        if let Some(addr) = addresses::received_from(value)
            && path.last() != Some(&addr)
        {
            if path.len() >= MAX_PATH {
                cx.weird("smtp_max_path_length_exceeded", "", None);
            } else {
                path.push(addr);
            }
        }
    }

    fn file_name(&mut self, cx: &mut Context<'_>, field: Field<'_>) {
        let Some(name) = &mut self.entity else {
            cx.weird("missing_SMTP_entity", "", SOURCE);
            return;
        };
        let found = if field.is("content-disposition") {
            file_name(field.value, b"filename", true)
        } else if field.is("content-type") {
            file_name(field.value, b"name", false)
        } else {
            None
        };
        if found.is_some() {
            *name = found.as_deref().map(truncate);
        }
    }
}

fn entries(cx: &mut Context<'_>, set: &mut Texts, value: &[u8], weird: &'static str) {
    if !is_searched(cx, value, 61) {
        return;
    }
    for entry in addresses::address_list(value) {
        if set.len() >= MAX_ADDRESSES {
            cx.weird(weird, "", None);
            break;
        }
        set.insert(truncate(entry));
    }
}

fn sorted(set: Texts) -> Set<Vec<u8>> {
    let mut values: Vec<_> = set.into_iter().collect();
    values.sort_unstable();
    Set(values)
}
