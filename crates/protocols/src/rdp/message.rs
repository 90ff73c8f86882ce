//! Messages: a TPKT header (RFC 1006), a COTP one (X.224), then the payload.

use crate::support::Bytes;
use crate::support::Record;
use crate::support::RecordFault;

/// Length of the message that `d` begins with, or the number of bytes needed to determine it.
pub fn length(d: &[u8]) -> usize {
    Bytes(d.get(2..).unwrap_or_default()).u16().map_or(4, |n| usize::from(n).max(4))
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Connection request: the client's cookie, and flags of its negotiation request.
    Request(&'a [u8], u8),
    /// Connection confirm without a negotiation response.
    Confirm,
    /// Negotiation response: the selected protocol (`SSL`, `HYBRID`, …; 0 is RDP's own encryption)
    /// and flags.
    Response(u32, u8),
    /// Negotiation failure: failure code and flags.
    Failure(u32, u8),
    /// The client's settings, after the tag of the connect request.
    Client(&'a [u8]),
    /// The server's settings.
    Server(&'a [u8]),
    /// Any other message.
    Other,
}

impl<'a> Message<'a> {
    /// Parses a message including its headers.
    pub fn parse(data: &'a [u8]) -> Result<Self, RecordFault> {
        let mut cotp = Record::new("COTP", data.get(4..).unwrap_or_default());
        let head = cotp.upto("pdu", 2)?;
        let (length, body) = (usize::from(head[0]), cotp.rest());
        match head[1] {
            0xd0 => confirm(body, length),
            0xe0 => request(body, length),
            0xf0 => {
                let mut d = Record::new("DT_Data", body);
                Ok(match d.upto("application_type", 3)?[2] {
                    0x65 => Self::Client(d.rest()),
                    0x66 => Self::Server(d.rest()),
                    _ => Self::Other,
                })
            }
            _ => Ok(Self::Other),
        }
    }
}

fn request(body: &[u8], length: usize) -> Result<Message<'_>, RecordFault> {
    let mut r = Record::new("Connect_Request", body);
    r.upto("flow_control", 5)?;
    let mut cookie: &[u8] = &[];
    if let Some(rest) = r.rest().strip_prefix(b"Cookie: mstshash=") {
        let n = memchr::memchr(b'\r', rest).unwrap_or(rest.len());
        cookie = &rest[..n];
        if !rest[n..].starts_with(b"\r\n") {
            return Err(RecordFault::Syntax);
        }
        r.at = body.len() - rest.len() + n + 2;
    }
    // The header's length determines whether a negotiation request follows.
    let mut flags = 0;
    if r.at + 1 != length {
        let wish = Record::new("RDP_Negotiation_Request", r.rest()).all(8)?;
        if wish[2..4] != [8, 0] {
            return Err(RecordFault::Value("RDP_Negotiation_Request:length"));
        }
        flags = wish[1];
    }
    Ok(Message::Request(cookie, flags))
}

fn confirm(body: &[u8], length: usize) -> Result<Message<'_>, RecordFault> {
    let mut r = Record::new("Connect_Confirm", body);
    r.upto("flags", 5)?;
    if length == 6 {
        return Ok(Message::Confirm);
    }
    let mut answer = Record::new("Connect_Confirm_Record", r.rest());
    let kind = answer.upto("response_type", 1)?[0];
    let number = |d: &[u8]| u32::from_le_bytes([d[3], d[4], d[5], d[6]]);
    match kind {
        2 => {
            let d = Record::new("RDP_Negotiation_Response", answer.rest()).all(7)?;
            if d[1..3] != [8, 0] {
                return Err(RecordFault::Value("RDP_Negotiation_Response:length"));
            }
            Ok(Message::Response(number(d), d[0]))
        }
        3 => {
            let d = Record::new("RDP_Negotiation_Failure", answer.rest()).all(7)?;
            Ok(Message::Failure(number(d), d[0]))
        }
        n => Err(RecordFault::Case { record: "Connect_Confirm_Record", index: n.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::BINPAC;

    #[test]
    fn negotiation() {
        let request =
            b"\x03\0\0\x26\x21\xe0\0\0\0\0\0Cookie: mstshash=me\r\n\x01\0\x08\0\x03\0\0\0";
        assert_eq!(length(request), 38);
        assert_eq!(Message::parse(request), Ok(Message::Request(b"me", 0)));
        let bare = b"\x03\0\0\x0b\x06\xe0\0\0\0\0\0";
        assert_eq!(Message::parse(bare), Ok(Message::Request(b"", 0)));
        let response = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x02\0\0\0";
        assert_eq!(Message::parse(response), Ok(Message::Response(2, 0x1f)));
        let failure = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x03\0\x08\0\x05\0\0\0";
        assert_eq!(Message::parse(failure), Ok(Message::Failure(5, 0)));
        let error = |d| {
            let e = Message::parse(d).map_or_else(|e| e.to_string(), |m| format!("{m:?}"));
            e.replace(BINPAC, "")
        };
        assert_eq!(error(&failure[..12]), "out_of_bound: RDP_Negotiation_Failure: 7 > 0");
        assert_eq!(error(b"\x03\0\0\x05\x06"), "out_of_bound: COTP:pdu: 2 > 1");
        let odd = b"\x03\0\0\x0c\x07\xd0\0\0\0\0\0\x09";
        assert_eq!(error(odd), "invalid index for case: Connect_Confirm_Record: 9");
        let nine = b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x09\0\x02\0\0\0";
        assert_eq!(error(nine), "&enforce violation : RDP_Negotiation_Response:length");
        assert_eq!(Message::parse(&request[..30]), Err(RecordFault::Syntax));
        assert_eq!(Message::parse(b"\x03\0\0\x0b\x06\xd0\0\0\0\0\0"), Ok(Message::Confirm));
    }
}
