//! Messages, one line each (RFC 1459, RFC 2812, IRCv3 message tags), and DCC offers.

use gannet_base::Addr;

use crate::support::text::integer;

/// RFC 1459 allows no longer lines.
pub(super) const MAX_MESSAGE: usize = 512;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The sender, if stated; empty otherwise.
    pub prefix: &'a [u8],
    /// Command or reply code.
    pub verb: Verb<'a>,
    /// Everything behind that.
    pub params: &'a [u8],
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// A reply of a server.
    Reply(u16),
    /// A command as it was written.
    Command(&'a [u8]),
}

/// Why a line is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Longer than [`MAX_MESSAGE`].
    TooLong,
    /// Less than three characters.
    TooShort,
    /// A prefix and nothing else.
    OnlyPrefix,
    /// Nothing worth mentioning behind tags and prefix.
    Empty,
    /// A number that is not of three digits.
    BadNumber,
}

impl<'a> Message<'a> {
    /// Reads a line; nothing for one that holds only tags.
    ///
    /// # Errors
    /// Why it is no message.
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

/// Commands that a client may send: one of them shows that this is IRC.
const CLIENT: [&str; 53] = [
    "ADMIN", "AWAY", "CNOTICE", "CONNECT", "CPRIVMSG", "DIE", "ENCAP", "ERROR", "INFO", "INVITE",
    "ISON", "JOIN", "KICK", "KILL", "KNOCK", "LINKS", "LIST", "LUSERS", "MODE", "MOTD", "NAMES",
    "NICK", "NOTICE", "OPER", "PART", "PASS", "PING", "PONG", "PRIVMSG", "QUIT", "REHASH", "RULES",
    "SERVER", "SERVICE", "SERVLIST", "SETNAME", "SILENCE", "SQUERY", "SQUIT", "STARTTLS", "STATS",
    "SUMMON", "TIME", "TOPIC", "TRACE", "USER", "USERHOST", "USERS", "VERSION", "WALLOPS", "WHO",
    "WHOIS", "WHOWAS",
];

/// Whether a client may send this command, in any case.
pub(super) fn is_client_command(word: &[u8]) -> bool {
    CLIENT.iter().any(|c| word.eq_ignore_ascii_case(c.as_bytes()))
}

/// The words of a text, empty ones left out.
pub(super) fn words(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    text.split(move |&b| b == separator).filter(|w| !w.is_empty())
}

/// An offer to open a connection directly between clients (DCC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dcc<'a> {
    /// `SEND`, `CHAT`, …
    pub kind: &'a [u8],
    /// A file's name, or a protocol's.
    pub argument: &'a [u8],
    /// Address that accepts the connection.
    pub host: Addr,
    /// On which port.
    pub port: u16,
    /// Bytes of the file, 0 if not stated.
    pub size: u64,
}

/// The fault of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccProblem {
    /// Too few or too many words.
    Format,
    /// The address is no number.
    Host,
    /// The port is no number, or this.
    Port(u32),
}

impl<'a> Dcc<'a> {
    /// Reads the text of a PRIVMSG, without the control characters around it; nothing unless it
    /// begins with `DCC`.
    ///
    /// # Errors
    /// The fault of the offer.
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
        // Read as C's `int`: a negative size becomes a great one.
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

/// The digits at the front of a word.
fn number(word: &[u8]) -> Option<u32> {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&word[..digits]).ok()?.parse().ok()
}

/// The text before its first NUL.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

/// The text without the spaces at its front.
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
    fn lines_that_are_none() {
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
        fn any_bytes_do(line: Vec<u8>) {
            if let Ok(Some(message)) = Message::parse(&line) {
                let _ = Dcc::parse(message.params);
            }
        }
    }
}
