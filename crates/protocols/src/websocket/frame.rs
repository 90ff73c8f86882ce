//! Parses frames (RFC 6455 section 5.2) from a stream that is split at arbitrary positions.

/// Opcodes.
pub mod opcode {
    /// Continues the message of the previous frame.
    pub const CONTINUATION: u8 = 0;
    /// UTF-8 text.
    pub const TEXT: u8 = 1;
    /// Binary data.
    pub const BINARY: u8 = 2;
    /// Closes the connection; payload: a status of two bytes and a reason, or nothing.
    pub const CLOSE: u8 = 8;
    /// Checks whether the other side is alive.
    pub const PING: u8 = 9;
    /// Reply to a ping.
    pub const PONG: u8 = 10;
}

/// Maximum length of a header in bytes: two, up to eight of length, four of mask.
const MAX_HEADER: usize = 14;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the frame is the last one of its message.
    pub fin: bool,
    /// The three reserved bits, which extensions use.
    pub rsv: u8,
    /// Opcode, see [`opcode`].
    pub opcode: u8,
    /// The mask of the payload.
    pub mask: Option<[u8; 4]>,
    /// Length of the payload, in bytes.
    pub len: u64,
}

impl Header {
    /// Length of the header whose second byte is `second`.
    fn size(second: u8) -> usize {
        let len = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + len + if second & 0x80 != 0 { 4 } else { 0 }
    }

    /// Parses a header; `None` if it is incomplete.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let (&[first, second], rest) = data.split_first_chunk()?;
        let (len, rest) = match second & 0x7f {
            126 => {
                let (len, rest) = rest.split_first_chunk()?;
                (u64::from(u16::from_be_bytes(*len)), rest)
            }
            127 => {
                let (len, rest) = rest.split_first_chunk()?;
                (u64::from_be_bytes(*len), rest)
            }
            n => (u64::from(n), rest),
        };
        let mask = match second & 0x80 {
            0 => None,
            _ => Some(*rest.first_chunk()?),
        };
        Some(Self { fin: first & 0x80 != 0, rsv: first >> 4 & 7, opcode: first & 0x0f, mask, len })
    }
}

/// The elements of a stream of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A frame begins.
    Frame(Header),
    /// A part of the current frame's payload, still masked.
    Payload {
        /// Offset in the frame's payload.
        at: u64,
        /// The masked bytes.
        data: &'a [u8],
    },
    /// The frame is complete.
    End,
}

/// Incremental parser of one direction.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    header: [u8; MAX_HEADER],
    have: u8,
    /// The frame whose payload is being received, and the number of payload bytes so far.
    frame: Option<(Header, u64)>,
}

impl Frames {
    /// The [`opcode`] of a frame whose header is incomplete, if already known.
    pub fn partial_opcode(&self) -> Option<u8> {
        (self.have >= 2).then_some(self.header[0] & 0x0f)
    }

    /// Returns the next event and removes its bytes from `data`. `None` if all bytes are consumed.
    pub fn next<'d>(&mut self, data: &mut &'d [u8]) -> Option<Event<'d>> {
        if let Some((header, at)) = &mut self.frame {
            let left = header.len - *at;
            if left == 0 {
                self.frame = None;
                return Some(Event::End);
            }
            if data.is_empty() {
                return None;
            }
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
            let (now, rest) = data.split_at(n);
            *data = rest;
            let event = Event::Payload { at: *at, data: now };
            *at += n as u64;
            return Some(event);
        }
        while let Some((&byte, rest)) = data.split_first() {
            *data = rest;
            self.header[usize::from(self.have)] = byte;
            self.have += 1;
            let have = usize::from(self.have);
            if have >= 2 && have == Header::size(self.header[1]) {
                self.have = 0;
                let header = Header::parse(&self.header[..have])?;
                self.frame = Some((header, 0));
                return Some(Event::Frame(header));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(chunks: &[&[u8]]) -> (Vec<Header>, Vec<u8>, usize) {
        let mut frames = Frames::default();
        let (mut headers, mut payload, mut ends) = (Vec::new(), Vec::new(), 0);
        for chunk in chunks {
            let mut data = *chunk;
            while let Some(event) = frames.next(&mut data) {
                match event {
                    Event::Frame(h) => headers.push(h),
                    Event::Payload { data, .. } => payload.extend_from_slice(data),
                    Event::End => ends += 1,
                }
            }
        }
        (headers, payload, ends)
    }

    #[test]
    fn frames_of_all_sizes() {
        // A ping without payload, a masked text of three bytes.
        let (headers, payload, ends) = all(&[b"\x89\x00\x81\x83\x01\x02\x03\x04abc"]);
        assert_eq!(
            headers[0],
            Header { fin: true, rsv: 0, opcode: opcode::PING, mask: None, len: 0 }
        );
        assert_eq!(headers[1].mask, Some([1, 2, 3, 4]));
        assert_eq!((&payload[..], ends), (&b"abc"[..], 2));
        assert_eq!(Header::parse(b"\x02\x7e\x01\x00").map(|h| h.len), Some(256));
        let long = Header::parse(b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff\xff");
        assert_eq!(long.map(|h| h.len), Some(u64::MAX));
        assert_eq!(Header::parse(b"\x02\x7e\x01"), None);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(data: Vec<u8>, at in 0usize..100) {
            let at = at.min(data.len());
            prop_assert_eq!(all(&[&data]), all(&[&data[..at], &data[at..]]));
        }
    }
}
