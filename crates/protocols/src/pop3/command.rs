/// A command, or the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the words themselves
pub enum Command {
    Ok,
    Err,
    User,
    Pass,
    Apop,
    Auth,
    Stat,
    List,
    Retr,
    Dele,
    Rset,
    Noop,
    Last,
    Quit,
    Top,
    Capa,
    Uidl,
    Stls,
    Xsender,
}

use Command as C;

const WORDS: [(&str, Command); 19] = [
    ("OK", C::Ok),
    ("ERR", C::Err),
    ("USER", C::User),
    ("PASS", C::Pass),
    ("APOP", C::Apop),
    ("AUTH", C::Auth),
    ("STAT", C::Stat),
    ("LIST", C::List),
    ("RETR", C::Retr),
    ("DELE", C::Dele),
    ("RSET", C::Rset),
    ("NOOP", C::Noop),
    ("LAST", C::Last),
    ("QUIT", C::Quit),
    ("TOP", C::Top),
    ("CAPA", C::Capa),
    ("UIDL", C::Uidl),
    ("STLS", C::Stls),
    ("XSENDER", C::Xsender),
];

impl Command {
    /// From a word in any case. Signs in front are taken off one with each word of the list
    /// that was tried, as Zeek does.
    pub fn parse(word: &[u8]) -> Option<Self> {
        let mut word = word;
        for (text, command) in WORDS {
            if let [b'+' | b'-', rest @ ..] = word {
                word = rest;
            }
            if word.eq_ignore_ascii_case(text.as_bytes()) {
                return Some(command);
            }
        }
        None
    }
}

/// A line without blanks around it, and with single ones within; up to its first zero.
pub(super) fn tidy(line: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(0, line).unwrap_or(line.len());
    let line = crate::support::text::trim(&line[..end]);
    let mut out = Vec::with_capacity(line.len());
    for &b in line {
        if b != b' ' || out.last() != Some(&b' ') {
            out.push(b);
        }
    }
    out
}

/// The first word of a tidy line, and the rest.
pub(super) fn split(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(n) => (&line[..n], &line[n + 1..]),
        None => (line, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(Command::parse(b"+OK"), Some(C::Ok));
        assert_eq!(Command::parse(b"-err"), Some(C::Err));
        assert_eq!(Command::parse(b"++ok"), None);
        assert_eq!(Command::parse(b"user"), Some(C::User));
        assert_eq!(Command::parse(b"+"), None);
        assert_eq!(tidy(b"  a   b \0c"), b"a b");
        assert_eq!(split(b"retr 1 2"), (&b"retr"[..], &b"1 2"[..]));
    }
}
