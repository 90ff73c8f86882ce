//! The lexer: bytes of one file to tokens.
//!
//! The lexer returns the longest token, as Zeek's scanner does: `5 min` is an interval, `10.0.0.0 / 8` a
//! subnet, `[::1]` an address. It never decides whether a `/` divides or begins a pattern: the parser does, and
//! calls [`Lexer::pattern`] after the slash. A directive is a token; the parser reads the rest of its line with
//! [`Lexer::rest_of_line`] and skips the text of false conditions with [`Lexer::skip_conditional`].

mod number;
mod token;

use std::rc::Rc;

use crate::literal::{Literal, PatternSource};
use crate::types::AttrKind;
pub use token::{Directive, Op, Token, Word};

/// A token with its span and its error, if any.
#[derive(Clone, Debug)]
pub struct Lexed {
    /// The token.
    pub token: Token,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
    /// Its line.
    pub line: u32,
    /// Error to report, on the line of the token.
    pub error: Option<LexError>,
}

/// The error of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LexError {
    /// An error; lexing continues with a replacement token.
    Error(String),
    /// An error that ends parsing.
    Fatal(String),
}

/// Lexer of one file.
#[derive(Clone, Debug)]
pub struct Lexer {
    text: Rc<[u8]>,
    position: usize,
    line: u32,
}

impl Lexer {
    /// A lexer at the beginning of `text`.
    #[must_use]
    pub fn new(text: Rc<[u8]>) -> Self {
        Self { text, position: 0, line: 1 }
    }

    /// Current line.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Offset of the next byte.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The bytes from `start` to `end`.
    #[must_use]
    pub fn slice(&self, start: u32, end: u32) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// The next token.
    pub fn next_token(&mut self) -> Lexed {
        self.skip_blanks();
        let start = self.position;
        let (token, error) = self.scan();
        Lexed { token, start: offset(start), end: offset(self.position), line: self.line, error }
    }

    /// The pattern whose opening slash was the last token: the text up to the closing slash, and its flags.
    /// `None` at the end of the file.
    ///
    /// # Errors
    /// A message if the pattern does not end or has invalid flags.
    pub fn pattern(&mut self) -> Result<Option<PatternSource>, String> {
        let start = self.position;
        loop {
            match self.peek(0) {
                None => return Ok(None),
                Some(b'\n') => return Err("pattern not terminated before end of line".to_owned()),
                Some(b'/') => break,
                Some(b'\\') if self.peek(1).is_some_and(|byte| byte != b'\n') => self.position += 2,
                Some(b'\\') => return Err("pattern not terminated before end of line".to_owned()),
                Some(_) => self.position += 1,
            }
        }
        let text: Rc<[u8]> = self.text[start..self.position].into();
        self.position += 1;
        let flags = self.position;
        while matches!(self.peek(0), Some(b'i' | b's')) && self.position - flags < 2 {
            self.position += 1;
        }
        let flags = &self.text[flags..self.position];
        if flags.len() == 2 && flags[0] == flags[1] {
            return Err(format!("pattern has duplicate '{}' modifier", char::from(flags[0])));
        }
        Ok(Some(PatternSource {
            text,
            case_insensitive: flags.contains(&b'i'),
            single_line: flags.contains(&b's'),
        }))
    }

    /// Whether the rest of the line is blank.
    #[must_use]
    pub fn rest_is_blank(&self) -> bool {
        self.text.get(self.position..).unwrap_or(&[]).trim_ascii().is_empty()
    }

    /// The rest of the line without surrounding blanks. The line end is not consumed.
    pub fn rest_of_line(&mut self) -> String {
        let start = self.position;
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.position += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.position]).trim().to_owned()
    }

    /// The next word of the line, up to a blank.
    pub fn word(&mut self) -> String {
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.position += 1;
        }
        let start = self.position;
        while self.peek(0).is_some_and(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.position]).into_owned()
    }

    /// Skips text until the `@else` or `@endif` of the current condition, and returns that directive; `None` at
    /// the end of the file.
    pub fn skip_conditional(&mut self) -> Option<Directive> {
        let mut depth = 0_usize;
        loop {
            match self.peek(0)? {
                b'\n' => self.bump(),
                b'@' => match directive(&self.text[self.position..]) {
                    Some((length, found)) => {
                        self.position += length;
                        match found {
                            Directive::If | Directive::IfDef | Directive::IfNotDef => depth += 1,
                            Directive::Else if depth == 0 => return Some(found),
                            Directive::EndIf if depth == 0 => return Some(found),
                            Directive::EndIf => depth -= 1,
                            _ => {}
                        }
                    }
                    None => self.position += 1,
                },
                _ => self.position += 1,
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.position + ahead).copied()
    }

    fn bump(&mut self) {
        if self.peek(0) == Some(b'\n') {
            self.line += 1;
        }
        self.position += 1;
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c => self.bump(),
                b'#' => {
                    while self.peek(0).is_some_and(|byte| byte != b'\n') {
                        self.position += 1;
                    }
                }
                _ => break,
            }
        }
    }

    fn scan(&mut self) -> (Token, Option<LexError>) {
        let rest = &self.text[self.position..];
        let Some(&first) = rest.first() else { return (Token::End, None) };
        if first.is_ascii_digit() || (first == b'.' && rest.get(1).is_some_and(u8::is_ascii_digit))
        {
            let (length, token, error) = number::scan(rest);
            self.position += length;
            return (token, error);
        }
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.identifier(),
            b':' if rest.get(1) == Some(&b':')
                && rest.get(2).is_some_and(|byte| is_letter(*byte)) =>
            {
                self.position += 2 + identifier_length(&rest[2..]);
                return (Token::Ident, None);
            }
            b'"' => return self.string(),
            b'[' => {
                if let Some((length, token, error)) = number::bracketed(rest) {
                    self.position += length;
                    return (token, error);
                }
            }
            b'@' => {
                if let Some((length, found)) = directive(rest) {
                    self.position += length;
                    return (Token::Directive(found), None);
                }
            }
            b'&' => {
                if let Some((length, kind)) = attribute(rest) {
                    self.position += length;
                    return (Token::Attr(kind), None);
                }
            }
            b'!' => {
                let blanks =
                    rest[1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                let word = &rest[1 + blanks..];
                if word.starts_with(b"in")
                    && !word.get(2).is_some_and(|byte| is_letter(*byte) || byte.is_ascii_digit())
                {
                    self.position += 3 + blanks;
                    return (Token::Op(Op::NotIn), None);
                }
            }
            b'?' if rest[1..].starts_with(b"as")
                && !rest.get(3).is_some_and(|byte| is_letter(*byte) || byte.is_ascii_digit()) =>
            {
                self.position += 3;
                return (Token::Op(Op::CanCast), None);
            }
            _ => {}
        }
        for (text, op) in token::OPS {
            if rest.starts_with(text) && !matches!(op, Op::NotIn | Op::CanCast) {
                self.position += text.len();
                return (Token::Op(*op), None);
            }
        }
        self.position += 1;
        (Token::Bad, Some(LexError::Error(format!("unrecognized character: '{}'", escaped(first)))))
    }

    fn identifier(&mut self) -> (Token, Option<LexError>) {
        let rest = &self.text[self.position..];
        let mut length = identifier_length(rest);
        if let Some(host) = number::host(rest).filter(|host| *host > length) {
            let text = String::from_utf8_lossy(&rest[..host]).into_owned();
            self.position += host;
            return (Token::Bad, Some(number::host_literal(&text)));
        }
        let mut parts = 1;
        while rest[length..].starts_with(b"::")
            && rest.get(length + 2).is_some_and(|byte| is_letter(*byte))
        {
            length += 2 + identifier_length(&rest[length + 2..]);
            parts += 1;
        }
        let text = &rest[..length];
        let token = match text {
            b"T" => Token::Literal(Literal::Bool(true)),
            b"F" => Token::Literal(Literal::Bool(false)),
            text if parts == 1 => Word::from_text(text).map_or(Token::Ident, Token::Word),
            _ => Token::Ident,
        };
        self.position += length;
        (token, None)
    }

    fn string(&mut self) -> (Token, Option<LexError>) {
        let start = self.position;
        let mut bytes = Vec::new();
        self.position += 1;
        loop {
            match self.peek(0) {
                None | Some(b'\n') => {
                    self.position = start + 1;
                    return (
                        Token::Bad,
                        Some(LexError::Error("unrecognized character: '\"'".to_owned())),
                    );
                }
                Some(b'"') => {
                    self.position += 1;
                    return (Token::Literal(Literal::String(bytes.into())), None);
                }
                Some(0) => {
                    let text =
                        "strings cannot contain NUL bytes - use a \\x00 escape sequence instead";
                    return (Token::Bad, Some(LexError::Fatal(text.to_owned())));
                }
                Some(b'\\') => {
                    let Some(byte) = self.peek(1).filter(|byte| *byte != b'\n') else {
                        self.position = start + 1;
                        return (
                            Token::Bad,
                            Some(LexError::Error("unrecognized character: '\"'".to_owned())),
                        );
                    };
                    self.position += 2;
                    let value = self.escape(byte);
                    bytes.push(value);
                }
                Some(byte) => {
                    bytes.push(byte);
                    self.position += 1;
                }
            }
        }
    }

    /// The value of the escape sequence that begins with `byte`, which is already consumed.
    fn escape(&mut self, byte: u8) -> u8 {
        match byte {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'v' => 11,
            b'0'..=b'7' => {
                let mut value = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek(0) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    self.position += 1;
                }
                value.to_le_bytes()[0]
            }
            b'x' => {
                let mut value = None;
                for _ in 0..2 {
                    let Some(digit) = self.peek(0).and_then(hex) else { break };
                    value = Some(value.unwrap_or(0) * 16 + digit);
                    self.position += 1;
                }
                value.unwrap_or(b'x')
            }
            other => other,
        }
    }
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn identifier_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_letter(**byte) || byte.is_ascii_digit()).count()
}

fn directive(text: &[u8]) -> Option<(usize, Directive)> {
    token::DIRECTIVES
        .iter()
        .find(|(name, _)| text.starts_with(name))
        .map(|(name, found)| (name.len(), *found))
}

/// The attribute at the beginning of `text`, with its length.
fn attribute(text: &[u8]) -> Option<(usize, AttrKind)> {
    let length =
        1 + text[1..].iter().take_while(|byte| is_letter(**byte) || byte.is_ascii_digit()).count();
    let word = std::str::from_utf8(&text[..length]).ok()?;
    ATTRIBUTES
        .iter()
        .filter(|kind| word.starts_with(kind.name()))
        .max_by_key(|kind| kind.name().len())
        .map(|kind| (kind.name().len(), *kind))
}

const ATTRIBUTES: &[AttrKind] = &[
    AttrKind::Optional,
    AttrKind::Default,
    AttrKind::DefaultInsert,
    AttrKind::Redef,
    AttrKind::AddFunc,
    AttrKind::DeleteFunc,
    AttrKind::ExpireFunc,
    AttrKind::ReadExpire,
    AttrKind::WriteExpire,
    AttrKind::CreateExpire,
    AttrKind::RawOutput,
    AttrKind::Priority,
    AttrKind::Group,
    AttrKind::Log,
    AttrKind::ErrorHandler,
    AttrKind::TypeColumn,
    AttrKind::OnChange,
    AttrKind::PublishOnChange,
    AttrKind::BrokerStore,
    AttrKind::BrokerAllowComplexType,
    AttrKind::Backend,
    AttrKind::Deprecated,
    AttrKind::IsAssigned,
    AttrKind::IsUsed,
    AttrKind::Ordered,
    AttrKind::NoZamOpt,
    AttrKind::NoCppOpt,
];

/// The number of digits at the beginning of `text`.
fn offset_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// A byte as messages show it: in hexadecimal if unprintable.
fn escaped(byte: u8) -> String {
    match byte {
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::{Port, Protocol, Subnet};

    fn tokens(text: &str) -> Vec<Token> {
        let mut lexer = Lexer::new(text.as_bytes().into());
        let mut found = Vec::new();
        loop {
            match lexer.next_token().token {
                Token::End => return found,
                token => found.push(token),
            }
        }
    }

    fn literals(text: &str) -> Vec<Literal> {
        tokens(text)
            .into_iter()
            .filter_map(
                |token| if let Token::Literal(literal) = token { Some(literal) } else { None },
            )
            .collect()
    }

    #[test]
    fn numbers_take_the_longest_form() {
        assert_eq!(
            literals("5 0x1F 5. .5 5e3 99999999999999999999"),
            [
                Literal::Count(5),
                Literal::Count(31),
                Literal::Double(5.0),
                Literal::Double(0.5),
                Literal::Double(5000.0),
                Literal::Count(u64::MAX)
            ]
        );
        assert_eq!(
            literals("5 mins 2.5hr 3msec 1 days"),
            [
                Literal::Interval(300.0),
                Literal::Interval(9000.0),
                Literal::Interval(0.003),
                Literal::Interval(86400.0)
            ]
        );
    }

    #[test]
    fn addresses_and_subnets() {
        let four = |a, b, c, d| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, a, b, c, d];
        assert_eq!(
            literals("10.1.2.3 10.1.2.3 / 8 [::1] [2001:db8::1]/32"),
            [
                Literal::Addr(four(10, 1, 2, 3)),
                Literal::Subnet(Subnet { prefix: four(10, 0, 0, 0), width: 104 }),
                Literal::Addr([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
                Literal::Subnet(Subnet {
                    prefix: [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    width: 32
                }),
            ]
        );
        assert_eq!(tokens("t[a]")[1], Token::Op(Op::BracketLeft));
    }

    #[test]
    fn ports_and_strings() {
        assert_eq!(
            literals(r#"80/tcp 8/icmp "a\x41\101\n\q""#),
            [
                Literal::Port(Port { number: 80, protocol: Protocol::Tcp }),
                Literal::Port(Port { number: 8, protocol: Protocol::Icmp }),
                Literal::String(b"aAA\nq"[..].into()),
            ]
        );
    }

    #[test]
    fn operators_and_words() {
        assert_eq!(
            tokens("! in a !ink ?$ ?as a::b"),
            [
                Token::Op(Op::NotIn),
                Token::Ident,
                Token::Op(Op::Not),
                Token::Ident,
                Token::Op(Op::HasField),
                Token::Op(Op::CanCast),
                Token::Ident,
            ]
        );
        assert_eq!(
            tokens("&default_insert &redef a & b"),
            [
                Token::Attr(AttrKind::DefaultInsert),
                Token::Attr(AttrKind::Redef),
                Token::Ident,
                Token::Op(Op::BitAnd),
                Token::Ident
            ]
        );
    }

    #[test]
    fn skipped_text_counts_nested_conditions() {
        let mut lexer = Lexer::new(b"x @if ( a )\n @else\n @endif\n @else y"[..].into());
        assert_eq!(lexer.skip_conditional(), Some(Directive::Else));
        assert_eq!(lexer.line(), 4);
    }
}
