//! Lines of a session, without state.

/// The first word of a line: a command of the client or a status indicator of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// `+OK`.
    Ok,
    /// `-ERR`.
    Err,
    /// User name.
    User,
    /// The password.
    Pass,
    /// Login with a digest (APOP).
    Apop,
    /// Login with a SASL mechanism (AUTH).
    Auth,
    /// State of the mailbox.
    Stat,
    /// Sizes of messages.
    List,
    /// A message.
    Retr,
    /// Deletes a message.
    Dele,
    /// Undoes deletions.
    Rset,
    /// No operation.
    Noop,
    /// The last message accessed (RFC 1460).
    Last,
    /// End of the session.
    Quit,
    /// The first lines of a message.
    Top,
    /// The server's capabilities.
    Capa,
    /// Unique identifiers of messages.
    Uidl,
    /// Starts TLS.
    Stls,
    /// Sender of a message.
    Xsender,
}

const WORDS: [(&[u8], Word); 19] = [
    (b"OK", Word::Ok),
    (b"ERR", Word::Err),
    (b"USER", Word::User),
    (b"PASS", Word::Pass),
    (b"APOP", Word::Apop),
    (b"AUTH", Word::Auth),
    (b"STAT", Word::Stat),
    (b"LIST", Word::List),
    (b"RETR", Word::Retr),
    (b"DELE", Word::Dele),
    (b"RSET", Word::Rset),
    (b"NOOP", Word::Noop),
    (b"LAST", Word::Last),
    (b"QUIT", Word::Quit),
    (b"TOP", Word::Top),
    (b"CAPA", Word::Capa),
    (b"UIDL", Word::Uidl),
    (b"STLS", Word::Stls),
    (b"XSENDER", Word::Xsender),
];

impl Word {
    /// Name of the command or indicator.
    pub fn name(self) -> &'static str {
        let name = WORDS.iter().find(|(_, word)| *word == self).map_or(&b""[..], |(name, _)| name);
        str::from_utf8(name).unwrap_or_default()
    }

    /// Parses a word, ignoring case.
    ///
    /// `+` and `-` before the word are part of `OK` and `ERR`. One such sign is dropped before each
    /// name is tried, so a word with several of them can match only later names, as in Zeek.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        if rest.is_empty() {
            return None;
        }
        for (name, word) in WORDS {
            if let [b'+' | b'-', tail @ ..] = rest {
                rest = tail;
            }
            if rest.eq_ignore_ascii_case(name) {
                return Some(word);
            }
        }
        None
    }
}

/// The authentication mechanism of AUTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Name and password in two lines.
    Login,
    /// Name and password in one line, separated by NUL.
    Plain,
    /// Any other mechanism.
    Other,
}

impl Mechanism {
    /// Parses the argument of AUTH.
    pub fn parse(argument: &[u8]) -> Self {
        let names = |name: &[u8]| memchr::memmem::find(argument, name).is_some();
        if names(b"LOGIN") {
            Self::Login
        } else if names(b"PLAIN") {
            Self::Plain
        } else {
            Self::Other
        }
    }
}

/// The parts of a line. A line ends at a NUL; spaces before it do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The first word; `None` in an empty line.
    pub first: Option<&'a [u8]>,
    /// The argument, after the spaces.
    pub argument: &'a [u8],
}

/// The line up to a NUL, without surrounding spaces.
pub fn trimmed(line: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, line).unwrap_or(line.len());
    let line = crate::support::text::skip_blanks(&line[..end]);
    let blanks = line.iter().rev().take_while(|b| **b == b' ').count();
    &line[..line.len() - blanks]
}

impl<'a> Parts<'a> {
    /// Splits a line.
    pub fn split(line: &'a [u8]) -> Self {
        let line = trimmed(line);
        if line.is_empty() {
            return Self { first: None, argument: &[] };
        }
        match memchr::memchr(b' ', line) {
            None => Self { first: Some(line), argument: &[] },
            Some(at) => {
                let blanks = line[at..].iter().take_while(|b| **b == b' ').count();
                Self { first: Some(&line[..at]), argument: &line[at + blanks..] }
            }
        }
    }

    /// The first word, if it is a known one.
    pub fn word(&self) -> Option<Word> {
        self.first.and_then(Word::parse)
    }

    /// The first word, or its replacement.
    pub fn first_or_default(&self) -> &'a [u8] {
        self.first.unwrap_or(b"???")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_signs() {
        assert_eq!(Word::parse(b"+OK"), Some(Word::Ok));
        assert_eq!(Word::parse(b"-err"), Some(Word::Err));
        assert_eq!(Word::parse(b"retr"), Some(Word::Retr));
        assert_eq!(Word::parse(b"++OK"), None);
        assert_eq!(Word::parse(b"-+ERR"), Some(Word::Err));
        assert_eq!(Word::parse(b"+"), None);
        assert_eq!(Word::parse(b""), None);
    }

    #[test]
    fn parts_of_lines() {
        let parts = Parts::split(b" \tTOP  1  0 ");
        assert_eq!((parts.word(), parts.argument), (Some(Word::Top), &b"1  0"[..]));
        assert_eq!(Parts::split(b"  ").first, None);
        assert_eq!(Parts::split(b"").first_or_default(), b"???");
        assert_eq!(Parts::split(b"QUIT\0 x"), Parts { first: Some(b"QUIT"), argument: b"" });
        assert_eq!(Mechanism::parse(b"LOGIN"), Mechanism::Login);
        assert_eq!(Mechanism::parse(b"CRAM-MD5"), Mechanism::Other);
    }

    proptest! {
        #[test]
        fn any_line_does(line in prop::collection::vec(any::<u8>(), 0..40)) {
            let parts = Parts::split(&line);
            prop_assert!(parts.first.is_none_or(|w| !w.is_empty() && !w.contains(&b' ')));
            prop_assert!(!parts.argument.starts_with(b" ") && !parts.argument.ends_with(b" "));
        }
    }
}
