use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;

use gannet_base::Dir;
use gannet_base::Time;

use super::command::Command;
use super::command::Commands;
use super::command::Malformed;
use super::command::key_at;
use super::events;
use super::rows::Rows;
use super::value::Value;
use super::value::Values;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::limit_reached;

/// Maximum number of commands that wait for a reply: beyond it, all of them are dropped.
const MAX_PENDING: usize = 10_000;

/// Interval of commands that get no reply: from number `begin` up to, and excluding, `end`, if it
/// has ended.
#[derive(Clone, Copy, Debug)]
struct UnansweredCommands {
    begin: u64,
    end: Option<u64>,
}

/// A command, its reply, or both.
#[derive(Debug)]
struct Exchange {
    ts: Time,
    command: Option<Command>,
    reply: Option<Value>,
}

impl Exchange {
    fn new(ts: Time) -> Self {
        Self { ts, command: None, reply: None }
    }

    /// Raises the event of an exchange that gets neither a command nor a reply any more.
    fn report(&self, cx: &mut Context<'_>) {
        let Self { ts, command, reply } = self;
        cx.report(&mut Rows, |c| events::ExchangeDone {
            c,
            ts: *ts,
            name: command.as_ref().map(Command::name),
            key: command.as_ref().and_then(Command::key),
            value: command.as_ref().and_then(Command::value),
            success: reply.as_ref().map(|r| !r.is_error()),
            reply: reply.as_ref().map(|r| &*r.text),
        });
    }
}

/// Matches replies to commands. Both are numbered from 1.
#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<u64, Exchange>,
    commands: u64,
    replies: u64,
    unanswered_intervals: VecDeque<UnansweredCommands>,
    /// Commands that never get a reply.
    unanswered: BTreeSet<u64>,
    /// The server's data is messages of subscriptions, not replies.
    subscribed: bool,
    /// The protocol version is 3, in which pushed data has a separate type.
    version_3: bool,
}

impl State {
    fn command(&mut self, cx: &mut Context<'_>, command: Command) {
        let name = command.lower();
        let name = name.as_bytes();
        if name == b"hello" && command.words.get(1).is_some_and(|v| v == b"3") {
            self.version_3 = true;
        }
        if self.pending.len() > MAX_PENDING {
            let addl = format!("{} > {MAX_PENDING}", self.pending.len());
            limit_reached(cx, "Redis_excessive_pipelining", &addl, Some("REDIS"));
            *self = Self::default();
            return;
        }
        self.commands += 1;
        if is_known(name) && !self.version_3 {
            self.subscribed = matches!(name, b"psubscribe" | b"ssubscribe" | b"subscribe");
        }
        let unanswered = matches!(
            name,
            b"psubscribe"
                | b"punsubscribe"
                | b"ssubscribe"
                | b"subscribe"
                | b"sunsubscribe"
                | b"unsubscribe"
        );
        if unanswered || self.subscribed && is_known(name) {
            self.unanswered.insert(self.commands);
        }
        if name == b"client" && command.count == 3 {
            self.client_reply(&command.words[2].to_ascii_lowercase());
        }
        let exchange = self.pending.entry(self.commands).or_insert_with(|| Exchange::new(cx.now));
        exchange.command = Some(command);
    }

    /// Handles `CLIENT REPLY`.
    fn client_reply(&mut self, mode: &[u8]) {
        let is_open = self.unanswered_intervals.back().is_some_and(|s| s.end.is_none());
        let begin = self.commands;
        match (mode, is_open) {
            (b"on", true) => {
                if let Some(last) = self.unanswered_intervals.back_mut() {
                    last.end = Some(begin);
                }
            }
            (b"off", false) => {
                self.unanswered_intervals.push_back(UnansweredCommands { begin, end: None });
            }
            // This command and the next one.
            (b"skip", false) => {
                self.unanswered_intervals
                    .push_back(UnansweredCommands { begin, end: Some(begin + 2) });
            }
            _ => {}
        }
    }

    fn reply(&mut self, cx: &mut Context<'_>, value: Value) {
        if value.is_push() {
            return;
        }
        let is_error = value.is_error();
        if !is_error {
            if value.version_3 {
                self.version_3 = true;
                self.subscribed = false;
            }
            if self.subscribed {
                return;
            }
        }
        let before = self.replies;
        self.replies = self.next_reply();
        let exchange = self.pending.entry(self.replies).or_insert_with(|| Exchange::new(cx.now));
        exchange.reply = Some(value);
        // Exchanges before this one got no reply and will get none. A reply without a command waits
        // for the command with its number, as in Zeek, as long as not too many wait.
        let due = before.max(1)..=self.replies;
        let crowded = self.pending.len() > MAX_PENDING;
        for (_, exchange) in
            self.pending.extract_if(due, |_, exchange| crowded || exchange.command.is_some())
        {
            exchange.report(cx);
        }
        if !is_error && self.commands == self.replies {
            self.unanswered.clear();
        }
    }

    /// The number of the command that the next reply is for.
    fn next_reply(&mut self) -> u64 {
        let next = self.replies + 1;
        let mut result = next;
        // Packet time only advances: earlier intervals are no longer needed, but the last one may
        // be open.
        while self.unanswered_intervals.len() > 1
            && self.unanswered_intervals[0].end.is_some_and(|e| e <= next)
        {
            self.unanswered_intervals.pop_front();
        }
        for interval in self.unanswered_intervals.iter().take_while(|s| s.begin <= next) {
            if let Some(end) = interval.end.filter(|e| next < *e) {
                result = end;
            }
        }
        self.unanswered = self.unanswered.split_off(&result);
        while self.unanswered.remove(&result) {
            result += 1;
        }
        result
    }
}

/// Whether this is a Redis command: in version 2 of the protocol, any of them ends a subscription.
fn is_known(name: &[u8]) -> bool {
    const OTHERS: &[&[u8]] = &[
        b"auth",
        b"client",
        b"hello",
        b"psubscribe",
        b"punsubscribe",
        b"quit",
        b"reset",
        b"ssubscribe",
        b"subscribe",
        b"sunsubscribe",
        b"unsubscribe",
    ];
    OTHERS.contains(&name) || key_at(name).is_some()
}

/// The analyzer of one connection.
#[derive(Default)]
pub struct Analyzer {
    commands: Commands,
    values: Values,
    state: State,
    has_commands: bool,
    /// Whether the analyzer searches for the end of a server's line, after which a reply may begin;
    /// set when a first byte is available.
    resync: Option<bool>,
    /// Data was lost before: as in Zeek, the end of the connection reports that later data may have
    /// been misparsed.
    was_out_of_sync: bool,
    /// Later data cannot be parsed.
    is_opaque: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        let mut new = Self::default();
        new.commands.keep_all = cx.env.logs.events.any();
        new
    }

    fn chunk(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        let mut rest = data;
        if from == Dir::Orig {
            self.has_commands = true;
            while let Some(command) = self.commands.next(&mut rest)? {
                if cx.env.logs.events.any() {
                    raise_command(cx, &command);
                }
                self.state.command(cx, command);
            }
            return Ok(());
        }
        if !self.has_commands {
            return Err("server speaks first");
        }
        loop {
            if self.resync.is_some() && !self.find_line(&mut rest) {
                return Ok(());
            }
            let begin = rest;
            let goes_on = self.values.is_partial();
            match self.values.next(&mut rest) {
                Ok(None) => return Ok(()),
                Ok(Some(value)) => {
                    cx.confirm(Tag::Redis);
                    if cx.env.logs.events.any() {
                        raise_reply(cx, &value);
                    }
                    self.state.reply(cx, value);
                }
                Err(_) => {
                    self.start_resync();
                    // The search starts at the beginning of the value, if that is in this chunk.
                    if !goes_on {
                        rest = begin;
                    }
                }
            }
        }
    }

    /// Searches for the next beginning of a line, and removes the data before it.
    fn find_line(&mut self, data: &mut &[u8]) -> bool {
        while let Some((&first, rest)) = data.split_first() {
            *data = rest;
            if self.resync == Some(true) && first == b'\n' {
                self.resync = None;
                return true;
            }
            self.resync = Some(first == b'\r');
        }
        false
    }

    fn start_resync(&mut self) {
        self.values = Values::default();
        self.resync = Some(false);
        self.was_out_of_sync = true;
    }

    fn report_violation(&mut self, cx: &mut Context<'_>, reason: Malformed, data: &[u8]) {
        self.is_opaque = true;
        self.commands = Commands::default();
        self.values = Values::default();
        // After a violation, pending commands are unreliable.
        self.state = State::default();
        cx.violation(Tag::Redis, reason, data);
    }
}

#[cold]
fn raise_command(cx: &mut Context<'_>, command: &Command) {
    let word = |at: usize| command.words.get(at).map(Vec::as_slice);
    match command.lower().as_bytes() {
        b"set" => {
            if let Some(set) = events::set_record(command) {
                cx.raise(|c| events::Set { c, command: set });
            }
        }
        b"get" => {
            if let Some(key) = word(1) {
                cx.raise(|c| events::Get { c, key });
            }
        }
        b"auth" => {
            let both = match (word(1), word(2)) {
                (username, Some(password)) => Some((username, password)),
                (password, None) => password.map(|password| (None, password)),
            };
            if let Some((username, password)) = both {
                let command = events::AuthCommand { username, password };
                cx.raise(|c| events::Auth { c, command });
            }
        }
        b"hello" => {
            let command = events::HelloCommand { version: word(1) };
            cx.raise(|c| events::Hello { c, command });
        }
        _ => {}
    }
    cx.raise(|c| events::CommandSeen { c, cmd: events::command_record(command) });
}

#[cold]
fn raise_reply(cx: &mut Context<'_>, value: &Value) {
    let version = if value.version_3 { 3 } else { 2 };
    let attributes = value.attributes.as_ref().map(|text| [b"{", &text[..], b"}"].concat());
    let attributes = attributes.as_deref();
    let data = events::ReplyData { attributes, value: &value.text, version };
    match () {
        () if value.is_error() => cx.raise(|c| events::Error { c, data }),
        () if value.is_push() => cx.raise(|c| events::ServerPush { c, data }),
        () => cx.raise(|c| events::Reply { c, data }),
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if !self.is_opaque
            && !data.is_empty()
            && let Err(reason) = self.chunk(cx, from, data)
        {
            self.report_violation(cx, reason, data);
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        let wrong = match from {
            Dir::Orig => self.commands.is_partial(),
            Dir::Resp => self.was_out_of_sync || self.values.is_partial(),
        };
        if wrong && !self.is_opaque {
            self.report_violation(cx, "stream ends within a value, or parts of it were lost", &[]);
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, _len: u64) {
        match from {
            // A gap is not a violation.
            Dir::Orig => self.is_opaque = true,
            Dir::Resp if self.is_opaque => {}
            Dir::Resp if !self.has_commands => {
                self.report_violation(cx, "server speaks first", &[]);
            }
            Dir::Resp => self.start_resync(),
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        let State { pending, replies, .. } = std::mem::take(&mut self.state);
        if replies > 0 {
            for exchange in pending.values() {
                exchange.report(cx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    const O: Dir = Dir::Orig;
    const R: Dir = Dir::Resp;

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 6379);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in chunks {
            a.stream(&mut h.cx(), *from, data);
        }
        a.finish(&mut h.cx());
        h
    }

    fn logged(h: &Harness) -> Vec<String> {
        let columns = ["cmd.name", "cmd.key", "cmd.value", "success", "reply.value"];
        h.rows("redis").iter().map(|r| columns.map(|c| &*r[c]).join(" ")).collect()
    }

    #[test]
    fn commands_and_answers() {
        let h = run(&[
            (O, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"),
            (R, b"+OK\r\n"),
            (O, b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\nNOSUCH\r\n"),
            (R, b"+PONG\r\n$1\r\nv\r\n-ERR unknown\r\n"),
        ]);
        assert!(h.confirmed(Tag::Redis));
        assert!(!h.violated(Tag::Redis));
        assert_eq!(
            logged(&h),
            ["SET k v T OK", "PING - - T PONG", "GET k - T v", "NOSUCH - - F ERR unknown"]
        );
    }

    #[test]
    fn requests_without_an_answer_are_reported_at_the_end() {
        let h = run(&[(O, b"PING\r\n"), (R, b"+PONG\r\n"), (O, b"GET a\r\nGET b\r\n")]);
        assert_eq!(logged(&h), ["PING - - T PONG", "GET a - - -", "GET b - - -"]);
        assert!(logged(&run(&[(O, b"PING\r\n")])).is_empty(), "no server, no Redis");
    }

    #[test]
    fn answers_that_are_turned_off() {
        let h = run(&[
            (O, b"CLIENT REPLY OFF\r\nSET a 1\r\nCLIENT REPLY ON\r\nGET a\r\n"),
            (R, b"+OK\r\n$1\r\n1\r\n"),
        ]);
        assert_eq!(logged(&h), ["CLIENT - - - -", "SET a 1 - -", "CLIENT - - T OK", "GET a - T 1"]);
        let h = run(&[
            (O, b"PING\r\nCLIENT REPLY SKIP\r\nSET a 1\r\nGET a\r\n"),
            (R, b"+PONG\r\n$1\r\n1\r\n"),
        ]);
        assert_eq!(logged(&h), ["PING - - T PONG", "CLIENT - - - -", "SET a 1 - -", "GET a - T 1"]);
    }

    #[test]
    fn subscribers_receive_messages() {
        let note = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n";
        let h = run(&[
            (O, b"PING\r\n"),
            (R, b"+PONG\r\n"),
            (O, b"SUBSCRIBE c\r\n"),
            (R, note),
            (R, note),
        ]);
        assert_eq!(logged(&h), ["PING - - T PONG", "SUBSCRIBE - - - -"]);
        // In version 3, such messages have a type.
        let note = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n";
        let h = run(&[
            (O, b"HELLO 3\r\n"),
            (R, b"%1\r\n+proto\r\n:3\r\n"),
            (O, b"SUBSCRIBE c\r\n"),
            (R, note),
            (O, b"GET a\r\n"),
            (R, b"_\r\n"),
        ]);
        assert_eq!(logged(&h), ["HELLO - - T {proto: 3}", "SUBSCRIBE - - - -", "GET a - T null"]);
    }

    #[test]
    fn answers_without_commands_are_reported() {
        let h = run(&[(O, b"PING\r\n"), (R, b"+PONG\r\n+OK\r\n")]);
        assert_eq!(logged(&h), ["PING - - T PONG", "- - - T OK"]);
        let h = run(&[
            (O, b"PING\r\n"),
            (R, b"+PONG\r\n+OK\r\n+OK\r\n"),
            (O, b"GET a\r\n"),
            (R, b"$1\r\n1\r\n"),
        ]);
        let rows = ["PING - - T PONG", "GET a - T OK", "- - - T OK", "- - - T 1"];
        assert_eq!(logged(&h), rows, "answers stay one ahead");
    }

    #[test]
    fn answers_to_nothing_are_reported_when_too_many_wait() {
        let many = b"+OK\r\n".repeat(MAX_PENDING + 3);
        let mut h = Harness::new(Proto::Tcp, 6379);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), O, b"PING\r\n");
        a.stream(&mut h.cx(), R, &many);
        assert_eq!((a.state.pending.len(), logged(&h).len()), (MAX_PENDING, 3));
    }

    #[test]
    fn too_much_waits() {
        let many = b"GET a\r\n".repeat(MAX_PENDING + 2);
        let h = run(&[(O, b"PING\r\n"), (R, b"+PONG\r\n"), (O, &many)]);
        assert_eq!(h.rows("weird")[0]["name"], "Redis_excessive_pipelining");
        assert_eq!(logged(&h).len(), 1);
    }

    #[test]
    fn servers_that_speak_first_and_nonsense() {
        for chunks in [&[(R, &b"+OK ready\r\n"[..])][..], &[(O, b"*1\r\n:1\r\n")]] {
            let h = run(chunks);
            assert!(h.violated(Tag::Redis) && !h.confirmed(Tag::Redis), "{chunks:?}");
        }
    }

    #[test]
    fn gaps() {
        let mut h = Harness::new(Proto::Tcp, 6379);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), O, b"PING\r\nPING\r\nPING\r\n");
        a.stream(&mut h.cx(), R, b"+PONG\r\n$50\r\nab");
        a.gap(&mut h.cx(), R, 46);
        a.stream(&mut h.cx(), R, b"c\r\n+PONG\r\n");
        assert!(!h.violated(Tag::Redis));
        assert_eq!(logged(&h).len(), 2);
        // Nothing shows that the server's data is in sync again.
        a.end(&mut h.cx(), R);
        assert!(h.violated(Tag::Redis));
        a.stream(&mut h.cx(), R, b"+PONG\r\n");
        a.finish(&mut h.cx());
        assert_eq!(logged(&h).len(), 2, "what waited is forgotten");
    }

    #[test]
    fn behind_a_gap_of_the_client_nothing_is_read() {
        let mut h = Harness::new(Proto::Tcp, 6379);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), O, b"PING\r\nGET a\r\n");
        a.stream(&mut h.cx(), R, b"+PONG\r\n");
        a.gap(&mut h.cx(), O, 46);
        a.stream(&mut h.cx(), R, b"+PONG\r\n");
        a.end(&mut h.cx(), R);
        a.finish(&mut h.cx());
        assert!(!h.violated(Tag::Redis));
        assert_eq!(logged(&h), ["PING - - T PONG", "GET a - - -"]);
    }

    #[test]
    fn lines_are_looked_for_behind_nonsense_as_often_as_it_comes() {
        let h = run(&[
            (O, b"PING\r\nPING\r\nPING\r\n"),
            (R, b"+PONG\r\n$x\r\n+PONG\r\nx\r\n*1\r\n$y\r\n+PONG\r\n"),
        ]);
        assert!(!h.violated(Tag::Redis));
        assert_eq!(logged(&h), ["PING - - T PONG"; 3]);
    }

    #[test]
    fn the_end_within_a_value_is_a_violation() {
        for (from, data) in [(O, &b"PING\r\nGET"[..]), (R, b"+PONG\r\n*1\r\n")] {
            let mut h = Harness::new(Proto::Tcp, 6379);
            let mut a = Analyzer::new(&mut h.cx());
            a.stream(&mut h.cx(), O, b"PING\r\n");
            a.stream(&mut h.cx(), from, data);
            a.end(&mut h.cx(), from.other());
            assert!(!h.violated(Tag::Redis));
            a.end(&mut h.cx(), from);
            assert!(h.violated(Tag::Redis), "{from:?}");
        }
    }
}
