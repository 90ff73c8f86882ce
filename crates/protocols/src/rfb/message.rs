//! Messages by the state of the dialogue.

use crate::support::Bytes;

/// Longest text.
pub const MAX_TEXT: u32 = 65_536;

/// The next message of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Its version.
    Version,
    /// The server's way to authenticate (3.3).
    SecurityType,
    /// The server's ways to authenticate (3.7).
    SecurityTypes,
    /// The client's choice among them.
    Selection,
    /// Why the server refuses.
    Failure,
    /// Sixteen bytes of challenge or response.
    Vnc,
    /// Challenge of Apple's way: generator, length of keys, then two.
    AppleChallenge,
    /// Its response: two keys of this length.
    AppleResponse(u16),
    /// Whether authentication succeeded.
    Result,
    /// The client's wish to share.
    ClientInit,
    /// The server's screen.
    ServerInit,
    /// A client's message.
    Message,
    /// A server's message.
    Picture,
    /// Nothing: it is the other's turn.
    Wait,
}

/// How long the message due is; how much is needed to tell.
pub fn length(due: Due, d: &[u8]) -> usize {
    let at = |n: usize| Bytes(d.get(n..).unwrap_or_default());
    // A text that is too long is a fault as soon as its length has arrived.
    let text = |n: usize| at(n).u32().filter(|n| *n < MAX_TEXT).map_or(0, |len| len as usize);
    match due {
        Due::Version => 12,
        Due::SecurityType | Due::Result => 4,
        Due::SecurityTypes => 1 + d.first().map_or(0, |n| usize::from(*n)),
        Due::Selection | Due::ClientInit | Due::Wait => 1,
        Due::Failure => 4 + text(0),
        Due::Vnc => 16,
        Due::AppleChallenge => 4 + 2 * at(2).u16().map_or(0, usize::from),
        Due::AppleResponse(n) => (2 * usize::from(n)).max(1),
        Due::ServerInit => 24 + text(20),
        Due::Message => match d.first() {
            Some(0) => 20,
            Some(2) => 4 + 4 * at(2).u16().map_or(0, usize::from),
            Some(3) => 10,
            Some(4) => 8,
            Some(5) => 6,
            Some(6) => 8 + text(4),
            _ => 1,
        },
        Due::Picture => match d.first() {
            Some(0) => 4,
            Some(1) => 6 + 6 * at(4).u16().map_or(0, usize::from),
            Some(2) | None => 1,
            Some(3) => 8 + text(4),
            Some(_) => 2,
        },
    }
}

/// Major and minor version, three digits each: `RFB 003.008` and a line end.
pub fn version(d: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut b = Bytes(d.strip_prefix(b"RFB ")?);
    let major = b.take(3)?;
    (b.u8()? == b'.').then_some(())?;
    Some((major, b.take(3)?))
}

/// The number that digits begin with, behind blanks.
pub fn number(d: &[u8]) -> u32 {
    d.iter()
        .skip_while(|b| **b == b' ')
        .map_while(|b| b.is_ascii_digit().then(|| u32::from(b - b'0')))
        .fold(0, |n, digit| 10 * n + digit)
}

/// A text of the message that is beyond the limit, by the name Zeek has for its length.
pub fn long_text(due: Due, d: &[u8]) -> Option<&'static str> {
    let (at, name) = match due {
        Due::Failure => (0, "RFBFailReasonString:len"),
        Due::ServerInit => (20, "RFBServerInit:len"),
        Due::Message if d.first() == Some(&6) => (4, "ClientCutText:len"),
        Due::Picture if d.first() == Some(&3) => (4, "ServerCutText:len"),
        _ => return None,
    };
    let length = Bytes(d.get(at..).unwrap_or_default()).u32();
    length.is_none_or(|n| n >= MAX_TEXT).then_some(name)
}

/// The server's screen: width, height, name.
pub fn server_init(d: &[u8]) -> Option<(u16, u16, &[u8])> {
    let mut b = Bytes(d);
    Some((b.u16()?, b.u16()?, b.0.get(20..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!(length(Due::SecurityTypes, b"\x02\x01\x02"), 3);
        assert_eq!(length(Due::Failure, b"\0\0"), 4);
        assert_eq!(length(Due::Failure, b"\0\0\0\x05"), 9);
        assert_eq!(length(Due::Failure, b"\0\0\xff\xff"), 4 + 65_535);
        assert_eq!(length(Due::Failure, b"\xff\0\0\x05"), 4);
        let long = long_text(Due::Failure, b"\xff\0\0\x05");
        assert_eq!(long, Some("RFBFailReasonString:len"));
        assert_eq!(length(Due::Message, b"\x02\0\0\x03"), 16);
        assert_eq!(length(Due::Message, b"\x06\0\0\0\0\0\0\x03"), 11);
        assert_eq!(length(Due::AppleChallenge, b"\0\x02\0\x80"), 260);
    }

    #[test]
    fn versions() {
        assert_eq!(version(b"RFB 003.008\n"), Some((&b"003"[..], &b"008"[..])));
        assert_eq!(version(b"RFB 003,008\n"), None);
        assert_eq!((number(b"008"), number(b"889"), number(b"x")), (8, 889, 0));
    }
}
