use gannet_base::Dir;

use super::command::Command;
use super::command::split;
use super::command::tidy;
use super::queue::Queue;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::Tag;
use crate::support::Lines;
use crate::support::mime::base64::Base64;

/// Longest line.
const MAX_LINE: usize = 64 << 10;
/// A client's commands that are none, before it is no POP3.
const MAX_UNKNOWN: u32 = 10;

/// How far the session is (RFC 1939 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    Authorization,
    Transaction,
    Over,
}

/// The command whose reply is due, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Greeting,
    Command(Command),
    AuthLogin,
    AuthPlain,
}

/// The analyzer of one connection.
pub struct Analyzer {
    lines: [Lines; 2],
    queue: Queue,
    phase: Phase,
    waiting: Waiting,
    /// A command that is not allowed yet: what to take it for, should it be answered.
    guess: Option<Waiting>,
    /// The client's lines are answers to the server's questions.
    authenticating: bool,
    /// The reply due has several lines.
    long_reply: bool,
    in_long_reply: bool,
    unknown: u32,
    done: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            lines: [Lines::new(MAX_LINE), Lines::new(MAX_LINE)],
            queue: Queue::default(),
            phase: Phase::Start,
            waiting: Waiting::Greeting,
            guess: None,
            authenticating: false,
            long_reply: false,
            in_long_reply: false,
            unknown: 0,
            done: false,
        }
    }

    fn request(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        if self.authenticating {
            self.credentials(cx, line);
            return;
        }
        let end = memchr::memchr(0, line).unwrap_or(line.len());
        if self.queue.push(&line[..end]) {
            weird(cx, "pop3_client_too_many_pending_commands", b"");
        }
        if self.queue.len() == 1 {
            self.command(cx);
        }
    }

    /// A line that answers the server's question for credentials.
    fn credentials(&self, cx: &mut Context<'_>, line: &[u8]) {
        let mut decoded = Vec::new();
        let mut base64 = Base64::default();
        base64.decode(line, &mut decoded);
        let bad = base64.failed();
        base64.finish(&mut decoded);
        if bad {
            weird(cx, "pop3_bad_base64_encoding", b"");
        } else if self.waiting == Waiting::AuthPlain {
            // Identity, user and password, with zeros between.
            if decoded.iter().filter(|b| **b == 0).count() < 2
                || decoded.splitn(3, |b| *b == 0).nth(2).is_none_or(<[u8]>::is_empty)
            {
                weird(cx, "pop3_malformed_auth_plain", b"");
            }
        }
    }

    /// The command whose turn it is.
    fn command(&mut self, cx: &mut Context<'_>) {
        let Some(line) = self.queue.first().map(tidy) else { return };
        let (word, arg) = split(&line);
        let Some(command) = Command::parse(word) else {
            if !self.authenticating {
                weird(cx, "pop3_client_command_unknown", shown(word));
                self.unknown += 1;
                if self.unknown > MAX_UNKNOWN {
                    cx.violation(Tag::Pop3, "too many unknown client commands", &[]);
                }
            }
            return;
        };
        use Command as C;
        match command {
            C::Ok | C::Err => weird(cx, "pop3_client_sending_server_commands", b""),
            C::User | C::Apop if self.phase == Phase::Authorization => {
                self.waiting = Waiting::Command(command);
            }
            C::Pass
                if self.phase == Phase::Authorization
                    && self.waiting == Waiting::Command(C::User) =>
            {
                self.waiting = Waiting::Command(command);
            }
            C::Auth if self.phase == Phase::Authorization => self.auth(arg),
            C::User | C::Pass | C::Apop | C::Auth => {}
            C::Capa => {
                self.waiting = Waiting::Command(command);
                self.long_reply = true;
            }
            C::Stls => self.waiting = Waiting::Command(command),
            C::Quit => {
                if self.phase == Phase::Over {
                    self.guess = Some(Waiting::Command(C::Last));
                } else {
                    self.waiting = Waiting::Command(command);
                }
            }
            C::Stat if self.phase != Phase::Transaction => {}
            _ => {
                self.long_reply |= match command {
                    C::Retr | C::Top => true,
                    C::List | C::Uidl => arg.is_empty(),
                    _ => false,
                };
                let waiting = match command {
                    C::Xsender if self.phase == Phase::Transaction => Waiting::Command(C::Last),
                    c => Waiting::Command(c),
                };
                if self.phase == Phase::Transaction {
                    self.waiting = waiting;
                } else {
                    self.guess = Some(waiting);
                }
            }
        }
    }

    fn auth(&mut self, arg: &[u8]) {
        if arg.is_empty() {
            // The client asks for a list of methods.
            self.waiting = Waiting::Command(Command::Auth);
            self.long_reply = true;
            return;
        }
        let has = |word: &[u8]| memchr::memmem::find(arg, word).is_some();
        self.waiting = if has(b"LOGIN") {
            Waiting::AuthLogin
        } else if has(b"PLAIN") {
            Waiting::AuthPlain
        } else {
            Waiting::Command(Command::Auth)
        };
        self.authenticating = true;
    }

    fn reply(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if self.in_long_reply {
            if line == b"." {
                self.long_reply = false;
                self.in_long_reply = false;
                self.next(cx);
            }
            return;
        }
        let tidied = tidy(line);
        let (word, _) = split(&tidied);
        match Command::parse(word) {
            Some(Command::Ok) => self.ok(cx),
            Some(Command::Err) => self.err(cx),
            Some(_) => weird(cx, "pop3_server_sending_client_commands", b""),
            None if self.authenticating => {}
            None => {
                let word = shown(word);
                let reason = format!("unknown server command ({})", String::from_utf8_lossy(word));
                cx.violation(Tag::Pop3, &reason, line);
                weird(cx, "pop3_server_command_unknown", word);
            }
        }
    }

    fn ok(&mut self, cx: &mut Context<'_>) {
        use Command as C;
        if let Some(guess) = self.guess.take() {
            self.phase = Phase::Transaction;
            self.waiting = guess;
        }
        match self.waiting {
            Waiting::Greeting => self.phase = Phase::Authorization,
            Waiting::Command(C::User) => {
                self.phase = Phase::Authorization;
                cx.confirm(Tag::Pop3);
            }
            Waiting::Command(C::Auth) | Waiting::AuthLogin | Waiting::AuthPlain => {
                self.in_long_reply |= self.long_reply;
                if self.authenticating {
                    self.phase = Phase::Transaction;
                }
                self.authenticating = false;
            }
            Waiting::Command(C::Capa) => {
                cx.confirm(Tag::Pop3);
                self.in_long_reply |= self.long_reply;
            }
            Waiting::Command(C::Top | C::Retr | C::Uidl | C::List) => {
                self.in_long_reply |= self.long_reply;
            }
            Waiting::Command(C::Stls) => {
                cx.confirm(Tag::Pop3);
                self.done = true;
                cx.start(Tag::Ssl, Replay::default());
                return;
            }
            Waiting::Command(C::Quit) => self.phase = Phase::Over,
            Waiting::Command(_) => self.phase = Phase::Transaction,
        }
        if !self.in_long_reply {
            self.next(cx);
        }
    }

    fn err(&mut self, cx: &mut Context<'_>) {
        use Command as C;
        self.in_long_reply = false;
        self.long_reply = false;
        self.guess = None;
        self.authenticating = false;
        match self.waiting {
            Waiting::Command(C::User | C::Pass | C::Apop | C::Auth)
            | Waiting::AuthLogin
            | Waiting::AuthPlain => {
                self.phase = Phase::Authorization;
                self.waiting = Waiting::Greeting;
            }
            Waiting::Command(C::Quit) => self.phase = Phase::Over,
            Waiting::Greeting | Waiting::Command(C::Capa | C::Stls) => {}
            Waiting::Command(_) => self.phase = Phase::Transaction,
        }
        self.next(cx);
    }

    /// A command was answered: the next one's turn.
    fn next(&mut self, cx: &mut Context<'_>) {
        if !self.queue.is_empty() {
            self.queue.pop();
            self.command(cx);
        }
    }
}

fn shown(word: &[u8]) -> &[u8] {
    if word.is_empty() { b"???" } else { word }
}

fn weird(cx: &mut Context<'_>, name: &'static str, addl: &[u8]) {
    cx.weird(name, &String::from_utf8_lossy(addl), Some("POP3"));
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.done || cx.conn.partial {
            return;
        }
        let mut lines = std::mem::replace(&mut self.lines[from.index()], Lines::new(1));
        let mut rest = data;
        while !self.done
            && let Some(line) = lines.next(&mut rest)
        {
            match from {
                Dir::Orig => self.request(cx, line.text),
                Dir::Resp => self.reply(cx, line.text),
            }
        }
        self.lines[from.index()] = lines;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 110);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in chunks {
            a.stream(&mut h.cx(), *dir, data);
        }
        h
    }

    #[test]
    fn a_session() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        let h = run(&[
            (r, b"+OK ready\r\n"),
            (o, b"USER me\r\n"),
            (r, b"+OK\r\n"),
            (o, b"PASS x\r\nRETR 1\r\n"),
            (r, b"+OK\r\n+OK 10 octets\r\nFrom: me\r\nQUIT\r\n.\r\n"),
            (o, b"QUIT\r\n"),
            (r, b"+OK bye\r\n"),
        ]);
        assert!(h.confirmed(Tag::Pop3));
        assert!(!h.violated(Tag::Pop3));
        assert!(h.rows("weird").is_empty());
    }

    #[test]
    fn tls() {
        let h = run(&[
            (Dir::Resp, b"+OK\r\n"),
            (Dir::Orig, b"STLS\r\n"),
            (Dir::Resp, b"+OK begin\r\n"),
            (Dir::Orig, b"\x16\x03\x01"),
        ]);
        assert!(h.confirmed(Tag::Pop3));
        assert_eq!(h.starts[0].0, Tag::Ssl);
    }

    #[test]
    fn nonsense() {
        let h = run(&[(Dir::Resp, b"+ what\r\n"), (Dir::Orig, b"HELO you\r\n")]);
        assert!(h.violated(Tag::Pop3));
        let weirds = h.rows("weird");
        assert_eq!(weirds[0]["name"], "pop3_server_command_unknown");
        assert_eq!(weirds[1]["addl"], "HELO");
    }
}
