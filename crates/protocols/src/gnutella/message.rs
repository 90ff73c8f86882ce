//! Lines of handshakes, and headers of messages.

/// Length of the header of a message, in bytes.
pub(super) const HEADER_LEN: usize = 23;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the message.
    pub kind: u8,
    /// Remaining number of times that the message may be forwarded.
    pub ttl: u8,
    /// Number of times that the message has been forwarded.
    pub hops: u8,
    /// Length of the payload, in bytes.
    pub length: u32,
}

impl Header {
    /// Parses a header; `None` if it is incomplete.
    pub fn parse(data: &[u8]) -> Option<Self> {
        // The 16 bytes of the message identifier come first.
        let [kind, ttl, hops, length @ ..] = *data.get(16..)?.first_chunk::<7>()?;
        Some(Self { kind, ttl, hops, length: u32::from_le_bytes(length) })
    }
}

/// Whether the first line of a handshake accepts the connection.
pub fn accepts(line: &[u8]) -> bool {
    let code = line.iter().position(|b| *b == b' ').and_then(|space| line.get(space + 1..));
    line.starts_with(b"GNUTELLA") && code.is_some_and(|code| code.starts_with(b"200"))
}

/// Whether the first line of a handshake is a request or status line of HTTP.
pub fn is_http(line: &[u8]) -> bool {
    memchr::memmem::find(line, b" HTTP/1.").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_length() {
        let mut data = [7; HEADER_LEN];
        data[16..].copy_from_slice(&[0x80, 3, 4, 1, 2, 0, 0]);
        let header = Header { kind: 0x80, ttl: 3, hops: 4, length: 513 };
        assert_eq!(Header::parse(&data), Some(header));
        assert_eq!(Header::parse(&data[..22]), None);
        assert_eq!(Header::parse(b""), None);
    }

    #[test]
    fn lines_accept_or_are_of_http() {
        assert!(accepts(b"GNUTELLA/0.6 200 OK"));
        assert!(!accepts(b"GNUTELLA/0.6 503 Busy") && !accepts(b"GNUTELLA") && !accepts(b"X 200"));
        assert!(!accepts(b"GNUTELLA CONNECT/0.6"));
        assert!(is_http(b"GET /get/1/a HTTP/1.1") && !is_http(b"GET /get/1/a HTTP"));
    }
}
