//! Frames.

use crate::support::OutOfBound;

/// Length of the header for TCP, in bytes: signature, and length including this header.
pub(super) const HEADER: usize = 8;

/// Length of the additional header of requests, in bytes: version, and size of the reply buffer.
const REQUEST_HEADER: usize = 8;

/// Length of the NCP header, in bytes: type, sequence, connection, task, and the connection's high
/// byte.
const NCP_HEADER: usize = 6;

/// Function code of file and directory services, which has subfunctions.
const FILE_DIR: u8 = 0x57;

/// Known frame types.
const TYPES: [u16; 6] = [0x1111, 0x2222, 0x3333, 0x5555, 0x7777, 0x9999];

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Frame type.
    pub kind: u16,
    /// Number of bytes after the header.
    pub length: usize,
    /// Contents of the frame.
    pub body: Body,
}

/// A request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A request: its function code.
    Request(u16),
    /// A reply: its completion code.
    Reply(u8),
}

impl Frame {
    /// Parses a frame with its headers; `is_orig` says whether the originator sent it.
    pub fn parse(is_orig: bool, data: &[u8]) -> Result<Self, OutOfBound> {
        let short = |field, need, have| OutOfBound::new(field, "", need, have);
        let rest = data.get(HEADER..).unwrap_or_default();
        let frame = if is_orig {
            let need = REQUEST_HEADER as i64;
            rest.get(REQUEST_HEADER..)
                .ok_or_else(|| short("ncp_over_tcpip_req_hdr", need, rest.len()))?
        } else {
            rest
        };
        let Some((header, body)) = frame.split_first_chunk::<NCP_HEADER>() else {
            return Err(short("ncp_frame:conn_high", NCP_HEADER as i64, frame.len()));
        };
        let (kind, length) = (u16::from_be_bytes([header[0], header[1]]), body.len());
        let body = match (is_orig, body) {
            (true, [FILE_DIR, subfunction, ..]) => {
                Body::Request(u16::from_be_bytes([FILE_DIR, *subfunction]))
            }
            (true, [FILE_DIR]) => Body::Request(u16::from_be_bytes([FILE_DIR, 0])),
            (true, [function, ..]) => Body::Request(u16::from(*function)),
            (true, []) => Body::Request(0),
            (false, [code, _, ..]) => Body::Reply(*code),
            (false, _) => return Err(short("ncp_reply:conn_status", 2, length)),
        };
        Ok(Self { kind, length, body })
    }
}

/// The length of a frame, from the header for TCP.
pub(super) fn length(header: [u8; HEADER]) -> u32 {
    let [_, _, _, _, length @ ..] = header;
    u32::from_be_bytes(length)
}

/// Whether a segment begins with a frame of a known type.
pub(super) fn begins(is_orig: bool, data: &[u8]) -> bool {
    let (at, min_len) = if is_orig { (HEADER + REQUEST_HEADER, 22) } else { (HEADER, 16) };
    let kind = data.get(at..).and_then(|rest| rest.first_chunk());
    data.len() >= min_len && kind.is_some_and(|kind| TYPES.contains(&u16::from_be_bytes(*kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::error_text;
    use proptest::prelude::*;

    const REQUEST: &[u8] = b"DmdT\0\0\0\x18\0\0\0\x01\0\0\0\x02\x22\x22\x01\x02\x03\x04\x57\x06";

    #[test]
    fn requests_have_a_function() {
        let body = Body::Request(0x5706);
        assert_eq!(Frame::parse(true, REQUEST), Ok(Frame { kind: 0x2222, length: 2, body }));
        let function = |data: &[u8]| Frame::parse(true, data).map(|frame| frame.body);
        assert_eq!(function(&REQUEST[..23]), Ok(Body::Request(0x5700)));
        assert_eq!(function(&REQUEST[..22]), Ok(Body::Request(0)));
        let other = [&REQUEST[..22], b"\x42"].concat();
        assert_eq!(function(&other), Ok(Body::Request(0x42)));
        let cut = error_text(function(&REQUEST[..21]).unwrap_err());
        assert_eq!(cut, "out_of_bound: ncp_frame:conn_high: 6 > 5");
        let cut = error_text(function(&REQUEST[..12]).unwrap_err());
        assert_eq!(cut, "out_of_bound: ncp_over_tcpip_req_hdr: 8 > 4");
    }

    #[test]
    fn replies_have_a_completion_code() {
        let reply = b"tNcP\0\0\0\x10\x33\x33\x01\x02\x03\x04\x89\0";
        let body = Body::Reply(0x89);
        assert_eq!(Frame::parse(false, reply), Ok(Frame { kind: 0x3333, length: 2, body }));
        let cut = error_text(Frame::parse(false, &reply[..15]).unwrap_err());
        assert_eq!(cut, "out_of_bound: ncp_reply:conn_status: 2 > 1");
    }

    #[test]
    fn frames_begin_with_known_types() {
        assert!(begins(true, REQUEST) && !begins(false, REQUEST));
        assert!(!begins(true, &REQUEST[..21]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(is_orig: bool, data: Vec<u8>) {
            let _ = Frame::parse(is_orig, &data);
            begins(is_orig, &data);
        }
    }
}
