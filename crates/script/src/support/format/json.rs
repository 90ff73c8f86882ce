//! JSON: strings and numbers as Zeek writes them, and a parser that reports the errors of the library that Zeek
//! uses.
//!
//! ```
//! use gannet_script::support::format::json::{self, Json};
//!
//! let mut out = Vec::new();
//! json::string(&mut out, b"a \"b\"\n\xff"); // quoted and escaped; bytes that are not UTF-8 become \xNN
//! assert_eq!(out, br#""a \"b\"\n\\xff""#);
//!
//! assert_eq!(json::parse(b"[1, -2.5]"), Ok(Json::Array(vec![Json::Count(1), Json::Double(-2.5)])));
//! let error = json::parse(b"{\"a\" 1}").unwrap_err();
//! assert_eq!(error.to_string(), "JSON parse error: Missing a colon after a name of object member. Offset: 5");
//! ```

use std::fmt;
use std::io::Write;

pub use super::number::double_of_json as number;

use super::escape::utf8;

/// Appends a string of arbitrary bytes as a quoted JSON string.
pub fn string(out: &mut Vec<u8>, string: &[u8]) {
    quoted(out, &utf8(string));
}

/// Appends UTF-8 text as a quoted JSON string.
pub fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0a => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x0d => out.extend_from_slice(b"\\r"),
            0..0x20 => drop(write!(out, "\\u{byte:04X}")),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A nonnegative integer.
    Count(u64),
    /// A negative integer.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// A string.
    String(Vec<u8>),
    /// An array.
    Array(Vec<Json>),
    /// An object: its members in order, including duplicate names.
    Object(Vec<(Vec<u8>, Json)>),
}

/// The reason why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The error message.
    pub message: &'static str,
    /// Offset in bytes.
    pub offset: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JSON parse error: {} Offset: {}", self.message, self.offset)
    }
}

/// Maximum nesting depth of arrays and objects.
const MAX_DEPTH: usize = 2_000;

/// Parses one value, which only blanks may surround.
///
/// # Errors
///
/// The first error, with Zeek's message.
pub fn parse(text: &[u8]) -> Result<Json, ParseError> {
    let mut parser = Parser { text, at: 0 };
    parser.blanks();
    if parser.peek().is_none() {
        return parser.error("The document is empty.");
    }
    let value = parser.value()?;
    parser.blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => parser.error("The document root must not be followed by other values."),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

/// An unfinished container.
enum Open {
    Array(Vec<Json>),
    Object(Vec<(Vec<u8>, Json)>, Vec<u8>),
}

impl Parser<'_> {
    /// The next byte, or `None` at the end. A NUL byte ends the text.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied().filter(|b| *b != 0)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn error<T>(&self, message: &'static str) -> Result<T, ParseError> {
        Err(ParseError { message, offset: self.at })
    }

    fn value(&mut self) -> Result<Json, ParseError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut value = match self.peek() {
                Some(b'[') => {
                    self.at += 1;
                    self.blanks();
                    if self.eat(b']') {
                        Json::Array(Vec::new())
                    } else {
                        open.push(Open::Array(Vec::new()));
                        if open.len() > MAX_DEPTH {
                            return self.error("Terminate parsing due to Handler error.");
                        }
                        continue;
                    }
                }
                Some(b'{') => {
                    self.at += 1;
                    self.blanks();
                    if self.eat(b'}') {
                        Json::Object(Vec::new())
                    } else {
                        let name = self.name()?;
                        open.push(Open::Object(Vec::new(), name));
                        if open.len() > MAX_DEPTH {
                            return self.error("Terminate parsing due to Handler error.");
                        }
                        continue;
                    }
                }
                _ => self.scalar()?,
            };
            // A value is complete, and so may be the enclosing containers.
            loop {
                match open.pop() {
                    None => return Ok(value),
                    Some(Open::Array(mut items)) => {
                        items.push(value);
                        self.blanks();
                        if self.eat(b',') {
                            self.blanks();
                            open.push(Open::Array(items));
                            break;
                        } else if self.eat(b']') {
                            value = Json::Array(items);
                        } else {
                            return self.error("Missing a comma or ] after an array element.");
                        }
                    }
                    Some(Open::Object(mut members, name)) => {
                        members.push((name, value));
                        self.blanks();
                        if self.eat(b',') {
                            self.blanks();
                            let name = self.name()?;
                            open.push(Open::Object(members, name));
                            break;
                        } else if self.eat(b'}') {
                            value = Json::Object(members);
                        } else {
                            return self.error("Missing a comma or } after an object member.");
                        }
                    }
                }
            }
        }
    }

    fn name(&mut self) -> Result<Vec<u8>, ParseError> {
        if self.peek() != Some(b'"') {
            return self.error("Missing a name for object member.");
        }
        let name = self.string()?;
        self.blanks();
        if !self.eat(b':') {
            return self.error("Missing a colon after a name of object member.");
        }
        self.blanks();
        Ok(name)
    }

    fn scalar(&mut self) -> Result<Json, ParseError> {
        match self.peek() {
            Some(b'n') => self.word(b"null", Json::Null),
            Some(b't') => self.word(b"true", Json::Bool(true)),
            Some(b'f') => self.word(b"false", Json::Bool(false)),
            Some(b'"') => self.string().map(Json::String),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], value: Json) -> Result<Json, ParseError> {
        for byte in word {
            if !self.eat(*byte) {
                return self.error("Invalid value.");
            }
        }
        Ok(value)
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - from
    }

    fn number(&mut self) -> Result<Json, ParseError> {
        let from = self.at;
        let negative = self.eat(b'-');
        // Only a decimal point or an exponent may follow a leading zero.
        if !self.eat(b'0') && self.digits() == 0 {
            return self.error("Invalid value.");
        }
        let mut integral = true;
        if self.eat(b'.') {
            integral = false;
            if self.digits() == 0 {
                return self.error("Miss fraction part in number.");
            }
        }
        if self.eat(b'e') || self.eat(b'E') {
            integral = false;
            let _ = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return self.error("Miss exponent in number.");
            }
        }
        let text = self
            .text
            .get(from..self.at)
            .and_then(|t| std::str::from_utf8(t).ok())
            .unwrap_or_default();
        if integral {
            if let Ok(count) = text.parse::<u64>() {
                return Ok(Json::Count(count));
            }
            if let Ok(int) = text.parse::<i64>() {
                return Ok(if int == 0 && negative { Json::Count(0) } else { Json::Int(int) });
            }
        }
        match text.parse::<f64>() {
            Ok(double) if double.is_finite() => Ok(Json::Double(double)),
            _ => {
                Err(ParseError { message: "Number too big to be stored in double.", offset: from })
            }
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, ParseError> {
        self.at += 1;
        let mut string = Vec::new();
        loop {
            match self.peek() {
                None => return self.error("Missing a closing quotation mark in string."),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => self.escape(&mut string)?,
                Some(0..0x20) => return self.error("Invalid encoding in string."),
                Some(byte) => {
                    self.at += 1;
                    string.push(byte);
                }
            }
        }
    }

    fn escape(&mut self, string: &mut Vec<u8>) -> Result<(), ParseError> {
        let from = self.at;
        let error = |message| Err(ParseError { message, offset: from });
        self.at += 1;
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.at += 1;
                const HEX: &str = "Incorrect hex digit after \\u escape in string.";
                let Some(mut code) = self.hex() else { return error(HEX) };
                if (0xd800..0xe000).contains(&code) {
                    const PAIR: &str = "The surrogate pair in string is invalid.";
                    if code >= 0xdc00 || !(self.eat(b'\\') && self.eat(b'u')) {
                        return error(PAIR);
                    }
                    let Some(low) = self.hex() else { return error(HEX) };
                    if !(0xdc00..0xe000).contains(&low) {
                        return error(PAIR);
                    }
                    code = 0x1_0000 + ((code - 0xd800) << 10 | (low - 0xdc00));
                }
                let char = char::from_u32(code).unwrap_or('\u{fffd}');
                string.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return error("Invalid escape character in string."),
        };
        self.at += 1;
        string.push(byte);
        Ok(())
    }

    fn hex(&mut self) -> Option<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code << 4 | char::from(self.peek()?).to_digit(16)?;
            self.at += 1;
        }
        Some(code)
    }
}
