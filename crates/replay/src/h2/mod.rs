//! The subset of HTTP/2 (RFC 9113) that DNS over HTTPS needs (RFC 8484): the client side in this
//! module, the server side in [`server`].
//!
//! A query is a POST request on a stream of its own: one HEADERS frame, whose fields differ only in
//! the length, and one DATA frame. Only the status and the body of a response are used. The client
//! allows no dynamic table (SETTINGS_HEADER_TABLE_SIZE 0), so that each header block is
//! self-contained (RFC 7541): only `:status` is read, the rest is skipped.
//!
//! [`Session`] has no socket. Received bytes go to [`take`](Session::take), which returns complete
//! bodies; frames to send in response (settings, pings, window updates) are collected for
//! [`control`](Session::control).

mod fields;
mod server;

use std::collections::HashMap;

pub(crate) use server::Request;
pub(crate) use server::Server;

/// Maximum payload of a frame in bytes (SETTINGS_MAX_FRAME_SIZE, RFC 9113 §4.2); we keep the
/// default.
const MAX_FRAME: usize = 16_384;
/// Length of a frame header in bytes.
const HEAD: usize = 9;
/// Maximum number of open streams until the server's settings arrive.
const DEFAULT_MAX_STREAMS: u32 = 100;
/// Initial flow control window, of each stream and of the connection.
const WINDOW: u32 = 65_535;
/// Our flow control window for the connection; it is renewed when half is used.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// Maximum length of a DNS message in bytes.
const MAX_BODY: usize = 65_535;
/// Maximum length of a header block in bytes; a longer one ends the connection.
const MAX_BLOCK: usize = 1 << 16;
/// The highest stream identifier on a connection, of 31 bits.
const MAX_STREAM: u32 = (1 << 31) - 3;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// The connection preface of a client (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Our settings: no dynamic table (1), no server push (2), a stream window for any message (4).
const OUR_SETTINGS: [u8; 18] = [0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0];

/// The reason why a connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server violates HTTP/2: {0}")]
pub(crate) struct ProtocolError(&'static str);

/// The reason why a query cannot be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendLimit {
    /// A limit that may be lifted later.
    Temporary,
    /// This connection cannot send it at all.
    Permanent,
}

/// The state of a client's connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// The encoded fields of every request, except the length.
    request: Vec<u8>,
    next_stream: u32,
    streams: HashMap<u32, Stream, foldhash::fast::RandomState>,
    max_streams: u32,
    /// Send window of the connection, and initial send window of each new stream.
    window: i64,
    stream_window: i64,
    /// Remaining receive window of the connection.
    receive_window: u32,
    /// Whether the server accepts no more requests (GOAWAY).
    going_away: bool,
    /// A header block that continues in a CONTINUATION frame: its stream, and whether it ends the
    /// stream.
    block: Option<(u32, bool)>,
    fields: Vec<u8>,
    control: Vec<u8>,
    /// The received part of an incomplete frame.
    input: Vec<u8>,
}

#[derive(Debug, Default)]
struct Stream {
    id: u16,
    status: u16,
    body: Vec<u8>,
}

impl Session {
    /// A session whose requests go to a path of a host.
    pub(crate) fn new(authority: &str, path: &str) -> Self {
        let mut control = PREFACE.to_vec();
        head(OUR_SETTINGS.len(), SETTINGS, 0, 0, &mut control);
        control.extend_from_slice(&OUR_SETTINGS);
        head(4, WINDOW_UPDATE, 0, 0, &mut control);
        control.extend_from_slice(&(RECEIVE_WINDOW - WINDOW).to_be_bytes());
        Self {
            request: fields::request(authority, path),
            next_stream: 1,
            streams: HashMap::default(),
            max_streams: DEFAULT_MAX_STREAMS,
            window: i64::from(WINDOW),
            stream_window: i64::from(WINDOW),
            receive_window: RECEIVE_WINDOW,
            going_away: false,
            block: None,
            fields: Vec::new(),
            control,
            input: Vec::new(),
        }
    }

    /// Whether the connection permanently accepts no more queries.
    pub(crate) fn is_closing(&self) -> bool {
        self.going_away || self.next_stream >= MAX_STREAM
    }

    /// Whether an incomplete frame was received.
    pub(crate) fn has_partial_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Moves pending control frames, which must be sent first, to `out`.
    pub(crate) fn control(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.control);
    }

    /// Whether a message of this length can be sent.
    pub(crate) fn can_send(&self, len: usize) -> Result<(), SendLimit> {
        let needed = len as i64;
        if len > MAX_FRAME || self.stream_window < needed || self.is_closing() {
            return Err(SendLimit::Permanent);
        }
        if self.streams.len() >= self.max_streams as usize || self.window < needed {
            return Err(SendLimit::Temporary);
        }
        Ok(())
    }

    /// Writes a request, with the message at its end. Its answer is returned with `id`, unless it
    /// is cancelled before.
    pub(crate) fn request(&mut self, message: &[u8], id: u16, out: &mut Vec<u8>) {
        self.control(out);
        let stream = self.next_stream;
        self.next_stream += 2;
        self.window -= message.len() as i64;
        let mut length = Vec::with_capacity(8);
        fields::length(message.len(), &mut length);
        head(self.request.len() + length.len(), HEADERS, END_HEADERS, stream, out);
        out.extend_from_slice(&self.request);
        out.extend_from_slice(&length);
        head(message.len(), DATA, END_STREAM, stream, out);
        out.extend_from_slice(message);
        self.streams.insert(stream, Stream { id, ..Stream::default() });
    }

    /// Stops waiting for the answer to the query with this id.
    pub(crate) fn cancel(&mut self, id: u16) {
        let stream = self.streams.iter().find(|(_, s)| s.id == id).map(|(stream, _)| *stream);
        if let Some(stream) = stream {
            self.streams.remove(&stream);
            head(4, RST_STREAM, 0, stream, &mut self.control);
            // CANCEL
            self.control.extend_from_slice(&8_u32.to_be_bytes());
        }
    }

    /// Processes received bytes. `out` receives each complete body with the id of its query; an
    /// empty one means an answer that is not a DNS message.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut out: impl FnMut(u16, &[u8]),
    ) -> Result<(), ProtocolError> {
        let mut input = std::mem::take(&mut self.input);
        let mut rest = bytes;
        if !input.is_empty() {
            input.extend_from_slice(bytes);
            rest = &input;
        }
        while let Some(frame) = frame(rest)? {
            rest = rest.get(HEAD + frame.payload.len()..).unwrap_or_default();
            self.frame(&frame, &mut out)?;
        }
        self.input = rest.to_vec();
        Ok(())
    }

    fn frame(
        &mut self,
        frame: &Frame<'_>,
        out: &mut impl FnMut(u16, &[u8]),
    ) -> Result<(), ProtocolError> {
        if let Some((stream, _)) = self.block
            && (frame.kind, frame.stream) != (CONTINUATION, stream)
        {
            return Err(ProtocolError("a header block is not continued"));
        }
        match frame.kind {
            DATA => self.data(frame, out)?,
            HEADERS => {
                let mut block = unpad(frame)?;
                if frame.flags & PRIORITY != 0 {
                    block = block.get(5..).ok_or(ProtocolError("a frame is too short"))?;
                }
                self.fields.clear();
                self.block = Some((frame.stream, frame.flags & END_STREAM != 0));
                self.block(block, frame.flags, out)?;
            }
            CONTINUATION if self.block.is_some() => self.block(frame.payload, frame.flags, out)?,
            CONTINUATION => return Err(ProtocolError("unexpected CONTINUATION frame")),
            RST_STREAM => {
                self.streams.remove(&frame.stream);
            }
            SETTINGS => self.settings(frame)?,
            PUSH_PROMISE => return Err(ProtocolError("it pushes")),
            PING if frame.flags & ACK == 0 => {
                let data = frame.payload.get(..8).ok_or(ProtocolError("a frame is too short"))?;
                head(8, PING, ACK, 0, &mut self.control);
                self.control.extend_from_slice(data);
            }
            GOAWAY => {
                let last = frame.number(0).ok_or(ProtocolError("a frame is too short"))?;
                self.going_away = true;
                // Requests on higher streams were not processed and get no answer.
                self.streams.retain(|stream, _| *stream <= last);
            }
            WINDOW_UPDATE if frame.stream == 0 => {
                let more = frame.number(0).ok_or(ProtocolError("a frame is too short"))?;
                self.window += i64::from(more);
                if self.window > i64::from(u32::MAX >> 1) {
                    return Err(ProtocolError("a flow-control window overflows"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn data(
        &mut self,
        frame: &Frame<'_>,
        out: &mut impl FnMut(u16, &[u8]),
    ) -> Result<(), ProtocolError> {
        let len = frame.payload.len() as u32;
        self.receive_window = self
            .receive_window
            .checked_sub(len)
            .ok_or(ProtocolError("data exceed the flow-control window"))?;
        if self.receive_window < RECEIVE_WINDOW / 2 {
            head(4, WINDOW_UPDATE, 0, 0, &mut self.control);
            self.control.extend_from_slice(&(RECEIVE_WINDOW - self.receive_window).to_be_bytes());
            self.receive_window = RECEIVE_WINDOW;
        }
        let data = unpad(frame)?;
        let Some(stream) = self.streams.get_mut(&frame.stream) else { return Ok(()) };
        if stream.body.len() + data.len() > MAX_BODY {
            return Err(ProtocolError("a body is not a DNS message"));
        }
        stream.body.extend_from_slice(data);
        if frame.flags & END_STREAM != 0 {
            self.end(frame.stream, out);
        }
        Ok(())
    }

    /// Processes a fragment of a header block.
    fn block(
        &mut self,
        piece: &[u8],
        flags: u8,
        out: &mut impl FnMut(u16, &[u8]),
    ) -> Result<(), ProtocolError> {
        if self.fields.len() + piece.len() > MAX_BLOCK {
            return Err(ProtocolError("a header block is too long"));
        }
        self.fields.extend_from_slice(piece);
        if flags & END_HEADERS == 0 {
            return Ok(());
        }
        let status = fields::status(&self.fields)
            .ok_or(ProtocolError("a header block cannot be decoded"))?;
        let Some((number, ends)) = self.block.take() else { return Ok(()) };
        if let Some(stream) = self.streams.get_mut(&number) {
            // Interim responses (RFC 9110 §15.2) and trailers do not set the status.
            if status >= 200 {
                stream.status = status;
            }
            if ends {
                self.end(number, out);
            }
        }
        Ok(())
    }

    fn end(&mut self, number: u32, out: &mut impl FnMut(u16, &[u8])) {
        if let Some(stream) = self.streams.remove(&number) {
            let is_answer = (200..300).contains(&stream.status);
            out(stream.id, if is_answer { &stream.body } else { &[] });
        }
    }

    fn settings(&mut self, frame: &Frame<'_>) -> Result<(), ProtocolError> {
        if frame.flags & ACK != 0 {
            return Ok(());
        }
        for setting in frame.payload.chunks_exact(6) {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match u16::from_be_bytes([setting[0], setting[1]]) {
                3 => self.max_streams = value,
                4 if value > u32::MAX >> 1 => {
                    return Err(ProtocolError("a flow-control window overflows"));
                }
                4 => self.stream_window = i64::from(value),
                _ => {}
            }
        }
        head(0, SETTINGS, ACK, 0, &mut self.control);
        Ok(())
    }
}

struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

impl Frame<'_> {
    /// Four bytes of the payload as a number of 31 bits.
    fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) & (u32::MAX >> 1))
    }
}

/// The frame at the start of the bytes, if it is complete.
fn frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, ProtocolError> {
    let Some(head) = bytes.get(..HEAD) else { return Ok(None) };
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    if len > MAX_FRAME {
        return Err(ProtocolError("a frame is too long"));
    }
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & (u32::MAX >> 1);
    let payload = bytes.get(HEAD..HEAD + len);
    Ok(payload.map(|payload| Frame { kind: head[3], flags: head[4], stream, payload }))
}

/// The payload without its padding (RFC 9113 §6.1).
fn unpad<'a>(frame: &Frame<'a>) -> Result<&'a [u8], ProtocolError> {
    if frame.flags & PADDED == 0 {
        return Ok(frame.payload);
    }
    let (padding, rest) =
        frame.payload.split_first().ok_or(ProtocolError("a frame is too short"))?;
    let len = rest.len().checked_sub(usize::from(*padding));
    rest.get(..len.ok_or(ProtocolError("the padding is longer than the frame"))?)
        .ok_or(ProtocolError("padding"))
}

fn head(len: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    let [_, a, b, c] = (len as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        head(payload.len(), kind, flags, stream, &mut out);
        out.extend_from_slice(payload);
        out
    }

    fn receive(session: &mut Session, bytes: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, ProtocolError> {
        let mut got = Vec::new();
        session.take(bytes, |id, body| got.push((id, body.to_vec())))?;
        Ok(got)
    }

    fn started() -> Session {
        let mut session = Session::new("dns.test", "/dns-query");
        session.control(&mut Vec::new());
        session
    }

    #[test]
    fn a_connection_begins_with_its_preface_and_settings() {
        let mut out = Vec::new();
        let mut session = Session::new("dns.test", "/q");
        session.request(b"query", 7, &mut out);
        let mut want = PREFACE.to_vec();
        want.extend_from_slice(
            b"\0\0\x12\x04\0\0\0\0\0\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x04\0\x01\0\0",
        );
        want.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0\x3f\xff\0\x01");
        assert_eq!(out[..want.len()], want);
        let rest = frame(&out[want.len()..]).unwrap().unwrap();
        assert_eq!((rest.kind, rest.flags, rest.stream), (HEADERS, END_HEADERS, 1));
        assert!(out.ends_with(b"\0\0\x05\0\x01\0\0\0\x01query"));
    }

    #[test]
    fn answers_belong_to_their_queries_in_any_order() {
        let mut session = started();
        let mut out = Vec::new();
        session.request(b"one", 10, &mut out);
        session.request(b"two", 20, &mut out);
        let bytes = [
            framed(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 2]),
            framed(HEADERS, END_HEADERS, 3, &[0x88]),
            framed(HEADERS, END_HEADERS, 1, &[0x88]),
            framed(DATA, END_STREAM | PADDED, 3, b"\x02TWO\0\0"),
            framed(DATA, 0, 1, b"O"),
            framed(PING, 0, 0, b"12345678"),
            framed(DATA, END_STREAM, 1, b"NE"),
        ]
        .concat();
        assert_eq!(session.can_send(10), Ok(()));
        let got = receive(&mut session, &bytes).unwrap();
        assert_eq!(got, [(20, b"TWO".to_vec()), (10, b"ONE".to_vec())]);
        let mut control = Vec::new();
        session.control(&mut control);
        assert_eq!(
            control,
            [framed(SETTINGS, ACK, 0, b""), framed(PING, ACK, 0, b"12345678")].concat()
        );
        session.request(b"a", 1, &mut out);
        session.request(b"b", 2, &mut out);
        assert_eq!(session.can_send(1), Err(SendLimit::Temporary), "two streams are the most");
        session.cancel(1);
        assert_eq!(session.can_send(1), Ok(()));
    }

    #[test]
    fn invalid_answers_are_passed_on_as_empty() {
        let mut session = started();
        session.request(b"query", 3, &mut Vec::new());
        // 404, with a text as the body.
        let bytes =
            [framed(HEADERS, END_HEADERS, 1, &[0x8d]), framed(DATA, END_STREAM, 1, b"not here")];
        assert_eq!(receive(&mut session, &bytes.concat()).unwrap(), [(3, Vec::new())]);
        session.request(b"query", 4, &mut Vec::new());
        session.request(b"query", 5, &mut Vec::new());
        let goaway = framed(GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
        assert!(receive(&mut session, &goaway).unwrap().is_empty());
        assert!(session.is_closing() && session.streams.len() == 1);
        assert_eq!(session.can_send(5), Err(SendLimit::Permanent));
    }

    #[test]
    fn windows_are_respected() {
        let mut session = started();
        let message = vec![0; 16_000];
        for id in 0..4 {
            assert_eq!(session.can_send(message.len()), Ok(()));
            session.request(&message, id, &mut Vec::new());
        }
        assert_eq!(session.can_send(message.len()), Err(SendLimit::Temporary));
        receive(&mut session, &framed(WINDOW_UPDATE, 0, 0, &[0, 0, 0x40, 0])).unwrap();
        assert_eq!(session.can_send(message.len()), Ok(()));
        assert_eq!(session.can_send(MAX_FRAME + 1), Err(SendLimit::Permanent));
        receive(&mut session, &framed(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 100])).unwrap();
        assert_eq!(session.can_send(101), Err(SendLimit::Permanent));
    }

    #[test]
    fn violations_end_the_connection() {
        let long = [0, 0x40, 1, 0, 0, 0, 0, 0, 1];
        let wrong = [
            long.to_vec(),
            framed(PUSH_PROMISE, 0, 1, b""),
            framed(CONTINUATION, 0, 1, b""),
            [framed(HEADERS, 0, 1, &[0x88]), framed(PING, 0, 0, &[0; 8])].concat(),
            framed(HEADERS, END_HEADERS, 1, &[0xc0]),
            framed(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x88]),
            framed(SETTINGS, 0, 0, &[0, 4, 255, 0, 0, 0]),
        ];
        for bytes in wrong {
            assert!(receive(&mut started(), &bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        /// The answers of a stream do not depend on how it is split.
        #[test]
        fn answers_do_not_depend_on_splits(step in 1_usize..40, split in 0_usize..5) {
            let mut session = started();
            session.request(b"query", 3, &mut Vec::new());
            let bytes = [
                framed(HEADERS, 0, 1, &[]),
                framed(CONTINUATION, END_HEADERS, 1, &[0x88]),
                framed(DATA, 0, 1, &b"hello"[..split]),
                framed(DATA, END_STREAM, 1, &b"hello"[split..]),
            ]
            .concat();
            let mut got = Vec::new();
            for piece in bytes.chunks(step) {
                got.extend(receive(&mut session, piece).unwrap());
            }
            prop_assert_eq!(got, vec![(3, b"hello".to_vec())]);
            prop_assert!(!session.has_partial_input());
        }

        /// Arbitrary input does not panic.
        #[test]
        fn any_bytes_are_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut session = started();
            session.request(b"query", 3, &mut Vec::new());
            session.take(&bytes, |_, _| {}).unwrap_or_default();
        }
    }
}
