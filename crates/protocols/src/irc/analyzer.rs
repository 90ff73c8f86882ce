use gannet_base::Dir;

use super::events::IrcDccMessage;
use super::events::IrcJoinMessage;
use super::events::IrcNickMessage;
use super::events::IrcPrivmsgMessage;
use super::events::IrcStarttls;
use super::events::IrcUserMessage;
use super::events::Joins;
use super::message::Dcc;
use super::message::DccProblem;
use super::message::Message;
use super::message::Problem;
use super::message::Verb;
use super::message::is_client_command;
use super::message::skip_spaces;
use super::message::until_nul;
use super::message::words;
use super::raise;
use super::raise::MessageResult;
use super::raise::nickname;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Lines;

/// Maximum length of a line in bytes; a longer line is split.
const MAX_LINE: usize = 999;
/// Number of bytes that are lost where a line is split, as in Zeek.
const SPLIT_LOSS: usize = 2;
/// Maximum length of a command, in bytes.
const MAX_COMMAND: usize = 20;
/// Number of lines with an invalid command that are tolerated.
const MAX_INVALID: u32 = 20;
const SOURCE: Option<&str> = Some("IRC");

/// The analyzer of a connection to a server, or between servers.
pub struct Analyzer {
    lines: [Lines; 2],
    lone_cr: bool,
    confirmed: bool,
    invalid: u32,
    servers: [Server; 2],
    content: Content,
    /// The TLS analyzer was started.
    tls_started: bool,
    rows: Rows,
}

/// Registration of a side as a server.
#[derive(Clone, Copy, Default)]
struct Server {
    registered: bool,
    /// It announced support of compression.
    zip: bool,
}

/// What the connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Lines,
    /// The connection has switched to TLS.
    Tls,
    /// The data between two servers is compressed, and not analyzed.
    Zip,
}

fn lines() -> Lines {
    let mut lines = Lines::new(MAX_LINE);
    lines.set_loss(SPLIT_LOSS);
    lines
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::initial()
    }

    fn initial() -> Self {
        Self {
            lines: [lines(), lines()],
            lone_cr: false,
            confirmed: false,
            invalid: 0,
            servers: [Server::default(); 2],
            content: Content::Lines,
            tls_started: false,
            rows: Rows::default(),
        }
    }

    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        let message = match Message::parse(line) {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(problem) => return self.problem(cx, problem),
        };
        match message.verb {
            Verb::Reply(670) => {
                cx.raise(|c| IrcStarttls { c });
                self.content = Content::Tls;
            }
            // As in Zeek, a reply 000 counts as a command without a name.
            Verb::Reply(0) => self.command(cx, from, message, b""),
            Verb::Reply(code) => {
                if let Err((weird, addl)) = raise::reply(cx, from, message, code) {
                    cx.weird(weird, &addl, SOURCE);
                }
            }
            Verb::Command(word) => self.command(cx, from, message, &word.to_ascii_uppercase()),
        }
    }

    fn problem(&mut self, cx: &mut Context<'_>, problem: Problem) {
        let (weird, violation) = match problem {
            Problem::TooLong => ("irc_line_size_exceeded", None),
            Problem::TooShort => ("irc_line_too_short", None),
            Problem::OnlyPrefix => ("irc_invalid_line", None),
            Problem::Empty => ("irc_invalid_line", Some("line too short")),
            Problem::BadNumber => ("irc_invalid_reply_number", Some("invalid reply number")),
        };
        if self.confirmed {
            cx.weird(weird, "", SOURCE);
        }
        if let Some(reason) = violation {
            cx.violation(Tag::Irc, reason, b"");
        }
    }

    fn command(&mut self, cx: &mut Context<'_>, from: Dir, message: Message<'_>, word: &[u8]) {
        if from == Dir::Orig && !self.confirmed && is_client_command(word) {
            self.confirmed = true;
            cx.confirm(Tag::Irc);
        }
        if word == b"STARTTLS" {
            return;
        }
        self.register_server(from, message, word);
        if word.len() > MAX_COMMAND {
            cx.weird("irc_invalid_command", "", SOURCE);
            self.invalid += 1;
            if self.invalid > MAX_INVALID {
                cx.weird("irc_too_many_invalid", "", SOURCE);
                cx.violation(Tag::Irc, "too many long lines", b"");
            }
            return;
        }
        let result = match word {
            b"PRIVMSG" => self.private_message(cx, from, message),
            b"USER" => {
                self.user(cx, from, message.params);
                Ok(())
            }
            b"NICK" => {
                self.nick(cx, from, message);
                Ok(())
            }
            b"JOIN" => self.join(cx, from, message),
            b"NJOIN" => self.server_join(cx, from, message.params),
            _ => raise::command(cx, from, message, word),
        };
        if let Err((weird, addl)) = result {
            cx.weird(weird, &addl, SOURCE);
            return;
        }
        if self.servers.iter().all(|s| s.registered && s.zip) {
            self.content = Content::Zip;
        }
    }

    /// Tracks the registration of servers with PASS and SERVER.
    fn register_server(&mut self, from: Dir, message: Message<'_>, word: &[u8]) {
        let server = &mut self.servers[from.index()];
        if server.registered {
            return;
        }
        if word == b"PASS" {
            let flags = words(message.params, b' ').nth(3);
            server.zip = flags.is_some_and(|f| f.contains(&b'Z') || f.contains(&b'z'));
        }
        server.registered = word == b"SERVER" && message.prefix.is_empty();
    }

    fn nick(&mut self, cx: &mut Context<'_>, from: Dir, message: Message<'_>) {
        let newnick = message.params.strip_prefix(b":").unwrap_or(message.params);
        let (is_orig, who) = (from.is_orig(), message.prefix);
        cx.report(&mut self.rows, |c| IrcNickMessage { c, is_orig, who, newnick });
    }

    fn user(&mut self, cx: &mut Context<'_>, from: Dir, params: &[u8]) {
        let mut parts = words(params, b' ');
        let mut next = || until_nul(parts.next().unwrap_or_default());
        let (user, host, server) = (next(), next(), next());
        // As in Zeek, the words of the real name are joined with a space after each word from
        // the second on.
        let mut name = Vec::new();
        for (i, word) in parts.enumerate() {
            name.extend_from_slice(word);
            if i > 0 {
                name.push(b' ');
            }
        }
        let name = until_nul(&name);
        let real_name = name.strip_prefix(b":").unwrap_or(name);
        let is_orig = from.is_orig();
        let rows = &mut self.rows;
        cx.report(rows, |c| IrcUserMessage { c, is_orig, user, host, server, real_name });
    }

    fn join(&mut self, cx: &mut Context<'_>, from: Dir, message: Message<'_>) -> MessageResult {
        let params = message.params.strip_prefix(b":").unwrap_or(message.params);
        let mut parts = words(params, b' ');
        let Some(channels) = parts.next() else {
            return Err(("irc_invalid_join_line", String::new()));
        };
        let keys: Vec<_> = words(parts.next().unwrap_or_default(), b',').collect();
        let mut list: Vec<(&[u8], &[u8])> = Vec::new();
        for (i, channel) in words(channels, b',').enumerate() {
            let entry = (channel, keys.get(i).copied().unwrap_or_default());
            if !list.contains(&entry) {
                list.push(entry);
            }
        }
        let (is_orig, nick) = (from.is_orig(), nickname(message.prefix));
        let info_list = Joins::Client { nick, channels: &list };
        cx.report(&mut self.rows, |c| IrcJoinMessage { c, is_orig, info_list });
        Ok(())
    }

    /// Processes NJOIN, with which a server sends the members of a channel to other servers.
    fn server_join(&mut self, cx: &mut Context<'_>, from: Dir, params: &[u8]) -> MessageResult {
        let parts: Vec<_> = words(params, b' ').take(3).collect();
        let [channel, users] = parts[..] else {
            return Err(("irc_invalid_njoin_line", String::new()));
        };
        let users = users.strip_prefix(b":").unwrap_or(users);
        let mut seen: Vec<&[u8]> = Vec::new();
        for user in words(users, b',') {
            if !seen.contains(&user) {
                seen.push(user);
            }
        }
        let is_orig = from.is_orig();
        let info_list = Joins::Server { channel, users: &seen };
        cx.report(&mut self.rows, |c| IrcJoinMessage { c, is_orig, info_list });
        Ok(())
    }

    fn private_message(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        message: Message<'_>,
    ) -> MessageResult {
        let params = message.params;
        let Some(space) = memchr::memchr(b' ', params) else {
            return Err(("irc_invalid_privmsg_message_format", String::new()));
        };
        let text = skip_spaces(&params[space + 1..]);
        let text = text.strip_prefix(b":").unwrap_or(text);
        let text = text.strip_prefix(&[1]).unwrap_or(text);
        match Dcc::parse(text) {
            Ok(Some(offer)) => {
                cx.report(&mut self.rows, |c| IrcDccMessage {
                    c,
                    is_orig: from.is_orig(),
                    prefix: message.prefix,
                    target: &params[..space],
                    dcc_type: offer.kind,
                    argument: offer.argument,
                    address: offer.host,
                    dest_port: offer.port,
                    size: offer.size,
                });
            }
            Ok(None) => {
                let (is_orig, source, target) = (from.is_orig(), message.prefix, &params[..space]);
                cx.raise(|c| IrcPrivmsgMessage { c, is_orig, source, target, message: text });
            }
            Err(DccProblem::Format) => {
                return Err(("irc_invalid_dcc_message_format", String::new()));
            }
            Err(DccProblem::Host) => return Err(("irc_invalid_dcc_host", String::new())),
            Err(DccProblem::Port(port)) => {
                return Err(("irc_invalid_dcc_port", port.to_string()));
            }
        }
        Ok(())
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let i = from.index();
        let mut data = data;
        // The splitter is moved out so that lines can borrow from it while they are processed.
        let mut lines = std::mem::replace(&mut self.lines[i], Lines::new(1));
        while self.content == Content::Lines && !data.is_empty() {
            let Some(line) = lines.next(&mut data) else { break };
            line.report(cx, &mut self.lone_cr);
            self.line(cx, from, line.text);
        }
        lines.report(cx, &mut self.lone_cr);
        if self.content == Content::Tls && !self.tls_started {
            self.tls_started = true;
            lines.skip_lf(&mut data);
            cx.start_inner(Tag::Ssl, from, data);
        }
        self.lines[i] = lines;
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.lines[from.index()].has_partial() {
            self.stream(cx, from, b"\n");
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.lines.swap(0, 1);
        self.servers.swap(0, 1);
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        let (rows, lone_cr) = (std::mem::take(&mut self.rows), self.lone_cr);
        *self = Self { rows, lone_cr, ..Self::initial() };
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
    }
}

#[cfg(test)]
mod tests;
