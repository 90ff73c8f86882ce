//! Text to tokens: the longest match wins, as in the scanner of libpcap.

use crate::error::{Problem, Span};
use crate::keyword::{self, Word};

/// A token. Texts are those of the expression, without the backslash that keeps a name from being
/// a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Word(Word),
    Number(u32),
    /// A name.
    Name(&'a str),
    /// `N.N`, `N.N.N` or `N.N.N.N`.
    V4(&'a str),
    V6(&'a str),
    Mac(&'a str),
    /// `$XX`, an address of eight bits.
    Mac8(&'a str),
    /// The name after `@`.
    File(&'a str),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) span: Span,
}

const SIGNS: &[(&str, &str)] = &[
    ("&&", "and"),
    ("||", "or"),
    (">=", ">="),
    ("<=", "<="),
    ("!=", "!="),
    ("==", "="),
    ("<<", "<<"),
    (">>", ">>"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    (":", ":"),
    ("[", "["),
    ("]", "]"),
    ("!", "not"),
    ("<", "<"),
    (">", ">"),
    ("(", "("),
    (")", ")"),
    ("&", "&"),
    ("|", "|"),
    ("^", "^"),
    ("=", "="),
    ("{", "{"),
    ("}", "}"),
    (",", ","),
];

/// The tokens of a text, with an end.
pub(crate) fn lex(text: &str) -> Result<Vec<Token<'_>>, Problem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        if rest.starts_with([' ', '\r', '\n', '\t']) {
            at += 1;
            continue;
        }
        if rest.starts_with('#') {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (kind, width) = one(rest, at)?;
        tokens.push(Token { kind, span: Span { at, width } });
        at += width;
    }
    tokens.push(Token { kind: Kind::End, span: Span { at: text.len(), width: 0 } });
    Ok(tokens)
}

fn one(rest: &str, at: usize) -> Result<(Kind<'_>, usize), Problem> {
    let bytes = rest.as_bytes();
    let fail = |message: String, width| Err(Problem::new(message, Span { at, width }));
    if bytes[0] == b'\\' {
        let width = bytes[1..].iter().position(|b| b" !()\n\t".contains(b));
        let width = width.unwrap_or(bytes.len() - 1);
        if width > 0 {
            return Ok((Kind::Name(&rest[1..=width]), width + 1));
        }
    }
    if bytes[0] == b'$' {
        let width = bytes[1..].iter().take(2).take_while(|b| b.is_ascii_hexdigit()).count();
        if width > 0 {
            return Ok((Kind::Mac8(&rest[..=width]), width + 1));
        }
    }
    if bytes[0] == b'@' {
        let width = bytes[1..].iter().position(|b| b" ,}()\r\n\t".contains(b));
        let width = width.unwrap_or(bytes.len() - 1);
        if width > 0 {
            return Ok((Kind::File(&rest[1..=width]), width + 1));
        }
    }
    // Of equally long matches, the first in this order wins.
    let name = name(bytes);
    let mut best = (0, 0);
    for (rank, width) in [
        (1, keyword::of(&rest[..name]).map_or(0, |_| name)),
        (2, mac(bytes)),
        (3, number(bytes)),
        (4, v4(bytes)),
        (5, if bytes.iter().take(5).any(|b| *b == b':') { v6(rest) } else { 0 }),
        (6, bad_mac(bytes)),
        (7, name),
    ] {
        if width > best.1 {
            best = (rank, width);
        }
    }
    let (rank, width) = best;
    let text = &rest[..width];
    Ok((
        match rank {
            1 => match keyword::of(text) {
                Some(Word::Number(n)) => Kind::Number(n),
                Some(Word::And) => Kind::Sign("and"),
                Some(Word::Or) => Kind::Sign("or"),
                Some(Word::Not) => Kind::Sign("not"),
                Some(word) => Kind::Word(word),
                None => Kind::Name(text),
            },
            2 => Kind::Mac(text),
            3 => match to_number(text) {
                Ok(n) => Kind::Number(n),
                Err(message) => return fail(message, width),
            },
            4 => Kind::V4(text),
            5 if text.parse::<std::net::Ipv6Addr>().is_err() => {
                return fail(format!("invalid IPv6 address {text}"), width);
            }
            5 => Kind::V6(text),
            6 => return fail(format!("invalid Ethernet address {text}"), width),
            7 => Kind::Name(text),
            _ => match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
                Some((sign, kind)) => return Ok((Kind::Sign(kind), sign.len())),
                None => {
                    let width = rest.chars().next().map_or(1, char::len_utf8);
                    return fail("can't parse filter expression: syntax error".into(), width);
                }
            },
        },
        width,
    ))
}

/// Letters, digits, `-`, `_` and `.`; neither begins with a sign nor ends in `-` or `_`.
fn name(b: &[u8]) -> usize {
    if !b[0].is_ascii_alphanumeric() {
        return 0;
    }
    let run = b.iter().take_while(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c)).count();
    b[..run].iter().rposition(|c| c.is_ascii_alphanumeric() || *c == b'.').map_or(0, |i| i + 1)
}

fn hexes(b: &[u8], max: usize) -> usize {
    b.iter().take(max).take_while(|c| c.is_ascii_hexdigit()).count()
}

/// `xx:xx:xx:xx:xx:xx` with `:`, `-` or `.`, `xxxx.xxxx.xxxx` or twelve digits.
fn mac(b: &[u8]) -> usize {
    let grouped = |sep: u8, groups: usize, least: usize, max: usize| {
        let mut at = 0;
        for group in 0..groups {
            if group > 0 {
                if b.get(at) != Some(&sep) {
                    return 0;
                }
                at += 1;
            }
            let n = hexes(b.get(at..).unwrap_or_default(), max);
            if n < least {
                return 0;
            }
            at += n;
        }
        at
    };
    let twelve = if hexes(b, 12) == 12 { 12 } else { 0 };
    [grouped(b':', 6, 1, 2), grouped(b'-', 6, 1, 2), grouped(b'.', 6, 1, 2), grouped(b'.', 3, 4, 4)]
        .into_iter()
        .fold(twelve, usize::max)
}

fn number(b: &[u8]) -> usize {
    if b[0] == b'0' && matches!(b.get(1), Some(b'x' | b'X')) {
        let n = hexes(&b[2..], usize::MAX);
        if n > 0 {
            return n + 2;
        }
    }
    b.iter().take_while(|c| c.is_ascii_digit()).count()
}

/// Two to four numbers with dots between.
fn v4(b: &[u8]) -> usize {
    let (mut at, mut groups, mut end) = (0, 0, 0);
    while groups < 4 {
        let n = b.get(at..).filter(|r| !r.is_empty()).map_or(0, number);
        if n == 0 {
            break;
        }
        at += n;
        groups += 1;
        if groups > 1 {
            end = at;
        }
        if b.get(at) != Some(&b'.') {
            break;
        }
        at += 1;
    }
    end
}

fn v6(text: &str) -> usize {
    // 8 groups of 4 with 7 colons, the last two as four long numbers.
    const LONGEST: usize = 64;
    let run = text.bytes().take(LONGEST).take_while(|c| c.is_ascii_hexdigit() || b":.".contains(c));
    let run = run.count();
    (2..=run).rev().find(|n| v6_shape(&text[..*n])).unwrap_or(0)
}

fn v6_shape(s: &str) -> bool {
    let groups = |part: &str, dotted: bool| -> Option<usize> {
        if part.is_empty() {
            return Some(0);
        }
        let count = part.split(':').count();
        let mut sum = 0;
        for (i, group) in part.split(':').enumerate() {
            let hex = (1..=4).contains(&group.len()) && hexes(group.as_bytes(), 4) == group.len();
            let last = dotted && i + 1 == count && group.matches('.').count() == 3;
            sum += match () {
                () if hex => 1,
                () if last && v4(group.as_bytes()) == group.len() => 2,
                () => return None,
            };
        }
        Some(sum)
    };
    match s.split_once("::") {
        Some((left, right)) => {
            groups(left, false).zip(groups(right, true)).is_some_and(|(l, r)| l + r <= 7)
        }
        None => groups(s, true) == Some(8),
    }
}

/// Length of a malformed address: at least two groups followed by colons.
fn bad_mac(b: &[u8]) -> usize {
    let (mut at, mut groups) = (0, 0);
    loop {
        let rest = b.get(at..).unwrap_or_default();
        let digits = hexes(rest, 2);
        let colons = rest[digits..].iter().take_while(|c| **c == b':').count();
        if digits == 0 || colons == 0 {
            break;
        }
        at += digits + colons;
        groups += 1;
    }
    if groups >= 2 { at } else { 0 }
}

/// The value of a number: decimal, octal after `0`, hexadecimal after `0x`.
pub(crate) fn to_number(text: &str) -> Result<u32, String> {
    let (digits, radix, kind) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16, "hexadecimal"),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8, "octal"),
        None => (text, 10, "decimal"),
    };
    // From the left, as in libpcap: the first error is reported.
    let mut number = 0_u32;
    for c in digits.chars() {
        let Some(digit) = c.to_digit(radix) else {
            let kind = if radix == 16 { "hex" } else { kind };
            return Err(format!("number {text} contains non-{kind} digit"));
        };
        number = (number.checked_mul(radix))
            .and_then(|n| n.checked_add(digit))
            .ok_or_else(|| format!("{kind} number {text} overflows 32 bits"))?;
    }
    if digits.is_empty() {
        return Err(format!("{kind} number {text} overflows 32 bits"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        let mut all: Vec<_> = lex(text).unwrap().into_iter().map(|t| t.kind).collect();
        all.pop();
        all
    }

    #[test]
    fn the_longest_match_wins() {
        assert_eq!(kinds("0x10 010 10"), [Kind::Number(16), Kind::Number(8), Kind::Number(10)]);
        assert_eq!(kinds("1.2.3.4.5.6"), [Kind::Mac("1.2.3.4.5.6")]);
        assert_eq!(kinds("1.2.3.4"), [Kind::V4("1.2.3.4")]);
        assert_eq!(kinds("012345670123"), [Kind::Mac("012345670123")]);
        assert_eq!(kinds("len-4"), [Kind::Name("len-4")]);
        assert_eq!(kinds("tcp-syn"), [Kind::Number(2)]);
        assert_eq!(kinds("::1"), [Kind::V6("::1")]);
        assert_eq!(kinds("\\tcp"), [Kind::Name("tcp")]);
        assert_eq!(kinds("$1f"), [Kind::Mac8("$1f")]);
        assert_eq!(kinds("a==b"), [Kind::Name("a"), Kind::Sign("="), Kind::Name("b")]);
        assert_eq!(lex("08").unwrap_err().message, "number 08 contains non-octal digit");
        assert_eq!(
            lex("003777777777778").unwrap_err().message,
            "octal number 003777777777778 overflows 32 bits"
        );
        assert_eq!(
            lex("4294967296").unwrap_err().message,
            "decimal number 4294967296 overflows 32 bits"
        );
    }
}
