//! Messages, one line each (RFC 1459, RFC 2812, IRCv3 message tags), and DCC offers.

use gannet_base::Addr;

use crate::support::text::integer;

/// Maximum length of a message, in bytes (RFC 1459 §2.3).
pub(super) const MAX_MESSAGE: usize = 512;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Sender of the message; empty if it has no prefix.
    pub prefix: &'a [u8],
    /// Command or reply code.
    pub verb: Verb<'a>,
    /// The parameters.
    pub params: &'a [u8],
}

/// Command or reply code of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// A reply of a server.
    Reply(u16),
    /// A command in its original case.
    Command(&'a [u8]),
}

/// Error of a malformed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Longer than [`MAX_MESSAGE`].
    TooLong,
    /// Fewer than three characters.
    TooShort,
    /// A prefix without a command.
    OnlyPrefix,
    /// Fewer than three characters after tags and prefix.
    Empty,
    /// A reply code that does not have three digits.
    BadNumber,
}

impl<'a> Message<'a> {
    /// Parses a line; `None` for one with only tags.
    ///
    /// # Errors
    /// The error of a malformed line.
    pub fn parse(line: &'a [u8]) -> Result<Option<Self>, Problem> {
        if line.len() > MAX_MESSAGE {
            return Err(Problem::TooLong);
        }
        let mut rest = skip_spaces(line);
        if rest.len() < 3 {
            return Err(Problem::TooShort);
        }
        if rest[0] == b'@' {
            let Some(space) = memchr::memchr(b' ', rest) else { return Ok(None) };
            rest = &rest[space + 1..];
        }
        let mut prefix: &[u8] = &[];
        if rest.first() == Some(&b':') {
            let space = memchr::memchr(b' ', rest).ok_or(Problem::OnlyPrefix)?;
            prefix = &rest[1..space];
            rest = skip_spaces(&rest[space + 1..]);
        }
        if rest.len() < 3 {
            return Err(Problem::Empty);
        }
        if rest[0].is_ascii_digit() {
            let code =
                crate::support::text::reply_code(rest).filter(|_| rest.get(3) == Some(&b' '));
            let verb = Verb::Reply(code.ok_or(Problem::BadNumber)?);
            return Ok(Some(Self { prefix, verb, params: &rest[4..] }));
        }
        let (word, params) = match memchr::memchr(b' ', rest) {
            Some(space) => (&rest[..space], skip_spaces(&rest[space + 1..])),
            None => (rest, &rest[rest.len()..]),
        };
        Ok(Some(Self { prefix, verb: Verb::Command(word), params }))
    }
}

/// Commands that a client may send, which confirm the protocol.
const CLIENT_COMMANDS: [&str; 53] = [
    "ADMIN", "AWAY", "CNOTICE", "CONNECT", "CPRIVMSG", "DIE", "ENCAP", "ERROR", "INFO", "INVITE",
    "ISON", "JOIN", "KICK", "KILL", "KNOCK", "LINKS", "LIST", "LUSERS", "MODE", "MOTD", "NAMES",
    "NICK", "NOTICE", "OPER", "PART", "PASS", "PING", "PONG", "PRIVMSG", "QUIT", "REHASH", "RULES",
    "SERVER", "SERVICE", "SERVLIST", "SETNAME", "SILENCE", "SQUERY", "SQUIT", "STARTTLS", "STATS",
    "SUMMON", "TIME", "TOPIC", "TRACE", "USER", "USERHOST", "USERS", "VERSION", "WALLOPS", "WHO",
    "WHOIS", "WHOWAS",
];

/// Whether a client may send this command, which is given in any case.
pub(super) fn is_client_command(word: &[u8]) -> bool {
    CLIENT_COMMANDS.iter().any(|c| word.eq_ignore_ascii_case(c.as_bytes()))
}

/// Splits a text into words and skips empty ones.
pub(super) fn words(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    text.split(move |&b| b == separator).filter(|w| !w.is_empty())
}

/// An offer to open a connection directly between clients (DCC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dcc<'a> {
    /// `SEND`, `CHAT`, …
    pub kind: &'a [u8],
    /// Name of a file, or of a protocol.
    pub argument: &'a [u8],
    /// Address that accepts the connection.
    pub host: Addr,
    /// Port that accepts the connection.
    pub port: u16,
    /// Size of the file in bytes; 0 if missing.
    pub size: u64,
}

/// Error of a malformed offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccProblem {
    /// Too few or too many words.
    Format,
    /// The address is not a number.
    Host,
    /// The port is not a number (0), or this number, which is too large.
    Port(u32),
}

impl<'a> Dcc<'a> {
    /// Parses the text of a PRIVMSG after the leading control character; `None` unless it
    /// begins with `DCC`.
    ///
    /// # Errors
    /// The error of a malformed offer.
    pub fn parse(text: &'a [u8]) -> Result<Option<Self>, DccProblem> {
        if text.len() <= 3 || !text.starts_with(b"DCC") {
            return Ok(None);
        }
        let text = text.strip_suffix(&[1]).unwrap_or(text);
        let parts: Vec<_> = words(text, b' ').take(8).collect();
        // The Turbo extension appends a T.
        let well_formed = match parts[..] {
            [_, _, _, _, _] | [_, _, _, _, _, _] => true,
            [_, _, _, _, _, _, last] => last == b"T",
            _ => false,
        };
        if !well_formed {
            return Err(DccProblem::Format);
        }
        let host = number(parts[3]).ok_or(DccProblem::Host)?;
        let port = number(parts[4]).ok_or(DccProblem::Port(0))?;
        let port = u16::try_from(port).map_err(|_| DccProblem::Port(port))?;
        // As in Zeek, parsed as a signed 32-bit number and then sign-extended to an unsigned one.
        let size = parts.get(5).map_or(0, |t| i64::from(integer(t).0 as i32) as u64);
        let host = Addr::v4(host.to_be_bytes());
        Ok(Some(Self {
            kind: until_nul(parts[1]),
            argument: until_nul(parts[2]),
            host,
            port,
            size,
        }))
    }
}

/// Parses the leading digits of a word.
fn number(word: &[u8]) -> Option<u32> {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&word[..digits]).ok()?.parse().ok()
}

/// Returns the text before its first NUL.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

/// Returns the text without leading spaces.
pub(super) fn skip_spaces(text: &[u8]) -> &[u8] {
    let n = text.iter().take_while(|&&b| b == b' ').count();
    &text[n..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages() {
        let got = Message::parse(b"@time=x :nick!u@h PRIVMSG  #c :hi there");
        let expected = Message {
            prefix: b"nick!u@h",
            verb: Verb::Command(b"PRIVMSG"),
            params: b"#c :hi there",
        };
        assert_eq!(got, Ok(Some(expected)));
        let got = Message::parse(b":srv 001 me :hi");
        let expected = Message { prefix: b"srv", verb: Verb::Reply(1), params: b"me :hi" };
        assert_eq!(got, Ok(Some(expected)));
        let got = Message::parse(b"WHO");
        assert_eq!(got.map(|m| m.map(|m| m.params)), Ok(Some(&b""[..])));
    }

    #[test]
    fn malformed_lines() {
        assert_eq!(Message::parse(b" x"), Err(Problem::TooShort));
        assert_eq!(Message::parse(b"@tags=only"), Ok(None));
        assert_eq!(Message::parse(b":prefix"), Err(Problem::OnlyPrefix));
        assert_eq!(Message::parse(b":prefix x"), Err(Problem::Empty));
        assert_eq!(Message::parse(b"12 x"), Err(Problem::BadNumber));
        assert_eq!(Message::parse(b"001"), Err(Problem::BadNumber));
        assert_eq!(Message::parse(&[b'x'; 513]), Err(Problem::TooLong));
    }

    #[test]
    fn offers() {
        let got = Dcc::parse(b"DCC SEND a.zip 3640061780 1026 41709\x01");
        let expected = Dcc {
            kind: b"SEND",
            argument: b"a.zip",
            host: Addr::v4([216, 246, 239, 84]),
            port: 1026,
            size: 41709,
        };
        assert_eq!(got, Ok(Some(expected)));
        assert_eq!(Dcc::parse(b"hello"), Ok(None));
        assert_eq!(Dcc::parse(b"DCC SEND a"), Err(DccProblem::Format));
        assert_eq!(Dcc::parse(b"DCC SEND a 1 2 3 X"), Err(DccProblem::Format));
        assert!(Dcc::parse(b"DCC SEND a 1 2 3 T").is_ok());
        assert_eq!(Dcc::parse(b"DCC SEND a b 2"), Err(DccProblem::Host));
        assert_eq!(Dcc::parse(b"DCC SEND a 1 70000"), Err(DccProblem::Port(70000)));
    }

    #[test]
    fn client_commands() {
        assert!(is_client_command(b"nick") && is_client_command(b"WHOWAS"));
        assert!(!is_client_command(b"") && !is_client_command(b"GET"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(line: Vec<u8>) {
            if let Ok(Some(message)) = Message::parse(&line) {
                let _ = Dcc::parse(message.params);
            }
        }
    }
}
