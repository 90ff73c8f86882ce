//! Tokens of signature files.

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// `!`, `[`, `]`, `{`, `}`, `&`, `:`, `,` or `-`.
    Sign(u8),
    /// A comparison.
    Compare(super::rules::Comparison),
    /// A name, including keywords.
    Word(String),
    Number(u32),
    /// An IPv4 address with a mask.
    Ip(u32, u32),
    /// An IPv6 address with a prefix length.
    Ip6([u8; 16], u8),
    /// The text between quotes, escapes not resolved.
    Text(Vec<u8>),
    /// The text between slashes, in the syntax of pattern sets.
    Pattern(Vec<u8>),
    End,
}

/// Reads tokens.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    /// Number of line ends so far.
    pub(super) line: u32,
    /// Characters that begin no token, each with its line number.
    pub(super) invalid: Vec<(u32, u8)>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 0, invalid: Vec::new() }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips blanks, comments and lines that begin with a dot.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            match rest {
                [b' ' | b'\t', ..] => self.at += 1,
                [b'\n', ..] => {
                    self.at += 1;
                    self.line += 1;
                }
                [b'\r', b'\n', ..] => {
                    self.at += 2;
                    self.line += 1;
                }
                [b'#', ..] => self.at += find(rest, |b| b == b'\n').unwrap_or(rest.len()),
                [b'.', ..] => match dot_line(rest) {
                    Some(len) => self.at += len,
                    None => return,
                },
                _ => return,
            }
        }
    }

    pub(super) fn next(&mut self) -> Token {
        loop {
            self.skip();
            let rest = self.rest();
            let Some(first) = rest.first() else { return Token::End };
            if let Some((token, len)) = token(rest) {
                let used = rest.get(..len).unwrap_or_default();
                self.line += used.iter().filter(|b| **b == b'\n').count() as u32;
                self.at += len.max(1);
                return token;
            }
            self.invalid.push((self.line, *first));
            self.at += 1;
        }
    }

    /// The name of a global of scripts. Unlike other names it contains no hyphens.
    pub(super) fn global(&mut self) -> Option<String> {
        self.skip();
        let len = word(self.rest(), false)?;
        let name = self.rest().get(..len)?;
        self.at += len;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

/// The script identifiers that a file refers to: functions in `eval`, events in `event`.
#[must_use]
pub fn references(text: &[u8]) -> Vec<String> {
    let mut lexer = Lexer::new(text);
    let mut names = Vec::new();
    loop {
        match lexer.next() {
            Token::End => return names,
            Token::Word(word) if word == "eval" => names.extend(lexer.global()),
            Token::Word(word) if word == "event" => {
                if let Token::Word(name) = lexer.next() {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
}

fn find(bytes: &[u8], is: impl Fn(u8) -> bool) -> Option<usize> {
    bytes.iter().position(|b| is(*b))
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

/// The length of a line that begins with a dot and a word, which is a comment.
fn dot_line(rest: &[u8]) -> Option<usize> {
    let line = rest.get(..find(rest, |b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len()))?;
    let word = find(line, is_blank)?;
    let text = line.get(word..)?.iter().position(|b| !is_blank(*b))?;
    (word > 1).then_some(())?;
    (word + text < line.len()).then_some(line.len())
}

fn token(rest: &[u8]) -> Option<(Token, usize)> {
    use super::rules::Comparison::*;
    let sign = |b| Some((Token::Sign(b), 1));
    match rest {
        [b'[', ..] => ip6(rest).or(Some((Token::Sign(b'['), 1))),
        [b'<', b'=', ..] => Some((Token::Compare(AtMost), 2)),
        [b'>', b'=', ..] => Some((Token::Compare(AtLeast), 2)),
        [b'=', b'=', ..] => Some((Token::Compare(Equal), 2)),
        [b'!', b'=', ..] => Some((Token::Compare(Different), 2)),
        [b'<', ..] => Some((Token::Compare(Less), 1)),
        [b'>', ..] => Some((Token::Compare(Greater), 1)),
        [b'=', ..] => Some((Token::Compare(Equal), 1)),
        [b @ (b'!' | b']' | b'{' | b'}' | b'&' | b':' | b',' | b'-'), ..] => sign(*b),
        [b'"', ..] => text(rest),
        [b'/', ..] => pattern(rest),
        [b'0'..=b'9', ..] => number(rest),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
            let len = word(rest, true)?;
            let name = rest.get(..len)?;
            Some((Token::Word(String::from_utf8_lossy(name).into_owned()), len))
        }
        _ => None,
    }
}

/// The length of a name whose parts are joined by `::`.
fn word(rest: &[u8], hyphens: bool) -> Option<usize> {
    let part = |at: usize| {
        let part = rest.get(at..)?;
        let begins = part.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
        let is_in = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || hyphens && b == b'-';
        begins.then(|| at + find(part, |b| !is_in(b)).unwrap_or(part.len()))
    };
    let mut end = part(0)?;
    while rest.get(end..end + 2) == Some(b"::")
        && let Some(next) = part(end + 2)
    {
        end = next;
    }
    Some(end)
}

fn digits(rest: &[u8]) -> usize {
    find(rest, |b| !b.is_ascii_digit()).unwrap_or(rest.len())
}

/// A number as C reads it: truncated to 32 bits.
fn value(digits: &[u8], base: u64) -> u32 {
    digits.iter().fold(0_u64, |sum, b| {
        let digit = char::from(*b).to_digit(16).unwrap_or(0);
        sum.wrapping_mul(base).wrapping_add(u64::from(digit))
    }) as u32
}

fn number(rest: &[u8]) -> Option<(Token, usize)> {
    if let [b'0', b'x', hex @ ..] = rest {
        let len = find(hex, |b| !b.is_ascii_hexdigit()).unwrap_or(hex.len());
        if len > 0 {
            return Some((Token::Number(value(hex.get(..len)?, 16)), len + 2));
        }
    }
    let (mut at, mut parts) = (digits(rest), 1);
    let first = at;
    while parts < 4 && rest.get(at) == Some(&b'.') {
        let more = digits(rest.get(at + 1..)?);
        if more == 0 {
            break;
        }
        at += 1 + more;
        parts += 1;
    }
    if parts < 4 {
        return Some((Token::Number(value(rest.get(..first)?, 10)), first));
    }
    let text = String::from_utf8_lossy(rest.get(..at)?).into_owned();
    // An invalid address is 255.255.255.255, as in C's `inet_addr`.
    let ip = text.parse::<std::net::Ipv4Addr>().map_or(u32::MAX, u32::from);
    let (bits, len) = match prefix_length(rest.get(at..)?) {
        Some((bits, len)) => (bits, at + len),
        None => (32, at),
    };
    let mask = match bits {
        0 => 0,
        32.. => u32::MAX,
        _ => !(u32::MAX >> bits),
    };
    Some((Token::Ip(ip & mask, mask), len))
}

/// A `/24` with surrounding blanks: prefix length and number of bytes.
fn prefix_length(rest: &[u8]) -> Option<(u32, usize)> {
    let slash = find(rest, |b| !is_blank(b))?;
    (rest.get(slash) == Some(&b'/')).then_some(())?;
    let begin = slash + 1 + find(rest.get(slash + 1..)?, |b| !is_blank(b))?;
    let len = digits(rest.get(begin..)?);
    (len > 0).then(|| (value(rest.get(begin..begin + len).unwrap_or_default(), 10), begin + len))
}

/// An IPv6 address in brackets.
fn ip6(rest: &[u8]) -> Option<(Token, usize)> {
    let end = find(rest, |b| b == b']')?;
    let text = std::str::from_utf8(rest.get(1..end)?).ok()?;
    let text = text.strip_prefix("0x").unwrap_or(text);
    text.contains(':').then_some(())?;
    let address = text.parse::<std::net::Ipv6Addr>().ok()?.octets();
    let (bits, len) = match prefix_length(rest.get(end + 1..)?) {
        Some((bits, len)) => (bits, end + 1 + len),
        None => (128, end + 1),
    };
    let bits = u8::try_from(bits.min(128)).unwrap_or(128);
    Some((Token::Ip6(crate::value::mask(address, bits), bits), len))
}

/// A string on one line; `\"` does not end it.
fn text(rest: &[u8]) -> Option<(Token, usize)> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'\n' | b'\r' => return None,
            b'\\' if rest.get(at + 1) == Some(&b'"') && closes(rest.get(at + 2..)?) => at += 2,
            b'"' => return Some((Token::Text(rest.get(1..at)?.to_vec()), at + 1)),
            _ => at += 1,
        }
    }
}

/// Whether another quote follows on the line.
fn closes(rest: &[u8]) -> bool {
    find(rest, |b| matches!(b, b'"' | b'\n' | b'\r')).is_some_and(|at| rest.get(at) == Some(&b'"'))
}

/// A pattern up to the last slash that may end it; an escaped slash may not.
fn pattern(rest: &[u8]) -> Option<(Token, usize)> {
    /// States of the scanner, one bit each.
    const ANY: u8 = 1;
    const FIRST: u8 = 2;
    const FIRST_SLASH: u8 = 4;
    const BACKSLASH: u8 = 8;
    const SLASH: u8 = 16;
    const CLOSED: u8 = 32;
    let (mut state, mut end, mut insensitive) = (ANY | FIRST, None, false);
    for (at, b) in rest.iter().enumerate().skip(1) {
        let mut next = 0;
        if state & ANY != 0 {
            next |= if *b == b'/' { CLOSED } else { ANY };
            next |= if *b == b'\\' { 0 } else { BACKSLASH };
        }
        if state & FIRST != 0 && *b == b'\\' {
            next |= FIRST_SLASH;
        }
        if state & BACKSLASH != 0 && *b == b'\\' {
            next |= SLASH;
        }
        if state & (SLASH | FIRST_SLASH) != 0 && *b == b'/' {
            next |= ANY;
        }
        if state & CLOSED != 0 && *b == b'i' {
            (end, insensitive) = (Some(at), true);
        }
        if next & CLOSED != 0 {
            (end, insensitive) = (Some(at), false);
        }
        state = next;
        if state == 0 {
            break;
        }
    }
    let end = end?;
    let body = rest.get(1..end - usize::from(insensitive))?;
    let body = if insensitive { [b"(?i:", body, b")"].concat() } else { body.to_vec() };
    Some((Token::Pattern(body), end + 1))
}

#[cfg(test)]
mod tests {
    use super::super::rules::Comparison;
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut all = Vec::new();
        loop {
            match lexer.next() {
                Token::End => return all,
                token => all.push(token),
            }
        }
    }

    #[test]
    fn names_numbers_and_addresses() {
        let word = |w: &str| Token::Word(w.to_owned());
        assert_eq!(tokens("dst-port A::b-c"), [word("dst-port"), word("A::b-c")]);
        assert_eq!(tokens("0x1F 17"), [Token::Number(31), Token::Number(17)]);
        let net = Token::Ip(0x0a00_0000, 0xff00_0000);
        assert_eq!(tokens("10.1.2.3 / 8,1"), [net, Token::Sign(b','), Token::Number(1)]);
        let mut base = [0; 16];
        base[..2].copy_from_slice(&[0xfe, 0x80]);
        assert_eq!(tokens("[fe80::1]/16"), [Token::Ip6(base, 16)]);
        assert_eq!(tokens("[0:4]")[0], Token::Sign(b'['));
        assert_eq!(
            tokens("<= !="),
            [Token::Compare(Comparison::AtMost), Token::Compare(Comparison::Different)]
        );
    }

    #[test]
    fn patterns_end_at_a_slash_that_nothing_escapes() {
        let pattern = |text: &str| match tokens(text).first() {
            Some(Token::Pattern(body)) => String::from_utf8_lossy(body).into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(pattern(r"/a\/b/ # x"), r"a\/b");
        assert_eq!(pattern(r"/\/x/"), r"\/x");
        assert_eq!(pattern(r"/a\/\/b/"), r"a\/\/b");
        assert_eq!(pattern(r"/xX/i"), r"(?i:xX)");
        assert_eq!(pattern("/a/\n/b/"), "a");
        assert_eq!(tokens("/open").len(), 1);
    }

    #[test]
    fn comments_and_lines() {
        let mut lexer = Lexer::new(b"# one\n.note two three\n x \"a\\\"b\"\n$y");
        assert_eq!(lexer.next(), Token::Word("x".to_owned()));
        assert_eq!(lexer.line, 2);
        assert_eq!(lexer.next(), Token::Text(b"a\\\"b".to_vec()));
        assert_eq!(lexer.next(), Token::Word("y".to_owned()));
        assert_eq!(lexer.invalid, [(3, b'$')]);
    }

    #[test]
    fn references_are_functions_and_events() {
        let text = b"signature a { eval M::f event E::x \"m\" event \"only\" }";
        assert_eq!(references(text), ["M::f", "E::x"]);
    }
}
