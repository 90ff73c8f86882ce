//! One control connection: rows from commands and replies.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;

use super::commands::Command;
use super::commands::best_match;
use super::message::Endpoint;
use super::paths;
use crate::Context;
use crate::Expected;
use crate::Tag;
use crate::weird::PacketWeird;

/// Bytes of the user's name and of the password that are kept.
const MAX_LOGIN: usize = 128;
/// Bytes of an argument and of a reply that are kept.
const MAX_TEXT: usize = 4096;
/// A data connection that does not come within this is not expected any longer.
const AWAIT: Interval = Interval::from_secs(300);

/// Where weird.log says weirds come from.
pub(super) const SOURCE: Option<&str> = Some("FTP");

const HIDDEN: &[u8] = b"<hidden>";

/// Bytes of a directory that are kept, which are more than rows show: each command that enters another one
/// has it copied.
const MAX_DIRECTORY: usize = MAX_TEXT;

/// Memory of a command or directory that is kept for the next one.
const MAX_SPARE: usize = MAX_TEXT;

/// Whether a command makes a row.
fn is_logged(word: &[u8]) -> bool {
    matches!(
        word,
        b"APPE"
            | b"DELE"
            | b"RETR"
            | b"STOR"
            | b"STOU"
            | b"ACCT"
            | b"PORT"
            | b"PASV"
            | b"EPRT"
            | b"EPSV"
    )
}

/// Whether a command's argument is a file or directory.
fn names_file(word: &[u8]) -> bool {
    matches!(
        word,
        b"APPE"
            | b"CWD"
            | b"DELE"
            | b"MKD"
            | b"RETR"
            | b"RMD"
            | b"RNFR"
            | b"RNTO"
            | b"STOR"
            | b"STOU"
            | b"REST"
            | b"SIZE"
            | b"MDTM"
    )
}

/// Users whose password is no secret.
const GUESTS: [&[u8]; 4] = [b"anonymous", b"ftp", b"ftpuser", b"guest"];

/// The number of a command that was not seen.
const UNKNOWN: u64 = 0;

/// The state of a session, including its next row.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) ts: Time,
    pub(super) id: ConnId,
    pub(super) user: Vec<u8>,
    /// The user's password is no secret.
    is_guest: bool,
    pub(super) password: Option<Vec<u8>>,
    /// The last command that is over, empty if there is none.
    pub(super) command: Vec<u8>,
    pub(super) argument: Vec<u8>,
    pub(super) file_size: Option<u64>,
    pub(super) reply: Option<(u16, Vec<u8>)>,
    pub(super) channel: Option<Channel>,
    directory: Vec<u8>,
    /// Memory for the next one.
    spare_directory: Vec<u8>,
    pending: Vec<Command>,
    /// Number of the command that the last reply answered, or [`UNKNOWN`].
    current: Option<u64>,
    last_seq: u64,
    pub(super) logged: bool,
    /// Memory for the next command.
    spare: Vec<u8>,
}

/// An announced data connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) passive: bool,
    pub(super) orig: Addr,
    pub(super) to: Endpoint,
}

impl Session {
    /// A session begins; its greeting answers a command that was never sent.
    pub(super) fn new(cx: &Context<'_>) -> Self {
        let mut session = Self {
            ts: cx.now,
            id: cx.conn.id,
            user: b"<unknown>".to_vec(),
            is_guest: false,
            password: None,
            command: Vec::new(),
            argument: Vec::new(),
            file_size: None,
            reply: None,
            channel: None,
            directory: b".".to_vec(),
            spare_directory: Vec::new(),
            pending: Vec::new(),
            current: None,
            last_seq: 0,
            logged: false,
            spare: Vec::new(),
        };
        session.sent(cx.now, b"<init>", b"");
        session
    }

    fn sent(&mut self, ts: Time, word: &[u8], argument: &[u8]) {
        self.last_seq += 1;
        let memory = std::mem::take(&mut self.spare);
        self.pending.push(Command::new(memory, ts, word, argument, self.last_seq));
    }

    /// A command, its word in upper case.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, word: &[u8], argument: &[u8]) {
        // A command is over when the next one comes.
        if self.reply.is_some()
            && let Some(current) = self.current
            && let Some(at) = self.position(current)
        {
            let command = self.pending.remove(at);
            self.write(cx, command);
        }
        if self.pending.len() < cx.env.pending.of(Tag::Ftp) {
            self.sent(cx.now, word, argument);
            cx.conn.note_table(self.pending.len());
        } else {
            let addl = self.pending.len().to_string();
            cx.weird("FTP_too_many_pending_commands", &addl, SOURCE);
        }
        match word {
            b"USER" => {
                self.user = shortened(cx, argument, "FTP_user_too_long");
                self.is_guest = GUESTS.iter().any(|g| self.user.eq_ignore_ascii_case(g));
            }
            b"PASS" => {
                self.password = Some(shortened(cx, argument, "FTP_password_too_long"));
            }
            b"PORT" | b"EPRT" => {
                let to = match word {
                    b"PORT" => Endpoint::from_port(argument),
                    _ => Endpoint::from_eprt(argument),
                };
                if let Some(to) = to {
                    let orig = cx.conn.id.resp_h;
                    self.announce(cx, Channel { passive: false, orig, to });
                }
            }
            _ => {}
        }
    }

    /// A line of a reply. A line within a reply that does not begin with its code has `code` 0;
    /// `within` says that further lines follow.
    pub(super) fn reply(&mut self, cx: &mut Context<'_>, code: u16, text: &[u8], within: bool) {
        // Some servers begin a reply of several lines and never end it: what looks like the first
        // line of another one then counts.
        if within && code == 0 && self.reply.is_some() && !looks_like_reply(text) {
            return;
        }
        let at = best_match(&self.pending, code, text);
        let found = at.and_then(|at| self.pending.get(at));
        let seq = found.map_or(UNKNOWN, |c| c.seq);
        let (reply_code, reply) = self.reply.get_or_insert_default();
        *reply_code = code;
        reply.clear();
        reply.extend_from_slice(text);
        self.current = Some(seq);
        if within {
            return;
        }
        let word = found.map_or(&b""[..], Command::word);
        match (word, code) {
            (b"RETR", 150) | (b"SIZE", 213) => self.file_size = Some(last_number(text)),
            (b"PASV" | b"EPSV", 227 | 229) => {
                let to =
                    if code == 227 { Endpoint::from_pasv(text) } else { Endpoint::from_epsv(text) };
                if let Some(mut to) = to {
                    if code == 229 && to.addr == Addr::v6([0; 16]) {
                        to.addr = cx.conn.id.resp_h;
                    }
                    let orig = cx.conn.id.orig_h;
                    self.announce(cx, Channel { passive: true, orig, to });
                }
            }
            _ => {}
        }
        if let Some(at) = at {
            self.change_directory(at, code, text);
        }
        if self.pending.len() > 1 {
            // Replies to pipelined commands: the next command will not end this one.
            let unknown = || Command::new(Vec::new(), self.ts, b"<unknown>", b"", UNKNOWN);
            let command = at.map_or_else(unknown, |at| self.pending.remove(at));
            self.write(cx, command);
        }
    }

    fn change_directory(&mut self, at: usize, code: u16, text: &[u8]) {
        let Some(command) = self.pending.get_mut(at).filter(|c| !c.directory_taken) else { return };
        let (path, directory) = (&mut self.spare_directory, &self.directory);
        path.clear();
        match (command.word(), code) {
            (b"CWD", 250) => paths::join(path, directory, command.argument()),
            (b"CDUP", 200 | 250) => paths::join(path, directory, b"/.."),
            (b"PWD" | b"XPWD", 257) => path.extend_from_slice(paths::first_path(text)),
            _ => return,
        }
        command.directory_taken = true;
        if path.len() > MAX_DIRECTORY {
            let tail = path[..MAX_DIRECTORY].iter().rev().take_while(|b| matches!(b, b'/' | b'.'));
            // What ends so would be taken to pieces each time.
            path.truncate(MAX_DIRECTORY - tail.count());
        }
        std::mem::swap(&mut self.directory, &mut self.spare_directory);
        if self.spare_directory.capacity() > MAX_SPARE {
            self.spare_directory = Vec::new();
        }
    }

    /// Keeps memory for the next command, unless it has longer memory.
    fn keep(&mut self, memory: Vec<u8>) {
        if memory.capacity() <= MAX_SPARE {
            self.spare = memory;
        }
    }

    fn position(&self, seq: u64) -> Option<usize> {
        self.pending.iter().position(|c| c.seq == seq)
    }

    fn announce(&mut self, cx: &mut Context<'_>, channel: Channel) {
        let Channel { orig, to: Endpoint { addr, port }, .. } = channel;
        let now = cx.now;
        if let Err(awaited) =
            cx.env.ftp.announce((addr, port, cx.conn.is_global()), cx.conn.uid, now)
        {
            let (env, addl) = (&mut *cx.env, awaited.to_string());
            let name = "FTP_too_many_expected_data_channels";
            let what = PacketWeird { name, addl: &addl, source: SOURCE, in_tunnel: false };
            env.weirds.packet(&mut env.logs, now, &what);
            return;
        }
        self.channel = Some(channel);
        cx.env.expect(
            cx.conn,
            Some(orig),
            (addr, port),
            Expected { tag: Tag::FtpData, parent: cx.conn.uid, expires: now + AWAIT },
            now,
        );
    }

    /// Writes a row for an answered command, if it is logged, and drops the facts of its file.
    fn write(&mut self, cx: &mut Context<'_>, command: Command) {
        self.ts = command.ts;
        let word = command.word();
        self.command.clear();
        self.command.extend_from_slice(word);
        let argument = &mut self.argument;
        argument.clear();
        let is_logged = is_logged(word);
        // A path that no row will show need not be built, unless it might be too long.
        let longest = paths::MAX_AROUND + self.directory.len() + command.argument().len();
        let matters = is_logged || !self.logged || longest > MAX_TEXT;
        if names_file(word) && matters {
            paths::url(argument, self.id.resp_h, &self.directory, command.argument());
        } else {
            argument.extend_from_slice(command.argument());
        }
        if argument.len() > MAX_TEXT {
            cx.weird("FTP_arg_too_long", &argument.len().to_string(), SOURCE);
            argument.truncate(MAX_TEXT);
            argument.shrink_to_fit();
        }
        if let Some((_, text)) = &mut self.reply
            && text.len() > MAX_TEXT
        {
            cx.weird("FTP_reply_msg_too_long", &text.len().to_string(), SOURCE);
            text.truncate(MAX_TEXT);
        }
        if !self.is_guest {
            if word == b"PASS" {
                argument.clear();
                argument.extend_from_slice(HIDDEN);
            }
            if let Some(password) = &mut self.password
                && password != HIDDEN
            {
                *password = HIDDEN.to_vec();
            }
        }
        if is_logged {
            self.log(cx);
        } else {
            cx.env.ftp.take(cx.conn.uid);
        }
        self.file_size = None;
        self.channel = None;
        self.keep(command.into_memory());
    }

    /// The session ends: what still awaits a reply is written, and something in any case.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        for command in std::mem::take(&mut self.pending) {
            self.write(cx, command);
        }
        if !self.logged {
            self.log(cx);
        }
        cx.env.ftp.close(cx.conn.uid);
    }
}

fn shortened(cx: &mut Context<'_>, text: &[u8], weird: &'static str) -> Vec<u8> {
    if text.len() > MAX_LOGIN {
        cx.weird(weird, &text.len().to_string(), SOURCE);
    }
    text[..text.len().min(MAX_LOGIN)].to_vec()
}

/// A code and ten printable characters.
fn looks_like_reply(line: &[u8]) -> bool {
    matches!(line, [b'1'..=b'9', b, c, b' ', ..] if b.is_ascii_digit() && c.is_ascii_digit())
        && line.len() >= 14
        && line[4..14].iter().all(|b| matches!(b, b' '..=b'~'))
}

/// The last number in a reply, 0 if there is none or it is too big.
fn last_number(text: &[u8]) -> u64 {
    let tail = text.iter().rev().take_while(|b| !b.is_ascii_digit()).count();
    let text = &text[..text.len() - tail];
    let len = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let digits = &text[text.len() - len..];
    let add = |n: u64, d: &u8| n.checked_mul(10)?.checked_add(u64::from(d - b'0'));
    digits.iter().try_fold(0, add).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::*;
    use crate::testing::Harness;

    /// Each `CWD` made the directory longer and was as much work as the directory is long.
    #[test]
    fn directories_do_not_grow_for_ever() {
        let mut h = Harness::new(Proto::Tcp, 21);
        let mut session = Session::new(&h.cx());
        let long = [b'a'; 1000];
        for _ in 0..20 {
            session.request(&mut h.cx(), b"CWD", &long);
            session.reply(&mut h.cx(), 250, b"ok", false);
        }
        assert_eq!(session.directory.len(), MAX_DIRECTORY);
        assert!(session.directory.starts_with(b"./aaa"));
        // Where it is cut, no component is empty or a dot.
        for path in [&b"/"[..], &[b'b'; MAX_DIRECTORY - 2], b"./c", b"d"] {
            session.request(&mut h.cx(), b"CWD", path);
            session.reply(&mut h.cx(), 250, b"ok", false);
        }
        assert_eq!(session.directory.len(), MAX_DIRECTORY - 1);
        assert!(session.directory.ends_with(b"bb"));
        session.request(&mut h.cx(), b"CWD", b"/b");
        session.reply(&mut h.cx(), 250, b"ok", false);
        assert_eq!(session.directory, b"/b");
    }

    #[test]
    fn numbers_in_replies() {
        assert_eq!(last_number(b"Opening for a1.txt (77 bytes)."), 77);
        assert_eq!(last_number(b"1234"), 1234);
        assert_eq!(last_number(b"none"), 0);
    }

    #[test]
    fn lines_within_replies() {
        assert!(looks_like_reply(b"226 Transfer complete."));
        assert!(!looks_like_reply(b"226 short"));
        assert!(!looks_like_reply(b"   226 Transfer complete."));
    }
}
