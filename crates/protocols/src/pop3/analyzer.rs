use std::collections::VecDeque;

use gannet_base::Dir;
use gannet_files::FileId;
use gannet_files::FileStart;

use super::events::*;
use super::message::Mechanism;
use super::message::Parts;
use super::message::Word;
use super::message::trimmed;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Lines;
use crate::support::limit_reached;
use crate::support::mime::Base64;
use crate::support::mime::Fault;
use crate::support::mime::Field;
use crate::support::mime::Limits;
use crate::support::mime::Mime;
use crate::support::mime::Report;
use crate::support::mime::Sink;

/// Number of unknown commands of the client after which the stream is not POP3.
const MAX_UNKNOWN: u32 = 10;
/// Maximum length of a line, in bytes; a longer line is parsed in pieces of this length.
const MAX_LINE: usize = 16 * 1024 * 1024 - 100;

const SOURCE: Option<&str> = Some("POP3");

/// The state of the session (RFC 1939 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    Start,
    Authorization,
    Transaction,
    /// After QUIT.
    Over,
}

/// The command that the next reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expecting {
    Greeting,
    User,
    Auth(Option<Mechanism>),
    /// Any command with a reply of one line.
    Simple,
    /// LIST or UIDL: the reply has several lines if the command named no message.
    Listing,
    /// RETR and TOP.
    Mail,
    Capabilities,
    Tls,
    Quit,
    Login,
}

/// A pipelined command.
#[derive(Debug)]
struct Pending {
    /// The command, or the text of an unknown one.
    word: Result<Word, Vec<u8>>,
    has_argument: bool,
    /// The argument, if an event carries it.
    argument: Vec<u8>,
    mechanism: Mechanism,
}

/// A message that is being transferred.
struct Mail {
    mime: Mime,
    file: Option<FileId>,
    report: Report,
}

/// The analyzer of one connection.
pub struct Analyzer {
    lines: [Lines; 2],
    session: Session,
    expecting: Expecting,
    /// A command that was sent out of sequence: if it succeeds, a login was missed.
    out_of_sequence: Option<Expecting>,
    /// Whether more lines of the current reply follow.
    in_reply: bool,
    /// Whether the next successful reply has several lines.
    long_reply: bool,
    /// Whether the client's lines are responses to challenges.
    authenticating: bool,
    pending: VecDeque<Pending>,
    unknown: u32,
    /// User name and password of the current login attempt, for login events.
    login: [Vec<u8>; 2],
    /// Number of responses to challenges since the last AUTH.
    challenge_responses: u32,
    mail: Option<Mail>,
    tls: bool,
    lone_cr: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            lines: [Lines::new(MAX_LINE), Lines::new(MAX_LINE)],
            session: Session::Start,
            expecting: Expecting::Greeting,
            out_of_sequence: None,
            in_reply: false,
            long_reply: false,
            authenticating: false,
            pending: VecDeque::new(),
            unknown: 0,
            login: Default::default(),
            challenge_responses: 0,
            mail: None,
            tls: false,
            lone_cr: false,
        }
    }

    fn client_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        if self.authenticating {
            self.challenge_response(cx, line);
            return;
        }
        let parts = Parts::split(line);
        self.pending.push_back(Pending {
            word: parts.word().ok_or_else(|| parts.first_or_default().to_vec()),
            has_argument: !parts.argument.is_empty(),
            argument: match cx.wants::<Pop3Request>() || reports_logins(cx) {
                true => parts.argument.to_vec(),
                false => Vec::new(),
            },
            mechanism: Mechanism::parse(parts.argument),
        });
        cx.conn.note_table(self.pending.len());
        if self.pending.len() > cx.env.pending.of(Tag::Pop3) {
            cx.weird("pop3_client_too_many_pending_commands", "", SOURCE);
            self.pending.pop_front();
        }
        if self.pending.len() == 1 {
            self.begin_command(cx);
        }
    }

    /// A response to a challenge, in base64.
    fn challenge_response(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        self.challenge_responses = self.challenge_responses.saturating_add(1);
        let end = memchr::memchr(0, line).unwrap_or(line.len());
        let mut decoder = Base64::default();
        let mut text = Vec::new();
        if let Some(complaint) = decoder.decode(&line[..end], &mut text) {
            cx.weird("base64_illegal_encoding", &complaint, None);
        }
        if decoder.failed() {
            cx.weird("pop3_bad_base64_encoding", "", SOURCE);
            return;
        }
        for complaint in decoder.finish(&mut text) {
            cx.weird("base64_illegal_encoding", &complaint, None);
        }
        if reports_logins(cx) {
            self.note_credentials(&text);
        }
        // An authorization identity, the user name and the password, separated by NUL.
        let mut parts = text.splitn(3, |b| *b == 0).skip(2);
        if self.expecting == Expecting::Auth(Some(Mechanism::Plain))
            && parts.next().is_none_or(<[u8]>::is_empty)
        {
            cx.weird("pop3_malformed_auth_plain", "", SOURCE);
        }
    }

    /// Stores user name and password from a response. Of a malformed one, the parts before the
    /// fault count.
    fn note_credentials(&mut self, text: &[u8]) {
        match self.expecting {
            Expecting::Auth(Some(Mechanism::Plain)) => {
                let mut parts = text.splitn(3, |b| *b == 0).skip(1);
                if let (Some(user), Some(password)) = (parts.next(), parts.next()) {
                    self.login[0] = user.to_vec();
                    if !password.is_empty() {
                        self.login[1] = password.to_vec();
                    }
                }
            }
            // The user name, then the password.
            Expecting::Auth(Some(Mechanism::Login)) => match self.challenge_responses {
                1 => self.login[0] = text.to_vec(),
                2 => self.login[1] = text.to_vec(),
                _ => {}
            },
            // CRAM-MD5: the user name and a keyed hash.
            Expecting::Auth(Some(Mechanism::Other)) => {
                let user = text.split(|b| matches!(b, b' ' | b'\t')).next();
                self.login = [user.unwrap_or_default().to_vec(), Vec::new()];
            }
            _ => {}
        }
    }

    /// Makes the first pipelined command the one that the server's next reply is for.
    fn begin_command(&mut self, cx: &mut Context<'_>) {
        let Some(command) = self.pending.front() else { return };
        let (argument, mechanism) = (command.has_argument, command.mechanism);
        let word = match &command.word {
            Ok(word) => *word,
            Err(text) => {
                if self.authenticating {
                    return;
                }
                cx.weird_bytes("pop3_client_command_unknown", text, SOURCE);
                self.unknown += 1;
                let limit = cx.env.setting("POP3::max_unknown_client_commands", MAX_UNKNOWN.into());
                if limit > 0 && u64::from(self.unknown) > limit {
                    cx.violation(Tag::Pop3, "too many unknown client commands", b"");
                }
                return;
            }
        };
        let authorization = self.session == Session::Authorization;
        let is_allowed = match word {
            Word::Ok | Word::Err => false,
            Word::User | Word::Apop | Word::Auth => authorization,
            Word::Pass => authorization && self.expecting == Expecting::User,
            Word::Quit => self.session != Session::Over,
            Word::Capa | Word::Stls => true,
            _ => self.session == Session::Transaction,
        };
        let text = match reports_logins(cx) {
            true => command.argument.clone(),
            false => Vec::new(),
        };
        if is_allowed && cx.wants::<Pop3Request>() {
            let (command, arg) = (word.name(), &command.argument[..]);
            cx.raise(|c| Pop3Request { c, is_orig: true, command, arg });
        }
        let is_unknown =
            mechanism == Mechanism::Other && memchr::memmem::find(&text, b"CRAM-MD5").is_none();
        if !is_allowed && !matches!(word, Word::Ok | Word::Err) {
            let detail: &[u8] = match word {
                Word::Pass if authorization => b"pass must follow the command 'USER'",
                Word::Auth => b"pass must follow the command 'USER'",
                Word::User | Word::Pass | Word::Apop => {
                    b"not allowed in other state than 'authorization'"
                }
                _ => b"not allowed in other state than 'transaction'",
            };
            cx.raise(|c| Pop3Unexpected { c, is_orig: true, msg: word.name(), detail });
        } else if word == Word::Auth && argument && is_unknown {
            let detail = [b"unknown AUTH method ", &text[..]].concat();
            cx.raise(|c| Pop3Unexpected { c, is_orig: true, msg: word.name(), detail: &detail });
        }
        match word {
            Word::User if is_allowed => self.login[0] = text,
            Word::Pass if is_allowed => self.login[1] = text,
            Word::Apop if is_allowed => {
                let user = text.split(|b| matches!(b, b' ' | b'\t')).next();
                self.login[0] = user.unwrap_or_default().to_vec();
            }
            Word::Auth if is_allowed => self.challenge_responses = 0,
            _ => {}
        }
        match word {
            Word::Ok | Word::Err => cx.weird("pop3_client_sending_server_commands", "", SOURCE),
            Word::User if authorization => self.expecting = Expecting::User,
            Word::Pass if authorization && self.expecting == Expecting::User => {
                self.expecting = Expecting::Login;
            }
            Word::Apop if authorization => self.expecting = Expecting::Login,
            Word::Auth if authorization => {
                self.expecting = Expecting::Auth(argument.then_some(mechanism));
                self.authenticating |= argument;
                self.long_reply |= !argument;
            }
            Word::User | Word::Pass | Word::Apop | Word::Auth => {}
            Word::Stat => {
                if self.session == Session::Transaction {
                    self.expecting = Expecting::Simple;
                }
            }
            Word::Dele | Word::Rset | Word::Noop | Word::Last | Word::Xsender => {
                self.begin(Expecting::Simple);
            }
            Word::List | Word::Uidl => {
                self.long_reply |= !argument;
                self.begin(Expecting::Listing);
            }
            Word::Retr | Word::Top => {
                self.long_reply = true;
                self.begin(Expecting::Mail);
            }
            Word::Quit if self.session == Session::Over => self.begin(Expecting::Simple),
            Word::Quit => self.expecting = Expecting::Quit,
            Word::Capa => {
                self.expecting = Expecting::Capabilities;
                self.long_reply = true;
            }
            Word::Stls => self.expecting = Expecting::Tls,
        }
    }

    /// Starts a command that needs a login.
    fn begin(&mut self, command: Expecting) {
        if self.session == Session::Transaction {
            self.expecting = command;
        } else {
            self.out_of_sequence = Some(command);
        }
    }

    fn end_command(&mut self, cx: &mut Context<'_>) {
        self.pending.pop_front();
        self.begin_command(cx);
    }

    fn server_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if self.in_reply {
            if line == b"." {
                self.in_reply = false;
                self.long_reply = false;
                self.end_mail(cx);
                self.end_command(cx);
            } else {
                if self.expecting == Expecting::Mail {
                    self.mail_line(cx, line);
                }
                cx.raise(|c| Pop3Data { c, is_orig: false, data: trimmed(line) });
            }
            return;
        }
        let parts = Parts::split(line);
        match parts.word() {
            None => {
                if !self.authenticating {
                    let text = parts.first_or_default();
                    let reason = [b"unknown server command (", text, b")"].concat();
                    cx.violation_bytes(Tag::Pop3, reason, line);
                    cx.weird_bytes("pop3_server_command_unknown", text, SOURCE);
                }
            }
            Some(Word::Ok) => self.reply_ok(cx, line, parts.argument),
            Some(Word::Err) => self.reply_err(cx, parts.argument),
            Some(_) => cx.weird("pop3_server_sending_client_commands", "", SOURCE),
        }
    }

    fn reply_ok(&mut self, cx: &mut Context<'_>, line: &[u8], msg: &[u8]) {
        if let Some(out_of_sequence) = self.out_of_sequence.take() {
            self.session = Session::Transaction;
            self.expecting = out_of_sequence;
            let detail = b"no auth required -> state changed to 'transaction'";
            cx.raise(|c| Pop3Unexpected { c, is_orig: false, msg: "OK", detail });
        }
        let is_login = match self.expecting {
            Expecting::Login | Expecting::Simple => self.session == Session::Authorization,
            Expecting::Auth(_) => true,
            _ => false,
        };
        let [user, password] = &self.login;
        if is_login && !user.is_empty() {
            cx.raise(|c| Pop3LoginSuccess { c, is_orig: false, user, password });
        }
        match self.expecting {
            Expecting::Greeting => self.session = Session::Authorization,
            Expecting::User => {
                self.session = Session::Authorization;
                cx.confirm(Tag::Pop3);
            }
            Expecting::Login | Expecting::Simple => self.session = Session::Transaction,
            Expecting::Auth(_) => {
                if std::mem::take(&mut self.authenticating) {
                    self.session = Session::Transaction;
                }
                self.in_reply = self.long_reply;
            }
            Expecting::Mail => {
                self.mail_line(cx, line);
                self.in_reply = self.long_reply;
            }
            Expecting::Capabilities => {
                cx.confirm(Tag::Pop3);
                self.in_reply = self.long_reply;
            }
            Expecting::Listing => self.in_reply = self.long_reply,
            Expecting::Tls => {
                cx.confirm(Tag::Pop3);
                self.tls = true;
                cx.raise(|c| Pop3Starttls { c });
                return;
            }
            Expecting::Quit => self.session = Session::Over,
        }
        cx.raise(|c| Pop3Reply { c, is_orig: false, cmd: "OK", msg });
        if !self.in_reply {
            self.end_command(cx);
        }
    }

    fn reply_err(&mut self, cx: &mut Context<'_>, msg: &[u8]) {
        self.long_reply = false;
        self.out_of_sequence = None;
        self.authenticating = false;
        match self.expecting {
            Expecting::Greeting | Expecting::Capabilities | Expecting::Tls => {}
            Expecting::User | Expecting::Login | Expecting::Auth(_) => {
                self.session = Session::Authorization;
                self.expecting = Expecting::Greeting;
                let [user, password] = &self.login;
                if !user.is_empty() {
                    cx.raise(|c| Pop3LoginFailure { c, is_orig: false, user, password });
                }
            }
            Expecting::Simple | Expecting::Listing | Expecting::Mail => {
                self.session = Session::Transaction;
            }
            Expecting::Quit => self.session = Session::Over,
        }
        cx.raise(|c| Pop3Reply { c, is_orig: false, cmd: "ERR", msg });
        self.end_command(cx);
    }

    fn mail_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        let mut mail = match self.mail.take() {
            Some(mail) => mail,
            None => {
                let (mut file, mut report) = (None, Report::default());
                let mut files = Files { cx: &mut *cx, file: &mut file, report: &mut report };
                Mail { mime: Mime::new(&mut files), file, report }
            }
        };
        let mut files = Files { cx, file: &mut mail.file, report: &mut mail.report };
        mail.mime.line(line, true, &mut files);
        self.mail = Some(mail);
    }

    fn end_mail(&mut self, cx: &mut Context<'_>) {
        if let Some(mut mail) = self.mail.take() {
            let mut files = Files { cx, file: &mut mail.file, report: &mut mail.report };
            mail.mime.finish(&mut files);
            mail.report.finish(cx);
            cx.raise_file_handles(Tag::Pop3);
        }
    }
}

/// Whether user name and password of logins are reported.
fn reports_logins(cx: &Context<'_>) -> bool {
    cx.wants::<Pop3LoginSuccess<'_>>()
        || cx.wants::<Pop3LoginFailure<'_>>()
        || cx.wants::<Pop3Unexpected<'_>>()
}

/// Registers a file for each entity that has a body.
struct Files<'a, 'b> {
    cx: &'a mut Context<'b>,
    file: &'a mut Option<FileId>,
    report: &'a mut Report,
}

impl Files<'_, '_> {
    /// Delivers content of the current entity, which is a file.
    fn file_data(&mut self, data: &[u8]) {
        let file = *self.file.get_or_insert_with(|| {
            // Zeek identifies POP3 files only by their start time.
            let time = self.cx.now.as_nanos().to_be_bytes();
            let name = [self.cx.conn.uid.bits().to_be_bytes(), time].concat();
            self.cx.env.files.set_next_fuid(self.cx.env.uids.named_file(&name));
            self.cx.file_start(FileStart {
                source: "POP3",
                from: Dir::Resp,
                ..FileStart::default()
            })
        });
        self.cx.file_data(file, data);
    }
}

impl Sink for Files<'_, '_> {
    fn begin(&mut self, _depth: usize) {
        self.report.begin(self.cx, &mut ());
    }

    fn header(&mut self, _depth: usize, field: Field<'_>) {
        self.report.header(self.cx, &mut (), field);
    }

    fn headers_end(&mut self, _depth: usize) {
        self.report.headers_end(self.cx);
    }

    fn data(&mut self, _depth: usize, data: &[u8]) {
        if self.report.data(self.cx, data) {
            self.file_data(data);
        }
    }

    fn line_end(&mut self) {
        self.report.line_end(self.cx);
        let withheld = self.report.take_withheld();
        if !withheld.is_empty() {
            self.file_data(&withheld);
        }
    }

    fn illegal(&mut self, fault: Fault) {
        self.report.illegal(self.cx, fault);
    }

    fn limits(&self) -> Limits {
        Limits::from_settings(self.cx.env)
    }

    fn end(&mut self, _depth: usize) {
        self.line_end();
        self.report.end(self.cx, &mut ());
        match self.file.take() {
            Some(file) => self.cx.file_end(file),
            None => self.cx.raise_file_handles(Tag::Pop3),
        }
    }

    fn limit(&mut self, name: &'static str, at: usize) {
        limit_reached(self.cx, name, &at.to_string(), SOURCE);
    }

    fn bad_base64(&mut self, complaint: &str) {
        self.cx.weird("base64_illegal_encoding", complaint, None);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.tls {
            return;
        }
        // Without the beginning of the stream, lines cannot be delimited reliably: only line ends
        // are checked.
        let is_read = !cx.conn.is_partial();
        let mut data = data;
        // The line buffer is moved out of `self` so that a line may borrow it while it is parsed.
        let mut lines = std::mem::replace(&mut self.lines[from.index()], Lines::new(1));
        while let Some(line) = lines.next(&mut data) {
            line.report(cx, &mut self.lone_cr);
            match from {
                _ if !is_read || cx.is_removed(Tag::Pop3) => {}
                Dir::Orig => self.client_line(cx, line.text),
                Dir::Resp => self.server_line(cx, line.text),
            }
            if self.tls {
                break;
            }
        }
        lines.report(cx, &mut self.lone_cr);
        if self.tls {
            lines.skip_lf(&mut data);
            cx.start_inner(Tag::Ssl, from, data);
        }
        self.lines[from.index()] = lines;
    }

    // As in Zeek, an incomplete line continues after a gap.

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.lines[from.index()].has_partial() {
            self.stream(cx, from, b"\n");
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.lines.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.end_mail(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    fn talk(lines: &[(Dir, &str)]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 110);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, text) in lines {
            a.stream(&mut h.cx(), *from, text.as_bytes());
        }
        a.finish(&mut h.cx());
        h
    }

    use Dir::Orig;
    use Dir::Resp;

    const LOGIN: [(Dir, &str); 5] = [
        (Resp, "+OK ready\r\n"),
        (Orig, "USER me\r\n"),
        (Resp, "+OK\r\n"),
        (Orig, "PASS x\r\n"),
        (Resp, "+OK\r\n"),
    ];

    #[test]
    fn a_good_reply_to_user_confirms() {
        assert!(!talk(&LOGIN[..2]).confirmed(Tag::Pop3));
        assert!(talk(&LOGIN[..3]).confirmed(Tag::Pop3));
        let capa = [(Resp, "+OK\r\n"), (Orig, "CAPA\r\n"), (Resp, "+OK\r\nTOP\r\n.\r\n")];
        let h = talk(&capa);
        assert!(h.confirmed(Tag::Pop3) && !h.violated(Tag::Pop3));
    }

    #[test]
    fn lines_without_a_beginning_have_weird_ends_nevertheless() {
        let mut h = Harness::new(Proto::Tcp, 110);
        h.conn.set_partial(true);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Resp, b"nonsense\rand more\r\n");
        assert_eq!(h.rows("weird")[0]["name"], "line_terminated_with_single_CR");
        assert!(h.rows("weird").len() == 1 && !h.violated(Tag::Pop3));
    }

    #[test]
    fn logins_and_further_lines_are_events() {
        let events = |prefix: &str, lines: &[(Dir, &str)]| {
            let mut h = Harness::new(Proto::Tcp, 110);
            h.listen(prefix);
            let mut a = Analyzer::new(&mut h.cx());
            for (from, text) in lines {
                a.stream(&mut h.cx(), *from, text.as_bytes());
            }
            h.events()
        };
        let args = r#""is_orig":false,"user":"me","password":"x""#;
        let login = |how: &str| vec![format!("pop3_login_{how} {args}")];
        assert_eq!(events("pop3_login", &LOGIN), login("success"));
        let mut reply_err = LOGIN.to_vec();
        reply_err[4].1 = "-ERR\r\n";
        assert_eq!(events("pop3_login", &reply_err), login("failure"));
        // me NUL me NUL x, then a user whose password cannot be read.
        let plain = [
            (Resp, "+OK\r\n"),
            (Orig, "AUTH PLAIN\r\n"),
            (Resp, "+ \r\n"),
            (Orig, "bWUAbWUAeA==\r\n"),
            (Resp, "+OK\r\n"),
        ];
        let found = events("pop3_login", &plain);
        assert!(!found.is_empty() && found.iter().all(|e| *e == login("success")[0]), "{found:?}");
        // Incomplete responses count as far as they go: me NUL u NUL, and then only me.
        let mut short = plain.to_vec();
        short[3].1 = "bWUAdQA=\r\nbWU=\r\n";
        let user = r#"pop3_login_success "is_orig":false,"user":"u","password":"""#;
        let found = events("pop3_login", &short);
        assert!(!found.is_empty() && found.iter().all(|event| event == user), "{found:?}");
        // In a login by lines, the first two lines count.
        let mut lines = plain.to_vec();
        lines[1].1 = "AUTH LOGIN\r\n";
        lines[3].1 = "bWU=\r\neA==\r\nbW9yZQ==\r\n";
        let found = events("pop3_login", &lines);
        assert!(!found.is_empty() && found.iter().all(|e| *e == login("success")[0]), "{found:?}");
        let capa = [(Resp, "+OK\r\n"), (Orig, "CAPA\r\n"), (Resp, "+OK\r\n TOP \r\n.\r\n")];
        assert_eq!(events("pop3_data", &capa), [r#"pop3_data "is_orig":false,"data":"TOP""#]);
        let early = [(Resp, "+OK\r\n"), (Orig, "PASS x\r\n"), (Orig, "STAT\r\n")];
        assert_eq!(
            events("pop3_unexpected", &early[..2]),
            [concat!(
                r#"pop3_unexpected "is_orig":true,"msg":"PASS","#,
                r#""detail":"pass must follow the command 'USER'""#
            )]
        );
    }

    #[test]
    fn mail_goes_to_the_files() {
        let mut lines = LOGIN.to_vec();
        lines.push((Orig, "RETR 1\r\nQUIT\r\n"));
        lines.push((Resp, "+OK 9 octets\r\nSubject: hi\r\n\r\nhello\r\nthere\r\n.\r\n+OK\r\n"));
        let h = talk(&lines);
        let files = h.rows("files");
        assert_eq!(files.len(), 1);
        assert_eq!((&*files[0]["source"], &*files[0]["seen_bytes"]), ("POP3", "14"));
        assert_eq!((&*files[0]["is_orig"], &*files[0]["depth"]), ("F", "0"));
        assert!(!h.violated(Tag::Pop3));
    }

    #[test]
    fn the_end_of_a_mail_asks_for_the_files_of_both_sides() {
        let mut h = Harness::new(Proto::Tcp, 110);
        h.listen("get_file_handle");
        let mut a = Analyzer::new(&mut h.cx());
        let mut lines = LOGIN.to_vec();
        lines.push((Orig, "RETR 1\r\n"));
        lines.push((Resp, "+OK 9 octets\r\nSubject: hi\r\n\r\nhello\r\n.\r\n"));
        for (from, text) in lines {
            a.stream(&mut h.cx(), from, text.as_bytes());
        }
        let handle = |is_orig: bool| format!(r#"get_file_handle "is_orig":{is_orig}"#);
        let last: Vec<String> = h.events().into_iter().rev().take(2).collect();
        assert_eq!(last, [handle(false), handle(true)]);
    }

    #[test]
    fn files_that_begin_at_one_time_have_one_name() {
        let mut lines = LOGIN.to_vec();
        lines.push((Orig, "RETR 1\r\nRETR 2\r\n"));
        lines.push((Resp, "+OK\r\nA: b\r\n\r\none\r\n.\r\n+OK\r\nA: b\r\n\r\ntwo\r\n.\r\n"));
        let files = talk(&lines).rows("files");
        assert_eq!(files.len(), 2);
        assert_eq!(files[0]["fuid"], files[1]["fuid"]);
    }

    #[test]
    fn lines_go_on_over_gaps() {
        let mut h = Harness::new(Proto::Tcp, 110);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Resp, b"+O");
        a.gap(&mut h.cx(), Resp, 10);
        a.stream(&mut h.cx(), Resp, b"K\r\n");
        a.stream(&mut h.cx(), Orig, b"USER me\r\n");
        a.stream(&mut h.cx(), Resp, b"+OK\r\n");
        assert!(h.confirmed(Tag::Pop3));
        assert!(h.rows("weird").is_empty());
    }

    #[test]
    fn tls_takes_over() {
        let lines =
            [(Resp, "+OK\r\n"), (Orig, "STLS\r\n"), (Resp, "+OK\r\n"), (Orig, "\x16\x03\x01")];
        let h = talk(&lines);
        assert!(h.confirmed(Tag::Pop3));
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Ssl);
        assert!(h.rows("weird").is_empty());
    }

    #[test]
    fn other_protocols_show() {
        let h = talk(&[(Orig, "*2\r\n"), (Resp, "+PONG\r\n")]);
        assert!(h.violated(Tag::Pop3));
        let weirds: Vec<_> = h.rows("weird").iter().map(|r| r["addl"].clone()).collect();
        assert_eq!(weirds, ["*2", "+PONG"]);
    }

    #[test]
    fn words_that_are_no_text_are_shown_byte_for_byte() {
        let mut h = Harness::new(Proto::Tcp, 110);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Orig, b"\x80\xff go\r\n");
        a.stream(&mut h.cx(), Resp, b"\xfe\r\n");
        let weirds: Vec<_> = h.rows("weird").iter().map(|r| r["addl"].clone()).collect();
        assert_eq!(weirds, ["\\x80\\xff", "\\xfe"]);
        let requests = h.requests.iter().filter_map(|r| match r {
            crate::context::Request::Violation { reason, .. } => Some(&reason[..]),
            _ => None,
        });
        assert!(requests.eq([&b"unknown server command (\xfe)"[..]]));
    }

    #[test]
    fn commands_in_line_are_bounded() {
        let h = talk(&[(Orig, &"STAT\r\n".repeat(crate::Pending::default().of(Tag::Pop3) + 1))]);
        assert_eq!(h.rows("weird")[0]["name"], "pop3_client_too_many_pending_commands");
        // Each unknown command counts once, when it becomes the current one.
        let mut lines = vec![(Orig, "X\r\n"); 11];
        for i in 0..11 {
            lines.insert(2 * i + 1, (Resp, "+OK\r\n"));
        }
        assert!(talk(&lines).violated(Tag::Pop3));
        assert!(!talk(&lines[2..]).violated(Tag::Pop3));
    }

    #[test]
    fn answers_to_challenges() {
        let begin = [(Resp, "+OK\r\n"), (Orig, "AUTH PLAIN\r\n"), (Resp, "+ \r\n")];
        let weird = |challenge_response| {
            let mut lines = begin.to_vec();
            lines.push((Orig, challenge_response));
            let rows = talk(&lines).rows("weird");
            rows.iter().map(|r| r["name"].clone()).collect::<Vec<_>>()
        };
        assert!(weird("AG1lAHB3\r\n").is_empty());
        assert_eq!(weird("bWU=\r\n"), ["pop3_malformed_auth_plain"]);
        assert_eq!(weird("!\r\n"), ["base64_illegal_encoding", "pop3_bad_base64_encoding"]);
    }

    proptest! {
        #[test]
        fn any_bytes_do(chunks in prop::collection::vec(
            (any::<bool>(), "([+-]?(OK|ERR|RETR|CAPA|AUTH PLAIN|STLS|[ -~]{0,8})\r?\n?){0,4}"), 0..12))
        {
            let mut h = Harness::new(Proto::Tcp, 110);
            let mut a = Analyzer::new(&mut h.cx());
            for (orig, text) in &chunks {
                a.stream(&mut h.cx(), if *orig { Orig } else { Resp }, text.as_bytes());
            }
            prop_assert!(a.pending.len() <= crate::Pending::default().of(Tag::Pop3));
            a.finish(&mut h.cx());
            prop_assert!(a.mail.is_none() && h.env.files.is_empty());
        }
    }
}
