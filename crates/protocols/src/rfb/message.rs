//! Messages, by the state of the handshake.

use crate::support::Bytes;

/// Maximum length of a text, in bytes.
pub const MAX_TEXT: u32 = 65_536;

/// The next message that is expected of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// ProtocolVersion.
    Version,
    /// The server's security type (version 3.3).
    SecurityType,
    /// The server's list of security types (version 3.7).
    SecurityTypes,
    /// The client's choice of a security type.
    Selection,
    /// The server's reason for a failure.
    Failure,
    /// VNC authentication: sixteen bytes of challenge or response.
    Vnc,
    /// Apple's challenge: generator, key length, then two keys.
    AppleChallenge,
    /// Apple's response: two keys of this length.
    AppleResponse(u16),
    /// SecurityResult.
    Result,
    /// ClientInit: whether the desktop is shared.
    ClientInit,
    /// ServerInit: the screen parameters.
    ServerInit,
    /// A client's message after the handshake.
    ClientMessage,
    /// A server's message after the handshake.
    ServerMessage,
    /// No message: the other side is expected to send.
    Nothing,
}

/// Length of the expected message, or the number of bytes needed to determine it.
pub fn length(due: Expected, d: &[u8]) -> usize {
    let at = |n: usize| Bytes(d.get(n..).unwrap_or_default());
    // A length that is too large is reported as soon as it is complete.
    let text = |n: usize| at(n).u32().filter(|n| *n < MAX_TEXT).map_or(0, |len| len as usize);
    match due {
        Expected::Version => 12,
        Expected::SecurityType | Expected::Result => 4,
        Expected::SecurityTypes => 1 + d.first().map_or(0, |n| usize::from(*n)),
        Expected::Selection | Expected::ClientInit | Expected::Nothing => 1,
        Expected::Failure => 4 + text(0),
        Expected::Vnc => 16,
        Expected::AppleChallenge => 4 + 2 * at(2).u16().map_or(0, usize::from),
        Expected::AppleResponse(n) => (2 * usize::from(n)).max(1),
        Expected::ServerInit => 24 + text(20),
        Expected::ClientMessage => match d.first() {
            Some(0) => 20,
            Some(2) => 4 + 4 * at(2).u16().map_or(0, usize::from),
            Some(3) => 10,
            Some(4) => 8,
            Some(5) => 6,
            Some(6) => 8 + text(4),
            _ => 1,
        },
        Expected::ServerMessage => match d.first() {
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

/// The number in the digits at the start of `d`, after spaces.
pub fn leading_number(d: &[u8]) -> u32 {
    d.iter()
        .skip_while(|b| **b == b' ')
        .map_while(|b| b.is_ascii_digit().then(|| u32::from(b - b'0')))
        .fold(0, |n, digit| 10 * n + digit)
}

/// Zeek's name of the length field, if the message contains a text that is too long.
pub fn long_text(due: Expected, d: &[u8]) -> Option<&'static str> {
    let (at, name) = match due {
        Expected::Failure => (0, "RFBFailReasonString:len"),
        Expected::ServerInit => (20, "RFBServerInit:len"),
        Expected::ClientMessage if d.first() == Some(&6) => (4, "ClientCutText:len"),
        Expected::ServerMessage if d.first() == Some(&3) => (4, "ServerCutText:len"),
        _ => return None,
    };
    let length = Bytes(d.get(at..).unwrap_or_default()).u32();
    length.is_none_or(|n| n >= MAX_TEXT).then_some(name)
}

/// Parses the screen parameters: width, height, name.
pub fn server_init(d: &[u8]) -> Option<(u16, u16, &[u8])> {
    let mut b = Bytes(d);
    Some((b.u16()?, b.u16()?, b.0.get(20..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!(length(Expected::SecurityTypes, b"\x02\x01\x02"), 3);
        assert_eq!(length(Expected::Failure, b"\0\0"), 4);
        assert_eq!(length(Expected::Failure, b"\0\0\0\x05"), 9);
        assert_eq!(length(Expected::Failure, b"\0\0\xff\xff"), 4 + 65_535);
        assert_eq!(length(Expected::Failure, b"\xff\0\0\x05"), 4);
        let long = long_text(Expected::Failure, b"\xff\0\0\x05");
        assert_eq!(long, Some("RFBFailReasonString:len"));
        assert_eq!(length(Expected::ClientMessage, b"\x02\0\0\x03"), 16);
        assert_eq!(length(Expected::ClientMessage, b"\x06\0\0\0\0\0\0\x03"), 11);
        assert_eq!(length(Expected::AppleChallenge, b"\0\x02\0\x80"), 260);
    }

    #[test]
    fn versions() {
        assert_eq!(version(b"RFB 003.008\n"), Some((&b"003"[..], &b"008"[..])));
        assert_eq!(version(b"RFB 003,008\n"), None);
        assert_eq!(
            (leading_number(b"008"), leading_number(b"889"), leading_number(b"x")),
            (8, 889, 0)
        );
    }
}
