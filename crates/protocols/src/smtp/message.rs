//! Commands and replies as lines.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::text::reply_code;
use crate::support::text::skip_blanks;
use crate::support::text::split_word;

macro_rules! commands {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// A command of RFC 5321 or an extension, or one of three pseudo-commands for other things
        /// that a reply answers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Command { $( $(#[doc = $doc])* $name, )* }

        impl Command {
            /// The command with this name, in any case. The names of pseudo-commands count, too.
            pub fn from_word(word: &[u8]) -> Option<Self> {
                let words = [ $( ($word, Self::$name), )* ];
                let found = words.iter().find(|(w, _)| word.eq_ignore_ascii_case(w.as_bytes()));
                found.map(|&(_, command)| command)
            }

            /// Name of the command.
            pub fn word(self) -> &'static str {
                match self { $( Self::$name => $word, )* }
            }
        }
    };
}

commands! {
    /// EHLO
    Ehlo = "EHLO",
    /// HELO
    Helo = "HELO",
    /// MAIL
    Mail = "MAIL",
    /// RCPT
    Rcpt = "RCPT",
    /// DATA
    Data = "DATA",
    /// QUIT
    Quit = "QUIT",
    /// RSET
    Rset = "RSET",
    /// VRFY
    Vrfy = "VRFY",
    /// EXPN
    Expn = "EXPN",
    /// HELP
    Help = "HELP",
    /// NOOP
    Noop = "NOOP",
    /// STARTTLS (RFC 3207)
    StartTls = "STARTTLS",
    /// X-ANONYMOUSTLS (Microsoft Exchange)
    AnonymousTls = "X-ANONYMOUSTLS",
    /// Pseudo-command: the connection, which the greeting answers.
    Connect = "CONN_ESTABLISHMENT",
    /// Pseudo-command: the dot that ends a mail.
    EndOfData = "END_OF_DATA",
    /// SEND (RFC 821)
    Send = "SEND",
    /// SOML (RFC 821)
    Soml = "SOML",
    /// SAML (RFC 821)
    Saml = "SAML",
    /// TURN (RFC 821)
    Turn = "TURN",
    /// BDAT (RFC 3030)
    Bdat = "BDAT",
    /// ETRN (RFC 1985)
    Etrn = "ETRN",
    /// AUTH (RFC 4954)
    Auth = "AUTH",
    /// Pseudo-command: a line of an AUTH exchange.
    AuthAnswer = "AUTH_ANSWER",
}

impl Command {
    /// Whether the protocol defines this reply code for the command. Commands that do not change
    /// the state may have any.
    pub fn has_reply(self, code: u16) -> bool {
        match self {
            Self::Connect => matches!(code, 220 | 421 | 554),
            Self::Ehlo | Self::Helo => matches!(code, 250 | 421 | 500 | 501 | 504 | 550),
            Self::Mail | Self::Send | Self::Soml | Self::Saml => {
                matches!(code, 250 | 421 | 451 | 452 | 500 | 501 | 503 | 550 | 552 | 553)
            }
            Self::Rcpt => {
                matches!(code, 250 | 251 | 421 | 450..=452 | 500 | 501 | 503 | 550..=554)
            }
            Self::Data => matches!(code, 354 | 421 | 451 | 500 | 501 | 503 | 554),
            Self::Bdat => matches!(code, 250 | 421 | 451 | 500 | 501 | 503 | 554),
            Self::EndOfData => matches!(code, 250 | 421 | 451 | 452 | 552 | 554),
            Self::Rset => code == 250,
            Self::Quit => code == 221,
            _ => true,
        }
    }
}

/// A line of the client outside of mail data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The first word.
    pub word: &'a [u8],
    /// Its argument.
    pub argument: &'a [u8],
}

impl<'a> Request<'a> {
    /// Splits a line.
    pub fn parse(line: &'a [u8]) -> Self {
        let (word, rest) = split_word(line);
        Self { word, argument: skip_blanks(rest) }
    }
}

/// A line of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Reply code, 100 to 599.
    pub code: u16,
    /// Whether another line of the same reply follows.
    pub more: bool,
    /// The text after the code.
    pub text: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Parses a line; `None` unless it begins with a number from 100 to 599.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let code = reply_code(line).filter(|code| (100..600).contains(code))?;
        let more = line.get(3) == Some(&b'-');
        let text = skip_blanks(&line[if more { 4 } else { 3 }..]);
        Some(Self { code, more, text })
    }
}

/// The error of BDAT's argument, in the words of weird.log.
pub type ChunkError = &'static str;

/// Parses the argument of BDAT: the chunk's size, and whether it is the last chunk.
pub fn parse_chunk(argument: &[u8]) -> Result<(u64, bool), ChunkError> {
    // Length of the largest 64-bit number with ` LAST`.
    const LONGEST: usize = 25;
    if argument.is_empty() || argument.len() > LONGEST {
        return Err("BDAT argument bad length");
    }
    let digits = argument.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return Err("BDAT not followed by a valid chunk-size");
    }
    let (number, rest) = argument.split_at(digits);
    if !matches!(rest.first(), None | Some(b' ' | 0)) {
        return Err("BDAT chunk-size not valid");
    }
    let add = |n: u64, d: &u8| n.checked_mul(10)?.checked_add(u64::from(d - b'0'));
    let Some(size) = number.iter().try_fold(0, add) else {
        return Err("BDAT chunk-size too large");
    };
    if rest.is_empty() {
        Ok((size, false))
    } else if rest.eq_ignore_ascii_case(b" LAST") {
        Ok((size, true))
    } else {
        Err("BDAT chunk-size followed by junk")
    }
}

/// Name of an unknown command.
pub(super) const UNKNOWN: &str = "(UNKNOWN)";

/// The name of a command in events.
pub(super) fn name(command: Command) -> &'static str {
    match command {
        Command::AnonymousTls => "X_ANONYMOUSTLS",
        _ => command.word(),
    }
}

/// The command that a reply answers, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered(pub Option<Command>);

/// Encoded as the command's name: `>` for the connection, `.` for a mail.
impl Arg for Answered {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let text = match self.0 {
            None => UNKNOWN,
            Some(Command::Connect) => ">",
            Some(Command::EndOfData) => ".",
            Some(command) => name(command),
        };
        text.pack(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let got = Request::parse(b"mail  FROM:<a@b>");
        assert_eq!(got, Request { word: b"mail", argument: b"FROM:<a@b>" });
        assert_eq!(Command::from_word(got.word), Some(Command::Mail));
        assert_eq!(Command::from_word(b"X-AnonymousTLS"), Some(Command::AnonymousTls));
        assert_eq!(Command::from_word(b"MAI"), None);
        assert_eq!(Command::from_word(b""), None);
    }

    #[test]
    fn replies() {
        let reply = |line: &'static [u8]| Reply::parse(line).map(|r| (r.code, r.more, r.text));
        assert_eq!(reply(b"250-a b"), Some((250, true, &b"a b"[..])));
        assert_eq!(reply(b"250 "), Some((250, false, &b""[..])));
        assert_eq!(reply(b"250"), Some((250, false, &b""[..])));
        assert_eq!(reply(b"600 x"), None);
        assert_eq!(reply(b"+OK"), None);
    }

    #[test]
    fn chunks() {
        assert_eq!(parse_chunk(b"86"), Ok((86, false)));
        assert_eq!(parse_chunk(b"86 last"), Ok((86, true)));
        assert_eq!(parse_chunk(b"18446744073709551615 LAST"), Ok((u64::MAX, true)));
        assert_eq!(parse_chunk(b"184467440737095516150"), Err("BDAT chunk-size too large"));
        assert_eq!(parse_chunk(b"184467440737095516150 LAST"), Err("BDAT argument bad length"));
        assert_eq!(parse_chunk(b"-1"), Err("BDAT not followed by a valid chunk-size"));
        assert_eq!(parse_chunk(b""), Err("BDAT argument bad length"));
        assert_eq!(parse_chunk(b"86LAST"), Err("BDAT chunk-size not valid"));
        assert_eq!(parse_chunk(b"86 LASTX"), Err("BDAT chunk-size followed by junk"));
    }
}
