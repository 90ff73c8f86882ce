//! The transactions of one connection: rows from commands, replies and header fields.

use std::collections::HashSet;

use gannet_base::Dir;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_files::FileId;
use gannet_files::FileStart;
use gannet_log::Limits;
use gannet_log::Set;

use super::addresses;
use super::message::Answered;
use super::message::Command;
use super::rows::SmtpRow;
use crate::Context;
use crate::Tag;
use crate::policy::software::Found;
use crate::stack::events::FileStarts;
use crate::support::limit_reached;
use crate::support::mime::Field;
use crate::support::mime::Report;
use crate::support::mime::Sink;
use crate::support::text::Upper;
use crate::support::text::unescape_uri;

/// Addresses of one transaction, by each of RCPT TO, To and Cc.
const MAX_ADDRESSES: usize = 1000;
/// Hosts on the way of one mail.
const MAX_PATH: usize = 1000;
/// Stored bytes of a value: one more than a row shows, so that truncation is reported.
const MAX_VALUE: usize = Limits::DEFAULT.string + 1;
/// A longer text is not searched for addresses.
const MAX_SEARCHED: usize = 10_000;
/// Invalid transactions after which the connection is not followed further.
const MAX_INVALID: u64 = 25;

/// Where weird.log says weirds come from.
pub(super) const SOURCE: Option<&str> = Some("SMTP");

/// The rows of one connection: the state of its transactions.
#[derive(Debug, Default)]
pub(super) struct Session {
    helo: Option<Vec<u8>>,
    /// Mails that were transferred.
    transferred: u64,
    mail_from_seen: bool,
    rcpt_to_seen: bool,
    last_chunk_seen: bool,
    invalid: u64,
    /// Too many transactions were invalid.
    gave_up: bool,
    transaction: Option<Transaction>,
}

/// Texts, each once.
type Texts = HashSet<Vec<u8>, KeyedHash>;

/// A row in the making.
#[derive(Debug)]
struct Transaction {
    row: SmtpRow,
    rcptto: Texts,
    to: Texts,
    cc: Texts,
    /// The client did something that deserves a row.
    active: bool,
    /// The mail was written in a browser.
    webmail: bool,
    /// Entities that began in this transaction: only the first one's fields count.
    entities: u64,
    /// Within an entity: the file name its fields gave, if any.
    entity: Option<Option<Vec<u8>>>,
}

impl Session {
    /// Makes sure there is a row to fill.
    pub(super) fn begin(&mut self, cx: &Context<'_>) {
        if self.transaction.is_none() {
            self.renew(cx);
        }
    }

    fn renew(&mut self, cx: &Context<'_>) {
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

    /// A command.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, word: Upper<'_>, argument: &[u8]) {
        self.begin(cx);
        let is = |command: &str| word.is(command);
        if is("HELO") || is("EHLO") {
            self.helo = Some(kept(argument));
            if let Some(t) = &mut self.transaction {
                t.row.helo = Some(kept(argument));
            }
        } else if is("RCPT") && begins_with(argument, b"TO:") {
            if let Some(t) = &mut self.transaction {
                t.recipients(cx, argument);
                t.active = true;
            }
            self.rcpt_to_seen = true;
            if !self.mail_from_seen {
                self.invalid(cx, "rcpt to missing mail from");
            }
        } else if is("MAIL") && begins_with(argument, b"FROM:") {
            // The mail before it may have gone unacknowledged.
            self.flush(cx);
            if let Some(t) = &mut self.transaction {
                if is_searched(cx, argument, 11)
                    && let Some(address) = addresses::mail_addresses(argument).into_iter().next()
                    && !address.is_empty()
                {
                    t.row.mailfrom = Some(kept(&address));
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
            self.gave_up = true;
        }
    }

    /// Whether the connection stopped to be worth following since the last call.
    #[inline]
    pub(super) fn gives_up(&mut self) -> bool {
        std::mem::take(&mut self.gave_up)
    }

    /// Name of the file that an entity's header names.
    fn file_name(&self) -> Option<Vec<u8>> {
        self.transaction.as_ref()?.entity.clone()?
    }

    /// A line of a reply to a command; `more` when another line of it follows.
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
            self.renew(cx);
        }
    }

    /// The connection continues with TLS.
    pub(super) fn tls(&mut self) {
        if let Some(t) = &mut self.transaction {
            t.row.tls = true;
            t.active = true;
        }
    }

    /// An entity begins.
    pub(super) fn entity(&mut self) {
        if let Some(t) = &mut self.transaction {
            t.entities += 1;
            t.entity = Some(None);
        }
    }

    /// A header field of the entity that began last.
    #[inline]
    pub(super) fn field(&mut self, cx: &mut Context<'_>, name: &[u8], value: &[u8]) {
        if let Some(t) = &mut self.transaction {
            t.field(cx, Field { name, value });
        }
    }

    /// An entity ends.
    pub(super) fn entity_ends(&mut self) {
        if let Some(t) = &mut self.transaction {
            t.entity = None;
        }
    }

    /// A file of the mail begins.
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
            self.renew(cx);
        }
    }
}

impl Transaction {
    /// Reports the software that wrote the mail, if software.log is enabled.
    fn software(&self, cx: &mut Context<'_>) {
        let (row, relay) = (&self.row, cx.conn.id.orig_h);
        let (Some(mut policy), Some(text)) = (cx.env.policy(), &row.user_agent) else { return };
        let mut way = row.path.0.iter().rev().copied();
        let mut host = way.next();
        if self.webmail {
            // Mail that reached its server by HTTP was written there.
            let first = row.first_received.as_deref().unwrap_or_default();
            if memchr::memmem::find(first, b"via HTTP").is_some() {
                host = way.next();
            }
        }
        let kind = if self.webmail { "SMTP::WEBMAIL_SERVER" } else { "SMTP::MAIL_CLIENT" };
        if let Some(host) = host {
            policy.relayed_software(cx.now, relay, &Found { host, port: None, kind, text });
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
            self.rcptto.insert(kept(&without(&address, b"ORCPT=rfc822")));
        }
    }

    fn field(&mut self, cx: &mut Context<'_>, field: Field<'_>) {
        self.file_name(cx, field);
        // Fields of inner entities are not those of the mail.
        if self.entities > 1 {
            return;
        }
        let row = &mut self.row;
        let value = || Some(kept(field.value));
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
            // Once any field identified it, only the standard field is checked.
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
            *name = found.as_deref().map(kept);
        }
    }
}

fn kept(value: &[u8]) -> Vec<u8> {
    value[..value.len().min(MAX_VALUE)].to_vec()
}

/// Whether a text is short enough to be searched for addresses; if not, reports the corresponding
/// line of Zeek's script.
fn is_searched(cx: &mut Context<'_>, text: &[u8], line: u32) -> bool {
    let is_short = text.len() <= MAX_SEARCHED;
    if !is_short {
        let addl = format!(
            "base/utils/email.zeek, line {line}: length {} exceeded {MAX_SEARCHED}(from constant \
             max_find_all_string_length",
            text.len()
        );
        let name = "max_find_all_string_length_exceeded";
        cx.env.weirds.net(&mut cx.env.logs, cx.now, name, &addl);
    }
    is_short
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
        set.insert(kept(entry));
    }
}

fn sorted(set: Texts) -> Set<Vec<u8>> {
    let mut values: Vec<_> = set.into_iter().collect();
    values.sort_unstable();
    Set(values)
}

/// Takes `what`, and a semicolon after it, out of an address that it was glued to.
fn without(address: &[u8], what: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(address.len());
    let mut rest = address;
    while let Some((&b, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(what) {
            rest = after.strip_prefix(b";").unwrap_or(after);
        } else {
            out.push(b);
            rest = tail;
        }
    }
    out
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word))
}

/// The file name in a Content-Disposition or Content-Type, if it has the parameter `wanted`
/// (with a `*` after it only where `starred` allows).
fn file_name(value: &[u8], wanted: &[u8], starred: bool) -> Option<Vec<u8>> {
    if !parameters(value, wanted).any(|(star, _)| starred || !star) {
        return None;
    }
    // Whatever the parameter was called: the last one that ends in `name` holds it. A line end
    // stops the search, should one be within the value.
    let line = value.split(|&b| b == b'\n').next().unwrap_or_default();
    let mut name = parameters(line, b"name").last().map_or(value, |(_, at)| &value[at..]);
    if let Some(quoted) = name.strip_prefix(b"\"") {
        name = quoted.split(|&b| b == b'"').next().unwrap_or_default();
    }
    Some(unescape_uri(without_charset(name)))
}

/// Where values of parameters whose name ends in `wanted` begin, and whether `*` stood before
/// the equals sign.
fn parameters<'a>(value: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = (bool, usize)> + 'a {
    let blanks = |from: usize| {
        value
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count()
    };
    (0..value.len()).filter(|&i| begins_with(&value[i..], wanted)).filter_map(move |i| {
        let mut at = i + wanted.len();
        at += blanks(at);
        let star = value.get(at) == Some(&b'*');
        at += usize::from(star);
        (value.get(at) == Some(&b'=')).then(|| (star, at + 1 + blanks(at + 1)))
    })
}

/// The name without `charset'language'` in front (RFC 5987).
fn without_charset(name: &[u8]) -> &[u8] {
    let allowed =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+'..=b'^') || b"!#$%&_`{}~".contains(b);
    let charset = name.iter().take_while(|b| allowed(b)).count();
    if charset == 0 || name.get(charset) != Some(&b'\'') {
        return name;
    }
    let language = name[charset + 1..].iter().take_while(|b| allowed(b)).count();
    if name.get(charset + 1 + language) != Some(&b'\'') {
        return name;
    }
    let line = name.split(|&b| b == b'\n').next().unwrap_or_default();
    memchr::memrchr(b'\'', line).map_or(name, |last| &name[last + 1..])
}

/// One mail's way into the row and the files.
pub(super) struct Mail<'a, 'b> {
    pub(super) cx: &'a mut Context<'b>,
    pub(super) session: &'a mut Session,
    /// Entities that began, over all mails.
    pub(super) entities: &'a mut u64,
    /// Side that sends the mail.
    pub(super) from: Dir,
    /// The file of the current entity.
    pub(super) file: &'a mut Option<FileId>,
    /// Raises events of its entities.
    pub(super) report: &'a mut Report,
}

impl Mail<'_, '_> {
    #[inline]
    fn open(&mut self) -> FileId {
        match *self.file {
            Some(file) => {
                // A file that timed out starts again, and is listed again.
                if self.cx.env.files.is_over(file) {
                    self.report_file(file);
                }
                file
            }
            None => self.begin_file(),
        }
    }

    #[inline(never)]
    fn begin_file(&mut self) -> FileId {
        let file = self.cx.file_start(FileStart {
            source: "SMTP",
            from: self.from,
            depth: *self.entities,
            filename: self.session.file_name(),
            total_bytes: None,
            parent: None,
            mime_type: None,
        });
        *self.file = Some(file);
        self.report_file(file);
        file
    }

    #[inline(never)]
    fn report_file(&mut self, file: FileId) {
        let (is_orig, fuid) = (self.from.is_orig(), self.cx.env.files.fuid(file));
        self.cx.report(self.session, |c| FileStarts { c, atype: Tag::Smtp, is_orig, fuid });
    }

    /// The mail is over.
    pub(super) fn finish(&mut self) {
        self.report.finish(self.cx);
        self.cx.raise_file_handles(Tag::Smtp);
    }

    /// `len` bytes of the mail are missing.
    pub(super) fn gap(&mut self, len: u64) {
        let file = self.open();
        self.cx.file_gap(file, len);
    }
}

impl Sink for Mail<'_, '_> {
    fn begin(&mut self, _depth: usize) {
        self.report.begin(self.cx, self.session);
        *self.entities += 1;
    }

    fn headers_end(&mut self, _depth: usize) {
        self.report.headers_end(self.cx);
    }

    fn header(&mut self, _depth: usize, field: Field<'_>) {
        self.report.header(self.cx, self.session, field);
    }

    fn data(&mut self, _depth: usize, data: &[u8]) {
        self.report.data(self.cx, data);
        let file = self.open();
        self.cx.file_data(file, data);
    }

    fn line_end(&mut self) {
        self.report.line_end(self.cx);
    }

    fn illegal(&mut self, detail: &'static str) {
        self.report.illegal(self.cx, detail);
    }

    fn end(&mut self, _depth: usize) {
        self.report.end(self.cx, self.session);
        match self.file.take() {
            Some(file) => self.cx.file_end(file),
            None => self.cx.raise_file_handles(Tag::Smtp),
        }
    }

    fn limit(&mut self, name: &'static str, at: usize) {
        limit_reached(self.cx, name, &at.to_string(), SOURCE);
    }

    fn bad_base64(&mut self, complaint: &str) {
        self.cx.weird("base64_illegal_encoding", complaint, None);
    }
}

/// Whether a user agent is that of a mail program within a web server.
fn is_webmail(agent: &[u8]) -> bool {
    let starts = [
        &b"iPlanet Messenger"[..],
        b"Sun Java(tm) System Messenger Express",
        b"SquirrelMail",
        b"NeoMail",
    ];
    let within = [&b"(IMP)"[..], b"ZimbraWebClient"];
    starts.iter().any(|s| agent.starts_with(s))
        || within.iter().any(|w| memchr::memmem::find(agent, w).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names() {
        let disposition = |v: &str| {
            file_name(v.as_bytes(), b"filename", true)
                .map(|n| String::from_utf8_lossy(&n).into_owned())
        };
        assert_eq!(disposition("attachment; filename=\"NEWS.txt\"").as_deref(), Some("NEWS.txt"));
        assert_eq!(disposition("attachment; FileName = a b.c").as_deref(), Some("a b.c"));
        assert_eq!(disposition("attachment; filename*=UTF-8'en'a%20b").as_deref(), Some("a b"));
        assert_eq!(disposition("attachment; filename=\"open").as_deref(), Some("open"));
        assert_eq!(disposition("inline"), None);
        let ty = |v: &str| file_name(v.as_bytes(), b"name", false);
        assert_eq!(ty("text/plain; name=a.txt").as_deref(), Some(&b"a.txt"[..]));
        assert_eq!(ty("text/plain; name*=a.txt"), None);
    }

    #[test]
    fn glued_parameters() {
        assert_eq!(without(b"ORCPT=rfc822a@b", b"ORCPT=rfc822"), b"a@b");
        assert_eq!(without(b"a@b", b"ORCPT=rfc822"), b"a@b");
    }
}
