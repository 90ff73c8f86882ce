//! Commands, replies and the addresses in them (RFC 959, RFC 2428).

use gannet_base::Addr;

use crate::support::text::integer;
use crate::support::text::is_space;
use crate::support::text::reply_code;
use crate::support::text::skip_blanks;
use crate::support::text::split_word;

/// A command of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The command word in its original case.
    pub word: &'a [u8],
    /// Argument of the command.
    pub argument: &'a [u8],
}

impl<'a> Request<'a> {
    /// Parses a line; `None` unless it begins with a word of three or more printable characters.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (word, rest) = split_word(skip_blanks(line));
        let printable = word.iter().all(|b| b.is_ascii_graphic());
        (word.len() >= 3 && printable).then(|| Self { word, argument: skip_blanks(rest) })
    }
}

/// The first line of a reply of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The reply code, at least 100.
    pub code: u16,
    /// Whether further lines of the same reply follow.
    pub more: bool,
    /// The words after the code.
    pub text: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Parses the first line of a reply.
    ///
    /// # Errors
    /// The reason of the violation, as analyzer.log has it.
    pub fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        match reply_code(line) {
            // As in Zeek, the code 000 counts as missing.
            None | Some(0) => Err("non-numeric reply code"),
            Some(code) if code < 100 => Err("invalid reply code"),
            Some(code) => match line.get(3) {
                None => Ok(Self { code, more: false, text: b"" }),
                Some(b'-') => Ok(Self { code, more: true, text: skip_blanks(&line[4..]) }),
                Some(b' ') => Ok(Self { code, more: false, text: skip_blanks(&line[4..]) }),
                Some(_) => Err("invalid reply line"),
            },
        }
    }

    /// Returns the text of a line that ends a multi-line reply with this code; `None` for any other line.
    pub fn last_line(line: &'a [u8], code: u16) -> Option<&'a [u8]> {
        let is_last = reply_code(line) == Some(code) && line.get(3) == Some(&b' ');
        is_last.then(|| skip_blanks(&line[3..]))
    }
}

/// The announced endpoint of a data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address; unspecified (`::`) for the server's own address.
    pub addr: Addr,
    /// The TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Parses the argument of PORT: `h1,h2,h3,h4,p1,p2`.
    pub fn from_port(text: &[u8]) -> Option<Self> {
        // The shortest argument has 11 characters. Text after six numbers is ignored.
        if text.len() < 11 {
            return None;
        }
        let mut numbers = [0u8; 6];
        let mut rest = text;
        for (i, number) in numbers.iter_mut().enumerate() {
            if i > 0 {
                rest = rest.strip_prefix(b",")?;
            }
            let (n, after) = integer(rest);
            if after.len() == rest.len() {
                return None;
            }
            *number = u8::try_from(n).ok()?;
            rest = after;
        }
        let [a, b, c, d, high, low] = numbers;
        Some(Self { addr: Addr::v4([a, b, c, d]), port: u16::from_be_bytes([high, low]) })
    }

    /// Parses the reply to PASV: numbers as in PORT, in parentheses, after the word PORT, or anywhere.
    pub fn from_pasv(text: &[u8]) -> Option<Self> {
        if text.contains(&0) {
            return None;
        }
        let at = if let Some(open) = memchr::memchr(b'(', text) {
            open + 1
        } else if let Some(word) = memchr::memmem::find(text, b"PORT") {
            word + 5
        } else {
            let comma = memchr::memchr(b',', text)?;
            comma - text[..comma].iter().rev().take_while(|b| b.is_ascii_digit()).count()
        };
        Self::from_port(text.get(at..)?)
    }

    /// Parses the argument of EPRT: `|protocol|address|port|`, with any delimiter for the bar.
    pub fn from_eprt(text: &[u8]) -> Option<Self> {
        if text.contains(&0) {
            return None;
        }
        let blank = text.iter().take_while(|&&b| is_space(b)).count();
        let (&bar, rest) = text[blank..].split_first()?;
        let (_, after) = integer(rest);
        let mut good = after.first() == Some(&bar);
        let mut rest = after.get(1..).unwrap_or_default();
        let mut addr = Addr::v6([0; 16]);
        if let Some(&first) = rest.first()
            && first != bar
        {
            let len = memchr::memchr(bar, rest).unwrap_or(rest.len());
            match address(&rest[..len]) {
                Some(a) => (addr, good) = (a, true),
                None => good = false,
            }
            rest = &rest[len..];
        }
        let mut port = 0;
        if let Some(at) = memchr::memchr(bar, rest) {
            let (n, after) = integer(&rest[at + 1..]);
            good &= after.first() == Some(&bar);
            match u16::try_from(n) {
                Ok(n) => port = n,
                Err(_) => good = false,
            }
        }
        good.then_some(Self { addr, port })
    }

    /// Parses the reply to EPSV: as in EPRT, in parentheses.
    pub fn from_epsv(text: &[u8]) -> Option<Self> {
        let open = memchr::memchr(b'(', text)?;
        Self::from_eprt(&text[open + 1..])
    }
}

/// Parses an address; numbers of IPv4 may have leading zeros.
fn address(text: &[u8]) -> Option<Addr> {
    if text.contains(&b':') {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    let mut bytes = [0u8; 4];
    let mut rest = text;
    for (i, byte) in bytes.iter_mut().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (n, after) = integer(rest);
        if after.len() == rest.len() {
            return None;
        }
        *byte = u8::try_from(n).ok()?;
        rest = after;
    }
    rest.is_empty().then(|| Addr::v4(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests() {
        let got = Request::parse(b" RETR  a b ");
        assert_eq!(got, Some(Request { word: b"RETR", argument: b"a b " }));
        assert_eq!(Request::parse(b"AB"), None);
        assert_eq!(Request::parse(b"PA\x80S x"), None);
    }

    #[test]
    fn replies() {
        let reply = |line: &'static [u8]| Reply::parse(line).map(|r| (r.code, r.more, r.text));
        assert_eq!(reply(b"220 hi"), Ok((220, false, &b"hi"[..])));
        assert_eq!(reply(b"220-hi"), Ok((220, true, &b"hi"[..])));
        assert_eq!(reply(b"220"), Ok((220, false, &b""[..])));
        assert_eq!(reply(b"220x"), Err("invalid reply line"));
        assert_eq!(reply(b"099 x"), Err("invalid reply code"));
        assert_eq!(reply(b"hello"), Err("non-numeric reply code"));
        assert_eq!(Reply::last_line(b"220  end", 220), Some(&b"end"[..]));
        assert_eq!(Reply::last_line(b"220-more", 220), None);
    }

    fn v4(b: [u8; 4], port: u16) -> Option<Endpoint> {
        Some(Endpoint { addr: Addr::v4(b), port })
    }

    #[test]
    fn endpoints_of_rfc_959() {
        assert_eq!(Endpoint::from_port(b"10,0,0,1,4,31"), v4([10, 0, 0, 1], 1055));
        assert_eq!(Endpoint::from_port(b"10,0,0,1,4,256"), None);
        assert_eq!(Endpoint::from_port(b"10,0,0,1,4"), None);
        assert_eq!(Endpoint::from_pasv(b"Entering (10,0,0,1,4,31)."), v4([10, 0, 0, 1], 1055));
        assert_eq!(Endpoint::from_pasv(b"=10,0,0,1,4,31"), v4([10, 0, 0, 1], 1055));
        assert_eq!(Endpoint::from_pasv(b"PORT 10,0,0,1,4,31"), v4([10, 0, 0, 1], 1055));
        assert_eq!(Endpoint::from_pasv(b"PORT"), None);
        assert_eq!(Endpoint::from_pasv(b""), None);
    }

    #[test]
    fn endpoints_of_rfc_2428() {
        assert_eq!(Endpoint::from_eprt(b"|1|10.0.0.1|1055|"), v4([10, 0, 0, 1], 1055));
        assert_eq!(Endpoint::from_eprt(b"|1|010.000.0.01|1055|"), v4([10, 0, 0, 1], 1055));
        assert_eq!(Endpoint::from_eprt(b"|1|10.0.0.1x|1055|"), None);
        let six = Endpoint::from_eprt(b"|2|2001:db8::1|1055|");
        assert_eq!(six.map(|e| e.addr.to_string()).as_deref(), Some("2001:db8::1"));
        let own = Some(Endpoint { addr: Addr::v6([0; 16]), port: 57086 });
        assert_eq!(Endpoint::from_epsv(b"Extended (|||57086|)"), own);
        assert_eq!(Endpoint::from_epsv(b"Extended |||57086|"), None);
        assert_eq!(Endpoint::from_eprt(b"|1|10.0.0.1|99999|"), None);
        assert_eq!(Endpoint::from_eprt(b"|1|nonsense|99|"), None);
    }

    proptest! {
        #[test]
        fn port_round_trips(b: [u8; 4], port: u16) {
            let [h, l] = port.to_be_bytes();
            let text = format!("{},{},{},{},{h},{l}", b[0], b[1], b[2], b[3]);
            let shortest = text.len() >= 11;
            prop_assert_eq!(Endpoint::from_port(text.as_bytes()), v4(b, port).filter(|_| shortest));
        }

        #[test]
        fn any_bytes_are_parsed(text: Vec<u8>) {
            let _ = (Request::parse(&text), Reply::parse(&text));
            let _ = (Endpoint::from_pasv(&text), Endpoint::from_epsv(&text));
            let _ = (Endpoint::from_eprt(&text), Endpoint::from_port(&text));
        }
    }
}
