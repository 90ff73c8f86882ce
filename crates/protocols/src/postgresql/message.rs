//! Parses messages (section "Message Formats").

use crate::support::Bytes;

/// The value of the version field in a TLS request.
const SSL_REQUEST: u32 = 80_877_103;

/// Supported major version of the protocol.
const MAJOR: u8 = 3;

/// Length of the length and version fields of a first message, in bytes.
pub const FIRST_HEADER: usize = 8;

/// The highest authentication type.
const LAST_AUTHENTICATION: u32 = 12;

/// Reason why a message is malformed.
pub type Malformed = &'static str;

/// A message, and a fault in its last part: the parts before it are valid.
pub type ParseResult<M> = Result<(M, Option<Malformed>), Malformed>;

/// The message has data after its last field.
const TRAILING_DATA: Malformed = "extra bytes at the end of a message";

/// The length of a first message, or the number of bytes needed to determine it. For another
/// version or another protocol, the length of the header.
pub fn first_length(data: &[u8]) -> usize {
    match data.first_chunk() {
        Some([a, b, c, d, 0, MAJOR, _, _]) => {
            (u32::from_be_bytes([*a, *b, *c, *d]) as usize).max(FIRST_HEADER)
        }
        _ => FIRST_HEADER,
    }
}

/// Length of a later message including its type, or the number of bytes needed to determine it.
pub fn length(data: &[u8]) -> usize {
    let length = data.get(1..).and_then(<[u8]>::first_chunk);
    length.map_or(5, |b| 1 + (u32::from_be_bytes(*b) as usize).max(4))
}

/// Name and value of a parameter.
pub type Parameter<'a> = (&'a [u8], &'a [u8]);

/// A client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstMessage<'a> {
    /// A TLS request.
    Tls,
    /// A startup message with these parameters.
    Startup(Vec<Parameter<'a>>),
}

impl<'a> FirstMessage<'a> {
    /// Parses a message including its length.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(data: &'a [u8]) -> ParseResult<Self> {
        let mut b = Bytes(data);
        let cut = "truncated startup message";
        let length = b.u32().ok_or(cut)?;
        let code = b.u32().ok_or(cut)?;
        match (length, code) {
            (..8, _) => Err("startup message with an invalid length"),
            (8, SSL_REQUEST) => Ok((Self::Tls, None)),
            _ if code >> 16 != u32::from(MAJOR) => Err("unsupported major version"),
            _ => {
                let (parameters, wrong) = parameters(b.rest());
                Ok((Self::Startup(parameters), wrong))
            }
        }
    }
}

/// All parameters before the first invalid one.
fn parameters(data: &[u8]) -> (Vec<Parameter<'_>>, Option<Malformed>) {
    let mut out = Vec::new();
    let no_end = Some("unterminated startup message");
    let Some((last, mut b)) = data.split_last() else { return (out, no_end) };
    while !b.is_empty() {
        let Some(name) = take_text(&mut b, is_name).filter(|n| !n.is_empty()) else {
            return (out, Some("startup parameter without a name"));
        };
        let Some(value) = take_text(&mut b, is_printable).filter(|v| !v.is_empty()) else {
            return (out, Some("startup parameter without a value"));
        };
        out.push((name, value));
    }
    (out, no_end.filter(|_| *last != 0))
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/')
}

fn is_printable(b: u8) -> bool {
    matches!(b, 0x20..=0x7e)
}

/// Reads text up to a zero byte, if all its bytes satisfy `is`.
fn take_text<'a>(data: &mut &'a [u8], is: fn(u8) -> bool) -> Option<&'a [u8]> {
    let text = take_string(data)?;
    text.iter().all(|b| is(*b)).then_some(text)
}

/// Reads text up to a zero byte.
fn take_string<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (text, rest) = data.split_at_checked(memchr::memchr(0, data)?)?;
    *data = &rest[1..];
    Some(text)
}

/// A client's message after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// `Q`: a query.
    Query(&'a [u8]),
    /// `X`: ends the session.
    Terminate,
    /// Any other type.
    Other(u8),
}

impl<'a> Frontend<'a> {
    /// Parses a message including its type. Of a `cut` message, the end was not stored.
    ///
    /// # Errors
    ///
    /// If its body does not match its type.
    pub fn parse(data: &'a [u8], cut: bool) -> ParseResult<Self> {
        let (ty, mut body) = split(data)?;
        let message = match ty {
            b'X' => Self::Terminate,
            b'Q' if cut => return Ok((Self::Query(body), None)),
            b'Q' => Self::Query(take_string(&mut body).ok_or("unterminated query")?),
            _ => return Ok((Self::Other(ty), None)),
        };
        Ok((message, trailing_data(body)))
    }
}

/// Type of a field (a letter), and its value.
pub type Field<'a> = (u8, &'a [u8]);

/// A server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend<'a> {
    /// `R`: the login succeeded.
    AuthenticationOk,
    /// `R`: the requested authentication type.
    Authentication(u32),
    /// `E`: fields of an error.
    Error(Vec<Field<'a>>),
    /// `E` whose list of fields is not terminated.
    UnterminatedError,
    /// `N`: fields of a notice.
    Notice(Vec<Field<'a>>),
    /// `D`: a data row.
    Row,
    /// `Z`: ready for the next query; with the transaction status.
    Ready(u8),
    /// Any other type.
    Other(u8),
}

impl<'a> Backend<'a> {
    /// Parses a message including its type. Of a `cut` message, the end was not stored.
    ///
    /// # Errors
    ///
    /// If its body does not match its type.
    pub fn parse(data: &'a [u8], cut: bool) -> ParseResult<Self> {
        let (ty, body) = split(data)?;
        let mut b = Bytes(body);
        let message = match ty {
            b'R' => {
                let kind = b.u32().ok_or("authentication message without a type")?;
                match kind {
                    0 if b.is_empty() => Self::AuthenticationOk,
                    0 => return Err("extra bytes after AuthenticationOk"),
                    1..=LAST_AUTHENTICATION => Self::Authentication(kind),
                    _ => return Err("unknown authentication type"),
                }
            }
            b'E' | b'N' => {
                let (fields, end) = fields(body, cut);
                return match (ty, end) {
                    (b'N', end) => Ok((Self::Notice(fields), end.err())),
                    (_, Err(wrong)) if fields.is_empty() && wrong != TRAILING_DATA => Err(wrong),
                    (_, Err(wrong)) if wrong != TRAILING_DATA => {
                        Ok((Self::UnterminatedError, Some(wrong)))
                    }
                    (_, end) => Ok((Self::Error(fields), end.err())),
                };
            }
            b'D' => b.u16().map(|_| Self::Row).ok_or("row without its number of columns")?,
            b'Z' => match body {
                [state @ (b'I' | b'T' | b'E'), rest @ ..] => {
                    return Ok((Self::Ready(*state), trailing_data(rest)));
                }
                _ => return Err("unknown transaction status"),
            },
            b'K' if body.len() < 8 => return Err("truncated BackendKeyData"),
            b'K' => return Ok((Self::Other(ty), trailing_data(&body[8..]))),
            b'S' if !cut => {
                let mut rest = body;
                let name = take_text(&mut rest, is_name).filter(|n| !n.is_empty());
                let value = take_text(&mut rest, is_printable);
                match (name, value, rest) {
                    (Some(_), Some(_), []) => Self::Other(ty),
                    _ => return Err("invalid ParameterStatus"),
                }
            }
            _ => Self::Other(ty),
        };
        Ok((message, None))
    }
}

/// Splits a message into type and body.
fn split(data: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    let mut b = Bytes(data);
    let header = b.u8().zip(b.u32());
    let (ty, length) = header.ok_or("truncated message")?;
    if length < 4 {
        return Err("message with an invalid length");
    }
    Ok((ty, b.rest()))
}

fn trailing_data(rest: &[u8]) -> Option<Malformed> {
    (!rest.is_empty()).then_some(TRAILING_DATA)
}

/// Fields up to the end of the list, or to the first invalid one.
fn fields(mut body: &[u8], cut: bool) -> (Vec<Field<'_>>, Result<(), Malformed>) {
    let mut out = Vec::new();
    loop {
        match body {
            [0, rest @ ..] => return (out, trailing_data(rest).map_or(Ok(()), Err)),
            [] if cut => return (out, Ok(())),
            [] => return (out, Err("unterminated list of fields")),
            [code, rest @ ..] => {
                body = rest;
                match take_string(&mut body) {
                    Some(value) => out.push((*code, value)),
                    None if cut => return (out, Ok(())),
                    None => return (out, Err("unterminated field")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn complete<M>(read: ParseResult<M>) -> Option<M> {
        read.ok().filter(|(_, wrong)| wrong.is_none()).map(|(message, _)| message)
    }

    #[test]
    fn first_messages() {
        let parse = |d| complete(FirstMessage::parse(d));
        assert_eq!(parse(b"\0\0\0\x08\x04\xd2\x16\x2f"), Some(FirstMessage::Tls));
        let startup = b"\0\0\0\x12\0\x03\0\0user\0bob\0\0";
        assert_eq!(first_length(startup), startup.len());
        assert_eq!(parse(startup), Some(FirstMessage::Startup(vec![(b"user", b"bob")])));
        assert_eq!(parse(b"\0\0\0\x09\0\x03\0\x02\0"), Some(FirstMessage::Startup(vec![])));
        for wrong in [
            &b"\0\0\0\x07\0\x03\0\0"[..],
            b"\0\0\0\x08\0\x03\0\0",
            // A cancel request does not begin a session.
            b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02",
            b"\0\0\0\x0e\0\x02\0\0user\0\0",
            b"\0\0\0\x0f\0\x03\0\0user\0\0\0",
            b"\0\0\0\x12\0\x03\0\0us\x01r\0bob\0\0",
            b"\0\0\0\x12\0\x03\0\0user\0b\xffb\0\0",
            b"\0\0\0\x11\0\x03\0\0user\0bob\0",
            b"\0\0\0",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        // Parameters before one without a value are valid.
        let Ok((message, Some(_))) =
            FirstMessage::parse(b"\0\0\0\x1a\0\x03\0\0user\0bob\0options\0\0\0")
        else {
            panic!("nothing is wrong")
        };
        assert_eq!(message, FirstMessage::Startup(vec![(b"user", b"bob")]));
    }

    #[test]
    fn lengths_that_lie_are_at_least_a_header() {
        assert_eq!(first_length(b"\0\0\0\x01\0\x03\0\0"), 8);
        assert_eq!(first_length(b"\0\0"), 8);
        assert_eq!(first_length(b"GET / HTTP/1.1"), 8);
        assert_eq!(length(b"Q\0\0\0\0"), 5);
        assert_eq!(length(b"Q"), 5);
        assert_eq!(length(b"Q\xff\xff\xff\xff"), 0x1_0000_0000);
    }

    #[test]
    fn messages_of_clients() {
        let query = b"Q\0\0\0\x0cselect\0";
        assert_eq!(length(query), 13);
        let parse = |d, cut| complete(Frontend::parse(d, cut));
        assert_eq!(parse(b"Q\0\0\0\x0bselect\0", false), Some(Frontend::Query(b"select")));
        assert_eq!(parse(b"Q\0\0\x10\0sel", true), Some(Frontend::Query(b"sel")));
        assert_eq!(parse(b"X\0\0\0\x04", false), Some(Frontend::Terminate));
        assert_eq!(parse(b"P\0\0\0\x05x", false), Some(Frontend::Other(b'P')));
        assert!(Frontend::parse(b"Q\0\0\0\x07sel", false).is_err());
        assert!(Frontend::parse(b"Q\0\0\0\x03", false).is_err());
        // The part before the excess data is valid.
        let read = Frontend::parse(b"Q\0\0\0\x08se\0l", false);
        assert_eq!(read, Ok((Frontend::Query(b"se"), Some(TRAILING_DATA))));
        let read = Frontend::parse(b"X\0\0\0\x05x", false);
        assert_eq!(read, Ok((Frontend::Terminate, Some(TRAILING_DATA))));
    }

    #[test]
    fn messages_of_servers() {
        let parse = |d| complete(Backend::parse(d, false));
        assert_eq!(parse(b"R\0\0\0\x08\0\0\0\0"), Some(Backend::AuthenticationOk));
        assert_eq!(parse(b"R\0\0\0\x0c\0\0\0\x05salt"), Some(Backend::Authentication(5)));
        assert_eq!(parse(b"D\0\0\0\x06\0\0"), Some(Backend::Row));
        assert_eq!(parse(b"Z\0\0\0\x05T"), Some(Backend::Ready(b'T')));
        assert_eq!(parse(b"S\0\0\0\x08a\0b\0"), Some(Backend::Other(b'S')));
        let error = b"E\0\0\0\x10SERROR\0C1\0\0";
        assert_eq!(parse(error), Some(Backend::Error(vec![(b'S', b"ERROR"), (b'C', b"1")])));
        assert_eq!(parse(b"N\0\0\0\x05\0"), Some(Backend::Notice(vec![])));
        assert_eq!(
            complete(Backend::parse(b"E\0\0\x10\0SERROR\0C1", true)),
            Some(Backend::Error(vec![(b'S', b"ERROR")]))
        );
        for wrong in [
            &b"R\0\0\0\x09\0\0\0\0x"[..],
            b"R\0\0\0\x08\0\0\0\x0d",
            b"R\0\0\0\x04",
            b"D\0\0\0\x05\0",
            b"Z\0\0\0\x05x",
            b"K\0\0\0\x08\0\0\0\0",
            b"S\0\0\0\x07\0b\0",
            b"E\0\0\0\x0aSERROR",
        ] {
            assert!(Backend::parse(wrong, false).is_err(), "{wrong:?}");
        }
        let part = |d| Backend::parse(d, false).ok().filter(|(_, wrong)| wrong.is_some());
        let part = |d| part(d).map(|(message, _)| message);
        assert_eq!(part(b"Z\0\0\0\x06II"), Some(Backend::Ready(b'I')));
        assert_eq!(part(b"K\0\0\0\x0d\0\0\0\0\0\0\0\0x"), Some(Backend::Other(b'K')));
        assert_eq!(part(b"E\0\0\0\x0bSERROR\0"), Some(Backend::UnterminatedError));
        assert_eq!(part(b"N\0\0\0\x08Ma\0H"), Some(Backend::Notice(vec![(b'M', b"a")])));
        assert_eq!(part(b"E\0\0\0\x06\0\0"), Some(Backend::Error(vec![])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(data: Vec<u8>, cut: bool) {
            let _ = FirstMessage::parse(&data);
            let _ = Frontend::parse(&data, cut);
            let _ = Backend::parse(&data, cut);
            prop_assert!(length(&data) >= 5 && first_length(&data) >= 8);
        }
    }
}
