//! State of one control connection, from which rows are made.

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

/// Maximum length of the stored user name and of the stored password, in bytes.
const MAX_LOGIN: usize = 128;
/// Maximum length of an argument and of a reply in a row, in bytes.
const MAX_TEXT: usize = 4096;
/// Time for which an announced data connection is expected.
const EXPECT_TIMEOUT: Interval = Interval::from_secs(300);

/// Source of weirds.
pub(super) const SOURCE: Option<&str> = Some("FTP");

const HIDDEN: &[u8] = b"<hidden>";

/// Maximum length of the stored working directory, in bytes. This bounds the cost of each change of directory, which
/// copies it.
const MAX_DIRECTORY: usize = MAX_TEXT;

/// Maximum capacity of a buffer that is reused for the next command or directory, in bytes.
const MAX_REUSED: usize = MAX_TEXT;

/// Whether a command is logged.
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

/// Whether the argument of a command is a file or directory.
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

/// Names of guest users, whose passwords are logged.
const GUESTS: [&[u8]; 4] = [b"anonymous", b"ftp", b"ftpuser", b"guest"];

/// Sequence number of a command that was not seen.
const UNKNOWN: u64 = 0;

/// The state of a session, including its next row.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) ts: Time,
    pub(super) id: ConnId,
    pub(super) user: Vec<u8>,
    /// The user is a guest, whose password is logged.
    is_guest: bool,
    pub(super) password: Option<Vec<u8>>,
    /// The last completed command; empty if there is none.
    pub(super) command: Vec<u8>,
    pub(super) argument: Vec<u8>,
    pub(super) file_size: Option<u64>,
    pub(super) reply: Option<(u16, Vec<u8>)>,
    pub(super) channel: Option<Channel>,
    /// The working directory.
    directory: Vec<u8>,
    /// Buffer for the next working directory.
    spare_directory: Vec<u8>,
    pending: Vec<Command>,
    /// Sequence number of the command that the last reply answered, or [`UNKNOWN`].
    current: Option<u64>,
    last_seq: u64,
    /// The session has a row.
    pub(super) logged: bool,
    /// Buffer for the next command.
    spare_command: Vec<u8>,
}

/// An announced data connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) passive: bool,
    pub(super) orig: Addr,
    pub(super) to: Endpoint,
}

impl Session {
    /// Starts a session with a pending pseudo command, which the greeting answers.
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
            spare_command: Vec::new(),
        };
        session.add_command(cx.now, b"<init>", b"");
        session
    }

    /// Adds a pending command.
    fn add_command(&mut self, ts: Time, word: &[u8], argument: &[u8]) {
        self.last_seq += 1;
        let buffer = std::mem::take(&mut self.spare_command);
        self.pending.push(Command::new(buffer, ts, word, argument, self.last_seq));
    }

    /// Processes a command, with its word in upper case.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, word: &[u8], argument: &[u8]) {
        // The next command completes an answered one.
        if self.reply.is_some()
            && let Some(current) = self.current
            && let Some(at) = self.position(current)
        {
            let command = self.pending.remove(at);
            self.write(cx, command);
        }
        if self.pending.len() < cx.env.pending.of(Tag::Ftp) {
            self.add_command(cx.now, word, argument);
            cx.conn.note_table(self.pending.len());
        } else {
            let addl = self.pending.len().to_string();
            cx.weird("FTP_too_many_pending_commands", &addl, SOURCE);
        }
        match word {
            b"USER" => {
                self.user = truncated(cx, argument, "FTP_user_too_long");
                self.is_guest = GUESTS.iter().any(|g| self.user.eq_ignore_ascii_case(g));
            }
            b"PASS" => {
                self.password = Some(truncated(cx, argument, "FTP_password_too_long"));
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

    /// Processes a line of a reply. An inner line of a multi-line reply without its code has `code` 0;
    /// `continues` is whether further lines follow.
    pub(super) fn reply(&mut self, cx: &mut Context<'_>, code: u16, text: &[u8], continues: bool) {
        // Some servers start a multi-line reply and never end it. As in Zeek, inner lines count if they look like
        // the first line of a reply.
        if continues && code == 0 && self.reply.is_some() && !looks_like_reply(text) {
            return;
        }
        let at = best_match(&self.pending, code, text);
        let command = at.and_then(|at| self.pending.get(at));
        let seq = command.map_or(UNKNOWN, |c| c.seq);
        let (reply_code, reply) = self.reply.get_or_insert_default();
        *reply_code = code;
        reply.clear();
        reply.extend_from_slice(text);
        self.current = Some(seq);
        if continues {
            return;
        }
        let word = command.map_or(&b""[..], Command::word);
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
            // With pipelined commands, the next command does not complete this one.
            let unknown = || Command::new(Vec::new(), self.ts, b"<unknown>", b"", UNKNOWN);
            let command = at.map_or_else(unknown, |at| self.pending.remove(at));
            self.write(cx, command);
        }
    }

    fn change_directory(&mut self, at: usize, code: u16, text: &[u8]) {
        let Some(command) = self.pending.get_mut(at).filter(|c| !c.directory_updated) else {
            return;
        };
        let (path, directory) = (&mut self.spare_directory, &self.directory);
        path.clear();
        match (command.word(), code) {
            (b"CWD", 250) => paths::join(path, directory, command.argument()),
            (b"CDUP", 200 | 250) => paths::join(path, directory, b"/.."),
            (b"PWD" | b"XPWD", 257) => path.extend_from_slice(paths::first_path(text)),
            _ => return,
        }
        command.directory_updated = true;
        if path.len() > MAX_DIRECTORY {
            let tail = path[..MAX_DIRECTORY].iter().rev().take_while(|b| matches!(b, b'/' | b'.'));
            // A path that ends so would be normalized component by component each time.
            path.truncate(MAX_DIRECTORY - tail.count());
        }
        std::mem::swap(&mut self.directory, &mut self.spare_directory);
        if self.spare_directory.capacity() > MAX_REUSED {
            self.spare_directory = Vec::new();
        }
    }

    /// Keeps a buffer for the next command, unless its capacity is too large.
    fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= MAX_REUSED {
            self.spare_command = buffer;
        }
    }

    fn position(&self, seq: u64) -> Option<usize> {
        self.pending.iter().position(|c| c.seq == seq)
    }

    fn announce(&mut self, cx: &mut Context<'_>, channel: Channel) {
        let Channel { orig, to: Endpoint { addr, port }, .. } = channel;
        let now = cx.now;
        if let Err(expected) =
            cx.env.ftp.announce((addr, port, cx.conn.is_global()), cx.conn.uid, now)
        {
            let (env, addl) = (&mut *cx.env, expected.to_string());
            let name = "FTP_too_many_expected_data_channels";
            let weird = PacketWeird { name, addl: &addl, source: SOURCE, in_tunnel: false };
            env.weirds.packet(&mut env.logs, now, &weird);
            return;
        }
        self.channel = Some(channel);
        cx.env.expect(
            cx.conn,
            Some(orig),
            (addr, port),
            Expected { tag: Tag::FtpData, parent: cx.conn.uid, expires: now + EXPECT_TIMEOUT },
            now,
        );
    }

    /// Completes an answered command: writes its row if it is logged, and resets the fields of its file.
    fn write(&mut self, cx: &mut Context<'_>, command: Command) {
        self.ts = command.ts;
        let word = command.word();
        self.command.clear();
        self.command.extend_from_slice(word);
        let argument = &mut self.argument;
        argument.clear();
        let is_logged = is_logged(word);
        // The URL is needed only for a row, or for a weird if it may be too long.
        let max_len = paths::MAX_URL_PREFIX + self.directory.len() + command.argument().len();
        let is_needed = is_logged || !self.logged || max_len > MAX_TEXT;
        if names_file(word) && is_needed {
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
            cx.env.ftp.take_transfer(cx.conn.uid);
        }
        self.file_size = None;
        self.channel = None;
        self.recycle(command.into_buffer());
    }

    /// Ends the session: completes the pending commands, and writes at least one row.
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

fn truncated(cx: &mut Context<'_>, text: &[u8], weird: &'static str) -> Vec<u8> {
    if text.len() > MAX_LOGIN {
        cx.weird(weird, &text.len().to_string(), SOURCE);
    }
    text[..text.len().min(MAX_LOGIN)].to_vec()
}

/// Whether an inner line of a reply looks like a first line: a code, followed by at least ten printable characters.
fn looks_like_reply(line: &[u8]) -> bool {
    matches!(line, [b'1'..=b'9', b, c, b' ', ..] if b.is_ascii_digit() && c.is_ascii_digit())
        && line.len() >= 14
        && line[4..14].iter().all(|b| matches!(b, b' '..=b'~'))
}

/// Parses the last number in a reply; 0 if there is none or it is too large.
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

    /// Each `CWD` may make the directory longer, and costs time in proportion to its length.
    #[test]
    fn directories_have_a_maximum_length() {
        let mut h = Harness::new(Proto::Tcp, 21);
        let mut session = Session::new(&h.cx());
        let long = [b'a'; 1000];
        for _ in 0..20 {
            session.request(&mut h.cx(), b"CWD", &long);
            session.reply(&mut h.cx(), 250, b"ok", false);
        }
        assert_eq!(session.directory.len(), MAX_DIRECTORY);
        assert!(session.directory.starts_with(b"./aaa"));
        // The truncated path does not end with an empty component or a dot.
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
