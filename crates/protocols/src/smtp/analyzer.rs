use std::collections::VecDeque;

use gannet_base::Dir;
use gannet_files::FileId;
use gannet_files::FileStart;

use super::bdat;
use super::bdat::Chunks;
use super::bdat::LineSink;
use super::events::*;
use super::mail::Mail;
use super::message::Answered;
use super::message::Command;
use super::message::Reply;
use super::message::Request;
use super::message::UNKNOWN;
use super::message::name;
use super::message::parse_chunk;
use super::rows::Session;
use super::values::SOURCE;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::ScriptRequest;
use crate::Tag;
use crate::support::Lines;
use crate::support::mime::Mime;
use crate::support::mime::Report;
use crate::support::text::UpperCase;

/// Maximum length of a line, in bytes (101 less than 16 MiB); a longer line is parsed in pieces of
/// this length.
const MAX_LINE: usize = 16 * 1024 * 1024 - 101;
/// Number of bytes that are lost after a line that was split.
const CUT_LOSS: usize = 2;

/// State of the session, inferred from the last command and reply. A command counts as accepted
/// until its reply rejects it. The numbers are those of Zeek, for the details of `smtp_unexpected`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The roles were exchanged; the new server has not sent its greeting.
    Connected = 0,
    /// EHLO or HELO is expected.
    Initiated = 1,
    /// The server refused the connection.
    NotAvailable = 2,
    /// After EHLO or HELO, and between mails.
    Ready = 3,
    /// After MAIL.
    MailOk = 4,
    /// After RCPT.
    RcptOk = 5,
    InData = 6,
    /// After the end of a mail, before its reply.
    AfterData = 7,
    InAuth = 8,
    InTls = 9,
    /// After QUIT.
    Quit = 10,
    AfterGap = 11,
    /// After the first reply that followed a gap.
    Recovering = 12,
    InChunks = 13,
}

/// The analyzer of one connection.
pub struct Analyzer {
    lines: [Lines; 2],
    /// Number of bytes of the current chunk that are not parsed as commands, by [`Dir::index`].
    chunk_bytes: [u64; 2],
    /// Whether a NUL in this side's lines was already removed.
    nul_seen: [bool; 2],
    seen_weirds: SeenWeirds,
    ended: [bool; 2],
    /// The client of the session: the originator, until TURN.
    client: Dir,
    state: State,
    /// The command that the next reply answers; later ones are in `queue`.
    awaiting: Option<Command>,
    queue: VecDeque<Command>,
    answered: Option<Command>,
    /// The code of a reply of which more lines follow.
    continued: Option<u16>,
    mail: Option<OpenMail>,
    /// The current mail as a file, if scripts request it.
    message: Option<FileId>,
    /// A script requested that the rest of the current mail be skipped.
    skips_data: bool,
    chunks: Option<Chunks>,
    session: Session,
    /// Number of entities that began, over all mails.
    entities: u64,
    reading: Reading,
    /// The stream is not SMTP; the current data is still parsed.
    is_not_smtp: bool,
}

/// How the stream is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Lines,
    /// The SSL analyzer receives the stream.
    Tls,
    /// After a gap within TLS: later data is parsed as SMTP again, chunk by chunk.
    AfterTlsGap,
    /// The stream is not SMTP: parsing stopped.
    Off,
}

/// Weirds of lines that are reported once per connection.
#[derive(Default)]
struct SeenWeirds {
    lone_cr: bool,
    nul: bool,
}

/// The current mail.
struct OpenMail {
    mime: Mime,
    from: Dir,
    file: Option<FileId>,
    report: Report,
}

fn lines() -> Lines {
    let mut lines = Lines::new(MAX_LINE);
    lines.set_loss(CUT_LOSS);
    lines
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            lines: [lines(), lines()],
            chunk_bytes: [0; 2],
            nul_seen: [false; 2],
            seen_weirds: SeenWeirds::default(),
            ended: [false; 2],
            client: Dir::Orig,
            state: State::Initiated,
            awaiting: Some(Command::Connect),
            queue: VecDeque::new(),
            answered: None,
            continued: None,
            mail: None,
            message: None,
            skips_data: false,
            chunks: None,
            session: Session::default(),
            entities: 0,
            reading: Reading::Lines,
            is_not_smtp: false,
        }
    }

    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        let without_nul_line = self.without_nul(cx, from, line);
        let line = self.without_cr(cx, from, without_nul_line.as_deref().unwrap_or(line));
        if from == self.client {
            if !line.is_empty() {
                self.last_chunk_ends(cx, from);
            }
            self.client_line(cx, from, line);
        } else {
            self.server_line(cx, from, line);
        }
    }

    /// Reports the first NUL of a side immediately, even in an incomplete line. Returns its offset.
    fn report_nul(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) -> Option<usize> {
        if self.nul_seen[from.index()] {
            return None;
        }
        let at = memchr::memchr(0, line)?;
        if !std::mem::replace(&mut self.seen_weirds.nul, true) {
            cx.weird("NUL_in_line", "", Some("CONTENTLINE"));
        }
        Some(at)
    }

    /// The line without its first NUL, if that is the first one of this side; otherwise `None`.
    fn without_nul(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) -> Option<Vec<u8>> {
        let at = self.report_nul(cx, from, line)?;
        self.nul_seen[from.index()] = true;
        Some([&line[..at], &line[at + 1..]].concat())
    }

    /// The line without trailing CRs: some clients end lines with several.
    #[inline]
    fn without_cr<'a>(&self, cx: &mut Context<'_>, from: Dir, line: &'a [u8]) -> &'a [u8] {
        let is_client = from == self.client;
        let mut rest = line;
        while let [before @ .., b'\r'] = rest {
            rest = before;
        }
        if rest.len() < line.len() {
            self.unexpected(cx, is_client, "more than one <CR> at the end of line", line);
        }
        let line = rest;
        if cx.wants::<SmtpUnexpected<'_>>() && memchr::memchr2(b'\r', b'\n', line).is_some() {
            let msg = "Bare <CR> or <LF> appears in the middle of line";
            self.unexpected(cx, is_client, msg, line);
        }
        line
    }

    /// Raises `smtp_unexpected`: the session deviates from the protocol. `is_client` says whether
    /// the client caused it.
    #[inline]
    fn unexpected(&self, cx: &mut Context<'_>, is_client: bool, msg: &'static str, detail: &[u8]) {
        let is_orig = is_client == self.client.is_orig();
        cx.raise(|c| SmtpUnexpected { c, is_orig, msg, detail });
    }

    /// Reports a command or its reply in a state that does not permit it.
    fn unexpected_command(&self, cx: &mut Context<'_>, command: Command, code: u16) {
        if cx.wants::<SmtpUnexpected<'_>>() {
            let detail = format!("{} reply = {code} state = {}", name(command), self.state as u8);
            self.unexpected(cx, true, "unexpected command", detail.as_bytes());
        }
    }

    /// Reports a reply that the protocol does not define for the command.
    fn unexpected_reply(&self, cx: &mut Context<'_>, command: Command, code: u16) {
        if cx.wants::<SmtpUnexpected<'_>>() {
            let (state, name) = (self.state as u8, name(command));
            let detail = format!("{code} state = {state}, last command = {name}");
            self.unexpected(cx, true, "unexpected reply", detail.as_bytes());
        }
    }

    fn client_line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        match self.state {
            State::AfterGap => {}
            State::InData if line == b"." => {
                self.await_reply(cx, Command::EndOfData);
                self.command_state(cx, from, Command::EndOfData);
                self.request(cx, b".", b".");
                self.chunks_missing(cx, Command::EndOfData);
            }
            State::InData => {
                if self.mail.is_none() {
                    self.begin_mail(cx, from, State::InData);
                }
                let text = line.strip_prefix(b".").unwrap_or(line);
                self.with_mail(cx, |mime, mail| mime.line(text, true, mail));
                self.message_data(cx, text);
                self.message_data(cx, b"\r\n");
                if cx.wants::<SmtpData<'_>>() && !self.skips_data {
                    cx.raise(|c| SmtpData { c, is_orig: from.is_orig(), data: text });
                }
            }
            State::InAuth => {
                self.await_reply(cx, Command::AuthAnswer);
                self.request(cx, b"**", line);
                self.chunks_missing(cx, Command::AuthAnswer);
                self.command_state(cx, from, Command::AuthAnswer);
            }
            _ => {
                let request = Request::parse(line);
                match Command::from_word(request.word) {
                    Some(command) => self.command(cx, from, command, request),
                    None => self.unexpected(cx, true, "unknown command", request.word),
                }
            }
        }
    }

    fn command(&mut self, cx: &mut Context<'_>, from: Dir, command: Command, request: Request<'_>) {
        self.await_reply(cx, command);
        if command == Command::EndOfData {
            self.command_state(cx, from, command);
        }
        self.request(cx, request.word, request.argument);
        if command == Command::Bdat {
            self.chunk_begins(cx, from, request.argument);
            return;
        }
        self.chunks_missing(cx, command);
        if command != Command::EndOfData {
            self.command_state(cx, from, command);
        }
    }

    /// Updates the state after a command, as if the server accepted it.
    fn command_state(&mut self, cx: &mut Context<'_>, from: Dir, command: Command) {
        let state = self.state;
        if state == State::Quit {
            self.unexpected_command(cx, command, 0);
        }
        let is_expected = match command {
            // The reply to the connection is expected from the beginning.
            Command::Connect => state == State::Connected,
            Command::Ehlo | Command::Helo => state == State::Initiated,
            Command::Mail | Command::Send | Command::Soml | Command::Saml => state == State::Ready,
            Command::Rcpt => matches!(state, State::MailOk | State::RcptOk),
            Command::Data | Command::Bdat => state == State::RcptOk,
            Command::EndOfData => matches!(state, State::InData | State::InChunks),
            Command::AuthAnswer => state == State::InAuth,
            Command::Auth | Command::Turn | Command::StartTls | Command::AnonymousTls => {
                state == State::Ready
            }
            _ => true,
        };
        if !is_expected {
            self.unexpected_command(cx, command, 0);
        }
        match command {
            Command::Connect => self.state = State::Initiated,
            Command::Ehlo | Command::Helo | Command::Rset => self.state = State::Ready,
            Command::Mail | Command::Send | Command::Soml | Command::Saml => {
                self.state = State::MailOk;
            }
            Command::Rcpt => self.state = State::RcptOk,
            Command::Data => self.begin_mail(cx, from, State::InData),
            Command::Bdat => self.state = State::InChunks,
            Command::EndOfData => {
                self.end_mail(cx);
                self.state = State::AfterData;
            }
            Command::Quit => self.state = State::Quit,
            _ => {}
        }
    }

    fn chunk_begins(&mut self, cx: &mut Context<'_>, from: Dir, argument: &[u8]) {
        let (size, last) = match parse_chunk(argument) {
            Ok(chunk) => chunk,
            Err(words) => {
                cx.weird("smtp_invalid_bdat_command", words, SOURCE);
                return;
            }
        };
        if i64::try_from(size).is_err() {
            cx.weird("smtp_huge_bdat_chunk", &size.to_string(), SOURCE);
            return;
        }
        self.chunk_bytes[from.index()] = size;
        if self.chunks.is_none() {
            self.begin_mail(cx, from, State::InChunks);
            let max_line = cx.env.setting("SMTP::bdat_max_line_length", bdat::MAX_LINE as u64);
            let max_line = usize::try_from(max_line).unwrap_or(usize::MAX).max(1);
            self.chunks = Some(Chunks::new(max_line));
            // In Zeek, an analyzer parses the chunks.
            cx.skip_aids(1);
        }
        if let Some(chunks) = &mut self.chunks {
            chunks.next_chunk(size, last);
        }
        self.command_state(cx, from, Command::Bdat);
    }

    /// Reports another command before the last chunk.
    fn chunks_missing(&mut self, cx: &mut Context<'_>, command: Command) {
        if command != Command::Bdat && self.chunks.is_some() {
            cx.weird("smtp_missing_bdat_last_chunk", "", SOURCE);
            self.end_mail(cx);
        }
    }

    /// The end of an empty last chunk is noticed only with the next line.
    fn last_chunk_ends(&mut self, cx: &mut Context<'_>, from: Dir) {
        if from == self.client && self.chunks.as_ref().is_some_and(Chunks::complete) {
            self.command_state(cx, from, Command::EndOfData);
        }
    }

    fn chunk_bytes(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if from != self.client || self.chunks.is_none() {
            // The roles were exchanged within a chunk: it cannot be parsed.
            return;
        }
        if let (Some(mut chunks), Some(mut open)) = (self.chunks.take(), self.mail.take()) {
            let mail = Mail {
                cx: &mut *cx,
                session: &mut self.session,
                entities: &mut self.entities,
                from: open.from,
                file: &mut open.file,
                report: &mut open.report,
            };
            chunks.data(data, &mut ChunkLines { mime: &mut open.mime, mail });
            self.mail = Some(open);
            self.chunks = Some(chunks);
            self.message_data(cx, data);
        }
        self.last_chunk_ends(cx, from);
    }

    fn server_line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        let Some(reply) = Reply::parse(line) else {
            self.unexpected(cx, false, "reply code out of range", line);
            cx.violation(Tag::Smtp, "reply code -1 out of range", line);
            return;
        };
        if self.continued.is_some_and(|code| code != reply.code) {
            let msg = "reply code does not match the continuing reply";
            self.unexpected(cx, false, msg, line);
            self.continued = None;
        }
        if self.continued.is_none() {
            self.handle_reply(cx, from, reply.code);
        }
        self.continued = reply.more.then_some(reply.code);
        let Reply { code, more: cont_resp, text: msg } = reply;
        let cmd = Answered(self.answered);
        let (session, is_orig) = (&mut self.session, from.is_orig());
        cx.report(session, |c| SmtpReply { c, is_orig, code, cmd, msg, cont_resp });
    }

    /// Handles the first line of a reply: the new state depends on the command that it answers.
    fn handle_reply(&mut self, cx: &mut Context<'_>, from: Dir, code: u16) {
        if self.state == State::AfterGap {
            self.state = State::Recovering;
            self.request(cx, UNKNOWN.as_bytes(), b"");
        }
        let command = self.awaiting.take();
        self.answered = command;
        self.awaiting = self.queue.pop_front();
        match command {
            Some(command) => self.reply_state(cx, from, command, code),
            None if self.state == State::Recovering && code == 354 => {
                self.begin_mail(cx, from, State::InData);
            }
            None => {}
        }
    }

    /// Updates the state after the reply to a command.
    fn reply_state(&mut self, cx: &mut Context<'_>, from: Dir, command: Command, code: u16) {
        let is_expected = match command {
            Command::Auth | Command::Turn | Command::StartTls | Command::AnonymousTls => {
                self.state == State::Ready
            }
            Command::AuthAnswer => self.state == State::InAuth,
            _ => true,
        };
        if !is_expected {
            self.unexpected_command(cx, command, code);
        }
        if !command.has_reply(code) {
            self.unexpected_reply(cx, command, code);
        }
        match command {
            Command::Ehlo | Command::Helo => {
                if matches!(code, 421 | 500 | 501 | 504 | 550) {
                    self.state = State::Initiated;
                }
            }
            Command::Mail | Command::Send | Command::Soml | Command::Saml => {
                let refused = matches!(code, 421 | 451 | 452 | 500 | 501 | 503 | 550 | 552 | 553);
                if refused && self.state != State::InData {
                    self.state = State::Ready;
                }
            }
            Command::Connect => {
                if matches!(code, 421 | 554) {
                    self.state = State::NotAvailable;
                }
            }
            Command::Data if code != 354 => {
                if self.state == State::InData {
                    self.end_mail(cx);
                }
                self.state = if code == 421 { State::Quit } else { State::Ready };
            }
            Command::EndOfData => self.state = State::Ready,
            Command::Auth | Command::AuthAnswer => {
                self.state = if code == 334 { State::InAuth } else { State::Initiated };
            }
            Command::Turn if code == 250 => {
                self.client = self.client.other();
                self.state = State::Connected;
            }
            Command::StartTls | Command::AnonymousTls if code == 220 => {
                self.reading = Reading::Tls;
                self.state = State::InTls;
                cx.report(&mut self.session, |c| SmtpStarttls { c });
            }
            Command::Vrfy | Command::Expn | Command::Help | Command::Noop | Command::Etrn
                if self.state == State::Recovering && code == 354 =>
            {
                self.begin_mail(cx, from, State::InData);
            }
            _ => {}
        }
    }

    fn await_reply(&mut self, cx: &mut Context<'_>, command: Command) {
        if self.awaiting.is_none() {
            self.awaiting = Some(command);
            return;
        }
        if self.queue.len() >= cx.env.pending.of(Tag::Smtp) {
            cx.weird("smtp_excessive_pending_cmds", "", SOURCE);
            self.queue.clear();
        }
        self.queue.push_back(command);
        cx.conn.note_table(self.queue.len());
    }

    fn request(&mut self, cx: &mut Context<'_>, word: &[u8], argument: &[u8]) {
        cx.confirm(Tag::Smtp);
        let (session, is_orig) = (&mut self.session, self.client.is_orig());
        cx.report(session, |c| SmtpRequest { c, is_orig, command: UpperCase(word), arg: argument });
        self.is_not_smtp |= self.session.take_stopped();
    }

    fn begin_mail(&mut self, cx: &mut Context<'_>, from: Dir, state: State) {
        self.state = state;
        self.skips_data = false;
        if self.mail.is_some() {
            cx.weird("smtp_nested_mail_transaction", "", SOURCE);
            self.finish_mail(cx);
        }
        let (mut file, mut report) = (None, Report::default());
        let (session, entities) = (&mut self.session, &mut self.entities);
        let mut mail = Mail { cx, session, entities, from, file: &mut file, report: &mut report };
        let mime = Mime::new(&mut mail);
        self.mail = Some(OpenMail { mime, from, file, report });
        if self.message.is_none() && cx.env.setting("SMTP::enable_rfc822_msg_file_analysis", 0) != 0
        {
            self.message = Some(cx.file_start(FileStart {
                source: "SMTP",
                from: Dir::Orig,
                depth: self.entities,
                mime_type: Some("message/rfc822"),
                ..FileStart::default()
            }));
        }
    }

    /// Delivers more of the mail as a file.
    #[inline]
    fn message_data(&mut self, cx: &mut Context<'_>, data: &[u8]) {
        if let Some(file) = self.message {
            cx.file_data(file, data);
        }
    }

    fn end_mail(&mut self, cx: &mut Context<'_>) {
        if let Some(mut chunks) = self.chunks.take() {
            if chunks.remaining() > 0 {
                cx.weird("smtp_bdat_remaining_at_end_data", "", SOURCE);
                self.chunk_bytes = [0; 2];
            }
            if let Some(open) = &mut self.mail {
                let mail = Mail {
                    cx: &mut *cx,
                    session: &mut self.session,
                    entities: &mut self.entities,
                    from: open.from,
                    file: &mut open.file,
                    report: &mut open.report,
                };
                chunks.finish(&mut ChunkLines { mime: &mut open.mime, mail });
            }
        }
        if self.mail.is_none() {
            cx.weird("smtp_unmatched_end_of_data", "", SOURCE);
        } else {
            self.finish_mail(cx);
        }
        if let Some(file) = self.message.take() {
            cx.file_end(file);
        }
    }

    fn end_open_mail(&mut self, cx: &mut Context<'_>) {
        if self.mail.is_some() {
            self.end_mail(cx);
        }
    }

    fn finish_mail(&mut self, cx: &mut Context<'_>) {
        self.with_mail(cx, |mime, mail| {
            mime.finish(mail);
            mail.finish();
        });
        self.mail = None;
    }

    fn with_mail(&mut self, cx: &mut Context<'_>, act: impl FnOnce(&mut Mime, &mut Mail<'_, '_>)) {
        if let Some(open) = &mut self.mail {
            let (from, file, report) = (open.from, &mut open.file, &mut open.report);
            let (session, entities) = (&mut self.session, &mut self.entities);
            act(&mut open.mime, &mut Mail { cx, session, entities, from, file, report });
        }
    }
}

/// Passes lines of chunks to the mail.
struct ChunkLines<'a, 'b, 'c> {
    mime: &'a mut Mime,
    mail: Mail<'b, 'c>,
}

impl LineSink for ChunkLines<'_, '_, '_> {
    fn line(&mut self, line: &[u8], line_end: bool) {
        self.mime.line(line, line_end, &mut self.mail);
    }

    fn weird(&mut self, name: &'static str, addl: &str) {
        self.mail.cx.weird(name, addl, Some("SMTP_BDAT"));
    }
}

impl Analyze for Analyzer {
    fn handle_request(&mut self, _cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        let is_own = request == ScriptRequest::SkipMail;
        self.skips_data |= is_own;
        is_own
    }

    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.reading == Reading::AfterTlsGap && !data.is_empty() {
            let line = self.without_cr(cx, from, data);
            if from != self.client {
                self.server_line(cx, from, line);
            }
            return;
        }
        // A stream without its beginning may start within a line.
        if self.reading != Reading::Lines || data.is_empty() || cx.conn.is_partial() {
            return;
        }
        let i = from.index();
        let mut data = data;
        // The line buffer is moved out of `self` so that a line may borrow it while it is parsed.
        let mut lines = std::mem::replace(&mut self.lines[i], Lines::new(1));
        loop {
            if self.chunk_bytes[i] > 0 {
                lines.skip_lf(&mut data);
                let take =
                    usize::try_from(self.chunk_bytes[i]).unwrap_or(usize::MAX).min(data.len());
                if take == 0 {
                    break;
                }
                let (now, rest) = data.split_at(take);
                data = rest;
                self.chunk_bytes[i] -= take as u64;
                self.chunk_bytes(cx, from, now);
                continue;
            }
            let rest = data;
            let Some(line) = lines.next(&mut data) else {
                self.report_nul(cx, from, rest);
                break;
            };
            line.report(cx, &mut self.seen_weirds.lone_cr);
            if cx.is_removed(Tag::Smtp) {
                continue;
            }
            self.line(cx, from, line.text);
            if self.reading != Reading::Lines {
                break;
            }
        }
        lines.report(cx, &mut self.seen_weirds.lone_cr);
        if self.reading == Reading::Tls {
            lines.skip_lf(&mut data);
            // Zeek's SMTP passes on no data after a gap, like the SSL analyzer after one.
            cx.start(Tag::Ssl, Replay::rest(from, data));
        }
        self.lines[i] = lines;
        if self.is_not_smtp && self.reading != Reading::Off {
            self.end_open_mail(cx);
            self.reading = Reading::Off;
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if self.reading == Reading::Tls {
            self.reading = Reading::AfterTlsGap;
        }
        if matches!(self.reading, Reading::Off) {
            return;
        }
        if cx.wants::<SmtpUnexpected<'_>>() {
            let detail = format!("seq = {}, len = {len}", cx.env.gap_at);
            self.unexpected(cx, from.is_orig(), "content gap", detail.as_bytes());
        }
        if matches!(self.state, State::InData | State::InChunks) {
            self.with_mail(cx, |_, mail| mail.gap(len));
            if let Some(file) = self.message {
                cx.file_gap(file, len);
            }
            self.end_mail(cx);
        }
        self.queue.clear();
        self.awaiting = None;
        self.answered = None;
        self.state = State::AfterGap;
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.lines[from.index()].has_partial() {
            self.stream(cx, from, b"\n");
        }
        self.ended[from.index()] = true;
        if self.ended == [true; 2] {
            self.end_open_mail(cx);
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.lines.swap(0, 1);
        self.chunk_bytes.swap(0, 1);
        self.nul_seen.swap(0, 1);
        self.ended.swap(0, 1);
    }

    fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
        self.end_open_mail(cx);
        let session = std::mem::take(&mut self.session);
        let seen_weirds = std::mem::take(&mut self.seen_weirds);
        let entities = self.entities;
        *self = Self { session, seen_weirds, entities, ..Self::new(cx) };
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.end_open_mail(cx);
        self.session.finish(cx);
    }
}

#[cfg(test)]
mod tests;
