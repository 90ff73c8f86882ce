//! Messages (RFC 1350 section 5, RFC 2347).

use std::fmt;

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::TableOf;
use gannet_event::Type;

/// Name and value of an option, as text.
pub(super) type Pair<'a> = (&'a [u8], &'a [u8]);

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// RRQ or WRQ: a request to read or write a file.
    Request(Request<'a>),
    /// DATA: a block of the file.
    Data {
        /// Block number, from 1; 0 follows 65,535.
        block: u16,
        /// Contents of the block.
        data: &'a [u8],
    },
    /// ACK: a block was received; block 0 accepts a write request.
    Ack {
        /// Block number.
        block: u16,
    },
    /// ERROR: ends the transfer.
    Error {
        /// Error code.
        code: u16,
        /// Error message.
        message: &'a [u8],
    },
    /// OACK: the options of the request that the server accepts.
    Options(Vec<Pair<'a>>),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Whether the client writes the file.
    pub writes: bool,
    /// Name of the file.
    pub filename: &'a [u8],
    /// `netascii`, `octet` or `mail`.
    pub mode: &'a [u8],
    /// Requested options.
    pub options: Vec<Pair<'a>>,
}

/// Reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The message ends before this part.
    Truncated(&'static str),
    /// The opcode is unknown.
    Opcode(u16),
    /// The mode of the request is unknown.
    Mode,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(part) => write!(f, "message ends before its {part}"),
            Self::Opcode(n) => write!(f, "no message has the number {n}"),
            Self::Mode => f.write_str("request has an unknown mode"),
        }
    }
}

impl<'a> Message<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// If it is not a message.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (opcode, mut rest) = number(data, "number")?;
        Ok(match opcode {
            1 | 2 => {
                let filename = text(&mut rest, "name of a file")?;
                let mode = text(&mut rest, "mode")?;
                let modes: [&[u8]; 3] = [b"netascii", b"octet", b"mail"];
                if !modes.iter().any(|known| known.eq_ignore_ascii_case(mode)) {
                    return Err(Malformed::Mode);
                }
                let options = options(rest)?;
                Self::Request(Request { writes: opcode == 2, filename, mode, options })
            }
            3 => {
                let (block, data) = number(rest, "block")?;
                Self::Data { block, data }
            }
            4 => Self::Ack { block: number(rest, "block")?.0 },
            5 => {
                let (code, mut rest) = number(rest, "code")?;
                // Some servers omit the zero byte.
                let message = text(&mut rest, "").unwrap_or(rest);
                Self::Error { code, message }
            }
            6 => Self::Options(options(rest)?),
            other => return Err(Malformed::Opcode(other)),
        })
    }
}

fn number<'a>(data: &'a [u8], part: &'static str) -> Result<(u16, &'a [u8]), Malformed> {
    let (two, rest) = data.split_first_chunk().ok_or(Malformed::Truncated(part))?;
    Ok((u16::from_be_bytes(*two), rest))
}

/// Reads text up to a zero byte, which is consumed.
fn text<'a>(data: &mut &'a [u8], part: &'static str) -> Result<&'a [u8], Malformed> {
    let end = memchr::memchr(0, data).ok_or(Malformed::Truncated(part))?;
    let (text, rest) = data.split_at(end);
    *data = &rest[1..];
    Ok(text)
}

fn options(mut data: &[u8]) -> Result<Vec<Pair<'_>>, Malformed> {
    let mut all = Vec::new();
    // Zero bytes after the last option are padding.
    while data.iter().any(|b| *b != 0) {
        all.push((text(&mut data, "option")?, text(&mut data, "value of an option")?));
    }
    Ok(all)
}

/// Options that a server accepts, encoded as a table.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(pub &'a [Pair<'a>]);

impl Arg for Options<'_> {
    const TYPE: Type = TableOf::<&[u8], &[u8]>::TYPE;

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        for (name, value) in self.0 {
            name.pack(to);
            value.pack(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_and_their_options() {
        let read = b"\0\x01boot.img\0octet\0blksize\x001428\0tsize\x000\0";
        let options = vec![(&b"blksize"[..], &b"1428"[..]), (b"tsize", b"0")];
        let request = Request { writes: false, filename: b"boot.img", mode: b"octet", options };
        assert_eq!(Message::parse(read), Ok(Message::Request(request)));
        let write = Message::parse(b"\0\x02log\0NetASCII\0\0\0");
        assert!(matches!(write, Ok(Message::Request(r)) if r.writes && r.options.is_empty()));
        assert_eq!(Message::parse(b"\0\x01name"), Err(Malformed::Truncated("name of a file")));
        assert_eq!(Message::parse(b"\0\x01name\0binary\0"), Err(Malformed::Mode));
        let cut = b"\0\x06blksize\x001428";
        assert_eq!(Message::parse(cut), Err(Malformed::Truncated("value of an option")));
    }

    #[test]
    fn parts_and_errors() {
        let data = Message::Data { block: 258, data: b"abc" };
        assert_eq!(Message::parse(b"\0\x03\x01\x02abc"), Ok(data));
        assert_eq!(Message::parse(b"\0\x04\0\x07"), Ok(Message::Ack { block: 7 }));
        let error = Message::Error { code: 1, message: b"no such file" };
        assert_eq!(Message::parse(b"\0\x05\0\x01no such file"), Ok(error.clone()));
        assert_eq!(Message::parse(b"\0\x05\0\x01no such file\0"), Ok(error));
        assert_eq!(Message::parse(b"\0\x03\x01"), Err(Malformed::Truncated("block")));
        assert_eq!(Message::parse(b"\0\x07"), Err(Malformed::Opcode(7)));
        assert_eq!(Message::parse(b""), Err(Malformed::Truncated("number")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data: Vec<u8>) {
            let _ = Message::parse(&data);
        }
    }
}
