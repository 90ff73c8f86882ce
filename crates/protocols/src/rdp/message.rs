//! Messages: a TPKT header (RFC 1006), a COTP one (X.224), then what they carry.

use crate::support::Bytes;

/// How long the message is that begins here; how much is needed to tell it.
pub fn length(d: &[u8]) -> usize {
    Bytes(d.get(2..).unwrap_or_default()).u16().map_or(4, |n| usize::from(n).max(4))
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The client's wish; its cookie.
    Request(&'a [u8]),
    /// The server agrees without a word on encryption.
    Confirm,
    /// The server's choice of encryption (`SSL`, `HYBRID`, …); 0 is RDP's own.
    Response(u32),
    /// The server refuses.
    Failure(u32),
    /// The client's settings: what follows the tag of the connect request.
    Client(&'a [u8]),
    /// The server's settings.
    Server(&'a [u8]),
    /// Anything else.
    Other,
}

impl<'a> Message<'a> {
    /// Parses a message with its headers; `None` if it cannot be read.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let mut b = Bytes(data);
        b.take(4)?;
        let length = usize::from(b.u8()?);
        match b.u8()? {
            0xd0 => confirm(&mut b, length),
            0xe0 => request(&mut b, length),
            0xf0 => {
                b.take(2)?;
                Some(match b.u8()? {
                    0x65 => Self::Client(b.rest()),
                    0x66 => Self::Server(b.rest()),
                    _ => Self::Other,
                })
            }
            _ => Some(Self::Other),
        }
    }
}

fn request<'a>(b: &mut Bytes<'a>, length: usize) -> Option<Message<'a>> {
    let all = b.0.len();
    b.take(5)?;
    let mut cookie: &[u8] = &[];
    if let Some(rest) = b.0.strip_prefix(b"Cookie: mstshash=") {
        *b = Bytes(rest);
        let n = memchr::memchr(b'\r', rest)?;
        cookie = b.take(n)?;
        (b.take(2)? == b"\r\n").then_some(())?;
    }
    // The header's length tells whether a request for encryption follows.
    if all - b.0.len() + 1 != length {
        b.take(2)?;
        (b.u16_le()? == 8).then_some(())?;
        b.take(4)?;
    }
    Some(Message::Request(cookie))
}

fn confirm<'a>(b: &mut Bytes<'a>, length: usize) -> Option<Message<'a>> {
    b.take(5)?;
    if length == 6 {
        return Some(Message::Confirm);
    }
    match b.u8()? {
        2 => {
            b.u8()?;
            (b.u16_le()? == 8).then_some(())?;
            Some(Message::Response(b.u32_le()?))
        }
        3 => {
            b.take(3)?;
            Some(Message::Failure(b.u32_le()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation() {
        let request =
            b"\x03\0\0\x26\x21\xe0\0\0\0\0\0Cookie: mstshash=me\r\n\x01\0\x08\0\x03\0\0\0";
        assert_eq!(length(request), 38);
        assert_eq!(Message::parse(request), Some(Message::Request(b"me")));
        let bare = b"\x03\0\0\x0b\x06\xe0\0\0\0\0\0";
        assert_eq!(Message::parse(bare), Some(Message::Request(b"")));
        let response = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x02\0\0\0";
        assert_eq!(Message::parse(response), Some(Message::Response(2)));
        let failure = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x03\0\x08\0\x05\0\0\0";
        assert_eq!(Message::parse(failure), Some(Message::Failure(5)));
        assert_eq!(Message::parse(&failure[..12]), None);
        assert_eq!(Message::parse(b"\x03\0\0\x0b\x06\xd0\0\0\0\0\0"), Some(Message::Confirm));
    }
}
