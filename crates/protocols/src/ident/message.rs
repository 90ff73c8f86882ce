//! Lines of clients and of servers.

/// The two ports at the start of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// Port of the queried connection on the server.
    pub server: u16,
    /// Port of the queried connection on the client.
    pub client: u16,
}

/// A request: the line of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The ports.
    pub ports: PortPair,
    /// The rest of the line.
    pub rest: &'a [u8],
}

/// A reply: the line of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The ports.
    pub ports: PortPair,
    /// Answer of the server.
    pub answer: Answer<'a>,
}

/// Answer of a server about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The user.
    User {
        /// The operating system without the character set. As in Zeek, the `:` or `,` after it is included.
        system: &'a [u8],
        /// The user.
        user: &'a [u8],
    },
    /// An error.
    Error(&'a [u8]),
}

/// Result of parsing a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<'a, T> {
    /// The line; `None` if it is malformed.
    pub line: Option<T>,
    /// For each port beyond 65535, the line from that port on. Such a port is parsed as 0.
    pub large_ports: [Option<&'a [u8]>; 2],
}

impl<'a> Request<'a> {
    /// Parses the line of a client.
    pub fn parse(line: &'a [u8]) -> Parsed<'a, Self> {
        let mut reader = Reader { rest: line, large_ports: [None; 2] };
        let line = reader.pair().map(|ports| Self { ports, rest: reader.rest });
        Parsed { line, large_ports: reader.large_ports }
    }
}

impl<'a> Reply<'a> {
    /// Parses the line of a server.
    pub fn parse(line: &'a [u8]) -> Parsed<'a, Self> {
        let mut reader = Reader { rest: line, large_ports: [None; 2] };
        let line = reader.reply();
        Parsed { line, large_ports: reader.large_ports }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    large_ports: [Option<&'a [u8]>; 2],
}

impl<'a> Reader<'a> {
    fn reply(&mut self) -> Option<Reply<'a>> {
        let ports = self.pair()?;
        self.skip(b":")?;
        let is_error = self.skip(b"ERROR").is_some();
        if !is_error {
            self.skip(b"USERID")?;
        }
        self.skip_blanks();
        self.skip(b":")?;
        let answer = match is_error {
            true => Answer::Error(self.rest),
            false => {
                let colon = position(self.rest, b':')?;
                let (system, user) = self.rest.split_at(colon + 1);
                let end = position(system, b',').unwrap_or(colon);
                Answer::User { system: &system[..=end], user: skip_blanks(user) }
            }
        };
        Some(Reply { ports, answer })
    }

    fn pair(&mut self) -> Option<PortPair> {
        self.skip_blanks();
        let server = self.port(0)?;
        self.skip(b",")?;
        let client = self.port(1)?;
        Some(PortPair { server, client })
    }

    fn port(&mut self, n: usize) -> Option<u16> {
        let line = self.rest;
        let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = line.split_at(digits);
        if number.is_empty() {
            return None;
        }
        self.rest = skip_blanks(rest);
        let add = |sum: u32, digit: &u8| (sum * 10 + u32::from(digit - b'0')).min(1 << 16);
        let port = u16::try_from(number.iter().fold(0, add));
        if port.is_err() {
            self.large_ports[n] = Some(line);
        }
        Some(port.unwrap_or(0))
    }

    /// Skips a word and the blanks after it; `None` if the line does not continue with the word.
    fn skip(&mut self, word: &[u8]) -> Option<()> {
        self.rest = skip_blanks(self.rest.strip_prefix(word)?);
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.rest = skip_blanks(self.rest);
    }
}

fn skip_blanks(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    &line[blanks..]
}

fn position(line: &[u8], byte: u8) -> Option<usize> {
    memchr::memchr(byte, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: PortPair = PortPair { server: 6191, client: 23 };

    fn reply(line: &[u8]) -> Option<Answer<'_>> {
        let reply = Reply::parse(line).line?;
        assert_eq!(reply.ports, PORTS);
        Some(reply.answer)
    }

    #[test]
    fn a_request_has_two_ports() {
        for line in [&b"6191,23"[..], b" 6191 ,\t23 ", b"006191, 0023"] {
            let line = Request::parse(line).line;
            assert_eq!(line, Some(Request { ports: PORTS, rest: b"" }));
        }
        assert_eq!(Request::parse(b"6191, 23 : x").line.map(|r| r.rest), Some(&b": x"[..]));
    }

    #[test]
    fn malformed_requests() {
        for line in
            [&b""[..], b" ", b"x", b"6191", b"6191 23", b"6191,", b"6191, x", b",23", b"-1,2"]
        {
            let parsed = Request::parse(line);
            assert_eq!(parsed, Parsed { line: None, large_ports: [None; 2] });
        }
    }

    #[test]
    fn large_ports_count_as_0() {
        let parsed = Request::parse(b"65536, 65535");
        let ports = PortPair { server: 0, client: 65535 };
        assert_eq!(parsed.line.map(|r| r.ports), Some(ports));
        assert_eq!(parsed.large_ports, [Some(&b"65536, 65535"[..]), None]);
        let parsed = Reply::parse(b"1,99999999999999999999 : x");
        assert_eq!(parsed.line, None);
        assert_eq!(parsed.large_ports, [None, Some(&b"99999999999999999999 : x"[..])]);
    }

    #[test]
    fn a_reply_names_a_user() {
        let user = |system, user| Some(Answer::User { system, user });
        assert_eq!(reply(b"6191, 23 : USERID : UNIX : st john"), user(b"UNIX :", b"st john"));
        assert_eq!(reply(b"6191,23:USERID:UNIX,US-ASCII:a:b"), user(b"UNIX,", b"a:b"));
        assert_eq!(reply(b"6191,23:USERID:OTHER:a,b "), user(b"OTHER:", b"a,b "));
        assert_eq!(reply(b"6191,23:USERID::"), user(b":", b""));
    }

    #[test]
    fn a_reply_has_an_error() {
        let error = |text| Some(Answer::Error(text));
        assert_eq!(reply(b"6191, 23 : ERROR : NO-USER"), error(b"NO-USER"));
        assert_eq!(reply(b"6191,23:ERROR:"), error(b""));
    }

    #[test]
    fn malformed_replies() {
        for rest in [
            &b""[..],
            b" x",
            b":",
            b" : user : UNIX : a",
            b": ERROR",
            b": ERRORS : a",
            b": USERID",
            b": USERID x : a : b",
            b": USERID : UNIX",
        ] {
            assert_eq!(reply(&[b"6191,23", rest].concat()), None, "{rest:?}");
        }
    }
}
